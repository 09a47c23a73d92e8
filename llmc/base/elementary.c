/* elementary.c: see elementary.h. Each function first reduces its argument, exactly or with a correction
 * kept beside it, and then sums a Taylor series up to the last term above 2^-56 of the result. */
#include "elementary.h"

#include <math.h>

/* coefficient[0] + coefficient[1] x + ... + coefficient[count - 1] x^(count - 1), count being even. Even and
 * odd powers are summed side by side, because a processor can do both at once. */
static double polynomial(const double *coefficient, int count, double x) {
    double x2 = x * x, even = 0, odd = 0;
    for (int i = count - 2; i >= 0; i -= 2) {
        even = even * x2 + coefficient[i];
        odd = odd * x2 + coefficient[i + 1];
    }
    return even + odd * x;
}

#define POLYNOMIAL(table, x) polynomial(table, sizeof(table) / sizeof *(table), x)

/* ln 2 in two parts. The first has zeros at its end, so that its product with any exponent is exact. */
static const double ln2_high = 0x1.62e42fefap-1, ln2_low = 0x1.cf79abc9e3b3ap-40;

/* With x = 2^e m, m in [sqrt(1/2), sqrt(2)), f = m - 1 and s = f / (2 + f):
 *     ln m = ln((1 + s) / (1 - s)) = 2 s + 2 s^3/3 + 2 s^5/5 + ...,  and 2 s = f - s f.
 * f is exact, so that only its small correction s (f - series) is rounded. */
double elementary_log(double x) {
    if (isnan(x) || x == INFINITY) return x;
    if (x <= 0) return x == 0 ? -INFINITY : NAN;
    int exponent;
    double m = frexp(x, &exponent); // in [1/2, 1)
    if (m < 0.70710678118654752) m *= 2, exponent--;
    static const double atanh[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
                                   2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21};
    double f = m - 1, s = f / (2 + f), s2 = s * s, e = exponent;
    double correction = s * (f - s2 * POLYNOMIAL(atanh, s2));
    return e * ln2_high + (f - (correction - e * ln2_low));
}

/* x = n ln 2 + r, |r| <= ln 2 / 2: e^x = 2^n e^r. */
double elementary_exp(double x) {
    if (isnan(x)) return x;
    if (x > 709.782712893383996) return INFINITY;
    if (x < -708.3964185322641) return 0;
    double n = rint(x * 1.4426950408889634);
    double high = x - n * ln2_high, low = n * ln2_low, r = high - low;
    static const double from_square[] = {
        1.0 / 2,      1.0 / 6,       1.0 / 24,       1.0 / 120,       1.0 / 720,       1.0 / 5040,
        1.0 / 40320,  1.0 / 362880,  1.0 / 3628800,  1.0 / 39916800,  1.0 / 479001600, 1.0 / 6227020800};
    double left = (high - r) - low; // what the rounding of r has taken
    return ldexp(1 + (r + (r * r * POLYNOMIAL(from_square, r) + left)), (int)n);
}

/* Of an angle in [-pi/4, pi/4]. */
static double sine_near_0(double x) {
    static const double from_cube[] = {-1.0 / 6,           1.0 / 120,          -1.0 / 5040,
                                       1.0 / 362880,       -1.0 / 39916800,    1.0 / 6227020800,
                                       -1.0 / 1307674368000, 1.0 / 355687428096000};
    double x2 = x * x;
    return x + x * x2 * POLYNOMIAL(from_cube, x2);
}

static double cosine_near_0(double x) {
    static const double from_fourth[] = {1.0 / 24,          -1.0 / 720,          1.0 / 40320,
                                         -1.0 / 3628800,    1.0 / 479001600,     -1.0 / 87178291200,
                                         1.0 / 20922789888000, -1.0 / 6402373705728000};
    double x2 = x * x;
    return 1 - (x2 / 2 - x2 * x2 * POLYNOMIAL(from_fourth, x2));
}

/* turns = quarters / 4 + rest, exactly, |rest| <= 1/8. */
void elementary_sine_cosine(double turns, double *sine, double *cosine) {
    double quarters = rint(4 * turns);
    double x = 6.283185307179586477 * (turns - quarters / 4);
    double s = sine_near_0(x), c = cosine_near_0(x);
    switch ((int64_t)quarters & 3) {
    case 0: *sine = s, *cosine = c; break;
    case 1: *sine = c, *cosine = -s; break;
    case 2: *sine = -s, *cosine = -c; break;
    default: *sine = -c, *cosine = s;
    }
}

double elementary_cosine(double turns) {
    double sine, cosine;
    elementary_sine_cosine(turns, &sine, &cosine);
    return cosine;
}

/* high + low, a number of twice the digits, times another. */
typedef struct {
    double high, low;
} Double2;

static Double2 product(Double2 a, Double2 b) {
    double high = a.high * b.high;
    double low = fma(a.high, b.high, -high) + (a.high * b.low + a.low * b.high);
    double sum = high + low;
    return (Double2){sum, low - (sum - high)};
}

/* By squaring, with twice the digits, because each square doubles the error. */
double elementary_power(double base, int64_t exponent) {
    Double2 power = {1, 0}, square = {base, 0};
    for (; exponent > 0; exponent /= 2) {
        if (exponent % 2) power = product(power, square);
        square = product(square, square);
    }
    return power.high;
}
