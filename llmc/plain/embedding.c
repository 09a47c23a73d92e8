/* embedding.c: a token's vector is the sum of two learned vectors: one for its id, one for its position.
 * Nothing is multiplied, so the gradient of the sum is the gradient of both parts. Next: layernorm.c. */
#include "plain.h"

void embedding_forward(real *out,       // (B, T, C)
                       const Id *ids,   // (B, T)
                       const real *wte, // (Vp, C) a row for each token id
                       const real *wpe, // (seq_len, C) a row for each position
                       int B, int T, int C, int first) {
    PARALLEL_FOR
    for (int b = 0; b < B; b++)
        for (int t = 0; t < T; t++) {
            size_t n = at(b, t, T);
            for (int c = 0; c < C; c++)
                out[at(n, c, C)] = wte[at(ids[n], c, C)] + wpe[at(first + t, c, C)];
        }
}

/* Many tokens may have the same id: then their gradients add up in one row of dwte. Threads share the
 * channels, because no sum contains two channels. */
void embedding_backward(real *dwte,       // (Vp, C) always added to
                        real *dwpe,       // (seq_len, C)
                        const real *dout, // (B, T, C)
                        const Id *ids,    // (B, T)
                        int B, int T, int C, int seq_len, bool accumulate) {
    PARALLEL_FOR
    for (int c = 0; c < C; c++) {
        for (int t = 0; t < seq_len && !accumulate; t++) dwpe[at(t, c, C)] = 0;
        for (int b = 0; b < B; b++)
            for (int t = 0; t < T; t++) {
                size_t n = at(b, t, T);
                // forward: out[b,t,c] = wte[ids[b,t],c] + wpe[t,c]
                dwte[at(ids[n], c, C)] += dout[at(n, c, C)];
                dwpe[at(t, c, C)] += dout[at(n, c, C)];
            }
    }
}
