/* gpt2_main.c: `make test_gpt2`. One program in two builds, double and float, that checks the very
 * kernels that train. Its parts, in reading order: expect.h, gpt2_operations.c, gpt2_model.c,
 * gpt2_differences.c, gpt2_update.c, chapter27_adamw.c, chapter27_batches.c, gpt2_program.c. */
#include "expect.h"

#include <dirent.h>

static bool everything; // all tests run, not a chosen few

TEST(every_file_is_read, "no file of test/expectations/ is left out") {
    if (!everything) return;
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

int main(int argc, char **argv) {
    everything = argc == 1;
    return test_main(argc, argv);
}
