/* readers.c: see readers.h. Each reader gets its bytes as the file (or the files of a directory) that it reads,
 * in a scratch directory in memory where the system has one. */
#include "readers.h"

#include "../../llmc/base/error.h"
#include "../../llmc/base/memory.h"
#include "../../llmc/checkpoint/trainer_state.h"
#include "../../llmc/data/meta_pickle.h"
#include "../../llmc/data/shard_tokenizer.h"
#include "../../llmc/data/stream.h"
#include "../../llmc/eval/examples.h"
#include "../../llmc/files/checksum.h"
#include "../../llmc/settings/settings.h"
#include "../../llmc/weights/weights.h"
#include "doubles.h"
#include "track.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SLACK = 4 << 20, TIMES = 256, MOST_ROWS = 4096 };

static char folder[64];

static void make_folder(void) {
    if (folder[0]) return;
    snprintf(folder, sizeof folder, "%s/train_gpt2_fuzz.XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(folder)) abort();
}

static char paths[4][128]; // of the files that a reader has made
static int put_count;

static void remove_files(void) {
    while (put_count > 0) unlink(paths[--put_count]);
}

__attribute__((destructor)) static void remove_folder(void) {
    if (!folder[0]) return;
    remove_files();
    rmdir(folder);
}

/* Writes a file of the folder, at most four in a run, and returns its path. */
static const char *put(const char *name, const uint8_t *data, size_t size) {
    char *path = paths[put_count++];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file || (size && fwrite(data, 1, size, file) != size) || fclose(file) != 0) abort();
    return path;
}

/* Takes the first part of the input off: two bytes say how long it is. */
static size_t take(const uint8_t **data, size_t *size, const uint8_t **part) {
    if (*size < 2) return *part = *data, 0;
    size_t want = (size_t)((*data)[0] | (*data)[1] << 8), have = *size - 2;
    size_t length = want < have ? want : have;
    *part = *data + 2;
    *data += 2 + length;
    *size = have - length;
    return length;
}

static void read_json(const uint8_t *data, size_t size) {
    char problem[JSON_PROBLEM];
    char *text = memory_new(size ? size : 1, 1, "text"); // no byte more than there is
    if (size) memcpy(text, data, size);
    json_free(json_read(text, size, problem));
    free(text);
}

/* trainer_state.json ends with a sum of itself: without that no input would get far. */
static void read_state(const uint8_t *data, size_t size) {
    char problem[STATE_PROBLEM], tail[64];
    TrainerState state;
    FileChecksum sum;
    int length = snprintf(tail, sizeof tail, ",\n  \"xxh64\":\"%016" PRIx64 "\"\n}\n", checksum_of(data, size));
    char *text = memory_new(size + (size_t)length, 1, "text");
    if (size) memcpy(text, data, size);
    memcpy(text + size, tail, (size_t)length);
    const Json *root = trainer_state_read(text, size + (size_t)length, problem);
    if (root && trainer_state_counters(root, &state, problem)) trainer_state_sum(root, "model.safetensors", &sum);
    json_free(root);
    free(text);
}

/* All values of a model on disk; of very wide tensors the first rows. */
static void read_weights(const char *path) {
    Weights *weights = weights_open(path);
    const TensorTable *table = weights_table(weights);
    for (int i = 0; i < table->count; i++) {
        const Tensor *tensor = &table->tensors[i];
        size_t columns = tensor_columns(tensor), rows = tensor->count / columns;
        float *out = memory_new(columns, sizeof *out, "a row");
        for (size_t row = 0; row < rows && row < MOST_ROWS; row++) weights_read_rows(weights, tensor, row, 1, out);
        free(out);
    }
    weights_close(weights);
}

static void read_llmc(const uint8_t *data, size_t size) { read_weights(put("model.bin", data, size)); }

static void read_model(const uint8_t *data, size_t size) {
    const uint8_t *config;
    size_t length = take(&data, &size, &config);
    put("config.json", config, length);
    put("model.safetensors", data, size);
    read_weights(folder);
}

static const char config[] = "{\"model_type\":\"gpt2\",\"n_layer\":1,\"n_head\":1,\"n_embd\":2,\"n_positions\":2,"
                             "\"vocab_size\":3}";

static void read_safetensors(const uint8_t *data, size_t size) {
    put("config.json", (const uint8_t *)config, sizeof config - 1);
    read_weights(put("model.safetensors", data, size));
}

static void read_index(const uint8_t *data, size_t size) {
    const uint8_t *index;
    size_t length = take(&data, &size, &index);
    put("config.json", (const uint8_t *)config, sizeof config - 1);
    put("model.safetensors.index.json", index, length);
    put("tokens.bin", data, size); // a name for a part that an index may say
    read_weights(folder);
}

static void read_stream(const char *path) {
    Stream *stream = stream_open(&path, 1, STREAM_ALL);
    int32_t tokens[256];
    stream_identity(stream);
    stream_set_vocab(stream, 50257);
    for (uint64_t at = 0, n = stream_length(stream); at < n; at += 256)
        stream_read(stream, at, n - at < 256 ? (size_t)(n - at) : 256, tokens);
    stream_close(stream);
}

static void read_tokens(const uint8_t *data, size_t size) { read_stream(put("tokens.bin", data, size)); }
static void read_npy(const uint8_t *data, size_t size) { read_stream(put("tokens.npy", data, size)); }
static void read_text(const uint8_t *data, size_t size) { read_stream(put("tokens.txt", data, size)); }

static void use_tokenizer(const char *path) {
    static const char text[] = "Hello, world's 42 \xc3\xa9t\xc3\xa9 \xff\n\n  end<|endoftext|>";
    Tokenizer *tokenizer = tokenizer_open(path);
    TokenList list = {0};
    if (tokenizer_can_encode(tokenizer)) tokenizer_encode(tokenizer, text, sizeof text - 1, true, &list);
    for (int32_t id = 0; id < tokenizer_vocab(tokenizer) && id < MOST_ROWS; id++) {
        size_t bytes;
        const unsigned char *spelling = tokenizer_bytes(tokenizer, id, &bytes);
        if (spelling && bytes && spelling[bytes - 1] == 0 && list.count == 1) list.count = 0; // it can be read
    }
    free(list.ids);
    tokenizer_free(tokenizer);
}

static void read_tokenizer_json(const uint8_t *data, size_t size) {
    use_tokenizer(put("tokenizer.json", data, size));
}

static void read_vocab(const uint8_t *data, size_t size) {
    const uint8_t *vocab;
    size_t length = take(&data, &size, &vocab);
    put("merges.txt", data, size);
    use_tokenizer(put("vocab.json", vocab, length));
}

static void read_tokenizer_bin(const uint8_t *data, size_t size) { use_tokenizer(put("tokens.bin", data, size)); }

static void read_examples(const uint8_t *data, size_t size) {
    Tokenizer *bytes = tokenizer_open("bytes");
    ExamplesFor model = {bytes, 50257, 64};
    const char *path = put("set.jsonl", data, size);
    examples_close(examples_open(path, &model, 0));
    tokenizer_free(bytes);
}

static void read_note(const uint8_t *data, size_t size) {
    ShardTokenizer found;
    put("tokenize.json", data, size);
    if (shard_tokenizer_find(folder, &found)) free(found.name);
}

static void read_pickle(const uint8_t *data, size_t size) { meta_pickle_vocab(put("meta.pkl", data, size)); }

/* Words of a command line, each ended by a line break. */
static void read_options(const uint8_t *data, size_t size) {
    char *text = memory_new(size + 1, 1, "text"), *words[66] = {"train_gpt2"};
    int count = 1;
    if (size) memcpy(text, data, size);
    for (char *word = strtok(text, "\n"); word && count < 65; word = strtok(NULL, "\n"))
        if (strcmp(word, "--help") != 0 && strcmp(word, "-h") != 0) words[count++] = word;
    Settings settings = options_parse(count, words);
    settings_free(&settings);
    free(text);
}

const Reader readers[] = {{"json", read_json},         {"state", read_state},
                          {"model", read_model},       {"safetensors", read_safetensors},
                          {"index", read_index},       {"llmc", read_llmc},
                          {"tokens", read_tokens},     {"npy", read_npy},
                          {"text", read_text},         {"tokenizer_json", read_tokenizer_json},
                          {"vocab", read_vocab},       {"tokenizer_bin", read_tokenizer_bin},
                          {"examples", read_examples}, {"pickle", read_pickle},
                          {"note", read_note},         {"options", read_options}};
const int reader_count = sizeof readers / sizeof *readers;

int reader_run(const Reader *reader, const uint8_t *data, size_t size) {
    make_folder();
    track_limit(SLACK + TIMES * size);
    int code = setjmp(doubles_end);
    if (code == 0) reader->read(data, size);
    track_release();
    remove_files();
    if (code == 0 || code == EXIT_INPUT || code == EXIT_USAGE) return code;
    fprintf(stderr, "fuzz: %s ended with code %d: %s\n", reader->name, code, doubles_said);
    abort();
}
