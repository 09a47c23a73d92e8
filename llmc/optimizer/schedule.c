/* schedule.c: the learning rate of step i (chapter 27.2): warm-up, then a curve from max to min, then min. The
 * four schedules differ only in the height of that curve. */
#include "schedule.h"

#include "../base/elementary.h"

#define WSD_STABLE 0.8 // share of the steps after warm-up that WSD keeps the rate at its maximum

/* How far the rate has come down from max (1) to min (0) at r in [0, 1]. */
static double height(ScheduleKind kind, double r) {
    switch (kind) {
    case SCHEDULE_COSINE: return 0.5 * (1.0 + elementary_cosine(r / 2));
    case SCHEDULE_LINEAR: return 1.0 - r;
    case SCHEDULE_WSD: return r <= WSD_STABLE ? 1.0 : (1.0 - r) / (1.0 - WSD_STABLE);
    case SCHEDULE_CONSTANT: break;
    }
    return 1.0;
}

double schedule_rate(const Schedule *s, int64_t i) {
    // i + 1, not i: the loop counts from 0, and the first step should not have a rate of 0
    if (i < s->warmup) return s->max * (double)(i + 1) / (double)s->warmup;
    if (s->kind == SCHEDULE_CONSTANT) return s->max;
    // The last step executed is S - 1; i = S is the first that would have the minimum itself.
    if (i > s->end) return s->min;
    double r = s->end > s->warmup ? (double)(i - s->warmup) / (double)(s->end - s->warmup) : 0.0;
    return s->min + height(s->kind, r) * (s->max - s->min);
}
