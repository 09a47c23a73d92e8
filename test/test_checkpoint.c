/* test_checkpoint.c: a checkpoint cannot be lost. Whatever fails, and wherever the process is killed, the
 * newest good one is there; every damaged bit is seen; what is loaded is what was saved. */
#include "../llmc/checkpoint/checkpoint.h"
#include "../llmc/checkpoint/checkpoint_list.h"
#include "../llmc/weights/safetensors.h"

#include "../llmc/base/error.h"
#include "../llmc/files/checksum.h"
#include "faults.h"
#include "files.h"
#include "test.h"

#include <fcntl.h>

static const Config shape = {.layers = 1, .heads = 2, .channels = 8, .seq_len = 4, .vocab = 256};

/* A model whose weights and moments are all different. */
static GPT2 *new_model(const Config *config, float start) {
    GPT2 *model = gpt2_new(config, 1, false, true);
    float *values = malloc(model->table.elements * sizeof *values);
    for (int i = 0; i < model->table.count; i++) {
        const Tensor *t = &model->table.tensors[i];
        for (size_t k = 0; k < t->count; k++) values[k] = start + (float)(t->offset + k) * 1e-3f;
        gpt2_write_weights(model, t, 0, values, t->count);
        for (size_t k = 0; k < t->count; k++) values[k] = -values[k];
        write_floats(device_at(model->m, OF_OPTIMIZER_STATE, t->offset), OF_OPTIMIZER_STATE, values,
                     t->count);
        for (size_t k = 0; k < t->count; k++) values[k] *= -0.5f;
        write_floats(device_at(model->v, OF_OPTIMIZER_STATE, t->offset), OF_OPTIMIZER_STATE, values,
                     t->count);
    }
    free(values);
    return model;
}

static GPT2 *model; // what is saved
static Settings settings;
static const TrainerState state = {.step = 7,
                                   .updates = 6,
                                   .skipped = 1,
                                   .sequences_served = 1ULL << 40,
                                   .tokens = 12345,
                                   .seconds = 0.1,
                                   .schedule_end = 20,
                                   .log = {100, 200},
                                   .data = 0xFEDCBA9876543210ULL};

static void setup(void) {
    if (model) return;
    backend_open(0, 1, 1); // one thread, so that children may be forked
    char *words[] = {"test", "--data", "one, two.txt", "--data", "three\n\"four\"", "--lr",
                     "0.1",  NULL};
    settings = options_parse(7, words);
    model = new_model(&shape, 1);
}

static const Tokenizer *bytes_tokenizer(void) {
    static Tokenizer *tokenizer;
    if (!tokenizer) tokenizer = tokenizer_open("bytes");
    return tokenizer;
}

static void save(const char *out, int64_t step) {
    char *path = checkpoints_path(out, step);
    checkpoint_save(path, model, &state, &settings, bytes_tokenizer());
    free(path);
}

static const char *new_out(const char *name) {
    const char *out = in_folder(name);
    mkdir(out, 0777);
    return out;
}

static bool is_good(const char *path) {
    char problem[CHECKPOINT_PROBLEM];
    return checkpoint_verify(path, problem);
}

static unsigned char *load(const char *path, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    unsigned char *data = malloc(1 << 20);
    *bytes = file ? fread(data, 1, 1 << 20, file) : 0;
    if (file) fclose(file);
    return data;
}

static void store(const char *path, const unsigned char *data, size_t bytes) {
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, bytes, file) != bytes || fclose(file) != 0) abort();
}

static void store_byte(const char *path, size_t at, int byte) {
    int descriptor = open(path, O_WRONLY);
    unsigned char value = (unsigned char)byte;
    if (pwrite(descriptor, &value, 1, (off_t)at) != 1 || close(descriptor) != 0) abort();
}

TEST(round_trip, "weights, moments, counters and settings come back as they were saved") {
    setup();
    char out[256];
    strcpy(out, new_out("trip"));
    save(out, 7);
    char *path = checkpoints_path(out, 7);
    CHECK(is_good(path));

    GPT2 *other = gpt2_new(&shape, 1, false, true);
    Weights *weights = weights_open(path);
    checkpoint_load(path, weights, other);
    size_t bytes = model->table.elements * element_size(OF_OPTIMIZER_STATE);
    CHECK(memcmp(other->params, model->params, model->table.elements * element_size(OF_PARAM)) ==
          0);
    CHECK(memcmp(other->m, model->m, bytes) == 0 && memcmp(other->v, model->v, bytes) == 0);
    weights_close(weights);
    gpt2_free(other);

    TrainerState got;
    const Json *root = checkpoint_state(path, &got);
    CHECK(memcmp(&got, &state, sizeof got) == 0);
    const Json *recorded = json_member(root, "settings"), *data = json_member(recorded, "data");
    CHECK(data->count == 2 && json_is(data->first, "one, two.txt"));
    CHECK(json_is(data->first->next, "three\n\"four\""));
    CHECK(strcmp(json_member(recorded, "lr")->text, "0.1") == 0);
    json_free(root);
    free(path);
}

TEST(orientation,
     "weights stand in their file as Hugging Face has them, moments as they lie in memory") {
    setup();
    char out[256], name[512];
    strcpy(out, new_out("orientation"));
    save(out, 7);
    const Tensor *qkv =
        &model->table.tensors[tensor_table_find(&model->table, "h.0.attn.c_attn.weight")];
    char *path = checkpoints_path(out, 7);
    const struct {
        const char *file, *tensor;
        size_t rows;
        float step; // between the first element and the next of the matrix's first row or column
    } files[] = {{"model.safetensors", "h.0.attn.c_attn.weight", 8, 8e-3f},
                 {"optimizer.safetensors", "m.h.0.attn.c_attn.weight", 24, -1e-3f},
                 {"optimizer.safetensors", "v.h.0.attn.c_attn.weight", 24, 0.5e-3f}};
    for (int i = 0; i < 3; i++) {
        float x[2];
        snprintf(name, sizeof name, "%s/%s", path, files[i].file);
        SafeTensors *file = safetensors_open(name);
        const SafeTensor *stored = safetensors_find(file, files[i].tensor);
        CHECK(stored && stored->shape[0] == files[i].rows && stored->count == qkv->count);
        safetensor_floats(stored, safetensor_at(file, stored, 0, 2), 2, x);
        CHECK_NEAR(x[1] - x[0], files[i].step, 1e-6);
        safetensors_close(file);
    }
    free(path);
}

TEST(shorter_rows,
     "a model with fewer positions takes the first ones, of weights and moments alike") {
    setup();
    char out[256];
    strcpy(out, new_out("shorter"));
    save(out, 7);
    char *path = checkpoints_path(out, 7);
    Config three = shape;
    three.seq_len = 3;
    GPT2 *other = gpt2_new(&three, 1, false, true);
    Weights *weights = weights_open(path);
    checkpoint_load(path, weights, other);
    const Tensor *wpe = &other->table.tensors[1];
    float got[24], want[24];
    gpt2_read_weights(other, wpe, 0, got, 24);
    gpt2_read_weights(model, &model->table.tensors[1], 0, want, 24);
    CHECK(memcmp(got, want, sizeof got) == 0);
    read_floats(got, device_at(other->m, OF_OPTIMIZER_STATE, wpe->offset), OF_OPTIMIZER_STATE, 24);
    for (int i = 0; i < 24; i++) CHECK(got[i] == -want[i]);
    weights_close(weights);
    gpt2_free(other);
    free(path);
}

TEST(every_byte,
     "one flipped bit anywhere, a cut or lengthened file, a missing file: all are seen") {
    setup();
    char out[256];
    strcpy(out, new_out("bits"));
    save(out, 7);
    char *path = checkpoints_path(out, 7);
    static const char *const names[] = {"config.json",           "model.safetensors",
                                        "optimizer.safetensors", "tokenizer.json",
                                        "trainer_state.json",    "tokenizer_config.json"};
    for (int n = 0; n < 6; n++) {
        char file[512];
        snprintf(file, sizeof file, "%s/%s", path, names[n]);
        size_t bytes;
        unsigned char *data = load(file, &bytes);
        size_t stride = bytes > 4000 ? bytes / 400 : n == 4 ? 1 : 7; // the state file: every byte
        for (size_t at = 0; at < bytes; at += stride) {
            store_byte(file, at, data[at] ^ 1 << at % 8);
            CHECK(!is_good(path), "%s: byte %zu", names[n], at);
            store_byte(file, at, data[at]);
        }
        store(file, data, bytes - 1);
        CHECK(!is_good(path), "%s cut", names[n]);
        store(file, (unsigned char *)"", 0);
        CHECK(!is_good(path), "%s empty", names[n]);
        unlink(file);
        CHECK(!is_good(path), "%s missing", names[n]);
        data[bytes] = '\n';
        store(file, data, bytes + 1);
        CHECK(!is_good(path), "%s longer", names[n]);
        store(file, data, bytes);
        CHECK(is_good(path), "%s restored", names[n]);
        free(data);
    }
    free(path);
}

/* Exits with 9 unless the newest good checkpoint is that of `step`. */
static void expect_newest(const char *out, int64_t step) {
    char *path = checkpoints_newest_good(out), *want = checkpoints_path(out, step);
    if (!path || strcmp(path, want) != 0) _exit(9);
    free(path);
    free(want);
}

/* What is wrong with a state of a format and version; its sum is right. */
static const char *state_problem(const char *state_format, int version) {
    static char problem[STATE_PROBLEM];
    char text[200];
    int n = snprintf(text, sizeof text, "{\n  \"format\":\"%s\",\n  \"version\":%d", state_format, version);
    snprintf(text + n, sizeof text - (size_t)n, ",\n  \"xxh64\":\"%016llx\"\n}\n",
             (unsigned long long)checksum_of(text, (size_t)n));
    const Json *root = trainer_state_read(text, strlen(text), problem);
    json_free(root);
    return root ? "" : problem;
}

TEST(formats, "a state of another format or version is refused, though its sum is right") {
    CHECK(state_problem("train_gpt2 checkpoint", 2)[0] == '\0', "%s", state_problem("train_gpt2 checkpoint", 2));
    for (int version = 0; version < 5; version++)
        if (version != 2) CHECK(strstr(state_problem("train_gpt2 checkpoint", version), "of version 2"), "%d", version);
    CHECK(strstr(state_problem("another", 2), "of version 2"));
}

TEST(counters,
     "each counter of a state goes to its own place; one that is missing or no whole number from 0 is named") {
    static const char good[] =
        "{\"step\":11,\"updates\":12,\"skipped\":13,\"position\":14,\"tokens\":15,\"seconds\":1.5,"
        "\"schedule_end\":16,\"log\":{\"log.txt\":17,\"metrics.jsonl\":18},\"data\":\"00000000000000ff\"}";
    static const char *const names[] = {"step", "updates", "skipped",       "position", "tokens", "schedule_end",
                                        "log.txt", "metrics.jsonl", "seconds",  "data"};
    char problem[JSON_PROBLEM + STATE_PROBLEM], text[400];
    TrainerState got = {0};
    const Json *root = json_read(good, sizeof good - 1, problem);
    CHECK(root && trainer_state_counters(root, &got, problem), "%s", problem);
    json_free(root);
    CHECK(got.step == 11 && got.updates == 12 && got.skipped == 13 && got.sequences_served == 14 && got.tokens == 15);
    CHECK(got.seconds == 1.5 && got.schedule_end == 16 && got.data == 255);
    CHECK(got.log.text == 17 && got.log.metrics == 18);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (int renamed = 0; renamed < 2; renamed++) { // the member is not there, or its value is not what it must be
            strcpy(text, good);
            char quoted[40];
            snprintf(quoted, sizeof quoted, "\"%s\":", names[i]);
            char *at = strstr(text, quoted);
            if (renamed)
                at[1] = 'X';
            else
                at[strlen(quoted)] = '"', at[strlen(quoted) + 1] = '"';
            root = json_read(text, strlen(text), problem);
            if (!root) continue; // its neighbour no longer is JSON
            CHECK(!trainer_state_counters(root, &got, problem), "%s", text);
            CHECK(strstr(problem, names[i]), "%s: %s", names[i], problem);
            json_free(root);
        }
}

TEST(newest_good, "the newest good checkpoint is found below damaged ones and strange names") {
    setup();
    char out[256], file[512];
    strcpy(out, new_out("newest"));
    CHECK(!checkpoints_any(out) && !checkpoints_newest_good(out) &&
          !checkpoints_newest_good("/nowhere"));
    mkdir(in_folder("newest/step_0000700"), 0777); // a digit less than this program writes
    CHECK(!checkpoints_any(out));
    save(out, 5), save(out, 20), save(out, 100);
    mkdir(in_folder("newest/step_00000300.tmp"), 0777); // a user's
    mkdir(in_folder("newest/step_00000300.train_gpt2-0123456789abcdef.tmp"), 0777);
    write_string("newest/step_00000300.train_gpt2-0123456789abcdef.tmp/unfinished.train_gpt2", "");
    write_string("newest/step_00000300.train_gpt2-0123456789abcdef.tmp/content", "half");
    mkdir(in_folder("newest/step_400"), 0777);
    mkdir(in_folder("newest/step_000000500"), 0777);
    mkdir(in_folder("newest/step_0000600x"), 0777);
    char *newest = checkpoints_newest_good(out), *want = checkpoints_path(out, 100);
    CHECK(newest && strcmp(newest, want) == 0);
    free(newest);

    snprintf(file, sizeof file, "%s/optimizer.safetensors", want);
    CHECK(truncate(file, 1000) == 0);
    free(want);
    CHECK_FATAL(0, "is damaged", expect_newest(out, 20)); // a warning, and the one before it

    save(out, 21);
    checkpoints_set_aside(out, 20);
    CHECK(access(in_folder("newest/step_00000100.aside"), F_OK) == 0);
    CHECK(access(in_folder("newest/step_00000021.aside"), F_OK) == 0, "the very next one, too");
    CHECK(access(in_folder("newest/step_00000300.train_gpt2-0123456789abcdef.tmp"), F_OK) != 0, "unfinished ones go");
    CHECK(access(in_folder("newest/step_00000300.tmp"), F_OK) == 0, "what has no mark stays");
    CHECK(access(in_folder("newest/step_00000020"), F_OK) == 0);
    save(out, 100);
    checkpoints_set_aside(out, 20);
    CHECK(access(in_folder("newest/step_00000100.aside2"), F_OK) == 0, "nothing is overwritten");
}

TEST(keep, "the newest K stay; what this program did not write stays, too") {
    setup();
    char out[256];
    strcpy(out, new_out("keep"));
    for (int step = 1; step <= 5; step++) save(out, step);
    checkpoints_keep(out, 0, 0);
    CHECK(access(in_folder("keep/step_00000001"), F_OK) == 0, "0 keeps all");
    store(in_folder("keep/step_00000002/notes.txt"), (unsigned char *)"mine", 4);
    checkpoints_keep(out, 2, 0);
    CHECK(access(in_folder("keep/step_00000001"), F_OK) != 0);
    CHECK(access(in_folder("keep/step_00000002/notes.txt"), F_OK) == 0);
    CHECK(is_good(in_folder("keep/step_00000002")), "not half removed");
    CHECK(access(in_folder("keep/step_00000003"), F_OK) != 0);
    CHECK(is_good(in_folder("keep/step_00000004")) && is_good(in_folder("keep/step_00000005")));
    checkpoints_remove(out);
    CHECK(access(in_folder("keep/step_00000005"), F_OK) != 0);
    CHECK(access(in_folder("keep/step_00000002/notes.txt"), F_OK) == 0);
}

/* Loads a checkpoint that was verified, after `change` was done to it. */
static void load_changed(const char *path, void (*change)(const char *file)) {
    char problem[CHECKPOINT_PROBLEM], file[512];
    if (!checkpoint_verify(path, problem)) _exit(9);
    snprintf(file, sizeof file, "%s/optimizer.safetensors", path);
    change(file);
    GPT2 *other = gpt2_new(&shape, 1, false, true);
    checkpoint_load(path, weights_open(path), other);
}

static void flip_a_bit(const char *file) {
    size_t bytes;
    unsigned char *data = load(file, &bytes);
    usleep(20000); // times of files have the kernel's ticks
    store_byte(file, bytes / 2, data[bytes / 2] ^ 1);
    free(data);
}

static void replace(const char *file) {
    size_t bytes;
    unsigned char *data = load(file, &bytes);
    unlink(file);
    store(file, data, bytes);
    free(data);
}

TEST(best, "the best checkpoint stays whatever its age, and OUT/best leads to it, or is not there") {
    setup();
    char out[256], target[64] = "";
    strcpy(out, new_out("best"));
    for (int step = 1; step <= 5; step++) save(out, step);
    checkpoints_mark_best(out, 2);
    checkpoints_keep(out, 1, 2);
    CHECK(access(in_folder("best/step_00000001"), F_OK) != 0 && access(in_folder("best/step_00000004"), F_OK) != 0);
    CHECK(is_good(in_folder("best/step_00000002")) && is_good(in_folder("best/step_00000005")));
    CHECK(is_good(in_folder("best/best")));
    CHECK(readlink(in_folder("best/best"), target, sizeof target - 1) > 0 && strcmp(target, "step_00000002") == 0);
    checkpoints_mark_best(out, 5);
    memset(target, 0, sizeof target);
    CHECK(readlink(in_folder("best/best"), target, sizeof target - 1) > 0 && strcmp(target, "step_00000005") == 0);
    checkpoints_mark_best(out, 4); // is gone
    CHECK(readlink(in_folder("best/best"), target, sizeof target - 1) < 0);
    write_string("best/best", "mine");
    checkpoints_mark_best(out, 5);
    checkpoints_remove(out);
    CHECK(access(in_folder("best/best"), F_OK) == 0, "a file of that name is not ours");
    CHECK(access(in_folder("best/step_00000005"), F_OK) != 0);
}

TEST(changed, "a checkpoint that is written or replaced between verification and loading is noticed") {
    setup();
    char out[256];
    strcpy(out, new_out("changed"));
    save(out, 7);
    char *path = checkpoints_path(out, 7);
    CHECK_FATAL(EXIT_INPUT, "was changed or removed while it was being loaded", load_changed(path, flip_a_bit));
    CHECK(!is_good(path));
    save(out, 8);
    free(path);
    path = checkpoints_path(out, 8);
    CHECK_FATAL(EXIT_INPUT, "was changed or removed while it was being loaded", load_changed(path, replace));
    CHECK(is_good(path), "the same bytes, but it went unnoticed");
    free(path);
}

TEST(not_finite, "weights and moments that are NaN or infinite reach no checkpoint, and come from none") {
    setup();
    char out[256];
    strcpy(out, new_out("finite"));
    const Tensor *wpe = &model->table.tensors[1];
    float kept, bad = NAN;
    gpt2_read_weights(model, wpe, 9, &kept, 1);
    gpt2_write_weights(model, wpe, 9, &bad, 1);
    CHECK_FATAL(EXIT_NONFINITE, "wpe.weight (element 1 of row 1) is nan: nothing is saved", save(out, 1));
    gpt2_write_weights(model, wpe, 9, &kept, 1);
    void *moment = device_at(model->v, OF_OPTIMIZER_STATE, wpe->offset + 9);
    read_floats(&kept, moment, OF_OPTIMIZER_STATE, 1);
    bad = INFINITY;
    write_floats(moment, OF_OPTIMIZER_STATE, &bad, 1);
    CHECK_FATAL(EXIT_NONFINITE, "a moment of wpe.weight (element 1 of row 1) is inf: nothing is saved", save(out, 1));
    write_floats(moment, OF_OPTIMIZER_STATE, &kept, 1);
    CHECK(!checkpoints_any(out) && files_matching(out, "step") == 0);
}

enum { MASKED = 64 };

/* Saves step 2 and keeps one, in a process whose at-th file call misbehaves. Returns its exit code, or 128
 * + the signal that killed it; 0 when there were fewer calls, MASKED when it succeeded all the same. */
static int save_with_fault(const char *out, long at, FaultKind kind) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(open("/dev/null", O_WRONLY), 2);
        faults_arm(at, kind);
        save(out, 2);
        checkpoints_keep(out, 1, 0);
        _exit(faults_calls < at ? 0 : MASKED);
    }
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The step of the newest good checkpoint, or -1. */
static long newest_step(const char *out) {
    char *path = checkpoints_newest_good(out);
    long step = path ? strtol(strrchr(path, '_') + 1, NULL, 10) : -1;
    free(path);
    return step;
}

TEST(nth_call_fails,
     "whichever file call of a save fails: one exit code, and a good checkpoint is there") {
    setup();
    char out[256];
    strcpy(out, new_out("nth"));
    for (FaultKind kind = FAULT_IO; kind <= FAULT_SHORT_WRITE; kind++) {
        int code = MASKED;
        for (long at = 1; code != 0; at++) {
            save(out, 1);
            code = save_with_fault(out, at, kind);
            long step = newest_step(out);
            CHECK(step == 1 || step == 2, "%s at call %ld: newest is %ld", fault_names[kind], at,
                  step);
            bool failed = code == (kind == FAULT_KILL ? 137 : EXIT_RUNTIME);
            CHECK(failed || code == 0 || code == MASKED, "%s at call %ld: exit %d",
                  fault_names[kind], at, code);
            CHECK(failed || step == 2, "%s at call %ld", fault_names[kind], at);
            if (kind != FAULT_KILL)
                CHECK(files_matching(out, ".tmp") == 0, "%s at %ld leaves nothing", fault_names[kind],
                      at);
            files_remove(out);
            mkdir(out, 0777);
        }
    }
}

/* Finds the newest good checkpoint and loads it, in a process whose at-th file call misbehaves. */
static int load_with_fault(const char *out, long at, FaultKind kind) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(open("/dev/null", O_WRONLY), 2);
        faults_arm(at, kind);
        char *path = checkpoints_newest_good(out);
        if (!path) _exit(MASKED); // both seemed unreadable: the caller decides
        TrainerState got;
        json_free(checkpoint_state(path, &got));
        GPT2 *other = gpt2_new(&shape, 1, false, true);
        Weights *weights = weights_open(path);
        checkpoint_load(path, weights, other);
        size_t bytes = model->table.elements * element_size(OF_PARAM);
        bool same = memcmp(other->params, model->params, bytes) == 0 &&
                    memcmp(other->v, model->v, bytes) == 0;
        _exit(!same ? 99 : faults_calls < at ? 0 : MASKED);
    }
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(nth_read_fails, "whichever file call of a resume fails: another checkpoint, or one exit code; "
                     "never wrong weights") {
    setup();
    char out[256];
    strcpy(out, new_out("reads"));
    save(out, 1), save(out, 2);
    for (FaultKind kind = FAULT_IO; kind <= FAULT_KILL; kind++) {
        int code = MASKED;
        for (long at = 1; code != 0; at++) {
            code = load_with_fault(out, at, kind);
            bool failed =
                kind == FAULT_KILL ? code == 137 : code == EXIT_INPUT || code == EXIT_RUNTIME;
            CHECK(failed || code == 0 || code == MASKED, "%s at call %ld: exit %d",
                  fault_names[kind], at, code);
        }
    }
    CHECK(is_good(in_folder("reads/step_00000001")) && is_good(in_folder("reads/step_00000002")));
}

/* Saves as a user who may not write everywhere. */
static void save_unprivileged(const char *out) {
    if (geteuid() == 0 && setuid(65534) != 0) _exit(98);
    save(out, 2);
}

TEST(unwritable, "read-only, missing and vanished output directories are one line, exit 1") {
    setup();
    CHECK_FATAL(EXIT_RUNTIME, "cannot make the directory: No such file",
                save(in_folder("gone"), 1));
    store(in_folder("plain"), (unsigned char *)"x", 1);
    CHECK_FATAL(EXIT_RUNTIME, "cannot make the directory: Not a directory",
                save(in_folder("plain"), 1));
    char out[256];
    strcpy(out, new_out("readonly"));
    save(out, 1);
    chmod(out, 0555);
    CHECK_FATAL(EXIT_RUNTIME, "Permission denied", save_unprivileged(out));
    chmod(out, 0777);
    CHECK(newest_step(out) == 1);
}

int main(int argc, char **argv) {
    int code = test_main(argc, argv);
    gpt2_free(model);
    return code;
}
