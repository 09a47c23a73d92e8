/* resume.c: what --resume does. Rank 0 looks for a checkpoint and verifies it; all ranks receive its path and read
 * its state. Options that were not given become the checkpoint's. resume_check then compares what was given. */
#include "resume.h"

#include "../base/error.h"
#include "../base/memory.h"
#include "../base/number.h"
#include "../checkpoint/checkpoint.h"
#include "../checkpoint/checkpoint_list.h"
#include "../files/path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Options that decide what is computed. If one is given, its value must be the checkpoint's. (The shape is compared
 * with the weights, in plan.c.) */
static const char *const same_run[] = {"shuffle",      "seed",     "total-batch", "lr",    "min-lr",
                                       "warmup",       "schedule", "beta1",       "beta2", "eps",
                                       "weight-decay", "clip",     "exact"};

// ---------------------------------------------------------------------------------------------
// Finding the checkpoint

/* Whether --resume has this word. */
static bool is_word(const char *resume, const char *word) { return strcmp(resume, word) == 0; }

/* A copy of a path, without slashes at its end. */
static char *without_slashes(const char *path) {
    char *copy = memory_string(path);
    // "out/run-0001/" and "out/run-0001" are one path; "/" stays as it is.
    for (size_t n = strlen(copy); n > 1 && copy[n - 1] == '/'; n--) copy[n - 1] = '\0';
    return copy;
}

/* The directory that a checkpoint is in. */
static char *parent_of(const char *path) {
    // "out/step-100" gives "out", "/step-100" gives "/", and a name without a slash gives ".".
    char *parent = memory_string(path);
    char *slash = strrchr(parent, '/');
    if (slash)
        slash[slash == parent] = '\0';
    else
        strcpy(parent, "."); // a name has at least one character
    return parent;
}

/* What a path leads to; false where there is nothing. Fatal when that cannot be found out. */
static bool look_at(const char *path, struct stat *status) {
    if (stat(path, status) == 0) return true;
    if (errno != ENOENT && errno != ENOTDIR)
        fatal(EXIT_RUNTIME, "%s: cannot be looked at: %s; nothing was changed", path, strerror(errno));
    return false;
}

/* Whether two paths lead to one directory. */
static bool is_same_directory(const char *a, const char *b) {
    // Paths may differ by links or dots, so device and inode are compared.
    struct stat x, y;
    return look_at(a, &x) && look_at(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Ends the program: --resume names neither a checkpoint nor a run. */
static void refuse_unknown(const char *resume) {
    if (checkpoints_is_bare_run(resume))
        fatal(EXIT_INPUT, "--resume %s: this run has no checkpoint yet; --out %s --resume auto starts it again", resume,
              resume);
    if (!path_exists(resume)) // a path, or a word such as true
        fatal(strchr(resume, '/') ? EXIT_INPUT : EXIT_USAGE,
              "--resume %s: no good checkpoint: no such file; it takes auto, must, never, a checkpoint or the "
              "directory of a run; auto continues from the newest in --out",
              resume);
}

/* Rank 0: the checkpoint that --resume names, or the newest good one of the run that it names. The run is locked
 * if it continues in its own directory. */
static char *find_named(const Settings *s, Lock **lock) {
    char problem[CHECKPOINT_PROBLEM], *path = without_slashes(s->resume);
    bool is_run = checkpoints_any(path);
    char *directory = is_run ? memory_string(path) : parent_of(path);
    refuse_unknown(path);
    // With another --out the run's own directory is only read, so it needs no lock.
    if (!s->out || is_same_directory(s->out, directory)) *lock = run_directory_lock(directory, false);
    if (is_run) {
        free(path);
        path = checkpoints_newest_good(directory);
        if (!path) fatal(EXIT_INPUT, "--resume %s: none of this run's checkpoints is good", s->resume);
    } else if (!checkpoint_verify(path, problem)) {
        fatal(EXIT_INPUT, "--resume %s: no good checkpoint: %s", s->resume, problem);
    }
    free(directory);
    return path;
}

/* Rank 0: the checkpoint to continue from, or NULL. */
static char *find(const Settings *s, Lock **lock) {
    bool must = is_word(s->resume, "must");
    if (!must && !is_word(s->resume, "auto")) return find_named(s, lock);
    if (!s->out)
        fatal(EXIT_USAGE, "--resume %s needs --out, the directory of the run to continue",
              s->resume);
    // lock first, then look: what is found must not change before it is used
    *lock = run_directory_lock(s->out, !must);
    char *path = checkpoints_newest_good(s->out);
    if (!path && checkpoints_any(s->out))
        fatal(EXIT_INPUT,
              "--resume %s: %s has checkpoints, but none is good; give another --out, or --overwrite instead of "
              "--resume, to start a new run",
              s->resume, s->out);
    if (!path && must)
        fatal(EXIT_INPUT,
              "--resume must: no good checkpoint in %s; --resume auto starts a new run where there is none",
              s->out);
    return path;
}

/* Rank 0's path on all ranks. */
static char *share(char *path) {
    // The length first, with 0 for "no checkpoint": the other ranks then know how much room the path takes.
    uint64_t bytes = path ? strlen(path) + 1 : 0;
    world_broadcast(&bytes, sizeof bytes, 0);
    if (bytes == 0) return NULL;
    if (!path) path = memory_new((size_t)bytes, 1, "a file name");
    world_broadcast(path, (size_t)bytes, 0);
    return path;
}

char *resume_find_model(const Settings *settings, const World *world) {
    // Rank 0 alone looks: the machines of the other ranks may not have the same answer.
    const char *named = world->rank == 0 ? weights_path(settings->model) : NULL;
    return share(named ? checkpoints_resolve(named) : NULL);
}

// ---------------------------------------------------------------------------------------------
// Settings

/* What the checkpoint recorded for an option: a string, a number's spelling, true or false. */
static const char *recorded(void *context, const char *name, int item) {
    const Json *value = json_member(json_member(context, "settings"), name);
    // An option with several values is an array, and the settings ask for its items one by one.
    if (value && value->kind == JSON_ARRAY) {
        value = value->first;
        while (value && item-- > 0) value = value->next;
    } else if (item > 0) {
        return NULL;
    }
    if (!value || value->kind == JSON_NULL) return NULL;
    if (value->kind == JSON_TRUE) return "true";
    if (value->kind == JSON_FALSE) return "false";
    return value->text;
}

Resume resume_open(Settings *s, const World *world) {
    Resume resume = {.warns = world->rank == 0};
    bool looks = world->rank == 0 && !is_word(s->resume, "never"); // a rank with another --resume still takes part
    // rank 0 looks and verifies; the others take its path, so that all resume from the same checkpoint
    resume.path = share(looks ? find(s, &resume.lock) : NULL);
    if (!resume.path) return resume;
    resume.state = checkpoint_state(resume.path, &resume.at);
    char *parent = parent_of(resume.path);
    resume.same_out = !s->out || is_same_directory(s->out, parent);
    if (!s->out) s->out = memory_string(parent);
    free(parent);
    settings_adopt(s, recorded, (void *)resume.state);
    return resume;
}

void resume_close(Resume *resume) {
    free(resume->path);
    json_free(resume->state);
    lock_release(resume->lock);
    *resume = (Resume){0};
}

// ---------------------------------------------------------------------------------------------
// Is it the same run?

typedef struct {
    const Resume *resume;
    const Settings *settings;
} Comparison;

/* Refuses a difference, or with --force warns of it. */
static void differ(const Comparison *c, const char *name, const char *value, const char *before) {
    if (!c->settings->force)
        fatal(EXIT_USAGE, "--%s %s makes another run: %s has %s; leave it out, or use --force",
              name, value, c->resume->path, before);
    if (c->resume->warns)
        warning("--%s is %s from here on, and was %s: another run (--force)", name, value, before);
}

/* One option that was given: does it differ from the checkpoint's, and does that make another run? */
static void compare(void *context, const char *name, const char *value, bool quoted, bool given) {
    const Comparison *c = context;
    (void)quoted;
    // Options that were not given have the checkpoint's value (resume_open), so there is nothing to compare.
    if (!given) return;
    const char *before = recorded((void *)c->resume->state, name, 0);
    // Another B sums the same gradients in another order of rounding, so it is allowed, with a warning.
    if (strcmp(name, "batch") == 0 && c->resume->warns && before && value && strcmp(before, value) != 0)
        warning("--batch is %s from here on, and was %s: the same updates, but no longer the same bits", value, before);
    for (size_t i = 0; i < sizeof same_run / sizeof same_run[0]; i++)
        if (strcmp(same_run[i], name) == 0 && strcmp(before ? before : "", value ? value : "") != 0)
            differ(c, name, value ? value : "not set", before ? before : "its default");
}

void resume_check(const Resume *resume, const Settings *settings, const RunFacts *now,
                  int seq_len) {
    if (!resume->path) return;
    Comparison c = {resume, settings};
    settings_each(settings, compare, &c);
    int64_t given; // shorter sequences than the model has positions
    // The run may have been trained on shorter sequences than its model has positions: then its setting counts.
    const char *text_given = recorded((void *)resume->state, "seq-len", 0);
    if (text_given && number_read_i64(text_given, &given) == NUMBER_OK) seq_len = (int)given;
    if (now->seq_len != seq_len) {
        char text[2][16];
        snprintf(text[0], sizeof text[0], "%d", now->seq_len);
        snprintf(text[1], sizeof text[1], "%d", seq_len);
        differ(&c, "seq-len", text[0], text[1]);
    }
    // No option tells whether the files are the same; the identity of all tokens does.
    if (now->data != resume->at.data) differ(&c, "data", "(as it is now)", "seen other tokens");
    if (now->schedule_end != resume->at.schedule_end && resume->warns)
        warning(
            "the learning rate now reaches its minimum at step %lld, not %lld; from here on it differs",
            (long long)now->schedule_end, (long long)resume->at.schedule_end);
}
