/* classifier.c: from a token's last vector x to the loss of its target, and back, in one call.
 *     l_v  = x . wte_v                           the logit of each token v of the vocabulary
 *     p_v  = e^l_v / (sum over v of e^l_v)       softmax: the probability that v comes next
 *     loss = -log p_target                       cross-entropy
 * wte is the token embedding again (tied weights). Forward and backward are one call because logits are
 * large: of a chunk of rows they are computed, used in all three ways, and overwritten by the next
 * chunk's. Next: reduction.c. */
#include "plain.h"

#include <math.h>

enum { CHUNK = 64 }; // rows

int classifier_chunk(int N, int Vp) {
    (void)Vp;
    return N < CHUNK ? N : CHUNK;
}

/* logits (V) of one row. x (C), wte (Vp, C). */
static void row_logits(real *logits, const real *x, const real *wte, int C, int V) {
    for (int v = 0; v < V; v++) {
        double sum = 0;
        for (int c = 0; c < C; c++) sum += (double)x[c] * wte[at(v, c, C)];
        logits[v] = (real)sum;
    }
}

/* The loss of one row. Its logits (V) become their own gradient, of scale * loss. */
static double row_loss(real *logits, Id target, double scale, int V) {
    if (target < 0) { // no target: no loss, no gradient
        for (int v = 0; v < V; v++) logits[v] = 0;
        return 0;
    }
    // The largest logit is subtracted from all: softmax stays the same, and e^l cannot overflow.
    double max = -INFINITY, total = 0;
    for (int v = 0; v < V; v++) max = fmax(max, logits[v]);
    for (int v = 0; v < V; v++) total += exp(logits[v] - max);
    double loss = log(total) - (logits[target] - max);
    for (int v = 0; v < V; v++) {
        double p = exp(logits[v] - max) / total;
        // forward: loss = log(sum over v of e^l_v) - l_target
        logits[v] = (real)(scale * (v == target ? p - 1 : p));
    }
    return loss;
}

/* dx (C) of one row. dlogits (V), wte (Vp, C). */
static void row_dx(real *dx, const real *dlogits, const real *wte, int C, int V) {
    for (int c = 0; c < C; c++) {
        double sum = 0;
        // forward: l[v] += x[c] * wte[v,c], for every v
        for (int v = 0; v < V; v++) sum += (double)dlogits[v] * wte[at(v, c, C)];
        dx[c] = (real)sum;
    }
}

/* dwte (V, C) (+)= the part of `rows` rows. dlogits (rows, Vp), x (rows, C). */
static void chunk_dwte(real *dwte, const real *dlogits, const real *x, int rows, int C, int V,
                       int Vp, bool accumulate) {
    PARALLEL_FOR
    for (int v = 0; v < V; v++)
        for (int c = 0; c < C; c++) {
            double sum = accumulate ? dwte[at(v, c, C)] : 0;
            // forward: l[n,v] += x[n,c] * wte[v,c], for every n
            for (int n = 0; n < rows; n++) sum += (double)dlogits[at(n, v, Vp)] * x[at(n, c, C)];
            dwte[at(v, c, C)] = (real)sum;
        }
}

void classifier(real *losses,      // (N)
                real *dx,          // (N, C) or NULL: losses only
                real *dwte,        // (Vp, C)
                real *logits,      // (classifier_chunk(N, Vp), Vp) to work in
                const real *x,     // (N, C)
                const real *wte,   // (Vp, C), of which rows V.. are padding
                const Id *targets, // (N), -1 for no target
                double scale, int N, int C, int V, int Vp, bool accumulate) {
    for (int first = 0; first < N; first += CHUNK) {
        const int rows = N - first < CHUNK ? N - first : CHUNK;
        const real *x0 = x + at(first, 0, C); // (rows, C)
        PARALLEL_FOR
        for (int n = 0; n < rows; n++) {
            real *logits_n = logits + at(n, 0, Vp); // (V)
            row_logits(logits_n, x0 + at(n, 0, C), wte, C, V);
            losses[first + n] = (real)row_loss(logits_n, targets[first + n], scale, V);
            if (dx) row_dx(dx + at(first + n, 0, C), logits_n, wte, C, V);
        }
        if (dx) chunk_dwte(dwte, logits, x0, rows, C, V, Vp, accumulate || first > 0);
    }
    for (size_t i = at(V, 0, C); i < at(Vp, 0, C) && dx && !accumulate; i++) dwte[i] = 0;
}
