/* test_large.c: tensors beyond every piece, strip and chunk of the code (2^16 and 2^18 numbers, 16 MB, 64 MB), a
 * vocabulary of 70,000, more than 65,535 positions, files beyond 4 GiB. All is compared with what stands in memory,
 * number by number, and files are read here by hand: nothing is compared with a copy that the same code made. */
#include "../llmc/cpu/cpu.h"

#include "../llmc/base/rng.h"
#include "../llmc/checkpoint/checkpoint.h"
#include "../llmc/optimizer/adamw.h"
#include "../llmc/weights/llmc_bin.h"
#include "../llmc/weights/safetensors.h"
#include "../llmc/weights/transpose_columns.h"
#include "../llmc/weights/weights.h"
#include "files.h"

#include <float.h>

/* The word embedding has 68 MB, the matrices of the MLP 17.8 MB: neither a multiple of a power of two. */
static const Config wide = {
    .layers = 1, .heads = 4, .channels = 1056, .seq_len = 37, .vocab = 16100};
static const Config tall = {.layers = 1, .heads = 2, .channels = 8, .seq_len = 64, .vocab = 70000};

enum { WEIGHTS, MEAN, VARIANCE, KINDS };

/* Element i of a tensor: 24 bits of a hash, so that no two places look alike, and none is 0. */
static float element(int kind, int tensor, size_t i) {
    uint64_t hash =
        (i * 3 + (uint64_t)kind) * 0x9E3779B97F4A7C15u + (uint64_t)tensor * 0xC2B2AE3D27D4EB4Fu;
    float value = (float)((hash >> 40) + 1) / (float)(1 << 25);
    return kind == VARIANCE || hash & 1 ? value : -value;
}

static float *kind_of(const GPT2 *model, int kind) {
    return kind == WEIGHTS ? model->params : kind == MEAN ? model->m : model->v;
}

static GPT2 *filled_model(const Config *config) {
    GPT2 *model = gpt2_new(config, 1, false, true);
    for (int t = 0; t < model->table.count; t++)
        for (int kind = 0; kind < KINDS; kind++) {
            float *to = kind_of(model, kind) + model->table.tensors[t].offset;
            for (size_t i = 0; i < model->table.tensors[t].count; i++) to[i] = element(kind, t, i);
        }
    return model;
}

static void check_model(const GPT2 *model, int kinds) {
    for (int t = 0; t < model->table.count; t++)
        for (int kind = 0; kind < kinds; kind++) {
            const float *got = kind_of(model, kind) + model->table.tensors[t].offset;
            size_t wrong = 0, first = 0;
            for (size_t i = model->table.tensors[t].count; i-- > 0;)
                if (got[i] != element(kind, t, i)) wrong++, first = i;
            CHECK(wrong == 0, "%s, kind %d: %zu wrong, the first is [%zu] = %g",
                  model->table.tensors[t].name, kind, wrong, first, (double)got[first]);
        }
}

static unsigned char *read_file(const char *path, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) abort();
    *bytes = (size_t)ftell(file);
    unsigned char *data = malloc(*bytes + 1);
    rewind(file);
    if (fread(data, 1, *bytes, file) != *bytes) abort();
    fclose(file);
    data[*bytes] = '\0';
    return data;
}

// ---------------------------------------------------------------------------------------------
// safetensors and checkpoints

/* The data of a tensor in a safetensors file, found by its name in the header. */
static const float *data_of(const unsigned char *file, const char *prefix, const char *name) {
    char quoted[100];
    uint64_t header, begin, end;
    memcpy(&header, file, 8);
    snprintf(quoted, sizeof quoted, "\"%s%s\":", prefix, name);
    const char *at = strstr((const char *)file + 8, quoted);
    at = at ? strstr(at, "\"data_offsets\":[") : NULL;
    if (!at || sscanf(at, "\"data_offsets\":[%llu,%llu]", (unsigned long long *)&begin,
                      (unsigned long long *)&end) != 2) {
        CHECK(false, "%s is not in the file", quoted);
        return NULL;
    }
    return (const float *)(const void *)(file + 8 + header + begin);
}

static void check_file(const char *path, const TensorTable *table, const char *prefix, int kind,
                       bool may_transpose) {
    size_t bytes;
    unsigned char *file = read_file(path, &bytes);
    for (int t = 0; t < table->count; t++) {
        const Tensor *tensor = &table->tensors[t];
        const float *data = data_of(file, prefix, tensor->name);
        if (!data) continue;
        bool transposed = may_transpose && strstr(tensor->name, "h.0.") && tensor->dims == 2;
        size_t rows = tensor->shape[0], columns = tensor->dims == 2 ? tensor->shape[1] : 1,
               wrong = 0;
        for (size_t row = 0; row < rows; row++)
            for (size_t column = 0; column < columns; column++)
                wrong += data[transposed ? column * rows + row : row * columns + column] !=
                         element(kind, t, row * columns + column);
        CHECK(wrong == 0, "%s of %s: %zu elements are wrong", tensor->name, path, wrong);
    }
    free(file);
}

static void check_checkpoint(const Config *config, const char *name) {
    GPT2 *model = filled_model(config);
    const char *path = in_folder(name);
    Settings settings = options_parse(1, (char *[]){"test", NULL});
    TrainerState state = {.step = 1, .updates = 1};
    char problem[CHECKPOINT_PROBLEM] = "", file[300];
    checkpoint_save(path, model, &state, &settings, NULL);
    check_model(model, KINDS); // saving changes nothing
    snprintf(file, sizeof file, "%s/model.safetensors", path);
    check_file(file, &model->table, "", WEIGHTS, true);
    snprintf(file, sizeof file, "%s/optimizer.safetensors", path);
    check_file(file, &model->table, "m.", MEAN, false);
    check_file(file, &model->table, "v.", VARIANCE, false);
    CHECK(checkpoint_verify(path, problem), "%s", problem);

    for (int kind = 0; kind < KINDS; kind++) // as if nothing had been there
        memset(kind_of(model, kind), 0x7F, model->table.elements * sizeof(float));
    Weights *weights = weights_open(path);
    checkpoint_load(path, weights, model);
    weights_close(weights);
    check_model(model, KINDS);
    gpt2_free(model);
}

TEST(checkpoint_wide,
     "C = 1056: a checkpoint holds, and gives back, every number of matrices of 17.8 and 68 MB") {
    check_checkpoint(&wide, "wide");
}

TEST(checkpoint_tall, "a vocabulary of 70,000: likewise") { check_checkpoint(&tall, "tall"); }

TEST(damage_beyond_a_piece, "one bit beyond the first 64 MB of a file is seen") {
    char file[300], problem[CHECKPOINT_PROBLEM];
    const char *path = in_folder("wide"); // from above
    snprintf(file, sizeof file, "%s/model.safetensors", path);
    int descriptor = open(file, O_RDWR);
    if (descriptor < 0) SKIP("the checkpoint of another test is needed");
    unsigned char byte;
    off_t at = (64 << 20) + 12345;
    if (pread(descriptor, &byte, 1, at) != 1) abort();
    byte ^= 4;
    if (pwrite(descriptor, &byte, 1, at) != 1) abort();
    CHECK(!checkpoint_verify(path, problem), "a flipped bit");
    byte ^= 4;
    if (pwrite(descriptor, &byte, 1, at) != 1) abort();
    CHECK(checkpoint_verify(path, problem), "flipped back: %s", problem);
    close(descriptor);
}

TEST(transposed, "columns of matrices of 1 to 40 rows and columns, from any to any") {
    float matrix[40 * 40], out[40 * 40 + 1];
    for (int i = 0; i < 40 * 40; i++) matrix[i] = (float)i;
    for (size_t rows = 1; rows <= 40; rows++)
        for (size_t columns = 1; columns <= 40; columns += 3)
            for (size_t first = 0; first < columns; first += 5) {
                size_t count = columns - first, wrong = 0;
                for (size_t i = 0; i <= rows * count; i++) out[i] = -1;
                transpose_columns(out, matrix, rows, columns, first, count);
                for (size_t c = 0; c < count; c++)
                    for (size_t r = 0; r < rows; r++)
                        wrong += out[c * rows + r] != matrix[r * columns + first + c];
                CHECK(wrong == 0 && out[rows * count] == -1, "%zux%zu from %zu", rows, columns,
                      first);
            }
}

// ---------------------------------------------------------------------------------------------
// llm.c files

static void read_elements(void *table, const Tensor *tensor, size_t row, size_t rows, float *out) {
    int t = tensor_table_find(table, tensor->name);
    size_t columns = tensor_columns(tensor);
    for (size_t i = 0; i < rows * columns; i++) out[i] = element(WEIGHTS, t, row * columns + i);
}

/* float as BF16 by the definition: the nearer neighbour, the even one in the middle. */
static uint16_t bf16_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    uint32_t rest = bits & 0xFFFF, high = bits >> 16;
    return (uint16_t)(high + (rest > 0x8000 || (rest == 0x8000 && high & 1)));
}

static void check_bin(const Config *config, int version) {
    TensorTable table = tensor_table_new(config);
    const char *path = in_folder("large.bin");
    Output *output = output_begin(path, OUTPUT_FILE);
    OutputFile *to = output_open(output, NULL);
    llmc_bin_write(to, config, version, read_elements, &table);
    output_close(to);
    output_commit(output);

    size_t bytes, width = version == LLMC_BIN_BF16 ? 2 : 4, wrong = 0;
    unsigned char *file = read_file(path, &bytes), *at = file + 1024;
    size_t padding =
        (size_t)(config_padded_vocab(config) - config->vocab) * (size_t)config->channels;
    for (int t = 0; t < table.count; t++) {
        for (size_t i = 0; i < table.tensors[t].count; i++, at += width) {
            float value = element(WEIGHTS, t, i);
            uint16_t rounded = bf16_of(value);
            wrong += memcmp(at, width == 4 ? (void *)&value : (void *)&rounded, width) != 0;
        }
        if (t == 0)
            for (size_t i = 0; i < padding * width; i++) wrong += *at++ != 0;
        CHECK(wrong == 0, "version %d, up to %s: %zu wrong", version, table.tensors[t].name, wrong);
    }
    CHECK(at == file + bytes, "the file has %zu bytes, expected %zu", bytes, (size_t)(at - file));
    free(file);
    if (version == LLMC_BIN_FLOAT) {
        GPT2 *model = gpt2_new(config, 1, false, false);
        Weights *weights = weights_open(path);
        weights_load(weights, model);
        weights_close(weights);
        check_model(model, 1);
        gpt2_free(model);
    }
    tensor_table_free(&table);
}

TEST(llmc_files,
     "llm.c files of both versions and shapes hold every number, and the float one gives it back") {
    check_bin(&wide, LLMC_BIN_FLOAT);
    check_bin(&wide, LLMC_BIN_BF16);
    check_bin(&tall, LLMC_BIN_FLOAT);
}

static void read_huge(void *table, const Tensor *tensor, size_t row, size_t rows, float *out) {
    (void)table, (void)row;
    for (size_t i = 0; i < rows * tensor_columns(tensor); i++) out[i] = FLT_MAX;
}

static void write_huge(int version) {
    const Config config = {.layers = 1, .heads = 1, .channels = 4, .seq_len = 4, .vocab = 5};
    Output *output = output_begin(in_folder("huge.bin"), OUTPUT_FILE);
    OutputFile *to = output_open(output, NULL);
    llmc_bin_write(to, &config, version, read_huge, NULL);
    output_close(to);
    output_commit(output);
}

TEST(beyond_bf16,
     "the largest float has no BF16 neighbour: it is refused, not made infinite; a float file has it") {
    CHECK_FATAL(EXIT_INPUT, "beyond the largest BF16 number", write_huge(LLMC_BIN_BF16));
    CHECK_FATAL(0, "", write_huge(LLMC_BIN_FLOAT));
}

// ---------------------------------------------------------------------------------------------
// Numbers: initialisation, norm, sums, AdamW

TEST(initialisation, "each number of a large tensor is that of its own place in its own stream; "
                     "what is 0 or 1 is so") {
    Config config = wide;
    config.vocab = 3000;
    GPT2 *model = gpt2_new(&config, 1, false, true);
    gpt2_init(model, 77);
    for (int t = 0; t < model->table.count; t++) {
        const Tensor *tensor = &model->table.tensors[t];
        const float *got = model->params + tensor->offset;
        double std = 0.02, constant = 0;
        if (strstr(tensor->name, "c_proj.weight")) std = 0.02 / sqrt(2);
        if (tensor->dims == 1) std = 0, constant = strstr(tensor->name, "weight") ? 1 : 0;
        size_t wrong = 0;
        for (size_t i = 0;
             i<tensor->count; i += tensor->count> 3000000 && i > 70000 && i % 8 == 6 ? 32 : 2) {
            double z[2] = {0, 0};
            if (std > 0) rng_normal_pair(z, 77, i / 2, (uint64_t)t);
            for (size_t k = 0; k < 2 && i + k < tensor->count; k++)
                wrong += got[i + k] != (float)(constant + std * z[k]);
        }
        CHECK(wrong == 0, "%s: %zu wrong", tensor->name, wrong);
    }
    gpt2_free(model);
}

TEST(norm_and_sums, "square sums and exact sums of tensors of 4 and 17 million numbers, against "
                    "sums in long double") {
    GPT2 *model = filled_model(&wide);
    int count = model->table.count;
    double *sums = calloc((size_t)count, sizeof *sums);
    size_t elements = model->table.elements;
    memcpy(model->grads, model->params, elements * sizeof(float));
    gradient_square_sums(sums, model->grads, model->table.spans, count);
    for (int t = 0; t < count; t++) {
        long double want = 0;
        for (size_t i = 0; i < model->table.tensors[t].count; i++)
            want += (long double)element(WEIGHTS, t, i) * element(WEIGHTS, t, i);
        CHECK_NEAR(sums[t], (double)want, 1e-12 * (double)want);
    }
    reduction_open(model->grads, elements, true, 3);
    for (int k = 0; k < 3; k++) { // the weights, their halves, their quarters
        for (size_t i = 0; i < elements; i++) model->grads[i] = model->params[i] / (float)(1 << k);
        reduction_ready(elements / 2, elements - elements / 2, k == 0, k == 2, true);
        reduction_ready(0, elements / 2, k == 0, k == 2, true);
    }
    CHECK(reduction_finish() == -1);
    reduction_close();
    size_t wrong = 0;
    for (size_t i = 0; i < elements; i++)
        wrong += model->grads[i] != (float)(1.75 * (double)model->params[i]);
    CHECK(wrong == 0, "%zu sums are wrong", wrong);
    free(sums);
    gpt2_free(model);
}

TEST(
    adamw,
    "one step on 22 million numbers, each against the formula in double; decay on matrices alone") {
    GPT2 *model = filled_model(&wide);
    memcpy(model->grads, model->params, model->table.elements * sizeof(float));
    AdamW o = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1};
    AdamWScalars step = adamw_scalars(&o, 3, 0.01, 0.5);
    adamw_update(model->params, model->master, model->m, model->v, model->grads, model->table.spans,
                 model->table.count, &step);
    for (int t = 0; t < model->table.count; t++) {
        const Tensor *tensor = &model->table.tensors[t];
        size_t wrong = 0;
        for (size_t i = 0; i < tensor->count; i++) {
            double w = element(WEIGHTS, t, i), g = 0.5 * w, m = element(MEAN, t, i),
                   v = element(VARIANCE, t, i);
            if (tensor->dims == 2) w -= 0.01 * 0.1 * w;
            m = 0.9 * m + 0.1 * g;
            v = 0.95 * v + 0.05 * g * g;
            w -= 0.01 * (m / (1 - 0.729)) / (sqrt(v / (1 - 0.857375)) + 1e-8);
            wrong += !(fabs(model->params[tensor->offset + i] - w) < 1e-6);
        }
        CHECK(wrong == 0, "%s: %zu wrong", tensor->name, wrong);
    }
    gpt2_free(model);
}

TEST(many_positions,
     "1,100 sequences of 64, 70,400 positions at once, have the losses of each sequence alone") {
    const Config config = {.layers = 1, .heads = 2, .channels = 8, .seq_len = 64, .vocab = 300};
    enum { B = 1100, T = 64 };
    GPT2 *model = gpt2_new(&config, B, false, false), *alone = gpt2_new(&config, 1, false, false);
    gpt2_init(model, 5);
    gpt2_init(alone, 5);
    Id *ids = malloc(B * T * sizeof *ids), *targets = malloc(B * T * sizeof *targets);
    float *losses = malloc(B * T * sizeof *losses), one[T];
    for (int i = 0; i < B * T; i++) ids[i] = i % 293 * 17 % 300, targets[i] = i % 281 * 23 % 300;
    gpt2_forward(model, ids, B, T);
    gpt2_loss(model, losses, targets, B, T);
    for (int b = 0; b < B; b += b == 0 || b > 1020 ? 1 : 60) {
        gpt2_forward(alone, ids + b * T, 1, T);
        gpt2_loss(alone, one, targets + b * T, 1, T);
        for (int t = 0; t < T; t++) CHECK_NEAR(losses[b * T + t], one[t], 1e-5);
    }
    free(ids), free(targets), free(losses);
    gpt2_free(model);
    gpt2_free(alone);
}

// ---------------------------------------------------------------------------------------------
// Files beyond 2 and 4 GiB

TEST(beyond_4_gib,
     "a tensor behind 5 GB of another is read from its place; the large one at its end") {
    const unsigned long long large = 1250000000ull; // floats
    char header[300];
    int length =
        snprintf(header + 8, sizeof header - 8,
                 "{\"large\":{\"dtype\":\"F32\",\"shape\":[%llu],\"data_offsets\":[0,%llu]},"
                 "\"small\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[%llu,%llu]}}",
                 large, 4 * large, 4 * large, 4 * large + 12);
    uint64_t bytes = (uint64_t)length;
    memcpy(header, &bytes, 8);
    uint64_t data = 8 + bytes;
    const char *path = write_sparse("sparse.safetensors", header, data, data + 4 * large + 12);
    if (!path) SKIP("this file system has no sparse files of 5 GB");
    const float small[3] = {1.5f, 2.5f, -3.5f}, last = 7.25f;
    int descriptor = open(path, O_WRONLY);
    if (pwrite(descriptor, &last, 4, (off_t)(data + 4 * (large - 1))) != 4) abort();
    if (pwrite(descriptor, small, 12, (off_t)(data + 4 * large)) != 12) abort();
    close(descriptor);
    SafeTensors *file = safetensors_open(path);
    const SafeTensor *tensor = safetensors_find(file, "small");
    float got[3];
    CHECK(tensor && tensor->count == 3);
    safetensor_floats(tensor, safetensor_at(file, tensor, 0, 3), 3, got);
    CHECK(memcmp(got, small, sizeof small) == 0, "%g %g %g", (double)got[0], (double)got[1],
          (double)got[2]);
    tensor = safetensors_find(file, "large");
    CHECK(tensor && tensor->count == large);
    safetensor_floats(tensor, safetensor_at(file, tensor, (size_t)large - 2, 2), 2, got);
    CHECK(got[0] == 0 && got[1] == last, "%g %g", (double)got[0], (double)got[1]);
    safetensors_close(file);
    unlink(path);
}

int main(int argc, char **argv) { return test_main(argc, argv); }
