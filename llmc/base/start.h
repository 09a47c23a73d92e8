/* start.h: prepares the process before anything else is done. Next: error.h. */
#ifndef LLMC_START_H
#define LLMC_START_H

/* Called first by main, before a file is opened or a library started. argv is main's, or NULL.
 *  - Threads that wait for each other spin briefly and then sleep, unless the environment already says how they
 *    wait (OMP_WAIT_POLICY, GOMP_SPINCOUNT or KMP_BLOCKTIME). The OpenMP library reads that when it is loaded, so
 *    the program is started again, as the same process. With argv NULL this is left out.
 *  - Descriptors 0, 1 and 2 that are closed are opened on /dev/null: the next file to be opened would
 *    otherwise become "standard output", and messages would be written into it.
 *  - SIGXFSZ is ignored: a file at its size limit (ulimit -f) then fails with EFBIG, like a full disk. */
void process_start(char **argv);

#endif
