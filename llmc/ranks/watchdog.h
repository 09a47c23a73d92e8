/* watchdog.h: notices that another rank has died or hangs, when no MPI call would return to say so.
 * The ranks stand in a ring: a thread of each sends signs of life to the rank before it and listens
 * for those of the rank after it (UDP, so that it works between machines). When they stay away for
 * the limit, one line says which rank, and all end (EXIT_RUNTIME). A rank is watched once it has been
 * heard: on a network that carries no UDP there is no watchdog, but never a false alarm.
 * Not here: errors that a rank reports itself; fatal() ends all ranks (world.h). */
#ifndef LLMC_WATCHDOG_H
#define LLMC_WATCHDOG_H

#include "world.h"

/* Starts watching; every rank calls it. seconds: the limit; 0 does not watch. Nothing for one rank. */
void watchdog_start(const World *world, double seconds);

/* Waits until every rank is here, then stops: all part in peace. */
void watchdog_stop(void);

#endif
