/* test_elementary.c: log, exp, sine, cosine and powers against the C library in long double, and their
 * bits against known ones, which every machine must give. */
#include "test.h"

#include "../llmc/base/elementary.h"
#include "../llmc/base/rng.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const long double PI = 3.14159265358979323846264338327950288L;

/* The error of x in units of the last place of the truth. */
static double ulps(double x, long double truth) {
    int exponent;
    frexp((double)truth, &exponent);
    return (double)(fabsl((long double)x - truth) / ldexpl(1, exponent - DBL_MANT_DIG));
}

/* The larger error; NaN is the largest. */
static double worse(double a, double b) { return a <= b || isnan(b) ? b : a; }

/* The i-th of many numbers in 0 .. 1, evenly but irregularly spread. */
static double spread(int i) { return fmod(i * 0.6180339887498949, 1); }

TEST(log_accuracy, "the logarithm is within 1 ulp, near 1 and from end to end") {
    double worst = 0;
    for (int i = 1; i < 200000; i++) {
        double near = 0.5 + spread(i), far = ldexp(near, i % 2000 - 1000);
        worst = worse(worst, ulps(elementary_log(near), logl(near)));
        worst = worse(worst, ulps(elementary_log(far), logl(far)));
    }
    CHECK_NEAR(worst, 0, 1);
    CHECK_NEAR(ulps(elementary_log(DBL_MAX), logl(DBL_MAX)), 0, 1);
    CHECK_NEAR(ulps(elementary_log(0x1p-1074), logl(0x1p-1074L)), 0, 1);
    for (int i = 1; i < 60; i++) {
        double x = 1 + ldexp(1, -i), y = 1 - ldexp(1, -i);
        CHECK_NEAR(ulps(elementary_log(x), logl(x)) + ulps(elementary_log(y), logl(y)), 0, 2);
    }
}

TEST(log_ends, "the logarithm of 1 is 0; other numbers than positive ones are answered as by the C library") {
    CHECK(elementary_log(1) == 0 && elementary_log(0) == -INFINITY && elementary_log(-0.0) == -INFINITY);
    CHECK(elementary_log(INFINITY) == INFINITY);
    CHECK(isnan(elementary_log(-1)) && isnan(elementary_log(-INFINITY)) && isnan(elementary_log(NAN)));
}

TEST(exp_accuracy, "exp is within 1 ulp over its whole range") {
    double worst = 0;
    for (int i = 0; i < 200000; i++) {
        double far = -708.3 + 1418 * spread(i), near = 2 * spread(i) - 1;
        worst = worse(worst, ulps(elementary_exp(far), expl(far)));
        worst = worse(worst, ulps(elementary_exp(near), expl(near)));
    }
    CHECK_NEAR(worst, 0, 1);
    CHECK(elementary_exp(0) == 1 && elementary_exp(-INFINITY) == 0 && elementary_exp(-708.4) == 0);
    CHECK(elementary_exp(INFINITY) == INFINITY && elementary_exp(709.79) == INFINITY);
    CHECK(isfinite(elementary_exp(709.78)) && isnan(elementary_exp(NAN)));
}

TEST(circle, "sine and cosine are within 2 ulp, and exact at every quarter of a turn") {
    double worst = 0;
    for (int i = 0; i < 200000; i++) {
        double turns = (i % 2 ? 1 : -3) * spread(i), sine, cosine;
        elementary_sine_cosine(turns, &sine, &cosine);
        int quarters = (int)rint(4 * turns);
        long double rest = 2 * PI * (long double)(turns - quarters / 4.0);
        long double along = quarters % 2 ? cosl(rest) : sinl(rest), across = quarters % 2 ? -sinl(rest) : cosl(rest);
        long double sign = quarters & 2 ? -1 : 1;
        worst = worse(worst, worse(ulps(sine, sign * along), ulps(cosine, sign * across)));
        CHECK(elementary_cosine(turns) == cosine);
    }
    CHECK_NEAR(worst, 0, 2);
    for (int quarter = -8; quarter <= 8; quarter++) {
        static const int exact[] = {0, 1, 0, -1};
        double sine, cosine;
        elementary_sine_cosine(quarter / 4.0, &sine, &cosine);
        CHECK(sine == exact[quarter & 3] && cosine == exact[(quarter + 1) & 3], "quarter %d", quarter);
    }
}

TEST(power_accuracy, "powers are within 1 ulp, for small exponents and for those of a long run") {
    const double bases[] = {0.9, 0.95, 0.99, 0.999, 0.9999, 0.999999, 0.5};
    for (int b = 0; b < 7; b++)
        for (int64_t t = 0; t < 4000000; t = t < 100 ? t + 1 : t * 3 / 2) {
            long double truth = powl(bases[b], (long double)t);
            if (truth < 1e-290L) break;
            CHECK(ulps(elementary_power(bases[b], t), truth) <= 1, "%g ^ %lld", bases[b], (long long)t);
        }
    CHECK(elementary_power(0, 0) == 1 && elementary_power(0, 3) == 0 && elementary_power(1, 1 << 30) == 1);
    CHECK(elementary_power(0.3, 1) == 0.3 && elementary_power(0.9, 1000000) == 0);
}

/* A hash of the bits of x and of all before it. */
static uint64_t with_bits(uint64_t hash, double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return hash_add(hash, bits);
}

TEST(known_bits, "the bits are those of every other machine") {
    enum { LOG, EXP, SINE, COSINE, POWER, NORMAL, FUNCTIONS };
    static const char *const names[FUNCTIONS] = {"log", "exp", "sine", "cosine", "power", "normal"};
    static const uint64_t known[FUNCTIONS] = {
        0xecfbfb902b98b5ad, 0x4f2445a978d8933c, 0x21c8e485b0fae31c,
        0x1b158592188eabd8, 0x702437f7f96dc8a7, 0xff608b07c01aee92};
    uint64_t hash[FUNCTIONS] = {0};
    for (int i = 1; i <= 10000; i++) {
        double x = spread(i), sine, cosine, normal[2];
        elementary_sine_cosine(x, &sine, &cosine);
        rng_normal_pair(normal, 42, (uint64_t)i, 1);
        const double value[FUNCTIONS] = {elementary_log(x), elementary_exp(-10 * x), sine, cosine,
                                         elementary_power(x, i % 100), normal[0]};
        for (int f = 0; f < FUNCTIONS; f++) hash[f] = with_bits(hash[f], value[f]);
    }
    for (int f = 0; f < FUNCTIONS; f++)
        CHECK(hash[f] == known[f], "%s: %#llx", names[f], (unsigned long long)hash[f]);
}

int main(int argc, char **argv) { return test_main(argc, argv); }
