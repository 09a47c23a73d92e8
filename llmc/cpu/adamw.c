/* adamw.c: the passes over whole tensors at the end of an update: squares for the norm, AdamW,
 * zeroing. All three are bound by memory. Work is cut into blocks of fixed size, which no number of
 * threads changes. The scalars come from adamw.h. */
#include "vec.h"

#include "../base/arithmetic.h"
#include "../base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 4096, SUMS = 16 };

/* How far ahead memory is asked for, in elements. A core's own look-ahead ends with each page and begins slowly on
 * the next: asked early, memory delivers a tenth more to AdamW, and a third more to the squares. */
enum { ADAMW_AHEAD = 256, SQUARES_AHEAD = 1024, LINE = 64 / sizeof(real) };

static size_t block_count(size_t elements) { return (elements + BLOCK - 1) / BLOCK; }

static size_t block_size(size_t elements, size_t block) {
    size_t left = elements - block * BLOCK;
    return size_min(left, BLOCK);
}

/* A vector of doubles, and as many reals, of which it can be made. */
enum { WIDE = VEC_BYTES / sizeof(double) };
typedef double wide __attribute__((vector_size(VEC_BYTES)));
typedef real narrow __attribute__((vector_size(WIDE * sizeof(real)), aligned(sizeof(real)), may_alias));

/* The sum of squares of a block, in double. Element i is added to partial sum i mod SUMS, whatever
 * the width of the machine's vectors, so that every machine adds in the same order. */
static double square_sum(const Grad *g, size_t n) {
    wide part[SUMS / WIDE] = {{0}};
    size_t whole = n - n % SUMS;
    for (size_t i = 0; i < whole; i += SUMS) {
        __builtin_prefetch(g + i + SQUARES_AHEAD, 0, 2);
        UNROLL for (size_t p = 0; p < SUMS / WIDE; p++) {
            wide x = __builtin_convertvector(*(const narrow *)(g + i + p * WIDE), wide);
            part[p] += x * x;
        }
    }
    double lane[SUMS], sum = 0;
    memcpy(lane, part, sizeof lane);
    for (size_t i = whole; i < n; i++) lane[i - whole] += (double)g[i] * (double)g[i];
    for (int l = 0; l < SUMS; l++) sum += lane[l];
    return sum;
}

void gradient_square_sums(double *sums, const Grad *grads, const Span *spans, int count) {
    size_t most = 0;
    for (int s = 0; s < count; s++)
        if (most < block_count(spans[s].count)) most = block_count(spans[s].count);
    double *of_block = memory_new(most, sizeof *of_block, "the gradient's block sums");
    for (int s = 0; s < count; s++) {
        const Grad *g = grads + spans[s].offset; // (spans[s].count)
        size_t blocks = block_count(spans[s].count);
        PARALLEL_FOR
        for (size_t b = 0; b < blocks; b++)
            of_block[b] = square_sum(g + b * BLOCK, block_size(spans[s].count, b));
        sums[s] = 0;
        // One after another, in the order of blocks: the norm does not depend on the number of threads.
        for (size_t b = 0; b < blocks; b++) sums[s] += of_block[b];
    }
    free(of_block);
}

/* The scalars of a step for one span. */
typedef struct {
    real grad_scale, keep, move1, beta2, move2, rate, root_scale, eps;
} Factors;

/* The scalars of a step as the loop uses them, in its precision. */
static Factors factors_of(const AdamWScalars *step, bool decayed) {
    return (Factors){
        .grad_scale = (real)step->grad_scale,
        .keep = (real)(1.0 - (decayed ? step->learning_rate * step->weight_decay : 0.0)),
        .move1 = (real)(1.0 - step->beta1),
        .beta2 = (real)step->beta2,
        .move2 = (real)(1.0 - step->beta2),
        .rate = (real)(step->learning_rate / step->correction1),
        .root_scale = (real)(1.0 / sqrt(step->correction2)),
        .eps = (real)step->eps,
    };
}

/* The root in real's own precision: one correctly rounded instruction, the same on every machine. */
static inline real root(real x) {
    return sizeof(real) == 4 ? (real)sqrtf((float)x) : (real)sqrt(x);
}

/* AdamW over n elements; see ops.h for the formula. */
static inline void adamw_elements(real *restrict w, real *restrict m, real *restrict v,
                                  const real *restrict grad, size_t n, Factors f) {
    SIMD_FOR
    for (size_t i = 0; i < n; i++) {
        real g = f.grad_scale * grad[i];
        m[i] += f.move1 * (g - m[i]);
        v[i] = f.beta2 * v[i] + f.move2 * g * g;
        w[i] = f.keep * w[i] - f.rate * m[i] / (root(v[i]) * f.root_scale + f.eps);
    }
}

/* AdamW over a block of n elements, while memory is asked for what comes next. */
static void adamw_block(real *w, real *m, real *v, const real *grad, size_t n, Factors f) {
    enum { CHUNK = 4 * LINE };
    for (size_t first = 0; first < n; first += CHUNK) {
        for (size_t line = first + ADAMW_AHEAD; line < first + ADAMW_AHEAD + CHUNK; line += LINE) {
            __builtin_prefetch(w + line, 1, 2), __builtin_prefetch(m + line, 1, 2);
            __builtin_prefetch(v + line, 1, 2), __builtin_prefetch(grad + line, 0, 2);
        }
        adamw_elements(w + first, m + first, v + first, grad + first, size_min(CHUNK, n - first), f);
    }
}

void adamw_update(Param *params, OptimizerState *master, OptimizerState *m, OptimizerState *v,
                  const Grad *grads, const Span *spans, int count, const AdamWScalars *step) {
    (void)master; // params are their own master weights on the CPU
    for (int s = 0; s < count; s++) {
        Factors f = factors_of(step, spans[s].decayed);
        size_t blocks = block_count(spans[s].count);
        PARALLEL_FOR
        for (size_t b = 0; b < blocks; b++) {
            size_t at = spans[s].offset + b * BLOCK;
            adamw_block(params + at, m + at, v + at, grads + at, block_size(spans[s].count, b), f);
        }
    }
}

void gradient_zero(Grad *grads, size_t count) {
    size_t blocks = block_count(count);
    PARALLEL_FOR
    for (size_t b = 0; b < blocks; b++)
        memset(grads + b * BLOCK, 0, block_size(count, b) * sizeof *grads);
}
