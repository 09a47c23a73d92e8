/* clock.h: a clock that only goes forward, for durations and limits. */
#ifndef LLMC_CLOCK_H
#define LLMC_CLOCK_H

#include <time.h>

/* Seconds since some fixed moment of the past. */
static inline double clock_seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

#endif
