/* backend.c: see backend.h. Next: backend_layers.c. */
#include "backend.h"

enum { GUARD = 128, ARRAYS_MAX = 64 }; // elements before and after; keeps arrays aligned

/* Allowed is relative * |wanted| + absolute * the largest |wanted|. On top, in bf16, what is stored
 * rounded may be off by half a unit in the last place, 2^-8 of itself. Where the absolute part is large in
 * bf16, something is rounded on the way: logits, probabilities, the sum before bias or GELU. */
static const struct {
    const char *name;
    double relative[2], absolute[2]; // float32, bf16
} families[FAMILIES] = {
    [EMBEDDING] = {"embedding", {2e-7, 2e-7}, {1e-6, 1e-6}},
    [LAYERNORM] = {"LayerNorm", {1e-6, 1e-6}, {4e-6, 4e-6}},
    [LINEAR] = {"linear", {1e-6, 4e-6}, {4e-6, 4e-3}},
    [GELU] = {"GELU", {1e-6, 4e-3}, {4e-6, 1e-3}},
    [ATTENTION] = {"attention", {2e-6, 4e-3}, {4e-6, 8e-3}},
    [CLASSIFIER] = {"classifier", {2e-6, 4e-3}, {4e-6, 8e-3}},
    [SQUARES] = {"square sums", {1e-12, 1e-12}, {0, 0}},
    [ADAMW] = {"AdamW", {1e-6, 1e-6}, {1e-6, 1e-6}},
};

static Array *arrays[ARRAYS_MAX];
static int array_count;
static size_t shift;
static uint64_t random_state = 1;

bool low_precision(void) { return element_size(OF_ACT) == 2; }

bool set_order(int order) {
    static const char *const orders[] = {"forward", "reversed", "random"};
    return setenv("EMULATOR_ORDER", orders[order], 1) == 0;
}

static double random_value(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(random_state >> 40) / (double)(1 << 23) - 1;
}

void arrays_shift(size_t elements) { shift = elements; }

static void fill(void *at, ElementKind kind, size_t count, float value) {
    float *host = malloc((count + 1) * sizeof *host);
    for (size_t i = 0; i < count; i++) host[i] = value;
    if (kind == OF_ID) {
        int32_t *ids = (int32_t *)host;
        for (size_t i = 0; i < count; i++) ids[i] = (int32_t)value;
        write_ids(at, ids, count);
    } else {
        write_floats(at, kind, host, count);
    }
    free(host);
}

static Array *array_new(ElementKind kind, size_t count) {
    if (array_count == ARRAYS_MAX) abort();
    Array *array = calloc(1, sizeof *array);
    arrays[array_count++] = array;
    array->kind = kind;
    array->count = count;
    array->block = device_alloc((count + shift + 2 * GUARD) * element_size(kind), "a test's array");
    array->at = device_at(array->block, kind, GUARD + shift);
    fill(array->block, kind, count + shift + 2 * GUARD, 7);
    array->values = calloc(count + 1, sizeof(double));
    array->want = calloc(count + 1, sizeof(double));
    return array;
}

/* `count` elements on the device from `at` on, as doubles. */
static double *read_back(const void *at, ElementKind kind, size_t count) {
    float *host = malloc((count + 1) * sizeof *host);
    double *values = malloc((count + 1) * sizeof *values);
    read_floats(host, at, kind, count);
    for (size_t i = 0; i < count; i++) values[i] = (double)host[i];
    free(host);
    return values;
}

double *contents(const Array *array) { return read_back(array->at, array->kind, array->count); }

Array *input(ElementKind kind, size_t count, double scale) {
    Array *array = array_new(kind, count);
    float *host = malloc((count + 1) * sizeof *host);
    for (size_t i = 0; i < count; i++) host[i] = (float)(scale * random_value());
    write_floats(array->at, kind, host, count);
    free(host);
    free(array->values);
    array->values = contents(array); // rounded
    return array;
}

Array *output(ElementKind kind, size_t count) {
    Array *array = array_new(kind, count);
    fill(array->at, kind, count, NAN);
    for (size_t i = 0; i < count; i++) array->want[i] = array->values[i] = NAN;
    return array;
}

Array *in_out(ElementKind kind, size_t count, double scale) {
    Array *array = input(kind, count, scale);
    memcpy(array->want, array->values, count * sizeof(double));
    return array;
}

Array *ids_of(const int32_t *ids, size_t count) {
    Array *array = array_new(OF_ID, count);
    write_ids(array->at, ids, count);
    return array;
}

void check(const Array *array, Family family, const char *name) {
    double *got = contents(array), largest = 0, worst = 0;
    bool stored_low = element_size(array->kind) == 2;
    size_t at = 0;
    for (size_t i = 0; i < array->count; i++) largest = fmax(largest, fabs(array->want[i]));
    for (size_t i = 0; i < array->count; i++) {
        double relative = families[family].relative[low_precision()] + (stored_low ? 0x1p-8 : 0);
        double allowed =
            relative * fabs(array->want[i]) + families[family].absolute[low_precision()] * largest;
        double error = fabs(got[i] - array->want[i]);
        if (error == 0) continue; // also where both are 0 and nothing is allowed
        double excess = isfinite(got[i]) && isfinite(array->want[i]) ? error / allowed : INFINITY;
        if (excess > worst) worst = excess, at = i;
    }
    CHECK(worst <= 1, "%s, %s[%zu of %zu]: got %.9g, wanted %.9g, %.3g times what is allowed",
          families[family].name, name, at, array->count, got[at], array->want[at], worst);
    free(got);
}

static void check_guards(const Array *array, int number) {
    size_t before =
        GUARD + (size_t)((char *)array->at - (char *)device_at(array->block, array->kind, GUARD)) /
                    element_size(array->kind);
    const void *ends[2] = {array->block, device_at(array->at, array->kind, array->count)};
    size_t counts[2] = {before, GUARD};
    if (array->kind == OF_ID) return; // no kernel writes ids
    for (int end = 0; end < 2; end++) {
        double *guard = read_back(ends[end], array->kind, counts[end]);
        bool whole = true;
        for (size_t i = 0; i < counts[end]; i++) whole = whole && guard[i] == 7;
        CHECK(whole, "array %d of %zu elements: something was written %s it", number, array->count,
              end ? "after" : "before");
        free(guard);
    }
}

void release(void) {
    for (int i = 0; i < array_count; i++) {
        Array *array = arrays[i];
        size_t moved =
            (size_t)((char *)array->at - (char *)array->block) / element_size(array->kind);
        check_guards(array, i);
        device_free(array->block, (array->count + moved + GUARD) * element_size(array->kind));
        free(array->values);
        free(array->want);
        free(array);
    }
    array_count = 0;
    random_state = 1;
}
