/* attention.c: causal self-attention (Vaswani et al. 2017), the only operation in which a token sees
 * other tokens. Each token t asks with its query q_t; each token s <= t answers with its key k_s and its
 * value v_s. In one head, whose vectors have hs = C/NH numbers:
 *     x_ts  = q_t . k_s / sqrt(hs)               the score: how much t wants to know of s
 *     p_ts  = e^x_ts / (sum over s of e^x_ts)    the weight: softmax of the scores, over s <= t
 *     out_t = sum over s of p_ts v_s             an average of the values
 * The NH heads do this side by side, each with its own hs of the C channels. No matrix (T, T) of weights
 * is kept. For each query only lse_t = log(sum of e^x_ts) is kept, and backward computes a weight again:
 * p_ts = e^(x_ts - lse_t).
 *
 * In qkv (B, T, 3C) a token's row is q (C), then k (C), then v (C). Next: classifier.c. */
#include "plain.h"

#include <math.h>

static double dot(const real *a, const real *b, int n) { // (n), (n)
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)a[i] * b[i];
    return sum;
}

static double score(const real *q, const real *k, int hs) { // (hs), (hs)
    return dot(q, k, hs) / sqrt(hs);
}

/* One head of the query of token t: writes out (hs) and returns lse. q, k, v (hs): of this head, in the
 * row of token 0; the next token's are 3C further on. */
static double query_forward(real *out, const real *q, const real *k, const real *v, int t, int hs,
                            size_t C) {
    const real *q_t = q + t * 3 * C;
    // The largest score is subtracted from all: softmax stays the same, and e^x cannot overflow.
    double max = -INFINITY, total = 0;
    for (int s = 0; s <= t; s++) max = fmax(max, score(q_t, k + s * 3 * C, hs));
    for (int i = 0; i < hs; i++) out[i] = 0;
    for (int s = 0; s <= t; s++) {
        const real *v_s = v + s * 3 * C;
        double e = exp(score(q_t, k + s * 3 * C, hs) - max);
        total += e;
        for (int i = 0; i < hs; i++) out[i] += (real)(e * v_s[i]);
    }
    for (int i = 0; i < hs; i++) out[i] = (real)(out[i] / total);
    return max + log(total);
}

void attention_forward(real *out,       // (B, T, C)
                       real *lse,       // (B, NH, T)
                       const real *qkv, // (B, T, 3C)
                       int B, int T, int C, int NH) {
    const int hs = C / NH;
    PARALLEL_FOR
    for (int bh = 0; bh < B * NH; bh++) {
        const size_t token0 = (size_t)(bh / NH) * T, channel0 = (size_t)(bh % NH) * hs;
        const real *q = qkv + token0 * 3 * C + channel0, *k = q + C, *v = k + C;
        for (int t = 0; t < T; t++)
            lse[at(bh, t, T)] =
                (real)query_forward(out + (token0 + t) * C + channel0, q, k, v, t, hs, (size_t)C);
    }
}

/* While text is generated, tokens come one by one: only the newest one's query is new. */
void attention_decode(real *out,       // (C) of token `position`
                      const real *qkv, // (position + 1, 3C): all tokens so far
                      int position, int C, int NH) {
    const int hs = C / NH;
    PARALLEL_FOR
    for (int h = 0; h < NH; h++) {
        const real *q = qkv + h * hs, *k = q + C, *v = k + C;
        query_forward(out + h * hs, q, k, v, position, hs, (size_t)C);
    }
}

/* What passes between the query of token t and the key and value of token s, backward. All (hs).
 * D = dout . out = sum over s of p_ts (dout . v_s): how softmax's denominator, in which every score
 * occurs, pushes back (Dao et al. 2022, appendix B.4). */
static void pair_backward(real *dq, real *dk, real *dv, const real *q, const real *k, const real *v,
                          const real *dout, double lse, double D, int hs) {
    double p = exp(score(q, k, hs) - lse);
    double dp = dot(dout, v, hs);        // forward: out += p * v
    double dx = p * (dp - D) / sqrt(hs); // forward: p = softmax of q . k / sqrt(hs)
    for (int i = 0; i < hs; i++) {
        dv[i] += (real)(p * dout[i]); // forward: out += p * v
        dq[i] += (real)(dx * k[i]);   // forward: x = q . k / sqrt(hs)
        dk[i] += (real)(dx * q[i]);
    }
}

void attention_backward(real *dqkv,       // (B, T, 3C)
                        const real *dout, // (B, T, C)
                        const real *out,  // (B, T, C)
                        const real *lse,  // (B, NH, T)
                        const real *qkv,  // (B, T, 3C)
                        int B, int T, int C, int NH) {
    const int hs = C / NH;
    PARALLEL_FOR
    for (int bh = 0; bh < B * NH; bh++) {
        const size_t token0 = (size_t)(bh / NH) * T, channel0 = (size_t)(bh % NH) * hs;
        const real *qkv0 = qkv + token0 * 3 * C + channel0; // this head's q of token 0
        real *dqkv0 = dqkv + token0 * 3 * C + channel0;
        for (int t = 0; t < T; t++) {
            real *d = dqkv0 + (size_t)t * 3 * C;
            for (int i = 0; i < hs; i++) d[i] = d[C + i] = d[2 * C + i] = 0;
        }
        for (int t = 0; t < T; t++) {
            const real *dout_t = dout + (token0 + t) * C + channel0; // (hs)
            const real *out_t = out + (token0 + t) * C + channel0;   // (hs)
            const double D = dot(dout_t, out_t, hs);
            const size_t q_t = (size_t)t * 3 * C;
            for (int s = 0; s <= t; s++) {
                const size_t k_s = (size_t)s * 3 * C + C, v_s = k_s + C;
                pair_backward(dqkv0 + q_t, dqkv0 + k_s, dqkv0 + v_s, qkv0 + q_t, qkv0 + k_s,
                              qkv0 + v_s, dout_t, lse[at(bh, t, T)], D, hs);
            }
        }
    }
}
