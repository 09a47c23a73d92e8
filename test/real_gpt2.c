/* real_gpt2.c: the whole model against itself: what must not change its results. That they are the right
 * results is shown against recorded values elsewhere. */
#include "test.h"

#include "../llmc/base/memory.h"
#include "../llmc/cpu/cpu.h"
#include "../llmc/model/gpt2.h"
#include "../llmc/train/generate.h"

enum { B = 3, T = 13 };
static const Config shape = {.layers = 3, .heads = 3, .channels = 24, .seq_len = T, .vocab = 77};

/* Tokens and targets of a micro-batch, the same each time. */
static Id ids[B * T], targets[B * T];

static void make_sequences(void) {
    for (int i = 0; i < B * T; i++) {
        ids[i] = (i * 31 + i * i * 7) % shape.vocab;
        targets[i] = i % 5 == 4 ? -1 : (i * 17 + 3) % shape.vocab;
    }
}

static GPT2 *model_new(const Config *config, bool recompute, bool training) {
    make_sequences();
    GPT2 *model = gpt2_new(config, B, recompute, training);
    gpt2_init(model, 42);
    return model;
}

TEST(recompute_same_bits, "--recompute gives the very gradients and losses that keeping activations gives") {
    GPT2 *keep = model_new(&shape, false, true), *again = model_new(&shape, true, true);
    RowStat losses[2][B * T];
    GPT2 *models[2] = {keep, again};
    for (int i = 0; i < 2; i++) {
        gpt2_forward(models[i], ids, B, T);
        gpt2_backward(models[i], losses[i], ids, targets, B, T, 1.0 / 31, false, NULL, NULL);
    }
    CHECK(memcmp(losses[0], losses[1], sizeof losses[0]) == 0);
    CHECK(memcmp(keep->grads, again->grads, keep->table.elements * sizeof(Grad)) == 0);
    CHECK(again->bytes < keep->bytes, "%zu and %zu bytes", again->bytes, keep->bytes);
    gpt2_free(keep);
    gpt2_free(again);
}

TEST(decode_is_forward, "generating with the cache gives the logits of a forward pass, for every position") {
    for (int recompute = 0; recompute < 2; recompute++) {
        GPT2 *whole = model_new(&shape, false, true), *model = model_new(&shape, recompute, recompute == 0);
        float wanted[77], got[77];
        for (int n = 1; n <= T; n++) {
            gpt2_extend(whole, ids, n, 0);
            gpt2_logits(whole, wanted, n);
            if (n <= 4) {
                gpt2_extend(model, ids, n, 0); // the prompt: read again
                gpt2_logits(model, got, n);
            } else {
                gpt2_extend(model, ids + n - 1, 1, n - 1);
                gpt2_logits(model, got, 1);
            }
            for (int i = 0; i < shape.vocab; i++) CHECK_NEAR(got[i], wanted[i], 2e-6);
        }
        gpt2_free(whole);
        gpt2_free(model);
    }
}

TEST(init_moments, "weights start as N(0, 0.02), residual projections as N(0, 0.02/sqrt(2L)), biases 0, LayerNorm "
                   "scales 1, padding 0") {
    Config config = {.layers = 2, .heads = 2, .channels = 64, .seq_len = 32, .vocab = 200};
    GPT2 *model = model_new(&config, false, false);
    for (int i = 0; i < model->table.count; i++) {
        const Tensor *t = &model->table.tensors[i];
        const Param *w = model->params + t->offset;
        double sum = 0, square = 0, n = (double)t->count;
        for (size_t k = 0; k < t->count; k++) sum += w[k], square += (double)w[k] * w[k];
        double std = t->init == INIT_NORMAL ? 0.02 : t->init == INIT_NORMAL_RESIDUAL ? 0.01 : 0;
        double mean = t->init == INIT_ONE ? 1 : 0;
        CHECK_NEAR(sum / n, mean, 5 * std / sqrt(n));
        CHECK_NEAR(sqrt(square / n - mean * mean), std, 5 * std / sqrt(2 * n));
        for (size_t k = t->count; k < t->padded; k++) CHECK(w[k] == 0, "%s padding", t->name);
    }
    gpt2_free(model);
}

TEST(init_by_tensor, "a tensor's initial weights depend on seed and tensor, not on the other tensors' sizes") {
    Config wide = shape;
    wide.seq_len = 40;
    GPT2 *a = model_new(&shape, false, false), *b = model_new(&wide, false, false);
    const Tensor *ta = &a->table.tensors[4], *tb = &b->table.tensors[4];
    CHECK(ta->offset != tb->offset);
    CHECK(memcmp(a->params + ta->offset, b->params + tb->offset, ta->count * sizeof(Param)) == 0);
    gpt2_init(b, 43);
    CHECK(memcmp(a->params + ta->offset, b->params + tb->offset, ta->count * sizeof(Param)) != 0);
    gpt2_free(a);
    gpt2_free(b);
}

/* Buckets as reported: contiguous from the end to the start of the packed buffer. */
typedef struct {
    size_t next;
    int count;
} Buckets;

static void note_bucket(void *context, size_t first, size_t count) {
    Buckets *seen = context;
    if (seen->count > 0 || first != 0) seen->count++;
    CHECK(first == 0 || first + count == seen->next || seen->count == 1, "bucket at %zu", first);
    if (first == 0) CHECK(count == seen->next, "%zu of %zu", count, seen->next);
    seen->next = first;
}

TEST(buckets_cover, "backward reports every gradient exactly once, from the last block to the embeddings") {
    GPT2 *model = model_new(&shape, false, true);
    Buckets seen = {model->table.elements, 0};
    RowStat losses[B * T];
    gpt2_forward(model, ids, B, T);
    gpt2_backward(model, losses, ids, targets, B, T, 1, false, note_bucket, &seen);
    CHECK(seen.count == shape.layers + 1 && seen.next == 0, "%d buckets", seen.count);
    gpt2_free(model);
}

TEST(gpt2_groups, "GPT-2 with 50304 tokens has 50 decayed tensors with 124,354,560 parameters and 98 others with "
                  "121,344 (chapter 27.1: the tied matrix counts once)") {
    Config config;
    CHECK(config_named("gpt2", &config));
    config.vocab = 50304;
    TensorTable table = tensor_table_new(&config);
    DecayGroup decayed = tensor_table_group(&table, true), others = tensor_table_group(&table, false);
    CHECK(decayed.tensors == 50 && decayed.parameters == 124354560);
    CHECK(others.tensors == 98 && others.parameters == 121344);
    CHECK(table.parameters == 124475904);
    tensor_table_free(&table);
}

TEST(named_shapes, "the family has the published sizes") {
    const struct {
        const char *name;
        size_t parameters;
    } family[] = {{"gpt2", 124439808}, {"gpt2-medium", 354823168}, {"gpt2-large", 774030080}, {"gpt2-xl", 1557611200}};
    for (int i = 0; i < 4; i++) {
        Config config;
        CHECK(config_named(family[i].name, &config));
        TensorTable table = tensor_table_new(&config);
        CHECK(table.parameters == family[i].parameters, "%s: %zu", family[i].name, table.parameters);
        tensor_table_free(&table);
    }
    Config none;
    CHECK(!config_named("gpt3", &none));
}

TEST(names_at, "every packed element finds its tensor's name") {
    TensorTable table = tensor_table_new(&shape);
    for (int i = 0; i < table.count; i++) {
        const Tensor *t = &table.tensors[i];
        CHECK(strcmp(tensor_table_name_at(&table, t->offset), t->name) == 0);
        CHECK(strcmp(tensor_table_name_at(&table, t->offset + t->count - 1), t->name) == 0);
    }
    tensor_table_free(&table);
}

static void count_tokens(void *context, int token) {
    unsigned *seen = context; // how many, and a hash of them
    CHECK(token >= 0 && token < shape.vocab, "token %d", token);
    seen[0]++;
    seen[1] = seen[1] * 31 + (unsigned)token;
}

TEST(generate_lengths, "T-1, T, T+1 and 10 T tokens are generated, repeatably, none from the padding") {
    GPT2 *model = model_new(&shape, false, false);
    const int lengths[] = {T - 1, T, T + 1, 10 * T};
    for (int i = 0; i < 4; i++) {
        Sampling sampling = {.temperature = 1, .seed = 5};
        unsigned first[2] = {0, 0}, second[2] = {0, 0};
        generate(model, ids, 3, lengths[i], &sampling, count_tokens, first);
        generate(model, ids, 3, lengths[i], &sampling, count_tokens, second);
        CHECK(first[0] == (unsigned)lengths[i] && second[1] == first[1], "%u tokens", first[0]);
    }
    gpt2_free(model);
}

TEST(generate_one_position, "a model with sequences of one token generates too") {
    Config config = shape;
    config.seq_len = 1;
    GPT2 *model = model_new(&config, false, false);
    Sampling sampling = {.temperature = 1, .seed = 5};
    unsigned seen[2] = {0, 0};
    generate(model, ids, 1, 7, &sampling, count_tokens, seen);
    CHECK(seen[0] == 7);
    gpt2_free(model);
}

int main(int argc, char **argv) {
    backend_open(0, 1, 2);
    return test_main(argc, argv);
}
