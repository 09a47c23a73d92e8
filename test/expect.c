/* expect.c: see expect.h. */
#include "expect.h"

#include <ctype.h>
#include <float.h>

// ---------------------------------------------------------------------------------------------
// Tolerances, relative to the largest value of a tensor

/* One table for both types. Recorded values are themselves rounded to 53 bits in another order of
 * addition, so that a few units of 2^-53 = 1.1e-16 are the least that can be asked for; 2^-24 =
 * 6e-8 is the unit in float. Where sums are long, or results small beside their terms, units add
 * up. */
static const struct {
    const char *name;
    double tolerance[2]; // float, double
} operations[OPERATIONS] = {
    [EMBEDDING] = {"embedding", {2e-7, 5e-16}},             // sums of at most 4 terms
    [LAYERNORM] = {"LayerNorm", {1e-6, 3e-15}},             // three sums over a row, one division
    [LINEAR] = {"linear", {4e-6, 2e-15}},                   // one sum of up to 300 products
    [GELU] = {"GELU", {2e-6, 4e-15}},                       // an exponential and a polynomial
    [ATTENTION] = {"attention", {2e-6, 5e-15}},             // sums within exponentials within sums
    [CLASSIFIER] = {"classifier", {3e-6, 5e-15}},           // logarithm of a sum of exponentials
    [MODEL_LOSS] = {"model: losses", {2e-6, 5e-15}},        // all of the above in series
    [MODEL_GRADIENT] = {"model: gradients", {5e-6, 1e-14}}, // and back
    [CLIP] = {"clipping", {1e-6, 1e-15}},                   // one long sum and its root
    [ADAMW] = {"AdamW", {2e-6, 4e-15}},                     // ten updates, each rounded
    [TRAINING] = {"training", {1e-5, 3e-14}},  // six updates of the model: errors feed back
    [SCHEDULE] = {"schedule", {1e-15, 1e-15}}, // double in either build; one cosine
};

static struct {
    double error;
    char tensor[96];
} worst[OPERATIONS];

// ---------------------------------------------------------------------------------------------
// The formula (dev/record_expectations.py has the same)

/* 64 hashed bits of (name, i): FNV-1a of the name, then SplitMix64's finalizer. */
static uint64_t mix(const char *name, size_t i) {
    uint64_t h = 0xCBF29CE484222325u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 0x100000001B3u;
    uint64_t z = h + (i + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

const Range plain = {.bits = 16, .scale = 1, .base = 0};

void formula_fill(real *out, const char *name, size_t count, Range range) {
    double half = (double)(1 << (range.bits - 1));
    for (size_t i = 0; i < count; i++) {
        double k = (double)(mix(name, i) >> (64 - range.bits)) - half;
        out[i] = (real)(range.base + range.scale * (k / half));
    }
}

void formula_weights(float *out, const char *name, size_t count) {
    bool is_scale = strstr(name, "ln_") && strstr(name, "weight");
    Range range = {.bits = 8, .scale = is_scale ? 1 : 0.25, .base = is_scale ? 1 : 0};
    real *values = calloc(count, sizeof *values);
    formula_fill(values, name, count, range);
    for (size_t i = 0; i < count; i++) out[i] = (float)values[i];
    free(values);
}

int32_t formula_token(const char *name, int vocab, size_t i) {
    return (int32_t)(mix(name, i) % (uint64_t)vocab);
}

void formula_tokens(Id *out, const char *name, int vocab, size_t count) {
    for (size_t i = 0; i < count; i++) out[i] = formula_token(name, vocab, i);
}

void formula_ignore(Id *targets, const char *name, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (mix(name, i) % 3 == 0) targets[i] = -1;
}

// ---------------------------------------------------------------------------------------------
// Poisoned and fenced memory

enum { FENCE = 64 }; // bytes on either side
static struct {
    unsigned char *block;
    size_t bytes; // between the fences
} fenced[64];
static int fenced_count;

static void *fence(size_t bytes) {
    if (fenced_count == sizeof fenced / sizeof fenced[0]) abort();
    unsigned char *block = aligned_alloc(64, (bytes + 2 * FENCE + 63) / 64 * 64);
    if (!block) abort();
    memset(block, 0xF5, FENCE);
    memset(block + FENCE + bytes, 0xF5, FENCE);
    fenced[fenced_count].block = block;
    fenced[fenced_count++].bytes = bytes;
    return block + FENCE;
}

real *fresh(size_t count) {
    real *out = fence(count * sizeof *out);
    for (size_t i = 0; i < count; i++) out[i] = (real)NAN;
    return out;
}

real *fresh_formula(const char *name, size_t count) {
    real *out = fresh(count);
    formula_fill(out, name, count, plain);
    return out;
}

Id *fresh_tokens(const char *name, int vocab, size_t count) {
    Id *out = fence(count * sizeof *out);
    formula_tokens(out, name, vocab, count);
    return out;
}

void release_fresh(void) {
    for (int i = 0; i < fenced_count; i++) {
        const unsigned char *before = fenced[i].block, *after = before + FENCE + fenced[i].bytes;
        bool whole = true;
        for (int b = 0; b < FENCE; b++) whole = whole && before[b] == 0xF5 && after[b] == 0xF5;
        CHECK(whole, "written beyond an end of the test's tensor number %d", i);
        free(fenced[i].block);
    }
    fenced_count = 0;
}

// ---------------------------------------------------------------------------------------------
// Reading

typedef struct {
    char name[64];
    double *values;
    size_t count;
    bool used;
} Recorded;

struct Expectations {
    char path[128];
    Recorded tensors[64];
    int count;
};

static char opened[32][64]; // file names
static int opened_count;

bool expect_was_opened(const char *file) {
    for (int i = 0; i < opened_count; i++)
        if (strcmp(opened[i], file) == 0) return true;
    return false;
}

static void note_opened(const char *path) {
    const char *file = strrchr(path, '/') + 1;
    if (expect_was_opened(file)) return;
    if (opened_count == sizeof opened / sizeof opened[0]) abort();
    snprintf(opened[opened_count++], sizeof opened[0], "%.63s", file);
}

_Noreturn static void unreadable(const Expectations *e, long line, const char *why) {
    printf("%s:%ld: %s (tests run from the directory of the Makefile)\n", e->path, line, why);
    exit(1);
}

/* Adds the tensor that `text`, "NAME SHAPE" with a shape such as 3x5, announces. */
static void begin_tensor(Expectations *e, const char *text, long line) {
    if (e->count == sizeof e->tensors / sizeof e->tensors[0])
        unreadable(e, line, "too many tensors");
    Recorded *t = &e->tensors[e->count++];
    char shape[32];
    if (sscanf(text, "%63s %31s", t->name, shape) != 2) unreadable(e, line, "no name and shape");
    size_t room = 1;
    for (char *at = shape; *at; at += *at == 'x') room *= strtoull(at, &at, 10);
    t->values = calloc(room, sizeof *t->values);
    if (!t->values || room == 0) unreadable(e, line, "a shape without elements");
    for (int i = 0; i < e->count - 1; i++)
        if (strcmp(e->tensors[i].name, t->name) == 0) unreadable(e, line, "a tensor seen before");
    t->used = false;
    t->count = room;
}

Expectations *expect_open(const char *name) {
    Expectations *e = calloc(1, sizeof *e);
    snprintf(e->path, sizeof e->path, "test/expectations/%s.txt", name);
    FILE *file = fopen(e->path, "r");
    if (!file) unreadable(e, 0, "cannot be opened");
    note_opened(e->path);
    char text[256];
    size_t filled = 0;
    long line = 0;
    while (fgets(text, sizeof text, file)) {
        line++;
        if (text[0] == '#') continue;
        if (strncmp(text, "tensor ", 7) == 0) {
            if (e->count && filled != e->tensors[e->count - 1].count)
                unreadable(e, line, "values missing");
            begin_tensor(e, text + 7, line);
            filled = 0;
            continue;
        }
        for (char *at = text, *end; !isspace((unsigned char)*at) && *at; at = end + (*end == ' ')) {
            if (!e->count || filled == e->tensors[e->count - 1].count)
                unreadable(e, line, "values too many");
            e->tensors[e->count - 1].values[filled++] = strtod(at, &end);
            if (end == at) unreadable(e, line, "not a number");
        }
    }
    if (!e->count || filled != e->tensors[e->count - 1].count)
        unreadable(e, line, "values missing at the end");
    fclose(file);
    return e;
}

static Recorded *find(const Expectations *e, const char *tensor) {
    for (int i = 0; i < e->count; i++)
        if (strcmp(e->tensors[i].name, tensor) == 0) return (Recorded *)&e->tensors[i];
    printf("%s: no tensor named %s\n", e->path, tensor);
    exit(1);
}

size_t expect_count(const Expectations *e, const char *tensor) { return find(e, tensor)->count; }

const double *expect_values(Expectations *e, const char *tensor, size_t count) {
    Recorded *t = find(e, tensor);
    if (t->count != count) {
        printf("%s: %s has %zu elements; the test has %zu\n", e->path, tensor, t->count, count);
        exit(1);
    }
    t->used = true;
    return t->values;
}

void expect_rest(Expectations *e) {
    for (int i = 0; i < e->count; i++) e->tensors[i].used = true;
}

void expect_close(Expectations *e) {
    for (int i = 0; i < e->count; i++) {
        CHECK(e->tensors[i].used, "%s: %s was not compared", e->path, e->tensors[i].name);
        free(e->tensors[i].values);
    }
    free(e);
}

// ---------------------------------------------------------------------------------------------
// Comparing

/* Units in the last place of `real` between got and want. */
static double ulps(double got, double want) {
    int exponent;
    frexp(want, &exponent);
    return fabs(got - want) / ldexp(1, exponent - (IN_DOUBLE ? DBL_MANT_DIG : FLT_MANT_DIG));
}

/* Index of the worst element; *error is its error relative to the largest recorded value, infinite
 * when an element is NaN or infinite. */
static size_t worst_element(const double *got, const double *want, size_t count, double *error) {
    double largest = 0, distance = -1;
    size_t at = 0;
    for (size_t i = 0; i < count; i++) largest = fmax(largest, fabs(want[i]));
    for (size_t i = 0; i < count; i++) {
        double d = isfinite(got[i]) && isfinite(want[i]) ? fabs(got[i] - want[i]) : INFINITY;
        if (d > distance) distance = d, at = i;
    }
    *error = distance > 0 ? distance / largest : 0; // a tensor of zeros tolerates nothing
    return at;
}

void expect_doubles(Expectations *e, const char *tensor, const double *got, size_t count,
                    Operation operation) {
    const double *want = expect_values(e, tensor, count);
    double tolerance = operations[operation].tolerance[IN_DOUBLE], error;
    size_t i = worst_element(got, want, count, &error);
    size_t nans = 0;
    for (size_t j = 0; j < count; j++) nans += isnan(got[j]) != 0;
    CHECK(error <= tolerance,
          "%s: %s[%zu]: got %.17g, wanted %.17g: %.3g of the largest (tolerance %.1g), %.1f ulps%s",
          e->path, tensor, i, got[i], want[i], error, tolerance, ulps(got[i], want[i]),
          nans ? named("; %zu of %zu are NaN", nans, count) : "");
    if (error > worst[operation].error) {
        worst[operation].error = error;
        snprintf(worst[operation].tensor, sizeof worst[operation].tensor, "%s %s",
                 strrchr(e->path, '/') + 1, tensor);
    }
}

void expect_tensor(Expectations *e, const char *tensor, const real *got, size_t count,
                   Operation operation, double factor) {
    double *values = calloc(count, sizeof *values);
    for (size_t i = 0; i < count; i++) values[i] = (double)got[i] / factor;
    expect_doubles(e, tensor, values, count, operation);
    free(values);
}

const char *named(const char *format, ...) {
    static char names[32][128];
    static int next;
    char *name = names[next++ % 32];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof names[0], format, args);
    va_end(args);
    return name;
}

void expect_report(void) {
    printf("  %-18s %-11s %-10s (relative to the largest value, %s)\n", "operation", "worst error",
           "tolerance", IN_DOUBLE ? "double" : "float");
    for (int i = 0; i < OPERATIONS; i++)
        printf("  %-18s %-11.2g %-10.1g %s\n", operations[i].name, worst[i].error,
               operations[i].tolerance[IN_DOUBLE], worst[i].tensor);
}
