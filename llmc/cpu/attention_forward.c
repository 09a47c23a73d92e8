/* attention_forward.c: causal self-attention, for whole sequences and for one new token of generation.
 *
 * Attention is the only layer that mixes information between tokens. For each query t of a head:
 *     x_ts  = q_t . k_s / sqrt(hs)                    a score for each key s <= t
 *     p_ts  = e^(x_ts - max) / sum                    softmax over the keys
 *     out_t = sum over s of p_ts v_s                  the weighted mean of the values
 * plain/attention.c has these lines as loops. Here a task is one head of one sequence. It takes the queries in
 * blocks and keeps all scores of a block (the strip: keys x BLOCK, which fits L2), so softmax needs two plain
 * passes: the maximum, then the exponentials and their sum. For backward only the log of the sum is kept.
 * Read attention_tiles.h first; next: attention_backward.c. */
#include "../base/elementary.h"
#include "attention_tiles.h"
#include "scratch.h"

/* One head's sizes and its working memory. */
typedef struct {
    int T, hs;
    int padded, width; // T and hs up to whole tiles
    real *k, *v;       // (padded,width)
    real *q;           // (width,BLOCK) the block's queries over sqrt(hs), transposed
    real *strip;       // (padded,BLOCK) scores, then e^(score - max)
    real *sum;         // (BLOCK,width) those times v, before the division by their total
    real *max, *total; // (BLOCK)
} Head;

/* How much memory head_in shares out. */
static size_t head_reals(int T, int hs) {
    size_t padded = (size_t)round_up(T, TILE_ROWS), width = (size_t)round_up(hs, TILE_COLS);
    return padded * (2 * width + BLOCK) + BLOCK * (2 * width + 2);
}

/* A thread's buffers for one head, one behind the other in `memory`. */
static Head head_in(real *memory, int T, int hs) {
    Head head = {.T = T, .hs = hs};
    head.padded = round_up(T, TILE_ROWS), head.width = round_up(hs, TILE_COLS);
    const size_t width = (size_t)head.width, matrix = (size_t)head.padded * width;
    head.k = memory;
    head.v = head.k + matrix;
    head.q = head.v + matrix;
    head.sum = head.q + BLOCK * width;
    head.max = head.sum + BLOCK * width;
    head.total = head.max + BLOCK;
    head.strip = head.total + BLOCK;
    return head;
}

/* Softmax of VEC queries from t0 + t, one query in each lane: the scores in the strip become e^(score - max).
 * Scores of keys after the query become 0. max and total, the sum, are kept for each query. */
static void softmax_of_lanes(const Head *head, int t0, int t) {
    static const real lane[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const int first = t0 + t, end = int_min(first + VEC, head->T);
    const vec lanes = vec_load(lane), never = vec_set1((real)-INFINITY);
    vec max = never, total = {0};
    real *strip = head->strip + t;
    // First pass: mask, and the maximum, which keeps e^(score - max) from overflowing.
    for (int s = 0; s < end; s++) {
        vec score = vec_load(strip + s * BLOCK);
        if (s > first) {
            score = vec_select((vec_bits)(lanes >= (real)(s - first)), score, never);
            vec_store(strip + s * BLOCK, score);
        }
        max = vec_larger(max, score);
    }
    // Second pass: the exponentials and their sum.
    for (int s = 0; s < end; s++) {
        vec weight = vec_exp(vec_load(strip + s * BLOCK) - max);
        vec_store(strip + s * BLOCK, weight);
        total += weight;
    }
    vec_store(head->max + t, max);
    vec_store(head->total + t, total);
}

/* The outputs and log-sum-exps of the queries t0 .. t0 + queries. */
static void queries_forward(const Head *head, int t0, int queries, real *out, size_t out_stride,
                            real *lse) {
    const int width = head->width;
    products_of_pairs(head->strip, head->k, head->q, 0, t0 + queries, t0, queries, head->hs, width);
    for (int t = 0; t < queries; t += VEC) softmax_of_lanes(head, t0, t);

    // The values, weighted, panel by panel of keys; then each query is divided by its total.
    memset(head->sum, 0, BLOCK * (size_t)width * sizeof(real));
    for (int s = 0; s < t0 + queries; s += PANEL)
        sum_over_keys(head->sum, head->strip + s * BLOCK, head->v + (size_t)s * width, s, s + PANEL,
                      t0, queries, width);
    for (int t = 0; t < queries; t++) {
        unpack_rows(out + (size_t)t * out_stride, 0, head->sum + t * width, 1, head->hs, width,
                    1 / head->total[t]);
        lse[t] = head->max[t] + (real)elementary_log((double)head->total[t]);
    }
}

/* q, k and v are the head's parts of the row's first token in qkv; out likewise. */
static void head_forward(const Head *head, real *out, real *lse, const real *qkv, int C) {
    const size_t stride = 3 * (size_t)C;
    const int T = head->T, hs = head->hs;
    pack_rows(head->k, qkv + C, stride, T, head->padded, hs, head->width, 1);
    pack_rows(head->v, qkv + 2 * C, stride, T, head->padded, hs, head->width, 1);
    for (int t0 = 0; t0 < T; t0 += BLOCK) {
        int queries = int_min(BLOCK, T - t0);
        pack_columns(head->q, qkv + (size_t)t0 * stride, stride, queries,
                     round_up(queries, TILE_COLS), hs, attention_scale(hs));
        queries_forward(head, t0, queries, out + (size_t)t0 * C, (size_t)C, lse + t0);
    }
}

/* out_t = sum over s <= t of e^(x_ts - lse_t) v_s,  x_ts = q_t . k_s / sqrt(hs),
 * lse_t = log of the sum over s <= t of e^x_ts. */
void attention_forward(real *out, real *lse, const real *qkv, int B, int T, int C, int NH) {
    const int hs = C / NH;
    const size_t reals = head_reals(T, hs);
    real *memory = scratch_reserve((size_t)omp_get_max_threads(), reals, "attention");
    PARALLEL_FOR
    for (int task = 0; task < B * NH; task++) {
        Head head = head_in(memory + (size_t)omp_get_thread_num() * reals, T, hs);
        size_t row = (size_t)(task / NH) * (size_t)T, column = (size_t)(task % NH) * (size_t)hs;
        head_forward(&head, out + row * C + column, lse + (size_t)task * T,
                     qkv + 3 * row * C + column, C);
    }
}

/* The same for one query, whose token is the last of position + 1. out (hs), q (hs); k, v: the
 * head's part of the first token's; weights: (position + 1) to work in. */
static void head_decode(real *out, real *weights, const real *q, const real *k, const real *v,
                        size_t stride, int position, int hs) {
    const real scale = attention_scale(hs);
    real max = (real)-INFINITY, total = 0;
    for (int s = 0; s <= position; s++) {
        weights[s] = scale * vec_row_dot(q, k + (size_t)s * stride, (size_t)hs);
        max = weights[s] > max ? weights[s] : max;
    }
    for (int s = 0; s <= position; s += VEC) {
        size_t n = (size_t)(position + 1 - s);
        vec_store_n(weights + s, vec_exp(vec_load_n(weights + s, n) - max), n);
    }
    for (int s = 0; s <= position; s++) total += weights[s];
    for (int c = 0; c < hs; c += VEC) {
        size_t n = (size_t)(hs - c);
        vec sum = {0};
        for (int s = 0; s <= position; s++)
            sum += vec_load_n(v + (size_t)s * stride + c, n) * weights[s];
        vec_store_n(out + c, sum / total, n);
    }
}

void attention_decode(real *out, const real *qkv, int position, int C, int NH) {
    const int hs = C / NH;
    const size_t stride = 3 * (size_t)C;
    const size_t reals = (size_t)position + 1;
    real *memory = scratch_reserve((size_t)omp_get_max_threads(), reals, "attention");
    PARALLEL_FOR
    for (int h = 0; h < NH; h++) {
        const real *head = qkv + h * hs;
        head_decode(out + h * hs, memory + (size_t)omp_get_thread_num() * reals,
                    head + position * stride, head + C, head + 2 * C, stride, position, hs);
    }
}
