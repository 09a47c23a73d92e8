/* meta_pickle.h: nanoGPT's meta.pkl, which lies beside character data and contains the number of characters.
 * A pickle is a program; it is never run here. It is only searched for the one number. */
#ifndef LLMC_META_PICKLE_H
#define LLMC_META_PICKLE_H

/* The vocab_size in the file; 0 if the file does not exist or does not contain it. */
int meta_pickle_vocab(const char *path);

#endif
