/* start.h: prepares the process before anything else is done. Next: error.h. */
#ifndef LLMC_START_H
#define LLMC_START_H

/* Called first by main, before a file is opened or a library started.
 *  - Descriptors 0, 1 and 2 that are closed are opened on /dev/null: the next file to be opened would
 *    otherwise become "standard output", and messages would be written into it.
 *  - SIGXFSZ is ignored: a file at its size limit (ulimit -f) then fails with EFBIG, like a full disk. */
void process_start(void);

#endif
