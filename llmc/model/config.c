/* config.c: the named shapes, and the tensor table: which tensors a model has, where they lie in the packed
 * buffers, how they start and which of them decay. Everything else that needs to know a tensor (files,
 * optimizer, logs) reads this table. */
#include "config.h"

#include "../base/edit_distance.h"
#include "../base/memory.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    Config config;
} named[] = {
    // GPT-2, Radford et al. 2019, table 2; the heads are those of the released models.
    {"gpt2", {.layers = 12, .heads = 12, .channels = 768, .seq_len = 1024, .vocab = 50257}},
    {"gpt2-medium", {.layers = 24, .heads = 16, .channels = 1024, .seq_len = 1024, .vocab = 50257}},
    {"gpt2-large", {.layers = 36, .heads = 20, .channels = 1280, .seq_len = 1024, .vocab = 50257}},
    {"gpt2-xl", {.layers = 48, .heads = 25, .channels = 1600, .seq_len = 1024, .vocab = 50257}},
    // For a laptop: the shape of nanoGPT's CPU recipe, bytes as tokens.
    {"tiny", {.layers = 4, .heads = 4, .channels = 128, .seq_len = 64, .vocab = 256}},
};

bool config_named(const char *name, Config *config) {
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++)
        if (strcmp(named[i].name, name) == 0) {
            *config = named[i].config;
            return true;
        }
    return false;
}

const char *config_nearest_name(const char *name) {
    char lower[64];
    size_t length = 0;
    for (; name[length] && length < sizeof lower - 1; length++)
        lower[length] = (char)tolower((unsigned char)name[length]);
    lower[length] = '\0';
    const char *nearest = NULL;
    int limit = slip_distance(lower);
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        int distance = edit_distance(lower, named[i].name);
        if (distance <= limit) nearest = named[i].name, limit = distance - 1;
    }
    return nearest;
}

const char *config_problem(const Config *c) {
    if (c->layers < 1 || c->layers > 10000) return "--layers must be 1 to 10000";
    if (c->channels < 1 || c->channels > 1 << 20) return "--channels must be 1 to 1048576";
    if (c->heads < 1 || c->channels % c->heads != 0) return "--heads must divide --channels";
    if (c->seq_len < 1 || c->seq_len > 1 << 24) return "--seq-len must be 1 to 16777216";
    if (c->vocab < 1 || c->vocab > INT_MAX - 127) return "--vocab must be 1 to 2147483520";
    return NULL;
}

int config_padded_vocab(const Config *config) { return (config->vocab + 127) / 128 * 128; }

// ---------------------------------------------------------------------------------------------
// The tensor table

/* The tensors of a block, in the order of BlockWeights; out and in count channels. */
static const struct {
    const char *name;
    int out, in; // in 0: one dimension
    Init init;
} block_rows[] = {
    {"ln_1.weight", 1, 0, INIT_ONE},
    {"ln_1.bias", 1, 0, INIT_ZERO},
    {"attn.c_attn.weight", 3, 1, INIT_NORMAL},
    {"attn.c_attn.bias", 3, 0, INIT_ZERO},
    {"attn.c_proj.weight", 1, 1, INIT_NORMAL_RESIDUAL},
    {"attn.c_proj.bias", 1, 0, INIT_ZERO},
    {"ln_2.weight", 1, 0, INIT_ONE},
    {"ln_2.bias", 1, 0, INIT_ZERO},
    {"mlp.c_fc.weight", 4, 1, INIT_NORMAL},
    {"mlp.c_fc.bias", 4, 0, INIT_ZERO},
    {"mlp.c_proj.weight", 1, 4, INIT_NORMAL_RESIDUAL},
    {"mlp.c_proj.bias", 1, 0, INIT_ZERO},
};

enum { BLOCK_ROWS = sizeof block_rows / sizeof block_rows[0] };

/* Tensors start at multiples of this many elements: 256 bytes in float, 128 in bf16, enough for any
 * vector access. */
enum { TENSOR_ALIGNMENT = 64 };

/* Appends a tensor of shape (out, in), or (out) when in is 0, with room for padded_out rows. Tensors with two
 * dimensions decay, vectors do not (chapter 27.1). */
static Tensor *append(TensorTable *table, Init init, size_t out, size_t in, size_t padded_out) {
    const char *what = "the tensor table";
    Tensor *tensor = &table->tensors[table->count++];
    size_t columns = in ? in : 1;
    size_t room = size_mul(padded_out, columns, what);
    *tensor = (Tensor){
        .dims = in ? 2 : 1,
        .shape = {out, in},
        .count = size_mul(out, columns, what),
        .offset = table->elements,
        .padded = size_add(room, TENSOR_ALIGNMENT - 1, what) / TENSOR_ALIGNMENT * TENSOR_ALIGNMENT,
        .init = init,
        .decayed = in != 0,
    };
    table->elements = size_add(table->elements, tensor->padded, what);
    table->parameters += tensor->count;
    return tensor;
}

/* Names are those of Hugging Face's checkpoints. */
static void name_tensor(Tensor *tensor, const char *name) {
    snprintf(tensor->name, sizeof tensor->name, "%s", name);
}

/* The twelve tensors of a block. Hugging Face keeps a linear layer's weight as (in, out): `transposed`. */
static void append_block(TensorTable *table, size_t C, int layer) {
    for (int i = 0; i < BLOCK_ROWS; i++) {
        size_t out = block_rows[i].out * C, in = block_rows[i].in * C;
        Tensor *tensor = append(table, block_rows[i].init, out, in, out);
        tensor->transposed = in != 0;
        snprintf(tensor->name, sizeof tensor->name, "h.%d.%s", layer, block_rows[i].name);
    }
}

TensorTable tensor_table_new(const Config *config) {
    TensorTable table = {0};
    int count = 2 + config->layers * BLOCK_ROWS + 2;
    size_t C = config->channels, V = config->vocab;
    table.tensors = memory_new(count, sizeof(Tensor), "the tensor table");
    table.spans = memory_new(count, sizeof(Span), "the tensor table");

    // wte is in the table once: the classifier uses the same matrix, so it is in one decay group, once.
    name_tensor(append(&table, INIT_NORMAL, V, C, config_padded_vocab(config)), "wte.weight");
    size_t positions = (size_t)config_positions(config);
    Tensor *wpe = append(&table, INIT_NORMAL, positions, C, positions);
    name_tensor(wpe, "wpe.weight");
    for (int l = 0; l < config->layers; l++) append_block(&table, C, l);
    name_tensor(append(&table, INIT_ONE, C, 0, C), "ln_f.weight");
    name_tensor(append(&table, INIT_ZERO, C, 0, C), "ln_f.bias");

    for (int i = 0; i < table.count; i++) {
        const Tensor *t = &table.tensors[i];
        table.spans[i] = (Span){.offset = t->offset, .count = t->count, .decayed = t->decayed};
    }
    table.spans[wpe - table.tensors].count = (size_t)config->seq_len * C; // no other position is trained, or decays
    return table;
}

void tensor_table_free(TensorTable *table) {
    free(table->tensors);
    free(table->spans);
    *table = (TensorTable){0};
}

DecayGroup tensor_table_group(const TensorTable *table, bool decayed) {
    DecayGroup group = {0, 0};
    for (int i = 0; i < table->count; i++)
        if (table->tensors[i].decayed == decayed) {
            group.tensors++;
            group.parameters += table->tensors[i].count;
        }
    return group;
}

/* The only place where the table can have a tensor of that name. It is found without a search, because all names of
 * a model are looked up, and models may have thousands of layers. */
static int place_of(const TensorTable *table, const char *name) {
    int layer, end = 0;
    if (sscanf(name, "h.%5d.%n", &layer, &end) == 1 && end > 0) {
        int last = table->count - 3;
        for (int i = 0; i < BLOCK_ROWS; i++)
            if (strcmp(name + end, block_rows[i].name) == 0 && layer >= 0 && 2 + layer * BLOCK_ROWS + i <= last)
                return 2 + layer * BLOCK_ROWS + i;
        return 0;
    }
    if (strncmp(name, "ln_f.", 5) == 0) return strcmp(name, "ln_f.bias") == 0 ? table->count - 1 : table->count - 2;
    return strcmp(name, "wpe.weight") == 0;
}

int tensor_table_find(const TensorTable *table, const char *name) {
    int place = place_of(table, name);
    return strcmp(table->tensors[place].name, name) == 0 ? place : -1;
}

const char *tensor_table_name_at(const TensorTable *table, size_t index) {
    int i = table->count - 1;
    while (i > 0 && table->tensors[i].offset > index) i--;
    return table->tensors[i].name;
}
