/* progress.h: the text of the status line: steps done, speed, time left. */
#ifndef LLMC_PROGRESS_H
#define LLMC_PROGRESS_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    int64_t steps;          // of the whole run
    double flops_per_token; // of forward and backward
    double peak_flops;      // of all devices together, a second; 0: not known
    double step_seconds;    // smoothed time of a step; 0: none was seen yet
} Progress;

/* Takes a step's time into the smoothed one, a tenth at a time. */
void progress_add(Progress *progress, double seconds);

/* One step as numbers. */
typedef struct {
    int64_t done; // steps, this one included
    double loss, lr, norm;
    double tokens; // of this step
} ProgressStep;

/* Writes at most `width` characters into out (of size > width): the parts that fit, the most important first, with
 * a bar where there is room. Unknown values are left out. */
void progress_text(char *out, size_t size, int width, const Progress *progress,
                   const ProgressStep *step);

/* tokens / seconds, or 0 when the clock did not move. */
double progress_rate(double tokens, double seconds);

#endif
