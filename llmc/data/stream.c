/* stream.c: several files as one stream of tokens. A stream is a range of the tokens of a list of files; slices of it
 * share the files, which are closed with the last of them. To find a token's file, the ends of all files are
 * searched by bisection. One pass over all files (shard_scan.h) gives their checksums and their largest token. */
#include "stream.h"

#include "../base/activity.h"
#include "../base/error.h"
#include "../base/memory.h"
#include "../base/rng.h"
#include "meta_pickle.h"
#include "paths.h"
#include "shard_scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a stream and its slices share. */
typedef struct {
    Shard *shards;
    uint64_t *ends; // ends[i]: tokens in shards 0 .. i
    ShardScan *scans; // NULL: not scanned yet
    int count;
    PathList paths; // owns the shards' names, unless they are in memory
    void *memory;   // of tokens that lie there, or NULL
    char *name;
    int users; // streams
} Shards;

struct Stream {
    Shards *shared;
    uint64_t first, count; // its range of all tokens
    uint32_t limit;        // token ids are below
};

static const uint32_t any_id =
    (uint32_t)INT32_MAX + 1; // a limit that admits what an int32 can hold

// ---- opening ----------------------------------------------------------------------------------

/* A list of files that are not opened yet. */
static Shards *shards_new(int count, char *name) {
    Shards *shared = memory_new(1, sizeof *shared, "a stream");
    shared->shards = memory_new((size_t)count, sizeof *shared->shards, "data files");
    shared->ends = memory_new((size_t)count, sizeof *shared->ends, "data files");
    shared->count = count;
    shared->name = name;
    return shared;
}

/* A new stream over a range of shared tokens. */
static Stream *stream_new(Shards *shared, uint64_t first, uint64_t count, uint32_t limit) {
    Stream *stream = memory_new(1, sizeof *stream, "a stream");
    *stream = (Stream){shared, first, count, limit};
    shared->users++;
    return stream;
}

/* "a.bin", "10 files in data/", "12 files in data/ and 2 other places". */
static char *describe(const PathList *list, const char *const *paths, int count) {
    char text[512];
    int length = list->count == 1
                     ? snprintf(text, sizeof text, "%s", list->files[0])
                     : snprintf(text, sizeof text, "%d files in %s", list->count, paths[0]);
    if (list->count > 1 && count > 1 && length < (int)sizeof text)
        snprintf(text + length, sizeof text - (size_t)length, " and %d other place%s", count - 1,
                 count > 2 ? "s" : "");
    return memory_string(text);
}

Stream *stream_open(const char *const *paths, int count, StreamPart part) {
    return stream_open_as(paths, count, part, DATA_AUTO);
}

Stream *stream_open_as(const char *const *paths, int count, StreamPart part, DataType type) {
    PathList list = paths_expand(paths, count, part);
    Shards *shared = shards_new(list.count, describe(&list, paths, count));
    shared->paths = list;
    uint64_t tokens = 0;
    for (int i = 0; i < list.count; i++) {
        Shard *shard = &shared->shards[i], *first = &shared->shards[0];
        *shard = shard_open(list.files[i], type);
        // Bytes and ids must not be mixed in one stream: the same number would mean different text.
        if ((shard->type == TOKEN_BYTE) != (first->type == TOKEN_BYTE))
            fatal(EXIT_INPUT,
                  "%s: kind is %s, but %s is %s, and a stream is all text or all tokens; name the "
                  "files of one kind",
                  shard->name, shard->kind, first->name, first->kind);
        // Files of 100, 150 and 50 tokens have the ends 100, 250 and 300.
        shared->ends[i] = tokens += shard->tokens;
    }
    return stream_new(shared, 0, tokens, any_id);
}

StreamNames stream_names(const char *const *paths, int count) { return paths_names(paths, count); }

Stream *stream_of_text(const unsigned char *text, size_t bytes, const char *name) {
    Shards *shared = shards_new(1, memory_string(name));
    shared->shards[0] = shard_of_text(text, bytes, shared->name);
    shared->ends[0] = bytes;
    return stream_new(shared, 0, bytes, any_id);
}

Stream *stream_of_tokens(unsigned char *tokens, int width, uint64_t count, const char *name) {
    Shards *shared = shards_new(1, memory_string(name));
    shared->memory = tokens;
    shared->shards[0] = shard_of_tokens(tokens, width == 2 ? TOKEN_U16 : TOKEN_U32, count, shared->name);
    shared->ends[0] = count;
    return stream_new(shared, 0, count, any_id);
}

const unsigned char *stream_text(const Stream *stream, int i, size_t *bytes) {
    const Shard *shard = &stream->shared->shards[i];
    *bytes = (size_t)shard->tokens;
    return shard->file ? file_at(shard->file, 0, *bytes) : shard->memory;
}

/* The range must be within the stream: only an error in this program could ask for more. */
static void require_inside(const Stream *stream, uint64_t first, uint64_t count) {
    // The second comparison subtracts, because first + count could overflow.
    if (first <= stream->count && count <= stream->count - first) return;
    fatal(EXIT_RUNTIME,
          "%s: %llu tokens from %llu were asked for, but it has %llu: a fault of the program",
          stream->shared->name, (unsigned long long)count, (unsigned long long)first,
          (unsigned long long)stream->count);
}

Stream *stream_slice(const Stream *stream, uint64_t first, uint64_t count) {
    require_inside(stream, first, count);
    return stream_new(stream->shared, stream->first + first, count, stream->limit);
}

void stream_close(Stream *stream) {
    if (!stream) return;
    Shards *shared = stream->shared;
    free(stream);
    // Slices share the files: only the last of them closes the files.
    if (--shared->users > 0) return;
    for (int i = 0; i < shared->count; i++) shard_close(&shared->shards[i]);
    paths_free(&shared->paths);
    free(shared->shards);
    free(shared->ends);
    free(shared->scans);
    free(shared->memory);
    free(shared->name);
    free(shared);
}

// ---- what it is -------------------------------------------------------------------------------

uint64_t stream_length(const Stream *stream) { return stream->count; }

bool stream_is_bytes(const Stream *stream) { return stream->shared->shards[0].type == TOKEN_BYTE; }

int stream_files(const Stream *stream) { return stream->shared->count; }

const char *stream_name(const Stream *stream) { return stream->shared->name; }

/* The vocabulary in the meta.pkl beside a file, if the file has no header. */
static int vocab_beside(const Shard *shard) {
    // nanoGPT's files are raw uint16. A header, or another type, means that meta.pkl does not describe this file.
    if (shard->type != TOKEN_U16 || shard->offset > 0) return 0;
    const char *slash = strrchr(shard->name, '/');
    size_t folder = slash ? (size_t)(slash + 1 - shard->name) : 0;
    char *path = memory_new(folder + sizeof "meta.pkl", 1, "a file name");
    memcpy(path, shard->name, folder);
    strcpy(path + folder, "meta.pkl");
    int vocab = meta_pickle_vocab(path);
    free(path);
    return vocab;
}

int stream_vocab_beside(const Stream *stream) {
    const Shards *shared = stream->shared;
    int vocab = vocab_beside(&shared->shards[0]);
    // The vocabulary counts only where all files agree on it.
    for (int i = 1; i < shared->count; i++)
        if (vocab_beside(&shared->shards[i]) != vocab) return 0;
    return vocab;
}

/* The result of one pass over file i; the pass is made once. */
static const ShardScan *scan_of(const Stream *stream, int i) {
    Shards *shared = stream->shared;
    // The result is kept, for slices too: the largest id, the vocabulary's check and the identity all need it.
    if (!shared->scans) {
        ShardScan *scans = memory_new((size_t)shared->count, sizeof *scans, "data files");
        for (int k = 0; k < shared->count; k++) scans[k] = shard_scan(&shared->shards[k]);
        shared->scans = scans;
    }
    return &shared->scans[i];
}

uint64_t stream_largest(const Stream *stream) {
    uint64_t largest = 0;
    for (int i = 0; i < stream->shared->count; i++)
        if (scan_of(stream, i)->largest > largest) largest = scan_of(stream, i)->largest;
    return largest;
}

void stream_set_vocab(Stream *stream, int vocab) {
    enum { PART = 1 << 14 };
    stream->limit = (uint32_t)vocab;
    // The scan is of whole files, so the id may lie outside of this slice. Reading the slice itself decides it, and
    // names the first such token.
    if (stream_largest(stream) < stream->limit) return;
    int32_t *tokens = memory_new(PART, sizeof *tokens, "tokens"); // the scan reports the first such id
    for (uint64_t first = 0; first < stream->count; first += PART) {
        uint64_t left = stream->count - first;
        stream_read(stream, first, left < PART ? (size_t)left : PART, tokens);
        activity_tick();
    }
    free(tokens); // it is in another slice
}

uint64_t stream_identity(const Stream *stream) {
    const Shards *shared = stream->shared;
    // the range, then for each file its type, its length and the checksum of all its tokens
    uint64_t hash = hash_add(hash_add(0, stream->first), stream->count);
    for (int i = 0; i < shared->count; i++) {
        const Shard *shard = &shared->shards[i];
        hash = hash_add(hash_add(hash, (uint64_t)shard->type), shard->tokens);
        hash = hash_add(hash, scan_of(stream, i)->checksum);
    }
    return hash;
}

// ---- tokens -----------------------------------------------------------------------------------

/* The file that holds token `at` of all: the first whose end lies beyond it. */
static int file_of(const Shards *shared, uint64_t at) {
    // A file without tokens ends where the one before it ends, so the search never stops at it.
    int low = 0, high = shared->count - 1;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (shared->ends[middle] > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void stream_read(const Stream *stream, uint64_t first, size_t count, int32_t *out) {
    require_inside(stream, first, count);
    const Shards *shared = stream->shared;
    uint64_t at = stream->first + first;
    // from the file that holds the first token, through as many as the range touches
    for (int i = count ? file_of(shared, at) : 0; count > 0; i++) {
        const Shard *shard = &shared->shards[i];
        // ends[i] - tokens: how many tokens lie before this file.
        uint64_t offset = at - (shared->ends[i] - shard->tokens), left = shard->tokens - offset;
        size_t part = count < left ? count : (size_t)left;
        shard_read(shard, offset, part, stream->limit, out);
        out += part, at += part, count -= part;
    }
}
