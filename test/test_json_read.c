/* test_json_read.c: the JSON reader accepts what RFC 8259 says, and nothing else. */
#include "../llmc/files/json_read.h"

#include "../llmc/base/rng.h"
#include "test.h"

/* Reads `text` from memory that ends where the text does, so that a sanitizer sees a read beyond.
 */
static const Json *read_exactly(const char *text, size_t bytes, char *problem) {
    char *copy = malloc(bytes ? bytes : 1);
    memcpy(copy, text, bytes);
    const Json *root = json_read(copy, bytes, problem);
    free(copy);
    return root;
}

TEST(values, "every kind of value is read as it is spelled") {
    const char *text =
        " {\"a\": [1, -2.5e3, true, false, null, \"x\"], \"b\":{}, \"c\":\"\", \"d\":[]} \n";
    char problem[JSON_PROBLEM];
    const Json *root = read_exactly(text, strlen(text), problem);
    CHECK(root && root->kind == JSON_OBJECT && root->count == 4);
    const Json *a = json_member(root, "a");
    CHECK(a && a->kind == JSON_ARRAY && a->count == 6);
    int64_t one = 0;
    CHECK(json_integer(a->first, 1, 1, &one) && one == 1);
    CHECK(!json_integer(a->first, 2, 9, &one) && !json_integer(a->first, -9, 0, &one));
    const Json *number = a->first->next;
    CHECK(number->kind == JSON_NUMBER && number->number == -2500 && !number->is_integer);
    CHECK(!json_integer(number, -9999, 9999, &one), "-2.5e3 is not spelled as a whole number");
    CHECK(number->next->kind == JSON_TRUE && number->next->next->kind == JSON_FALSE);
    CHECK(number->next->next->next->kind == JSON_NULL);
    CHECK(json_is(number->next->next->next->next, "x"));
    CHECK(json_member(root, "b")->kind == JSON_OBJECT && json_is(json_member(root, "c"), ""));
    CHECK(!json_member(root, "e") && !json_member(a, "a") && !json_member(NULL, "a"));
    json_free(root);
}

TEST(escapes, "escapes and UTF-8 decode to the same bytes") {
    const char *text = "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\", \"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\", "
                       "\"A\u00e9\u20ac\U0001F600\"]";
    char problem[JSON_PROBLEM];
    const Json *root = read_exactly(text, strlen(text), problem);
    CHECK(root != NULL, "%s", problem);
    CHECK(json_is(root->first, "\"\\/\b\f\n\r\t"));
    CHECK(json_is(root->first->next, "A\u00e9\u20ac\U0001F600"));
    CHECK(json_is(root->first->next->next, "A\u00e9\u20ac\U0001F600"));
    json_free(root);
}

TEST(integers, "64-bit integers are exact; larger ones are numbers but not integers") {
    const char *text = "[9223372036854775807, -9223372036854775808, 9223372036854775808, -0, 1e2]";
    char problem[JSON_PROBLEM];
    const Json *v = read_exactly(text, strlen(text), problem);
    CHECK(v->first->is_integer && v->first->integer == INT64_MAX);
    CHECK(v->first->next->is_integer && v->first->next->integer == INT64_MIN);
    CHECK(!v->first->next->next->is_integer && v->first->next->next->number == 0x1p63);
    CHECK(v->first->next->next->next->is_integer && v->first->next->next->next->integer == 0);
    CHECK(!v->first->next->next->next->next->is_integer);
    CHECK(strcmp(v->first->next->next->text, "9223372036854775808") == 0, "its spelling is exact");
    CHECK(strcmp(v->first->next->next->next->next->text, "1e2") == 0);
    json_free(v);
    v = read_exactly("17", 2, problem);
    CHECK(v->integer == 17 && strcmp(v->text, "17") == 0);
    json_free(v);
}

TEST(refusals, "what is not JSON is refused, with place and reason") {
    static const struct {
        const char *text, *problem;
    } cases[] = {
        {"", "line 1, column 1: the text ends where a value"},
        {"  \n ", "line 2, column 2: the text ends"},
        {"{", "no name"},
        {"[", "the text ends"},
        {"[1", "no comma and no ]"},
        {"[1,]", "line 1, column 4: no value"},
        {"[,1]", "no value"},
        {"[1 2]", "no comma and no ]"},
        {"{\"a\"}", "no colon"},
        {"{\"a\":}", "no value"},
        {"{\"a\":1,}", "no name"},
        {"{a:1}", "no name"},
        {"{\"a\":1 \"b\":2}", "no comma and no }"},
        {"{\"a\":1,\"b\":2,\"a\":3}", "two members called \"a\""},
        {"{\"a\":1,\"\\u0061\":3}", "two members called \"a\""},
        {"{\"x\":\"\\n\\n\",\n \"y\" 1}", "line 2, column 6: no colon"},
        {"1 2", "something after the end"},
        {"[]]", "something after the end"},
        {"[] x", "line 1, column 4: something after"},
        {"01", "leading zero"},
        {"-", "no value"},
        {"-01", "leading zero"},
        {"+1", "no value"},
        {".5", "no value"},
        {"1.", "digits after its point"},
        {"1.e3", "digits after its point"},
        {"1e", "digits in its exponent"},
        {"1e+", "digits in its exponent"},
        {"1e999", "too large"},
        {"nan", "no value"},
        {"NaN", "no value"},
        {"Infinity", "no value"},
        {"tru", "no value"},
        {"truex", "something after the end"},
        {"'a'", "no value"},
        {"\"a", "a string without an end"},
        {"\"\\", "unknown escape"},
        {"\"\\x\"", "unknown escape"},
        {"\"\\u12\"", "four hexadecimal digits"},
        {"\"\\u12g4\"", "four hexadecimal digits"},
        {"\"\\u0000\"", "a zero character"},
        {"\"\\ud800\"", "half of a surrogate pair"},
        {"\"\\ud800\\u0041\"", "half of a surrogate pair"},
        {"\"\\udc00\"", "half of a surrogate pair"},
        {"\"\t\"", "a control character"},
        {"\"\xC0\x80\"", "not UTF-8"},
        {"\"\xE0\x80\x80\"", "not UTF-8"},
        {"\"\xED\xA0\x80\"", "not UTF-8"},
        {"\"\xF4\x90\x80\x80\"", "not UTF-8"},
        {"\"\xE2\x82\"", "not UTF-8"},
        {"\"\xFF\"", "not UTF-8"},
        {"\xEF\xBB\xBF{}", "no value"},
        {"<!DOCTYPE html>", "no value"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char problem[JSON_PROBLEM] = "";
        const Json *root = read_exactly(cases[i].text, strlen(cases[i].text), problem);
        CHECK(root == NULL, "%s was accepted", cases[i].text);
        CHECK(strstr(problem, cases[i].problem) != NULL, "%s: %s", cases[i].text, problem);
        json_free(root);
    }
}

TEST(depth, "64 levels are read, 65 and a million are refused without a crash") {
    size_t million = 1000000;
    char *text = malloc(million), problem[JSON_PROBLEM];
    memset(text, '[', million);
    CHECK(!read_exactly(text, million, problem) && strstr(problem, "nested deeper"));
    for (int levels = 64; levels <= 65; levels++) {
        memset(text, '[', (size_t)levels);
        memset(text + levels, ']', (size_t)levels);
        const Json *root = read_exactly(text, 2 * (size_t)levels, problem);
        CHECK((root != NULL) == (levels == 64), "%d levels", levels);
        json_free(root);
    }
    free(text);
}

/* {"a":[0,0,...]} with n zeros, each followed by so many blanks. */
static bool reads_zeros(int n, int blanks, char *problem) {
    char *text = malloc((size_t)n * (size_t)(blanks + 2) + 16), *at = text;
    at += sprintf(at, "{\"a\":[0");
    for (int i = 1; i < n; i++) at += sprintf(at, ",%*s0", blanks, "");
    at += sprintf(at, "]}");
    const Json *root = read_exactly(text, (size_t)(at - text), problem);
    bool good = root && json_member(root, "a")->count == (uint32_t)n;
    json_free(root);
    free(text);
    return good;
}

TEST(proportion, "a text of nothing but tiny values is refused before it takes twenty times its size of memory") {
    char problem[JSON_PROBLEM];
    CHECK(reads_zeros(4000, 0, problem), "a short text may have any");
    CHECK(!reads_zeros(100000, 0, problem) && strstr(problem, "more values than"), "%s", problem);
    CHECK(reads_zeros(100000, 5, problem), "one in six bytes is none too many");
    CHECK(sizeof(Json) <= 56, "%zu bytes a value", sizeof(Json));
}

TEST(every_prefix, "a cut text is refused at every length") {
    const char *text =
        "{\"wte.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}";
    for (size_t bytes = 0; bytes < strlen(text); bytes++) {
        char problem[JSON_PROBLEM];
        CHECK(!read_exactly(text, bytes, problem), "%zu bytes", bytes);
    }
}

TEST(mutations, "200,000 damaged texts are read or refused without harm (a sanitizer watches)") {
    const char *text = "{\"a\":[1,-2.5e+3,true,null,\"\\ud83d\\ude00\u20ac\"],\"b\":{\"c\":\"\\n\"}"
                       ",\"d\":[[],{}]}";
    static const char alphabet[] = "{}[]\",:\\u0123456789eE+-.tfn \xE2\x82\xED\xFF";
    size_t bytes = strlen(text), read = 0;
    for (uint64_t round = 0; round < 200000; round++) {
        char copy[128], problem[JSON_PROBLEM];
        memcpy(copy, text, bytes);
        uint32_t random[4];
        philox(random, 6, round, 0);
        size_t length = random[0] % 4 ? bytes : random[1] % bytes;
        for (uint32_t n = random[2] % 4 + 1; n > 0; n--) {
            philox(random, 6, round, n);
            copy[random[0] % bytes] = alphabet[random[1] % (sizeof alphabet - 1)];
        }
        const Json *root = read_exactly(copy, length, problem);
        read += root != NULL;
        json_free(root);
    }
    CHECK(read > 100 && read < 100000, "%zu of 200000 were still JSON", read);
}

int main(int argc, char **argv) { return test_main(argc, argv); }
