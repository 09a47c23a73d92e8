/* config.h: the shape of a GPT-2, and the table of its tensors that follows from it.
 * Next: block.h for what the tensors do. */
#ifndef LLMC_CONFIG_H
#define LLMC_CONFIG_H

#include "../ops.h"

typedef struct {
    int layers;   // L
    int heads;    // NH, divides channels
    int channels; // C
    int seq_len;  // T, tokens a sequence
    int vocab;    // V
    int positions; // that have an embedding, where these are more than T: those beyond it are kept as they are; else 0
} Config;

/* The shape called `name` (tiny, gpt2, gpt2-medium, gpt2-large, gpt2-xl) with V and T of its own;
 * returns false, leaving *config alone, when there is none. */
bool config_named(const char *name, Config *config);

/* The name of which `name` is probably a misspelling, or NULL. */
const char *config_nearest_name(const char *name);

/* NULL when the shape can be built, else why not, in words that name the option to change. */
const char *config_problem(const Config *config);

/* How many positions have an embedding: the rows of wpe. */
static inline int config_positions(const Config *config) {
    return config->positions > config->seq_len ? config->positions : config->seq_len;
}

/* V rounded up to a multiple of 128. Rows V.. of wte are 0 and stay 0: never trained, sampled, saved. */
int config_padded_vocab(const Config *config);

// The tensor table: the one source for allocation, decay groups, logs and files

typedef enum { INIT_ZERO, INIT_ONE, INIT_NORMAL, INIT_NORMAL_RESIDUAL } Init;

typedef struct {
    char name[32];     // Hugging Face's name, e.g. "h.0.attn.c_attn.weight"
    int dims;          // 1 or 2
    size_t shape[2];   // (out, in), or (n); without padding
    size_t count;      // elements without padding: a prefix of the padded tensor
    size_t offset;     // first element in the packed buffers
    size_t padded;     // elements it occupies there, alignment included
    Init init;
    bool decayed;      // dims >= 2
    bool transposed;   // a Conv1D in Hugging Face's files: stored (in, out) there
} Tensor;

typedef struct {
    Tensor *tensors; // wte, wpe, the 12 tensors of each block, ln_f's two
    int count;
    size_t elements;   // of a packed buffer: params, grads, m or v
    size_t parameters; // the sum of counts
    Span *spans;       // (count): the table as the backend sees it
} TensorTable;

TensorTable tensor_table_new(const Config *config);
void tensor_table_free(TensorTable *table);

/* Tensors and parameters of one decay group. */
typedef struct {
    int tensors;
    size_t parameters;
} DecayGroup;
DecayGroup tensor_table_group(const TensorTable *table, bool decayed);

/* The index of the tensor called `name`, or -1. */
int tensor_table_find(const TensorTable *table, const char *name);

/* The name of the tensor that holds packed element `index`. */
const char *tensor_table_name_at(const TensorTable *table, size_t index);

#endif
