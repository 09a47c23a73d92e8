/* test_json_write.c: JSON that this project writes is JSON, and means what was meant. The oracle is
 * the strict reader. */
#include "test.h"

#include "../llmc/files/json_read.h"
#include "../llmc/files/json_write.h"

/* Reads what w holds, and frees w. */
static const Json *read_back(JsonWriter *w) {
    char problem[JSON_PROBLEM] = "";
    const Json *root = json_read(w->text, w->length, problem);
    CHECK(root, "%s in %s", problem, w->text);
    free(w->text);
    *w = (JsonWriter){0};
    return root;
}

TEST(shape, "objects, arrays and commas are where they belong") {
    JsonWriter w = {0};
    json_open(&w, NULL, '{');
    json_put_string(&w, "event", "val");
    json_open(&w, "sizes", '[');
    json_put_integer(&w, NULL, 1);
    json_put_space(&w, "\n  ");
    json_put_unsigned(&w, NULL, 2);
    json_open(&w, NULL, '[');
    json_close(&w, ']');
    json_close(&w, ']');
    json_open(&w, "none", '{');
    json_close(&w, '}');
    json_put_string(&w, "brace", "{");
    json_put_string(&w, "null", NULL);
    json_put_json(&w, "true", "true");
    json_close(&w, '}');
    CHECK(strcmp(w.text, "{\"event\":\"val\",\"sizes\":[1\n  ,2,[]],\"none\":{},\"brace\":\"{\","
                         "\"null\":null,\"true\":true}") == 0,
          "%s", w.text);
    CHECK(w.length == strlen(w.text));
    json_free(read_back(&w));
}

TEST(reuse, "a writer begins again when its length is set to 0, and its text ends where it should") {
    JsonWriter w = {0};
    json_put_string(&w, NULL, "a long string comes first");
    w.length = 0;
    json_put_integer(&w, NULL, 7);
    CHECK(strcmp(w.text, "7") == 0, "%s", w.text);
    free(w.text);
}

TEST(strings, "every character reads back, in names too; control characters are escaped") {
    char text[4 * 256 + 1] = "";
    for (int c = 1; c < 128; c++) text[strlen(text)] = (char)c;
    strcat(text, "\u00e9\u4e2d\u6587\U0001F600");
    JsonWriter w = {0};
    json_open(&w, NULL, '{');
    json_put_string(&w, text, text);
    json_close(&w, '}');
    for (size_t i = 0; i < w.length; i++) CHECK((unsigned char)w.text[i] >= 0x20);
    const Json *root = read_back(&w);
    const Json *member = json_member(root, text);
    CHECK(member && json_is(member, text));
    json_free(root);
}

TEST(not_utf8, "bytes that are not UTF-8 become U+FFFD, one each, and the rest stays") {
    static const struct {
        const char *bytes, *read;
    } cases[] = {
        // clang-format off
        {"a\xff!", "a\ufffd!"}, {"\xc3", "\ufffd"}, {"\xe4\xb8", "\ufffd\ufffd"},
        {"\xc0\x80", "\ufffd\ufffd"}, {"\xed\xa0\x80", "\ufffd\ufffd\ufffd"}, {"\x80z", "\ufffdz"},
        {"\xf4\x90\x80\x80", "\ufffd\ufffd\ufffd\ufffd"},
        // clang-format on
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        JsonWriter w = {0};
        json_put_string(&w, NULL, cases[i].bytes);
        const Json *root = read_back(&w);
        CHECK(json_is(root, cases[i].read), "case %zu: %s", i, root ? root->text : "nothing");
        json_free(root);
    }
}

TEST(reals, "every double reads back as the same bits") {
    uint64_t bits = 12345;
    for (int i = 0; i < 20000; i++) {
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        double value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) continue;
        JsonWriter w = {0};
        json_put_real(&w, NULL, value);
        const Json *root = read_back(&w);
        CHECK(root && root->kind == JSON_NUMBER && root->number == value, "%.17g", value);
        json_free(root);
    }
}

TEST(not_finite, "NaN and the infinities are strings that say which they were") {
    JsonWriter w = {0};
    json_open(&w, NULL, '[');
    json_put_real(&w, NULL, NAN);
    json_put_real(&w, NULL, INFINITY);
    json_put_real(&w, NULL, -INFINITY);
    json_put_real(&w, NULL, -0.0);
    json_close(&w, ']');
    CHECK(strcmp(w.text, "[\"NaN\",\"Infinity\",\"-Infinity\",-0]") == 0, "%s", w.text);
    json_free(read_back(&w));
}

TEST(integers, "64-bit integers keep every digit") {
    JsonWriter w = {0};
    json_open(&w, NULL, '[');
    json_put_integer(&w, NULL, INT64_MIN);
    json_put_integer(&w, NULL, INT64_MAX);
    json_put_unsigned(&w, NULL, UINT64_MAX);
    json_close(&w, ']');
    CHECK(strcmp(w.text, "[-9223372036854775808,9223372036854775807,18446744073709551615]") == 0,
          "%s", w.text);
    free(w.text);
}

int main(int argc, char **argv) { return test_main(argc, argv); }
