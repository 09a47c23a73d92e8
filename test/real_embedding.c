/* real_embedding.c: embeddings and their gradient against the plain loops. */
#include "real_data.h"

#include "../llmc/base/memory.h"
#include "../llmc/base/rng.h"

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
        Data wte = data_new(V * h.C, 1), wpe = data_new(h.seq_len * h.C, 2);
        Data out = data_result(h.B * h.T * h.C);
        Id *ids = ids_for(h.B * h.T);
        embedding_forward(out.at, ids, wte.at, wpe.at, h.B, h.T, h.C, h.first);
        plain_embedding_forward(out.want, ids, wte.want, wpe.want, h.B, h.T, h.C, h.first);
        data_check("out", &out, REAL_EPSILON);
        data_free(&wte), data_free(&wpe), data_free(&out), free(ids);
    }
}

static void check_backward(Shape h, bool accumulate) {
    Data dout = data_new(h.B * h.T * h.C, 1), dwte = data_new(V * h.C, 2);
    Data dwpe = accumulate ? data_new(h.seq_len * h.C, 3) : data_result(h.seq_len * h.C);
    Id *ids = ids_for(h.B * h.T);
    embedding_backward(dwte.at, dwpe.at, dout.at, ids, h.B, h.T, h.C, h.seq_len, accumulate);
    plain_embedding_backward(dwte.want, dwpe.want, dout.want, ids, h.B, h.T, h.C, h.seq_len,
                             accumulate);
    data_check("dwte", &dwte, 8 * REAL_EPSILON);
    data_check("dwpe", &dwpe, 8 * REAL_EPSILON);
    data_free(&dout), data_free(&dwte), data_free(&dwpe), free(ids);
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
    enum { B = 3, T = 16, C = 200 };
    Data dout = data_new(B * T * C, 1), dwte[2], dwpe[2];
    Id *ids = ids_for(B * T);
    for (int k = 0; k < 2; k++) {
        dwte[k] = data_new(V * C, 2), dwpe[k] = data_result(T * C);
        omp_set_num_threads(k ? 3 : 1);
        embedding_backward(dwte[k].at, dwpe[k].at, dout.at, ids, B, T, C, T, false);
    }
    CHECK(memcmp(dwte[0].at, dwte[1].at, V * C * sizeof(real)) == 0);
    CHECK(memcmp(dwpe[0].at, dwpe[1].at, T * C * sizeof(real)) == 0);
    for (int k = 0; k < 2; k++) data_free(&dwte[k]), data_free(&dwpe[k]);
    data_free(&dout), free(ids);
#else
    SKIP("built without OpenMP");
#endif
}

int main(int argc, char **argv) { return test_main(argc, argv); }
