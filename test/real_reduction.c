/* real_reduction.c: gradients summed over micro-batches and ranks. One process: fixed point, and micro-batches.
 * Several: this program runs itself under mpirun as `real_reduction --rank`. */
#include "ranks.h"

#include "../llmc/base/memory.h"
#include "../llmc/base/rng.h"
#include "../llmc/cpu/fixed_point.h"
#include "../llmc/ranks/world.h"

enum { COUNT = 20000, MICRO_BATCHES = 5 };
static const size_t cuts[] = {COUNT, 13000, 12999, 4096, 0}; // buckets, in backward's order
enum { BUCKETS = sizeof cuts / sizeof *cuts - 1 };

/* Element i of micro-batch u: magnitudes from 2^-60 to 2^3, so that rounding to 2^-48 shows. */
static real element(int u, size_t i) {
    double x = rng_uniform(3, i, (uint64_t)u) - 0.5;
    return (real)ldexp(x, (int)(hash_mix(i + 977 * (size_t)u) % 64) - 60 + 4);
}

/* The exact sum of the rounded micro-batches, rounded once to real. */
static real exact_sum(size_t i) {
    int64_t sum = 0;
    for (int u = 0; u < MICRO_BATCHES; u++)
        sum += (int64_t)llrintl(ldexpl((long double)element(u, i), 48));
    return (real)ldexpl((long double)(real)sum, -48);
}

static real grads[COUNT];

/* Does this rank's micro-batches u = rank, rank + ranks, ... of UNITS. Element `at` of micro-batch `micro-batch` is
 * `value` instead (micro-batch -1: none). Returns what reduction_finish does. */
static int64_t reduce_with(int rank, int ranks, bool exact, int micro_batch, size_t at,
                           real value) {
    int64_t most = (MICRO_BATCHES + ranks - 1) / ranks;
    reduction_open(grads, COUNT, exact, (int)most);
    int64_t offending = -1;
    for (int twice = 0; twice < 2; twice++) { // the second update must not remember the first
        for (int u = rank; u < MICRO_BATCHES || u == rank; u += ranks) {
            bool last = u + ranks >= MICRO_BATCHES, has = u < MICRO_BATCHES, first = u == rank;
            for (size_t i = 0; i < COUNT; i++) {
                real x = twice && micro_batch == u && i == at ? value : element(u, i);
                if (!has)
                    grads[i] = NAN; // whatever an idle rank holds must not matter
                else
                    grads[i] = exact || first ? x : grads[i] + x;
            }
            for (int b = 0; b < BUCKETS; b++)
                reduction_ready(cuts[b + 1], cuts[b] - cuts[b + 1], first, last, has);
        }
        offending = reduction_finish();
        if (!twice && offending != -1) return -2;
    }
    reduction_close();
    return offending;
}

TEST(rounding, "to the nearest 2^-48, ties to even, both signs, denormals to 0") {
    const double one = 0x1p-48;
    CHECK(fixed_from((real)0) == 0 && fixed_from((real)one) == 1 && fixed_from((real)-one) == -1);
    CHECK(fixed_from((real)(0.5 * one)) == 0 && fixed_from((real)(1.5 * one)) == 2);
    CHECK(fixed_from((real)(2.5 * one)) == 2 && fixed_from((real)(-2.5 * one)) == -2);
    CHECK(fixed_from((real)(-1.5 * one)) == -2 && fixed_from((real)(0.51 * one)) == 1);
    CHECK(fixed_from((real)1) == (int64_t)1 << 48 && fixed_from((real)-1) == -((int64_t)1 << 48));
    CHECK(fixed_from((real)1e-40) == 0 &&
          fixed_from(sizeof(real) == 4 ? (real)0x1p-149 : (real)0x1p-1074) == 0);
    real edge = sizeof(real) == 4 ? (real)nextafterf(32768, 0) : (real)nextafter(32768, 0);
    CHECK(fixed_to(fixed_from(edge)) == edge && fixed_to(fixed_from(-edge)) == -edge);
}

TEST(rounding_in_place,
     "the short way (in place) has the bits of the long one (through integers)") {
    for (size_t i = 0; i < 200000; i++) {
        real x = (real)ldexp(rng_uniform(1, i, 0) - 0.5, (int)(i % 76) - 60);
        if (!(fabs((double)x) < FIXED_LIMIT)) continue;
        int64_t whole = fixed_from(x);
        CHECK(whole == (int64_t)llrintl(ldexpl((long double)x, 48)), "x = %a", (double)x);
        CHECK(fixed_round(x) == fixed_to(whole), "x = %a", (double)x);
    }
}

TEST(sum_rounds_once, "a sum with more digits than a real is rounded once, not through double") {
    // 2^54 + 2^30 + 1: rounded to double first, this is a tie for float and goes down; it must go
    // up
    int64_t sum = ((int64_t)1 << 54) + ((int64_t)1 << 30) + 1;
    CHECK(fixed_to(sum) == (sizeof(real) == 4 ? (real)(0x1p6 + 0x1p-17) : (real)(0x1p6 + 0x1p-18)));
}

TEST(exact_micro_batches, "five micro-batches on one rank: the integer sum, rounded once") {
    CHECK(reduce_with(0, 1, true, -1, 0, 0) == -1);
    for (size_t i = 0; i < COUNT; i++) CHECK(grads[i] == exact_sum(i), "element %zu", i);
}

TEST(exact_one_micro_batch,
     "a lone micro-batch is rounded to the grid too, so that adding zeros changes nothing") {
    for (int micro_batches = 1; micro_batches <= 2;
         micro_batches++) { // in place, and through the integers
        for (size_t i = 0; i < COUNT; i++) grads[i] = element(0, i);
        reduction_open(grads, COUNT, true, micro_batches);
        for (int b = 0; b < BUCKETS; b++)
            reduction_ready(cuts[b + 1], cuts[b] - cuts[b + 1], true, true, true);
        CHECK(reduction_finish() == -1);
        reduction_close();
        for (size_t i = 0; i < COUNT; i++)
            CHECK(grads[i] == fixed_to(fixed_from(element(0, i))), "element %zu", i);
    }
}

TEST(exact_threads, "one thread and three give the same bits") {
#ifdef _OPENMP
    static real first[COUNT];
    omp_set_num_threads(1);
    reduce_with(0, 1, true, -1, 0, 0);
    memcpy(first, grads, sizeof grads);
    omp_set_num_threads(3);
    reduce_with(0, 1, true, -1, 0, 0);
    CHECK(memcmp(first, grads, sizeof grads) == 0);
#else
    SKIP("built without OpenMP");
#endif
}

TEST(exact_refuses, "NaN, Inf, +-2^15, and sums beyond it are found and named by element") {
    const real bad[] = {NAN, INFINITY, -INFINITY, 32768, -32768, (real)1e30};
    const size_t at[] = {0, 4095, 4096, 13000, 12999, COUNT - 1};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        for (size_t j = 0; j < sizeof at / sizeof *at; j++) {
            int64_t found = reduce_with(0, 1, true, (int)(k % MICRO_BATCHES), at[j], bad[k]);
            CHECK(found == (int64_t)at[j], "%g at %zu: found %lld", (double)bad[k], at[j],
                  (long long)found);
        }
    CHECK(reduce_with(0, 1, true, 2, 777, (real)32767) ==
          777); // fits, but not beside the other micro-batches
    CHECK(reduce_with(0, 1, true, 2, 777, (real)32000) == -1);
}

TEST(exact_recovers, "an update after one that was refused is summed as if nothing had been") {
    reduction_open(grads, COUNT, true, MICRO_BATCHES);
    for (int update = 0; update < 2; update++) {
        for (int u = 0; u < MICRO_BATCHES; u++) {
            for (size_t i = 0; i < COUNT; i++) grads[i] = element(u, i);
            if (update == 0 && u == 2) grads[100] = NAN, grads[15000] = 40000;
            for (int b = 0; b < BUCKETS; b++)
                reduction_ready(cuts[b + 1], cuts[b] - cuts[b + 1], u == 0, u == MICRO_BATCHES - 1,
                                true);
        }
        CHECK(reduction_finish() == (update ? -1 : 15000)); // backward reached element 15000 first
    }
    for (size_t i = 0; i < COUNT; i++) CHECK(grads[i] == exact_sum(i), "element %zu", i);
    reduction_close();
}

TEST(plain_alone, "one rank without --exact: reduction leaves the gradient alone") {
    CHECK(reduce_with(0, 1, false, -1, 0, 0) == -1);
    for (size_t i = 0; i < COUNT; i++) {
        real sum = element(0, i);
        for (int u = 1; u < MICRO_BATCHES; u++) sum += element(u, i);
        CHECK(grads[i] == sum);
    }
}

TEST(memory_plan, "one micro-batch a rank needs no 64-bit sums, more need 8 bytes an element") {
    size_t least = reduction_bytes(COUNT, true, 1, 1);
    CHECK(least < COUNT && reduction_bytes(COUNT, false, 4, 4) == least);
    CHECK(reduction_bytes(COUNT, true, 2, 1) == least + 8 * COUNT);
    CHECK(reduction_bytes(COUNT, true, 1, 2) == least);
}

/* What each rank does under mpirun: prints a line for everything that is wrong. */
static int rank_main(int argc, char **argv) {
    World world = world_open(&argc, &argv);
    int wrong = 0;
#define EXPECT(condition)                                                                          \
    if (!(condition))                                                                              \
    wrong++, printf("rank %d of %d: not so: %s\n", world.rank, world.size, #condition)
    size_t bytes = world.size > 1 ? strtoul(getenv("TRAIN_GPT2_SHARED"), NULL, 10) / world.size : 0;
    EXPECT(world_shared_bytes() <= bytes && (world_shared_bytes() > 0) == (bytes > 0));
    EXPECT(reduce_with(world.rank, world.size, true, -1, 0, 0) == -1);
    for (size_t i = 0; i < COUNT && !wrong; i++) EXPECT(grads[i] == exact_sum(i));
    EXPECT(reduce_with(world.rank, world.size, false, -1, 0, 0) == -1);
    for (size_t i = 0; i < COUNT && !wrong; i++) {
        double sum = 0, magnitude = 0;
        for (int u = 0; u < MICRO_BATCHES; u++) {
            sum += (double)element(u, i);
            magnitude += fabs((double)element(u, i));
        }
        EXPECT(fabs((double)grads[i] - sum) <= magnitude * (sizeof(real) == 4 ? 1e-6 : 1e-15));
    }
    // Micro-batch 1's fault is found by the rank that computed it and by no other
    int64_t mine = world.rank == 1 % world.size ? 5000 : -1;
    EXPECT(reduce_with(world.rank, world.size, true, 1, 5000, NAN) == mine);
    EXPECT(reduce_with(world.rank, world.size, true, 1, 5000, -40000) == mine);
    if (world.size > 1) EXPECT(reduce_with(world.rank, world.size, false, 1, 5000, NAN) == mine);
    int64_t found = reduce_with(world.rank, world.size, true, 1, 5000, 32767);
    EXPECT(world.rank < MICRO_BATCHES ? found >= 0
                                      : found == -1); // all who contributed refuse the sum
    EXPECT(mine < 0 || found == 5000);
    world_close();
    return wrong != 0;
}

/* By messages as between machines; through shared memory in many pieces, and in one. */
static void check_ranks(int ranks) {
    const char *const shared[] = {"0", "500000", "33000000"};
    for (int i = 0; i < 3; i++) {
        char said[4096];
        setenv("TRAIN_GPT2_SHARED", shared[i], 1);
        int code = ranks_run(ranks, "--rank", said, sizeof said);
        CHECK(code == 0, "%s bytes: exit %d: %s", shared[i], code, said);
    }
}

TEST(ranks_1_2_3,
     "five micro-batches over one, two and three ranks: the same sums, exact ones to the bit") {
    if (!ranks_available()) SKIP("no Open MPI");
    for (int ranks = 1; ranks <= 3; ranks++) check_ranks(ranks);
}

TEST(ranks_7, "seven ranks for five micro-batches: two contribute zeros") {
    if (!ranks_available()) SKIP("no Open MPI");
    check_ranks(7);
}

int main(int argc, char **argv) {
    ranks_program = argv[0];
    if (argc > 1 && strcmp(argv[1], "--rank") == 0) return rank_main(argc, argv);
    return test_main(argc, argv);
}
