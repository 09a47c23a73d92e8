/* stop.c: signals that ask a run to stop. The handler only sets a flag. Between updates all ranks agree on it: one rank
 * that was asked stops all, at the same step. A second signal ends the program at once. */
#include "stop.h"

#include "world.h"

#include <signal.h>
#include <stddef.h>

static const int signals[] = {SIGTERM, SIGINT, SIGUSR1}; // beside SIGHUP
enum { SIGNALS = sizeof signals / sizeof signals[0] };

static volatile sig_atomic_t asked;

/* The handler: it may do nothing but set a flag. */
static void note(int number) {
    (void)number;
    asked = 1;
    for (int i = 0; i < SIGNALS; i++) signal(signals[i], SIG_DFL); // the next one ends the program
}

/* A terminal that goes away sends more than one, so these never end the program. */
static void note_hangup(int number) {
    (void)number;
    asked = 1;
}

void stop_watch(void) {
    // SA_RESTART: a read or write that the signal interrupts continues, instead of failing with EINTR.
    struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], &action, NULL);

    struct sigaction before;
    sigaction(SIGHUP, NULL, &before);
    if (before.sa_handler == SIG_IGN) return; // nohup
    action.sa_handler = note_hangup;
    sigaction(SIGHUP, &action, NULL);
}

bool stop_asked(void) { return asked != 0; }

bool stop_agreed(void) {
    // The sum is the number of ranks that were asked. One rank must not stop alone: the others would wait for it in
    // their next all-reduce.
    uint64_t ranks = asked != 0;
    world_all_reduce_u64(&ranks, 1);
    return ranks > 0;
}
