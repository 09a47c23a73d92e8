/* log.h: what people see and what scripts read. Only rank 0 opens a log.
 *
 * Terminal: one status line with progress, ETA and tokens/s. Else: one flushed line a step, in the form
 * of the course (build-nanogpt's train_gpt2.py). OUT/log.txt: "{step} train|val value" lines.
 * OUT/metrics.jsonl: one JSON object a line; floats read back exactly. A full disk stops the run
 * with a clear error: a log that silently ends would be worse. */
#ifndef LLMC_LOG_H
#define LLMC_LOG_H

#include <stdbool.h>
#include <stdint.h>

typedef struct Log Log;

/* One update. */
typedef struct {
    int64_t step;     // index, from 0
    double loss;      // mean over the update's valid targets
    double lr;
    double norm;      // before clipping
    uint64_t tokens;  // N: valid targets
    uint64_t data;    // fingerprint of the rows served
    double seconds;   // of this update
} StepRecord;

/* Opens OUT/log.txt and OUT/metrics.jsonl in an existing directory, or with out NULL no files.
 * steps: for progress; every: print each so many steps (0: none). */
Log *log_open(const char *out, int64_t steps, int64_t every, double flops_per_token, double peak_flops);

/* The first record: {"event":"settings", "name":value, ...}. members is JSON without the braces. */
void log_settings(Log *log, const char *members);

void log_train(Log *log, const StepRecord *record);
void log_val(Log *log, int64_t step, double loss, uint64_t tokens);
void log_sample(Log *log, int64_t step, const char *text);
void log_warning(Log *log, const char *message);

/* A line of free text above the status line (terminal) or in its place. */
void log_say(Log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The last record {"event":"end",...}; flushes and closes both files, checking every write. */
void log_close(Log *log, const char *reason, int64_t step);

#endif
