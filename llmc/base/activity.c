/* activity.c: see activity.h. Activity and progress are one atomic word, so that the watching thread reads a pair
 * that belongs together: the activity in the lowest byte, the count above. */
#include "activity.h"

#include <stdatomic.h>

enum { ACTIVITY_BITS = 8 };

static _Atomic uint64_t state;

static const char *const names[ACTIVITIES] = {
    [ACTIVITY_START] = "starting up",
    [ACTIVITY_JOIN] = "joining the other ranks (MPI_Init)",
    [ACTIVITY_WAIT] = "waiting for the other ranks",
    [ACTIVITY_DEVICE] = "waiting for its GPU",
    [ACTIVITY_EXCHANGE] = "exchanging gradients (NCCL)",
    [ACTIVITY_TRAIN] = "training",
    [ACTIVITY_EVALUATE] = "evaluating",
    [ACTIVITY_SAMPLE] = "sampling",
    [ACTIVITY_SAVE] = "saving a checkpoint",
    [ACTIVITY_LOG] = "writing to log or screen",
    [ACTIVITY_FINISH] = "finishing",
};

// Relaxed order is enough: nothing else is passed on by this word.
ActivityState activity_state(void) {
    uint64_t now = atomic_load_explicit(&state, memory_order_relaxed);
    return (ActivityState){now >> ACTIVITY_BITS, (Activity)(now & ((1 << ACTIVITY_BITS) - 1))};
}

/* A plain load and store will do, because only the main thread writes. The activity before is returned, to be begun
 * again by who interrupted it. */
Activity activity_begin(Activity activity) {
    ActivityState now = activity_state();
    atomic_store_explicit(&state, (now.progress + 1) << ACTIVITY_BITS | activity, memory_order_relaxed);
    return now.activity;
}

void activity_tick(void) {
    atomic_fetch_add_explicit(&state, UINT64_C(1) << ACTIVITY_BITS, memory_order_relaxed);
}

const char *activity_name(uint64_t activity) {
    return activity < ACTIVITIES ? names[activity] : "doing something unknown";
}

/* Whether a rank in this activity waits for other ranks: then it is not the one that hangs. */
bool activity_waits(uint64_t activity) {
    return activity == ACTIVITY_JOIN || activity == ACTIVITY_WAIT || activity == ACTIVITY_EXCHANGE;
}
