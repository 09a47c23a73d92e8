/* watchdog.h: notices failures that no MPI call would report: a rank that died or was stopped, and a main
 * thread that hangs. Readers of the chapter may skip this.
 *
 * A thread of each rank watches its main thread (activity.h) and exchanges heartbeats with its neighbours in a ring
 * (heartbeat.h). It ends all ranks (EXIT_RUNTIME) with one line that names rank and place:
 *  - when the next rank has sent no heartbeat for the limit, and a second check confirms it: on one
 *    system the kernel's count of the thread's turns, between systems a question over TCP. A rank that has answered
 * neither way since the start is left alone, so there is no false alarm.
 *  - when a main thread has made no progress for the (longer) limit for hangs: its own rank ends the run, or, if
 * that rank cannot even end, the rank before it. Waiting for a rank that makes progress is not a hang. Not here:
 * errors that a rank reports itself; fatal() ends all ranks (world.h). */
#ifndef LLMC_WATCHDOG_H
#define LLMC_WATCHDOG_H

#include "world.h"

/* Starts to watch this process's main thread, before it has joined the other ranks. hang_timeout: the
 * limit for hangs in seconds; 0: none. */
void watchdog_start(double hang_timeout);

/* Watches the other ranks too; every rank calls it. Limits in seconds; 0: none. */
void watchdog_join(const World *world, double rank_timeout, double hang_timeout);

/* Waits until every rank is here (a barrier), then stops the watchdog on all ranks. */
void watchdog_stop(void);

#endif
