/* command_tokenize.c: `train_gpt2 tokenize`: text into token shards, or its ids on standard output; and with
 * --decode shards into text. The work is in data/tokenize.c. */
#define _GNU_SOURCE // clock_gettime
#include "../base/error.h"
#include "../base/memory.h"
#include "../data/paths.h"
#include "../data/tokenize.h"
#include "../files/byte_stream.h"
#include "../log/screen.h"
#include "../settings/option_parse.h"
#include "../train/run_directory.h"
#include "commands.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    const char *tokenizer, *field, *out;
    bool special, ids, decode, overwrite;
    int64_t shard_tokens, val_tokens, threads;
} TokenizeOptions;

#define FIELD(name) offsetof(TokenizeOptions, name)
// clang-format off
static const Option rows[] = {
    {"tokenizer", "NAME", "Text", OPTION_STRING, FIELD(tokenizer), NO_RANGE, NULL, NULL,
     "bytes, gpt2, or tokenizer files or their directory; else gpt2, or with --decode that of the shards"},
    {"field", "NAME", "Text", OPTION_STRING, FIELD(field), NO_RANGE, NULL, NULL,
     "inputs are JSON lines, and this member of each object is a document; else so are .jsonl and .ndjson files, "
     "with the member text"},
    {"special", NULL, "Text", OPTION_SWITCH, FIELD(special), NO_RANGE, "false", "false",
     "<|endoftext|> written in a document is the end-of-text token; else it is text"},
    {"out", "DIR", "Shards", OPTION_STRING, FIELD(out), NO_RANGE, NULL, NULL,
     "where the shards go; the same command again continues where it was interrupted"},
    {"shard-tokens", "N", "Shards", OPTION_INTEGER, FIELD(shard_tokens), COUNT,
     "100M", "100M", "tokens of a shard; a shard is held in memory until it is full"},
    {"val-tokens", "N", "Shards", OPTION_INTEGER, FIELD(val_tokens), INTERVAL, NULL, NULL,
     "the first N tokens are for validation; else the first shard, or a tenth where one shard holds all"},
    {"overwrite", NULL, "Shards", OPTION_SWITCH, FIELD(overwrite), NO_RANGE, "false", "false",
     "remove the shards in DIR and begin again"},
    {"ids", NULL, "Instead of shards", OPTION_SWITCH, FIELD(ids), NO_RANGE, "false", "false",
     "print the ids of the inputs, a document a line, without the end of text"},
    {"decode", NULL, "Instead of shards", OPTION_SWITCH, FIELD(decode), NO_RANGE, "false", "false",
     "inputs are shards: print their text, exactly; the end of text only with --special"},
    {"threads", "N", "Work", OPTION_INTEGER, FIELD(threads), THREADS, NULL, NULL,
     "CPU threads, instead of all cores; does not change the result"},
};
// clang-format on
static const OptionTable table = {
    .rows = rows,
    .count = sizeof rows / sizeof rows[0],
    .operands = "INPUT...",
    .usage =
        "Usage: train_gpt2 tokenize INPUT... --out DIR [--OPTION VALUE]...\n"
        "       train_gpt2 tokenize INPUT... --ids\n"
        "       train_gpt2 tokenize SHARD... --decode\n"
        "\n"
        "Turns text into llm.c token shards: files (a document each), JSON lines (an object each), directories of\n"
        "these (.txt, .jsonl, .ndjson), quoted globs, or - for standard input. An end-of-text token begins each\n"
        "document.\n"
        "Every byte is encoded as it is: CRLF, byte order marks, NUL, and what is not UTF-8; blank lines between\n"
        "JSON objects are skipped; an empty document is one end-of-text token.\n",
};

// ---------------------------------------------------------------------------------------------
// Standard output

/* Ends the program: the reader of the output has ended, or a disk is full. */
_Noreturn static void refuse_output(void) {
    fatal(EXIT_RUNTIME, "cannot write to standard output: %s", strerror(errno));
}

/* Writes to standard output. */
static void put(const void *bytes, size_t count) {
    if (count && fwrite(bytes, 1, count, stdout) != count) refuse_output();
}

/* Flushes the output: after this nothing of it is left in a buffer. */
static void finish_output(void) {
    if (fflush(stdout) != 0) refuse_output();
}

// ---------------------------------------------------------------------------------------------
// --ids

typedef struct {
    bool begun, in_line; // a document; its line has an id
} IdPrinter;

/* --ids: a document a line. */
static void print_ids(void *context, const Segment *segment, const int32_t *ids, size_t count, uint64_t invalid) {
    IdPrinter *p = context;
    char text[16];
    (void)invalid;
    if (segment->begins && p->begun) put("\n", 1);
    if (segment->begins) p->in_line = false;
    p->begun = true;
    for (size_t i = 0; i < count; i++) {
        put(text, (size_t)snprintf(text, sizeof text, p->in_line ? " %d" : "%d", ids[i]));
        p->in_line = true;
    }
}

/* --ids: encodes the inputs to standard output. */
static void ids_of(const TokenizeJob *job) {
    IdPrinter printer = {0};
    Documents *documents = documents_open(job->paths, job->count, job->field, job->tokenizer, job->special);
    encode_documents(documents, job->tokenizer, job->special, job->threads, print_ids, NULL, &printer);
    documents_close(documents);
    if (printer.begun) put("\n", 1);
    finish_output();
}

// ---------------------------------------------------------------------------------------------
// --decode

enum { DECODE = 1 << 16 };

/* Shards that `tokenize` has written, in the order in which it wrote them. */
static int by_number(const void *a, const void *b) {
    return shard_number(*(char *const *)a) - shard_number(*(char *const *)b);
}

/* Prints the text of one shard; the end-of-text token is left out unless --special. */
static void decode_stream(Stream *stream, const Tokenizer *tokenizer, bool special) {
    int32_t *ids = memory_new(DECODE, sizeof *ids, "ids");
    uint64_t length = stream_length(stream);
    stream_set_vocab(stream, tokenizer_vocab(tokenizer));
    // 65,536 ids at a time: a shard may be larger than memory
    for (uint64_t at = 0; at < length; at += DECODE) {
        size_t count = length - at < DECODE ? (size_t)(length - at) : DECODE, bytes;
        stream_read(stream, at, count, ids);
        for (size_t i = 0; i < count; i++) {
            if (!special && ids[i] == tokenizer_end_of_text(tokenizer)) continue;
            const unsigned char *text = tokenizer_bytes(tokenizer, ids[i], &bytes);
            put(text, bytes);
        }
    }
    free(ids);
}

/* --decode: shards in the order of their numbers. */
static void decode(const StringList *inputs, const Tokenizer *tokenizer, bool special) {
    PathList paths = paths_expand(inputs->items, inputs->count, STREAM_ALL);
    // By name, shard_10 would come before shard_9. Files that the user lists one by one keep the user's order.
    bool numbered = true;
    for (int i = 0; i < paths.count; i++) numbered = numbered && shard_number(paths.files[i]) >= 0;
    if (numbered && inputs->count == 1) qsort(paths.files, (size_t)paths.count, sizeof *paths.files, by_number);
    for (int i = 0; i < paths.count; i++) {
        const char *path = paths.files[i];
        Stream *stream = stream_open(&path, 1, STREAM_ALL);
        if (stream_is_bytes(stream))
            fatal(EXIT_INPUT, "%s: is text, but --decode takes token shards; leave --decode out to encode it",
                  path);
        decode_stream(stream, tokenizer, special);
        stream_close(stream);
    }
    finish_output();
    paths_free(&paths);
}

// ---------------------------------------------------------------------------------------------
// Shards

/* Prints the progress, the speed and the time left; once a second on a terminal, else every ten. */
typedef struct {
    uint64_t total, first; // bytes: of all inputs (0: not known), and where this start began
    double start, shown;
} Meter;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Bytes, rate and the time that is left. */
static void show_progress(void *context, uint64_t consumed) {
    Meter *meter = context;
    double time = now(), every = screen_is_terminal() ? 0.2 : 10;
    // A continued run skips what is already in shards: the rate counts only the bytes of this start.
    if (meter->first == UINT64_MAX) meter->first = consumed;
    if (time - meter->shown < every || time <= meter->start) return;
    meter->shown = time;
    double rate = (double)(consumed - meter->first) / (time - meter->start);
    char text[120];
    int used = snprintf(text, sizeof text, "%.1f MB | %.1f MB/s", (double)consumed / 1e6, rate / 1e6);
    if (meter->total && rate > 0) {
        double left = (double)(meter->total - consumed) / rate;
        snprintf(text + used, sizeof text - (size_t)used, " | %.0f%% | ETA %d:%02d:%02d",
                 100 * (double)consumed / (double)meter->total, (int)(left / 3600), (int)(left / 60) % 60,
                 (int)left % 60);
    }
    if (screen_is_terminal())
        screen_status(text);
    else
        screen_print("%s", text);
}

/* Bytes of all inputs; 0 where one is a pipe. */
static uint64_t total_bytes(const TokenizeJob *job) {
    uint64_t total = 0, bytes;
    int64_t modified;
    bool known = true;
    for (int i = 0; i < job->count; i++)
        known &= byte_stream_status(job->paths[i], &bytes, &modified), total += bytes;
    return known ? total : 0;
}

/* The last line: what was made. */
static void print_result(const TokenizeJob *job, const TokenizeResult *result, const char *what) {
    printf("%s: %s%llu tokens of %llu documents in %d shards (%llu for validation), tokenizer %s\n",
           job->plan.directory, what, (unsigned long long)result->tokens, (unsigned long long)result->documents,
           result->shards, (unsigned long long)result->val, tokenizer_name(job->tokenizer));
}

/* Encodes the inputs into a directory of shards, from where an earlier run ended. */
static void make_shards(const TokenizeJob *job, bool overwrite) {
    uint64_t total = total_bytes(job); // of inputs that all exist: checked before anything is written
    // Two commands at once would write the same shards; the second waits, then ends with a message.
    Lock *lock = run_directory_lock(job->plan.directory, true);
    // Removed under the lock, and before the state is read: what follows then begins at the first document.
    if (overwrite) tokenize_remove(job->plan.directory);
    TokenizeState state = tokenize_look(job);
    if (!state.done) {
        screen_open();
        if (state.result.shards > 0)
            screen_print("%s: continues after shard %d, at token %llu", job->plan.directory,
                         state.result.shards - 1, (unsigned long long)state.result.tokens);
        Meter meter = {.total = total, .first = state.result.shards > 0 ? UINT64_MAX : 0, .start = now()};
        meter.shown = meter.start;
        state.result = tokenize_run(job, &state, show_progress, &meter);
        double seconds = now() - meter.start;
        screen_close();
        print_result(job, &state.result, "");
        printf("%.1f s\n", seconds);
        if (state.result.invalid)
            warning("%llu bytes of the text are not UTF-8; each was encoded as it is",
                    (unsigned long long)state.result.invalid);
    } else {
        print_result(job, &state.result, "is finished: ");
    }
    lock_release(lock);
}

int command_tokenize(int argc, char **argv) {
    TokenizeOptions o = {.val_tokens = -1};
    OptionValues values = {.table = &table, .fields = &o};
    option_parse(&values, argc, argv);
    option_fill_in(&values, false);
    const StringList *inputs = &values.operands;
    if (inputs->count == 0) fatal(EXIT_USAGE, "tokenize needs inputs: files, directories, quoted globs, or -");
    if (o.ids && o.decode) fatal(EXIT_USAGE, "--ids and --decode exclude each other; give one of them");
    if (!o.out && !o.ids && !o.decode)
        fatal(EXIT_USAGE, "tokenize needs --out DIR, where the shards go; or --ids or --decode");
    if (o.out && (o.ids || o.decode))
        fatal(EXIT_USAGE, "--out %s: --%s writes to standard output; leave one of them out", o.out,
              o.ids ? "ids" : "decode");
    signal(SIGPIPE, SIG_IGN); // if the reader of the output ends, that is an error with a message

    // Shards record their tokenizer beside them, so --decode needs no name. Texts do not: gpt2 is the default.
    char *known = o.decode && !o.tokenizer ? tokenize_tokenizer(inputs->items[0]) : NULL;
    Tokenizer *tokenizer = tokenizer_open(o.tokenizer ? o.tokenizer : known ? known : "gpt2");
    free(known);
    if (o.decode) {
        decode(inputs, tokenizer, o.special);
    } else {
        PathList paths = paths_expand_texts(inputs->items, inputs->count);
        TokenizeJob job = {.paths = (const char *const *)paths.files,
                           .count = paths.count,
                           .field = o.field,
                           .special = o.special,
                           .threads = (int)o.threads,
                           .tokenizer = tokenizer,
                           .plan = {.directory = o.out,
                                    .vocab = tokenizer_vocab(tokenizer),
                                    .shard_tokens = (uint64_t)o.shard_tokens,
                                    .val_tokens = o.val_tokens}};
        if (o.ids)
            ids_of(&job);
        else
            make_shards(&job, o.overwrite);
        paths_free(&paths);
    }
    tokenizer_free(tokenizer);
    free(values.operands.items);
    return EXIT_DONE;
}
