/* attention_backward.c: the gradient of attention_forward.c, from the log-sum-exps it kept.
 *
 * Forward, with x_ts = q_t . k_s / sqrt(hs) for s <= t:
 *     p_ts = e^(x_ts - lse_t)          out_t = sum over s of p_ts v_s
 * Backward (Dao et al. 2022, appendix B.4):
 *     dv_s  = sum over t of p_ts dout_t
 *     dp_ts = dout_t . v_s
 *     dx_ts = p_ts (dp_ts - D_t),      D_t = sum over s of p_ts dp_ts = dout_t . out_t
 *     dq_t  = sum over s of dx_ts k_s / sqrt(hs)
 *     dk_s  = sum over t of dx_ts q_t / sqrt(hs)
 * A task is one head of one sequence. For each block of queries and panel of keys, p and dx are computed
 * again, used in all three sums, and dropped: no (T,T) matrix is kept. Read attention_forward.c first;
 * next: classifier.c. */
#include "attention_tiles.h"
#include "scratch.h"

/* One head's sizes and its working memory. */
typedef struct {
    int T, hs;
    int padded, width;     // T and hs up to whole tiles
    real *k, *v, *dk, *dv; // (padded,width)
    real *q, *dout, *dq;   // (BLOCK,width) of the block; q over sqrt(hs)
    real *q_columns;       // (width,BLOCK) the same transposed
    real *dout_columns;    // (width,BLOCK)
    real *p, *dx;          // (PANEL,BLOCK) x becomes p, dp becomes dx
    real *lse, *D;         // (BLOCK)
} Head;

/* How much memory head_in shares out. */
static size_t head_reals(int T, int hs) {
    size_t padded = (size_t)round_up(T, TILE_ROWS), width = (size_t)round_up(hs, TILE_COLS);
    return 4 * padded * width + 5 * BLOCK * width + 2 * PANEL * BLOCK + 2 * BLOCK;
}

/* A thread's buffers for one head, one behind the other in `memory`. */
static Head head_in(real *memory, int T, int hs) {
    Head head = {.T = T, .hs = hs};
    head.padded = round_up(T, TILE_ROWS), head.width = round_up(hs, TILE_COLS);
    const size_t width = (size_t)head.width, matrix = (size_t)head.padded * width;
    head.k = memory;
    head.v = head.k + matrix;
    head.dk = head.v + matrix;
    head.dv = head.dk + matrix;
    head.q = head.dv + matrix;
    head.dout = head.q + BLOCK * width;
    head.dq = head.dout + BLOCK * width;
    head.q_columns = head.dq + BLOCK * width;
    head.dout_columns = head.q_columns + BLOCK * width;
    head.p = head.dout_columns + BLOCK * width;
    head.dx = head.p + PANEL * BLOCK;
    head.lse = head.dx + PANEL * BLOCK;
    head.D = head.lse + BLOCK;
    return head;
}

/* x -> p and dp -> dx, for the keys first .. end and the block's queries from t0. Pairs whose key follows the
 * query are computed too, but the sums never read them. */
static void scores_to_gradients(const Head *head, int first, int end, int t0, int queries) {
    for (int t = 0; t < queries; t += VEC) {
        vec lse = vec_load(head->lse + t), D = vec_load(head->D + t);
        int last = int_min(end, t0 + t + VEC);
        for (int s = 0; s < last - first; s++) {
            real *p_at = head->p + s * BLOCK + t, *dx_at = head->dx + s * BLOCK + t;
            vec p = vec_exp(vec_load(p_at) - lse);
            vec_store(p_at, p);
            vec_store(dx_at, p * (vec_load(dx_at) - D));
        }
    }
}

/* The contributions of the keys first .. end and the block's queries to dq, dk and dv. */
static void panel_backward(const Head *head, int first, int end, int t0, int queries) {
    const int hs = head->hs, width = head->width;
    const size_t at = (size_t)first * width;
    products_of_pairs(head->p, head->k + at, head->q_columns, first, end, t0, queries, hs, width);
    products_of_pairs(head->dx, head->v + at, head->dout_columns, first, end, t0, queries, hs,
                      width);
    scores_to_gradients(head, first, end, t0, queries);
    sum_over_queries(head->dv + at, head->p, head->dout, first, end, t0, queries, width);
    sum_over_queries(head->dk + at, head->dx, head->q, first, end, t0, queries, width);
    sum_over_keys(head->dq, head->dx, head->k + at, first, end, t0, queries, width);
}

/* Loads the block's queries and their results from forward. */
static void pack_block(const Head *head, const real *q, const real *dout, const real *out,
                       const real *lse, int queries, size_t C) {
    const int hs = head->hs, width = head->width, lanes = round_up(queries, TILE_COLS);
    const real scale = attention_scale(hs);
    pack_rows(head->q, q, 3 * C, queries, queries, hs, width, scale);
    pack_rows(head->dout, dout, C, queries, queries, hs, width, 1);
    pack_columns(head->q_columns, q, 3 * C, queries, lanes, hs, scale);
    pack_columns(head->dout_columns, dout, C, queries, lanes, hs, 1);
    for (int t = 0; t < lanes; t++) {
        head->lse[t] = t < queries ? lse[t] : 0;
        // D_t = dout_t . out_t, the sum over keys in closed form
        head->D[t] =
            t < queries ? vec_row_dot(dout + (size_t)t * C, out + (size_t)t * C, (size_t)hs) : 0;
    }
    memset(head->dq, 0, BLOCK * (size_t)width * sizeof(real));
}

/* The pointers are to the head's parts of the row's first token. */
static void head_backward(const Head *head, real *dqkv, const real *dout, const real *out,
                          const real *lse, const real *qkv, size_t C) {
    const int T = head->T, hs = head->hs, width = head->width, padded = head->padded;
    const size_t stride = 3 * C, matrix = (size_t)padded * (size_t)width;
    pack_rows(head->k, qkv + C, stride, T, padded, hs, width, 1);
    pack_rows(head->v, qkv + 2 * C, stride, T, padded, hs, width, 1);
    memset(head->dk, 0, matrix * sizeof(real));
    memset(head->dv, 0, matrix * sizeof(real));
    // dq of a block is complete after its panels; dk and dv grow until the last block
    for (int t0 = 0; t0 < T; t0 += BLOCK) {
        int queries = int_min(BLOCK, T - t0);
        size_t at = (size_t)t0 * C;
        pack_block(head, qkv + 3 * at, dout + at, out + at, lse + t0, queries, C);
        for (int s = 0; s < t0 + queries; s += PANEL)
            panel_backward(head, s, int_min(s + PANEL, T), t0, queries);
        unpack_rows(dqkv + 3 * at, stride, head->dq, queries, hs, width, attention_scale(hs));
    }
    unpack_rows(dqkv + C, stride, head->dk, T, hs, width, 1);
    unpack_rows(dqkv + 2 * C, stride, head->dv, T, hs, width, 1);
}

void attention_backward(real *dqkv, const real *dout, const real *out, const real *lse,
                        const real *qkv, int B, int T, int C, int NH) {
    const int hs = C / NH;
    const size_t reals = head_reals(T, hs);
    real *memory = scratch_reserve((size_t)omp_get_max_threads(), reals, "attention's gradient");
    PARALLEL_FOR
    for (int task = 0; task < B * NH; task++) {
        Head head = head_in(memory + (size_t)omp_get_thread_num() * reals, T, hs);
        size_t row = (size_t)(task / NH) * (size_t)T, column = (size_t)(task % NH) * (size_t)hs;
        size_t at = row * C + column, at3 = 3 * row * C + column;
        head_backward(&head, dqkv + at3, dout + at, out + at, lse + (size_t)task * T, qkv + at3,
                      (size_t)C);
    }
}
