/* dataset.c: see dataset.h. */
#include "dataset.h"

#include "../base/error.h"
#include "../data/builtin_text.h"

/* Whether directories or globs among the paths tell training from validation files by their names. */
static bool has_val_part(const StringList *paths) {
    return paths->count > 0 && stream_has_val_part(paths->items, paths->count);
}

static Stream *open_part(const StringList *paths, StreamPart part) {
    if (paths->count > 0) return stream_open(paths->items, paths->count, part);
    size_t bytes;
    const unsigned char *text = builtin_text(&bytes);
    return stream_of_text(text, bytes, "the built-in text");
}

/* The first (1 - fraction) of the tokens, rounded down, train; the others validate. */
static Dataset split(Stream *whole, double fraction) {
    uint64_t n = stream_length(whole), train = (uint64_t)((double)n * (1.0 - fraction));
    if (train < 2 || n - train < 2)
        fatal(EXIT_USAGE,
              "--val-fraction %g of %s (%llu tokens) leaves %llu to train and %llu to validate on, both "
              "need 2 or more; use --val-fraction 0 or more data",
              fraction, stream_name(whole), (unsigned long long)n, (unsigned long long)train,
              (unsigned long long)(n - train));
    return (Dataset){.train = stream_slice(whole, 0, train),
                     .val = stream_slice(whole, train, n - train),
                     .whole = whole};
}

static void check_kinds(const Dataset *data) {
    if (data->val && stream_is_bytes(data->val) != stream_is_bytes(data->train))
        fatal(EXIT_USAGE, "--data %s and --val %s must both be text or both be tokens",
              stream_name(data->train), stream_name(data->val));
}

Dataset dataset_open(const Settings *s) {
    const StringList *paths = &s->data;
    bool parts = has_val_part(paths);
    Dataset data = {NULL, NULL, NULL};
    if (s->val.count > 0 || parts) {
        const StringList *val = s->val.count > 0 ? &s->val : paths;
        data.train = open_part(paths, parts ? STREAM_TRAIN : STREAM_ALL);
        data.val = open_part(val, has_val_part(val) ? STREAM_VAL : STREAM_ALL);
    } else if (s->val_fraction > 0) {
        data = split(open_part(paths, STREAM_ALL), s->val_fraction);
    } else {
        data.train = open_part(paths, STREAM_ALL);
    }
    check_kinds(&data);
    return data;
}

void dataset_close(Dataset *data) {
    stream_close(data->train);
    if (data->val) stream_close(data->val);
    if (data->whole) stream_close(data->whole);
    *data = (Dataset){NULL, NULL, NULL};
}

int dataset_vocab(const Dataset *data) { return stream_is_bytes(data->train) ? 256 : 50257; }
