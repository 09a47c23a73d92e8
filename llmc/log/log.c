/* log.c: each record goes to three places: a line of log.txt in the course's grammar, a JSON object in
 * metrics.jsonl, and the screen. A line is written by one call, so a killed run leaves whole lines. How many
 * bytes both files have is counted here: a checkpoint stores the counts, and a resume cuts the files back to
 * them. */
#define _GNU_SOURCE // O_NOFOLLOW
#include "log.h"

#include "../base/activity.h"
#include "../base/error.h"
#include "../base/memory.h"
#include "../files/json_write.h"
#include "../files/path.h"
#include "progress.h"
#include "screen.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One of the two files; path NULL: there is none. */
typedef struct {
    char *path;
    int fd;
    int64_t bytes;
} LogFile;

struct Log {
    LogFile text, metrics;
    JsonWriter json; // the record being written
    Progress progress;
    int64_t every;
    int64_t step; // of the latest record
};

static Log *open_log; // the log that also records warnings

// ---------------------------------------------------------------------------------------------
// Files

/* Ends the run: a log that silently stops would be worse. */
static _Noreturn void fail(const LogFile *file, const char *what) {
    fatal(EXIT_RUNTIME, "%s: cannot %s: %s; make room, or choose another place with --out",
          file->path, what, strerror(errno));
}

/* Promise 7: a log is a file of its own. A file that has another name too, by a link of either kind, is neither
 * written nor cut. */
static void refuse_links(const LogFile *file, const struct stat *status) {
    if (!S_ISREG(status->st_mode))
        fatal(EXIT_RUNTIME, "%s: is a directory, pipe or device, but a log is a regular file; move it away",
              file->path);
    if (status->st_nlink > 1)
        fatal(EXIT_RUNTIME,
              "%s: has another name (a hard link), and what is written here would change there; replace it by a "
              "copy of it",
              file->path);
}

/* Opens OUT/NAME and cuts what is beyond `keep` bytes. */
static LogFile file_open(const char *out, const char *name, int64_t keep) {
    LogFile file = {.path = path_join(out, name)};
    // O_NONBLOCK: to open a pipe must not hang
    int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    file.fd = open(file.path, flags, 0666);
    struct stat status;
    if (file.fd < 0 && errno == ELOOP)
        fatal(EXIT_RUNTIME, "%s: is a link, and links are not followed; replace it by a copy of what it leads to",
              file.path);
    if (file.fd < 0 || fstat(file.fd, &status) != 0) fail(&file, "open it");
    refuse_links(&file, &status);
    // Lines beyond the checkpoint are of steps that will be computed again; the same lines are then written again.
    file.bytes = status.st_size < keep ? status.st_size : keep;
    if (status.st_size > keep && ftruncate(file.fd, keep) != 0)
        fail(&file, "cut it to the checkpoint");
    if (status.st_size < keep)
        warning(
            "%s: has %lld bytes, but %lld when the checkpoint was written; new lines follow its end",
            file.path, (long long)status.st_size, (long long)keep);
    return file;
}

/* Appends bytes; a write may take only a part of them. */
static void file_write(LogFile *file, const char *line, size_t length) {
    if (!file->path) return;
    Activity before = activity_begin(ACTIVITY_LOG);
    for (size_t done = 0; done < length;) {
        ssize_t wrote = write(file->fd, line + done, length - done);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) fail(file, "write");
        done += (size_t)wrote;
    }
    file->bytes += (int64_t)length;
    activity_begin(before);
}

/* Waits until all of the file is on disk, so that a checkpoint can name its length. */
static void file_sync(const LogFile *file) {
    Activity before = activity_begin(ACTIVITY_LOG);
    if (file->path && fsync(file->fd) != 0 && errno != EINVAL)
        fail(file, "write"); // EINVAL: no disk
    activity_begin(before);
}

/* Closes a file. A network file system may report a full disk only here. */
static void file_close(LogFile *file) {
    file_sync(file);
    if (file->path && close(file->fd) != 0) fail(file, "close it");
    free(file->path);
}

/* A line of log.txt. */
static void write_text(Log *log, int64_t step, const char *kind, double value) {
    char line[96];
    int length = snprintf(line, sizeof line, "%" PRId64 " %s %.6f\n", step, kind, value);
    if (length >= (int)sizeof line) // a loss of more than 50 digits
        length = snprintf(line, sizeof line, "%" PRId64 " %s %.6e\n", step, kind, value);
    file_write(&log->text, line, (size_t)length);
}

/* A record of metrics.jsonl: record_begin, members, record_end. */
static JsonWriter *record_begin(Log *log, const char *event) {
    log->json.length = 0;
    json_open(&log->json, NULL, '{');
    json_put_string(&log->json, "event", event);
    return &log->json;
}

/* The same for a record of a step, which later warnings are filed under. */
static JsonWriter *record_begin_at(Log *log, const char *event, int64_t step) {
    log->step = step;
    JsonWriter *json = record_begin(log, event);
    json_put_integer(json, "step", step);
    return json;
}

/* Writes the record with one write, so that a reader of the growing file sees only whole lines but for the last. */
static void record_end(Log *log) {
    json_close(&log->json, '}');
    json_put_space(&log->json, "\n");
    file_write(&log->metrics, log->json.text, log->json.length);
}

// ---------------------------------------------------------------------------------------------
// Begin and end

/* A warning becomes a record of its own, at the step of the record before. */
static void note_warning(const char *message) {
    JsonWriter *json = record_begin_at(open_log, "warning", open_log->step);
    json_put_string(json, "message", message);
    record_end(open_log);
}

Log *log_resume(const char *out, int64_t steps, int64_t every, double flops_per_token,
                double peak_flops, LogOffsets offsets) {
    Log *log = memory_new(1, sizeof *log, "the log");
    log->every = every;
    log->progress =
        (Progress){.steps = steps, .flops_per_token = flops_per_token, .peak_flops = peak_flops};
    screen_open();
    if (out) {
        log->text = file_open(out, "log.txt", offsets.text);
        log->metrics = file_open(out, "metrics.jsonl", offsets.metrics);
    }
    open_log = log;
    error_set_note(note_warning);
    return log;
}

Log *log_open(const char *out, int64_t steps, int64_t every, double flops_per_token,
              double peak_flops) {
    return log_resume(out, steps, every, flops_per_token, peak_flops, (LogOffsets){0, 0});
}

LogOffsets log_offsets(const Log *log) {
    // The bytes are on the disk before a checkpoint counts them: no power cut leaves a log shorter than that.
    file_sync(&log->text);
    file_sync(&log->metrics);
    return (LogOffsets){.text = log->text.bytes, .metrics = log->metrics.bytes};
}

enum { END_LINE = 100 };

/* The last line of metrics.jsonl, as log_close writes it and log_is_ended looks for it. */
static size_t end_line(char line[END_LINE], const char *reason, int64_t step) {
    return (size_t)snprintf(line, END_LINE, "{\"event\":\"end\",\"step\":%" PRId64 ",\"reason\":\"%.20s\"}\n", step,
                            reason);
}

bool log_is_ended(const char *out, const char *reason, int64_t step) {
    char line[END_LINE + 1] = "\n", found[END_LINE + 1];
    size_t length = 1 + end_line(line + 1, reason, step);
    char *path = path_join(out, "metrics.jsonl");
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    free(path);
    if (fd < 0) return false; // whatever the error is, opening the file for writing reports it
    off_t size = lseek(fd, 0, SEEK_END);
    // With the line break before it, so that the end of a longer line cannot look like this one.
    bool ended = size >= (off_t)length && pread(fd, found, length, size - (off_t)length) == (ssize_t)length &&
                 memcmp(found, line, length) == 0;
    close(fd);
    return ended;
}

void log_close(Log *log, const char *reason, int64_t step) {
    char line[END_LINE];
    file_write(&log->metrics, line, end_line(line, reason, step));
    screen_close();
    error_set_note(NULL);
    open_log = NULL;
    file_close(&log->text);
    file_close(&log->metrics);
    free(log->json.text);
    free(log);
}

// ---------------------------------------------------------------------------------------------
// Records

/* settings_each calls it for each option: numbers and switches are JSON as they are, all else is a string. */
static void put_setting(void *context, const char *name, const char *value, bool quoted,
                        bool given) {
    (void)given;
    if (quoted)
        json_put_string(context, name, value);
    else
        json_put_json(context, name, value ? value : "null");
}

void log_settings(Log *log, const Settings *settings) {
    settings_each(settings, put_setting, record_begin(log, "settings"));
    record_end(log);
}

/* The step on the screen: the status line of a terminal, or else a line in the course's form every so often. */
static void show_step(const Log *log, const StepRecord *r) {
    // The last step is shown whatever --log-every is: people look for the end of a run.
    bool last = r->step + 1 == log->progress.steps;
    if (log->every <= 0 || (r->step % log->every != 0 && !last)) return;
    // The status line counts the updates that are done, step + 1; the course's line has the step's index.
    if (screen_is_terminal()) {
        char text[512];
        ProgressStep step = {r->step + 1, r->loss, r->lr, r->norm, (double)r->tokens};
        progress_text(text, sizeof text, screen_width(), &log->progress, &step);
        screen_status(text);
    } else {
        screen_print("step %5" PRId64
                     " | loss: %.6f | lr %.4e | norm: %.4f | dt: %.2fms | tok/sec: %.2f",
                     r->step, r->loss, r->lr, r->norm, r->seconds * 1000,
                     progress_rate((double)r->tokens, r->seconds));
    }
}

void log_train(Log *log, const StepRecord *r) {
    // The fingerprint has 64 bits, more than a JSON number holds exactly in most readers: a string of 16 hex digits.
    char data[17];
    snprintf(data, sizeof data, "%016" PRIx64, r->data);
    write_text(log, r->step, "train", r->loss);
    JsonWriter *json = record_begin_at(log, "train", r->step);
    json_put_real(json, "loss", r->loss);
    json_put_real(json, "lr", r->lr);
    json_put_real(json, "norm", r->norm);
    json_put_unsigned(json, "tokens", r->tokens);
    json_put_string(json, "data", data);
    json_put_real(json, "seconds", r->seconds);
    json_put_real(json, "tokens_per_second", progress_rate((double)r->tokens, r->seconds));
    record_end(log);
    progress_add(&log->progress, r->seconds);
    show_step(log, r);
}

void log_val(Log *log, int64_t step, double loss, uint64_t tokens) {
    write_text(log, step, "val", loss);
    JsonWriter *json = record_begin_at(log, "val", step);
    json_put_real(json, "loss", loss);
    json_put_unsigned(json, "tokens", tokens);
    record_end(log);
    screen_print("step %5" PRId64 " | val loss: %.6f", step, loss);
}

void log_hella(Log *log, int64_t step, double acc, double acc_norm, uint64_t examples) {
    // build-nanogpt's log has acc_norm, the share that is right by loss per token; the record has both.
    write_text(log, step, "hella", acc_norm);
    JsonWriter *json = record_begin_at(log, "hella", step);
    json_put_real(json, "acc", acc);
    json_put_real(json, "acc_norm", acc_norm);
    json_put_unsigned(json, "examples", examples);
    record_end(log);
    screen_print("step %5" PRId64 " | hella acc: %.4f | acc_norm: %.4f", step, acc, acc_norm);
}

void log_sample(Log *log, int64_t step, const char *text) {
    JsonWriter *json = record_begin_at(log, "sample", step);
    json_put_string(json, "text", text);
    record_end(log);
    screen_print("step %5" PRId64 " | sample:\n%s", step, text);
}

void log_checkpoint(Log *log, int64_t step, const char *path) {
    JsonWriter *json = record_begin_at(log, "checkpoint", step);
    const char *slash = strrchr(path, '/'); // the record does not depend on the run's directory
    json_put_string(json, "name", slash ? slash + 1 : path);
    record_end(log);
    screen_print("step %5" PRId64 " | checkpoint: %s", step, path);
}

void log_say(Log *log, const char *format, ...) {
    (void)log; // there is one screen
    va_list args;
    va_start(args, format);
    screen_vprint(format, args);
    va_end(args);
}
