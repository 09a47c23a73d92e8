/* dataset.c: training and validation data of a run. Validation is --val, else the files named for validation, else
 * the end of the training stream. Text is encoded here when the model's vocabulary is not bytes. */
#include "dataset.h"

#include "../base/error.h"
#include "../data/builtin_text.h"
#include "../data/encoded_text.h"
#include "../data/shard_tokenizer.h"
#include "../files/path.h"
#include "choose_tokenizer.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is known about the model. */
typedef struct {
    const Settings *settings;
    const char *weights;
    int vocab;
} Model;

/* How the files of directories and globs among the paths are named. */
static StreamNames names_of(const StringList *paths) {
    return paths->count > 0 ? stream_names(paths->items, paths->count) : (StreamNames){0};
}

/* The part of held-out data that the names imply: validation, else test, else all. */
static StreamPart held_out_part(StreamNames names) {
    return names.val ? STREAM_VAL : names.test ? STREAM_TEST : STREAM_ALL;
}

/* The files of one part; without files, the built-in text. */
static Stream *open_files(const StringList *paths, StreamPart part, int type) {
    // --data-type concerns files only; the built-in text is bytes.
    if (paths->count > 0) return stream_open_as(paths->items, paths->count, part, (DataType)type);
    size_t bytes;
    const unsigned char *text = builtin_text(&bytes);
    return stream_of_text(text, bytes, "the built-in text");
}

/* The tokenizer that tokens were made with; `tokenize` notes it beside them. */
static Tokenizer *tokenizer_of_tokens(const Model *model, const Stream *stream) {
    const Settings *s = model->settings;
    ShardTokenizer noted = {NULL, 0};
    // Only the first path is asked: the tokens of one run have one tokenizer.
    bool known = s->data.count > 0 && shard_tokenizer_find(s->data.items[0], &noted);
    const char *named = s->tokenizer ? s->tokenizer : known ? noted.name : "gpt2";
    Tokenizer *tokenizer = NULL;
    // The weights decide where there are some. For a new model it is the option, then the note beside the tokens,
    // then GPT-2's; but a meta.pkl means characters, and their tokenizer is not known.
    if (model->vocab > 0)
        tokenizer = choose_tokenizer(s->tokenizer, model->weights, model->vocab);
    else if (s->tokenizer || known || !stream_vocab_beside(stream)) // else: characters
        tokenizer = tokenizer_open(named);
    // Names may differ for the same tokenizer (a copy at another path), so identities are compared.
    if (known && tokenizer && tokenizer_identity(tokenizer) != noted.identity)
        fatal(EXIT_USAGE,
              "%s was made with the tokenizer %s, but the model's is %s, where its ids mean other text; give the "
              "right one with --tokenizer, or other data",
              stream_name(stream), noted.name, tokenizer_name(tokenizer));
    free(noted.name);
    return tokenizer;
}

/* The tokenizer that turns text into tokens for this model. */
static Tokenizer *tokenizer_of_text(const Model *model, const Stream *stream) {
    const Settings *s = model->settings;
    // The model's name decides for a new model: "gpt2" and its larger shapes have GPT-2's vocabulary, "tiny" has
    // bytes.
    if (model->vocab == 0) // a new shape
        return tokenizer_open(s->tokenizer ? s->tokenizer : strncmp(s->model, "gpt2", 4) == 0 ? "gpt2" : "bytes");
    Tokenizer *tokenizer = choose_tokenizer(s->tokenizer, model->weights, model->vocab);
    if (tokenizer) return tokenizer;
    // Weights with an unknown tokenizer: text in other ids than they were trained on would mean nothing to them.
    if (model->weights)
        fatal(EXIT_USAGE,
              "%s is text, but the tokenizer of %s (%d tokens) is not known; name it with --tokenizer, or give token "
              "files",
              stream_name(stream), model->weights, model->vocab);
    return tokenizer_open("bytes");
}

/* The tokens of a part. The first that is opened decides the tokenizer. */
static Stream *open_part(Dataset *data, const Model *model, const StringList *paths, StreamPart part) {
    // Training data are opened before validation data, so the tokenizer is known when the second part is opened.
    Stream *stream = open_files(paths, part, model->settings->data_type);
    bool text = stream_is_bytes(stream);
    if (!data->train) {
        data->is_text = text;
        data->tokenizer = text ? tokenizer_of_text(model, stream) : tokenizer_of_tokens(model, stream);
    } else if (text != data->is_text) {
        fatal(EXIT_USAGE, "--data %s and --val %s must both be text or both be tokens", stream_name(data->train),
              stream_name(stream));
    }
    if (!text || tokenizer_is_bytes(data->tokenizer)) return stream;
    // From here on only tokens are needed. The length in bytes is kept for the start-up table.
    Stream *tokens = encode_text(stream, data->tokenizer);
    data->text_bytes += stream_length(stream);
    stream_close(stream);
    return tokens;
}

/* (1 - fraction) n, rounded down; the whole number that is meant where 1 - fraction is not exact in binary, as
 * 1 - 0.9 is 0.0999... */
static uint64_t training_share(uint64_t n, double fraction) {
    // n = 10 and fraction 0.9: the product is 0.9999... and would be rounded down to 0; 1 is meant. The tolerance is
    // a few roundings of a double (2^-53 is about 1.1e-16).
    double share = (double)n * (1.0 - fraction), whole = round(share);
    return (uint64_t)(fabs(share - whole) <= 1e-15 * (double)n ? whole : share);
}

/* The first (1 - fraction) of the tokens, rounded down, train; the others validate. */
static void split(Dataset *data, Stream *whole, double fraction) {
    // A stream of one token has no target, so each part needs two.
    uint64_t n = stream_length(whole), train = training_share(n, fraction);
    if (train < 2 || n - train < 2)
        fatal(EXIT_USAGE,
              "--val-fraction %g of %s (%llu tokens) leaves %llu to train and %llu to validate on, both "
              "need 2 or more; use --val-fraction 0 or more data",
              fraction, stream_name(whole), (unsigned long long)n, (unsigned long long)train,
              (unsigned long long)(n - train));
    // The end of the stream, not a random choice: sequences of both parts would else lie side by side in one
    // document.
    data->train = stream_slice(whole, 0, train);
    data->val = stream_slice(whole, train, n - train);
    data->whole = whole;
}

/* Adds a phrase to the remarks about the data. */
static void note(Dataset *data, const char *format, ...) PRINTF_LIKE(2, 3);
/* Adds a remark for the start-up table. */
static void note(Dataset *data, const char *format, ...) {
    size_t at = strlen(data->note), size = sizeof data->note;
    if (at > 0) at += (size_t)snprintf(data->note + at, size - at, "; ");
    va_list args;
    va_start(args, format);
    vsnprintf(data->note + at, size - at, format, args);
    va_end(args);
}

/* Which files the names chose to train on, and which are left out. */
static void note_names(Dataset *data, StreamNames names, bool has_val) {
    // Files without a part are left out only where another file is named train.
    int files = stream_files(data->train), unnamed = names.train ? names.others : 0;
    if (names.train + names.val + names.test + names.others == 0) return; // no directory, no glob
    if (!has_val) note(data, "no file is named val: %d file%s training data", files, files == 1 ? " is" : "s are");
    if (names.test) note(data, "%d named test %s left out", names.test, names.test == 1 ? "is" : "are");
    if (unnamed) note(data, "%d not named train %s left out", unnamed, unnamed == 1 ? "is" : "are");
}

Dataset dataset_open(const Settings *s, const char *weights, int vocab) {
    const Model model = {s, weights, vocab};
    const StringList *paths = &s->data;
    StreamNames names = names_of(paths);
    Dataset data = {0};
    // With --val the training files are still chosen by their names: files named val in --data are not trained on.
    // validation: the files that the user names, else those named for validation, else the end of the stream
    if (s->val.count > 0 || names.val) {
        const StringList *val = s->val.count > 0 ? &s->val : paths;
        data.train = open_part(&data, &model, paths, STREAM_TRAIN);
        data.val = open_part(&data, &model, val, held_out_part(names_of(val)));
    } else if (s->val_fraction > 0) {
        split(&data, open_part(&data, &model, paths, STREAM_TRAIN), s->val_fraction);
    } else {
        data.train = open_part(&data, &model, paths, STREAM_TRAIN);
    }
    // Where the vocabulary is given, by an option or by weights, meta.pkl has no say.
    data.vocab_beside = vocab ? 0 : stream_vocab_beside(data.train);
    if (data.vocab_beside) note(&data, "meta.pkl beside it gives a vocabulary of %d", data.vocab_beside);
    note_names(&data, names, data.val && !data.whole);
    return data;
}

Dataset dataset_open_held_out(const Settings *s, const char *weights, int vocab) {
    const Model model = {s, weights, vocab};
    StreamNames names = names_of(&s->data);
    Dataset data = {0};
    // The same split as in training, so that the model is evaluated on tokens that it was not trained on.
    if (!names.val && s->val_fraction > 0)
        split(&data, open_part(&data, &model, &s->data, STREAM_TRAIN), s->val_fraction);
    else
        data.val = open_part(&data, &model, &s->data, held_out_part(names));
    return data;
}

void dataset_close(Dataset *data) {
    stream_close(data->train);
    stream_close(data->val);
    stream_close(data->whole);
    tokenizer_free(data->tokenizer);
    *data = (Dataset){0};
}

enum { GPT2_VOCAB = 50257, ENOUGH = 1 << 10 };

// The tokenizer first. Without one the data may still have a meta.pkl.
int dataset_vocab(const Dataset *data) {
    if (data->tokenizer) return tokenizer_vocab(data->tokenizer);
    return data->vocab_beside;
}

void dataset_hint_vocab(const Dataset *data) {
    // A few tokens may miss the large ids by chance, so a short stream is not judged.
    if (data->is_text || dataset_vocab(data) != GPT2_VOCAB || stream_length(data->train) < ENOUGH) return;
    uint64_t largest = stream_largest(data->train);
    if (largest < GPT2_VOCAB / 4)
        warning("%s: the largest id is %llu, far below GPT-2's vocabulary of %d, which the model gets; for other "
                "tokens, such as characters, give --vocab %llu",
                stream_name(data->train), (unsigned long long)largest, GPT2_VOCAB,
                (unsigned long long)largest + 1);
}

uint64_t dataset_tokens(const Dataset *data) {
    return stream_length(data->train) + (data->val ? stream_length(data->val) : 0);
}

const char *dataset_course_shards(void) {
    static const char directory[] = "data/fineweb-edu";
    // The first training shard stands for all of them: the download is not checked here.
    return path_exists("data/fineweb-edu/edu_fineweb_train_000001.bin") ? directory : NULL;
}
