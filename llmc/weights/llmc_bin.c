/* llmc_bin.c: llm.c's model files. The file orders tensors by kind first and by layer second, the tensor table by
 * layer first: table_index is the translation, and both reading and writing go through it. */
#include "llmc_bin.h"

#include "../base/error.h"
#include "half.h"
#include "../base/memory.h"
#include "../files/input.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// 256 numbers, 1024 bytes, of which the 8 named below are used
enum { HEADER_INTS = 256, HEADER_BYTES = 4 * HEADER_INTS, MAGIC = 20240326 };
enum { AT_MAGIC, AT_VERSION, AT_SEQ_LEN, AT_VOCAB, AT_LAYERS, AT_HEADS, AT_CHANNELS, AT_PADDED };

struct LlmcBin {
    File *file;
    Config config;
    int version;
    size_t padded_vocab; // as the file has it
    TensorTable table;
    size_t *begins; // (table.count): where in the file each tensor starts
};

/* Bytes of one number. */
static size_t element_bytes(int version) { return version == LLMC_BIN_FLOAT ? 4 : 2; }

/* The tensors of the table in the order of the file: position 0, 1, ... Within a block's tensors
 * the kind comes first, then the layer. */
static int table_index(const TensorTable *table, int layers, int position) {
    // wte and wpe stand before all blocks, ln_f's weight and bias after them. In between, with 12 layers, positions 2
    // .. 13 of the file are ln_1.weight of layers 0 .. 11, which are 2, 14, 26, ... in the table: 12 kinds a layer.
    if (position < 2 || position >= table->count - 2) return position;
    int kinds = (table->count - 4) / layers, kind = (position - 2) / layers,
        layer = (position - 2) % layers;
    return 2 + layer * kinds + kind;
}

// ---------------------------------------------------------------------------------------------
// Reading

/* One of the 256 numbers of the header. */
static int32_t header_int(File *file, int index) {
    return (int32_t)load_u32(file_at(file, 4 * (size_t)index, 4));
}

/* Magic, version and shape; the shape must be one that can be built. */
static void check_header(LlmcBin *bin, const char *path) {
    if (file_size(bin->file) < HEADER_BYTES)
        fatal(EXIT_INPUT, "%s: %zu bytes are too few for an llm.c model: its header alone has %d",
              path, file_size(bin->file), HEADER_BYTES);
    // the magic number before all others: in another kind of file these would mean nothing
    int magic = header_int(bin->file, AT_MAGIC);
    if (magic != MAGIC)
        fatal(EXIT_INPUT, "%s: magic number %d, expected %d: not an llm.c GPT-2 model", path, magic,
              MAGIC);
    bin->version = header_int(bin->file, AT_VERSION);
    if (bin->version != LLMC_BIN_FLOAT && bin->version != LLMC_BIN_BF16)
        fatal(EXIT_INPUT, "%s: version %d, expected %d (float) or %d (bfloat16)", path,
              bin->version, LLMC_BIN_FLOAT, LLMC_BIN_BF16);

    // the shape as the header has it, before anything is computed from it
    bin->config = (Config){.seq_len = header_int(bin->file, AT_SEQ_LEN),
                           .vocab = header_int(bin->file, AT_VOCAB),
                           .layers = header_int(bin->file, AT_LAYERS),
                           .heads = header_int(bin->file, AT_HEADS),
                           .channels = header_int(bin->file, AT_CHANNELS)};
    const char *bad = config_problem(&bin->config);
    if (bad) fatal(EXIT_INPUT, "%s: the header's shape cannot be built: %s", path, bad);
    // The file's own padding counts, not what this program would choose.
    int padded = header_int(bin->file, AT_PADDED);
    if (padded < bin->config.vocab)
        fatal(EXIT_INPUT, "%s: padded vocabulary %d, expected at least the vocabulary, %d", path,
              padded, bin->config.vocab);
    bin->padded_vocab = (size_t)padded;
}

/* Elements of a file of this shape: (Vp + T) C + L (12 C^2 + 13 C) + 2 C, which the limits of
 * config_problem keep far below 2^63. */
static size_t file_elements(const Config *config, size_t padded_vocab) {
    // 12 C^2: qkv 3, attention's projection 1, MLP 4 + 4. 13 C: two LayerNorms 2 + 2, biases 3 + 1 + 4 + 1.
    size_t C = (size_t)config->channels, T = (size_t)config->seq_len, L = (size_t)config->layers;
    return (padded_vocab + T) * C + L * (12 * C * C + 13 * C) + 2 * C;
}

bool llmc_bin_matches(const char *path) {
    File *file = file_open(path);
    // the size first: header_int would end the program for a shorter file
    bool matches = file_size(file) >= 4 && header_int(file, AT_MAGIC) == MAGIC;
    file_close(file);
    return matches;
}

LlmcBin *llmc_bin_open(const char *path) {
    LlmcBin *bin = memory_new(1, sizeof *bin, path);
    bin->file = file_open(path);
    check_header(bin, path);
    // The header gives the exact size, so a file that was cut is found before a tensor is read.
    size_t want =
        HEADER_BYTES + element_bytes(bin->version) * file_elements(&bin->config, bin->padded_vocab);
    if (file_size(bin->file) != want)
        fatal(EXIT_INPUT,
              "%s: has %zu bytes, but its header asks for %zu: cut, or not the right file", path,
              file_size(bin->file), want);

    bin->table = tensor_table_new(&bin->config);
    bin->begins = memory_new((size_t)bin->table.count, sizeof *bin->begins, "a list of tensors");
    // where each tensor begins, in the order of the file
    size_t at = HEADER_BYTES;
    for (int position = 0; position < bin->table.count; position++) {
        int index = table_index(&bin->table, bin->config.layers, position);
        const Tensor *tensor = &bin->table.tensors[index];
        bin->begins[index] = at;
        // only wte has more rows in the file than the model has: those that pad the vocabulary
        size_t rows = index == 0 ? bin->padded_vocab : tensor->shape[0];
        at += rows * tensor_columns(tensor) * element_bytes(bin->version);
    }
    return bin;
}

void llmc_bin_close(LlmcBin *bin) {
    if (!bin) return;
    file_close(bin->file);
    tensor_table_free(&bin->table);
    free(bin->begins);
    free(bin);
}

const Config *llmc_bin_config(const LlmcBin *bin) { return &bin->config; }

int llmc_bin_version(const LlmcBin *bin) { return bin->version; }

void llmc_bin_read_rows(LlmcBin *bin, const Tensor *tensor, size_t row, size_t rows, float *out) {
    int index = tensor_table_find(&bin->table, tensor->name);
    size_t size = element_bytes(bin->version), columns = tensor_columns(tensor),
           count = rows * columns;
    const unsigned char *data =
        file_at(bin->file, bin->begins[index] + row * columns * size, count * size);
    // floats lie in the file as in memory: little-endian
    if (bin->version == LLMC_BIN_FLOAT)
        memcpy(out, data, count * size);
    else
        for (size_t i = 0; i < count; i++) out[i] = float_of_bf16(load_u16(data + 2 * i));
}

// ---------------------------------------------------------------------------------------------
// Writing

/* A file being written, as the target of a copy. */
typedef struct {
    OutputFile *file;
    int version;
} Target;

/* A RowWriter into the file, rounded to bf16 where that is asked for. */
static void write_rows(void *to, const Tensor *tensor, size_t row, size_t rows, float *values) {
    const Target *target = to;
    size_t count = rows * tensor_columns(tensor);
    (void)row;
    if (target->version == LLMC_BIN_BF16) {
        unsigned char *bytes =
            (unsigned char *)values; // in place: 2 bytes are written where 4 were read
        for (size_t i = 0; i < count; i++) {
            // rounding may carry a finite float beyond the range: 3.4e38 is a float, but BF16 ends at 3.39e38
            uint16_t bits = bf16_of_float(values[i]);
            if (!isfinite(float_of_bf16(bits)))
                fatal(EXIT_INPUT, "%s has %g, which is beyond the largest BF16 number; leave --bf16 out", tensor->name,
                      values[i]);
            memcpy(bytes + 2 * i, &bits, sizeof bits);
        }
    }
    output_write(target->file, values, count * element_bytes(target->version));
}

/* The rows of wte that pad the vocabulary. */
static void write_padding(const Target *target, const Config *config) {
    size_t bytes = (size_t)config->channels * element_bytes(target->version);
    // one row of zeros, written Vp - V times
    void *zeros = memory_new(bytes, 1, "a row of padding");
    for (int row = config->vocab; row < config_padded_vocab(config); row++)
        output_write(target->file, zeros, bytes);
    free(zeros);
}

void llmc_bin_write(OutputFile *file, const Config *config, int version, RowReader read,
                    void *context) {
    int32_t header[HEADER_INTS] = {[AT_MAGIC] = MAGIC,
                                   [AT_VERSION] = version,
                                   [AT_SEQ_LEN] = config_positions(config),
                                   [AT_VOCAB] = config->vocab,
                                   [AT_LAYERS] = config->layers,
                                   [AT_HEADS] = config->heads,
                                   [AT_CHANNELS] = config->channels,
                                   [AT_PADDED] = config_padded_vocab(config)};
    // of the 256 numbers those without a name are 0
    output_write(file, header, sizeof header);
    Target target = {file, version};
    TensorTable table = tensor_table_new(config);
    for (int position = 0; position < table.count; position++) {
        int index = table_index(&table, config->layers, position);
        tensor_copy(&table.tensors[index], read, context, write_rows, &target);
        // right behind wte's rows: all tensors after it begin that much later
        if (index == 0) write_padding(&target, config);
    }
    tensor_table_free(&table);
}
