/* embedding.c: token plus position embeddings, and the gradient of both. */
#include "cpu.h"

#include <string.h>

void embedding_forward(Act *out, const Id *ids, const Param *wte, const Param *wpe, int B, int T,
                       int C, int first) {
    int N = B * T;
    PARALLEL_FOR
    for (int n = 0; n < N; n++) {
        real *o = out + (size_t)n * C;                            // (C)
        const real *token = wte + (size_t)ids[n] * C;             // (C)
        const real *position = wpe + (size_t)(first + n % T) * C; // (C)
        SIMD_FOR
        for (int c = 0; c < C; c++) o[c] = token[c] + position[c];
    }
}

/* Several rows may hold the same token, so rows are not independent, but channels are: each task
 * owns some channels (a few cache lines of every row) and adds the rows in order. */
enum { TASK_CHANNELS = 64 };

/* dwte (V,C) += rows of dout (N,C), row n to that of ids[n]. A repeated id gets its rows in the order of n. */
static void token_gradient(Grad *dwte, const Act *dout, const Id *ids, int N, int C) {
    int tasks = (C + TASK_CHANNELS - 1) / TASK_CHANNELS;
    PARALLEL_FOR
    for (int task = 0; task < tasks; task++) {
        int begin = task * TASK_CHANNELS;
        int end = begin + TASK_CHANNELS < C ? begin + TASK_CHANNELS : C;
        for (int n = 0; n < N; n++) {
            real *dtoken = dwte + (size_t)ids[n] * C; // (C)
            const real *d = dout + (size_t)n * C;     // (C)
            SIMD_FOR
            for (int c = begin; c < end; c++) dtoken[c] += d[c];
        }
    }
}

/* dwpe (T,C) = or += the sum over the batch of dout (B,T,C). Threads own positions, and add b = 0, 1, ... in order. */
static void position_gradient(Grad *dwpe, const Act *dout, int B, int T, int C, bool accumulate) {
    PARALLEL_FOR
    for (int t = 0; t < T; t++) {
        real *dposition = dwpe + (size_t)t * C; // (C)
        if (!accumulate) memset(dposition, 0, (size_t)C * sizeof(real));
        for (int b = 0; b < B; b++) {
            const real *d = dout + ((size_t)b * T + t) * C; // (C)
            SIMD_FOR
            for (int c = 0; c < C; c++) dposition[c] += d[c];
        }
    }
}

void embedding_backward(Grad *dwte, Grad *dwpe, const Act *dout, const Id *ids, int B, int T, int C,
                        int seq_len, bool accumulate) {
    token_gradient(dwte, dout, ids, B * T, C);
    position_gradient(dwpe, dout, B, T, C, accumulate);
    if (!accumulate) memset(dwpe + (size_t)T * C, 0, (size_t)(seq_len - T) * C * sizeof(real));
}
