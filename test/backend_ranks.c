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

/* One rank's part of two updates of `micro-batches` micro-batches, one after another on the ranks in turn. Returns the
 * number of wrong elements. */
static int wrong_sums(World world, bool exact, int micro_batches) {
    float host[ELEMENTS], got[ELEMENTS];
    int wrong = 0, most = (micro_batches + world.size - 1) / world.size;
    Grad *grads = device_alloc(ELEMENTS * element_size(OF_GRAD), "a test's gradients");
    reduction_open(grads, ELEMENTS, exact, most);
    for (int update = 0; update < UPDATES; update++) {
        int mine = (micro_batches - world.rank + world.size - 1) / world.size;
        for (int i = 0; i < ELEMENTS; i++) host[i] = 0;
        for (int micro = 0; micro < (mine ? mine : 1); micro++) {
            int micro_batch = micro * world.size + world.rank;
            for (int i = 0; i < ELEMENTS; i++)
                host[i] = contribution(update, micro_batch, i) + (exact ? 0 : host[i]);
            for (int b = BUCKETS - 1; b >= 0;
                 b--) { // each is complete a little later than the last
                size_t first = (size_t)b * BUCKET;
                void *at = device_at(grads, OF_GRAD, first);
                if (mine) write_floats(at, OF_GRAD, host + first, BUCKET);
                reduction_ready(first, BUCKET, micro == 0, micro >= mine - 1, mine > 0);
            }
        }
        wrong += reduction_finish() != -1;
        read_floats(got, grads, OF_GRAD, ELEMENTS);
        for (int i = 0; i < ELEMENTS; i++) {
            float want = 0;
            for (int micro_batch = 0; micro_batch < micro_batches; micro_batch++)
                want += contribution(update, micro_batch, i);
            wrong += got[i] != want;
        }
    }
    reduction_close();
    device_free(grads, ELEMENTS * element_size(OF_GRAD));
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
            "and exact; also "
            "where a rank has no micro-batch") {
    char arguments[32], said[2048];
    if (!ranks_available()) SKIP("no mpirun");
    for (int k = 0; k < 4; k++) EACH_ORDER {
            snprintf(arguments, sizeof arguments, "--rank %d %d", k % 2, k < 2 ? 1 : 3);
            int code = ranks_run(2, arguments, said, sizeof said);
            if (strstr(said, "start at most one a GPU")) SKIP("two ranks need two GPUs");
            CHECK(code == 0, "%s: %s", arguments, said);
        }
}
