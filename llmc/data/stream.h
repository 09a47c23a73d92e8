/* stream.h: the tokens. Files of any kind the field uses, in name order, read as one long stream.
 *
 * Kinds, recognised by content, not by name: llm.c token shards (magic 20240520), NumPy .npy arrays
 * (uint16; int32 and uint32 range-checked), raw uint16 (only for names ending in .bin), and plain
 * text, whose tokens are its bytes. A stream is all bytes or all tokens. Files are memory-mapped
 * and checked when opened (magic, version, count against size); token ids when the vocabulary is known
 * (stream_set_vocab). Whatever is wrong is fatal (EXIT_INPUT): one line with file, field, found, expected.
 * Not here: sequences and their order (sequences.h). Next: shard.h (one file), paths.h (which
 * files), builtin_text.h (when there is no file). */
#ifndef LLMC_STREAM_H
#define LLMC_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Stream Stream;

/* Opens files, directories and globs (each entry of paths). A directory gives the .bin, .npy and
 * .txt files in it (hidden ones and subdirectories apart); one that has none gives those of its folders
 * that are named for a part. Files are ordered by the bytes of their names within each entry, entries in
 * the order given.
 *
 * STREAM_ALL takes everything. The others take only their part, if the names in a directory or glob imply one. A
 * part is implied by a word with no letter before or after it, in the file's name or else in the names of folders
 * that the user did not write: train, training ("train.bin", "fineweb_train_000001.bin", "train/a.txt"); val,
 * valid, validation, dev, eval; test, testing, heldout.
 *  - Training data are the files named train or, where none is, those that are named for no part.
 *  - A file given by its own name is training data whatever its name.
 *  - Where no entry names a validation (or test) part, STREAM_VAL (or STREAM_TEST) takes everything. */
typedef enum { STREAM_ALL, STREAM_TRAIN, STREAM_VAL, STREAM_TEST } StreamPart;
Stream *stream_open(const char *const *paths, int count, StreamPart part);

/* The same where the caller knows the type of the tokens in files without a header (--data-type); a header with
 * another type is refused. uint8: bytes, as of text. */
typedef enum { DATA_AUTO, DATA_UINT8, DATA_UINT16, DATA_INT32, DATA_UINT32, DATA_INT64 } DataType;
Stream *stream_open_as(const char *const *paths, int count, StreamPart part, DataType type);

/* How many files of the paths' directories and globs are named for which part. */
typedef struct {
    int train, val, test, others;
} StreamNames;
StreamNames stream_names(const char *const *paths, int count);

/* A stream over text in memory, which must outlive it; messages call it `name`. */
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

/* The vocabulary in nanoGPT's meta.pkl beside raw token files (meta_pickle.h); 0: a file has none, or they differ. */
int stream_vocab_beside(const Stream *stream);

/* An id >= vocab in the stream is fatal (EXIT_INPUT), now: file, position, id, vocabulary. Reads all of its
 * files, if nothing has yet (shard_scan.h). From then on such an id is fatal when it is served, too: files
 * may change. */
void stream_set_vocab(Stream *stream, int vocab);

/* The largest id in the stream's files. Reads them all, if nothing has yet. */
uint64_t stream_largest(const Stream *stream);

/* Tokens first .. first+count to out. first + count <= stream_length. */
void stream_read(const Stream *stream, uint64_t first, size_t count, int32_t *out);

/* A 64-bit hash of the stream's content: each file's kind and all of its tokens, not its name. Ranks
 * compare it, and a resumed run. Reads all files, if nothing has yet. */
uint64_t stream_identity(const Stream *stream);

#endif
