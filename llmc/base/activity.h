/* activity.h: what the main thread is doing, and that it makes progress. The main thread records this as it works;
 * the watchdog (ranks/watchdog.h) reads it from a thread of its own, names what hangs, and informs other ranks.
 * Costs a few nanoseconds. Only the main thread may call activity_begin. */
#ifndef LLMC_ACTIVITY_H
#define LLMC_ACTIVITY_H

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    ACTIVITY_START,  // before training: options, data, weights
    ACTIVITY_JOIN,   // MPI_Init
    ACTIVITY_WAIT,   // inside a collective operation
    ACTIVITY_DEVICE,   // waiting for this rank's own GPU
    ACTIVITY_EXCHANGE, // waiting for NCCL, and so for other ranks
    ACTIVITY_TRAIN,
    ACTIVITY_EVALUATE,
    ACTIVITY_SAMPLE,
    ACTIVITY_SAVE,
    ACTIVITY_LOG,
    ACTIVITY_FINISH, // after training
    ACTIVITIES
} Activity;

/* From now on the main thread does this. Returns what it did before, to return to. Counts as progress. */
Activity activity_begin(Activity activity);

/* The main thread, or one that works for it, made progress: called at least once for every piece of work that may
 * take seconds. */
void activity_tick(void);

/* How many activities and ticks there were, and the current activity. From any thread. */
typedef struct {
    uint64_t progress;
    Activity activity;
} ActivityState;
ActivityState activity_state(void);

/* "saving a checkpoint"; also for a number that came over the network. */
const char *activity_name(uint64_t activity);

/* Whether it is waiting for other ranks: then another rank is at fault. */
bool activity_waits(uint64_t activity);

#endif
