/* watchdog.h: notices what no MPI call would return to say: a rank that died or was stopped, and a main
 * thread that hangs. Readers of the chapter may skip this.
 *
 * A thread of each rank looks on (activity.h) and speaks with those of its neighbours in a ring
 * (heartbeat.h). It ends all ranks (EXIT_RUNTIME) with one line that names rank and place:
 *  - when the next rank has given no sign of life for the limit, and a second way confirms it: on one
 *    system the kernel's count of the thread's turns, between systems a question over TCP. A rank that
 *    answered by neither way since the start is not judged: never a false alarm.
 *  - when a main thread has not got on for the (longer) limit for hangs: its own rank says so, or, where
 *    that one cannot even end, the rank before it. Waiting for a rank that gets on is no hang.
 * Not here: errors that a rank reports itself; fatal() ends all ranks (world.h). */
#ifndef LLMC_WATCHDOG_H
#define LLMC_WATCHDOG_H

#include "world.h"

/* Starts to watch this process's main thread, before it has joined the other ranks. hang_timeout: the
 * limit for hangs in seconds; 0: none. */
void watchdog_start(double hang_timeout);

/* Watches the other ranks too; every rank calls it. Limits in seconds; 0: none. */
void watchdog_join(const World *world, double rank_timeout, double hang_timeout);

/* Waits until every rank is here, then stops: all part in peace. */
void watchdog_stop(void);

#endif
