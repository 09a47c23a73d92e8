/* test_plan.c: what follows from the settings, the data and the number of ranks, without training: the cut of an
 * update, steps, validation, memory, work; and which tokens train and which validate. Sums are written out here. */
#include "command_line.h"
#include "files.h"

#include "../llmc/cpu/cpu.h"
#include "../llmc/train/plan.h"

#include <limits.h>

/* A stream of n tokens; the text is static. */
static Stream *text_stream(uint64_t n) {
    static unsigned char text[5000];
    memset(text, 'a', sizeof text);
    return stream_of_text(text, n, "a text");
}

static Plan plan_for(const Settings *s, int T, int R, const Sequences *train,
                     const Sequences *val) {
    Config config = {.layers = 1, .heads = 1, .channels = 8, .seq_len = T, .vocab = 256};
    World world = {.size = R};
    return plan_make(s, &config, &world, train, val);
}

// ---------------------------------------------------------------------------------------------
// The update

TEST(cut, "for R, B and totals that divide nothing: micro-batches and micro-steps are those that "
          "dealing gives, and "
          "the total is never rounded") {
    Stream *stream = text_stream(1000);
    Sequences train = sequences_new(stream, 4, 0, false);
    for (int R = 1; R <= 8; R++)
        for (int B = 1; B <= 9; B++)
            for (int S = 1; S <= 30; S++) {
                Settings s = PARSE();
                s.batch = B, s.total_batch = 4 * S;
                Plan plan = plan_for(&s, 4, R, &train, NULL);
                int dealt[8] = {0}, batches = 0, most = 0, least = 99;
                for (int left = S; left > 0; left -= B) dealt[batches++ % R]++;
                for (int r = 0; r < R; r++) {
                    if (dealt[r] > most) most = dealt[r];
                    if (dealt[r] < least) least = dealt[r];
                }
                CHECK(plan.sequences == S && plan.T == 4 && plan.B == (B < S ? B : S));
                CHECK(plan.micro_batches == batches && plan.max_micro_steps == most &&
                          plan.min_micro_steps == least,
                      "R=%d B=%d S=%d: %d %d %d", R, B, S, (int)plan.micro_batches,
                      (int)plan.max_micro_steps, (int)plan.min_micro_steps);
            }
    stream_close(stream);
}

TEST(micro_steps, "--micro-steps K asks about B * K * R sequences") {
    Stream *stream = text_stream(1000);
    Sequences train = sequences_new(stream, 4, 0, false);
    Settings s = PARSE("--batch", "3", "--micro-steps", "5");
    Plan plan = plan_for(&s, 4, 7, &train, NULL);
    CHECK(plan.sequences == 3 * 5 * 7 && plan.max_micro_steps == 5 && plan.min_micro_steps == 5);
    s.micro_steps = INT_MAX, s.batch = INT_MAX;
    CHECK_FATAL(EXIT_USAGE, "the most is 1e15", plan_for(&s, 4, 7, &train, NULL));
    stream_close(stream);
}

TEST(totals, "a total that is not a whole number of sequences is refused with its neighbours; one "
             "below a sequence with "
             "the least") {
    Stream *stream = text_stream(1000);
    Sequences train = sequences_new(stream, 16, 0, false);
    Settings s = PARSE();
    for (int total = 1; total < 70; total++) {
        if (total % 16 == 0) continue;
        char text[80];
        snprintf(text, sizeof text,
                 total < 16 ? "the nearest valid total is 16" : "totals are %d and %d",
                 total / 16 * 16, total / 16 * 16 + 16);
        s.total_batch = total;
        if (total % 7 == 1) CHECK_FATAL(EXIT_USAGE, text, plan_for(&s, 16, 2, &train, NULL));
    }
    stream_close(stream);
}

TEST(steps, "--steps is used as given; --epochs X is the fewest updates that serve X epochs") {
    for (int n = 2; n < 400; n += 13) {
        Stream *stream = text_stream((uint64_t)n);
        Sequences train = sequences_new(stream, 4, 0, false);
        uint64_t epoch = 0; // sequences that hold n - 1 targets
        for (int targets = n - 1; targets > 0; targets -= 4) epoch++;
        for (int S = 1; S < 40; S += 5)
            for (int quarters = 1; quarters < 12; quarters += 2) {
                Settings s = PARSE("--epochs", "1");
                s.epochs = quarters / 4.0, s.total_batch = 4 * S;
                uint64_t steps = 0, served = 0; // in quarters of a sequence
                while (served < (uint64_t)quarters * epoch) served += 4 * (uint64_t)S, steps++;
                Plan plan = plan_for(&s, 4, 3, &train, NULL);
                CHECK(plan.steps == (int64_t)steps && plan.schedule.end == plan.steps,
                      "n=%d S=%d: %d, not %d", n, S, (int)plan.steps, (int)steps);
            }
        Settings s = PARSE("--steps", "77", "--total-batch", "64");
        CHECK(plan_for(&s, 4, 3, &train, NULL).steps == 77);
        stream_close(stream);
    }
    Stream *stream = text_stream(1000);
    Sequences train = sequences_new(stream, 4, 0, false);
    Settings s = PARSE("--epochs", "1e300", "--total-batch", "64");
    CHECK_FATAL(EXIT_USAGE, "use --steps", plan_for(&s, 4, 1, &train, NULL));
    stream_close(stream);
}

TEST(schedule, "rate, warmup, kind and end are the settings'; --decay-steps moves the end") {
    Stream *stream = text_stream(100);
    Sequences train = sequences_new(stream, 4, 0, false);
    Settings s = PARSE("--lr", "0.5", "--min-lr", "0.25", "--warmup", "3", "--schedule", "wsd",
                          "--steps", "9", "--beta1", "0.1", "--beta2", "0.2", "--eps", "0.3",
                          "--weight-decay", "0.4", "--clip", "0.6", "--total-batch", "64");
    Plan plan = plan_for(&s, 4, 1, &train, NULL);
    CHECK(plan.schedule.max == 0.5 && plan.schedule.min == 0.25 && plan.schedule.warmup == 3);
    CHECK(plan.schedule.kind == SCHEDULE_WSD && plan.schedule.end == 9);
    CHECK(plan.optimizer.beta1 == 0.1 && plan.optimizer.beta2 == 0.2 && plan.optimizer.eps == 0.3);
    CHECK(plan.optimizer.weight_decay == 0.4 && plan.optimizer.clip == 0.6);
    s = PARSE("--steps", "9", "--decay-steps", "20", "--total-batch", "64");
    CHECK(plan_for(&s, 4, 1, &train, NULL).schedule.end == 20);
    stream_close(stream);
}

TEST(validation, "--val-tokens N is the fewest sequences with N targets, 0 and too many are all of "
                 "them; off without "
                 "data or with --val-every 0") {
    for (int n = 2; n < 60; n += 3) {
        Stream *stream = text_stream((uint64_t)n);
        Sequences train = sequences_new(stream, 8, 0, false),
                  val = sequences_new(stream, 8, 0, false);
        for (int N = 0; N < 70; N++) {
            Settings s = PARSE("--total-batch", "64");
            s.val_tokens = N;
            uint64_t want = 0, targets = 0;
            while (want < val.per_epoch && (N == 0 || targets < (uint64_t)N))
                targets += (uint64_t)sequences_valid(&val, want++);
            CHECK(plan_for(&s, 8, 1, &train, &val).val_sequences == want, "n=%d N=%d: %d, not %d",
                  n, N, (int)plan_for(&s, 8, 1, &train, &val).val_sequences, (int)want);
            CHECK(plan_for(&s, 8, 1, &train, NULL).val_sequences == 0);
            s.val_every = 0;
            CHECK(plan_for(&s, 8, 1, &train, &val).val_sequences == 0);
        }
        stream_close(stream);
    }
}

// ---------------------------------------------------------------------------------------------
// Memory and work

TEST(memory,
     "the memory of a rank is the sum of its tensors, written out; recomputing keeps one block") {
    const Config config = {.layers = 3, .heads = 2, .channels = 64, .seq_len = 64, .vocab = 300};
    const size_t L = 3, NH = 2, C = 64, T = 64, Vp = 384, B = 4, N = B * T, F = sizeof(float);
    // Every size here is a multiple of 64 numbers, so that alignment adds nothing.
    size_t P =
        Vp * C + T * C +
        L * (2 * C + 3 * C * C + 3 * C + C * C + C + 2 * C + 4 * C * C + 4 * C + 4 * C * C + C) +
        2 * C;
    size_t block = N * (C + 1 + 1 + 3 * C + C + NH + C + C + 1 + 1 + 4 * C + 4 * C);
    size_t ends = (L + 1) * N * C + N * (C + 1 + 1); // the residual stream, the final LayerNorm
    MemoryPlan m = gpt2_memory(&config, (int)B, false, true);
    CHECK(m.params == P * F && m.grads == P * F && m.optimizer == 2 * P * F);
    CHECK(m.activations == (L * block + ends) * F, "%zu, not %zu", m.activations,
          (L * block + ends) * F);
    size_t logits = N * Vp; // all of them fit in one chunk of the classifier
    CHECK(m.scratch == (logits + N * (C + C + 4 * C)) * F, "%zu", m.scratch);
    m = gpt2_memory(&config, (int)B, true, true);
    CHECK(m.activations == (block + ends + L * T * 3 * C) * F, "%zu", m.activations);

    Stream *stream = text_stream(1000);
    Sequences train = sequences_new(stream, (int)T, 0, false);
    World world = {.size = 2};
    for (int exact = 0; exact < 2; exact++) {
        Settings s =
            PARSE("--total-batch", "1024", "--batch", "4"); // 4 micro-batches, 2 on each rank
        s.exact = exact;
        Plan plan = plan_make(&s, &config, &world, &train, NULL);
        size_t sums;
        m = plan_memory(&plan, &s, &world, 4, &sums);
        size_t want = reduction_bytes(P, exact, 2, 2);
        CHECK(sums == want && (exact ? sums >= P * 8 : sums < P), "%zu", sums); // 8 bytes a sum
        CHECK(plan_memory_total(&m, sums) ==
              m.params + m.grads + m.optimizer + m.activations + m.scratch + sums);
    }
    stream_close(stream);
}

TEST(what_is_taken, "a model takes exactly the memory that was planned") {
    const Config config = {.layers = 2, .heads = 3, .channels = 33, .seq_len = 17, .vocab = 301};
    for (int training = 0; training < 2; training++)
        for (int recompute = 0; recompute < 2; recompute++) {
            MemoryPlan m = gpt2_memory(&config, 5, recompute, training);
            GPT2 *model = gpt2_new(&config, 5, recompute, training);
            CHECK(model->bytes == m.params + m.grads + m.optimizer + m.activations + m.scratch);
            gpt2_free(model);
        }
}

TEST(work, "FLOPs a token: 6 for each weight of a matrix, 6 L C T for causal attention; GPT-2 124M "
           "has 124,439,808 "
           "parameters") {
    Config config;
    CHECK(config_named("gpt2", &config));
    double matrices = 12 * (768.0 * 2304 + 768 * 768 + 2 * 768 * 3072) + 50257 * 768.0;
    CHECK(gpt2_flops_per_token(&config) == 6 * matrices + 6.0 * 12 * 768 * 1024);
    TensorTable table = tensor_table_new(&config);
    CHECK(table.parameters == 124439808);
    CHECK(tensor_table_group(&table, true).parameters == 124439808 - 121344);
    CHECK(tensor_table_group(&table, true).tensors == 50 &&
          tensor_table_group(&table, false).tensors == 98);
    tensor_table_free(&table);
}

TEST(too_large,
     "a batch that does not fit names the largest that does; a model too large is refused") {
    Stream *stream = text_stream(1000);
    Sequences train = sequences_new(stream, 64, 0, false);
    World world = {.size = 1};
    Config config = {.layers = 2, .heads = 1, .channels = 4096, .seq_len = 64, .vocab = 256};
    Settings s = PARSE("--total-batch", "64M", "--batch", "1M", "--no-exact");
    Plan plan = plan_make(&s, &config, &world, &train, NULL);
    int fit = 0, not_fit = plan.B; // what the message must name, found here by adding up
    while (not_fit - fit > 1) {
        int middle = (fit + not_fit) / 2;
        size_t sums;
        MemoryPlan m = plan_memory(&plan, &s, &world, middle, &sums);
        if (plan_memory_total(&m, sums) <= device_memory())
            fit = middle;
        else
            not_fit = middle;
    }
    char text[64];
    snprintf(text, sizeof text, "--batch %d would fit", fit);
    if (fit > 0) CHECK_FATAL(EXIT_RUNTIME, text, plan_check_memory(&plan, &s, &world));
    config.layers = 10000;
    plan = plan_make(&s, &config, &world, &train, NULL);
    CHECK_FATAL(EXIT_RUNTIME, "not even --batch 1 would fit: try --recompute, or",
                plan_check_memory(&plan, &s, &world));
    s.recompute = true;
    CHECK_FATAL(EXIT_RUNTIME, "would fit: use a smaller", plan_check_memory(&plan, &s, &world));
    stream_close(stream);
}

// ---------------------------------------------------------------------------------------------
// Which tokens train, which validate

/* The tokens of a stream as text. */
static const char *content(const Stream *stream) {
    static char text[4][300];
    static int next;
    int32_t tokens[300];
    char *out = text[next++ % 4];
    size_t n = stream ? (size_t)stream_length(stream) : 0;
    if (n) stream_read(stream, 0, n, tokens);
    for (size_t i = 0; i < n; i++) out[i] = (char)tokens[i];
    out[n] = '\0';
    return out;
}

static void check_dataset(const Settings *s, const char *train, const char *val) {
    Dataset data = dataset_open(s, NULL, 0);
    CHECK(strcmp(content(data.train), train) == 0, "trains on \"%s\", not \"%s\"",
          content(data.train), train);
    CHECK(strcmp(content(data.val), val) == 0, "validates on \"%s\", not \"%s\"", content(data.val),
          val);
    CHECK((data.val != NULL) == (val[0] != '\0'));
    dataset_close(&data);
}

TEST(shares, "the last --val-fraction of the tokens validates, the rest, rounded down, trains") {
    const char *file = write_string("shares.txt", "abcdefghijklmnopqrst");
    static const struct {
        const char *fraction, *train, *val;
    } cases[] = {{"0.1", "abcdefghijklmnopqr", "st"},
                 {"0.25", "abcdefghijklmno", "pqrst"},
                 {"0.26", "abcdefghijklmn", "opqrst"},
                 {"0.9", "ab", "cdefghijklmnopqrst"},
                 {"0", "abcdefghijklmnopqrst", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Settings s = PARSE("--data", file, "--val-fraction", cases[i].fraction);
        check_dataset(&s, cases[i].train, cases[i].val);
    }
    Settings s = PARSE("--data", file, "--val-fraction", "0.04");
    CHECK_FATAL(EXIT_USAGE, "leaves 19 to train and 1 to validate", dataset_open(&s, NULL, 0));
    s = PARSE("--data", file, "--val-fraction", "0.95");
    CHECK_FATAL(EXIT_USAGE, "leaves 1 to train and 19 to validate", dataset_open(&s, NULL, 0));
}

TEST(parts, "a directory with files named train and val is used by part; --val and files named one "
            "by one go first") {
    mkdir(in_folder("parts"), 0777);
    mkdir(in_folder("plain"), 0777);
    write_string("parts/x_train_0.txt", "train0 "), write_string("parts/x_train_1.txt", "train1 ");
    write_string("parts/x_val_0.txt", "value"), write_string("parts/x_test.txt", "test");
    write_string("plain/one.txt", "one "), write_string("plain/two.txt", "two ");
    write_string("other.txt", "other");
    Settings s = PARSE("--data", in_folder("parts"));
    check_dataset(&s, "train0 train1 ", "value"); // and no share of it: --val-fraction is 0.1
    s = PARSE("--data", in_folder("parts"), "--val", in_folder("other.txt"));
    check_dataset(&s, "train0 train1 ", "other");
    s = PARSE("--data", in_folder("other.txt"), "--val", in_folder("parts"));
    check_dataset(&s, "other", "value");
    s = PARSE("--data", in_folder("plain"), "--val", in_folder("plain"));
    check_dataset(&s, "one two ", "one two ");
    s = PARSE("--data", in_folder("plain"), "--data", in_folder("other.txt"), "--val-fraction",
                 "0");
    check_dataset(&s, "one two other", "");
    s = PARSE("--data", in_folder("parts/x_val_0.txt"), "--val-fraction", "0");
    check_dataset(&s, "value", "");
    const int32_t tokens[] = {1, 2, 3};
    s = PARSE("--data", in_folder("other.txt"), "--val", write_llmc("tokens.bin", tokens, 3));
    CHECK_FATAL(EXIT_USAGE, "must both be text or both be tokens", dataset_open(&s, NULL, 0));
}

TEST(builtin, "without --data it is the built-in text, a tenth of it for validation") {
    Settings s = PARSE();
    Dataset data = dataset_open(&s, NULL, 0);
    uint64_t train = stream_length(data.train), val = stream_length(data.val);
    CHECK(stream_is_bytes(data.train) && dataset_vocab(&data) == 256);
    CHECK(train + val > 100000 && train == (uint64_t)((double)(train + val) * 0.9));
    int32_t first[11];
    stream_read(data.train, 0, 11, first);
    CHECK(first[0] == '#' && first[2] == 't', "it begins with the README");
    dataset_close(&data);
}

int main(int argc, char **argv) {
    test_may_leak = true; // the lists of the many settings here are not freed
    return test_main(argc, argv);
}
