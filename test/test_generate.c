/* test_generate.c: text from a model: each token is drawn as often as the model's probabilities say (chi-square over
 * thousands of draws, for each setting alone and together), whatever the context: empty, filling, full, or shorter
 * than the prompt. The probabilities are worked out here from the model's logits, the slow way. */
#include "../llmc/cpu/cpu.h"

#include "../llmc/train/generate.h"
#include "test.h"

enum { V = 40, T = 8 };

static GPT2 *model_new(void) {
    const Config config = {.layers = 1, .heads = 2, .channels = 16, .seq_len = T, .vocab = V};
    GPT2 *model = gpt2_new(&config, 1, false, false);
    gpt2_init(model, 3);
    for (int i = 0; i < model->table.count;
         i++) // so that some tokens are much likelier than others
        if (model->table.tensors[i].dims == 2)
            for (size_t k = 0; k < model->table.tensors[i].count; k++)
                model->params[model->table.tensors[i].offset + k] *= 20;
    return model;
}

/* The logits after some tokens, of which the last T count, without any cache. */
static void logits_after(float logits[V], const int32_t *tokens, int n) {
    GPT2 *model = model_new();
    int length = n < T ? n : T;
    Id ids[T];
    for (int i = 0; i < length; i++) ids[i] = tokens[n - length + i];
    gpt2_extend(model, ids, length, 0);
    gpt2_logits(model, logits, length);
    gpt2_free(model);
}

/* The probability of each token, by rank: kept while fewer than k, and less than p, are before it. */
static void probabilities(double p[V], const float logits[V], const Sampling *s) {
    double sum = 0, all = 0;
    bool kept[V] = {false};
    int count = s->top_k > 0 && s->top_k < V ? s->top_k : V;
    for (int i = 0; i < V; i++) p[i] = exp((logits[i] - logits[0]) / s->temperature);
    for (int place = 0; place < count; place++) { // the likeliest of those that are left
        int best = -1;
        for (int i = 0; i < V; i++)
            if (!kept[i] && (best < 0 || logits[i] > logits[best])) best = i;
        kept[best] = true;
        all += p[best];
    }
    if (s->top_p > 0 && s->top_p < 1) {
        bool nucleus[V] = {false};
        for (double got = 0; got < s->top_p * all;) {
            int best = -1;
            for (int i = 0; i < V; i++)
                if (kept[i] && !nucleus[i] && (best < 0 || logits[i] > logits[best])) best = i;
            if (best < 0) break;
            nucleus[best] = true;
            got += p[best];
        }
        memcpy(kept, nucleus, sizeof kept);
    }
    for (int i = 0; i < V; i++) sum += kept[i] ? p[i] : 0;
    for (int i = 0; i < V; i++) p[i] = kept[i] ? p[i] / sum : 0;
}

static void remember(void *context, int token) { *(int *)context = token; }

TEST(chi_square, "3,000 draws for each of temperature, top-k and top-p, alone and together, are as "
                 "frequent as they are "
                 "probable; what is left out is never drawn") {
    static const int32_t prompt[3] = {7, 1, 30};
    static const double temperatures[] = {0.4, 1, 2.5}, top_ps[] = {1, 0.6, 0.05};
    static const int top_ks[] = {0, 5, 1, V};
    enum { DRAWS = 3000 };
    GPT2 *model = model_new();
    float logits[V];
    logits_after(logits, prompt, 3);
    for (int setting = 0; setting < 3 * 3 * 4; setting++) {
        Sampling s = {.temperature = temperatures[setting % 3],
                      .top_p = top_ps[setting / 3 % 3],
                      .top_k = top_ks[setting / 9]};
        double p[V], chi = 0;
        int seen[V] = {0}, freedom = -1, rare = 0;
        double rare_p = 0;
        probabilities(p, logits, &s);
        for (int draw = 0; draw < DRAWS; draw++) {
            int token = -1;
            s.seed = (uint64_t)draw;
            generate(model, prompt, 3, 1, &s, remember, &token);
            CHECK(token >= 0 && token < V && p[token] > 0, "setting %d drew %d", setting, token);
            if (token >= 0 && token < V) seen[token]++;
        }
        for (int i = 0; i < V; i++) {
            if (p[i] * DRAWS < 5) { // too rare for the statistic each by itself
                rare += seen[i], rare_p += p[i];
                continue;
            }
            chi += (seen[i] - p[i] * DRAWS) * (seen[i] - p[i] * DRAWS) / (p[i] * DRAWS);
            freedom++;
        }
        if (rare_p * DRAWS >= 5)
            chi += (rare - rare_p * DRAWS) * (rare - rare_p * DRAWS) / (rare_p * DRAWS), freedom++;
        // Mean `freedom`, variance 2 freedom: four deviations above the mean, and some for a few degrees.
        CHECK(freedom >= 0 && chi <= freedom + 4 * sqrt(2.0 * freedom) + 4,
              "setting %d (temperature %g, top-k %d, top-p %g): chi-square %.1f with %d degrees",
              setting, s.temperature, s.top_k, s.top_p, chi, freedom);
    }
    gpt2_free(model);
}

typedef struct {
    int32_t tokens[64];
    int count;
} Text;
static void append(void *context, int token) {
    Text *text = context;
    text->tokens[text->count++] = token;
}

static int likeliest(const float logits[V]) {
    int best = 0;
    for (int i = 1; i < V; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

/* The greedy continuation by the rules of generate.h, each token from a model that has cached nothing. */
static void continue_slowly(Text *want, const int32_t *prompt, int n, int count) {
    int32_t window[T];
    int length = n < T ? n : T;
    memcpy(window, prompt + n - length, (size_t)length * sizeof *window);
    for (int i = 0; i < count; i++) {
        float logits[V];
        logits_after(logits, window, length);
        int token = likeliest(logits);
        want->tokens[want->count++] = token;
        if (length == T) { // from the later half on
            memmove(window, window + T - T / 2, T / 2 * sizeof *window);
            length = T / 2;
        }
        window[length++] = token;
    }
}

TEST(contexts, "prompts of 1 to 20 tokens, 30 more: the context fills, is full, continues from its "
               "later half, and is "
               "what it would be without a cache") {
    GPT2 *model = model_new();
    int32_t prompt[20];
    for (int i = 0; i < 20; i++) prompt[i] = i * 13 % V;
    for (int n = 1; n <= 20; n++) {
        Text got = {.count = 0}, want = {.count = 0};
        generate(model, prompt, n, 30, &(Sampling){.temperature = 0}, append, &got);
        continue_slowly(&want, prompt, n, 30);
        CHECK(got.count == 30 && memcmp(got.tokens, want.tokens, 30 * sizeof *want.tokens) == 0,
              "a prompt of %d", n);
        Text stopped = {.count = 0};
        generate(model, prompt, n, 30, &(Sampling){.temperature = 0, .stop = true}, append,
                 &stopped);
        int room = n < T ? T - n + 1 : 1; // the token after the last place is still known
        CHECK(stopped.count == room, "a prompt of %d: %d tokens, then it stops, not %d", n, room,
              stopped.count);
        CHECK(memcmp(stopped.tokens, want.tokens, (size_t)stopped.count * sizeof *want.tokens) ==
              0);
    }
    gpt2_free(model);
}

TEST(each_token, "each place of a text draws a number of its own, which the seed decides") {
    GPT2 *model = model_new();
    int32_t prompt = 3;
    Sampling s = {.temperature = 1e9,
                  .seed = 5}; // all tokens are alike: the text shows the numbers drawn
    Text a = {.count = 0}, b = {.count = 0}, other = {.count = 0};
    generate(model, &prompt, 1, 60, &s, append, &a);
    generate(model, &prompt, 1, 60, &s, append, &b);
    s.seed = 6;
    generate(model, &prompt, 1, 60, &s, append, &other);
    CHECK(memcmp(&a, &b, sizeof a) == 0 && memcmp(&a, &other, sizeof a) != 0);
    int seen[V] = {0}, kinds = 0;
    for (int i = 0; i < 60; i++) kinds += seen[a.tokens[i]]++ == 0;
    CHECK(kinds > 20, "60 draws among 40 gave %d kinds", kinds);
    gpt2_free(model);
}

TEST(the_last_token,
     "the last of the vocabulary, with all others negative and huge, is drawn; in any place") {
    for (int at = 0; at < V; at++) {
        float logits[V], again[V];
        for (int i = 0; i < V; i++) logits[i] = again[i] = i == at ? -3e37f : -3.2e38f;
        CHECK(sample_token(logits, V, &(Sampling){.temperature = 1}, 0.999) == at, "place %d", at);
        CHECK(sample_token(again, V, &(Sampling){.temperature = 0}, 0.5) == at, "place %d", at);
    }
}

int main(int argc, char **argv) { return test_main(argc, argv); }
