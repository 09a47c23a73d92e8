/* seed_files.c: see seed_files.h. A model of one layer, one head, two channels, two positions and three tokens;
 * the formats' layouts are described where they are read. */
#include "seed_files.h"

#include <stdio.h>
#include <string.h>

enum { ROOM = 32 << 10 };

static size_t text(uint8_t *out, const char *words) {
    size_t size = strlen(words);
    memcpy(out, words, size);
    return size;
}

static uint8_t *number(uint8_t *at, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) *at++ = (uint8_t)(value >> 8 * i);
    return at;
}

/* Puts a first part, with its length before it, in front of `size` bytes that start at out + ROOM. */
static size_t two_parts(uint8_t *out, const char *first, const uint8_t *second, size_t size) {
    size_t length = strlen(first);
    uint8_t *at = number(out, length, 2);
    memcpy(at, first, length);
    memmove(at + length, second, size);
    return 2 + length + size;
}

// ---- JSON -------------------------------------------------------------------------------------

static size_t json(uint8_t *out) {
    return text(
        out, "{\"a\": [1, -2.5e3, true, false, null, {}], \"\\u00e9\\ud83d\\ude00\\n\": \"caf\xc3\xa9 \\\"\"}\n");
}

static size_t state(uint8_t *out) {
    return text(
        out,
        "{\n  \"format\":\"train_gpt2 checkpoint\",\n  \"version\":2,\n  \"step\":5,\n  \"updates\":5,\n"
        "  \"skipped\":0,\n  \"position\":40,\n  \"tokens\":640,\n  \"seconds\":0.25,\n  \"schedule_end\":20,\n"
        "  \"log\":{\"log.txt\":90,\"metrics.jsonl\":700},\n  \"data\":\"0123456789abcdef\",\n"
        "  \"settings\":{\"model\":\"tiny\",\"data\":[\"a.txt\"],\"lr\":0.001,\"exact\":true,\"out\":null},\n"
        "  \"files\":{\"model.safetensors\":{\"bytes\":704,\"sum\":\"fedcba9876543210\"}}");
}

// ---- models -----------------------------------------------------------------------------------

static const char config[] =
    "{\"model_type\":\"gpt2\",\"activation_function\":\"gelu_new\",\"n_layer\":1,\"n_head\":1,"
    "\"n_embd\":2,\"n_positions\":2,\"vocab_size\":3,\"layer_norm_epsilon\":1e-05}";

static const struct {
    const char *name;
    int rows, columns; // columns 0: a vector
} tensors[] = {{"wte.weight", 3, 2},
               {"wpe.weight", 2, 2},
               {"h.0.ln_1.weight", 2, 0},
               {"h.0.ln_1.bias", 2, 0},
               {"h.0.attn.c_attn.weight", 2, 6},
               {"h.0.attn.c_attn.bias", 6, 0},
               {"h.0.attn.c_proj.weight", 2, 2},
               {"h.0.attn.c_proj.bias", 2, 0},
               {"h.0.ln_2.weight", 2, 0},
               {"h.0.ln_2.bias", 2, 0},
               {"h.0.mlp.c_fc.weight", 2, 8},
               {"h.0.mlp.c_fc.bias", 8, 0},
               {"h.0.mlp.c_proj.weight", 8, 2},
               {"h.0.mlp.c_proj.bias", 2, 0},
               {"ln_f.weight", 2, 0},
               {"ln_f.bias", 2, 0}};

/* A safetensors file of these tensors, each of `width` bytes an element. */
static size_t safetensors(uint8_t *out, const char *dtype, const char *prefix, int width) {
    char *header = (char *)out + 8;
    int length = sprintf(header, "{\"__metadata__\":{\"format\":\"pt\"}"), data = 0;
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        int columns = tensors[i].columns, bytes = tensors[i].rows * (columns ? columns : 1) * width;
        length += sprintf(header + length, ",\"%s%s\":{\"dtype\":\"%s\",\"shape\":[%d", prefix, tensors[i].name,
                          dtype, tensors[i].rows);
        if (columns) length += sprintf(header + length, ",%d", columns);
        length += sprintf(header + length, "],\"data_offsets\":[%d,%d]}", data, data + bytes);
        data += bytes;
    }
    length += sprintf(header + length, "}");
    number(out, (uint64_t)length, 8);
    memset(header + length, 0, (size_t)data);
    return 8 + (size_t)length + (size_t)data;
}

static size_t weights(uint8_t *out) { return safetensors(out, "F32", "", 4); }

static size_t with_config(uint8_t *out, const char *dtype, const char *prefix, int width) {
    static uint8_t file[ROOM];
    return two_parts(out, config, file, safetensors(file, dtype, prefix, width));
}
static size_t model(uint8_t *out) { return with_config(out, "F32", "", 4); }
static size_t model_bf16(uint8_t *out) { return with_config(out, "BF16", "transformer.", 2); }

static size_t in_parts(uint8_t *out) {
    static uint8_t file[ROOM];
    static char map[ROOM];
    int length = sprintf(map, "{\"metadata\":{\"total_size\":352},\"weight_map\":{");
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        length += sprintf(map + length, "%s\"%s\":\"tokens.bin\"", i ? "," : "", tensors[i].name);
    sprintf(map + length, "}}");
    return two_parts(out, map, file, safetensors(file, "F32", "", 4));
}

static size_t llmc(uint8_t *out) {
    const uint32_t header[] = {20240326, 3, 2, 3, 1, 1, 2, 128};
    uint8_t *at = out;
    for (int i = 0; i < 256; i++) at = number(at, i < 8 ? header[i] : 0, 4);
    size_t elements = 128 * 2; // the padded vocabulary
    for (size_t i = 1; i < sizeof tensors / sizeof *tensors; i++)
        elements += (size_t)(tensors[i].rows * (tensors[i].columns ? tensors[i].columns : 1));
    memset(at, 0, elements * 4);
    return 1024 + elements * 4;
}

// ---- data -------------------------------------------------------------------------------------

static size_t shard(uint8_t *out) {
    uint8_t *at = out;
    for (int i = 0; i < 256; i++) at = number(at, i == 0 ? 20240520 : i == 1 ? 1 : i == 2 ? 10 : 0, 4);
    for (int i = 0; i < 10; i++) at = number(at, (uint64_t)i * 5000, 2);
    return (size_t)(at - out);
}

static size_t raw(uint8_t *out) {
    uint8_t *at = out;
    for (int i = 0; i < 40; i++) at = number(at, (uint64_t)i * 1000, 2);
    return (size_t)(at - out);
}

static size_t npy(uint8_t *out) {
    memset(out, ' ', 128);
    memcpy(out, "\x93NUMPY\1\0\x76\0{'descr': '<u2', 'fortran_order': False, 'shape': (10,), }", 68);
    out[127] = '\n';
    uint8_t *at = out + 128;
    for (int i = 0; i < 10; i++) at = number(at, (uint64_t)i * 5000, 2);
    return (size_t)(at - out);
}

static size_t plain_text(uint8_t *out) {
    return text(out, "To be, or not to be:\r\nthat is the qu\xc3\xa9stion.\n");
}

static size_t note(uint8_t *out) {
    return text(out, "{\n  \"tokenizer\":\"gpt2\",\n  \"tokenizer_identity\":\"fe1f24482c22c3ef\"\n}\n");
}

static size_t pickle(uint8_t *out) {
    static const char file[] = "\x80\4\x95\x20\0\0\0\0\0\0\0}\x94(\x8c\x0avocab_size\x94KA\x8c\4itos\x94}\x94u.";
    memcpy(out, file, sizeof file - 1);
    return sizeof file - 1;
}

static size_t lines(uint8_t *out) {
    return text(
        out, "{\"ind\": 1, \"ctx\": \"A man\", \"label\": 1, \"endings\": [\"sits.\", \"runs.\", \"is\", \"b\"]}\n"
             "{\"ctx\": \"Two\", \"label\": 0, \"endings\": [\"a\", \"b\"]}\n");
}

static size_t example_file(uint8_t *out) {
    uint8_t *at = out;
    const uint16_t example[] = {65535, 26, 0, 1, 2, 2, 7, 8, 2, 9, 10, 1, 11};
    for (int i = 0; i < 256; i++) at = number(at, i == 0 ? 20240522 : i == 1 || i == 2 ? 1 : i == 3 ? 26 : 0, 4);
    for (size_t i = 0; i < sizeof example / sizeof *example; i++) at = number(at, example[i], 2);
    return (size_t)(at - out);
}

// ---- tokenizers -------------------------------------------------------------------------------

/* The character that stands for a byte in GPT-2's alphabet, as UTF-8. */
static int letter(char *out, int byte, int *others) {
    int printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    int point = printable ? byte : 256 + (*others)++;
    if (point < 128) return out[0] = (char)point, 1;
    out[0] = (char)(0xc0 | point >> 6);
    out[1] = (char)(0x80 | (point & 63));
    return 2;
}

/* {"!": 33, ...}: 256 bytes and, with merges, two tokens more. */
static int vocabulary(char *out, int merged) {
    int length = sprintf(out, "{"), others = 0;
    for (int byte = 0; byte < 256; byte++) {
        char word[3];
        int bytes = letter(word, byte, &others);
        length += sprintf(out + length, "%s\"%s%.*s\":%d", byte ? "," : "", byte == '"' || byte == '\\' ? "\\" : "",
                          bytes, word, byte);
    }
    if (merged) length += sprintf(out + length, ",\"he\":256,\"<|endoftext|>\":257");
    return length + sprintf(out + length, "}");
}

static size_t vocab_and_merges(uint8_t *out) {
    static char vocab[ROOM];
    static const char merges[] = "#version: 0.2\nh e\n";
    vocabulary(vocab, 1);
    return two_parts(out, vocab, (const uint8_t *)merges, sizeof merges - 1);
}

static size_t tokenizer(uint8_t *out, int merged) {
    char *at = (char *)out;
    int length =
        sprintf(at,
                "{\"version\":\"1.0\",\"added_tokens\":[%s],\"normalizer\":null,\"pre_tokenizer\":{\"type\":"
                "\"ByteLevel\",\"add_prefix_space\":false},\"post_processor\":null,\"decoder\":{\"type\":"
                "\"ByteLevel\"},\"model\":{\"type\":\"BPE\",\"vocab\":",
                merged ? "{\"id\":257,\"content\":\"<|endoftext|>\",\"special\":true}" : "");
    length += vocabulary(at + length, merged);
    return (size_t)(length + sprintf(at + length, ",\"merges\":[%s]}}", merged ? "\"h e\"" : ""));
}
static size_t tokenizer_bytes(uint8_t *out) { return tokenizer(out, 0); }
static size_t tokenizer_bpe(uint8_t *out) { return tokenizer(out, 1); }

static size_t tokenizer_bin(uint8_t *out) {
    uint8_t *at = out;
    for (int i = 0; i < 256; i++) at = number(at, i == 0 ? 20240328 : i == 1 ? 2 : i == 2 ? 3 : i == 3 ? 2 : 0, 4);
    return 1024 + text(at, "\1a\2bc\15<|endoftext|>");
}

static size_t options(uint8_t *out) {
    return text(out,
                "--model\ntiny\n--lr=1e-3\n--data\na.txt\n--data=b.txt\n--steps\n10k\n--no-shuffle\n--nonfinite\n"
                "skip:3\n--schedule\nwsd\n--seed\n18446744073709551615\n--rank-timeout\n0");
}

const Seed seeds[] = {{"json", json},
                      {"state", state},
                      {"model", model},
                      {"model", model_bf16},
                      {"safetensors", weights},
                      {"index", in_parts},
                      {"llmc", llmc},
                      {"tokens", shard},
                      {"tokens", raw},
                      {"npy", npy},
                      {"text", plain_text},
                      {"tokenizer_json", tokenizer_bytes},
                      {"tokenizer_json", tokenizer_bpe},
                      {"vocab", vocab_and_merges},
                      {"tokenizer_bin", tokenizer_bin},
                      {"examples", lines},
                      {"examples", example_file},
                      {"pickle", pickle},
                      {"note", note},
                      {"options", options}};
const int seed_count = sizeof seeds / sizeof *seeds;
