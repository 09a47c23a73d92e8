/* meta_pickle.h: nanoGPT's meta.pkl, which lies beside character data and says how many characters there are.
 * A pickle is a program; it is never run here. It is only searched for the one number. */
#ifndef LLMC_META_PICKLE_H
#define LLMC_META_PICKLE_H

/* The vocab_size that the file says; 0 where there is no such file, or it says none that is plain to see. */
int meta_pickle_vocab(const char *path);

#endif
