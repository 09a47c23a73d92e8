/* test_progress.c: the text of the status line. */
#include "test.h"

#include "../llmc/log/progress.h"

TEST(progress_fits, "the status line fits every width, and says less rather than wrap") {
    Progress progress = {.steps = 19073, .flops_per_token = 1e9, .peak_flops = 1e15};
    ProgressStep step = {.done = 12345, .loss = 3.14159, .lr = 6e-4, .norm = 0.5, .tokens = 524288};
    progress_add(&progress, 1.5);
    size_t before = 0;
    for (int width = 0; width < 200; width++) {
        char text[512];
        progress_text(text, sizeof text, width, &progress, &step);
        CHECK(strlen(text) <= (size_t)width, "%d: %s", width, text);
        CHECK(width < 151 || strlen(text) == before, "%s", text); // all of it
        before = strlen(text);
        CHECK(width < 16 || strstr(text, "step 12345/19073"), "%s", text);
    }
    CHECK(before > 100);
}

TEST(eta, "the time left is smoothed, readable, and left out while it is not known") {
    static const struct {
        double seconds;
        int64_t left;
        const char *shown; // NULL: no ETA
    } cases[] = {
        // clang-format off
        {0, 10, NULL}, {1, 0, NULL}, {0.25, 1, "ETA 0:00"}, {1, 59, "ETA 0:59"},
        {1, 61, "ETA 1:01"}, {1, 3600, "ETA 1:00:00"}, {1, 5 * 86400 + 7200, "ETA 5d 02h"},
        {1e9, 1000, "ETA over 1000 days"}, {1e300, 1000, "ETA over 1000 days"},
        {-1, 5, NULL}, {NAN, 5, NULL}, {INFINITY, 5, NULL},
        // clang-format on
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Progress progress = {.steps = 7 + cases[i].left};
        ProgressStep step = {.done = 7, .loss = 1, .lr = 1, .norm = 1, .tokens = 10};
        char text[512];
        progress_add(&progress, cases[i].seconds);
        progress_text(text, sizeof text, 200, &progress, &step);
        CHECK(cases[i].shown ? !!strstr(text, cases[i].shown) : !strstr(text, "ETA"), "%g: %s",
              cases[i].seconds, text);
        CHECK(!strstr(text, "nan") && !strstr(text, "inf") && !strchr(text, '-'), "%s", text);
    }
    Progress progress = {.steps = 100};
    progress_add(&progress, 1.0);
    CHECK(progress.step_seconds == 1.0);
    progress_add(&progress, 2.0);
    CHECK_NEAR(progress.step_seconds, 1.1, 1e-12);
    progress_add(&progress, -1.0); // somebody set the clock
    CHECK_NEAR(progress.step_seconds, 1.1, 1e-12);
}

int main(int argc, char **argv) { return test_main(argc, argv); }
