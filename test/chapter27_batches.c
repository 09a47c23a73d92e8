/* chapter27_batches.c: chapter 27, continued from chapter27_adamw.c: 27.3, accumulation; 27.4,
 * clipping; 27.5, many GPUs; 27.6, logs; and the exercises. Where the chapter uses a tiny GPT of its
 * own, this is the project's (tiny.h). What only the running program can show (one learning rate an
 * update, not a micro-step; the norm before clipping in the log; sums over counts) is held to in
 * gpt2_program.c. */
#include "chapter27.h"
#include "tiny.h"

#include "../llmc/optimizer/adamw.h"
#include "../llmc/settings/settings.h"
#include "../llmc/train/evaluate.h"
#include "../llmc/train/plan.h"

/* What the chapter prints was computed in float64; the float build is held to its own precision. */
static const double rounding = IN_DOUBLE ? 1e-15 : 1e-6;

enum { ROW = TINY_T, FIVE = 5 * TINY_T, FOUR = 4 * TINY_T };

static const AdamW course_adamw = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1};

// ---------------------------------------------------------------------------------------------
// 27.3 Where the denominator of gradient accumulation comes from

TEST(weighted_mean,
     "27.3: 2 tokens of loss 1 and 3 of loss 3: (2*1 + 3*3)/5 = 2.2; the mean of means is 2") {
    // Two words with logits (x, 0) have loss log(1 + exp(-x)) where the first is the target.
    enum { N = 5, C = 1, V = 2, VP = 128 };
    const double losses[2] = {1, 3};
    const int counts[2] = {2, 3};
    real *wte = fresh(VP * C), *logits = fresh((size_t)classifier_chunk(N, VP) * VP), *x = fresh(N);
    real *got = fresh(N);
    Id *targets = fresh_tokens("none", 1, N); // all 0
    memset(wte, 0, VP * C * sizeof *wte);
    wte[0] = 1;
    for (int n = 0; n < N; n++) x[n] = (real)-log(expm1(losses[n >= 2]));
    classifier(got, NULL, NULL, logits, x, wte, targets, 0, N, C, V, VP, false);
    double sum[2] = {(double)got[0] + got[1], (double)got[2] + got[3] + got[4]};
    CHECK_NEAR((sum[0] + sum[1]) / N, 2.2, 2 * rounding); // each token weighs 1/N
    CHECK_NEAR((sum[0] / counts[0] + sum[1] / counts[1]) / 2, 2.0, 2 * rounding);
    SHOW("every token weighs 1/N", "2.2", "%.10g", (sum[0] + sum[1]) / N);
    SHOW("the mean of the two means", "2", "%.10g", (sum[0] / counts[0] + sum[1] / counts[1]) / 2);
    release_fresh();
}

/* The gradients of the five sequences, as micro-batches of 2 and 3 sequences with the given weights of their means.
 */
static GPT2 *two_and_three(double weight_of_2, double weight_of_3) {
    GPT2 *model = tiny_new(false);
    TinyBatch batch = tiny_batch("tiny.rows", 5);
    real losses[FIVE];
    tiny_micro_batch(model, losses, &batch, 0, 2, weight_of_2 / (2 * ROW), false);
    tiny_micro_batch(model, losses, &batch, 2, 3, weight_of_3 / (3 * ROW), true);
    return model;
}

static GPT2 *five_at_once(void) {
    GPT2 *model = tiny_new(false);
    TinyBatch batch = tiny_batch("tiny.rows", 5);
    real losses[FIVE];
    tiny_micro_batch(model, losses, &batch, 0, 5, 1.0 / FIVE, false);
    return model;
}

/* The largest difference between the gradients of two models, which are freed. */
static double largest_difference(GPT2 *a, GPT2 *b) {
    double difference = tiny_difference(a, a->grads, b->grads);
    gpt2_free(a);
    gpt2_free(b);
    return difference;
}

TEST(two_fifths_three_fifths,
     "27.3: five sequences as 2 + 3, weighted 2/5 and 3/5, are the five sequences at once") {
    Expectations *e = expect_open("gpt2_five");
    GPT2 *split = two_and_three(2.0 / 5, 3.0 / 5);
    tiny_expect(e, split, split->grads, MODEL_GRADIENT);
    double difference = largest_difference(split, five_at_once());
    CHECK(difference <= rounding, "%g", difference);
    SHOW("largest error of the gradients (each on its own tiny GPT)", "5.55e-17", "%.3g", difference);
    expect_rest(e);
    expect_close(e);
}

TEST(one_half_one_half,
     "27.3: weighted 1/2 and 1/2 they are not: off by more than 0.01, as PyTorch's are") {
    Expectations *e = expect_open("gpt2_equal");
    GPT2 *wrong = two_and_three(0.5, 0.5);
    tiny_expect(e, wrong, wrong->grads, MODEL_GRADIENT);
    double difference = largest_difference(wrong, five_at_once());
    CHECK(difference > 0.01, "%g", difference);
    SHOW("largest error of the gradients (each on its own tiny GPT)", "0.052799", "%.6f", difference);
    expect_close(e);
}

TEST(four_equal_micro_steps,
     "27.3: four equal micro-steps, each loss divided by 4, are the four sequences at once") {
    Expectations *e = expect_open("gpt2_four");
    GPT2 *model = tiny_new(false);
    TinyBatch batch = tiny_batch("tiny.rows", 4);
    real losses[FOUR];
    for (int k = 0; k < 4; k++) tiny_micro_batch(model, losses, &batch, k, 1, 1.0 / ROW / 4, k > 0);
    expect_tensor(e, "losses", losses, FOUR, MODEL_LOSS, 1);
    tiny_expect(e, model, model->grads, MODEL_GRADIENT);
    gpt2_free(model);
    expect_close(e);
}

TEST(zeroing_each_time,
     "27.3: zeroing before each micro-step leaves the last one's gradient alone") {
    GPT2 *model = tiny_new(false), *last = tiny_new(false);
    TinyBatch batch = tiny_batch("tiny.rows", 5);
    real losses[FIVE];
    tiny_micro_batch(model, losses, &batch, 0, 2, 1.0 / FIVE, false);
    tiny_micro_batch(model, losses, &batch, 2, 3, 1.0 / FIVE, false); // written, not added
    tiny_micro_batch(last, losses, &batch, 2, 3, 1.0 / FIVE, false);
    CHECK(largest_difference(model, last) == 0);
    model = two_and_three(0, 3.0 / 5);
    CHECK(largest_difference(model, five_at_once()) > 0.01, "which is not the update's");
}

static void adamw_now(GPT2 *model, const AdamW *optimizer, int64_t t) {
    AdamWScalars step =
        adamw_scalars(optimizer, t, 1e-3, clip_scale(tiny_norm(model), optimizer->clip));
    adamw_update(model->params, model->master, model->m, model->v, model->grads, model->table.spans,
                 model->table.count, &step);
}

static double weight_difference(const GPT2 *a, const GPT2 *b) {
    return tiny_difference(a, a->params, b->params);
}

TEST(stepping_each_time,
     "27.3: a step after each micro-step is another computation: the weights changed between") {
    GPT2 *once = two_and_three(2.0 / 5, 3.0 / 5), *twice = tiny_new(false);
    TinyBatch batch = tiny_batch("tiny.rows", 5);
    real losses[FIVE];
    adamw_now(once, &course_adamw, 1);
    tiny_micro_batch(twice, losses, &batch, 0, 2, 1.0 / FIVE, false);
    adamw_now(twice, &course_adamw, 1);
    tiny_micro_batch(twice, losses, &batch, 2, 3, 1.0 / FIVE, false);
    adamw_now(twice, &course_adamw, 2);
    CHECK(weight_difference(once, twice) > 1e-4, "%g", weight_difference(once, twice));
    SHOW("largest difference of the weights", "-", "%.3g", weight_difference(once, twice));
    gpt2_free(once);
    gpt2_free(twice);
}

TEST(sequences_are_independent,
     "27.3: LayerNorm looks at one position: a sequence's losses do not depend on its neighbours") {
    GPT2 *model = tiny_new(false);
    TinyBatch batch = tiny_batch("tiny.rows", 5);
    real together[FIVE], alone[FIVE];
    gpt2_forward(model, batch.ids, 5, ROW);
    gpt2_loss(model, together, batch.targets, 5, ROW);
    for (int sequence = 0; sequence < 5; sequence++) {
        gpt2_forward(model, batch.ids + sequence * ROW, 1, ROW);
        gpt2_loss(model, alone + sequence * ROW, batch.targets + sequence * ROW, 1, ROW);
    }
    for (int i = 0; i < FIVE; i++) CHECK_NEAR(alone[i], together[i], 8 * rounding);
    gpt2_free(model);
}

// ---------------------------------------------------------------------------------------------
// 27.4 Which vector does clipping limit?

static double pair_norm(const real g[2]) {
    Span both = {.offset = 0, .count = 2};
    double sum;
    gradient_square_sums(&sum, g, &both, 1);
    return sqrt(sum);
}

/* What AdamW's first moment receives of a gradient: with beta1 = 0 that is the clipped gradient itself. */
static void clip_pair(real clipped[2], const real g[2], double clip) {
    Span both = {.offset = 0, .count = 2};
    real w[2] = {0, 0}, v[2] = {0, 0};
    AdamW optimizer = {.beta1 = 0, .beta2 = 0.95, .eps = 1e-8, .clip = clip};
    AdamWScalars step = adamw_scalars(&optimizer, 1, 1e-3, clip_scale(pair_norm(g), clip));
    clipped[0] = clipped[1] = 0;
    adamw_update(w, NULL, clipped, v, g, &both, 1, &step);
}

TEST(clip_3_4, "27.4: (3,4) has norm 5 and becomes (0.6, 0.8): shorter, in the same direction") {
    real g[2] = {3, 4}, clipped[2];
    CHECK_NEAR(pair_norm(g), 5, 0);
    clip_pair(clipped, g, 1); // by 1/(5 + 1e-6): PyTorch's guard against division by zero
    CHECK_NEAR(clipped[0], 0.6, 2e-7);
    CHECK_NEAR(clipped[1], 0.8, 2e-7);
    CHECK_NEAR(clipped[0] * 4.0 - clipped[1] * 3.0, 0, 4 * rounding);
    SHOW("norm", "5", "%g", pair_norm(g));
    SHOW("first element after clipping at 1", "0.6", "%.7g", (double)clipped[0]);
    SHOW("second element", "0.8", "%.7g", (double)clipped[1]);
}

TEST(clip_not_by_element, "27.4: clipped element by element it would be (1,1): another direction") {
    real g[2] = {3, 4}, clipped[2];
    clip_pair(clipped, g, 1);
    CHECK_NEAR(clipped[1] - clipped[0], 0.2, 2e-7); // (1,1) has equal elements
    clip_pair(clipped, g, 10);
    CHECK(clipped[0] == 3 && clipped[1] == 4, "below the threshold nothing changes");
}

TEST(clip_all_at_once,
     "27.4: one norm over all parameters: two tensors (3) and (4) are scaled by one factor") {
    const Span spans[2] = {{.offset = 0, .count = 1}, {.offset = 1, .count = 1}};
    real g[2] = {3, 4};
    double sums[2];
    gradient_square_sums(sums, g, spans, 2);
    CHECK_NEAR(sqrt(sums[0] + sums[1]), 5, 0);
}

TEST(clip_small,
     "27.4: a norm below the threshold is left alone, one of 0 divides nothing by zero") {
    CHECK(clip_scale(0.5, 1) == 1 && clip_scale(0, 1) == 1);
}

TEST(clip_after_the_sum, "27.4: clip(g1 + g2) is not clip(g1) + clip(g2)") {
    const real g1[2] = {3, 4}, g2[2] = {-3, 4}, sum[2] = {0, 8};
    double s1 = clip_scale(pair_norm(g1), 1), s2 = clip_scale(pair_norm(g2), 1);
    double after = sum[1] * clip_scale(pair_norm(sum), 1), before = g1[1] * s1 + g2[1] * s2;
    CHECK_NEAR(after, 1, 1e-6);
    CHECK_NEAR(before, 1.6, 1e-6);
    SHOW("g1 = (3,4), g2 = (-3,4): second element of clip(g1 + g2)", "-", "%.6g", after);
    SHOW("second element of clip(g1) + clip(g2)", "-", "%.6g", before);
}

TEST(clip_repairs_no_nan,
     "27.4: clipping repairs no NaN: norm and scale stay NaN, and stop the update") {
    real g[2] = {(real)NAN, 4};
    CHECK(isnan(pair_norm(g)) && isnan(clip_scale(pair_norm(g), 1)));
    g[0] = (real)INFINITY;
    CHECK(isinf(pair_norm(g)));
}

// ---------------------------------------------------------------------------------------------
// 27.5 DDP copies the model, splits the data, then averages the gradients

/* Four sequences on two simulated ranks, two sequences each in `micro_steps` micro-steps of a model of its
 * own, every token scaled by `scale`; the ranks' gradients are then added and divided by `divisor`.
 */
static GPT2 *two_ranks(int micro_steps, double scale, double divisor) {
    TinyBatch batch = tiny_batch("tiny.rows", 4);
    GPT2 *rank[2];
    real losses[FOUR];
    int sequences = 2 / micro_steps;
    for (int r = 0; r < 2; r++) {
        rank[r] = tiny_new(false);
        for (int k = 0; k < micro_steps; k++)
            tiny_micro_batch(rank[r], losses, &batch, 2 * r + k * sequences, sequences, scale,
                             k > 0);
    }
    for (size_t i = 0; i < rank[0]->table.elements; i++)
        rank[0]->grads[i] = (real)((rank[0]->grads[i] + rank[1]->grads[i]) / divisor);
    gpt2_free(rank[1]);
    return rank[0];
}

/* The four sequences in one batch, by this program. */
static GPT2 *four_at_once(void) {
    GPT2 *model = tiny_new(false);
    TinyBatch batch = tiny_batch("tiny.rows", 4);
    real losses[FOUR];
    tiny_micro_batch(model, losses, &batch, 0, 4, 1.0 / FOUR, false);
    return model;
}

/* Against PyTorch's values, and against the same four sequences at once. */
static void check_four(GPT2 *ranks) {
    Expectations *e = expect_open("gpt2_four");
    for (int i = 0; i < ranks->table.count; i++) {
        const Tensor *t = &ranks->table.tensors[i];
        expect_tensor(e, t->name, ranks->grads + t->offset, t->count, MODEL_GRADIENT, 1);
    }
    expect_rest(e);
    expect_close(e);
    double difference = largest_difference(ranks, four_at_once());
    CHECK(difference <= rounding, "%g", difference);
    SHOW("largest error of the gradients (each on its own tiny GPT)", "5.55e-17", "%.3g", difference);
}

TEST(
    two_ranks_averaged,
    "27.5: two ranks of two sequences, their mean gradients averaged, are four sequences at once") {
    check_four(two_ranks(1, 1.0 / (2 * ROW), 2));
}

TEST(two_ranks_summed,
     "27.5: this program scales every token by 1/N and adds: the same, without dividing by R") {
    check_four(two_ranks(1, 1.0 / FOUR, 1));
}

TEST(ranks_and_micro_steps,
     "27.5: R = 2 ranks of K = 2 micro-steps: a mean over each sequence, scaled by 1/(RK)") {
    check_four(two_ranks(2, 1.0 / ROW / (2 * 2), 1));
}

/* The four sequences as two micro-batches, added up by the program's own reduction. */
static GPT2 *summed_by_the_program(bool exact) {
    GPT2 *model = tiny_new(false);
    TinyBatch batch = tiny_batch("tiny.rows", 4);
    real losses[FOUR];
    size_t count = model->table.elements;
    memset(model->grads, 0, count * sizeof *model->grads); // what lies between tensors, too
    reduction_open(model->grads, count, exact, 2);
    for (int k = 0; k < 2; k++) {
        tiny_micro_batch(model, losses, &batch, 2 * k, 2, 1.0 / FOUR, k > 0 && !exact);
        reduction_ready(0, count, k == 0, k == 1, true);
    }
    CHECK(reduction_finish() == -1);
    reduction_close();
    return model;
}

TEST(dividing_twice, "27.5: the program's sum of gradients scaled by 1/N is divided by nothing: "
                     "halved once more it is "
                     "wrong by that factor") {
    for (int exact = 0; exact < 2; exact++) { // fixed point has 48 binary places, 3.6e-15
        double difference =
            largest_difference(summed_by_the_program(exact), two_ranks(1, 1.0 / FOUR, 1));
        CHECK(difference <= 20 * rounding, "%g", difference);
    }
    GPT2 *halved = summed_by_the_program(true);
    for (size_t i = 0; i < halved->table.elements; i++) halved->grads[i] /= 2;
    double error = largest_difference(halved, two_ranks(1, 1.0 / FOUR, 1));
    CHECK(error > 0.01);
    SHOW("largest error of the gradients", "-", "%.3g", error);
}

/* What the program plans for sequences of T tokens, micro-batches of B sequences and R ranks. */
static Plan plan_for(int T, int B, int R, int64_t total) {
    Stream *stream = stream_of_text((const unsigned char *)"any text", 8, "a text");
    Settings s = {.batch = B, .total_batch = total, .steps = 1};
    Config config = {.layers = 1, .heads = 1, .channels = 1, .seq_len = T, .vocab = 256};
    World world = {.size = R};
    Sequences sequences = sequences_new(stream, T, 0, false);
    Plan plan = plan_make(&s, &config, &world, &sequences, NULL);
    stream_close(stream);
    return plan;
}

TEST(tokens_per_update,
     "27.5: 524288 = B T K R: 64 * 1024 = 65536 tokens a forward, K = 8 alone, K = 1 on 8 ranks") {
    char *argv[] = {"train_gpt2", "--model", "gpt2", NULL};
    Settings s = options_parse(3, argv);
    CHECK(s.batch == 64 && s.total_batch == 524288);
    Plan alone = plan_for(1024, 64, 1, 524288), eight = plan_for(1024, 64, 8, 524288);
    CHECK(alone.B * alone.T == 65536 && alone.max_micro_steps == 8 && alone.min_micro_steps == 8,
          "K = %d", (int)alone.max_micro_steps);
    CHECK(eight.max_micro_steps == 1 && eight.min_micro_steps == 1, "K = %d",
          (int)eight.max_micro_steps);
    SHOW("tokens of one forward, B T", "65536", "%.0f", alone.B * alone.T);
    SHOW("K of one process", "8", "%.0f", alone.max_micro_steps);
    SHOW("K of each of 8 processes", "1", "%.0f", eight.max_micro_steps);
    SHOW("tokens of one update", "524288", "%.0f", eight.sequences * eight.T);
}

TEST(uneven_ranks,
     "27.5: where R does not divide the budget, some ranks do a micro-batch less; the total "
     "is never rounded") {
    Plan three = plan_for(1024, 64, 3, 524288);
    CHECK(three.max_micro_steps == 3 && three.min_micro_steps == 2 && three.micro_batches == 8 &&
          three.sequences * three.T == 524288);
    SHOW("R = 3: K of the rank with the most", "-", "%.0f", three.max_micro_steps);
    SHOW("R = 3: K of the rank with the fewest", "-", "%.0f", three.min_micro_steps);
    SHOW("R = 3: tokens of one update", "524288", "%.0f", three.sequences * three.T);
}

TEST(copied_data, "27.5: the same sequences on both ranks are not four sequences: no more data was "
                  "seen than two sequences") {
    GPT2 *copies = tiny_new(false), *two = tiny_new(false);
    TinyBatch batch = tiny_batch("tiny.rows", 4);
    real losses[FOUR];
    tiny_micro_batch(copies, losses, &batch, 0, 2, 1.0 / FOUR, false);
    tiny_micro_batch(copies, losses, &batch, 0, 2, 1.0 / FOUR, true);
    tiny_micro_batch(two, losses, &batch, 0, 2, 1.0 / (2 * ROW), false);
    CHECK(largest_difference(copies, two) <= rounding);
}

// ---------------------------------------------------------------------------------------------
// 27.6 Logs must not make another experiment

TEST(logged_loss,
     "27.6: what is logged is a sum over a count; a mean of means is so only for equal shares") {
    static unsigned char text[ROW + 6]; // a sequence of ROW targets and one of 5
    for (int i = 0; i < ROW + 6; i++)
        text[i] = (unsigned char)formula_token("logged", TINY_VOCAB, i);
    Stream *stream = stream_of_text(text, sizeof text, "a text");
    Sequences sequences = sequences_new(stream, ROW, 0, false);
    GPT2 *model = tiny_new(false);
    Id ids[2 * ROW] = {0}, targets[2 * ROW];
    real losses[2 * ROW];
    double sum[2] = {0};
    for (int i = 0; i < 2 * ROW; i++) targets[i] = i < ROW + 5 ? text[i + 1] : -1;
    for (int i = 0; i < ROW + 6; i++) ids[i] = text[i];
    gpt2_forward(model, ids, 2, ROW);
    gpt2_loss(model, losses, targets, 2, ROW);
    for (int i = 0; i < 2 * ROW; i++) sum[i >= ROW] += losses[i];
    double right = (sum[0] + sum[1]) / (ROW + 5), wrong = (sum[0] / ROW + sum[1] / 5) / 2;
    for (int B = 1; B <= 2; B++) { // in one micro-batch, and in two
        Batch *batch = batch_new((World){.size = 1}, B, ROW, 2);
        Evaluation logged = evaluate(model, batch, &sequences, 2);
        CHECK(logged.tokens == ROW + 5, "%d", (int)logged.tokens);
        CHECK_NEAR(logged.loss, right, 16 * rounding);
        CHECK(fabs(logged.loss - wrong) > 0.001, "%g is the mean of means", logged.loss);
        batch_free(batch);
    }
    gpt2_free(model);
    stream_close(stream);
}

// ---------------------------------------------------------------------------------------------
// Exercises

TEST(exercise_1, "exercise 1: B=8, T=256, R=4, K=16: 131072 tokens in one update") {
    Plan plan = plan_for(256, 8, 4, 131072);
    CHECK(plan.B * plan.T * plan.max_micro_steps * 4 == 131072);
    CHECK(plan.max_micro_steps == 16 && plan.min_micro_steps == 16, "K = %d",
          (int)plan.max_micro_steps);
    SHOW("B T K R", "131072", "%.0f", (double)plan.sequences * plan.T);
    SHOW("K, when 131072 tokens are asked for", "16", "%.0f", plan.max_micro_steps);
}

TEST(exercise_2,
     "exercise 2: ranks with 4 and 8 valid tokens weigh 1/3 and 2/3, in the gradients too") {
    TinyBatch batch = tiny_batch("tiny.rows", 2);
    for (int sequence = 0; sequence < 2; sequence++)
        for (int t = sequence ? 8 : 4; t < ROW; t++) batch.targets[sequence * ROW + t] = -1;
    real losses[2 * ROW];
    GPT2 *together = tiny_new(false), *weighted = tiny_new(false), *averaged = tiny_new(false);
    tiny_micro_batch(together, losses, &batch, 0, 2, 1.0 / 12, false); // 1/N for every token
    tiny_micro_batch(weighted, losses, &batch, 0, 1, 1.0 / 3 / 4, false);
    tiny_micro_batch(weighted, losses, &batch, 1, 1, 2.0 / 3 / 8, true);
    tiny_micro_batch(averaged, losses, &batch, 0, 1, 1.0 / 2 / 4, false);
    tiny_micro_batch(averaged, losses, &batch, 1, 1, 1.0 / 2 / 8, true);
    double wrong = tiny_difference(together, averaged->grads, together->grads);
    CHECK(wrong > 0.01, "%g", wrong);
    gpt2_free(averaged);
    double right = largest_difference(weighted, together);
    CHECK(right <= 4 * rounding);
    SHOW("error of the gradients with weights 1/3 and 2/3", "0", "%.3g", right);
    SHOW("error with weights 1/2 and 1/2", "-", "%.3g", wrong);
}

TEST(exercise_3,
     "exercise 3: clipping is not linear: each micro-step clipped is not their sum clipped") {
    GPT2 *parts[2] = {tiny_new(false), tiny_new(false)}, *whole = five_at_once();
    TinyBatch batch = tiny_batch("tiny.rows", 5);
    real losses[FIVE];
    tiny_micro_batch(parts[0], losses, &batch, 0, 2, 1.0 / FIVE, false);
    tiny_micro_batch(parts[1], losses, &batch, 2, 3, 1.0 / FIVE, false);
    double clip = 0.5, scale = clip_scale(tiny_norm(whole), clip), difference = 0;
    double scales[2] = {clip_scale(tiny_norm(parts[0]), clip),
                        clip_scale(tiny_norm(parts[1]), clip)};
    CHECK(scales[0] < 1 && scales[1] < 1 && scale < 1, "all three are clipped");
    for (size_t i = 0; i < whole->table.elements; i++) {
        double each = parts[0]->grads[i] * scales[0] + parts[1]->grads[i] * scales[1];
        difference = fmax(difference, fabs(each - whole->grads[i] * scale));
    }
    CHECK(difference > 0.005, "%g", difference);
    SHOW("largest difference of the clipped gradients", "not 0", "%.3g", difference);
    gpt2_free(parts[0]);
    gpt2_free(parts[1]);
    gpt2_free(whole);
}

/* `steps` updates on the five sequences, counting t from `first`. */
static void train_on(GPT2 *model, int first, int steps) {
    TinyBatch batch = tiny_batch("tiny.rows", 5);
    real losses[FIVE];
    for (int t = first; t < first + steps; t++) {
        tiny_micro_batch(model, losses, &batch, 0, 5, 1.0 / FIVE, false);
        adamw_now(model, &course_adamw, t);
    }
}

TEST(exercise_4, "exercise 4: resuming with the weights but without AdamW's state is another run; "
                 "with it, the same") {
    GPT2 *straight = tiny_new(false), *resumed = tiny_new(false), *forgetful = tiny_new(false);
    size_t bytes = straight->table.elements * sizeof(real);
    train_on(straight, 1, 3);
    memcpy(resumed->params, straight->params, bytes);
    memcpy(resumed->m, straight->m, bytes);
    memcpy(resumed->v, straight->v, bytes);
    memcpy(forgetful->params, straight->params,
           bytes); // same weights, same rate, same data; m = v = 0
    train_on(straight, 4, 2);
    train_on(resumed, 4, 2);
    train_on(forgetful, 4, 2);
    CHECK(weight_difference(straight, resumed) == 0);
    CHECK(weight_difference(straight, forgetful) > 1e-4, "%g",
          weight_difference(straight, forgetful));
    SHOW("difference of the weights when m and v are restored", "0", "%.3g",
         weight_difference(straight, resumed));
    SHOW("when they are forgotten", "not 0", "%.3g", weight_difference(straight, forgetful));
    gpt2_free(straight);
    gpt2_free(resumed);
    gpt2_free(forgetful);
}
