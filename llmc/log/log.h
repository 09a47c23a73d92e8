/* log.h: the lines that people see and the records that scripts read. Only rank 0 opens a log, and one at a time.
 *
 * Screen: on a terminal a status line with progress, ETA and tokens/s; else one flushed line a
 * step, in the form of the course (build-nanogpt's train_gpt2.py). OUT/log.txt: "{step} train|val|hella
 * value" lines. OUT/metrics.jsonl: one JSON object a line, each with an "event"; floats round-trip, and one that is
 * not finite is the string "NaN", "Infinity" or "-Infinity". Both files hold every step, and each line is written
 * by one call, so that a killed run leaves whole lines. A full disk stops the run with a clear error
 * (EXIT_RUNTIME): a log that silently ends would be worse. Warnings (error.h) are recorded too. Next: progress.h
 * for the status line, screen.h for how it is shown. */
#ifndef LLMC_LOG_H
#define LLMC_LOG_H

#include "../settings/settings.h"

#include <stdint.h>

typedef struct Log Log;

/* One update. */
typedef struct {
    int64_t step; // index, from 0
    double loss;  // mean over the update's valid targets
    double lr;
    double norm;     // before clipping
    uint64_t tokens; // N: valid targets
    uint64_t data;   // fingerprint of the sequences served
    double seconds;  // of this update
} StepRecord;

/* Bytes of both files. */
typedef struct {
    int64_t text, metrics;
} LogOffsets;

/* Opens OUT/log.txt and OUT/metrics.jsonl, empty, in an existing directory, or with out NULL no
 * files. steps: of the whole run, for progress; every: show each so many steps on the screen, and
 * the last (0: none); peak_flops: of all ranks together, 0 where unknown. */
Log *log_open(const char *out, int64_t steps, int64_t every, double flops_per_token,
              double peak_flops);

/* The same, but both files are kept up to `offsets` and continued there: lines that an interrupted run wrote after
 * its checkpoint are cut off. A file shorter than that is continued at its end, with a warning. */
Log *log_resume(const char *out, int64_t steps, int64_t every, double flops_per_token,
                double peak_flops, LogOffsets offsets);

/* Where both files end now, after what was written is safe on the disk: for a checkpoint. */
LogOffsets log_offsets(const Log *log);

/* The first record: {"event":"settings", then every option by its name; null: not set}. */
void log_settings(Log *log, const Settings *settings);

/* After an update; and, at that number of updates, after a validation, after scoring multiple-choice
 * examples (the shares that were right by the sum and by the mean of losses; log.txt has the latter, as the
 * course's), and after a sample (printable UTF-8). */
void log_train(Log *log, const StepRecord *record);
void log_val(Log *log, int64_t step, double loss, uint64_t tokens);
void log_hella(Log *log, int64_t step, double acc, double acc_norm, uint64_t examples);
void log_sample(Log *log, int64_t step, const char *text);

/* After a checkpoint was written to `path`. */
void log_checkpoint(Log *log, int64_t step, const char *path);

/* A line of free text on the screen. */
void log_say(Log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The last record, {"event":"end","step":...,"reason":...}. Makes both files safe on the disk and closes them, and
 * checks that. */
void log_close(Log *log, const char *reason, int64_t step);

/* Whether the last line of OUT/metrics.jsonl is that record. */
bool log_is_ended(const char *out, const char *reason, int64_t step);

#endif
