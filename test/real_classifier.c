/* real_classifier.c: the classifier against the plain loops in double. */
#include "real_data.h"
#include "test.h"

typedef struct {
    int N, C, V, Vp;
} Shape;

static const Shape shapes[] = {{1, 1, 1, 128},     {3, 7, 100, 128},    {17, 33, 128, 128},
                               {40, 20, 515, 640}, {130, 5, 257, 384},  {300, 6, 4999, 5120},
                               {9, 65, 50, 128},   {8300, 3, 101, 128}, {257, 2, 4100, 4224}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Everything one call takes and gives. */
typedef struct {
    Shape s;
    Data x, wte, logits, losses, dx, dwte;
    Id *targets;
} Call;

static Call call_new(Shape s) {
    Call c = {.s = s,
              .x = data_new(s.N * s.C, 1),
              .wte = data_new(s.Vp * s.C, 2),
              .logits = data_new(classifier_chunk(s.N, s.Vp) * s.Vp, 3),
              .losses = data_new(s.N, 4),
              .dx = data_new(s.N * s.C, 5),
              .dwte = data_new(s.Vp * s.C, 6),
              .targets = malloc((size_t)s.N * sizeof(Id))};
    for (int n = 0; n < s.N; n++) c.targets[n] = n % 5 == 2 ? -1 : n * 37 % s.V;
    return c;
}

static void call_free(Call *c) {
    data_free(&c->x), data_free(&c->wte), data_free(&c->logits), data_free(&c->losses);
    data_free(&c->dx), data_free(&c->dwte);
    free(c->targets);
}

static void run(Call *c, double scale, bool gradient, bool accumulate) {
    Shape s = c->s;
    classifier(c->losses.at, gradient ? c->dx.at : NULL, gradient ? c->dwte.at : NULL, c->logits.at,
               c->x.at, c->wte.at, c->targets, scale, s.N, s.C, s.V, s.Vp, accumulate);
}

/* The same call of the plain loops. */
static void run_plain(Call *c, double scale, bool accumulate) {
    Shape s = c->s;
    double *logits = calloc((size_t)plain_classifier_chunk(s.N, s.Vp) * s.Vp, sizeof *logits);
    plain_classifier(c->losses.want, c->dx.want, c->dwte.want, logits, c->x.want, c->wte.want,
                     c->targets, scale, s.N, s.C, s.V, s.Vp, accumulate);
    free(logits);
}

TEST(against_plain,
     "losses, dx and dwte, with ignored targets, added and written; padding gets 0") {
    for (int i = 0; i < SHAPES; i++)
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            Shape s = shapes[i];
            double scale = 2.5 / s.N, unit = 64 * REAL_EPSILON * scale;
            int failures = test_failures;
            Call c = call_new(s);
            Data before = data_new(s.Vp * s.C, 6);
            run(&c, scale, true, accumulate);
            run_plain(&c, scale, accumulate);
            data_check("losses", &c.losses, 16 * REAL_EPSILON * (1 + log(s.V)) / 2);
            data_check("dx", &c.dx, unit);
            data_check("dwte", &c.dwte, unit * s.N / 8 + 4 * REAL_EPSILON * accumulate);
            for (int j = s.V * s.C; j < s.Vp * s.C; j++)
                CHECK(c.dwte.at[j] == (accumulate ? before.at[j] : 0), "padding");
            if (test_failures > failures) printf("  (N %d, C %d, V %d)\n", s.N, s.C, s.V);
            data_free(&before), call_free(&c);
        }
}

TEST(losses_only, "without dx the same losses, bit for bit, and no gradient is touched") {
    for (int i = 0; i < SHAPES; i++) {
        Call both = call_new(shapes[i]), only = call_new(shapes[i]);
        Data before = data_new(shapes[i].Vp * shapes[i].C, 6);
        run(&both, 1, true, false);
        run(&only, 1, false, false);
        size_t losses = (size_t)shapes[i].N * sizeof(real);
        CHECK(memcmp(both.losses.at, only.losses.at, losses) == 0);
        CHECK(memcmp(only.dwte.at, before.at, (size_t)before.count * sizeof(real)) == 0);
        data_free(&before), call_free(&both), call_free(&only);
    }
}

TEST(padding, "nothing in a padded row of wte matters, be it huge or NaN") {
    static const double bad[] = {1e30, NAN, INFINITY};
    Shape s = {20, 9, 200, 256};
    Call good = call_new(s);
    run(&good, 1, true, false);
    for (int b = 0; b < 3; b++) {
        Call c = call_new(s);
        for (int j = s.V * s.C; j < s.Vp * s.C; j++) c.wte.at[j] = (real)bad[b];
        run(&c, 1, true, false);
        CHECK(memcmp(c.losses.at, good.losses.at, (size_t)s.N * sizeof(real)) == 0);
        CHECK(memcmp(c.dx.at, good.dx.at, (size_t)(s.N * s.C) * sizeof(real)) == 0);
        CHECK(memcmp(c.dwte.at, good.dwte.at, (size_t)(s.Vp * s.C) * sizeof(real)) == 0);
        call_free(&c);
    }
    call_free(&good);
}

TEST(all_ignored, "with no target at all, losses and gradients are 0, even where x is NaN") {
    Call c = call_new((Shape){300, 4, 4200, 4224});
    for (int n = 0; n < c.s.N; n++) c.targets[n] = -1;
    c.x.at[0] = (real)NAN;
    run(&c, 1, true, false);
    for (int i = 0; i < c.losses.count; i++) CHECK(c.losses.at[i] == 0);
    for (int i = 0; i < c.dx.count; i++) CHECK(c.dx.at[i] == 0);
    call_free(&c);
}

TEST(rows_alone, "a row's loss and dx have the same bits alone as in any chunk") {
    Shape s = {300, 6, 4999, 5120}, one = {1, s.C, s.V, s.Vp};
    Call whole = call_new(s), single = call_new(one);
    CHECK(classifier_chunk(s.N, s.Vp) < s.N, "more than one chunk is meant to be seen");
    run(&whole, 0.25, true, false);
    for (int n = 0; n < s.N; n += 23) {
        memcpy(single.x.at, whole.x.at + n * s.C, (size_t)s.C * sizeof(real));
        single.targets[0] = whole.targets[n];
        run(&single, 0.25, true, false);
        CHECK(memcmp(single.losses.at, whole.losses.at + n, sizeof(real)) == 0, "row %d", n);
        CHECK(memcmp(single.dx.at, whole.dx.at + n * s.C, (size_t)s.C * sizeof(real)) == 0, "%d",
              n);
    }
    call_free(&whole), call_free(&single);
}

TEST(extremes, "logits of 1e4 neither overflow nor lose the loss; NaN and Inf give NaN") {
    Shape s = {4, 1, 300, 384};
    Call c = call_new(s);
    for (int v = 0; v < s.V; v++) c.wte.at[v] = v == 7 ? 1 : v == 8 ? -1 : 0;
    for (int n = 0; n < s.N; n++) c.targets[n] = n < 2 ? 7 : 8, c.x.at[n] = 10000;
    c.x.at[1] = (real)NAN, c.x.at[3] = (real)INFINITY;
    run(&c, 1, true, false);
    CHECK(c.losses.at[0] == 0 && c.dx.at[0] == 0, "the target is certain");
    CHECK(c.losses.at[2] == 20000, "the target is 20000 below: got %g", (double)c.losses.at[2]);
    CHECK(c.dx.at[2] == 2, "pulled from 7 to 8: got %g", (double)c.dx.at[2]);
    CHECK(isnan(c.losses.at[1]) && isnan(c.dx.at[1]), "NaN");
    CHECK(isnan(c.losses.at[3]) && isnan(c.dx.at[3]), "Inf");
    call_free(&c);
}

TEST(threads, "1, 2 and 3 threads give the same bits") {
#ifdef _OPENMP
    int before = omp_get_max_threads();
    Shape s = {300, 6, 4999, 5120};
    Call one = call_new(s), more = call_new(s);
    omp_set_num_threads(1);
    run(&one, 1, true, false);
    static const int counts[] = {2, 3};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        omp_set_num_threads(counts[i]);
        run(&more, 1, true, false);
        CHECK(memcmp(one.losses.at, more.losses.at, (size_t)s.N * sizeof(real)) == 0);
        CHECK(memcmp(one.dx.at, more.dx.at, (size_t)(s.N * s.C) * sizeof(real)) == 0);
        CHECK(memcmp(one.dwte.at, more.dwte.at, (size_t)(s.Vp * s.C) * sizeof(real)) == 0);
    }
    omp_set_num_threads(before);
    call_free(&one), call_free(&more);
#else
    SKIP("built without OpenMP");
#endif
}

int main(int argc, char **argv) { return test_main(argc, argv); }
