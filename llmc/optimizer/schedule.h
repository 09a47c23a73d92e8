/* schedule.h: the learning rate of each update, a total function of its index (chapter 27.2).
 * A step is one optimizer step, not a micro-step. All arithmetic is in double. */
#ifndef LLMC_SCHEDULE_H
#define LLMC_SCHEDULE_H

#include <stdint.h>

typedef enum { SCHEDULE_COSINE, SCHEDULE_LINEAR, SCHEDULE_CONSTANT, SCHEDULE_WSD } ScheduleKind;

typedef struct {
    ScheduleKind kind;
    double max, min;
    int64_t warmup; // W: step i < W has rate max * (i+1) / W, so that step 0 is not 0
    int64_t end;    // S: from here on the rate is min (constant: max)
} Schedule;

/* The rate of step i >= 0. With r = (i - W) / (S - W) for W <= i <= S:
 *   cosine   min + (1 + cos(pi r)) / 2 * (max - min)
 *   linear   max + r * (min - max)
 *   constant max, also beyond S
 *   wsd      max while r <= 0.8, then linearly to min at S (warmup-stable-decay, Hu et al. 2024)
 * W >= S never decays between: max at i = W = S, min after. */
double schedule_rate(const Schedule *schedule, int64_t i);

#endif
