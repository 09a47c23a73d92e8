/* hf_config.c: config.json. Only settings that change what is computed are read. A value that this project's GPT-2
 * does not support is refused by its name: to ignore it would compute another model. */
#include "hf_config.h"

#include "../base/error.h"
#include "../files/input.h"
#include "../files/json_read.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 20 }; // of a config.json; those of real models have a few thousand

/* A size of the shape: a whole number from 1. */
static int read_size(const Json *root, const char *path, const char *name) {
    const Json *value = json_member(root, name);
    int64_t n;
    // a size must fit an int; whether the sizes fit together, config_problem says later
    if (!json_integer(value, 1, INT32_MAX, &n))
        fatal(EXIT_INPUT, "%s: %s is %s, expected a whole number from 1", path, name,
              json_kind(value));
    return (int)n;
}

/* A switch for which this project's GPT-2 supports only one value. */
static void check_switch(const Json *root, const char *path, const char *name, bool want) {
    const Json *value = json_member(root, name);
    // a switch that is missing has the default of transformers, which is the supported value for each
    if (value && value->kind != (want ? JSON_TRUE : JSON_FALSE))
        fatal(EXIT_INPUT, "%s: %s must be %s: other models are not supported", path, name,
              want ? "true" : "false");
}

/* The tanh form of GELU, under either of its names. */
static void check_activation(const Json *root, const char *path) {
    const Json *value = json_member(root, "activation_function");
    char shown[JSON_SHOWN];
    // missing: transformers takes gelu_new. Plain "gelu" is the exact form with erf, which gives other numbers.
    if (value && !json_is(value, "gelu_new") && !json_is(value, "gelu_pytorch_tanh"))
        fatal(EXIT_INPUT, "%s: activation_function is \"%s\", but only gelu_new is supported", path,
              value->kind == JSON_STRING ? json_shown(value->text, shown) : json_kind(value));
}

/* All that would change what is computed. */
static void check_settings(const Json *root, const char *path, const Config *config) {
    char shown[JSON_SHOWN];
    const Json *type = json_member(root, "model_type");
    if (type && !json_is(type, "gpt2"))
        fatal(EXIT_INPUT, "%s: model_type is \"%s\", but only gpt2 is supported", path,
              type->kind == JSON_STRING ? json_shown(type->text, shown) : json_kind(type));
    check_activation(root, path);

    // LayerNorm adds epsilon to the variance: with another value all activations differ a little.
    const Json *epsilon = json_member(root, "layer_norm_epsilon");
    if (epsilon && (epsilon->kind != JSON_NUMBER || epsilon->number != LAYERNORM_EPS))
        fatal(EXIT_INPUT, "%s: layer_norm_epsilon is %g, but only %g is supported", path,
              epsilon->number, LAYERNORM_EPS);
    // the width of the MLP's hidden layer; null and a missing one mean 4 C
    const Json *inner = json_member(root, "n_inner");
    int64_t four = 4 * (int64_t)config->channels, n;
    if (inner && inner->kind != JSON_NULL && !json_integer(inner, four, four, &n))
        fatal(EXIT_INPUT,
              "%s: n_inner must be null or 4 * n_embd = %lld: other models are not supported", path,
              (long long)four);

    // Attention scores are divided by the root of a head's size, and not by the layer's number as well. There is no
    // encoder to attend to. One matrix is both token embedding and output.
    check_switch(root, path, "scale_attn_weights", true);
    check_switch(root, path, "scale_attn_by_inverse_layer_idx", false);
    check_switch(root, path, "add_cross_attention", false);
    check_switch(root, path, "tie_word_embeddings", true);
}

Config hf_config_read(const char *path) {
    File *file = file_open(path);
    char problem[JSON_PROBLEM];
    // before it is parsed: weights that were named config.json by mistake may have gigabytes
    if (file_size(file) > MOST_BYTES)
        fatal(EXIT_INPUT, "%s: has %zu bytes, expected at most %d; is it the right file?", path, file_size(file),
              MOST_BYTES);
    const Json *root =
        json_read((const char *)file_at(file, 0, file_size(file)), file_size(file), problem);
    if (!root) fatal(EXIT_INPUT, "%s: is not JSON: %s", path, problem);
    if (root->kind != JSON_OBJECT)
        fatal(EXIT_INPUT, "%s: holds %s, expected an object", path, json_kind(root));

    // older files call it n_ctx
    bool positions = json_member(root, "n_positions") != NULL;
    Config config = {.layers = read_size(root, path, "n_layer"),
                     .heads = read_size(root, path, "n_head"),
                     .channels = read_size(root, path, "n_embd"),
                     .seq_len = read_size(root, path, positions ? "n_positions" : "n_ctx"),
                     .vocab = read_size(root, path, "vocab_size")};
    // the shape before the other settings: these are compared with products such as 4 C
    const char *bad = config_problem(&config);
    if (bad) fatal(EXIT_INPUT, "%s: not a shape that can be built: %s", path, bad);
    check_settings(root, path, &config);
    json_free(root);
    file_close(file);
    return config;
}

void hf_config_write(OutputFile *file, const Config *config, int32_t end_of_text) {
    // Dropout is written as 0, because a missing rate means 0.1 to transformers. n_positions counts all rows of wpe
    // that are saved, also those beyond the sequences that were trained.
    output_print(file,
                 "{\n"
                 "  \"architectures\": [\"GPT2LMHeadModel\"],\n"
                 "  \"model_type\": \"gpt2\",\n"
                 "  \"dtype\": \"float32\",\n"
                 "  \"n_layer\": %d,\n"
                 "  \"n_head\": %d,\n"
                 "  \"n_embd\": %d,\n"
                 "  \"n_positions\": %d,\n"
                 "  \"vocab_size\": %d,\n"
                 "  \"activation_function\": \"gelu_new\",\n"
                 "  \"layer_norm_epsilon\": 1e-05,\n"
                 "  \"tie_word_embeddings\": true,\n"
                 "  \"resid_pdrop\": 0.0,\n"
                 "  \"embd_pdrop\": 0.0,\n"
                 "  \"attn_pdrop\": 0.0,\n",
                 config->layers, config->heads, config->channels, config_positions(config), config->vocab);
    // a vocabulary may have no such token: where the setting is missing, transformers takes GPT-2's 50256
    if (end_of_text >= 0)
        output_print(file, "  \"bos_token_id\": %d,\n  \"eos_token_id\": %d\n}\n", (int)end_of_text, (int)end_of_text);
    else
        output_print(file, "  \"bos_token_id\": null,\n  \"eos_token_id\": null\n}\n");
}
