/* real_fixture.c: a model that another program made, in each of its formats, computes here what PyTorch
 * computed with it in float64: losses, logits, the norm of every gradient, and a greedy continuation
 * (test/fixtures/README.md). */
#include "test.h"

#include "../llmc/cpu/cpu.h"
#include "../llmc/files/json_read.h"
#include "../llmc/model/gpt2.h"
#include "../llmc/train/generate.h"
#include "../llmc/weights/weights.h"

// Weights are the same floats on both sides, so double differs from the recorded values by its rounding
// alone; logits are read as floats. BF16 weights have 8 bits: only the loss is near.
static const double tolerance = sizeof(real) == 8 ? 1e-13 : 3e-6, logit_tolerance = 2e-6;

enum { LINES = 4, MOST = 64 };
static const char hf[] = "test/fixtures/hf_tiny";
static const char bin3[] = "test/fixtures/llmc_tiny/model_fp32.bin";
static const char bin5[] = "test/fixtures/llmc_tiny/model_bf16.bin";

/* The lines of expected.jsonl. */
static const Json *expected[LINES];

static void read_expected(void) {
    if (expected[0]) return;
    FILE *file = fopen("test/fixtures/hf_tiny/expected.jsonl", "r");
    char line[16384], problem[JSON_PROBLEM];
    for (int i = 0; i < LINES && fgets(line, sizeof line, file); i++)
        expected[i] = json_read(line, strlen(line), problem);
    fclose(file);
    CHECK(expected[LINES - 1] != NULL, "%s", problem);
}

/* The numbers of an array of arrays, row after row; returns how many rows. */
static int read_rows(const Json *rows, Id *out, int *count) {
    *count = 0;
    for (const Json *row = rows->first; row; row = row->next)
        for (const Json *id = row->first; id; id = id->next) out[(*count)++] = (Id)id->integer;
    return (int)rows->count;
}

static GPT2 *load(const char *path, int rows) {
    Weights *weights = weights_open(path);
    GPT2 *model = gpt2_new(weights_config(weights), rows, false, true);
    weights_load(weights, model);
    weights_close(weights);
    return model;
}

/* The mean loss of a line's batch, and gradients of it. */
static double backward(GPT2 *model, const Json *line) {
    Id ids[MOST], targets[MOST];
    RowStat losses[MOST];
    int count, B = read_rows(json_member(line, "inputs"), ids, &count);
    read_rows(json_member(line, "targets"), targets, &count);
    gpt2_forward(model, ids, B, count / B);
    gpt2_backward(model, losses, ids, targets, B, count / B, 1.0 / count, false, NULL, NULL);
    double sum = 0;
    for (int i = 0; i < count; i++) sum += losses[i];
    return sum / count;
}

TEST(losses_and_gradients, "losses and the norm of each gradient, from both float formats") {
    read_expected();
    const char *paths[] = {hf, bin3};
    for (int p = 0; p < 2; p++) {
        GPT2 *model = load(paths[p], 2);
        double *sums = malloc((size_t)model->table.count * sizeof *sums);
        for (int i = 0; i < LINES - 1; i++) {
            double loss = backward(model, expected[i]),
                   want = json_member(expected[i], "loss")->number;
            CHECK_NEAR(loss, want, tolerance * want);
            const Json *norms = json_member(expected[i], "grad_norm");
            CHECK((int)norms->count == model->table.count, "%zu norms", norms->count);
            gradient_square_sums(sums, model->grads, model->table.spans, model->table.count);
            for (int k = 0; k < model->table.count; k++) {
                char name[64];
                snprintf(name, sizeof name, "transformer.%s", model->table.tensors[k].name);
                const Json *norm = json_member(norms, name);
                CHECK(norm != NULL, "%s", name);
                if (norm) CHECK_NEAR(sqrt(sums[k]), norm->number, 4 * tolerance * norm->number);
            }
        }
        free(sums);
        gpt2_free(model);
    }
}

TEST(bf16, "the BF16 file is the same model, rounded") {
    read_expected();
    GPT2 *model = load(bin5, 2);
    for (int i = 0; i < LINES - 1; i++) {
        double want = json_member(expected[i], "loss")->number;
        CHECK_NEAR(backward(model, expected[i]), want, 5e-3 * want);
    }
    gpt2_free(model);
}

TEST(logits, "the logits after the last token of every row") {
    read_expected();
    GPT2 *model = load(hf, 1);
    float logits[97];
    for (int i = 0; i < LINES - 1; i++) {
        const Json *row = json_member(expected[i], "inputs")->first;
        for (const Json *want = json_member(expected[i], "logits_last")->first; want;
             want = want->next) {
            Id ids[MOST];
            int n = 0, v = 0;
            for (const Json *id = row->first; id; id = id->next) ids[n++] = (Id)id->integer;
            gpt2_extend(model, ids, n, 0);
            gpt2_logits(model, logits, n);
            CHECK(want->count == 97);
            for (const Json *x = want->first; x; x = x->next, v++)
                CHECK_NEAR(logits[v], x->number, logit_tolerance);
            row = row->next;
        }
    }
    gpt2_free(model);
}

static void add_token(void *context, int token) {
    Id **at = context;
    *(*at)++ = token;
}

TEST(greedy, "the greedy continuation, token by token") {
    read_expected();
    GPT2 *model = load(hf, 1);
    const Json *prompt = json_member(expected[LINES - 1], "prompt");
    const Json *greedy = json_member(expected[LINES - 1], "greedy");
    Id ids[MOST], *at = ids;
    for (const Json *id = prompt->first; id; id = id->next) *at++ = (Id)id->integer;
    Sampling sampling = {.temperature = 0};
    generate(model, ids, (int)prompt->count, (int64_t)(greedy->count - prompt->count), &sampling,
             add_token, &at);
    int i = 0;
    for (const Json *id = greedy->first; id; id = id->next, i++)
        CHECK(ids[i] == id->integer, "token %d is %d, not %d", i, (int)ids[i], (int)id->integer);
    gpt2_free(model);
}

int main(int argc, char **argv) { return test_main(argc, argv); }
