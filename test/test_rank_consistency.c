/* test_rank_consistency.c: each thing that ranks compare, made different on one of them. Two ranks take turns in this
 * process: the file under test is compiled here once more, with a broadcast that hands over what rank 0 had, and
 * errors that come back to the test. */
#include "files.h"

#include "../llmc/base/error.h"
#include "../llmc/ranks/world.h"
#include "../llmc/settings/option.h"

#include <setjmp.h>

static jmp_buf back;
static char said[1000];
static int code;
__attribute__((format(printf, 2, 3))) static _Noreturn void caught(int exit_code,
                                                                   const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(said, sizeof said, format, args);
    va_end(args);
    code = exit_code;
    longjmp(back, 1);
}

static World self = {.size = 2};
static char from_rank0[1 << 16];
static int barriers;
static void hand_over(void *bytes, size_t count, int root) {
    if (root != 0 || count > sizeof from_rank0) abort();
    if (self.rank == 0)
        memcpy(from_rank0, bytes, count);
    else
        memcpy(bytes, from_rank0, count);
}

static void smallest(int64_t *values, size_t count) {
    (void)values, (void)count;
} // rank 0 never differs
static void meet(void) { barriers++; }

#define fatal caught
#define world_broadcast hand_over
#define world_all_reduce_min smallest
#define world_barrier meet
#define rank_consistency_check check_settings
#define rank_consistency_check_weights check_weights
#define rank_consistency_check_examples check_examples
#include "../llmc/train/rank_consistency.c"
#undef fatal

static void as_rank(int rank, const Settings *settings, const Dataset *data, const GPT2 *model) {
    said[0] = '\0', code = 0;
    self.rank = rank;
    if (setjmp(back) != 0) return;
    if (model)
        check_weights(&self, model);
    else
        check_settings(&self, settings, data);
}

/* Runs rank 0, then rank 1, whose message is in `said`: "" when it agrees. */
static void compare_settings(const Settings *s0, const Dataset *d0, const Settings *s1,
                             const Dataset *d1) {
    as_rank(0, s0, d0, NULL);
    CHECK(said[0] == '\0', "rank 0 says: %s", said);
    as_rank(1, s1, d1, NULL);
}
static void compare_weights(const GPT2 *a, const GPT2 *b) {
    as_rank(0, NULL, NULL, a);
    CHECK(said[0] == '\0', "rank 0 says: %s", said);
    as_rank(1, NULL, NULL, b);
}

static Settings settings_with(const char *option, const char *value) {
    const char *words[] = {"train_gpt2", option, value, NULL};
    return options_parse(option ? value ? 3 : 2 : 1, (char **)words);
}

static Dataset text_data(const char *text) {
    return (Dataset){.train = stream_of_text((const unsigned char *)text, strlen(text), "a text")};
}

/* Another value than the default of an option. */
static const char *other_value(const Option *option) {
    switch (option->type) {
    case OPTION_INTEGER:
        return "3";
    case OPTION_SEED:
        return "18446744073709551615";
    case OPTION_REAL:
        if (option->range.low >= 1) return "33";
        return strcmp(option->name, "min-lr") == 0 ? "1e-9" : "0.7";
    case OPTION_CHOICE: // the last one
        return strrchr(option->range.choices, ' ') + 1;
    case OPTION_NONFINITE:
        return "skip:3";
    default:
        return "elsewhere";
    }
}

TEST(every_option, "a rank with another value of any option names it, both values, and exits with "
                   "2; --threads and --out "
                   "may differ") {
    Dataset data = text_data("some text");
    for (int i = 0; i < option_count; i++) {
        const Option *option = &option_table[i];
        char name[40];
        bool is_switch = option->type == OPTION_SWITCH,
             on = is_switch && strcmp(option->tiny, "true") == 0;
        snprintf(name, sizeof name, "--%s%s", on ? "no-" : "", option->name);
        Settings usual = settings_with(NULL, NULL);
        if (strcmp(option->name, "epochs") == 0)
            usual = settings_with("--epochs", "2"); // else --steps differs too
        Settings other = settings_with(name, is_switch ? NULL : other_value(option));
        compare_settings(&usual, &data, &other, &data);
        if (strcmp(option->name, "threads") == 0 || strcmp(option->name, "out") == 0) {
            CHECK(said[0] == '\0', "--%s: %s", option->name, said);
            continue;
        }
        char want[60];
        snprintf(want, sizeof want, "--%s differs between ranks: here it is ", option->name);
        CHECK(code == EXIT_USAGE && strncmp(said, want, strlen(want)) == 0, "--%s: %d, %s",
              option->name, code, said);
        compare_settings(&other, &data, &other, &data);
        CHECK(said[0] == '\0', "equal --%s: %s", option->name, said);
    }
    dataset_close(&data);
}

/* What rank 1 says of its examples, where rank 0 has others. */
static void compare_examples(const Examples *a, const Examples *b) {
    const Examples *of[] = {a, b};
    for (int rank = 0; rank < 2; rank++) {
        CHECK(rank == 0 || said[0] == '\0', "rank 0 says: %s", said);
        said[0] = '\0', code = 0;
        self.rank = rank;
        if (setjmp(back) == 0) check_examples(&self, of[rank]);
    }
}

TEST(other_examples, "a rank whose file of examples has another token, label or length is refused") {
    int32_t ids[] = {5, 6, 7, 8}, changed[] = {5, 6, 7, 9};
    Example item = {.context = 1, .tokens = {1, 2}, .completions = 2, .label = 0};
    const Examples usual = {"a set", &item, 1, {ids, 4, 4}};
    compare_examples(&usual, &usual);
    CHECK(said[0] == '\0', "%s", said);
    const Examples token = {"a set", &item, 1, {changed, 4, 4}};
    Example label = item, length = item;
    label.label = 1, length.context = 2, length.tokens[1] = 1;
    const Examples others[] = {token, {"a set", &label, 1, {ids, 4, 4}}, {"a set", &length, 1, {ids, 4, 4}}};
    for (int i = 0; i < 3; i++) {
        compare_examples(&usual, &others[i]);
        CHECK(code == EXIT_USAGE && strstr(said, "a set: these 1 examples are not those of rank 0"), "%d: %s", i, said);
    }
}

TEST(beyond_what_is_shown,
     "values of equal length that differ only beyond the 63 characters of the message") {
    char a[200], b[200];
    memset(a, 'x', sizeof a - 1), a[199] = '\0';
    memcpy(b, a, sizeof b), b[198] = 'y';
    Dataset data = text_data("some text");
    Settings one = settings_with("--data", a), two = settings_with("--data", b);
    compare_settings(&one, &data, &two, &data);
    CHECK(strncmp(said, "--data differs", 14) == 0, "%s", said);
    dataset_close(&data);
}

TEST(lists, "each file of a list is compared, and their number") {
    Dataset data = text_data("some text");
    const char *words[3][6] = {{"train_gpt2", "--data", "a", "--data", "b"},
                               {"train_gpt2", "--data", "a", "--data", "c"},
                               {"train_gpt2", "--data", "a"}};
    const int counts[3] = {5, 5, 3};
    Settings all[3];
    for (int i = 0; i < 3; i++) all[i] = options_parse(counts[i], (char **)words[i]);
    for (int i = 1; i < 3; i++) {
        compare_settings(&all[0], &data, &all[i], &data);
        CHECK(strncmp(said, "--data differs", 14) == 0, "%d: %s", i, said);
    }
    dataset_close(&data);
}

TEST(data, "training and validation data of equal length but other tokens, other lengths, or none "
           "on one rank") {
    Settings s = settings_with(NULL, NULL);
    Dataset a = text_data("some text"), b = text_data("some texs"), c = text_data("some tex");
    compare_settings(&s, &a, &s, &b);
    CHECK(code == EXIT_USAGE && strncmp(said, "training data differs", 21) == 0, "%s", said);
    compare_settings(&s, &a, &s, &c);
    CHECK(strstr(said, "here it is 8 tokens") && strstr(said, "on rank 0 it is 9 tokens"), "%s",
          said);
    Dataset with_b = {.train = a.train, .val = b.train},
            with_c = {.train = a.train, .val = c.train};
    compare_settings(&s, &with_b, &s, &with_b);
    CHECK(said[0] == '\0', "%s", said);
    compare_settings(&s, &with_b, &s, &with_c);
    CHECK(strncmp(said, "validation data differs", 23) == 0, "%s", said);
    compare_settings(&s, &a, &s, &with_c);
    CHECK(strncmp(said, "validation data differs", 23) == 0, "%s", said);
    compare_settings(&s, &with_c, &s, &a);
    CHECK(strstr(said, "validation data differs between ranks: here it is none"), "%s", said);
    dataset_close(&a), dataset_close(&b), dataset_close(&c);
}

// ---------------------------------------------------------------------------------------------
// Weights and moments

static GPT2 *model_new(void) {
    const Config config = {.layers = 1, .heads = 1, .channels = 160, .seq_len = 8, .vocab = 500};
    GPT2 *model =
        gpt2_new(&config, 1, false, true); // the word embedding has 80,000 numbers: two pieces
    gpt2_init(model, 1);
    return model;
}

TEST(weights, "one number of any tensor, its first or its last, in weights, mean or variance: "
              "named by the rank that has "
              "it") {
    GPT2 *a = model_new(), *b = model_new();
    compare_weights(a, b);
    CHECK(said[0] == '\0', "%s", said);
    for (int i = 0; i < b->table.count; i++)
        for (int last = 0; last < 2; last++)
            for (int what = 0; what < 3; what++) {
                const Tensor *t = &b->table.tensors[i];
                float *packed = (float *)(what == 0   ? (void *)b->params
                                          : what == 1 ? (void *)b->m
                                                      : (void *)b->v);
                float *number = packed + t->offset + (last ? t->count - 1 : 0), before = *number;
                *number += 1;
                compare_weights(a, b);
                char want[120];
                snprintf(want, sizeof want, "the %s of %s differ from rank 0's",
                         what ? "moments" : "weights", t->name);
                CHECK(code == EXIT_INPUT && strncmp(said, want, strlen(want)) == 0, "%s (%d): %s",
                      t->name, what, said);
                *number = before;
            }
    gpt2_free(a);
    gpt2_free(b);
}

TEST(one_rank, "a rank alone compares nothing") {
    self.size = 1;
    Settings usual = settings_with(NULL, NULL), other = settings_with("--lr", "0.7");
    Dataset data = text_data("some text");
    compare_settings(&usual, &data, &other, &data);
    CHECK(said[0] == '\0', "%s", said);
    self.size = 2;
    dataset_close(&data);
}

int main(int argc, char **argv) {
    test_may_leak = true; // a check that fails is left by longjmp, with what it holds
    return test_main(argc, argv);
}
