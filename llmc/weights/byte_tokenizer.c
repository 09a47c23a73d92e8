/* byte_tokenizer.c: see byte_tokenizer.h. */
#include "byte_tokenizer.h"

#include "../files/json_write.h"

#include <stdlib.h>

/* The character that stands for a byte in GPT-2's vocabularies (Radford et al. 2019, encoder.py): itself
 * where it is printable Latin-1, else the next free one from U+0100 on. */
static int character_of(int byte) {
    int next = 0x100;
    for (int b = 0; b < 256; b++) {
        bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        int character = printable ? b : next++;
        if (b == byte) return character;
    }
    return 0;
}

static void put_byte_level(JsonWriter *json, const char *name) {
    json_open(json, name, '{');
    json_put_string(json, "type", "ByteLevel");
    json_put_json(json, "add_prefix_space", "false");
    json_put_json(json, "trim_offsets", "true");
    json_put_json(json, "use_regex", "false");
    json_close(json, '}');
}

static void put_vocabulary(JsonWriter *json) {
    json_open(json, "vocab", '{');
    for (int byte = 0; byte < 256; byte++) {
        int c = character_of(byte); // below U+0800: one or two bytes of UTF-8
        char utf8[3] = {(char)c, 0, 0};
        if (c >= 0x80) utf8[0] = (char)(0xC0 | c >> 6), utf8[1] = (char)(0x80 | (c & 0x3F));
        json_put_integer(json, utf8, byte);
    }
    json_close(json, '}');
}

void byte_tokenizer_write(OutputFile *file) {
    JsonWriter json = {.lines = true};
    json_open(&json, NULL, '{');
    json_put_string(&json, "version", "1.0");
    json_put_json(&json, "truncation", "null");
    json_put_json(&json, "padding", "null");
    json_put_json(&json, "added_tokens", "[]");
    json_put_json(&json, "normalizer", "null");
    put_byte_level(&json, "pre_tokenizer");
    json_put_json(&json, "post_processor", "null");
    put_byte_level(&json, "decoder");
    json_open(&json, "model", '{');
    json_put_string(&json, "type", "BPE");
    put_vocabulary(&json);
    json_put_json(&json, "merges", "[]");
    json_close(&json, '}');
    json_close(&json, '}');
    output_print(file, "%s\n", json.text);
    free(json.text);
}

void byte_tokenizer_write_config(OutputFile *file, int seq_len) {
    output_print(file,
                 "{\n"
                 "  \"tokenizer_class\": \"PreTrainedTokenizerFast\",\n"
                 "  \"model_max_length\": %d,\n"
                 "  \"clean_up_tokenization_spaces\": false\n"
                 "}\n",
                 seq_len);
}
