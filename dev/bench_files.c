/* bench_files.c: what checkpoints and sampling cost at 124M, each beside the plain work that it cannot do
 * without, measured in the same run: saving beside dd of as many bytes, resuming beside reading them, and
 * a token of greedy sampling beside reading the weights from memory once.
 * Usage: bench_files [directory [repetitions]]     (build, 3); needs 3 GB there */
#define _GNU_SOURCE // clock_gettime, posix_fadvise
#include "bench.h"

#include "../llmc/base/memory.h"
#include "../llmc/checkpoint/checkpoint.h"
#include "../llmc/train/generate.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_REPEATS = 99, PROMPT = 16, TOKENS = 24, PIECE = 1 << 20 };

/* MB of memory that this process has held at most. */
static double peak_mb(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

// ---------------------------------------------------------------------------------------------
// Plain work

/* Calls `work` with each file of a directory, and adds up what it returns. */
static double each_file(const char *directory, double (*work)(const char *path)) {
    double sum = 0;
    DIR *entries = opendir(directory);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        char path[4096 + sizeof entry->d_name];
        snprintf(path, sizeof path, "%.4000s/%s", directory, entry->d_name);
        if (entry->d_name[0] != '.') sum += work(path);
    }
    if (entries) closedir(entries);
    return sum;
}

static double size_of(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 ? (double)status.st_size : 0;
}

/* Puts a file out of the page cache. */
static double forget(const char *path) {
    int descriptor = open(path, O_RDONLY);
    posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    close(descriptor);
    return 0;
}

static double read_file(const char *path) {
    static char piece[PIECE];
    int descriptor = open(path, O_RDONLY);
    while (read(descriptor, piece, PIECE) > 0) continue;
    close(descriptor);
    return 0;
}

static void remove_all(const char *path) {
    char command[4200];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    if (system(command) != 0) exit(1);
}

/* Seconds of dd writing so many bytes and syncing them. */
static double dd(const char *directory, double bytes) {
    char command[4200], path[4096];
    snprintf(path, sizeof path, "%s/bench_dd.tmp", directory);
    snprintf(command, sizeof command,
             "dd if=/dev/zero of='%s' bs=1M count=%.0f conv=fsync 2>/dev/null", path,
             bytes / PIECE);
    double start = clock_seconds();
    if (system(command) != 0) exit(1);
    double seconds = clock_seconds() - start;
    remove_all(path);
    return seconds;
}

/* Seconds of reading all weights once, on all threads. */
static double read_weights(const GPT2 *model) {
    const uint64_t *words = (const uint64_t *)model->params;
    size_t count = model->table.elements * element_size(OF_PARAM) / sizeof *words;
    uint64_t sum = 0;
    double start = clock_seconds();
#ifdef _OPENMP
#pragma omp parallel for reduction(+ : sum) schedule(static)
#endif
    for (size_t i = 0; i < count; i++) sum += words[i];
    double seconds = clock_seconds() - start;
    if (sum == 1) printf("\n"); // so that the sum is needed
    return seconds;
}

// ---------------------------------------------------------------------------------------------

static double token_times[TOKENS];
static int token_count;
static double token_start;

static void on_token(void *context, int token) {
    (void)context, (void)token;
    double time = clock_seconds();
    token_times[token_count++] = time - token_start;
    token_start = time;
}

/* The median seconds of a token after the first, which reads the prompt. */
static double sample(GPT2 *model) {
    int32_t prompt[PROMPT] = {0};
    Sampling greedy = {.temperature = 0};
    token_count = 0;
    token_start = clock_seconds();
    generate(model, prompt, PROMPT, TOKENS, &greedy, on_token, NULL);
    return median(token_times + 1, TOKENS - 1);
}

static double save(const char *path, const GPT2 *model, const Settings *settings) {
    TrainerState state = {0};
    double start = clock_seconds();
    checkpoint_save(path, model, &state, settings, NULL);
    return clock_seconds() - start;
}

static double resume(const char *path, GPT2 *model) {
    char problem[CHECKPOINT_PROBLEM];
    double start = clock_seconds();
    if (!checkpoint_verify(path, problem)) exit(1);
    Weights *weights = weights_open(path);
    checkpoint_load(path, weights, model);
    weights_close(weights);
    return clock_seconds() - start;
}

int main(int argc, char **argv) {
    const char *directory = argc > 1 ? argv[1] : "build";
    int repeats = argc > 2 ? atoi(argv[2]) : 3;
    if (repeats < 1 || repeats > MOST_REPEATS) return 2;
    char path[4096];
    snprintf(path, sizeof path, "%s/bench_checkpoint", directory);
    remove_all(path);

    char *words[] = {"bench", "--model", "gpt2", NULL};
    Settings settings = options_parse(3, words);
    Config config;
    config_named("gpt2", &config);
    backend_open(0, 1, 0);
    GPT2 *model = gpt2_new(&config, 1, true, true);
    gpt2_init(model, 1);
    gpt2_logits(model, memory_new((size_t)config.vocab, sizeof(float), "logits"), 1); // touches all
    memset(model->m, 1, model->table.elements * element_size(OF_OPTIMIZER_STATE));
    memset(model->v, 1, model->table.elements * element_size(OF_OPTIMIZER_STATE));

    double write[MOST_REPEATS], saved[MOST_REPEATS], read[MOST_REPEATS], resumed[MOST_REPEATS];
    double memory[MOST_REPEATS], token[MOST_REPEATS], before = peak_mb(), bytes = 0;
    double after_save = 0, after_resume = 0;
    for (int i = 0; i < repeats; i++) {
        remove_all(path);
        saved[i] = save(path, model, &settings);
        if (i == 0) after_save = peak_mb();
        bytes = each_file(path, size_of);
        write[i] = dd(directory, bytes);
        each_file(path, forget);
        double start = clock_seconds();
        each_file(path, read_file);
        read[i] = clock_seconds() - start;
        each_file(path, forget);
        resumed[i] = resume(path, model);
        if (i == 0) after_resume = peak_mb();
        memory[i] = read_weights(model);
        token[i] = sample(model);
    }
    remove_all(path);

    printf("checkpoint of GPT-2 124M, %.0f MB; medians of %d\n", bytes / 1e6, repeats);
    double a = median(saved, repeats), b = median(write, repeats);
    printf("save      %6.2f s, dd conv=fsync %6.2f s: %.2f times; extra memory %.1f MB\n", a, b,
           a / b, after_save - before);
    a = median(resumed, repeats), b = median(read, repeats);
    printf("resume    %6.2f s, reading       %6.2f s: %.2f times; extra memory %.1f MB\n", a, b,
           a / b, after_resume - after_save);
    a = median(token, repeats), b = median(memory, repeats);
    printf("a token   %6.1f ms, reading weights %4.1f ms: %.0f %% of the memory's bandwidth\n",
           1e3 * a, 1e3 * b, 100 * b / a);
    gpt2_free(model);
    return 0;
}
