/* gpt2_main.c: `make test_gpt2`. One program in two builds, double and float, that checks the very
 * kernels that train. Its parts, in reading order: expect.h, gpt2_operations.c, gpt2_model.c,
 * gpt2_differences.c, gpt2_update.c, chapter27_adamw.c, chapter27_mlp.c,
 * chapter27_batches.c, gpt2_program.c. */
#include "chapter27.h"
#include "expect.h"

#include <dirent.h>

static bool everything; // all tests run, not a chosen few

TEST(every_file_is_read, "no file of test/expectations/ is left out") {
    if (!everything) SKIP("only some of the tests were asked for");
    DIR *directory = opendir("test/expectations");
    CHECK(directory != NULL, "test/expectations cannot be listed");
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        size_t length = strlen(entry->d_name);
        if (length > 4 && strcmp(entry->d_name + length - 4, ".txt") == 0)
            CHECK(expect_was_opened(entry->d_name), "%s is compared with nothing", entry->d_name);
    }
    if (directory) closedir(directory);
    expect_report();
}

// ---------------------------------------------------------------------------------------------
// make chapter27

bool chapter27_shows;

void chapter27_show(const char *what, const char *chapter, const char *format, double ours) {
    if (!chapter27_shows) return;
    char text[40];
    snprintf(text, sizeof text, format, ours);
    printf("        %-60s chapter: %-14s here: %s\n", what, chapter, text);
}

/* Runs the tests of the chapter, each under the statement that it proves. */
static int show_chapter(void) {
    int shown = 0, failed = 0;
    chapter27_shows = true;
    for (Test *test = test_first; test; test = test->next) {
        if (strncmp(test->proves, "27.", 3) != 0 && strncmp(test->proves, "exercise", 8) != 0) continue;
        printf("%s\n", test->proves);
        test_failures = 0;
        test->run();
        shown++;
        failed += test_failures > 0;
    }
    printf("\nchapter 27: %d statements hold, %d do not\n", shown - failed, failed);
    return failed > 0;
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 2 && strcmp(argv[1], "--chapter27") == 0) return show_chapter();
    everything = argc == 1;
    return test_main(argc, argv);
}
