/* backend_ranks.c: gradients summed over ranks: the program starts itself on two, with mpirun. Next:
 * backend_model.c. */
#include "backend.h"
#include "ranks.h"

#include "../llmc/ranks/world.h"

int backend_rank(int argc, char **argv);

enum { BUCKETS = 3, BUCKET = 2500, ELEMENTS = BUCKETS * BUCKET, UPDATES = 2 };

/* What micro-batch `micro-batch` of an update contributes to element i: few bits, so that float sums are exact. */
static float contribution(int update, int micro_batch, int i) {
    return (float)((i * 7 + micro_batch * 13 + update * 5) % 64 - 32) / 64;
}

/* The sum of all micro-batches' contributions to element i. */
static float expected(int update, int micro_batches, int i) {
    float sum = 0;
    for (int micro_batch = 0; micro_batch < micro_batches; micro_batch++)
        sum += contribution(update, micro_batch, i);
    return sum;
}

/* Reads all elements; returns how many are not what is expected of the update. */
static int wrong_elements(const void *device, ElementKind kind, int update, int micro_batches) {
    static float got[ELEMENTS];
    int wrong = 0;
    read_floats(got, device, kind, ELEMENTS);
    for (int i = 0; i < ELEMENTS; i++) wrong += got[i] != expected(update, micro_batches, i);
    return wrong;
}

/* Enqueues an update that does nothing but write the gradients to m: with beta1 0, and a learning rate of 0. */
static void keep_gradients(Param *params, OptimizerState *m, OptimizerState *v, const Grad *grads) {
    static const Span all = {0, ELEMENTS, false};
    static const AdamWScalars step = {.eps = 1, .correction1 = 1, .correction2 = 1, .grad_scale = 1};
    adamw_update(params, NULL, m, v, grads, &all, 1, &step);
}

/* One rank's part of an update. It has micro-batches rank, rank + size, ...; each bucket is complete a little later
 * than the last. */
static void run_update(World world, Grad *grads, bool exact, int micro_batches, int update) {
    static float host[ELEMENTS];
    int mine = (micro_batches - world.rank + world.size - 1) / world.size;
    memset(host, 0, sizeof host);
    for (int micro = 0; micro < (mine ? mine : 1); micro++) {
        int micro_batch = micro * world.size + world.rank;
        for (int i = 0; i < ELEMENTS; i++)
            host[i] = contribution(update, micro_batch, i) + (exact ? 0 : host[i]);
        for (int b = BUCKETS - 1; b >= 0; b--) {
            size_t first = (size_t)b * BUCKET;
            void *at = device_at(grads, OF_GRAD, first);
            if (mine) write_floats(at, OF_GRAD, host + first, BUCKET);
            reduction_ready(first, BUCKET, micro == 0, micro >= mine - 1, mine > 0);
        }
    }
}

/* One rank's part of two updates. Between them, while the first one's AdamW may still read the gradients, the second
 * begins. Returns the number of wrong elements. */
static int wrong_sums(World world, bool exact, int micro_batches) {
    int wrong = 0, most = (micro_batches + world.size - 1) / world.size;
    Grad *grads = device_alloc(ELEMENTS * element_size(OF_GRAD), "a test's gradients");
    Param *params = device_alloc(ELEMENTS * element_size(OF_PARAM), "a test's weights");
    OptimizerState *m = device_alloc(ELEMENTS * element_size(OF_OPTIMIZER_STATE), "a test's moments");
    OptimizerState *v = device_alloc(ELEMENTS * element_size(OF_OPTIMIZER_STATE), "a test's moments");
    reduction_open(grads, ELEMENTS, exact, most);
    for (int update = 0; update < UPDATES; update++) {
        run_update(world, grads, exact, micro_batches, update);
        if (update > 0) wrong += wrong_elements(m, OF_OPTIMIZER_STATE, update - 1, micro_batches);
        wrong += reduction_finish() != -1;
        wrong += wrong_elements(grads, OF_GRAD, update, micro_batches);
        keep_gradients(params, m, v, grads);
    }
    wrong += wrong_elements(m, OF_OPTIMIZER_STATE, UPDATES - 1, micro_batches);
    reduction_close();
    device_free(grads, ELEMENTS * element_size(OF_GRAD));
    device_free(params, ELEMENTS * element_size(OF_PARAM));
    device_free(m, ELEMENTS * element_size(OF_OPTIMIZER_STATE));
    device_free(v, ELEMENTS * element_size(OF_OPTIMIZER_STATE));
    return wrong;
}

/* The program as one of several ranks, --rank EXACT UNITS: its exit code. Otherwise -1. */
int backend_rank(int argc, char **argv) {
    ranks_program = argv[0];
    if (argc < 4 || strcmp(argv[1], "--rank") != 0) return -1;
    World world = world_open(&argc, &argv);
    backend_open(world.local_rank, world.local_size, 1);
    int wrong = wrong_sums(world, atoi(argv[2]), atoi(argv[3]));
    world_close();
    if (wrong) printf("rank %d: %d elements are wrong\n", world.rank, wrong);
    return wrong != 0;
}

TEST(ranks, "two ranks' gradients are summed, when each bucket is complete and not before; plain "
            "and exact; also where a rank has no micro-batch, and where the last update still reads them") {
    char arguments[32], said[2048];
    if (!ranks_available()) SKIP("no mpirun");
    for (int k = 0; k < 4; k++) EACH_ORDER {
            snprintf(arguments, sizeof arguments, "--rank %d %d", k % 2, k < 2 ? 1 : 3);
            int code = ranks_run(2, arguments, said, sizeof said);
            if (strstr(said, "start at most one rank a GPU")) SKIP("two ranks need two GPUs");
            CHECK(code == 0, "%s: %s", arguments, said);
        }
}
