/* stream.h: the tokens. Files of any kind the field uses, in name order, read as one long stream.
 *
 * Kinds, told apart by content, not by name: llm.c token shards (magic 20240520), NumPy .npy arrays
 * (uint16; int32 and uint32 range-checked), raw uint16 (only for names ending in .bin), and plain
 * text, whose tokens are its bytes. A stream is all bytes or all tokens. Files are memory-mapped
 * and checked when opened (magic, version, count against size); token ids are checked as they are
 * served. Whatever is wrong is fatal (EXIT_INPUT): one line with file, field, found, expected.
 * Not here: sequences and their order (sequences.h). Next: shard.h (one file), paths.h (which files). */
#ifndef LLMC_STREAM_H
#define LLMC_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Stream Stream;

/* Opens files, directories and globs (each entry of paths). A directory gives the .bin, .npy and
 * .txt files in it (hidden ones and subdirectories apart). Files are ordered by the bytes of their
 * names within each entry, entries in the order given.
 *
 * STREAM_ALL takes everything. STREAM_TRAIN and STREAM_VAL take, where a directory's or glob's
 * names tell, only their part. Words between other characters than letters tell: train
 * ("train.bin", "fineweb_train_000001.bin"); val, valid and validation; and test, which is in
 * neither part.
 *  - Training data are the files named train or, where none is, those not named val or test.
 *  - A file given by its own name is training data whatever its name.
 *  - Where no entry names a validation part, STREAM_VAL takes everything. */
typedef enum { STREAM_ALL, STREAM_TRAIN, STREAM_VAL } StreamPart;
Stream *stream_open(const char *const *paths, int count, StreamPart part);

/* Whether any of the paths (directories, globs) names a validation part of its own. */
bool stream_has_val_part(const char *const *paths, int count);

/* A stream over text in memory, which must outlive it; `name` stands for it in messages. */
Stream *stream_of_text(const unsigned char *text, size_t bytes, const char *name);

/* A stream of tokens in memory, little-endian numbers of `width` bytes (2 or 4), of which it takes possession
 * (free). The name is copied. */
Stream *stream_of_tokens(unsigned char *tokens, int width, uint64_t count, const char *name);

/* The text of file i of a stream of bytes, all of it; valid until stream_close. */
const unsigned char *stream_text(const Stream *stream, int i, size_t *bytes);

/* Tokens first .. first+count of a stream as a stream: for the train/validation split. */
Stream *stream_slice(const Stream *stream, uint64_t first, uint64_t count);

void stream_close(Stream *stream);

uint64_t stream_length(const Stream *stream); // tokens
bool stream_is_bytes(const Stream *stream);   // tokens are the bytes of text
int stream_files(const Stream *stream);
const char *stream_name(const Stream *stream); // a phrase: "shakespeare.txt", "10 files in data/"

/* From now on an id >= vocab is fatal when it is served: file, position, id, vocabulary. */
void stream_set_vocab(Stream *stream, int vocab);

/* Tokens first .. first+count to out. first + count <= stream_length. */
void stream_read(const Stream *stream, uint64_t first, size_t count, int32_t *out);

/* A 64-bit hash of what the stream is made of (kinds, sizes, first and last tokens of each file,
 * not their names): a resumed run compares it. */
uint64_t stream_identity(const Stream *stream);

#endif
