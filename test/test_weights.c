/* test_weights.c: one model in four formats is one model, and what is not a GPT-2 is refused by
 * name. */
#include "../llmc/weights/weights.h"

#include "../llmc/base/error.h"
#include "../llmc/weights/half.h"
#include "../llmc/base/rng.h"
#include "../llmc/weights/hf_config.h"
#include "../llmc/weights/llmc_bin.h"
#include "files.h"
#include "test.h"

static const char hf[] = "test/fixtures/hf_tiny";
static const char bin3[] = "test/fixtures/llmc_tiny/model_fp32.bin";
static const char bin5[] = "test/fixtures/llmc_tiny/model_bf16.bin";

/* All weights of a model file, tensor by tensor in the table's order. */
static float *all_weights(const char *path, size_t *count) {
    Weights *weights = weights_open(path);
    TensorTable table = tensor_table_new(weights_config(weights));
    float *values = malloc(table.parameters * sizeof *values), *at = values;
    for (int i = 0; i < table.count; i++) {
        const Tensor *tensor = &table.tensors[i];
        // in pieces of 5 rows, which divide nothing
        for (size_t row = 0; row < tensor->shape[0]; row += 5) {
            size_t n = tensor->shape[0] - row < 5 ? tensor->shape[0] - row : 5;
            weights_read_rows(weights, tensor, row, n, at);
            at += n * tensor_columns(tensor);
        }
    }
    *count = table.parameters;
    CHECK(at == values + table.parameters);
    tensor_table_free(&table);
    weights_close(weights);
    return values;
}

static unsigned char *load(const char *path, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    unsigned char *data = malloc(1 << 20);
    *bytes = fread(data, 1, 1 << 20, file);
    fclose(file);
    return data;
}

static bool same_file(const char *a, const char *b) {
    size_t x_bytes, y_bytes;
    unsigned char *x = load(a, &x_bytes), *y = load(b, &y_bytes);
    bool same = x_bytes == y_bytes && memcmp(x, y, x_bytes) == 0;
    free(x);
    free(y);
    return same;
}

static void write_bin(const char *path, Weights *weights, int version) {
    Output *output = output_begin(path, OUTPUT_FILE);
    OutputFile *file = output_open(output, NULL);
    llmc_bin_write(file, weights_config(weights), version, weights_read_rows, weights);
    output_close(file);
    output_commit(output);
}

static void write_hf(const char *path, Weights *weights) {
    TensorTable table = tensor_table_new(weights_config(weights));
    TensorGroup group = {"", weights_read_rows, weights};
    Output *output = output_begin(path, OUTPUT_DIRECTORY);
    OutputFile *file = output_open(output, "config.json");
    hf_config_write(file, weights_config(weights), -1);
    output_close(file);
    file = output_open(output, "model.safetensors");
    hf_write_tensors(file, &table, &group, 1);
    output_close(file);
    output_commit(output);
    tensor_table_free(&table);
}

TEST(names, "every tensor of a table is found by its name, and no other name is") {
    Config config = {.layers = 12, .heads = 1, .channels = 2, .seq_len = 3, .vocab = 5};
    TensorTable table = tensor_table_new(&config);
    for (int i = 0; i < table.count; i++)
        CHECK(tensor_table_find(&table, table.tensors[i].name) == i, "%s", table.tensors[i].name);
    static const char *const others[] = {"",
                                         "wte",
                                         "wpe.weights",
                                         "ln_f.",
                                         "ln_f.weight.bias",
                                         "h.12.ln_1.weight",
                                         "h.-1.ln_1.weight",
                                         "h.01.ln_1.weight",
                                         "h.+1.ln_1.weight",
                                         "h. 1.ln_1.weight",
                                         "h.1.ln_1",
                                         "h.1.ln_3.weight",
                                         "h.99999.ln_1.weight",
                                         "h.4294967297.ln_1.weight",
                                         "h.1",
                                         "h..ln_1.weight"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        CHECK(tensor_table_find(&table, others[i]) == -1, "%s", others[i]);
    tensor_table_free(&table);
}

TEST(shapes, "every format gives the same shape") {
    const char *paths[] = {hf, bin3, bin5};
    const char *formats[] = {"safetensors, F32", "llm.c model, version 3",
                             "llm.c model, version 5"};
    for (int i = 0; i < 3; i++) {
        Weights *weights = weights_open(paths[i]);
        const Config *c = weights_config(weights);
        CHECK(c->layers == 2 && c->heads == 4 && c->channels == 32 && c->seq_len == 24 &&
              c->vocab == 97);
        CHECK(strcmp(weights_format(weights), formats[i]) == 0, "%s", weights_format(weights));
        weights_close(weights);
    }
}

TEST(same_weights,
     "Conv1D matrices are transposed: both formats give the same bits, BF16 rounded") {
    size_t n, m, k;
    float *a = all_weights(hf, &n), *b = all_weights(bin3, &m), *c = all_weights(bin5, &k);
    CHECK(n == m && m == k && memcmp(a, b, n * sizeof *a) == 0);
    for (size_t i = 0; i < n; i++)
        CHECK(c[i] == float_of_bf16(bf16_of_float(a[i])), "weight %zu", i);
    free(a), free(b), free(c);
}

TEST(there_and_back, "directory to .bin and .bin to directory give back the very bytes") {
    char made[256];
    strcpy(made, in_folder("made.bin"));
    Weights *weights = weights_open(hf);
    write_bin(made, weights, LLMC_BIN_FLOAT);
    CHECK(same_file(made, bin3));
    write_bin(made, weights, LLMC_BIN_BF16);
    CHECK(same_file(made, bin5));
    weights_close(weights);

    weights = weights_open(bin5); // exact in float
    write_hf(in_folder("directory"), weights);
    weights_close(weights);
    weights = weights_open(in_folder("directory"));
    write_bin(made, weights, LLMC_BIN_BF16);
    CHECK(same_file(made, bin5));
    write_hf(in_folder("again"), weights);
    weights_close(weights);
    char other[256];
    strcpy(other, in_folder("again/model.safetensors"));
    CHECK(same_file(in_folder("directory/model.safetensors"), other));
}

TEST(model_memory, "the weights reach a model, and come back, without its padding") {
    Weights *weights = weights_open(hf);
    GPT2 *model = gpt2_new(weights_config(weights), 1, false, false);
    weights_load(weights, model);
    for (int i = 0; i < model->table.count; i++) {
        const Tensor *tensor = &model->table.tensors[i];
        float *want = malloc(tensor->count * sizeof *want),
              *got = malloc(tensor->count * sizeof *got);
        weights_read_rows(weights, tensor, 0, tensor->shape[0], want);
        gpt2_read_weights(model, tensor, 0, got, tensor->count);
        CHECK(memcmp(want, got, tensor->count * sizeof *want) == 0, "%s", tensor->name);
        free(want), free(got);
    }
    gpt2_free(model);
    weights_close(weights);
}

TEST(positions, "a model for shorter sequences keeps all position embeddings, and updates only those it uses") {
    Weights *weights = weights_open(hf);
    Config config = *weights_config(weights);
    config.positions = config.seq_len, config.seq_len = 8;
    GPT2 *model = gpt2_new(&config, 1, false, true);
    CHECK(model->table.tensors[1].shape[0] == 24 && model->table.spans[1].count == 8 * 32);
    CHECK(model->table.spans[0].count == 97 * 32 && model->table.spans[2].count == 32);
    weights_load(weights, model);
    float want[24 * 32], got[24 * 32];
    weights_read_rows(weights, &weights_table(weights)->tensors[1], 0, 24, want);
    gpt2_read_weights(model, &model->table.tensors[1], 0, got, 24 * 32);
    CHECK(memcmp(want, got, sizeof want) == 0);
    Output *output = output_begin(in_folder("short.json"), OUTPUT_FILE);
    OutputFile *file = output_open(output, NULL);
    hf_config_write(file, &config, -1);
    output_close(file);
    output_commit(output);
    CHECK(hf_config_read(in_folder("short.json")).seq_len == 24);
    gpt2_free(model);
    weights_close(weights);
}

// ---------------------------------------------------------------------------------------------
// Directories made by hand: 1 layer, 2 heads, 4 channels, 3 positions, vocabulary 5

typedef struct {
    const char *prefix, *dtype; // of the tensors
    const char *skip;           // this tensor is left out
    const char *extra;          // more JSON entries; they begin where the others end
    size_t extra_bytes;
    bool tied; // lm_head.weight beside wte.weight, with the same values
} Made;

static const char good_config[] =
    "{\"model_type\":\"gpt2\",\"n_layer\":1,\"n_head\":2,\"n_embd\":4,"
    "\"n_positions\":3,\"vocab_size\":5%s}";
enum {
    MADE_ELEMENTS = 5 * 4 + 3 * 4 + 4 + 4 + 48 + 12 + 16 + 4 + 4 + 4 + 64 + 16 + 64 + 4 + 4 + 4
};

/* Writes folder/config.json (good_config with more members) and folder/model.safetensors. */
static const char *make_directory(const char *config, const char *members, const Made *made) {
    Config shape = {.layers = 1, .heads = 2, .channels = 4, .seq_len = 3, .vocab = 5};
    TensorTable table = tensor_table_new(&shape);
    mkdir(in_folder("made"), 0777);
    char text[8192];
    snprintf(text, sizeof text, config, members);
    write_string("made/config.json", text);

    const char *inner = strstr(made->prefix, "transformer."); // the head lies beside it
    int outer = (int)(inner ? inner - made->prefix : (long)strlen(made->prefix));
    size_t width = strcmp(made->dtype, "F32") == 0 ? 4 : 2, at = 0;
    int n = snprintf(text, sizeof text, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (int i = 0; i < table.count + made->tied; i++) {
        const Tensor *t = &table.tensors[i % table.count];
        bool head = i == table.count;
        if (made->skip && !head && strcmp(made->skip, t->name) == 0) continue;
        bool turn = t->transposed;
        n += snprintf(text + n, sizeof text - (size_t)n,
                      ",\"%.*s%s\":{\"dtype\":\"%s\",\"shape\":[%zu", head ? outer : (int)strlen(made->prefix),
                      made->prefix, head ? "lm_head.weight" : t->name, made->dtype, t->shape[turn]);
        if (t->dims == 2) n += snprintf(text + n, sizeof text - (size_t)n, ",%zu", t->shape[!turn]);
        n += snprintf(text + n, sizeof text - (size_t)n, "],\"data_offsets\":[%zu,%zu]}", at,
                      at + t->count * width);
        at += t->count * width;
    }
    n += snprintf(text + n, sizeof text - (size_t)n, "%s}", made->extra ? made->extra : "");
    FILE *file = fopen(in_folder("made/model.safetensors"), "wb");
    uint64_t length = (uint64_t)n;
    fwrite(&length, 8, 1, file);
    fwrite(text, 1, (size_t)n, file);
    for (size_t i = 0; i < at; i++) {
        size_t j = made->tied && i >= at - 20 * width ? i - (at - 20 * width) : i;
        fputc((int)(j * 7 % 61), file);
    }
    for (size_t i = 0; i < made->extra_bytes; i++) fputc(1, file);
    fclose(file);
    tensor_table_free(&table);
    return in_folder("made");
}

TEST(spellings, "with and without prefix, stored lm_head and masks; F16 and BF16") {
    char extra[256];
    size_t end = MADE_ELEMENTS * 2;
    snprintf(
        extra, sizeof extra,
        ",\"h.0.attn.bias\":{\"dtype\":\"U8\",\"shape\":[1,1,3,3],\"data_offsets\":[%zu,%zu]}"
        ",\"h.0.attn.masked_bias\":{\"dtype\":\"F16\",\"shape\":[],\"data_offsets\":[%zu,%zu]}",
        end, end + 9, end + 9, end + 11);
    const Made made[] = {{.prefix = "", .dtype = "F16", .extra = extra, .extra_bytes = 11},
                         {.prefix = "transformer.", .dtype = "BF16", .tied = true},
                         {.prefix = "", .dtype = "F32", .tied = true},
                         {.prefix = "module.", .dtype = "F32", .tied = true},
                         {.prefix = "_orig_mod.transformer.", .dtype = "F32", .tied = true},
                         {.prefix = "module._orig_mod.transformer.", .dtype = "F32"},
                         {.prefix = "_orig_mod.transformer.", .dtype = "BF16", .tied = true, .skip = "wte.weight"},
                         {.prefix = "", .dtype = "BF16", .tied = true, .skip = "wte.weight"}};
    for (int i = 0; i < 8; i++) {
        size_t n;
        float *values = all_weights(make_directory(good_config, "", &made[i]), &n);
        CHECK(n == MADE_ELEMENTS);
        if (i == 0) CHECK(values[1] == float_of_f16(14 | 21 << 8));
        if (i == 1 || i >= 6) CHECK(values[1] == float_of_bf16(14 | 21 << 8)); // of wte
        free(values);
    }
}

TEST(tensor_refusals, "missing, unknown, misshapen tensors and an untied head are named") {
    char extra[256];
    size_t end = MADE_ELEMENTS * 4;
    snprintf(extra, sizeof extra,
             ",\"h.0.crossattention.c_attn.bias\":{\"dtype\":\"F32\",\"shape\":[1],\"data_"
             "offsets\":[%zu,%zu]}",
             end, end + 4);
    Made made = {.prefix = "", .dtype = "F32", .extra = extra, .extra_bytes = 4};
    CHECK_FATAL(EXIT_INPUT, "\"h.0.crossattention.c_attn.bias\" is not part",
                weights_open(make_directory(good_config, "", &made)));
    snprintf(extra, sizeof extra,
             ",\"lm_head.weight\":{\"dtype\":\"F32\",\"shape\":[5,4],\"data_offsets\":[%zu,%zu]}",
             end, end + 80);
    made.extra_bytes = 80;
    CHECK_FATAL(EXIT_INPUT, "lm_head.weight differs from wte.weight",
                weights_open(make_directory(good_config, "", &made)));
    Made tied = {.prefix = "", .dtype = "F32", .tied = true};
    const char *untied = make_directory(good_config, "", &tied);
    char file[300];
    snprintf(file, sizeof file, "%s/model.safetensors", untied);
    int descriptor = open(file, O_WRONLY); // its last byte is of the head
    off_t last = lseek(descriptor, 0, SEEK_END) - 1;
    if (pwrite(descriptor, "\x7e", 1, last) != 1) abort();
    close(descriptor);
    CHECK_FATAL(EXIT_INPUT, "lm_head.weight differs from wte.weight", weights_open(untied));
    Made strange = {.prefix = "encoder.", .dtype = "F32"};
    CHECK_FATAL(EXIT_INPUT, "tensor \"wte.weight\" is missing",
                weights_open(make_directory(good_config, "", &strange)));
    Made lacking = {.prefix = "", .dtype = "F32", .skip = "h.0.ln_2.bias"};
    CHECK_FATAL(EXIT_INPUT, "has 15 tensors, but config.json's n_layer = 1 needs 16",
                weights_open(make_directory(good_config, "", &lacking)));
    snprintf(extra, sizeof extra,
             ",\"x\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[%zu,%zu]}", end - 16,
             end - 15);
    lacking.extra = extra, lacking.extra_bytes = 1;
    CHECK_FATAL(EXIT_INPUT, "\"h.0.ln_2.bias\" is missing",
                weights_open(make_directory(good_config, "", &lacking)));
    Made plain = {.prefix = "", .dtype = "F32"};
    CHECK_FATAL(
        EXIT_INPUT, "\"wpe.weight\" has shape (3, 4), expected (9, 4)",
        weights_open(make_directory("{\"n_layer\":1,\"n_head\":2,\"n_embd\":4,\"n_positions\":9,"
                                    "\"vocab_size\":5%s}",
                                    "", &plain)));
}

TEST(config_refusals,
     "a config.json that describes another model is refused by the setting's name") {
    static const struct {
        const char *config, *members, *text;
    } cases[] = {
        {good_config, ",\"model_type\":\"gpt2\"", "two members called \"model_type\""},
        {"{\"model_type\":\"llama\"%s}", "", "n_layer is nothing"},
        {good_config, ",\"activation_function\":\"relu\"", "activation_function is \"relu\""},
        {good_config, ",\"activation_function\":\"gelu\"", "activation_function is \"gelu\""},
        {good_config, ",\"activation_function\":3", "activation_function is \"a number\""},
        {good_config, ",\"layer_norm_epsilon\":1e-06", "layer_norm_epsilon is 1e-06"},
        {good_config, ",\"n_inner\":17", "n_inner must be null or 4 * n_embd = 16"},
        {good_config, ",\"scale_attn_weights\":false", "scale_attn_weights must be true"},
        {good_config, ",\"scale_attn_by_inverse_layer_idx\":true",
         "inverse_layer_idx must be false"},
        {good_config, ",\"add_cross_attention\":true", "add_cross_attention must be false"},
        {good_config, ",\"tie_word_embeddings\":false", "tie_word_embeddings must be true"},
        {"[%s]", "", "holds an array, expected an object"},
        {"<html>%s", "", "is not JSON: line 1, column 1"},
        {"{\"n_layer\":1,\"n_head\":3,\"n_embd\":4,\"n_positions\":3,\"vocab_size\":5%s}", "",
         "--heads must divide --channels"},
        {"{\"n_layer\":\"1\"%s}", "", "n_layer is a string, expected a whole number"},
        {"{\"n_layer\":1.0%s}", "", "n_layer is a number, expected a whole number"},
        {"{\"n_layer\":0%s}", "", "n_layer is a number, expected a whole number from 1"},
        {"{\"n_layer\":10000,\"n_head\":2,\"n_embd\":4,\"n_positions\":3,\"vocab_size\":5%s}", "",
         "needs 120004"},
    };
    Made plain = {.prefix = "", .dtype = "F32"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK_FATAL(EXIT_INPUT, cases[i].text,
                    weights_open(make_directory(cases[i].config, cases[i].members, &plain)));
    size_t n;
    free(all_weights(
        make_directory(good_config, ",\"n_inner\":16,\"activation_function\":\"gelu_new\"", &plain),
        &n));
}

/* The fp32 fixture with one header integer changed and `more` bytes at the end. */
static const char *changed_bin(int index, int32_t value, long more) {
    size_t bytes;
    unsigned char *data = load(bin3, &bytes);
    put(data + 4 * index, (uint32_t)value, 4);
    const char *path = write_bytes("changed.bin", data, bytes + (size_t)more);
    free(data);
    return path;
}

TEST(bin_refusals, "an llm.c file that lies about magic, version, shape or size is refused") {
    static const struct {
        int index;
        int32_t value;
        long more;
        const char *text;
    } cases[] = {{0, 20240520, 0, "is an llm.c file: a shard of GPT-2 tokens, but weights"},
                 {1, 1, 0, "version 1, expected 3 (float) or 5"},
                 {2, 25, 0, "but its header asks for"},
                 {2, -1, 0, "--seq-len must be"},
                 {3, 0, 0, "--vocab must be"},
                 {3, 129, 0, "padded vocabulary 128, expected at least"},
                 {4, INT32_MAX, 0, "--layers must be"},
                 {4, 10000, 0, "but its header asks for"},
                 {5, 5, 0, "--heads must divide"},
                 {5, 0, 0, "--heads must divide"},
                 {6, 1 << 20, 0, "but its header asks for"},
                 {7, 256, 0, "but its header asks for"},
                 {7, -128, 0, "padded vocabulary -128"},
                 {1, 3, -2, "but its header asks for"},
                 {1, 3, 2, "but its header asks for"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK_FATAL(EXIT_INPUT, cases[i].text,
                    weights_open(changed_bin(cases[i].index, cases[i].value, cases[i].more)));
    CHECK_FATAL(EXIT_INPUT, "is an HTML page, but weights are expected",
                weights_open(write_string("page", "<html>")));
    CHECK_FATAL(EXIT_INPUT, "too few for an llm.c model", weights_open(write_string("page", "?")));
    CHECK_FATAL(EXIT_INPUT, "no such file", weights_open(in_folder("nowhere")));
}

/* Writes the fixture's tensors first .. end as a file of their own, and their entries of a weight_map. */
static void write_part(SafeTensors *from, int first, int end, const char *folder, const char *name, FILE *map) {
    char path[128], header[8192];
    size_t at = 0;
    int n = snprintf(header, sizeof header, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (int i = first; i < end; i++) {
        const SafeTensor *t = safetensors_get(from, i);
        n += snprintf(header + n, sizeof header - (size_t)n, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[%zu", t->name,
                      t->dtype, t->shape[0]);
        if (t->dims == 2) n += snprintf(header + n, sizeof header - (size_t)n, ",%zu", t->shape[1]);
        n += snprintf(header + n, sizeof header - (size_t)n, "],\"data_offsets\":[%zu,%zu]}", at, at + t->bytes);
        at += t->bytes;
        fprintf(map, "%s\"%s\":\"%s\"", i ? "," : "", t->name, name);
    }
    n += snprintf(header + n, sizeof header - (size_t)n, "}");
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(in_folder(path), "wb");
    uint64_t length = (uint64_t)n;
    fwrite(&length, 8, 1, file);
    fwrite(header, 1, (size_t)n, file);
    for (int i = first; i < end; i++) {
        const SafeTensor *t = safetensors_get(from, i);
        fwrite(safetensor_at(from, t, 0, t->count), 1, t->bytes, file);
    }
    fclose(file);
}

/* A directory with the fixture in two files and an index; `map`: instead of the true weight_map. */
static const char *make_parts(const char *folder, const char *map_text) {
    char path[128], config[256], *map;
    size_t bytes;
    mkdir(in_folder(folder), 0777);
    snprintf(config, sizeof config, "{\"model_type\":\"gpt2\",\"n_layer\":2,\"n_head\":4,\"n_embd\":32,"
                                    "\"n_positions\":24,\"vocab_size\":97}");
    snprintf(path, sizeof path, "%s/config.json", folder);
    write_string(path, config);
    SafeTensors *from = safetensors_open("test/fixtures/hf_tiny/model.safetensors");
    FILE *out = open_memstream(&map, &bytes);
    fprintf(out, "{\"metadata\":{},\"weight_map\":{");
    write_part(from, 0, 11, folder, "model-00001-of-00002.safetensors", out);
    write_part(from, 11, safetensors_count(from), folder, "model-00002-of-00002.safetensors", out);
    fprintf(out, "}}");
    fclose(out);
    safetensors_close(from);
    snprintf(path, sizeof path, "%s/model.safetensors.index.json", folder);
    write_string(path, map_text ? map_text : map);
    free(map);
    return in_folder(folder);
}

TEST(parts, "a model in several files is the model in one; an index that lies is refused") {
    size_t n, m;
    float *whole = all_weights(hf, &n), *parts = all_weights(make_parts("parts", NULL), &m);
    CHECK(n == m && memcmp(whole, parts, n * sizeof *whole) == 0);
    write_string("parts/pytorch_model.bin", "beside it, as in many a repository");
    free(parts);
    parts = all_weights(in_folder("parts/model-00002-of-00002.safetensors"), &m); // stands for its directory
    CHECK(n == m && memcmp(whole, parts, n * sizeof *whole) == 0);
    free(parts), free(whole);
    static const struct {
        const char *map, *text;
    } lies[] = {
        {"{}", "weight_map is nothing"},
        {"{\"weight_map\":{}}", "weight_map is empty"},
        {"{\"weight_map\":{\"a\":3}}", "names no file of this directory for tensor \"a\""},
        {"{\"weight_map\":{\"a\":\"../x\"}}", "names no file of this directory for tensor \"a\""},
        {"{\"weight_map\":{\"a\":\"x.safetensors\"}}", "x.safetensors: no such file"},
        {"{\"weight_map\":{\"transformer.h.0.ln_1.bias\":\"model-00001-of-00002.safetensors\"}}",
         "has 11 tensors, but config.json's n_layer = 2 needs 28"},
        {"{\"weight_map\":{\"transformer.wte.weight\":\"model-00001-of-00002.safetensors\",\"b\":"
         "\"model-00002-of-00002.safetensors\"}}",
         "tensor \"transformer.wte.weight\" is not in model-00001-of-00002.safetensors"},
    };
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++)
        CHECK_FATAL(EXIT_INPUT, lies[i].text, weights_open(make_parts("lies", lies[i].map)));
}

TEST(pickles, "a directory with only a pickle is refused with advice") {
    mkdir(in_folder("pickle"), 0777);
    CHECK_FATAL(EXIT_INPUT, "no such file", weights_open(in_folder("pickle")));
    write_string("pickle/pytorch_model.bin", "x");
    CHECK_FATAL(EXIT_INPUT, "pickles are not read", weights_open(in_folder("pickle")));
}

int main(int argc, char **argv) { return test_main(argc, argv); }
