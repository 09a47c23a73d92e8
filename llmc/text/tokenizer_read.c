/* tokenizer_read.c: reads a tokenizer's files: which files a path means, and two of the formats, vocab.json with
 * merges.txt, and llm.c's gpt2_tokenizer.bin (256 int32: magic 20240328, version, vocabulary, end of text; then for
 * each token a byte, its length, and its bytes). The third is in tokenizer_json.c. */
#include "vocabulary.h"

#include "../base/error.h"
#include "../base/memory.h"
#include "../files/input.h"
#include "../files/path.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_TOKENS = 1 << 24, LLMC_HEADER = 1024, LLMC_MAGIC = 20240328 };

// ---------------------------------------------------------------------------------------------
// vocab.json and merges.txt

/* One merge a line; empty lines, and a first line with #version, are skipped. */
static void read_merges(Vocabulary *v, const char *path) {
    File *file = file_open(path);
    size_t size = file_size(file);
    // A copy, since the lines are cut by zeros, and the file's memory cannot be written.
    char *text = memory_new(size + 1, 1, "merges"), *rest = text, where[48];
    memcpy(text, file_at(file, 0, size), size);
    file_close(file);
    const char *vocabulary = v->file;
    // Faults in the merges are faults of this file, not of the vocabulary's.
    v->file = path;
    if (strlen(text) < size) fatal(EXIT_INPUT, "%s: byte %zu is 0, so this is not text", path, strlen(text));
    // a merge a line, in rank order; the first line may be a version; \r\n is taken as \n
    for (int line = 1; *rest; line++) {
        char *end = strchr(rest, '\n'), *next = end ? end + 1 : rest + strlen(rest);
        if (end) *end = '\0';
        // A file written on Windows ends its lines with \r\n.
        if (end > rest && end[-1] == '\r') end[-1] = '\0';
        snprintf(where, sizeof where, "line %d", line);
        if (*rest && !(line == 1 && strncmp(rest, "#version", 8) == 0)) vocabulary_merge(v, rest, where);
        rest = next;
    }
    free(text);
    v->file = vocabulary;
}

/* vocab.json and merges.txt, which must fit each other. */
static void read_pair(Tokenizer *t, const char *vocab, const char *merges) {
    Vocabulary v = {.file = vocab, .tokenizer = t};
    const Json *json = vocabulary_json(vocab);
    vocabulary_add_all(&v, json);
    // The tokens first: each merge names three of them.
    read_merges(&v, merges);
    vocabulary_finish(&v);
    json_free(json);
    if (t->merge_count == 0) fatal(EXIT_INPUT, "%s: holds no merge", merges);
}

// ---------------------------------------------------------------------------------------------
// gpt2_tokenizer.bin

/* llm.c's gpt2_tokenizer.bin: it has no merges, so it can only decode. */
static void read_llmc(Tokenizer *t, const char *path) {
    File *file = file_open(path);
    size_t size = file_size(file), at = LLMC_HEADER;
    if (size < LLMC_HEADER) fatal(EXIT_INPUT, "%s: has %zu bytes, less than an llm.c header's 1024", path, size);
    const unsigned char *bytes = file_at(file, 0, size);
    // the header: each number must make sense before memory is taken for it
    uint32_t version = load_u32(bytes + 4), vocab = load_u32(bytes + 8);
    if (size - LLMC_HEADER < vocab)
        fatal(EXIT_INPUT,
              "%s: %zu bytes cannot hold %" PRIu32 " tokens (header entry 2): the file is cut; fetch it again", path,
              size - LLMC_HEADER, vocab);
    if (version != 1 && version != 2)
        fatal(EXIT_INPUT, "%s: version (header entry 1) is %" PRIu32 ", but 1 or 2 is expected", path, version);
    if (vocab < 1 || vocab >= MOST_TOKENS)
        fatal(EXIT_INPUT, "%s: vocabulary (header entry 2) is %" PRIu32 ", but 1 to %d are expected", path, vocab,
              MOST_TOKENS - 1);
    t->vocab = (int)vocab;
    // Version 1 does not name the end of text. It is the last token.
    t->end_of_text = version == 2 ? (int32_t)load_u32(bytes + 12) : t->vocab - 1;
    if (t->end_of_text < 0 || t->end_of_text >= t->vocab)
        fatal(EXIT_INPUT, "%s: end of text (header entry 3) is %" PRId32 ", but the vocabulary has ids 0 to %d",
              path, t->end_of_text, t->vocab - 1);
    // then for each token a length and its bytes, which must end exactly where the file ends
    t->text = memory_new(size, 1, "a tokenizer");
    t->starts = memory_new((size_t)vocab + 1, sizeof *t->starts, "a tokenizer");
    for (uint32_t id = 0; id < vocab; id++) {
        // If even the length's byte is missing, the next comparison fails, too.
        size_t length = at < size ? bytes[at++] : SIZE_MAX;
        if (length > size - at)
            fatal(EXIT_INPUT, "%s: ends within token %" PRIu32 " of %" PRIu32 ": the file is cut; fetch it again",
                  path, id, vocab);
        memcpy(t->text + t->starts[id], bytes + at, length);
        t->starts[id + 1] = t->starts[id] + (uint32_t)length;
        at += length;
    }
    if (at != size) fatal(EXIT_INPUT, "%s: %zu bytes follow the last token: the file is too long", path, size - at);
    // without merges it cannot encode: no byte has an id
    for (int b = 0; b < 256; b++) t->byte_ids[b] = -1;
    file_close(file);
}

/* Whether a file begins with its magic number. */
static bool is_llmc(const char *path) {
    File *file = file_open(path);
    bool is = file_size(file) >= 4 && load_u32(file_at(file, 0, 4)) == LLMC_MAGIC;
    file_close(file);
    return is;
}

// ---------------------------------------------------------------------------------------------
// Which files

static const struct {
    const char *vocab, *merges;
} pairs[] = {{"vocab.json", "merges.txt"}, {"encoder.json", "vocab.bpe"}};

enum { PAIRS = sizeof pairs / sizeof *pairs };

/* Whether there is a directory, or something else, of this name. */
static bool exists(const char *path, bool directory) {
    struct stat status;
    return stat(path, &status) == 0 && !S_ISDIR(status.st_mode) == !directory;
}

/* Calls read_pair, or with NULL only looks whether there is something to read. */
static bool read_directory(Tokenizer *t, const char *directory) {
    // GPT-2's two names for the same files: Hugging Face's, and those of OpenAI's release. tokenizer.json is read only
    // where neither pair is whole.
    bool found = false;
    for (int i = 0; i < PAIRS && !found; i++) {
        char *vocab = path_join(directory, pairs[i].vocab), *merges = path_join(directory, pairs[i].merges);
        found = exists(vocab, false) && exists(merges, false);
        if (found && t) read_pair(t, vocab, merges);
        free(vocab), free(merges);
    }
    if (found) return true;
    char *json = path_join(directory, "tokenizer.json");
    found = exists(json, false);
    if (found && t) tokenizer_json_read(t, json);
    free(json);
    return found;
}

bool tokenizer_is_in(const char *directory) { return read_directory(NULL, directory); }

/* One file of a pair: the other one lies beside it. */
static bool read_half(Tokenizer *t, const char *path) {
    // "dir/vocab.json": the name decides which pair it is, and the directory where its other file must be.
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *directory = memory_string(path);
    directory[name - path] = '\0';
    bool done = false;
    for (int i = 0; i < PAIRS && !done; i++) {
        if (strcmp(name, pairs[i].vocab) != 0 && strcmp(name, pairs[i].merges) != 0) continue;
        char *vocab = path_join(slash ? directory : ".", pairs[i].vocab);
        char *merges = path_join(slash ? directory : ".", pairs[i].merges);
        read_pair(t, vocab, merges);
        free(vocab), free(merges);
        done = true;
    }
    free(directory);
    return done;
}

void tokenizer_read(Tokenizer *t, const char *path) {
    if (exists(path, true)) {
        if (!read_directory(t, path))
            fatal(EXIT_INPUT,
                  "%s: holds no tokenizer: tokenizer.json, or vocab.json and merges.txt, or encoder.json and "
                  "vocab.bpe are expected",
                  path);
        return;
    }
    if (!exists(path, false))
        fatal(EXIT_INPUT, "%s: no such tokenizer; there are bytes, gpt2, and files or directories that exist",
              path);
    // The magic number is certain. Then a name that belongs to a pair; any other file must be a tokenizer.json.
    if (is_llmc(path))
        read_llmc(t, path);
    else if (!read_half(t, path))
        tokenizer_json_read(t, path);
}
