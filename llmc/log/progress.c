/* progress.c: the text of the status line. Parts are added from left to right while they fit: a narrow terminal
 * loses the last ones, and never part of one. */
#include "progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
    BAR = 20,
    BAR_WIDTH = 70, // narrower lines have no bar: the numbers matter more
    DAY = 24 * 3600
};

double progress_rate(double tokens, double seconds) {
    return seconds > 0 && isfinite(seconds) ? tokens / seconds : 0;
}

void progress_add(Progress *progress, double seconds) {
    if (!(seconds >= 0) || !isfinite(seconds)) return; // the clock was set
    // a running average: a slow step moves the ETA by a tenth of its excess
    if (progress->step_seconds == 0) progress->step_seconds = seconds;
    progress->step_seconds += 0.1 * (seconds - progress->step_seconds);
}

/* What is written so far, and how far it may go. */
typedef struct {
    char *out;
    size_t length, most;
} Line;

/* Appends a part if all of it fits. */
__attribute__((format(printf, 2, 3))) static void part(Line *line, const char *format, ...) {
    char text[128];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    size_t length = strlen(text);
    if (line->length + length > line->most) return;
    memcpy(line->out + line->length, text, length + 1);
    line->length += length;
}

/* Time left as m:ss, h:mm:ss or days and hours. */
static void part_eta(Line *line, const Progress *progress, const ProgressStep *step) {
    if (progress->step_seconds <= 0 || step->done >= progress->steps) return;
    double seconds = progress->step_seconds * (double)(progress->steps - step->done);
    if (seconds > 1000.0 * DAY) {
        part(line, " | ETA over 1000 days");
        return;
    }
    // Whole seconds; lround is safe because longer times were caught above.
    long left = lround(seconds);
    if (left >= 4 * DAY)
        part(line, " | ETA %ldd %02ldh", left / DAY, left % DAY / 3600);
    else if (left >= 3600)
        part(line, " | ETA %ld:%02ld:%02ld", left / 3600, left % 3600 / 60, left % 60);
    else
        part(line, " | ETA %ld:%02ld", left / 60, left % 60);
}

/* Tokens per second, and where the device's peak is known, model FLOPs utilization (Chowdhery et al. 2022). */
static void part_rate(Line *line, const Progress *progress, const ProgressStep *step) {
    double rate = progress_rate(step->tokens, progress->step_seconds);
    if (rate <= 0) return;
    part(line, " | %.*f tok/s", rate < 100 ? 1 : 0, rate);
    if (progress->peak_flops > 0)
        part(line, " | MFU %.1f%%", 100 * rate * progress->flops_per_token / progress->peak_flops);
}

/* "[=====>    ]  37% " */
static void part_bar(Line *line, int64_t done, int64_t steps) {
    double share = (double)done / (double)steps;
    int filled = (int)(share * BAR);
    part(line, "[%.*s%-*s] %3d%% ", filled, "====================", BAR - filled,
         filled < BAR ? ">" : "", (int)(share * 100));
}

void progress_text(char *out, size_t size, int width, const Progress *progress,
                   const ProgressStep *step) {
    Line line = {.out = out, .most = width < 0 ? 0 : (size_t)width};
    if (line.most >= size) line.most = size - 1;
    out[0] = '\0';
    // In the order of their worth: what does not fit any more is left out from the right.
    bool counts = step->done >= 0 && step->done <= progress->steps && progress->steps > 0;
    if (counts && width >= BAR_WIDTH) part_bar(&line, step->done, progress->steps);
    part(&line, "step %" PRId64 "/%" PRId64, step->done, progress->steps);
    part(&line, " | loss %.4f", step->loss);
    part_eta(&line, progress, step);
    part_rate(&line, progress, step);
    part(&line, " | lr %.2e", step->lr);
    part(&line, " | norm %.3f", step->norm);
}
