/* real_score.c: the losses of completions, and what acc and acc_norm choose, equal those that an independent
 * program in Python computed in float64 (dev/record_scores.py, test/fixtures/hellaswag). */
#include "test.h"

#include "../llmc/cpu/cpu.h"
#include "../llmc/eval/score.h"
#include "../llmc/files/json_read.h"
#include "../llmc/weights/weights.h"

#include <math.h>

// The weights are the same floats on both sides: double differs by its rounding alone.
static const double tolerance = sizeof(real) == 8 ? 1e-12 : 2e-5;
static const char folder[] = "test/fixtures/hellaswag";
static const char binary[] = "test/fixtures/hellaswag/examples.bin";
static const char lines[] = "test/fixtures/hellaswag/examples.jsonl";
static const char model_path[] = "test/fixtures/hellaswag/model";

enum { EXAMPLES = 30 };

/* Line i of expected.jsonl; line EXAMPLES has the totals. */
static const Json *expected(int i) {
    static const Json *all[EXAMPLES + 1];
    char path[128], line[1024], problem[JSON_PROBLEM];
    if (all[0]) return all[i];
    snprintf(path, sizeof path, "%s/expected.jsonl", folder);
    FILE *file = fopen(path, "r");
    for (int k = 0; k <= EXAMPLES && fgets(line, sizeof line, file); k++)
        all[k] = json_read(line, strlen(line), problem);
    fclose(file);
    return all[i];
}

static int64_t number(int i, const char *name) { return json_member(expected(i), name)->integer; }

/* The fixture's model with memory for so many sequences, and the examples. */
static GPT2 *model;
static Examples *examples;
static Scorer *scorer;
static Tokenizer *tokenizer;

static void open_all(int sequences, const char *path, int64_t most) {
    Weights *weights = weights_open(model_path);
    model = gpt2_new(weights_config(weights), sequences, false, false);
    weights_load(weights, model);
    weights_close(weights);
    tokenizer = tokenizer_open(model_path);
    ExamplesFor for_it = {tokenizer, model->config.vocab, model->config.seq_len};
    examples = examples_open(path, &for_it, most);
    scorer = scorer_new(model, examples);
}

static void close_all(void) {
    scorer_free(scorer);
    examples_close(examples);
    tokenizer_free(tokenizer);
    gpt2_free(model);
}

static int smallest(const double *values, int n) {
    int least = 0;
    for (int i = 1; i < n; i++)
        if (values[i] < values[least]) least = i;
    return least;
}

static void compare(const char *path) {
    open_all(4, path, 0);
    CHECK(examples->count == EXAMPLES, "%zu", examples->count);
    for (int i = 0; i < EXAMPLES; i++) {
        const Example *e = &examples->items[i];
        double losses[COMPLETIONS_MOST], means[COMPLETIONS_MOST];
        score_losses(scorer, e, losses);
        CHECK(e->completions == 4, "example %d: %d", i, e->completions);
        const Json *loss = json_member(expected(i), "losses")->first;
        const Json *tokens = json_member(expected(i), "tokens")->first;
        for (int k = 0; k < 4; k++, loss = loss->next, tokens = tokens->next) {
            CHECK(e->tokens[k] == tokens->integer, "example %d, completion %d: %d tokens", i, k,
                  e->tokens[k]);
            CHECK(fabs(losses[k] - loss->number) <= tolerance * loss->number,
                  "example %d, completion %d: %.17g, expected %.17g", i, k, losses[k],
                  loss->number);
            means[k] = losses[k] / e->tokens[k];
        }
        CHECK(smallest(losses, 4) == number(i, "acc"), "example %d", i);
        CHECK(smallest(means, 4) == number(i, "acc_norm"), "example %d", i);
    }
    World alone = {.size = 1};
    Score score = score_examples(model, examples, &alone);
    CHECK(score.examples == EXAMPLES && (int64_t)score.acc == number(EXAMPLES, "acc") &&
              (int64_t)score.acc_norm == number(EXAMPLES, "acc_norm"),
          "%d %d", (int)score.acc, (int)score.acc_norm);
    close_all();
}

TEST(llmc_file, "llm.c's format: losses, choices and figures are the recorded ones") {
    compare(binary);
}

TEST(json_lines,
     "JSON lines, through the tokenizer: losses, choices and figures are the recorded ones") {
    compare(lines);
}

TEST(one_at_a_time, "a model with memory for one sequence finds the very same losses") {
    static double together[EXAMPLES][COMPLETIONS_MOST];
    for (int pass = 0; pass < 2; pass++) {
        open_all(pass == 0 ? 7 : 1, binary, 0);
        for (int i = 0; i < EXAMPLES; i++) {
            double losses[COMPLETIONS_MOST];
            score_losses(scorer, &examples->items[i], losses);
            if (pass == 0)
                memcpy(together[i], losses, sizeof losses);
            else
                CHECK(memcmp(together[i], losses, 4 * sizeof *losses) == 0, "example %d", i);
        }
        close_all();
    }
}

TEST(dealt, "what the ranks of a world of three count adds up to the figures of one") {
    open_all(4, binary, 0);
    Score sum = {0};
    for (int rank = 0; rank < 3; rank++) {
        World one_of_three = {.rank = rank, .size = 3};
        Score part =
            score_examples(model, examples, &one_of_three); // alone here, the sum is the part's
        sum.acc += part.acc, sum.acc_norm += part.acc_norm, sum.examples += part.examples;
        CHECK(part.examples == EXAMPLES / 3);
    }
    CHECK(sum.examples == EXAMPLES && (int64_t)sum.acc == number(EXAMPLES, "acc") &&
              (int64_t)sum.acc_norm == number(EXAMPLES, "acc_norm"),
          "%d %d", (int)sum.acc, (int)sum.acc_norm);
    close_all();
}

TEST(first_examples, "a bound takes the first examples") {
    for (int format = 0; format < 2; format++) {
        open_all(4, format ? binary : lines, 7);
        World alone = {.size = 1};
        Score score = score_examples(model, examples, &alone);
        int64_t acc = 0;
        for (int i = 0; i < 7; i++) acc += examples->items[i].label == number(i, "acc");
        CHECK(score.examples == 7 && (int64_t)score.acc == acc, "%d of %d", (int)score.acc,
              (int)score.examples);
        close_all();
    }
}

int main(int argc, char **argv) {
    backend_open(0, 1, 2);
    return test_main(argc, argv);
}
