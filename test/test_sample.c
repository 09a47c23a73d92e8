/* test_sample.c: drawing a token, and tokens as readable text. */
#include "test.h"

#include "../llmc/train/generate.h"
#include "../llmc/text/printable.h"

TEST(greedy, "temperature 0, and top-k 1, take the likeliest token; of equal ones the first") {
    for (int i = 0; i < 100; i++) {
        float logits[5] = {1, 3, -2, 3, 2.5f}, again[5] = {1, 3, -2, 3, 2.5f};
        CHECK(sample_token(logits, 5, &(Sampling){.temperature = 0}, i / 100.0) == 1);
        CHECK(sample_token(again, 5, &(Sampling){.temperature = 2, .top_k = 1}, i / 100.0) == 1);
    }
}

TEST(distribution,
     "tokens are drawn as often as the softmax predicts, at any temperature, within the top k") {
    const double temperatures[] = {0.5, 1, 2};
    for (int k = 0; k < 3; k++) {
        double p[4], total = 0;
        const float base[4] = {0.1f, 1.2f, -0.7f, 0.9f};
        for (int top_k = 2; top_k <= 4; top_k += 2) {
            total = 0;
            for (int i = 0; i < 4; i++) {
                p[i] = top_k == 4 || i == 1 || i == 3 ? exp(base[i] / temperatures[k]) : 0;
                total += p[i];
            }
            int seen[4] = {0};
            const int n = 100000;
            for (int i = 0; i < n; i++) {
                float logits[4];
                memcpy(logits, base, sizeof base);
                Sampling sampling = {.temperature = temperatures[k], .top_k = top_k};
                seen[sample_token(logits, 4, &sampling, (i + 0.5) / n)]++;
            }
            for (int i = 0; i < 4; i++) CHECK_NEAR(seen[i] / (double)n, p[i] / total, 2e-5);
        }
    }
}

/* How often each of 4 tokens is drawn out of 10,000 evenly spaced u. */
static void draw(int seen[4], const float base[4], const Sampling *sampling) {
    memset(seen, 0, 4 * sizeof *seen);
    for (int i = 0; i < 10000; i++) {
        float logits[4];
        memcpy(logits, base, sizeof logits);
        seen[sample_token(logits, 4, sampling, (i + 0.5) / 10000)]++;
    }
}

TEST(nucleus, "top-p keeps the fewest likeliest tokens that have that probability, of those that "
              "top-k left") {
    const float base[4] = {logf(0.1f), logf(0.4f), logf(0.2f), logf(0.3f)};
    static const struct {
        double p;
        int top_k, seen[4];
    } cases[] = {{0.39, 0, {0, 10000, 0, 0}},         {0.41, 0, {0, 5714, 0, 4286}},
                 {0.69, 0, {0, 5714, 0, 4286}},       {0.71, 0, {0, 4444, 2222, 3333}},
                 {0.91, 0, {1000, 4000, 2000, 3000}}, {1, 0, {1000, 4000, 2000, 3000}},
                 {0, 0, {1000, 4000, 2000, 3000}},    {0.5, 2, {0, 10000, 0, 0}},
                 {0.6, 2, {0, 5714, 0, 4286}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int seen[4];
        draw(seen, base,
             &(Sampling){.temperature = 1, .top_k = cases[i].top_k, .top_p = cases[i].p});
        for (int k = 0; k < 4; k++) CHECK_NEAR(seen[k], cases[i].seen[k], 1);
    }
    float equal[4] = {1, 1, 1, 1}; // the first two
    int seen[4];
    draw(seen, equal, &(Sampling){.temperature = 1, .top_p = 0.5});
    CHECK(seen[0] == 5000 && seen[1] == 5000);
}

TEST(extremes, "u near 1, huge and infinite logits give a token that can be drawn") {
    float logits[3] = {1e30f, -1e30f, 1e30f};
    CHECK(sample_token(logits, 3, &(Sampling){.temperature = 1}, 0.999999999999) == 2);
    float masked[3] = {-INFINITY, 0, -INFINITY};
    CHECK(sample_token(masked, 3, &(Sampling){.temperature = 1}, 0.9999) == 1);
}

static void check_text(const char *bytes, size_t size, const char *wanted) {
    char *got = printable((const unsigned char *)bytes, size);
    CHECK(strcmp(got, wanted) == 0, "\"%s\" became \"%s\", not \"%s\"", bytes, got, wanted);
    free(got);
}

#define LOST "\xef\xbf\xbd"
TEST(printable, "samples print as valid UTF-8 whatever bytes they are made of") {
    check_text("a\n\tb", 4, "a\n\tb");
    check_text("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
    check_text("\xe2\x82", 2, LOST LOST);          // cut in the middle
    check_text("\xe2\x82\xc3\xa4", 4, LOST LOST "\xc3\xa4"); // cut by another character
    check_text("\xf0\x9f\x98\xff", 4, LOST LOST LOST LOST);
    check_text("\xc0\xaf", 2, LOST LOST);          // overlong
    check_text("\xed\xa0\x80", 3, LOST LOST LOST); // a surrogate
    check_text("\xf4\x90\x80\x80", 4, LOST LOST LOST LOST);
    check_text("\x1b[2J", 4, LOST "[2J"); // a terminal's commands
    check_text("a\0b", 3, "a" LOST "b");
    check_text("", 0, "");
}

int main(int argc, char **argv) { return test_main(argc, argv); }
