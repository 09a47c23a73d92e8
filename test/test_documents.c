/* test_documents.c: inputs as documents: JSON lines are read as the grammar says or refused with their line, a
 * text is the same from wherever reading begins, and tokenizers' files are read or refused by what is wrong in
 * them. */
#include "../llmc/base/error.h"
#include "../llmc/base/memory.h"
#include "../llmc/data/shard.h"
#include "../llmc/data/shard_writer.h"
#include "../llmc/text/encode_documents.h"
#include "../llmc/text/json_lines.h"
#include "files.h"
#include "test.h"

/* All documents of an input one after the other, a | behind each. */
static const char *texts_of(const char *path, const char *field) {
    static char all[4096];
    Tokenizer *bytes = tokenizer_open("bytes");
    Documents *documents = documents_open(&path, 1, field, bytes, false);
    SegmentBatch batch = {0};
    size_t used = 0;
    while (documents_read(documents, &batch, 1000))
        for (int i = 0; i < batch.count; i++) {
            if (batch.segments[i].begins && used > 0) all[used++] = '|';
            memcpy(all + used, batch.text + batch.segments[i].first, batch.segments[i].bytes);
            used += batch.segments[i].bytes;
        }
    all[used] = '\0';
    segment_batch_free(&batch);
    documents_close(documents);
    tokenizer_free(bytes);
    return all;
}

static const char *json_texts(const char *lines) { return texts_of(write_string("lines", lines), "text"); }

TEST(json, "the text of each object, wherever it stands and however it is escaped") {
    CHECK(strcmp(json_texts("{\"text\":\"a\"}\n\n {\"text\" : \"b\" }\r\n"), "a|b") == 0);
    CHECK(strcmp(json_texts("\xef\xbb\xbf{\"text\":\"a\"}{\"text\":\"b\"}"), "a|b") == 0);
    CHECK(strcmp(json_texts("{\"x\":{\"text\":[\"]\",{}]},\"y\":-1.5e3,\"text\":\"a\",\"z\":[[],true,null]}"),
                 "a") == 0);
    CHECK(strcmp(json_texts("{\"t\\u0065xt\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}"), "\"\\/\b\f\n\r\t") == 0);
    CHECK(strcmp(json_texts("{\"text\":\"\\u00e9\\u4E2D\\ud83d\\ude00\"}"),
                 "\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80") == 0);
    CHECK(strcmp(json_texts("{\"text\":\"\\ud83dx\\ude00\"}"), "\xef\xbf\xbdx\xef\xbf\xbd") == 0, "half a pair");
    CHECK(strcmp(json_texts("{\"text\":\"\\ud83d\\u0041\"}"), "\xef\xbf\xbd"
                                                              "A") == 0,
          "half a pair, then a letter");
    CHECK(strcmp(json_texts("{\"text\":\"\\ud83d\\ud83d\\ude00\"}"), "\xef\xbf\xbd\xf0\x9f\x98\x80") == 0);
}

TEST(json_refused, "what is not JSON, or has no text, is refused with its line") {
    static const struct {
        const char *lines, *problem;
    } cases[] = {
        {"{\"text\":\"a\"}\n[1]", "line 2: an object is expected"},
        {"{\"text\":\"a\"}\nx", "line 2: an object is expected"},
        {"{}", "line 1: the object has no field \"text\""},
        {"{\"a\":1}", "line 1: the object has no field \"text\""},
        {"{\"text\":null}", "line 1: field \"text\" is not a string"},
        {"{\"text\":\"a\",\"text\":\"b\"}", "twice"},
        {"{\"text\":\"a\" \"b\":1}", "a comma or a closing bracket"},
        {"{\"text\":\"a\",}", "a name in quotes is expected"},
        {"{\"a\":1,,\"text\":\"a\"}", "a name in quotes is expected"},
        {"{\"a\" 1}", "a colon is expected"},
        {"{\"a\":tru,\"text\":\"a\"}", "a value is expected"},
        {"{\"a\":,\"text\":\"a\"}", "a value is expected"},
        {"{\"a\":[1 2],\"text\":\"a\"}", "a comma or a closing bracket"},
        {"{\"a\":[1,],\"text\":\"a\"}", "a value is expected"},
        {"{\"text\":\"a\nb\"}", "a control character in a string"},
        {"{\"text\":\"\\x\"}", "a backslash before a character"},
        {"{\"text\":\"\\u12g4\"}", "four hexadecimal digits"},
        {"{\"text\":\"a", "the file ends inside a string"},
        {"{\"text\":\"a\"", "a comma or a closing bracket"},
        {"{\"text\"", "a colon is expected"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_FATAL(EXIT_INPUT, cases[i].problem, json_texts(cases[i].lines));
    char deep[200] = "{\"a\":";
    memset(deep + 5, '[', 70);
    CHECK_FATAL(EXIT_INPUT, "more than 64 deep", json_texts(deep));
}

typedef struct {
    TokenList all;
    const Tokenizer *tokenizer;
    DocumentPlace places[64];
    size_t starts[64]; // how many ids come before
    int count;
} Collected;

static void collect(void *context, const Segment *segment, const int32_t *ids, size_t count, uint64_t invalid) {
    Collected *c = context;
    (void)invalid;
    if (segment->can_begin && c->count < 64) {
        c->places[c->count] = segment->place;
        c->starts[c->count++] = c->all.count;
    }
    token_list_reserve(&c->all, count + 1);
    if (segment->begins) c->all.ids[c->all.count++] = tokenizer_end_of_text(c->tokenizer);
    if (count) memcpy(c->all.ids + c->all.count, ids, count * sizeof *ids);
    c->all.count += count;
}

static Collected encode_from(const Tokenizer *tokenizer, const char *const *paths, int count,
                             const DocumentPlace *place) {
    Collected c = {.tokenizer = tokenizer};
    Documents *documents = documents_open(paths, count, NULL, tokenizer, false);
    documents_seek(documents, place);
    encode_documents(documents, tokenizer, false, 1, collect, NULL, &c);
    documents_close(documents);
    return c;
}

/* A megabyte of words; every seventh without an end to cut at for a while. */
static const char *write_words(const char *name) {
    size_t bytes = 0, most = 1 << 20;
    char *text = memory_new(most + 100, 1, "test");
    for (unsigned i = 0; bytes < most; i++) {
        bytes += (size_t)sprintf(text + bytes, i % 7 ? " word%u's" : "\n\n%u", i * 2654435761u % 1000);
        if (i % 50000 == 49999)
            memset(text + bytes, 'x', most - bytes < 300000 ? most - bytes : 300000),
                bytes += most - bytes < 300000 ? most - bytes : 300000;
    }
    const char *path = write_bytes(name, text, most);
    free(text);
    return path;
}

TEST(places, "reading that begins again at any place that was offered gives the ids from there on") {
    Tokenizer *tokenizer = tokenizer_open("gpt2");
    const char *paths[3] = {write_words("a.txt"),
                            write_string("b.jsonl", "{\"text\":\"one\"}\n{\"text\":\"two\"}\n"),
                            write_string("c.txt", "three")};
    Collected whole = encode_from(tokenizer, paths, 3, &(DocumentPlace){0});
    CHECK(whole.count > 6, "%d places", whole.count);
    for (int i = 0; i < whole.count; i++) {
        Collected rest = encode_from(tokenizer, paths, 3, &whole.places[i]);
        size_t left = whole.all.count - whole.starts[i];
        CHECK(rest.all.count == left &&
                  memcmp(rest.all.ids, whole.all.ids + whole.starts[i], left * sizeof *rest.all.ids) == 0,
              "place %d: %zu ids, wanted %zu", i, rest.all.count, left);
        free(rest.all.ids);
    }
    free(whole.all.ids);
    tokenizer_free(tokenizer);
}

TEST(endless_word, "a word longer than 16 MiB is cut, and nothing of it is lost") {
    Tokenizer *tokenizer = tokenizer_open("gpt2");
    size_t bytes = (20u << 20) + 3;
    char *text = memory_new(bytes, 1, "test");
    memset(text, 'a', bytes);
    const char *path = write_bytes("endless.txt", text, bytes);
    Collected c = encode_from(tokenizer, &path, 1, &(DocumentPlace){0});
    size_t length, sum = 0;
    for (size_t i = 1; i < c.all.count; i++) sum += (tokenizer_bytes(tokenizer, c.all.ids[i], &length), length);
    CHECK(sum == bytes && c.count == 2, "%zu bytes in %d segments", sum, c.count);
    free(c.all.ids);
    free(text);
    tokenizer_free(tokenizer);
}

static void read_while(const char *path, off_t size) {
    ByteStream *stream = byte_stream_open(path);
    size_t there;
    byte_stream_peek(stream, 10, &there);
    if (truncate(path, size) != 0) abort();
    byte_stream_peek(stream, 3 << 20, &there);
}

TEST(changes, "a file that is cut or that grows while it is read is refused") {
    char *large = memory_new(1 << 20, 1, "test");
    const char *path = write_bytes("changes", large, 1 << 20);
    CHECK_FATAL(EXIT_INPUT, "had 1048576 bytes when it was opened, but fewer now", read_while(path, 600000));
    write_bytes("changes", large, 1 << 20);
    CHECK_FATAL(EXIT_INPUT, "had 1048576 bytes when it was opened, but more now", read_while(path, 2000000));
    free(large);
}

static void no_note(void *context, int shards, uint64_t tokens) { (void)context, (void)shards, (void)tokens; }

TEST(wide_shards, "ids of a vocabulary beyond 65,536 are written as uint32 and read back") {
    const char *directory = in_folder("wide");
    if (mkdir(directory, 0777) != 0) abort();
    ShardPlan plan = {.directory = directory, .vocab = 70000, .shard_tokens = 4, .val_tokens = 3};
    ShardWriter *writer = shard_writer_new(&plan, 0, 0, no_note, NULL);
    int32_t ids[9] = {1, 65535, 65536, 69999, 5, 6, 7, 8, 9}, got[4] = {0};
    int shards;
    shard_writer_add(writer, ids, 2);
    shard_writer_add(writer, ids + 2, 7);
    CHECK(shard_writer_finish(writer, &shards) == 3 && shards == 3);
    static const struct {
        const char *name;
        uint64_t first, count;
    } files[] = {{"wide/tokens_val_000000.bin", 0, 3},
                 {"wide/tokens_train_000001.bin", 3, 4},
                 {"wide/tokens_train_000002.bin", 7, 2}};
    for (int i = 0; i < 3; i++) {
        Shard shard = shard_open(in_folder(files[i].name), DATA_AUTO);
        CHECK(shard.type == TOKEN_U32 && shard.tokens == files[i].count, "%s: %d", files[i].name,
              (int)shard.tokens);
        shard_read(&shard, 0, (size_t)files[i].count, 70000, got);
        CHECK(memcmp(got, ids + files[i].first, (size_t)files[i].count * sizeof *ids) == 0, "%s", files[i].name);
        shard_close(&shard);
    }
    CHECK(shard_writer_finds(directory) == 3);
    shard_writer_remove(directory);
    CHECK(shard_writer_finds(directory) == 0);
    shard_writer_free(writer);
}

// ---------------------------------------------------------------------------------------------
// Tokenizer files

/* A tokenizer.json of all bytes, one merge and the end of text, with `part` replaced by `other`. */
static const char *write_json(const char *part, const char *other) {
    char *text = memory_new(20000, 1, "test"), *at = text;
    at += sprintf(
        at, "{\"normalizer\": null, \"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
            "\"use_regex\": true}, \"post_processor\": null, \"decoder\": {\"type\": \"ByteLevel\"},\n"
            "\"added_tokens\": [{\"id\": 257, \"content\": \"<|endoftext|>\", \"special\": true}],\n"
            "\"model\": {\"type\": \"BPE\", \"dropout\": null, \"vocab\": {");
    int other_character = 0x100;
    for (int b = 0; b < 256; b++) {
        bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        at += sprintf(at, "\"\\u%04x\": %d, ", printable ? b : other_character, b);
        other_character += !printable;
    }
    at += sprintf(at, "\"ab\": 256}, \"merges\": [[\"a\", \"b\"]]}}\n");
    char *found = strstr(text, part);
    if (!found) abort();
    char *made = memory_new(20000, 1, "test");
    snprintf(made, 20000, "%.*s%s%s", (int)(found - text), text, other, found + strlen(part));
    const char *path = write_string("tokenizer.json", made);
    free(made), free(text);
    return path;
}

TEST(tokenizer_json, "a tokenizer.json of byte-level BPE is read, in both spellings of merges") {
    const char *spellings[] = {"[[\"a\", \"b\"]]", "[\"a b\"]"};
    for (int i = 0; i < 2; i++) {
        Tokenizer *t = tokenizer_open(write_json("[[\"a\", \"b\"]]", spellings[i]));
        TokenList list = {0};
        tokenizer_encode(t, "abba<|endoftext|>", 17, true, &list);
        CHECK(list.count == 4 && list.ids[0] == 256 && list.ids[1] == 'b' && list.ids[3] == 257);
        CHECK(tokenizer_vocab(t) == 258 && tokenizer_end_of_text(t) == 257);
        free(list.ids);
        tokenizer_free(t);
    }
}

TEST(tokenizer_json_refused, "what would give other ids in a tokenizer.json is refused by name") {
    static const struct {
        const char *part, *other, *problem;
    } cases[] = {
        {"\"normalizer\": null", "\"normalizer\": {\"type\": \"NFC\"}", "normalizer is NFC"},
        {"\"pre_tokenizer\": {\"type\": \"ByteLevel\"", "\"pre_tokenizer\": {\"type\": \"Metaspace\"",
         "pre_tokenizer is Metaspace"},
        {"\"add_prefix_space\": false", "\"add_prefix_space\": true", "pre_tokenizer.add_prefix_space is true"},
        {"\"use_regex\": true", "\"use_regex\": false", "pre_tokenizer.use_regex is false"},
        {"\"post_processor\": null", "\"post_processor\": {\"type\": \"TemplateProcessing\"}",
         "post_processor is TemplateProcessing"},
        {"\"type\": \"BPE\"", "\"type\": \"Unigram\"", "model.type is Unigram"},
        {"\"dropout\": null", "\"dropout\": 0.1", "model.dropout is 0.1"},
        {"\"dropout\": null", "\"ignore_merges\": true", "model.ignore_merges is true"},
        {"<|endoftext|>", "<pad>", "an added token is <pad>"},
        {"\"ab\": 256", "\"ac\": 256", "its result is not a token"},
        {"\"ab\": 256", "\"ab\": 97", "another token has it too"},
        {"[\"a\", \"b\"]", "[\"a\", \"xx\"]", "one of its two parts is not a token"},
        {"[\"a\", \"b\"]", "[\"a\"]", "a pair of tokens is expected"},
        {"[[\"a\", \"b\"]]", "[]", "model.merges is empty"},
        {"\"\\u0063\": 99, ", "", "no token represents byte 0x63"},
        {"{\"normalizer\"", "[\"normalizer\"", "is not JSON"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_FATAL(EXIT_INPUT, cases[i].problem, tokenizer_open(write_json(cases[i].part, cases[i].other)));
}

TEST(llmc_tokenizer, "llm.c's gpt2_tokenizer.bin decodes, and refuses to encode") {
    unsigned char file[1024 + 5] = {0};
    uint32_t header[4] = {20240328, 2, 2, 1};
    memcpy(file, header, sizeof header);
    memcpy(file + 1024, "\2ab\1c", 5);
    Tokenizer *t = tokenizer_open(write_bytes("gpt2_tokenizer.bin", file, sizeof file));
    size_t bytes;
    CHECK(memcmp(tokenizer_bytes(t, 0, &bytes), "ab", 2) == 0 && bytes == 2);
    CHECK(tokenizer_vocab(t) == 2 && tokenizer_end_of_text(t) == 1 && !tokenizer_can_encode(t));
    tokenizer_bytes(t, 2, &bytes);
    CHECK(bytes == 0, "an id beyond the vocabulary is nothing");
    TokenList list = {0};
    CHECK_FATAL(EXIT_USAGE, "can only decode", tokenizer_encode(t, "a", 1, false, &list));
    CHECK_FATAL(EXIT_INPUT, "ends within token 1 of 2",
                tokenizer_open(write_bytes("cut.bin", file, sizeof file - 1)));
    tokenizer_free(t);
}

int main(int argc, char **argv) { return test_main(argc, argv); }
