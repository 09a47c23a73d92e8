/* test_examples.c: files of multiple-choice examples: what they say, and each fault that they can have. */
#include "files.h"

#include "../llmc/eval/examples.h"

static Tokenizer *bytes;

static Examples *open_lines(const char *text, int vocab, int seq_len, int64_t most) {
    if (!bytes) bytes = tokenizer_open("bytes");
    ExamplesFor model = {bytes, vocab, seq_len};
    return examples_open(write_string("lines.jsonl", text), &model, most);
}

/* An llm.c file of these numbers, in uint16, which the header says are `count` examples. */
static const char *write_numbers(int32_t version, int32_t count, const int *numbers, size_t n) {
    unsigned char header[1024];
    int32_t ids[64];
    for (size_t i = 0; i < n; i++) ids[i] = numbers[i];
    llmc_header(header, 20240522, version, count);
    return write_tokens("examples.bin", header, sizeof header, ids, n, 2);
}

#define NUMBERS(...) (const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int)

static Examples *open_binary(const char *path, int vocab, int seq_len, int64_t most) {
    ExamplesFor model = {NULL, vocab, seq_len};
    return examples_open(path, &model, most);
}

#define REFUSED_LINES(text, lines) CHECK_FATAL(EXIT_INPUT, text, open_lines(lines, 256, 16, 0))
#define REFUSED(text, version, count, ...)                                                                \
    do {                                                                                                  \
        const char *path_ = write_numbers(version, count, NUMBERS(__VA_ARGS__));                          \
        CHECK_FATAL(EXIT_INPUT, text, open_binary(path_, 100, 16, 0));                                    \
    } while (0)

TEST(lines, "a line is an example: the context, then a space and each ending") {
    Examples *e = open_lines("{\"ind\": 4, \"ctx\": \"ab\", \"endings\": [\"c\", \"de\", \"\"], \"label\": 1}\n"
                             "\n"
                             "{\"label\": \"0\", \"endings\": [\"\\u00e9\", \"x\"], \"ctx\": \"q\"}",
                             256, 16, 0);
    static const int32_t wanted[] = {'a', 'b', ' ', 'c', ' ', 'd', 'e', ' ', 'q', ' ', 0xc3, 0xa9, ' ', 'x'};
    CHECK(e->count == 2 && e->tokens.count == 14, "%zu %zu", e->count, e->tokens.count);
    CHECK(memcmp(e->tokens.ids, wanted, sizeof wanted) == 0);
    CHECK(e->items[0].context == 2 && e->items[0].completions == 3 && e->items[0].label == 1);
    CHECK(e->items[0].tokens[0] == 2 && e->items[0].tokens[1] == 3 && e->items[0].tokens[2] == 1);
    CHECK(e->items[1].first == 8 && e->items[1].context == 1 && e->items[1].label == 0);
    CHECK(e->items[1].completions == 2 && e->items[1].tokens[0] == 3 && e->items[1].tokens[1] == 2);
    examples_close(e);
}

TEST(binary, "an llm.c file: numbers of tokens, and tokens") {
    Examples *e = open_binary(write_numbers(1, 2, NUMBERS(65535, 28, 0, 1, 2, 2, 7, 8, 1, 9, 3, 10, 11, 12, //
                                                          65535, 22, 1, 0, 2, 1, 5, 1, 6, 1, 7)),
                              100, 16, 0);
    static const int32_t wanted[] = {7, 8, 9, 10, 11, 12, 5, 6, 7};
    CHECK(e->count == 2 && e->tokens.count == 9 && memcmp(e->tokens.ids, wanted, sizeof wanted) == 0);
    CHECK(e->items[0].context == 2 && e->items[0].tokens[0] == 1 && e->items[0].tokens[1] == 3);
    CHECK(e->items[0].label == 1 && e->items[1].label == 0 && e->items[1].first == 6);
    examples_close(e);
}

TEST(bounded, "of a bounded number only so many are read: what follows may be anything") {
    Examples *e = open_lines("{\"ctx\": \"a\", \"endings\": [\"b\", \"c\"], \"label\": 1}\nnonsense\n", 256, 16, 1);
    CHECK(e->count == 1);
    examples_close(e);
}

TEST(length, "context and completion may be one token more than the context: the last is only predicted") {
    const char *line = "{\"ctx\": \"0123456\", \"endings\": [\"789\", \"a\"], \"label\": 0}"; // 7 + 4 tokens
    Examples *e = open_lines(line, 256, 10, 0);
    CHECK(e->count == 1);
    examples_close(e);
    CHECK_FATAL(EXIT_INPUT, "line 1: context and completion have 11 tokens, but the model's context is 9",
                open_lines(line, 256, 9, 0));
}

TEST(bad_lines, "each fault of a line is one message with its number") {
    REFUSED_LINES("line 1: ", "{\"ctx\": \"a\"");
    REFUSED_LINES("line 2: is not a JSON object", "{\"ctx\": \"a\", \"endings\": [\"b\", \"c\"], \"label\": 1}\n[1]\n");
    REFUSED_LINES("line 1: \"ctx\" is nothing", "{\"endings\": [\"b\", \"c\"], \"label\": 1}");
    REFUSED_LINES("line 1: \"ctx\" is a number", "{\"ctx\": 3, \"endings\": [\"b\", \"c\"], \"label\": 1}");
    REFUSED_LINES("must be a list of up to 16", "{\"ctx\": \"a\", \"endings\": \"b\", \"label\": 1}");
    REFUSED_LINES("must be a list of up to 16",
                  "{\"ctx\": \"a\", \"endings\": [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17], \"label\": 1}");
    REFUSED_LINES("\"endings\" is a number", "{\"ctx\": \"a\", \"endings\": [\"b\", 2], \"label\": 1}");
    REFUSED_LINES("fewer than two", "{\"ctx\": \"a\", \"endings\": [\"b\"], \"label\": 0}");
    REFUSED_LINES("label is 2, but 0 to 1", "{\"ctx\": \"a\", \"endings\": [\"b\", \"c\"], \"label\": 2}");
    REFUSED_LINES("label is -1, but 0 to 1", "{\"ctx\": \"a\", \"endings\": [\"b\", \"c\"], \"label\": -5}");
    REFUSED_LINES("label is 16, but 0 to 1", "{\"ctx\": \"a\", \"endings\": [\"b\", \"c\"], \"label\": 5000000000}");
    REFUSED_LINES("not a whole number", "{\"ctx\": \"a\", \"endings\": [\"b\", \"c\"], \"label\": \"\"}");
    REFUSED_LINES("not a whole number", "{\"ctx\": \"a\", \"endings\": [\"b\", \"c\"]}");
    REFUSED_LINES("the context is empty", "{\"ctx\": \"\", \"endings\": [\"b\", \"c\"], \"label\": 1}");
    REFUSED_LINES("has no example", "");
    REFUSED_LINES("neither JSON lines", "\n\n");
    REFUSED_LINES("neither JSON lines", "<html></html>");
    CHECK_FATAL(EXIT_INPUT, "line 1: has token 97, but the model's are 0 to 96",
                open_lines("{\"ctx\": \"a\", \"endings\": [\"b\", \"c\"], \"label\": 1}", 97, 16, 0));
    CHECK_FATAL(EXIT_INPUT, "tokenizer is not known",
                open_binary(write_string("x.jsonl", "{\"ctx\": \"a\"}"), 256, 16, 0));
}

TEST(bad_binaries, "each fault of an llm.c file is one message with the example's number") {
    REFUSED("version (header entry 1) is 2", 2, 1, 65535, 22, 1, 0, 2, 1, 5, 1, 6, 1, 7);
    CHECK_FATAL(EXIT_INPUT, "has no example", open_binary(write_numbers(1, 0, NULL, 0), 100, 16, 0));
    REFUSED("2 bytes follow the 0 examples", 1, 0, 1);
    REFUSED("example 1: does not begin as an example must", 1, 2, 65535, 22, 1, 0, 2, 1, 5, 1, 6, 1, 7);
    REFUSED("example 0: does not begin", 1, 1, 65534, 22, 1, 0, 2, 1, 5, 1, 6, 1, 7);
    REFUSED("example 0: does not begin", 1, 1, 65535, 24, 1, 0, 2, 1, 5, 1, 6, 1, 7);
    REFUSED("example 0: does not begin", 1, 1, 65535, 21, 1, 0, 2, 1, 5, 1, 6, 1, 7);
    REFUSED("example 0: does not begin", 1, 1, 65535, 2);
    REFUSED("example 0: ends in the middle", 1, 1, 65535, 20, 1, 0, 2, 1, 5, 1, 6, 1, 7);
    REFUSED("example 0: ends in the middle", 1, 1, 65535, 4);
    REFUSED("numbers after its last completion", 1, 1, 65535, 24, 1, 0, 2, 1, 5, 1, 6, 1, 7, 8);
    REFUSED("2 bytes follow the 1 examples", 1, 1, 65535, 22, 1, 0, 2, 1, 5, 1, 6, 1, 7, 8);
    REFUSED("more than 16 completions", 1, 1, 65535, 22, 1, 0, 17, 1, 5, 1, 6, 1, 7);
    REFUSED("label is 2", 1, 1, 65535, 22, 1, 2, 2, 1, 5, 1, 6, 1, 7);
    REFUSED("the context is empty", 1, 1, 65535, 20, 1, 0, 2, 0, 1, 6, 1, 7);
    REFUSED("a completion is empty", 1, 1, 65535, 20, 1, 0, 2, 1, 5, 0, 1, 7);
    REFUSED("has token 100, but the model's are 0 to 99", 1, 1, 65535, 22, 1, 0, 2, 1, 5, 1, 100, 1, 7);
    const char *cut = write_bytes("cut.bin", "\x8a\xd8\x34\x01\x01\0\0\0", 8);
    CHECK_FATAL(EXIT_INPUT, "has 8 bytes, but the header alone has 1024", open_binary(cut, 100, 16, 0));
    CHECK_FATAL(EXIT_INPUT, "no such file", open_binary(in_folder("nowhere"), 100, 16, 0));
}

int main(int argc, char **argv) {
    int code = test_main(argc, argv);
    tokenizer_free(bytes);
    return code;
}
