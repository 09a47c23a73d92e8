/* test_log.c: what people see and what scripts read. The screen is seen through a pipe, and through
 * a pseudo-terminal and a few lines that do what a terminal does. Files are read back. */
#define _GNU_SOURCE // posix_openpt
#include "test.h"

#include "../llmc/base/error.h"
#include "../llmc/files/json_read.h"
#include "../llmc/log/log.h"
#include "faults.h"

#include <sys/ioctl.h>
#include <termios.h>

static char scratch[] = "/tmp/test_log_XXXXXX";

static const char *path_of(const char *name) {
    static char path[2][128];
    static int turn;
    turn ^= 1;
    snprintf(path[turn], sizeof path[turn], "%s/%s", scratch, name);
    return path[turn];
}

/* Everything that can be read from fd, to be freed. */
static char *read_all(int fd) {
    size_t length = 0, capacity = 1 << 20;
    char *text = calloc(capacity, 1);
    for (ssize_t n;
         length < capacity - 1 && (n = read(fd, text + length, capacity - 1 - length)) > 0;)
        length += (size_t)n;
    return text;
}

static char *content(const char *name) {
    int fd = open(path_of(name), O_RDONLY);
    char *text = fd < 0 ? calloc(1, 1) : read_all(fd);
    if (fd >= 0) close(fd);
    return text;
}

/* What `body` writes to its standard output, a pipe or (columns > 0) a terminal so wide. It runs in
 * a process of its own that must end with `code`. */
static char *screen_of(void (*body)(void), int columns, int code) {
    int from, to, pair[2];
    if (columns) {
        struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
        from = posix_openpt(O_RDWR | O_NOCTTY);
        if (from < 0 || grantpt(from) != 0 || unlockpt(from) != 0) return calloc(1, 1);
        to = open(ptsname(from), O_RDWR | O_NOCTTY);
        ioctl(to, TIOCSWINSZ, &size);
    } else {
        if (pipe(pair) != 0) abort();
        from = pair[0], to = pair[1];
    }
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        test_may_leak = true;
        dup2(to, 1);
        close(from);
        setvbuf(stdout, NULL, _IOFBF, 1 << 16); // what is not flushed must not be seen
        body();
        _exit(0);
    }
    close(to);
    char *text = read_all(from);
    close(from);
    int status;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == code, "status %d", status);
    return text;
}

/* Does to `bytes` what a terminal does: returns the lines that are seen in the end, joined by \n,
 * to be freed, and the longest that ever was in *widest. */
static char *displayed(const char *bytes, int *widest) {
    char *shown = calloc(strlen(bytes) + 2, 1), line[1024] = "";
    int column = 0;
    *widest = 0;
    for (const char *at = bytes; *at; at++) {
        if (*at == '\r') {
            column = 0;
        } else if (*at == '\n') {
            strcat(strcat(shown, line), "\n");
            memset(line, 0, sizeof line);
            column = 0;
        } else if (strncmp(at, "\033[K", 3) == 0) {
            memset(line + column, 0, sizeof line - (size_t)column);
            at += 2;
        } else if (column < (int)sizeof line - 1) {
            line[column++] = *at;
        }
        if (column > *widest) *widest = column;
    }
    return strcat(shown, line);
}

static StepRecord record_at(int64_t step) {
    return (StepRecord){.step = step,
                        .loss = 4.0 - 0.1 * (double)step,
                        .lr = 6e-4 / 715 * (double)(step + 1),
                        .norm = 0.125,
                        .tokens = 1024,
                        .data = 0x00ab0000000000cdu + (uint64_t)step,
                        .seconds = 0.25};
}

static Log *open_scratch(int64_t steps, int64_t every) {
    return log_open(scratch, steps, every, 1e6, 0);
}

// ---------------------------------------------------------------------------------------------
// Files

static void short_run(void) {
    Log *log = open_scratch(3, 1);
    log_settings(log, &(Settings){.model = "tiny"});
    log_val(log, 0, 5.5, 77);
    for (int64_t step = 0; step < 3; step++) {
        StepRecord record = record_at(step);
        log_train(log, &record);
    }
    log_sample(log, 3, "caf\u00e9\nau lait");
    log_close(log, "done", 3);
}

TEST(text_file, "log.txt keeps the course's grammar: {step} train|val value") {
    free(screen_of(short_run, 0, 0));
    char *text = content("log.txt");
    CHECK(strcmp(text, "0 val 5.500000\n0 train 4.000000\n1 train 3.900000\n2 train 3.800000\n") ==
              0,
          "%s", text);
    free(text);
}

/* Line `index` of metrics.jsonl, read strictly; NULL when there is none. */
static const Json *metrics_line(int index) {
    char *text = content("metrics.jsonl"), *line = text, problem[JSON_PROBLEM] = "";
    for (; index > 0 && line; index--) line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL;
    char *end = line ? strchr(line, '\n') : NULL;
    const Json *json = end ? json_read(line, (size_t)(end - line), problem) : NULL;
    CHECK(!end || json, "%s", problem);
    free(text);
    return json;
}

static double number_of(const Json *json, const char *name) {
    const Json *member = json_member(json, name);
    return member && member->kind == JSON_NUMBER ? member->number : NAN;
}

TEST(metrics_file, "metrics.jsonl has one record a line, and its numbers read back exactly") {
    free(screen_of(short_run, 0, 0));
    static const char *const events[] = {"settings", "val",    "train", "train",
                                         "train",    "sample", "end"};
    for (int i = 0; i < 7; i++) {
        const Json *json = metrics_line(i);
        CHECK(json && json->first && strcmp(json->first->name, "event") == 0, "line %d", i);
        CHECK(json_is(json_member(json, "event"), events[i]), "line %d", i);
        json_free(json);
    }
    CHECK(!metrics_line(7));
    const Json *train = metrics_line(3), *val = metrics_line(1), *sample = metrics_line(5);
    StepRecord want = record_at(1);
    CHECK(number_of(train, "step") == 1 && number_of(train, "loss") == want.loss);
    CHECK(number_of(train, "lr") == want.lr && number_of(train, "norm") == 0.125);
    CHECK(number_of(train, "tokens") == 1024 && number_of(train, "seconds") == 0.25);
    CHECK(number_of(train, "tokens_per_second") == 4096);
    CHECK(json_is(json_member(train, "data"), "00ab0000000000ce"));
    CHECK(number_of(val, "step") == 0 && number_of(val, "loss") == 5.5);
    CHECK(number_of(val, "tokens") == 77);
    CHECK(json_is(json_member(sample, "text"), "caf\u00e9\nau lait"));
    json_free(train), json_free(val), json_free(sample);
}

static void small_run(void) {
    Log *log = open_scratch(1, 1);
    StepRecord record = {.loss = NAN, .lr = 4e-7, .norm = 0.004, .seconds = 0};
    log_train(log, &record);
    log_close(log, "done", 1);
}

TEST(small_numbers,
     "lr 4e-7 and norm 0.004 read back; a NaN is said; a clock that stood gives rate 0") {
    char *screen = screen_of(small_run, 0, 0);
    CHECK(strstr(screen, "| lr 4.0000e-07 | norm: 0.0040 | dt: 0.00ms | tok/sec: 0.00\n"), "%s",
          screen);
    free(screen);
    const Json *json = metrics_line(0);
    CHECK(number_of(json, "lr") == 4e-7 && number_of(json, "norm") == 0.004);
    CHECK(json_is(json_member(json, "loss"), "NaN") && number_of(json, "tokens_per_second") == 0);
    json_free(json);
}

static void settings_run(void) {
    const char *words[] = {"train_gpt2",        "--lr", "3e-4", "--data", "a \"b\"", "--exact",
                           "--nonfinite=skip:2"};
    Settings settings = options_parse(7, (char **)words);
    Log *log = open_scratch(1, 1);
    log_settings(log, &settings);
    log_close(log, "done", 0);
}

TEST(settings_record, "the first record has every option with its value, null where none is set") {
    free(screen_of(settings_run, 0, 0));
    const Json *json = metrics_line(0);
    CHECK(json_is(json_member(json, "event"), "settings"));
    CHECK(number_of(json, "lr") == 3e-4 && number_of(json, "min-lr") == 3e-5);
    CHECK(json_is(json_member(json, "data"), "a \"b\"") &&
          json_is(json_member(json, "model"), "tiny"));
    CHECK(json_is(json_member(json, "nonfinite"), "skip:2"));
    CHECK(json_is(json_member(json, "schedule"), "cosine"));
    const Json *exact = json_member(json, "exact"), *out = json_member(json, "out");
    CHECK(exact && exact->kind == JSON_TRUE && out && out->kind == JSON_NULL);
    CHECK(json_member(json, "layers") && json_member(json, "layers")->kind == JSON_NULL);
    json_free(json);
}

static void warned_run(void) {
    Log *log = open_scratch(5, 0);
    StepRecord record = record_at(4);
    log_train(log, &record);
    freopen("/dev/null", "w", stderr);
    warning("the %s is low", "tide");
    log_close(log, "done", 5);
    warning("nobody listens");
}

TEST(warnings, "a warning is recorded with its step while a log is open") {
    free(screen_of(warned_run, 0, 0));
    const Json *json = metrics_line(1);
    CHECK(json_is(json_member(json, "event"), "warning") && number_of(json, "step") == 4);
    CHECK(json_is(json_member(json, "message"), "the tide is low"));
    json_free(json);
    json = metrics_line(2);
    CHECK(json_is(json_member(json, "reason"), "done") && number_of(json, "step") == 5);
    json_free(json);
    CHECK(!metrics_line(3));
}

static LogOffsets checkpoint;

static void resumed_run(void) {
    Log *log = log_resume(scratch, 3, 1, 1e6, 0, checkpoint);
    StepRecord record = record_at(1);
    log_train(log, &record);
    log_close(log, "done", 2);
}

static void interrupted_run(void) {
    Log *log = open_scratch(3, 1);
    StepRecord record = record_at(0);
    log_train(log, &record);
    LogOffsets offsets = log_offsets(log);
    CHECK(offsets.text == 17, "%lld", (long long)offsets.text);
    dprintf(2, "%lld %lld", (long long)offsets.text, (long long)offsets.metrics);
    for (int64_t step = 1; step < 3; step++) record = record_at(step), log_train(log, &record);
}

TEST(resume, "files are cut back to the checkpoint, so that no step is logged twice") {
    int pair[2], saved = dup(2);
    if (pipe(pair) != 0) abort();
    dup2(pair[1], 2);
    free(screen_of(interrupted_run, 0, 0));
    dup2(saved, 2);
    close(pair[1]), close(saved);
    char *offsets = read_all(pair[0]);
    close(pair[0]);
    long long text_bytes = 0, metrics_bytes = 0;
    CHECK(sscanf(offsets, "%lld %lld", &text_bytes, &metrics_bytes) == 2, "%s", offsets);
    free(offsets);
    checkpoint = (LogOffsets){text_bytes, metrics_bytes};
    free(screen_of(resumed_run, 0, 0));
    char *text = content("log.txt");
    CHECK(strcmp(text, "0 train 4.000000\n1 train 3.900000\n") == 0, "%s", text);
    free(text);
    for (int i = 0; i < 2; i++) {
        const Json *json = metrics_line(i);
        CHECK(number_of(json, "step") == i, "line %d", i);
        json_free(json);
    }
    const Json *end = metrics_line(2);
    CHECK(json_is(json_member(end, "event"), "end"));
    json_free(end);
}

static void resume_beyond_the_end(void) {
    Log *log = log_resume(scratch, 3, 0, 1e6, 0, (LogOffsets){1000, 10});
    freopen("/dev/null", "w", stdout);
    log_val(log, 9, 1, 1);
    _exit(0);
}

TEST(resume_short, "a log shorter than at its checkpoint continues at its end, with a warning") {
    free(screen_of(short_run, 0, 0));
    CHECK_FATAL(0, "log.txt: has 66 bytes, but 1000 when", resume_beyond_the_end());
    char *text = content("log.txt"), *tail = strstr(text, "2 train");
    CHECK(tail && strcmp(tail, "2 train 3.800000\n9 val 1.000000\n") == 0, "%s", text);
    free(text);
}

// ---------------------------------------------------------------------------------------------
// Faults

/* The first write of a log, and every later one, finds the disk full. */
static void write_to_full_disk(void) {
    Log *log = open_scratch(1, 0);
    faults_arm(1, FAULT_FULL);
    log_val(log, 0, 1, 1);
}

TEST(no_place,
     "a directory that is missing or not one, a full disk: file, reason, remedy, exit 1") {
    CHECK_FATAL(EXIT_RUNTIME, "/nowhere/log.txt: cannot open it: No such file",
                log_open("/nowhere", 1, 0, 0, 0));
    CHECK_FATAL(EXIT_RUNTIME, "/dev/null/log.txt: cannot open it: Not a directory",
                log_open("/dev/null", 1, 0, 0, 0));
    CHECK_FATAL(EXIT_RUNTIME, "log.txt: cannot write: No space left on device; make room",
                write_to_full_disk());
}

TEST(links, "a log that is a link, has another name, or is not a regular file is left alone") {
    char other[300], log[300];
    snprintf(log, sizeof log, "%s", path_of("log.txt"));
    snprintf(other, sizeof other, "%s", path_of("others"));
    for (int kind = 0; kind < 3; kind++) {
        remove(log);
        FILE *file = fopen(other, "w");
        if (!file || fputs("mine", file) < 0 || fclose(file) != 0) abort();
        if ((kind == 0 ? symlink(other, log) : kind == 1 ? link(other, log) : mkfifo(log, 0600)) != 0) abort();
        CHECK_FATAL(EXIT_RUNTIME, kind == 0 ? "log.txt: is a link" : kind == 1 ? "a hard link" : "log.txt: ",
                    open_scratch(1, 0));
        struct stat status;
        CHECK(stat(other, &status) == 0 && status.st_size == 4, "the other file is as it was");
    }
    remove(log);
    remove(other);
}

TEST(failing_calls, "whichever file call fails, the run ends with exit 1 and one line") {
    freopen("/dev/null", "r", stdin);
    int calls = 0;
    for (long at = 1; at < 100; at++, calls++) {
        int pair[2];
        fflush(stdout);
        if (pipe(pair) != 0) abort();
        pid_t child = fork();
        if (child == 0) {
            test_may_leak = true;
            dup2(pair[1], 2);
            freopen("/dev/null", "w", stdout);
            faults_arm(at, FAULT_IO);
            short_run();
            _exit(faults_calls < at ? 99 : 98); // 98: a failure that was not noticed
        }
        close(pair[1]);
        char *said = read_all(pair[0]);
        close(pair[0]);
        int status;
        waitpid(child, &status, 0);
        bool through = WEXITSTATUS(status) == 99;
        const char *end = strchr(said, '\n');
        CHECK(through || (WEXITSTATUS(status) == EXIT_RUNTIME && end && !end[1] &&
                          strstr(said, "Input/output error")),
              "call %ld: exit %d, %s", at, WEXITSTATUS(status), said);
        free(said);
        if (through) break;
    }
    CHECK(calls >= 2 + 11, "%d calls", calls); // two files, eleven lines
}

static void half_run(void) {
    faults_arm(1, FAULT_SHORT_WRITE);
    short_run();
}

static void signal_run(void) {
    faults_arm(5, FAULT_SIGNAL); // files are opened by the first two calls
    short_run();
}

static void counted_run(void) {
    Log *log = open_scratch(1, 0);
    StepRecord record = record_at(0);
    faults_arm(0, FAULT_NONE);
    log_train(log, &record);
    CHECK(faults_calls == 2, "%ld", faults_calls); // a line in each file
    _exit(faults_calls == 2 ? 0 : 1);
}

TEST(synced, "both files are on the disk before a checkpoint is told how long they are") {
    Log *log = open_scratch(1, 0);
    StepRecord record = record_at(0);
    log_train(log, &record);
    faults_arm(0, FAULT_NONE);
    log_offsets(log);
    CHECK(strcmp(faults_trace, "ss") == 0, "\"%s\"", faults_trace);
    log_close(log, "done", 1);
}

TEST(whole_lines, "a line is written by one call; writes that take half or are interrupted are completed") {
    free(screen_of(counted_run, 0, 0));
    free(screen_of(short_run, 0, 0));
    char *text = content("log.txt"), *metrics = content("metrics.jsonl");
    free(screen_of(half_run, 0, 0));
    char *text2 = content("log.txt"), *metrics2 = content("metrics.jsonl");
    CHECK(strcmp(text, text2) == 0 && strcmp(metrics, metrics2) == 0, "%s", metrics2);
    free(metrics2);
    free(screen_of(signal_run, 0, 0));
    metrics2 = content("metrics.jsonl");
    CHECK(strcmp(metrics, metrics2) == 0, "%s", metrics2);
    free(text), free(text2), free(metrics), free(metrics2);
}

TEST(no_reader, "a reader of standard output that goes away does not end the training") {
    int pair[2], status;
    if (pipe(pair) != 0) abort();
    remove(path_of("log.txt"));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        test_may_leak = true;
        dup2(pair[1], 1);
        close(pair[0]), close(pair[1]);
        short_run();
        _exit(0);
    }
    close(pair[0]), close(pair[1]);
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d", status);
    char *text = content("log.txt");
    CHECK(strstr(text, "2 train 3.800000\n"), "%s", text);
    free(text);
}

// ---------------------------------------------------------------------------------------------
// Screen

TEST(lines,
     "where there is no terminal every step is one plain flushed line in the course's form") {
    char *screen = screen_of(short_run, 0, 0);
    CHECK(strcmp(screen, "step     0 | val loss: 5.500000\n"
                         "step     0 | loss: 4.000000 | lr 8.3916e-07 | norm: 0.1250 | dt: "
                         "250.00ms | tok/sec: 4096.00\n"
                         "step     1 | loss: 3.900000 | lr 1.6783e-06 | norm: 0.1250 | dt: "
                         "250.00ms | tok/sec: 4096.00\n"
                         "step     2 | loss: 3.800000 | lr 2.5175e-06 | norm: 0.1250 | dt: "
                         "250.00ms | tok/sec: 4096.00\n"
                         "step     3 | sample:\ncaf\u00e9\nau lait\n") == 0,
          "%s", screen);
    CHECK(!strchr(screen, '\r') && !strchr(screen, '\033'));
    free(screen);
}

static void long_run(int64_t every) {
    Log *log = log_open(scratch, 103, every, 1e6, 1e12);
    for (int64_t step = 0; step < 103; step++) {
        StepRecord record = record_at(step);
        log_train(log, &record);
        if (step == 50) log_say(log, "half of %d", 103);
        if (step == 60) warning("a pipe drips");
    }
    log_say(log, "that was it");
    log_close(log, "done", 103);
}
static void run_every_10(void) { long_run(10); }
static void run_every_0(void) { long_run(0); }

/* How often `part` occurs. */
static int occurrences(const char *text, const char *part) {
    int count = 0;
    for (const char *at = text; (at = strstr(at, part)); at++) count++;
    return count;
}

TEST(every,
     "log-every thins what is shown, keeps the last step, and 0 shows none; files have all") {
    int saved = dup(2);
    freopen("/dev/null", "w", stderr);
    char *screen = screen_of(run_every_10, 0, 0);
    CHECK(occurrences(screen, " | loss: ") == 12, "%s", screen); // 0, 10, ..., 100, 102
    CHECK(strstr(screen, "step   102 | loss"), "%s", screen);
    free(screen);
    screen = screen_of(run_every_0, 0, 0);
    CHECK(strcmp(screen, "half of 103\nthat was it\n") == 0, "%s", screen);
    free(screen);
    char *text = content("log.txt");
    CHECK(occurrences(text, " train ") == 103);
    free(text);
    dup2(saved, 2);
    close(saved);
}

/* Takes the status line's warning to the very terminal, as at a real one. */
static void run_on_terminal(void) {
    dup2(1, 2);
    long_run(1);
}

TEST(terminal, "on a terminal one status line is redrawn below the lines, and never wraps") {
    setenv("TERM", "xterm", 1);
    for (int columns = 20; columns <= 160; columns += 70) {
        int widest;
        char *bytes = screen_of(run_on_terminal, columns, 0);
        if (!*bytes) SKIP("no pseudo-terminal here");
        char *shown = displayed(bytes, &widest);
        CHECK(strcmp(shown, "half of 103\ntrain_gpt2: warning: a pipe drips\nthat was it\n") == 0,
              "%s", shown);
        CHECK(columns < 90 || occurrences(bytes, "step 51/103") == 2); // again below "half"
        CHECK(widest < columns || columns < 40, "%d columns used of %d", widest, columns);
        CHECK(!strstr(bytes, "nan") && !strstr(bytes, "inf") && !strstr(bytes, "ETA -"));
        if (columns == 160) {
            CHECK(strstr(bytes,
                         "[====>               ]  22% step 23/103 | loss 1.8000 | ETA 0:20 | "
                         "4096 tok/s | MFU 0.4% | lr 1.93e-05 | norm 0.125"),
                  "%s", bytes);
            CHECK(strstr(bytes, "[====================] 100% step 103/103 | loss"));
        }
        free(shown), free(bytes);
    }
    setenv("TERM", "dumb", 1);
    char *bytes = screen_of(short_run, 80, 0);
    CHECK(!strchr(bytes, '\033') && strstr(bytes, "step     2 | loss: 3.8"), "%s", bytes);
    free(bytes);
}

int main(int argc, char **argv) {
    if (!mkdtemp(scratch)) return 1;
    int result = test_main(argc, argv);
    remove(path_of("log.txt"));
    remove(path_of("metrics.jsonl"));
    rmdir(scratch);
    return result;
}
