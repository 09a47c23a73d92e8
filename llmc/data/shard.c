/* shard.c: see shard.h. Layouts: an llm.c token shard is 256 int32 (magic, version, count) and
 * uint16 tokens, or uint32 tokens with another magic and version (llm.c, dev/data/data_common.py); .npy: npy.h;
 * raw .bin: uint16 without header (nanoGPT). */
#include "shard.h"

#include "../base/arithmetic.h"
#include "../base/error.h"
#include "../files/file_kind.h"
#include "npy.h"
#include "raw_tokens.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

enum { // of an llm.c token shard
    HEADER = SHARD_HEADER,
    MAGIC = 20240520,
    VERSION = 1,
    WIDE_MAGIC = 20240801, // with uint32 tokens: llm.c's for Llama-3
    WIDE_VERSION = 7,
};

static const unsigned token_bytes[] = {
    [TOKEN_BYTE] = 1, [TOKEN_U16] = 2, [TOKEN_I32] = 4, [TOKEN_U32] = 4, [TOKEN_I64] = 8};

/* What --data-type calls the types, and what they are. */
static const struct {
    TokenType type;
    const char *name, *kind;
} raw_types[] = {
    [DATA_UINT8] = {TOKEN_BYTE, "uint8", "raw bytes"},
    [DATA_UINT16] = {TOKEN_U16, "uint16", "raw uint16 tokens"},
    [DATA_INT32] = {TOKEN_I32, "int32", "raw int32 tokens"},
    [DATA_UINT32] = {TOKEN_U32, "uint32", "raw uint32 tokens"},
    [DATA_INT64] = {TOKEN_I64, "int64", "raw int64 tokens"},
};

// ---- what the file is not ---------------------------------------------------------------------

/* Ends the program where the first bytes are those of a known format of another kind. */
static void refuse_foreign(const Shard *shard) {
    FileKind kind = file_kind(shard->file);
    if (kind.what)
        fatal(EXIT_INPUT, "%s: is %s, but tokens or text are expected; %s", shard->name, kind.what, kind.data);
}

/* A .bin or .npy file must not be text, least of all an error page that a download left. */
static void refuse_text(const Shard *shard) {
    if (!file_starts_as_text(shard->file)) return;
    if (file_is_markup(shard->file))
        fatal(EXIT_INPUT,
              "%s: is an HTML page, but tokens are expected: a failed download? Fetch it again",
              shard->name);
    fatal(EXIT_INPUT,
          "%s: is text, but tokens are expected; to train on its bytes rename it to .txt",
          shard->name);
}

// ---- what the file is -------------------------------------------------------------------------

/* Whether a name has this ending, in any case. */
static bool ends_in(const char *name, const char *ending) {
    size_t length = strlen(name), end = strlen(ending);
    return length >= end && strcasecmp(name + length - end, ending) == 0;
}

void shard_header(unsigned char header[SHARD_HEADER], TokenType type, uint32_t tokens) {
    // 256 int32: magic, version, count, then zeros. The bytes are written one by one, little-endian on every machine.
    uint32_t entries[] = {type == TOKEN_U32 ? WIDE_MAGIC : MAGIC, type == TOKEN_U32 ? WIDE_VERSION : VERSION, tokens};
    memset(header, 0, HEADER);
    for (size_t i = 0; i < sizeof entries; i++) header[i] = (unsigned char)(entries[i / 4] >> 8 * (i % 4));
}

/* An llm.c token shard: its header must agree with its size. wide: the variant with uint32 tokens. */
static void describe_llmc(Shard *shard, bool wide) {
    const unsigned char *header = file_at(shard->file, 0, HEADER);
    // Bytes 0-3: magic; 4-7: version; 8-11: count. Tokens begin at byte 1024.
    int32_t version = (int32_t)load_u32(header + 4), count = (int32_t)load_u32(header + 8);
    int32_t expected = wide ? WIDE_VERSION : VERSION;
    if (version != expected)
        fatal(EXIT_INPUT, "%s: version (header entry 1) is %" PRId32 ", but %" PRId32 " is expected",
              shard->name, version, expected);
    if (count < 0)
        fatal(EXIT_INPUT,
              "%s: token count (header entry 2) is %" PRId32 ", but 0 or more is expected",
              shard->name, count);
    shard->kind = wide ? "llm.c token shard (uint32)" : "llm.c token shard";
    shard->type = wide ? TOKEN_U32 : TOKEN_U16;
    shard->offset = HEADER;
    shard->tokens = (uint64_t)count;
}

/* Tokens without a header: the type is known from --data-type, or is uint16. */
static void describe_raw(Shard *shard, DataType type) {
    // Without a header only the size can show that a file was cut within a token.
    size_t size = file_size(shard->file), width = token_bytes[raw_types[type].type];
    if (size % width)
        fatal(EXIT_INPUT, "%s: size is %zu bytes, but raw %s tokens take a multiple of %zu: is it cut?",
              shard->name, size, raw_types[type].name, width);
    shard->kind = raw_types[type].kind;
    shard->type = raw_types[type].type;
    shard->tokens = size / width;
}

/* A .bin file whose kind is given neither by a header nor by --data-type. */
static void describe_bin(Shard *shard) {
    refuse_text(shard);
    raw_tokens_check(shard->file);
    describe_raw(shard, DATA_UINT16);
}

/* A header gives the file's type; --data-type must not contradict it. */
static void check_type(const Shard *shard, DataType type) {
    if (type != DATA_AUTO && raw_types[type].type != shard->type)
        fatal(EXIT_INPUT, "%s: --data-type is %s, but the header of this %s has another type; leave it out",
              shard->name, raw_types[type].name, shard->kind);
}

/* Everything else is text, if it looks like text. */
static void describe_text(Shard *shard) {
    size_t size = file_size(shard->file);
    if (ends_in(shard->name, ".npy")) {
        refuse_text(shard);
        fatal(EXIT_INPUT,
              "%s: does not start with \\x93NUMPY, as a .npy file must; fetch or write it again",
              shard->name);
    }
    // text has no zero bytes; its beginning is enough to decide
    size_t head = size_min(size, 65536);
    const unsigned char *bytes = file_at(shard->file, 0, head), *nul = memchr(bytes, 0, head);
    if (nul)
        fatal(EXIT_INPUT,
              "%s: byte %zu is 0, so this is not text; token files are llm.c shards, .npy, or "
              "raw uint16 named .bin",
              shard->name, (size_t)(nul - bytes));
    shard->kind = "text";
    shard->type = TOKEN_BYTE;
    shard->tokens = size;
}

/* The file must end where its last token does. */
static void check_size(const Shard *shard) {
    // A division: the product of a count and a width could overflow where a damaged header has a very large count.
    uint64_t body = file_size(shard->file) - shard->offset, width = token_bytes[shard->type];
    if (body % width == 0 && body / width == shard->tokens) return;
    bool cut = body / width < shard->tokens;
    fatal(EXIT_INPUT,
          "%s: %s: %" PRIu64 " bytes follow the header, but %" PRIu64 " tokens of %" PRIu64
          " bytes are expected: %s; fetch or write it again",
          shard->name, shard->kind, body, shard->tokens, width,
          cut ? "the file is cut" : "the file is too long");
}

Shard shard_open(const char *path, DataType type) {
    Shard shard = {.name = path, .file = file_open(path)};
    size_t size = file_size(shard.file);
    if (size == 0)
        fatal(EXIT_INPUT,
              "%s: is empty (0 bytes), but tokens or text are expected; fetch or write it again",
              path);
    // The first bytes decide what a file is; its name decides only between raw tokens and text.
    // The magic of an llm.c shard is its first int32. A file of less than 4 bytes has none.
    uint32_t number = size >= 4 ? load_u32(file_at(shard.file, 0, 4)) : 0;
    if (number == MAGIC || number == WIDE_MAGIC) {
        describe_llmc(&shard, number == WIDE_MAGIC);
        check_type(&shard, type);
    } else if (npy_is(shard.file)) {
        npy_describe(&shard);
        check_type(&shard, type);
    } else if (type != DATA_AUTO) {
        describe_raw(&shard, type);
    } else {
        // Any bytes could be raw tokens. So formats that are known to be something else are refused before that is
        // assumed.
        refuse_foreign(&shard);
        ends_in(path, ".bin") ? describe_bin(&shard) : describe_text(&shard);
    }
    check_size(&shard);
    return shard;
}

Shard shard_of_text(const unsigned char *text, size_t bytes, const char *name) {
    return (Shard){.name = name, .kind = "text", .memory = text, .type = TOKEN_BYTE, .tokens = bytes};
}

Shard shard_of_tokens(const unsigned char *tokens, TokenType type, uint64_t count, const char *name) {
    return (Shard){.name = name, .kind = "tokens", .memory = tokens, .type = type, .tokens = count};
}

void shard_close(Shard *shard) { file_close(shard->file); }

unsigned shard_token_bytes(const Shard *shard) { return token_bytes[shard->type]; }

// ---- tokens -----------------------------------------------------------------------------------

/* Token i of those at `from`, as it is written. */
static int64_t token_at(TokenType type, const unsigned char *from, size_t i) {
    switch (type) {
    case TOKEN_U16:
        return load_u16(from + 2 * i);
    case TOKEN_I32:
        return (int32_t)load_u32(from + 4 * i);
    case TOKEN_U32:
        return load_u32(from + 4 * i);
    case TOKEN_I64:
        return (int64_t)load_u64(from + 8 * i);
    case TOKEN_BYTE:
        break;
    }
    return from[i];
}

/* Ends the program with the first of these tokens that is beyond the limit. */
static _Noreturn void refuse_token(const Shard *shard, const unsigned char *from, uint64_t first,
                                   uint32_t limit) {
    size_t i = 0;
    int64_t id;
    // The loop ends: the caller has found such an id among these tokens.
    while ((id = token_at(shard->type, from, i)) >= 0 && id < limit) i++;
    fatal(EXIT_INPUT,
          "%s: token %" PRIu64 " is %" PRId64 ", but ids 0 to %" PRIu32 " are expected (the "
          "vocabulary): another tokenizer's data? Choose a larger --vocab or other data",
          shard->name, first + i, id, limit - 1);
}

void shard_read(const Shard *shard, uint64_t first, size_t count, uint32_t limit, int32_t *out) {
    size_t width = token_bytes[shard->type];
    const unsigned char *from =
        shard->file ? file_at(shard->file, shard->offset + first * width, count * width)
                    : shard->memory + first * width;
    // convert first, compare after: a loop without a branch is a vector loop
    bool good = true;
    switch (shard->type) {
    case TOKEN_BYTE:
        for (size_t i = 0; i < count; i++) out[i] = from[i];
        break;
    case TOKEN_U16:
        for (size_t i = 0; i < count; i++) out[i] = load_u16(from + 2 * i);
        break;
    case TOKEN_I32:
    case TOKEN_U32:
        // A negative id is 2^31 or more as uint32; the comparison after the switch refuses it.
        for (size_t i = 0; i < count; i++) out[i] = (int32_t)load_u32(from + 4 * i);
        break;
    case TOKEN_I64:
        for (size_t i = 0; i < count; i++) {
            // 64-bit ids are compared before they are cut: 2^32 + 5 would become 5.
            uint64_t id = load_u64(from + 8 * i);
            good &= id < limit;
            out[i] = (int32_t)(uint32_t)id;
        }
        break;
    }
    for (size_t i = 0; i < count; i++) good &= (uint32_t)out[i] < limit;
    if (!good) refuse_token(shard, from, first, limit);
}
