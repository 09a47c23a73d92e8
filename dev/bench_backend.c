/* bench_backend.c: how long each operation of llmc/ops.h takes at a model's shapes, on whatever backend it is
 * linked with. The host's clock is read around a number of enqueued calls and one small read that waits
 * for them. Usage: bench_backend [B T C NH V REPEATS]; without, GPT-2 124M with 16 sequences of 1024. */
#include "../llmc/base/clock.h"
#include "../llmc/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct {
    int B, T, C, NH, V, repeats;
} Shape;

/* Everything the operations need, at the largest size any of them has. */
typedef struct {
    Act *scratch_C[3], *scratch_4C[2], *logits; // (N, C), (N, 4C), (chunk, Vp)
    Param *weights, *bias;             // (Vp, C), (4C)
    Grad *gradients, *bias_gradients;  // (Vp, C), (4C)
    OptimizerState *m, *v, *master;    // (Vp, C)
    RowStat *rows[2];                  // (N, NH) at least
    Id *ids;                           // (N)
} Memory;

static Shape shape;
static Memory memory;

static int N(void) { return shape.B * shape.T; }
static int Vp(void) { return (shape.V + 127) / 128 * 128; }
static size_t matrix(void) { // elements of the largest weight
    size_t wte = (size_t)Vp() * shape.C, scratch_4C = 4 * (size_t)shape.C * shape.C;
    return wte > scratch_4C ? wte : scratch_4C;
}

static void *take(ElementKind kind, size_t count) {
    return device_alloc(count * element_size(kind), "the benchmark");
}

static void memory_fill(void) {
    size_t n = (size_t)N();
    for (int i = 0; i < 3; i++) memory.scratch_C[i] = take(OF_ACT, n * shape.C);
    for (int i = 0; i < 2; i++) memory.scratch_4C[i] = take(OF_ACT, n * 4 * shape.C);
    for (int i = 0; i < 2; i++) memory.rows[i] = take(OF_ROW_STAT, n * shape.NH);
    memory.logits = take(OF_ACT, (size_t)classifier_chunk(N(), Vp()) * Vp());
    memory.weights = take(OF_PARAM, matrix());
    memory.bias = take(OF_PARAM, 4 * (size_t)shape.C);
    memory.gradients = take(OF_GRAD, matrix());
    memory.bias_gradients = take(OF_GRAD, 4 * (size_t)shape.C);
    memory.m = take(OF_OPTIMIZER_STATE, matrix());
    memory.v = take(OF_OPTIMIZER_STATE, matrix());
    memory.master = element_size(OF_PARAM) < element_size(OF_OPTIMIZER_STATE)
                        ? take(OF_OPTIMIZER_STATE, matrix())
                        : NULL;
    memory.ids = take(OF_ID, n);
    int32_t *ids = malloc(n * sizeof *ids);
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)(i * 2654435761u % (unsigned)shape.V);
    write_ids(memory.ids, ids, n);
    free(ids);
    float *values = malloc(n * 4 * (size_t)shape.C *
                           sizeof *values); // numbers, not zeros: power and clocks differ
    for (size_t i = 0; i < n * 4 * (size_t)shape.C; i++)
        values[i] = (float)(i * 2654435761u % 2000) / 1000 - 1;
    for (int i = 0; i < 3; i++) write_floats(memory.scratch_C[i], OF_ACT, values, n * shape.C);
    for (int i = 0; i < 2; i++) write_floats(memory.scratch_4C[i], OF_ACT, values, n * 4 * shape.C);
    free(values);
}

// ---- the operations, one call each ----------------------------------------------------------------

static void embedding(void) {
    embedding_forward(memory.scratch_C[0], memory.ids, memory.weights, memory.weights, shape.B,
                      shape.T, shape.C, 0);
}
static void embedding_gradient(void) {
    embedding_backward(memory.gradients, memory.gradients, memory.scratch_C[0], memory.ids, shape.B,
                       shape.T, shape.C, shape.T, true);
}
static void layernorm(void) {
    layernorm_forward(memory.scratch_C[0], memory.rows[0], memory.rows[1], memory.scratch_C[1],
                      memory.bias, memory.bias, N(), shape.C);
}
static void layernorm_gradient(void) {
    layernorm_backward(memory.scratch_C[0], memory.bias_gradients, memory.bias_gradients,
                       memory.scratch_C[1], memory.scratch_C[0], memory.scratch_C[2],
                       memory.rows[0], memory.rows[1], memory.bias, N(), shape.C, true);
}
static void linear(void) {
    linear_forward(memory.scratch_C[0], memory.scratch_4C[0], memory.weights, memory.bias,
                   memory.scratch_C[1], N(), 4 * shape.C, shape.C);
}
static void linear_gelu(void) {
    linear_gelu_forward(memory.scratch_4C[0], memory.scratch_4C[1], memory.scratch_C[0],
                        memory.weights, memory.bias, N(), shape.C, 4 * shape.C);
}
static void linear_input_gradient(void) {
    linear_backward_input(memory.scratch_4C[0], memory.scratch_C[0], memory.weights,
                          memory.scratch_4C[1], N(), 4 * shape.C, shape.C);
}
static void linear_weight_gradient(void) {
    linear_backward_weight(memory.gradients, memory.bias_gradients, memory.scratch_C[0],
                           memory.scratch_4C[0], N(), 4 * shape.C, shape.C, true);
}
static void attention(void) {
    attention_forward(memory.scratch_C[0], memory.rows[0], memory.scratch_4C[0], shape.B, shape.T,
                      shape.C, shape.NH);
}
static void attention_gradient(void) {
    attention_backward(memory.scratch_4C[1], memory.scratch_C[1], memory.scratch_C[0],
                       memory.rows[0], memory.scratch_4C[0], shape.B, shape.T, shape.C, shape.NH);
}
static void classifier_both(void) {
    classifier(memory.rows[0], memory.scratch_C[0], memory.gradients, memory.logits,
               memory.scratch_C[1], memory.weights, memory.ids, 1.0 / N(), N(), shape.C, shape.V,
               Vp(), true);
}
static void adamw(void) {
    Span span = {0, matrix(), true};
    AdamWScalars step = {1e-4, 0.9, 0.95, 1e-8, 0.1, 0.1, 0.05, 1};
    adamw_update(memory.weights, memory.master, memory.m, memory.v, memory.gradients, &span, 1,
                 &step);
}
static void square_sums(void) {
    Span span = {0, matrix(), true};
    double sum;
    gradient_square_sums(&sum, memory.gradients, &span, 1);
}

/* Multiply-adds, twice, and bytes, of one call. */
typedef struct {
    const char *name;
    void (*call)(void);
    double operations, bytes;
} Operation;

static void wait(void) {
    double first;
    read_stats(&first, memory.rows[0], 1);
}

static void measure(const Operation *operation) {
    operation->call(); // loads kernels, chooses algorithms
    wait();
    double start = clock_seconds();
    for (int i = 0; i < shape.repeats; i++) operation->call();
    wait();
    double seconds = (clock_seconds() - start) / shape.repeats;
    printf("%-24s %10.3f ms %10.1f GFLOP/s %10.1f GB/s\n", operation->name, 1e3 * seconds,
           operation->operations / seconds / 1e9, operation->bytes / seconds / 1e9);
}

int main(int argc, char **argv) {
    int given[6] = {16, 1024, 768, 12, 50257, 20};
    for (int i = 0; i < 6 && argc == 7; i++) given[i] = atoi(argv[i + 1]);
    shape = (Shape){given[0], given[1], given[2], given[3], given[4], given[5]};
    backend_open(0, 1, 0);
    memory_fill();
    double n = N(), C = shape.C, act = (double)element_size(OF_ACT), row = n * C * act,
           P = (double)matrix();
    double product = 2 * n * 4 * C * C,
           scores = 2 * n * shape.T * C; // causal: half of each of two products
    const Operation operations[] = {
        {"embedding", embedding, 0, 2 * row},
        {"embedding gradient", embedding_gradient, 0, row},
        {"LayerNorm", layernorm, 0, 2 * row},
        {"LayerNorm gradient", layernorm_gradient, 0, 4 * row},
        {"linear 4C to C", linear, product, 6 * row},
        {"linear C to 4C, GELU", linear_gelu, product, 9 * row},
        {"linear input gradient", linear_input_gradient, product, 9 * row},
        {"linear weight gradient", linear_weight_gradient, product, 5 * row},
        {"attention", attention, scores, 4 * row},
        {"attention gradient", attention_gradient, 2.5 * scores, 8 * row},
        {"classifier", classifier_both, 6 * n * C * Vp(), 3 * row},
        {"AdamW", adamw, 0, P * (act + 7 * sizeof(float))},
        {"square sums", square_sums, 0, P * sizeof(float)},
    };
    printf("%s; B %d, T %d, C %d, NH %d, V %d\n", backend_name(), shape.B, shape.T, shape.C,
           shape.NH, shape.V);
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) measure(&operations[i]);
    return 0;
}
