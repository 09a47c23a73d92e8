/* dataset.c: see dataset.h. */
#include "dataset.h"

#include "builtin_text.h"
#include "error.h"

static Stream *open_whole(const StringList *paths) {
    if (paths->count > 0) return stream_open(paths->items, paths->count, STREAM_ALL);
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
    Dataset data = {NULL, NULL, NULL};
    if (s->val.count > 0) {
        data.train = open_whole(paths);
        data.val = stream_open(s->val.items, s->val.count, STREAM_ALL);
    } else if (paths->count > 0 && stream_has_val_part(paths->items, paths->count)) {
        data.train = stream_open(paths->items, paths->count, STREAM_TRAIN);
        data.val = stream_open(paths->items, paths->count, STREAM_VAL);
    } else if (s->val_fraction > 0) {
        data = split(open_whole(paths), s->val_fraction);
    } else {
        data.train = open_whole(paths);
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
