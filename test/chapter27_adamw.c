/* chapter27_adamw.c: chapter 27 of the course ("How much data did one update really see? AdamW,
 * accumulation and many GPUs"), statement by statement in the chapter's order, each beside the code
 * that shows it. Here: 27.1, AdamW, and 27.2, the learning rate. Next: chapter27_batches.c. */
#include "chapter27.h"
#include "tiny.h"

#include "../llmc/model/config.h"
#include "../llmc/optimizer/adamw.h"
#include "../llmc/optimizer/schedule.h"
#include "../llmc/settings/settings.h"

/* What the chapter prints was computed in float64; the float build is held to its own precision. */
static const double rounding = IN_DOUBLE ? 1e-15 : 1e-6;

/* The settings of the course's run. */
static Settings course(void) {
    char *argv[] = {"train_gpt2", "--model", "gpt2", NULL};
    return options_parse(3, argv);
}

static Schedule course_schedule(int64_t warmup, int64_t end) {
    return (Schedule){
        .kind = SCHEDULE_COSINE, .max = 6e-4, .min = 6e-5, .warmup = warmup, .end = end};
}

static const AdamW course_adamw = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1};

// ---------------------------------------------------------------------------------------------
// 27.1 AdamW has more state than there are parameters

/* One weight of its own, with its state. */
typedef struct {
    real w, m, v;
} Single;

static void single_step(Single *s, const AdamW *optimizer, int t, double rate, double gradient,
                        bool decayed) {
    Span span = {.offset = 0, .count = 1, .decayed = decayed};
    real g = (real)gradient;
    AdamWScalars step =
        adamw_scalars(optimizer, t, rate, clip_scale(fabs(gradient), optimizer->clip));
    adamw_update(&s->w, NULL, &s->m, &s->v, &g, &span, 1, &step);
}

TEST(adamw_state, "27.1: m and v each have the shape of the parameters: twice as much again") {
    Config config;
    CHECK(config_named("gpt2", &config));
    MemoryPlan plan = gpt2_memory(&config, 1, false, true);
    CHECK(plan.optimizer == 2 * plan.params, "%zu bytes of state, %zu of parameters",
          plan.optimizer, plan.params);
    CHECK(plan.grads == plan.params, "gradients come on top");
    SHOW("bytes of m and v, in bytes of parameters", "2", "%g", (double)plan.optimizer / (double)plan.params);
}

TEST(adamw_moments, "27.1: m_t = b1 m + (1-b1) g, v_t = b2 v + (1-b2) g^2, and the corrections "
                    "undo the start at 0") {
    Single s = {0};
    double m = 0, v = 0, g[3] = {0.5, -2, 0.25};
    for (int t = 1; t <= 3; t++) {
        single_step(&s, &course_adamw, t, 0, g[t - 1], false); // a rate of 0: only the state moves
        m = 0.9 * m + 0.1 * g[t - 1];
        v = 0.95 * v + 0.05 * g[t - 1] * g[t - 1];
        CHECK_NEAR(s.m, m, rounding);
        CHECK_NEAR(s.v, v, rounding);
        AdamWScalars step = adamw_scalars(&course_adamw, t, 1, clip_scale(0, course_adamw.clip));
        CHECK_NEAR(step.correction1, 1 - pow(0.9, t), 1e-16);
        CHECK_NEAR(step.correction2, 1 - pow(0.95, t), 1e-16);
        if (t == 1)
            CHECK_NEAR(s.m / step.correction1, g[0], rounding); // the mean of one gradient is it
        if (t == 1) CHECK_NEAR(s.v / step.correction2, g[0] * g[0], rounding);
    }
    SHOW("m after gradients 0.5, -2, 0.25", "-", "%.6g", s.m);
    SHOW("v after them", "-", "%.6g", s.v);
}

TEST(adamw_formula, "27.1: theta = (1 - eta lambda) theta - eta m^ / (sqrt(v^) + eps)") {
    Single s = {.w = 2};
    double theta = 2, m = 0, v = 0, eta = 0.25, g[4] = {0.5, -0.125, 3, 0};
    for (int t = 1; t <= 4; t++) {
        single_step(&s, &course_adamw, t, eta, g[t - 1], true);
        m = 0.9 * m + 0.1 * g[t - 1];
        v = 0.95 * v + 0.05 * g[t - 1] * g[t - 1];
        double m_hat = m / (1 - pow(0.9, t)), v_hat = v / (1 - pow(0.95, t));
        theta = (1 - eta * 0.1) * theta - eta * m_hat / (sqrt(v_hat) + 1e-8);
        CHECK_NEAR(s.w, theta, 4 * rounding);
    }
    SHOW("theta after four updates, by the formula", "-", "%.15g", theta);
    SHOW("theta after four updates, by the kernel", "-", "%.15g", s.w);
}

TEST(adamw_decoupled,
     "27.1: the W: decay does not pass through the adaptive division as a gradient would") {
    Single decoupled = {.w = 1}, mixed = {.w = 1};
    AdamW no_decay = course_adamw;
    no_decay.weight_decay = 0;
    single_step(&decoupled, &course_adamw, 1, 0.1, 0, true);
    single_step(&mixed, &no_decay, 1, 0.1, 0.1 * 1, true); // lambda theta as part of the gradient
    CHECK_NEAR(decoupled.w, 0.99, rounding);
    CHECK_NEAR(mixed.w, 0.9, 1e-6);
    SHOW("a weight of 1, rate 0.1, decay 0.1, gradient 0", "0.99", "%.6g", decoupled.w);
    SHOW("the same with the decay mixed into the gradient", "-", "%.6g", mixed.w);
}

TEST(adamw_settings,
     "27.1: b1 0.9, b2 0.95, eps 1e-8, weight decay 0.1 are what --model gpt2 trains with") {
    Settings s = course();
    CHECK(s.beta1 == 0.9 && s.beta2 == 0.95, "%g %g", s.beta1, s.beta2);
    CHECK(s.eps == 1e-8 && s.weight_decay == 0.1, "%g %g", s.eps, s.weight_decay);
    SHOW("beta1 of --model gpt2", "0.9", "%g", s.beta1);
    SHOW("beta2", "0.95", "%g", s.beta2);
    SHOW("epsilon", "1e-8", "%g", s.eps);
    SHOW("weight decay", "0.1", "%g", s.weight_decay);
}

TEST(adamw_eps,
     "27.1: where v^ is tiny, eps sets the denominator; it limits a step, and sets no least one") {
    Single usual = {0}, tiny = {0}, none = {0};
    single_step(&usual, &course_adamw, 1, 0.1, 1e-3, false);
    CHECK_NEAR(usual.w, -0.1, 1e-5); // eps does not matter: a step of the learning rate
    single_step(&tiny, &course_adamw, 1, 0.1, 1e-10, false);
    CHECK_NEAR(tiny.w, -0.1 * 1e-10 / (1e-10 + 1e-8), 1e-7); // a hundred times less
    AdamW smaller = course_adamw;
    smaller.eps = 1e-14;
    single_step(&none, &smaller, 1, 0.1, 1e-10, false);
    CHECK_NEAR(none.w, -0.1, 1e-4); // without it rounding noise would move weights at full speed
    Single still = {0};
    single_step(&still, &course_adamw, 1, 0.1, 0, false);
    CHECK(still.w == 0, "a gradient of 0 moves nothing");
    SHOW("step of rate 0.1 where the gradient is 1e-10, eps 1e-8", "-", "%.6g", tiny.w);
    SHOW("the same with eps 1e-14", "-", "%.6g", none.w);
    SHOW("the same with eps 1e-8 and a gradient of 0", "-", "%.6g", still.w);
}

TEST(adamw_groups, "27.1: two or more dimensions decay, biases and LayerNorm do not, the shared "
                   "embedding counts once") {
    Config config;
    CHECK(config_named("gpt2", &config));
    TensorTable table = tensor_table_new(&config);
    int embeddings = 0;
    for (int i = 0; i < table.count; i++) {
        const Tensor *t = &table.tensors[i];
        bool vector = strstr(t->name, ".bias") || strstr(t->name, "ln_");
        CHECK(t->decayed == !vector && table.spans[i].decayed == !vector, "%s", t->name);
        CHECK((t->dims >= 2) == t->decayed, "%s has %d dimensions", t->name, t->dims);
        embeddings += t->count == (size_t)config.vocab * config.channels;
    }
    CHECK(embeddings == 1, "%d tensors of the embedding's size", embeddings);
    DecayGroup decayed = tensor_table_group(&table, true), rest = tensor_table_group(&table, false);
    CHECK(decayed.tensors == 50 && decayed.parameters == 124318464, "%d, %zu", decayed.tensors,
          decayed.parameters);
    CHECK(rest.tensors == 98 && rest.parameters == 121344, "%d, %zu", rest.tensors,
          rest.parameters);
    tensor_table_free(&table);
    SHOW("parameters that decay, GPT-2 124M (50 tensors)", "-", "%.0f", decayed.parameters);
    SHOW("parameters that do not (98 tensors)", "-", "%.0f", rest.parameters);
    config.vocab = 256; // what `plan --model gpt2` has without token files
    table = tensor_table_new(&config);
    decayed = tensor_table_group(&table, true);
    CHECK(decayed.tensors == 50 && decayed.parameters == 85917696, "%zu", decayed.parameters);
    tensor_table_free(&table);
    SHOW("parameters that decay, with bytes as tokens (vocabulary 256)", "-", "%.0f", decayed.parameters);
}

// ---------------------------------------------------------------------------------------------
// 27.2 Small steps first, then ever slower

TEST(schedule_settings, "27.2: 6e-4, a tenth of it, 715 updates of warmup, 19073 in all") {
    Settings s = course();
    CHECK(s.lr == 6e-4 && s.warmup == 715 && s.steps == 19073, "%g %lld %lld", s.lr,
          (long long)s.warmup, (long long)s.steps);
    CHECK_NEAR(s.min_lr, 6e-4 / 10, 1e-19);
    SHOW("largest learning rate of --model gpt2", "6e-4", "%g", s.lr);
    SHOW("smallest", "a tenth of it", "%g", s.min_lr);
    SHOW("updates of warm-up, W", "715", "%.0f", s.warmup);
    SHOW("updates in all, S", "19073", "%.0f", s.steps);
    CHECK(s.schedule == SCHEDULE_COSINE && s.decay_steps == -1,
          "the cosine ends with the last update");
}

TEST(schedule_first_step, "27.2: i + 1, so that step 0 has a rate: 6e-4/715") {
    Schedule s = course_schedule(715, 19073);
    CHECK_NEAR(schedule_rate(&s, 0), 6e-4 / 715, 1e-21);
    CHECK_NEAR(schedule_rate(&s, 1), 2 * 6e-4 / 715, 1e-21);
    SHOW("rate at i = 0", "not zero", "%.10g", schedule_rate(&s, 0));
}

TEST(schedule_peak, "27.2: i = W-1 is at the peak, and i = W, where the cosine begins, still is") {
    Schedule s = course_schedule(715, 19073);
    CHECK_NEAR(schedule_rate(&s, 714), 6e-4, 1e-18);
    CHECK_NEAR(schedule_rate(&s, 715), 6e-4, 1e-18);
    CHECK(schedule_rate(&s, 716) < 6e-4, "then it falls");
    CHECK(schedule_rate(&s, 713) < 6e-4, "and rose before");
    SHOW("rate at i = W-1 = 714", "the peak", "%.10g", schedule_rate(&s, 714));
    SHOW("rate at i = W = 715", "the peak", "%.10g", schedule_rate(&s, 715));
    SHOW("rate at i = 716", "-", "%.10g", schedule_rate(&s, 716));
}

TEST(schedule_last_step,
     "27.2: the last index is S-1 = 19072: its rate is near the floor, not on it") {
    Schedule s = course_schedule(715, 19073);
    double last = schedule_rate(&s, 19072);
    CHECK(last > 6e-5 && last < 6e-5 + 1e-11, "%.17g", last);
    CHECK_NEAR(schedule_rate(&s, 19073), 6e-5, 1e-19);
    CHECK(schedule_rate(&s, 19074) == 6e-5, "beyond S");
    SHOW("rate of the last update, i = S-1 = 19072", "near the floor", "%.14g", last);
    SHOW("rate at i = S = 19073, which no update uses", "6e-5", "%.14g", schedule_rate(&s, 19073));
}

TEST(schedule_short,
     "27.2: W=4, S=20: 0.00015; 0.0006 at 3 and 4; 0.00033 at 12; 0.00006 at 20 and 21") {
    Schedule s = course_schedule(4, 20);
    CHECK_NEAR(schedule_rate(&s, 0), 0.00015, 1e-18);
    CHECK_NEAR(schedule_rate(&s, 3), 0.0006, 1e-18);
    CHECK_NEAR(schedule_rate(&s, 4), 0.0006, 1e-18);
    CHECK_NEAR(schedule_rate(&s, 12), 0.00033, 1e-18);
    CHECK_NEAR(schedule_rate(&s, 20), 0.00006, 1e-18);
    CHECK_NEAR(schedule_rate(&s, 21), 0.00006, 1e-18);
    SHOW("W=4, S=20: rate at i = 0", "0.00015", "%.10g", schedule_rate(&s, 0));
    SHOW("rate at i = 3", "0.0006", "%.10g", schedule_rate(&s, 3));
    SHOW("rate at i = 4", "0.0006", "%.10g", schedule_rate(&s, 4));
    SHOW("rate at i = 12", "0.00033", "%.10g", schedule_rate(&s, 12));
    SHOW("rate at i = 20", "0.00006", "%.10f", schedule_rate(&s, 20));
    SHOW("rate at i = 21", "0.00006", "%.10f", schedule_rate(&s, 21));
}
