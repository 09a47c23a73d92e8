/* test_batch.c: who computes which sequences, for 1 to 8 ranks in one process: a Batch takes its rank and the
 * number of ranks as plain values. What is expected is dealt out here like cards. */
#include "../llmc/cpu/cpu.h"
#include "../llmc/data/batch.h"
#include "files.h"

enum { MAX_TOKENS = 200, MAX_T = 9, MAX_UPDATE = 64 };

/* A stream of n tokens whose value is their index. */
static Stream *index_stream(int n) {
    static int32_t tokens[MAX_TOKENS];
    for (int i = 0; i < n; i++) tokens[i] = i;
    return open_one(write_llmc("index.bin", tokens, (size_t)n));
}

/* Who computes the sequence at place i of an update, found by dealing micro-batches to ranks in turn. */
typedef struct {
    int rank, micro, place; // in its micro-batch
} Owner;

/* Deals `count` sequences in micro-batches of B to R ranks; steps[rank] are the micro-steps of each. */
static void deal(Owner owners[MAX_UPDATE], int steps[8], int count, int B, int R) {
    int rank = 0, in_batch = 0;
    memset(steps, 0, 8 * sizeof *steps);
    for (int i = 0; i < count; i++) {
        owners[i] = (Owner){rank, steps[rank], in_batch};
        if (++in_batch == B || i == count - 1) {
            steps[rank]++;
            in_batch = 0;
            rank = rank + 1 == R ? 0 : rank + 1;
        }
    }
}

/* The losses that the test gives to the sequence at place i of an update: small whole numbers over T targets. */
static double loss_of(int i, int t) { return 1 + i * MAX_T + t; }

/* One rank's part of an update, checked against what it was dealt. Returns the sum of its losses. */
static double check_rank(const Sequences *sequences, const Owner *owners, int steps, World world,
                         int B, uint64_t first, int count, uint64_t *data) {
    int T = sequences->seq_len;
    Batch *batch = batch_new(world, B, T, count);
    CHECK(batch_micro_steps(batch, count) == steps, "rank %d of %d: %d micro-steps, dealt %d",
          world.rank, world.size, (int)batch_micro_steps(batch, count), steps);
    size_t room = (size_t)steps * (size_t)B * (size_t)T;
    for (size_t i = 0; i < room; i++)
        batch->all_losses[i] = (RowStat)NAN; // unless a sequence is there
    for (int micro = 0; micro < steps; micro++) {
        int size = batch_load(batch, sequences, first, count, micro, data), found = 0;
        CHECK(batch->losses == batch->all_losses + (size_t)(micro * B * T), "micro-step %d", micro);
        for (int i = 0; i < count; i++) {
            if (owners[i].rank != world.rank || owners[i].micro != micro) continue;
            uint64_t j = sequences_at(sequences, first + (uint64_t)i);
            int at = owners[i].place * T;
            found++;
            for (int t = 0; t < T; t++) {
                uint64_t token = j * (uint64_t)T + (uint64_t)t;
                bool has_target = token + 1 <= sequences->targets;
                CHECK(batch->targets[at + t] == (has_target ? (int)token + 1 : -1));
                CHECK(!has_target || batch->ids[at + t] == (int)token);
                batch->losses[at + t] = (RowStat)loss_of(i, t);
            }
        }
        CHECK(size == found, "micro-step %d has %d sequences, dealt %d", micro, size, found);
    }
    double sum =
        batch_all_reduce_losses(batch, count); // of this rank alone: there is no other process
    for (int i = 0; i < count; i++) {
        double own = 0;
        for (int t = 0; t < T && owners[i].rank == world.rank; t++) own += loss_of(i, t);
        CHECK(batch->sequence_losses[i] == own, "sequence %d of rank %d: %g, not %g", i, world.rank,
              batch->sequence_losses[i], own);
    }
    batch_free(batch);
    return sum;
}

static void check_update(const Sequences *sequences, int R, int B, uint64_t first, int count) {
    Owner owners[MAX_UPDATE];
    int steps[8];
    uint64_t data = 0, want_data = 0;
    double sum = 0, want_sum = 0;
    int32_t unused[2 * MAX_T];
    deal(owners, steps, count, B, R);
    for (int rank = 0; rank < R; rank++)
        sum += check_rank(sequences, owners, steps[rank], (World){.rank = rank, .size = R}, B,
                          first, count, &data);
    for (int i = 0; i < count; i++) {
        uint64_t j = sequences_at(sequences, first + (uint64_t)i);
        want_data += sequences_read(sequences, j, unused, unused + MAX_T);
        for (int t = 0; t < sequences->seq_len; t++) want_sum += loss_of(i, t);
    }
    CHECK(data == want_data, "R=%d B=%d count=%d: the fingerprint is another", R, B, count);
    CHECK(sum == want_sum, "R=%d B=%d count=%d: losses %g, not %g", R, B, count, sum, want_sum);
}

TEST(every_split,
     "R = 1..8, B = 1..7: micro-batch u goes to rank u mod R as micro-step u div R, each sequence "
     "once, with its losses in its own place and the same fingerprint") {
    Stream *stream = index_stream(103); // 11 sequences of 9 and one of 3
    Sequences sequences = sequences_new(stream, 9, 42, true);
    for (int R = 1; R <= 8; R++)
        for (int B = 1; B <= 7; B++)
            for (int count = 1; count <= 24; count += count < 10 ? 1 : 7)
                check_update(&sequences, R, B, 5, count); // across the ends of epochs
    stream_close(stream);
}

TEST(more_ranks_than_batches,
     "8 ranks for 3 micro-batches: five have no micro-step, and no losses") {
    Stream *stream = index_stream(50);
    Sequences sequences = sequences_new(stream, 7, 1, false);
    check_update(&sequences, 8, 2, 0, 5);
    Batch *idle = batch_new((World){.rank = 3, .size = 8}, 2, 7, 5);
    CHECK(batch_micro_steps(idle, 5) == 0 && batch_all_reduce_losses(idle, 5) == 0);
    batch_free(idle);
    stream_close(stream);
}

TEST(portions,
     "a batch made for 10 sequences takes fewer, as the last portion of a validation does") {
    Stream *stream = index_stream(100);
    Sequences sequences = sequences_new(stream, 4, 1, false);
    Batch *batch = batch_new((World){.size = 1}, 4, 4, 10);
    uint64_t data = 0;
    CHECK(batch_micro_steps(batch, 10) == 3 && batch_micro_steps(batch, 1) == 1);
    CHECK(batch_load(batch, &sequences, 0, 3, 0, &data) == 3, "three of them");
    for (int i = 0; i < 16; i++) batch->all_losses[i] = i < 12 ? 2 : (RowStat)NAN;
    CHECK(batch_all_reduce_losses(batch, 3) == 24);
    batch_free(batch);
    stream_close(stream);
}

TEST(order_of_losses, "losses add up sequence by sequence in double: the same bits for every B") {
    Stream *stream = index_stream(100);
    Sequences sequences = sequences_new(stream, 1, 1, false);
    double want = 0;
    for (int i = 0; i < 12; i++)
        want += (double)(RowStat)pow(0.1, i % 5); // rounds differently in other orders
    for (int B = 1; B <= 12; B++) {
        Batch *batch = batch_new((World){.size = 1}, B, 1, 12);
        uint64_t data = 0;
        for (int micro = 0; micro < batch_micro_steps(batch, 12); micro++) {
            int size = batch_load(batch, &sequences, 0, 12, micro, &data);
            for (int b = 0; b < size; b++)
                batch->losses[b] = (RowStat)pow(0.1, (micro * B + b) % 5);
        }
        double got = batch_all_reduce_losses(batch, 12);
        CHECK(got == want, "B=%d: %.17g, not %.17g", B, got, want);
        batch_free(batch);
    }
    stream_close(stream);
}

TEST(quotients, "divide_up rounds up, and only up, at both ends of the type") {
    CHECK(divide_up(0, 3) == 0 && divide_up(1, 3) == 1 && divide_up(3, 3) == 1 &&
          divide_up(4, 3) == 2);
    CHECK(divide_up(INT64_MAX, 1) == INT64_MAX && divide_up(INT64_MAX, 2) == INT64_MAX / 2 + 1);
    CHECK(divide_up(INT64_MAX, INT64_MAX) == 1);
}

int main(int argc, char **argv) { return test_main(argc, argv); }
