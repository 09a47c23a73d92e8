/* dataset.c: see dataset.h. */
#include "dataset.h"

#include "../base/error.h"
#include "../data/builtin_text.h"
#include "../data/encoded_text.h"
#include "choose_tokenizer.h"

#include <string.h>
#include <unistd.h>

/* What is known of the model. */
typedef struct {
    const Settings *settings;
    const char *weights;
    int vocab;
} Model;

/* Whether directories or globs among the paths tell training from validation files by their names. */
static bool has_val_part(const StringList *paths) {
    return paths->count > 0 && stream_has_val_part(paths->items, paths->count);
}

static Stream *open_files(const StringList *paths, StreamPart part) {
    if (paths->count > 0) return stream_open(paths->items, paths->count, part);
    size_t bytes;
    const unsigned char *text = builtin_text(&bytes);
    return stream_of_text(text, bytes, "the built-in text");
}

static Tokenizer *tokenizer_for(const Model *model, const Stream *stream) {
    const Settings *s = model->settings;
    bool text = stream_is_bytes(stream);
    if (model->vocab == 0) { // a new shape
        bool gpt2 = !text || strncmp(s->model, "gpt2", 4) == 0;
        return tokenizer_open(s->tokenizer ? s->tokenizer : gpt2 ? "gpt2" : "bytes");
    }
    Tokenizer *tokenizer = choose_tokenizer(s->tokenizer, model->weights, model->vocab);
    if (tokenizer || !text) return tokenizer;
    if (model->weights)
        fatal(EXIT_USAGE,
              "%s is text, but the tokenizer of %s (%d tokens) is not known; name it with --tokenizer, or give token "
              "files",
              stream_name(stream), model->weights, model->vocab);
    return tokenizer_open("bytes");
}

/* The tokens of a part. The first that is opened decides the tokenizer. */
static Stream *open_part(Dataset *data, const Model *model, const StringList *paths, StreamPart part) {
    Stream *stream = open_files(paths, part);
    bool text = stream_is_bytes(stream);
    if (!data->train) {
        data->is_text = text;
        data->tokenizer = tokenizer_for(model, stream);
    } else if (text != data->is_text) {
        fatal(EXIT_USAGE, "--data %s and --val %s must both be text or both be tokens", stream_name(data->train),
              stream_name(stream));
    }
    if (!text || tokenizer_is_bytes(data->tokenizer)) return stream;
    Stream *tokens = encode_text(stream, data->tokenizer);
    data->text_bytes += stream_length(stream);
    stream_close(stream);
    return tokens;
}

/* The first (1 - fraction) of the tokens, rounded down, train; the others validate. */
static void split(Dataset *data, Stream *whole, double fraction) {
    uint64_t n = stream_length(whole), train = (uint64_t)((double)n * (1.0 - fraction));
    if (train < 2 || n - train < 2)
        fatal(EXIT_USAGE,
              "--val-fraction %g of %s (%llu tokens) leaves %llu to train and %llu to validate on, both "
              "need 2 or more; use --val-fraction 0 or more data",
              fraction, stream_name(whole), (unsigned long long)n, (unsigned long long)train,
              (unsigned long long)(n - train));
    data->train = stream_slice(whole, 0, train);
    data->val = stream_slice(whole, train, n - train);
    data->whole = whole;
}

Dataset dataset_open(const Settings *s, const char *weights, int vocab) {
    const Model model = {s, weights, vocab};
    const StringList *paths = &s->data;
    bool parts = has_val_part(paths);
    Dataset data = {0};
    if (s->val.count > 0 || parts) {
        const StringList *val = s->val.count > 0 ? &s->val : paths;
        data.train = open_part(&data, &model, paths, parts ? STREAM_TRAIN : STREAM_ALL);
        data.val = open_part(&data, &model, val, has_val_part(val) ? STREAM_VAL : STREAM_ALL);
    } else if (s->val_fraction > 0) {
        split(&data, open_part(&data, &model, paths, STREAM_ALL), s->val_fraction);
    } else {
        data.train = open_part(&data, &model, paths, STREAM_ALL);
    }
    return data;
}

void dataset_close(Dataset *data) {
    stream_close(data->train);
    if (data->val) stream_close(data->val);
    if (data->whole) stream_close(data->whole);
    tokenizer_free(data->tokenizer);
    *data = (Dataset){0};
}

int dataset_vocab(const Dataset *data) { return data->tokenizer ? tokenizer_vocab(data->tokenizer) : 0; }

uint64_t dataset_tokens(const Dataset *data) {
    return stream_length(data->train) + (data->val ? stream_length(data->val) : 0);
}

const char *dataset_course_shards(void) {
    static const char directory[] = "data/fineweb-edu";
    return access("data/fineweb-edu/edu_fineweb_train_000001.bin", R_OK) == 0 ? directory : NULL;
}
