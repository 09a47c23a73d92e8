/* real_embedding.c: embeddings and their gradient against plain loops in double. */
#include "test.h"

#include "../llmc/base/memory.h"
#include "../llmc/base/rng.h"
#include "../llmc/cpu/cpu.h"

static const double ULP = sizeof(real) == 4 ? 0x1p-23 : 0x1p-52; // of 1

static real *normals(size_t n, uint64_t seed) {
    real *x = memory_new(n + 1, sizeof *x, "test data");
    for (size_t i = 0; i < n; i++) {
        double z[2];
        rng_normal_pair(z, seed, i, 0);
        x[i] = (real)z[0];
    }
    return x;
}

typedef struct {
    int B, T, C, seq_len, first;
} Shape;
static const Shape shapes[] = {
    {1, 1, 1, 1, 0}, {2, 3, 5, 4, 1}, {3, 8, 48, 8, 0}, {4, 7, 130, 9, 2}};
enum { V = 11 };

/* Ids that repeat a lot, as frequent tokens do. */
static Id *ids_for(int N) {
    Id *ids = memory_new((size_t)N, sizeof *ids, "test data");
    for (int n = 0; n < N; n++) ids[n] = (Id)(hash_mix((uint64_t)n) % 7 % V);
    return ids;
}

TEST(forward,
     "each output is its token's row plus its position's, also from a later first position") {
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        Shape h = shapes[s];
        int N = h.B * h.T;
        real *wte = normals((size_t)V * h.C, 1), *wpe = normals((size_t)h.seq_len * h.C, 2);
        real *out = normals((size_t)N * h.C, 3);
        Id *ids = ids_for(N);
        embedding_forward(out, ids, wte, wpe, h.B, h.T, h.C, h.first);
        for (int n = 0; n < N; n++)
            for (int c = 0; c < h.C; c++) {
                double want =
                    (double)wte[ids[n] * h.C + c] + (double)wpe[(h.first + n % h.T) * h.C + c];
                CHECK_NEAR(out[n * h.C + c], want, 8 * ULP);
            }
        free(wte), free(wpe), free(out), free(ids);
    }
}

static void check_backward(Shape h, bool accumulate) {
    int N = h.B * h.T;
    real *dout = normals((size_t)N * h.C, 1);
    real *dwte = normals((size_t)V * h.C, 2), *dwpe = normals((size_t)h.seq_len * h.C, 3);
    Id *ids = ids_for(N);
    double *token = memory_new((size_t)V * h.C, sizeof *token, "oracle");
    double *position = memory_new((size_t)h.seq_len * h.C, sizeof *position, "oracle");
    for (int i = 0; i < V * h.C; i++) token[i] = dwte[i]; // always added to
    for (int i = 0; i < h.seq_len * h.C && accumulate; i++) position[i] = dwpe[i];
    for (int n = 0; n < N; n++)
        for (int c = 0; c < h.C; c++) {
            token[ids[n] * h.C + c] += dout[n * h.C + c];
            position[n % h.T * h.C + c] += dout[n * h.C + c];
        }
    embedding_backward(dwte, dwpe, dout, ids, h.B, h.T, h.C, h.seq_len, accumulate);
    for (int i = 0; i < V * h.C; i++) CHECK_NEAR(dwte[i], token[i], 64 * ULP);
    for (int i = 0; i < h.seq_len * h.C; i++) CHECK_NEAR(dwpe[i], position[i], 32 * ULP);
    free(dout), free(dwte), free(dwpe), free(ids), free(token), free(position);
}

TEST(backward_writes, "gradients by token and position; positions that were not used become 0") {
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        if (shapes[s].first == 0) check_backward(shapes[s], false);
    check_backward((Shape){2, 3, 70, 6, 0}, false);
}

TEST(backward_adds, "with accumulate both gradients are added") {
    check_backward((Shape){2, 3, 70, 6, 0}, true);
    check_backward((Shape){4, 5, 33, 5, 0}, true);
}

TEST(backward_threads, "one thread and three give the same bits") {
#ifdef _OPENMP
    enum { B = 3, T = 16, C = 200, N = B * T };
    real *dout = normals(N * C, 1), *got[2];
    Id *ids = ids_for(N);
    for (int k = 0; k < 2; k++) {
        got[k] = memory_new((V + T) * C, sizeof(real), "gradients");
        omp_set_num_threads(k ? 3 : 1);
        embedding_backward(got[k], got[k] + V * C, dout, ids, B, T, C, T, false);
    }
    CHECK(memcmp(got[0], got[1], (V + T) * C * sizeof(real)) == 0);
    free(dout), free(ids), free(got[0]), free(got[1]);
#else
    SKIP("built without OpenMP");
#endif
}

int main(int argc, char **argv) { return test_main(argc, argv); }
