/* gpt2_program.c: the program itself. ./train_gpt2 is run, in float and in micro-batches that do not divide its
 * update, and each record it logs is compared with the update law done here the plain way: in double, all
 * sequences at once. So nothing of the loop can be wrong and the mathematics right. */
#include "expect.h"

#include "../llmc/data/sequences.h"
#include "../llmc/model/gpt2.h"
#include "../llmc/optimizer/adamw.h"
#include "../llmc/optimizer/schedule.h"

enum {
    T = 16,
    ROWS = 5,
    STEPS = 7,
    BYTES = 139,
    VOCAB = 256
}; // 8 sequences of 16 targets and one of 10
static const Config shape = {.layers = 2, .heads = 2, .channels = 12, .seq_len = T, .vocab = VOCAB};
static const Schedule schedule = {
    .kind = SCHEDULE_COSINE, .max = 0.02, .min = 0.002, .warmup = 2, .end = STEPS};
static const AdamW optimizer = {
    .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-4, .weight_decay = 0.5, .clip = 0.8};
#define OPTIONS                                                                                    \
    "--layers 2 --heads 2 --channels 12 --seq-len 16 --vocab 256 --total-batch 80 --steps 7 "      \
    "--schedule cosine --lr 0.02 --min-lr 0.002 --warmup 2 --beta1 0.9 --beta2 0.95 --eps 1e-4 "   \
    "--weight-decay 0.5 --clip 0.8 --seed 42 --threads 1 --sample-every 0 --log-every 0 "          \
    "--val-every 1 "

static char directory[32];

static unsigned char *write_text(void) {
    static unsigned char text[BYTES];
    char path[64];
    for (int i = 0; i < BYTES; i++)
        text[i] = (unsigned char)('a' + formula_token("program.text", 26, i));
    snprintf(path, sizeof path, "%s/text.txt", directory);
    FILE *file = fopen(path, "w");
    if (!file || fwrite(text, 1, BYTES, file) != BYTES || fclose(file) != 0) abort();
    return text;
}

/* Runs the program that stands beside this one through `launcher`, with OPTIONS and more. Of
 * test_gpt2_plain_double that is train_gpt2_plain, which has the same kernels. */
static void run_program(const char *name, const char *launcher, const char *more) {
    char self[512], command[2048];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0) abort();
    self[length] = '\0';
    const char *kernels = strstr(strrchr(self, '/'), "_plain") ? "_plain" : "";
    *strrchr(self, '/') = '\0';
    snprintf(
        command, sizeof command,
        "%s '%s/train_gpt2%s' %s --data %s/text.txt --val %s/text.txt --out %s/%s %s >%s/said 2>&1",
        launcher, self, kernels, OPTIONS, directory, directory, directory, name, more, directory);
    int status = system(command);
    char said[256] = "";
    FILE *file = fopen(named("%s/said", directory), "r");
    while (status != 0 && file && fgets(said, sizeof said, file)) {
    } // the last line
    if (file) fclose(file);
    CHECK(status == 0, "%s: status %d: %s", command, status, said);
}

// ---------------------------------------------------------------------------------------------
// What the program logged

/* The number behind "field": in a record. NaN when there is none. */
static double field(const char *record, const char *name) {
    const char *at = strstr(record, named("\"%s\":", name));
    return at ? strtod(at + strlen(name) + 3, NULL) : (double)NAN;
}

/* The next record of an event, or NULL at the end. */
static char *next_record(FILE *metrics, const char *event) {
    static char line[8192];
    while (metrics && fgets(line, sizeof line, metrics))
        if (strstr(line, named("\"event\":\"%s\"", event))) return line;
    return NULL;
}

static FILE *open_metrics(const char *name) {
    FILE *metrics = fopen(named("%s/%s/metrics.jsonl", directory, name), "r");
    CHECK(metrics != NULL, "%s left no metrics.jsonl", name);
    return metrics;
}

// ---------------------------------------------------------------------------------------------
// The update law, the plain way

/* `count` sequences of the endless order, from `position`, and their hash and valid targets. */
typedef struct {
    Id ids[16 * T], targets[16 * T];
    uint64_t data;
    int valid;
} Load;

/* Sequence j of the text: T tokens and the T that follow each, as far as there are any. */
static void read_sequence(const unsigned char *text, uint64_t j, Id *ids, Id *targets) {
    for (uint64_t i = 0, at = j * T; i < T; i++, at++) {
        ids[i] = at < BYTES ? text[at] : 0;
        targets[i] = at + 1 < BYTES ? text[at + 1] : -1;
    }
}

static Load load(const Sequences *sequences, const unsigned char *text, uint64_t position,
                 int count) {
    Load l = {.data = 0};
    Id unused[2 * T];
    for (int b = 0; b < count; b++) {
        uint64_t j = sequences_at(sequences, position + (uint64_t)b);
        l.data += sequences_read(sequences, j, unused, unused + T);
        read_sequence(text, j, l.ids + b * T, l.targets + b * T);
    }
    for (int i = 0; i < count * T; i++) l.valid += l.targets[i] >= 0;
    return l;
}

static double mean(const real *losses, const Load *l, int count) {
    double sum = 0;
    for (int i = 0; i < count * T; i++) sum += losses[i];
    return sum / l->valid;
}

static double norm(const GPT2 *model) {
    double sum = 0;
    for (int i = 0; i < model->table.count; i++) {
        const Tensor *t = &model->table.tensors[i];
        for (size_t j = 0; j < t->count; j++) {
            double g = model->grads[t->offset + j];
            sum += g * g;
        }
    }
    return sqrt(sum);
}

/* Returns whether the update was clipped. */
static bool check_update(GPT2 *model, const Sequences *sequences, const unsigned char *text,
                         int step, const char *record) {
    real losses[ROWS * T];
    Load l = load(sequences, text, (uint64_t)step * ROWS, ROWS);
    gpt2_forward(model, l.ids, ROWS, T);
    gpt2_backward(model, losses, l.ids, l.targets, ROWS, T, 1.0 / l.valid, false, NULL, NULL);
    double loss = mean(losses, &l, ROWS), size = norm(model), rate = schedule_rate(&schedule, step);
    AdamWScalars scalars =
        adamw_scalars(&optimizer, step + 1, rate, clip_scale(size, optimizer.clip));
    adamw_update(model->params, NULL, model->m, model->v, model->grads, model->table.spans,
                 model->table.count, &scalars);
    CHECK(strstr(record, named("\"data\":\"%016llx\"", (unsigned long long)l.data)),
          "other sequences: %s", record);
    CHECK_NEAR(field(record, "step"), step, 0);
    CHECK_NEAR(field(record, "tokens"), l.valid, 0);
    CHECK_NEAR(field(record, "lr"), rate, 1e-17);
    CHECK_NEAR(field(record, "loss"), loss, 1e-5 * loss);
    CHECK_NEAR(field(record, "norm"), size, 2e-5 * size); // before clipping
    return size > optimizer.clip;
}

static void check_validation(GPT2 *model, const Sequences *sequences, const unsigned char *text,
                             int step, const char *record) {
    real losses[9 * T];
    Load l = load(sequences, text, 0, 9);
    for (int first = 0; first < 9; first += ROWS) {
        int count = first ? 4 : ROWS;
        gpt2_forward(model, l.ids + first * T, count, T);
        gpt2_loss(model, losses + first * T, l.targets + first * T, count, T);
    }
    CHECK_NEAR(field(record, "step"), step, 0);
    CHECK_NEAR(field(record, "tokens"), BYTES - 1, 0);
    CHECK_NEAR(field(record, "loss"), mean(losses, &l, 9), 1e-4);
}

static void check_run(const char *name, const Stream *stream, const unsigned char *text) {
    Sequences sequences = sequences_new(stream, T, 42, true),
              in_order = sequences_new(stream, T, 42, false);
    GPT2 *model = gpt2_new(&shape, ROWS, false, true);
    gpt2_init(model, 42);
    FILE *updates = open_metrics(name), *validations = open_metrics(name);
    int clipped = 0;
    for (int step = 0; step < STEPS; step++) {
        const char *record = next_record(validations, "val");
        CHECK(record, "%s: no validation after %d updates", name, step);
        if (record) check_validation(model, &in_order, text, step, record);
        record = next_record(updates, "train");
        CHECK(record, "%s: no record of step %d", name, step);
        if (record) clipped += check_update(model, &sequences, text, step, record);
    }
    CHECK(clipped > 0 && clipped < STEPS, "%d of %d updates were clipped", clipped, STEPS);
    const char *last = next_record(validations, "val");
    CHECK(last, "%s: no validation at the end", name);
    if (last) check_validation(model, &in_order, text, STEPS, last);
    CHECK(!next_record(updates, "train"), "%s: more than %d steps", name, STEPS);
    if (updates) fclose(updates);
    if (validations) fclose(validations);
    gpt2_free(model);
}

/* One way to split the same run. */
typedef struct {
    const char *name, *launcher, *options;
} Split;

static void check_splits(const Split *splits, size_t count) {
    strcpy(directory, "/tmp/test_gpt2_XXXXXX");
    if (!mkdtemp(directory)) abort();
    const unsigned char *text = write_text();
    Stream *stream = stream_of_text(text, BYTES, "the test's text");
    for (size_t i = 0; i < count; i++) {
        run_program(splits[i].name, splits[i].launcher, splits[i].options);
        check_run(splits[i].name, stream, text);
    }
    stream_close(stream);
    if (system(named("rm -rf %s", directory)) != 0) abort();
}

TEST(program,
     "./train_gpt2 logs, update by update, what the update law says: sequences, tokens, rate, "
     "loss, norm") {
    static const Split splits[] = {{"micro_batches_of_2", "", "--batch 2 --no-exact"},
                                   {"one_micro_batch", "", "--batch 5 --no-exact"},
                                   {"exact", "", "--batch 2 --exact"},
                                   {"recompute", "", "--batch 3 --recompute --no-exact"}};
    check_splits(splits, sizeof splits / sizeof splits[0]);
}

#define RANKS                                                                                      \
    "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ASAN_OPTIONS=detect_leaks=0 "        \
    "mpirun --oversubscribe -np "

TEST(program_over_ranks,
     "the same over 2 ranks, one with a micro-batch more, or with none at all") {
#ifdef USE_MPI
    static const Split splits[] = {{"two_and_one", RANKS "2", "--batch 2 --no-exact"},
                                   {"one_and_none", RANKS "2", "--batch 5 --no-exact"},
                                   {"exact_ranks", RANKS "2", "--batch 2 --exact"}};
    check_splits(splits, sizeof splits / sizeof splits[0]);
#else
    SKIP("built without MPI");
#endif
}
