/* shard.h: one data file (or text in memory) as an array of tokens: what kind it is, and its
 * tokens.
 *
 * The kind is recognised by content: an llm.c token shard, a NumPy .npy array, raw uint16 (only for names
 * ending in .bin), or else plain text. A file whose name ends in .bin or .npy must hold tokens: text is refused.
 * Sizes and counts are checked when a file is opened; token ids by a scan of all (shard_scan.h) and once more when
 * they are read. With a DataType other than auto a file without a header is taken for an array of that type,
 * whatever it looks like. Not here: many files as one stream (stream.h). */
#ifndef LLMC_SHARD_H
#define LLMC_SHARD_H

#include "../files/input.h"
#include "stream.h"

#include <stdbool.h>

typedef enum { TOKEN_BYTE, TOKEN_U16, TOKEN_I32, TOKEN_U32, TOKEN_I64 } TokenType;

typedef struct {
    const char *name;          // for messages
    const char *kind;          // "llm.c token shard", ...
    File *file;                // or NULL, and
    const unsigned char *memory; // the tokens are these bytes
    TokenType type;
    size_t offset; // of the first token in the file, bytes
    uint64_t tokens;
} Shard;

/* The header of an llm.c token shard of TOKEN_U16 or TOKEN_U32. */
enum { SHARD_HEADER = 1024 };
void shard_header(unsigned char header[SHARD_HEADER], TokenType type, uint32_t tokens);

/* Opens a data file; the path must stay valid until shard_close. Fatal (EXIT_INPUT) unless it is
 * exactly what it claims to be. */
Shard shard_open(const char *path, DataType type);

/* Text in memory, which must stay valid; and tokens (little-endian), likewise. */
Shard shard_of_text(const unsigned char *text, size_t bytes, const char *name);
Shard shard_of_tokens(const unsigned char *tokens, TokenType type, uint64_t count, const char *name);

void shard_close(Shard *shard);

/* Bytes of one token. */
unsigned shard_token_bytes(const Shard *shard);

/* Tokens first .. first+count to out. Fatal (EXIT_INPUT) for an id >= limit (or negative), which
 * names the file, the token's position in it, and the id. */
void shard_read(const Shard *shard, uint64_t first, size_t count, uint32_t limit, int32_t *out);

#endif
