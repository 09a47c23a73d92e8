/* shard.c: see shard.h. Layouts: an llm.c token shard is 256 int32 (magic, version, count) and
 * uint16 tokens (llm.c, dev/data/data_common.py); .npy: npy.h; raw .bin: uint16 without header
 * (nanoGPT). */
#include "shard.h"

#include "../base/error.h"
#include "npy.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

enum { HEADER = 1024, MAGIC = 20240520, VERSION = 1 }; // of an llm.c token shard

static const unsigned token_bytes[] = {
    [TOKEN_BYTE] = 1, [TOKEN_U16] = 2, [TOKEN_I32] = 4, [TOKEN_U32] = 4};

// ---- what the file is not ---------------------------------------------------------------------

/* Other files that people have near their data, and how those start. */
static const struct {
    size_t offset, length;
    const char *start, *what, *remedy;
} foreign[] = {
    {0, 3, "\x1f\x8b\x08", "gzip-compressed", "unpack it (gunzip)"},
    {0, 4, "PK\3\4", "a zip archive (PyTorch's .pt and .bin are such)",
     "unpack it, or give token data"},
    {0, 4, "\x28\xb5\x2f\xfd", "zstd-compressed", "unpack it (unzstd)"},
    {0, 6, "\3757zXZ\0", "xz-compressed", "unpack it (unxz)"},
    {4, 6, "1AY&SY", "bzip2-compressed", "unpack it (bunzip2)"},
    {0, 5, "PAR1\x15", "a Parquet table", "tokenize its text first"},
    {0, 5, "%PDF-", "a PDF", "extract its text first"},
    {0, 8, "\x80\2\x8a\x0a\x6c\xfc\x9c\x46", "a PyTorch pickle", "give token data"},
    {0, 4, "\177ELF", "a program", "give token data or text"},
    {0, 2, "\xff\xfe", "UTF-16 text", "convert it to UTF-8 (iconv)"},
    {0, 2, "\xfe\xff", "UTF-16 text", "convert it to UTF-8 (iconv)"},
    {0, 7, "\x93NUMPY", "an .npy file", "write it again: its start is damaged"},
    {4, 6, "\0\0\0\0{\"", "a safetensors file (weights)", "give token data"},
    {0, 23, "version https://git-lfs", "a Git LFS pointer, not the data",
     "fetch it (git lfs pull)"},
};

static void refuse_foreign(const Shard *shard) {
    size_t size = file_size(shard->file);
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        size_t offset = foreign[i].offset, length = foreign[i].length;
        if (size >= offset + length &&
            memcmp(file_at(shard->file, offset, length), foreign[i].start, length) == 0)
            fatal(EXIT_INPUT, "%s: is %s, but tokens or text are expected; %s", shard->name,
                  foreign[i].what, foreign[i].remedy);
    }
}

/* Other llm.c files, by magic number. Any other date of 2024 is one that we do not know: as two
 * uint16 it starts with an id that GPT-2 does not have: no raw token file is refused by mistake. */
static void refuse_other_llmc(const Shard *shard, uint32_t number) {
    const char *what = number == 20240326   ? "a GPT-2 model"
                       : number == 20240327 ? "a GPT-2 debug state"
                       : number == 20240328 ? "a tokenizer"
                       : number == 20240522 ? "an evaluation set (HellaSwag, MMLU)"
                       : number == 20240527 ? "an optimizer state"
                       : number == 20240801 ? "a shard of Llama-3 tokens"
                       : number == 20240803 ? "a Llama-3 model"
                       : number > 20240000 && number < 20250000 ? "of an unknown kind"
                                                                : NULL;
    if (what)
        fatal(EXIT_INPUT,
              "%s: magic is %" PRIu32 " (an llm.c file, %s), but %d (GPT-2 token shard) is "
              "expected; give token data",
              shard->name, number, what, MAGIC);
}

/* Whether the file's first bytes are all ASCII letters, signs and blanks. For 16 tokens or more
 * that is no chance (2e-12 for random ids): a file that should hold tokens is then something else.
 * *first is the first that is not blank. */
static bool looks_like_text(const Shard *shard, unsigned char *first) {
    size_t size = file_size(shard->file), head = size < 64 ? size : 64;
    const unsigned char *bytes = file_at(shard->file, 0, head);
    *first = ' ';
    for (size_t i = 0; i < head; i++) {
        bool blank = bytes[i] == ' ' || bytes[i] == '\t' || bytes[i] == '\r' || bytes[i] == '\n';
        if (!blank && (bytes[i] < ' ' || bytes[i] > '~')) return false;
        if (!blank && *first == ' ') *first = bytes[i];
    }
    return size >= 32;
}

/* A .bin or .npy file must not be text, least of all an error page that a download left. */
static void refuse_text(const Shard *shard) {
    unsigned char first;
    if (!looks_like_text(shard, &first)) return;
    if (first == '<')
        fatal(EXIT_INPUT,
              "%s: is an HTML page, but tokens are expected: a failed download? Fetch it again",
              shard->name);
    fatal(EXIT_INPUT,
          "%s: is text, but tokens are expected; to train on its bytes rename it to .txt",
          shard->name);
}

// ---- what the file is -------------------------------------------------------------------------

static bool ends_in(const char *name, const char *ending) {
    size_t length = strlen(name), end = strlen(ending);
    return length >= end && strcasecmp(name + length - end, ending) == 0;
}

static void describe_llmc(Shard *shard) {
    const unsigned char *header = file_at(shard->file, 0, HEADER);
    int32_t version = (int32_t)load_u32(header + 4), count = (int32_t)load_u32(header + 8);
    if (version != VERSION)
        fatal(EXIT_INPUT, "%s: version (header entry 1) is %" PRId32 ", but %d is expected",
              shard->name, version, VERSION);
    if (count < 0)
        fatal(EXIT_INPUT,
              "%s: token count (header entry 2) is %" PRId32 ", but 0 or more is expected",
              shard->name, count);
    shard->kind = "llm.c token shard";
    shard->type = TOKEN_U16;
    shard->offset = HEADER;
    shard->tokens = (uint64_t)count;
}

static void describe_raw(Shard *shard) {
    size_t size = file_size(shard->file);
    refuse_text(shard);
    if (size % 2)
        fatal(EXIT_INPUT,
              "%s: size is %zu bytes, but raw uint16 tokens take an even number: is it cut?",
              shard->name, size);
    shard->kind = "raw uint16 tokens";
    shard->type = TOKEN_U16;
    shard->tokens = size / 2;
}

static void describe_text(Shard *shard) {
    size_t size = file_size(shard->file);
    if (ends_in(shard->name, ".npy")) {
        refuse_text(shard);
        fatal(EXIT_INPUT,
              "%s: does not start with \\x93NUMPY, as a .npy file must; fetch or write it again",
              shard->name);
    }
    size_t head = size < 65536 ? size : 65536;
    const unsigned char *bytes = file_at(shard->file, 0, head), *nul = memchr(bytes, 0, head);
    if (nul)
        fatal(EXIT_INPUT,
              "%s: byte %zu is 0, so this is no text; token files are llm.c shards, .npy, or "
              "raw uint16 named .bin",
              shard->name, (size_t)(nul - bytes));
    shard->kind = "text";
    shard->type = TOKEN_BYTE;
    shard->tokens = size;
}

/* The file must end where its last token does. */
static void check_size(const Shard *shard) {
    uint64_t body = file_size(shard->file) - shard->offset, width = token_bytes[shard->type];
    if (body % width == 0 && body / width == shard->tokens) return;
    bool cut = body / width < shard->tokens;
    fatal(EXIT_INPUT,
          "%s: %s: %" PRIu64 " bytes follow the header, but %" PRIu64 " tokens of %" PRIu64
          " bytes are expected: %s; fetch or write it again",
          shard->name, shard->kind, body, shard->tokens, width,
          cut ? "the file is cut" : "the file is too long");
}

Shard shard_open(const char *path) {
    Shard shard = {.name = path, .file = file_open(path)};
    size_t size = file_size(shard.file);
    if (size == 0)
        fatal(EXIT_INPUT,
              "%s: is empty (0 bytes), but tokens or text are expected; fetch or write it again",
              path);
    uint32_t number = size >= 4 ? load_u32(file_at(shard.file, 0, 4)) : 0;
    if (number == MAGIC) {
        describe_llmc(&shard);
    } else if (npy_is(shard.file)) {
        npy_describe(&shard);
    } else {
        refuse_other_llmc(&shard, number);
        refuse_foreign(&shard);
        ends_in(path, ".bin") ? describe_raw(&shard) : describe_text(&shard);
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

// ---- tokens -----------------------------------------------------------------------------------

/* Ends the program for the first of these tokens that is none. */
static _Noreturn void refuse_token(const Shard *shard, uint64_t first, uint32_t limit,
                                   const int32_t *out) {
    size_t i = 0;
    while ((uint32_t)out[i] < limit) i++;
    int64_t id = shard->type == TOKEN_I32 ? out[i] : (int64_t)(uint32_t)out[i];
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
    switch (shard->type) {
    case TOKEN_BYTE:
        for (size_t i = 0; i < count; i++) out[i] = from[i];
        break;
    case TOKEN_U16:
        for (size_t i = 0; i < count; i++) out[i] = load_u16(from + 2 * i);
        break;
    case TOKEN_I32:
    case TOKEN_U32:
        for (size_t i = 0; i < count; i++) out[i] = (int32_t)load_u32(from + 4 * i);
        break;
    }
    bool good = true;
    for (size_t i = 0; i < count; i++) good &= (uint32_t)out[i] < limit;
    if (!good) refuse_token(shard, first, limit, out);
}
