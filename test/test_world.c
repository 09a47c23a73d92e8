/* test_world.c: launchers, and host values over ranks. Several processes: this program runs itself
 * under mpirun as `test_world --rank WHAT`. */
#include "ranks.h"

#include "../llmc/base/error.h"
#include "../llmc/base/memory.h"
#include "../llmc/ranks/launcher.h"
#include "../llmc/ranks/world.h"

static void clear_environment(void) {
    const char *names[] = {
        "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK",  "PMI_SIZE",  "SLURM_PROCID",
        "SLURM_NTASKS",         "SLURM_STEP_ID",        "RANK",      "WORLD_SIZE", "SLURM_STEP_NUM_TASKS",
        "TORCHELASTIC_RUN_ID",  "PMIX_NAMESPACE",       "PMIX_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
}

/* Sets variables from "A=1 B=2" and reads the launcher. */
static Launcher detect(const char *settings) {
    char copy[256];
    clear_environment();
    snprintf(copy, sizeof copy, "%s", settings);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
        char *value = strchr(word, '=');
        *value = '\0';
        setenv(word, value + 1, 1);
    }
    return launcher_detect();
}

static bool is(Launcher l, const char *name, int rank, int size) {
    return strcmp(l.name, name) == 0 && l.rank == rank && l.size == size;
}

TEST(launchers, "each launcher's variables are understood; none means one process") {
    CHECK(is(detect(""), "none", 0, 1));
    CHECK(is(detect("OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=3"), "Open MPI", 2, 3));
    CHECK(is(detect("PMI_RANK=0 PMI_SIZE=2"), "MPICH or Intel MPI", 0, 2));
    CHECK(is(detect("SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_ID=0"), "srun", 1, 2));
    CHECK(is(detect("SLURM_PROCID=0 SLURM_NTASKS=8"), "none", 0, 1)); // a batch script, no step
    CHECK(is(detect("RANK=1 WORLD_SIZE=4"), "torchrun", 1, 4));
    CHECK(is(detect("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 RANK=0 WORLD_SIZE=1"),
             "Open MPI", 1, 2));
    CHECK(is(detect("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 SLURM_PROCID=0 SLURM_NTASKS=2 "
                    "SLURM_STEP_ID=1"),
             "Open MPI", 1, 4)); // mpirun inside a Slurm job
    // The shell that salloc starts on a node: a step of one task, in a job of eight.
    CHECK(is(detect("SLURM_PROCID=0 SLURM_NTASKS=8 SLURM_STEP_ID=4294967290 SLURM_STEP_NUM_TASKS=1"), "srun", 0, 1));
    // torchrun, started once on each of two machines by srun or mpirun
    CHECK(is(detect("SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_STEP_ID=0 TORCHELASTIC_RUN_ID=x RANK=3 WORLD_SIZE=4"),
             "torchrun", 3, 4));
    CHECK(is(detect("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 TORCHELASTIC_RUN_ID=x RANK=3 WORLD_SIZE=4"),
             "torchrun", 3, 4));
    // Hydra starts its helper on each machine by srun, whose variables number the machines.
    CHECK(is(detect("PMI_RANK=3 PMI_SIZE=4 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_ID=0"),
             "MPICH or Intel MPI", 3, 4));
    clear_environment();
}

TEST(launchers_of_open_mpi, "which launchers can start a program that was built with Open MPI") {
    CHECK(detect("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2").open_mpi);
    CHECK(!detect("PMI_RANK=0 PMI_SIZE=2").open_mpi);
    CHECK(!detect("SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_ID=0").open_mpi); // srun --mpi=none
    CHECK(!detect("PMI_RANK=1 PMI_SIZE=2 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_ID=0").open_mpi); // --mpi=pmi2
    CHECK(detect("SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_ID=0 PMIX_RANK=1").open_mpi); // --mpi=pmix
    clear_environment();
}

TEST(launcher_refusals,
     "half-set and contradictory variables are usage errors that name the variable") {
    CHECK_FATAL(EXIT_USAGE, "WORLD_SIZE is set without RANK", detect("WORLD_SIZE=4"));
    CHECK_FATAL(EXIT_USAGE, "RANK is set without WORLD_SIZE", detect("RANK=0"));
    CHECK_FATAL(EXIT_USAGE, "RANK is 4, but there are only WORLD_SIZE = 4",
                detect("RANK=4 WORLD_SIZE=4"));
    CHECK_FATAL(EXIT_USAGE, "OMPI_COMM_WORLD_SIZE is \"0\"",
                detect("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=0"));
    CHECK_FATAL(EXIT_USAGE, "PMI_RANK is \"-1\"", detect("PMI_RANK=-1 PMI_SIZE=2"));
    CHECK_FATAL(EXIT_USAGE, "PMI_RANK is \"1x\"", detect("PMI_RANK=1x PMI_SIZE=2"));
    CHECK_FATAL(EXIT_USAGE, "PMIX_RANK is set, but no variable of a launcher", detect("PMIX_RANK=1"));
    CHECK_FATAL(EXIT_USAGE, "PMI_SIZE is \"\"", detect("PMI_RANK=1 PMI_SIZE="));
    clear_environment();
}

TEST(world_of_one, "one process: sums are the values themselves, and no MPI is needed") {
    World world = world_open(NULL, NULL);
    CHECK(world.rank == 0 && world.size == 1 && world.local_rank == 0 && world.local_size == 1);
    CHECK(world_size() == 1 && world_cores() >= 1);
    double d = 1.5;
    uint64_t u = ~0ULL;
    int64_t i = -7;
    float f = 2.5f;
    world_all_reduce_doubles(&d, 1), world_all_reduce_u64(&u, 1), world_all_reduce_min(&i, 1),
        world_broadcast(&i, 8, 0);
    world_all_reduce_begin(&f, 1, WORLD_FLOAT), world_all_reduce_progress(),
        world_all_reduce_wait(), world_barrier();
    CHECK(d == 1.5 && u == ~0ULL && i == -7 && f == 2.5f);
    world_close();
}

TEST(torchrun, "ranks that cannot find each other are refused, each with one line") {
    setenv("RANK", "1", 1), setenv("WORLD_SIZE", "4", 1);
    CHECK_FATAL(EXIT_USAGE, "rank 1: torchrun started 4 ranks, but this program finds its ranks over MPI only",
                world_open(NULL, NULL));
    setenv("RANK", "0", 1), setenv("WORLD_SIZE", "2", 1);
    CHECK_FATAL(EXIT_USAGE,
                "torchrun started 2 ranks, but this program finds its ranks over MPI only",
                world_open(NULL, NULL));
    clear_environment();
}

#ifndef USE_MPI
TEST(without_mpi,
     "a build without MPI refuses to be several ranks: each says so") {
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1), setenv("OMPI_COMM_WORLD_RANK", "0", 1);
    CHECK_FATAL(EXIT_USAGE, "Open MPI started 2 ranks, but this program was built without MPI",
                world_open(NULL, NULL));
    setenv("OMPI_COMM_WORLD_RANK", "1", 1);
    pid_t child = fork();
    int status;
    if (child == 0) world_open(NULL, NULL), _exit(0);
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_USAGE);
    clear_environment();
}
#endif

#define EXPECT(condition)                                                                          \
    if (!(condition))                                                                              \
    wrong++, printf("rank %d of %d: not so: %s\n", world.rank, world.size, #condition)

static int check_values(World world) {
    int wrong = 0;
    const int R = world.size, last = R - 1, all = R * (R + 1) / 2; // the sum of 1 .. R
    EXPECT(world_size() == R && world.local_size == R && world.local_rank == world.rank);
    double d[2] = {world.rank + 1, world.rank == last ? NAN : 0};
    uint64_t u[2] = {(uint64_t)world.rank + 1, UINT64_C(1) << 63};
    int64_t i[2] = {-world.rank, world.rank};
    world_all_reduce_doubles(d, 2), world_all_reduce_u64(u, 2), world_all_reduce_min(i, 2),
        world_barrier();
    EXPECT(d[0] == all && isnan(d[1]));
    EXPECT(u[0] == (uint64_t)all && u[1] == (R % 2 ? UINT64_C(1) << 63 : 0));
    EXPECT(i[0] == -last && i[1] == 0);
    const size_t n = ((size_t)1 << 22) + 3; // more than one piece
    char *bytes = memory_new(n, 1, "test");
    if (world.rank == last) bytes[0] = 1, bytes[n - 1] = 2;
    world_broadcast(bytes, n, last);
    EXPECT(bytes[0] == 1 && bytes[n - 1] == 2);
    free(bytes);
    EXPECT(world_cores() >= 1 && world_cores() <= (int)sysconf(_SC_NPROCESSORS_ONLN));
    return wrong;
}

static int check_large_sums(World world) {
    int wrong = 0;
    const size_t n = ((size_t)1 << 22) + 5;
    const int R = world.size, all = R * (R + 1) / 2;
    int64_t *whole = memory_new(n, sizeof *whole, "test");
    float *single = memory_new(n, sizeof *single, "test");
    double small[3] = {world.rank + 1, 0.25, -1};
    for (size_t k = 0; k < n; k++) whole[k] = (int64_t)k << 20, single[k] = (float)(k % 1000 + 1);
    for (int round = 0; round < 2; round++) {
        world_all_reduce_begin(whole, n, WORLD_INT64);
        world_all_reduce_begin(small, 3, WORLD_DOUBLE);
        world_all_reduce_begin(single, n, WORLD_FLOAT);
        world_all_reduce_progress();
        world_all_reduce_wait();
    }
    for (size_t k = 0; k < n && !wrong; k++) {
        EXPECT(whole[k] == ((int64_t)k << 20) * R * R);
        EXPECT(single[k] == (float)((k % 1000 + 1) * (size_t)R * (size_t)R));
    }
    EXPECT(small[0] == all * R && small[1] == 0.25 * R * R && small[2] == -R * R);
    free(whole), free(single);
    return wrong;
}

/* Every rank writes into its own part, then reads its neighbour's; many times. */
static int check_meetings(World world) {
    int wrong = 0;
    if (world.size == 1) return 0;
    EXPECT(world_shared_bytes() >= 1 << 20);
    int *mine = world_shared(world.rank), *next = world_shared((world.rank + 1) % world.size);
    for (int turn = 0; turn < 200; turn++) {
        mine[turn % 2] = turn * 10 + world.rank;
        world_spin_barrier();
        EXPECT(next[turn % 2] == turn * 10 + (world.rank + 1) % world.size);
    }
    return wrong;
}

static int rank_main(int argc, char **argv) {
    World world = world_open(&argc, &argv);
    int code = 0;
    if (strcmp(argv[2], "values") == 0)
        code = check_values(world) + check_large_sums(world) + check_meetings(world) != 0;
    else if (strcmp(argv[2], "exit") == 0)
        exit(0); // without world_close
    else if (world.rank == world.size - 1)
        fatal(atoi(argv[2]), "the last rank gives up");
    else
        world_barrier(); // waits for ever, but for fatal
    world_close();
    return code;
}

TEST(ranks_values, "sums, minimum, broadcast and large sums over one to four ranks") {
    if (!ranks_available()) SKIP("no Open MPI");
    for (int ranks = 1; ranks <= 4; ranks++) {
        char said[4096];
        int code = ranks_run(ranks, "--rank values", said, sizeof said);
        CHECK(code == 0, "%d ranks: exit %d: %s", ranks, code, said);
    }
}

TEST(ranks_fatal, "an error on one rank ends all with its code and one line that names the rank") {
    if (!ranks_available()) SKIP("no Open MPI");
    const int codes[] = {EXIT_RUNTIME, EXIT_USAGE, EXIT_INPUT, EXIT_NONFINITE, EXIT_RESUMABLE};
    for (size_t k = 0; k < sizeof codes / sizeof *codes; k++) {
        char said[4096], what[32];
        snprintf(what, sizeof what, "--rank %d", codes[k]);
        int code = ranks_run(3, what, said, sizeof said);
        const char *line = strstr(said, "train_gpt2: rank 2: the last rank gives up\n");
        CHECK(code == codes[k] && line && !strstr(line + 1, "train_gpt2: "), "exit %d: %s", code,
              said);
    }
}

TEST(ranks_exit, "exit(0) on every rank is a clean end too") {
    if (!ranks_available()) SKIP("no Open MPI");
    char said[4096];
    int code = ranks_run(2, "--rank exit", said, sizeof said);
    CHECK(code == 0 && said[0] == '\0', "exit %d: %s", code, said);
}

int main(int argc, char **argv) {
    ranks_program = argv[0];
    if (argc > 2 && strcmp(argv[1], "--rank") == 0) return rank_main(argc, argv);
    clear_environment();
    return test_main(argc, argv);
}
