/* real_vec.c: the vector exp and GELU against the C library in long double; every lane count. */
#include "test.h"

#include "../llmc/cpu/gelu.h"
#include "../llmc/cpu/vec.h"

static const double ULP = sizeof(real) == 4 ? 0x1p-23 : 0x1p-52; // of 1

static real exp_of(real x) { return vec_exp(vec_set1(x))[0]; }

static long double exact_gelu(long double x) {
    long double u = sqrtl(2 / acosl(-1)) * (x + 0.044715L * x * x * x);
    return 0.5L * x * (1 + tanhl(u));
}

/* gelu' by the product rule on the form with tanh, where sech^2 = 4 e^-2|u| / (1 + e^-2|u|)^2. */
static long double exact_gelu_grad(long double x) {
    long double k = sqrtl(2 / acosl(-1)), u = k * (x + 0.044715L * x * x * x);
    long double e = expl(-2 * fabsl(u)), sech2 = 4 * e / ((1 + e) * (1 + e));
    long double half = u < 0 ? e / (1 + e) : 1 / (1 + e); // (1 + tanh u) / 2
    return half + 0.5L * x * sech2 * k * (1 + 3 * 0.044715L * x * x);
}

static real gelu_grad_of(real x) {
    real dx = 1;
    gelu_grad_row(&dx, &x, 1);
    return dx;
}

static real gelu_of(real x) {
    gelu_row(&x, &x, 1);
    return x;
}

TEST(exp_accuracy, "exp is within 2 ulp of the truth over its whole range") {
    double lowest = sizeof(real) == 4 ? -87.3 : -708.3, highest = sizeof(real) == 4 ? 88.7 : 709.7;
    double worst = 0;
    for (int i = 0; i <= 200000; i++) {
        real x = (real)(i % 2 ? lowest + (highest - lowest) * i / 200000 : (i - 100000) * 1e-5);
        long double want = expl(x);
        double error = (double)fabsl(exp_of(x) / want - 1);
        if (!(error <= worst)) worst = error;
    }
    CHECK_NEAR(worst, 0, 2 * ULP);
}

TEST(exp_ends, "exp(0) is 1; Inf, -Inf, NaN, overflow and underflow come out as they should") {
    const real huge = sizeof(real) == 4 ? 88.73 : 709.79, max = sizeof(real) == 4 ? 88.722 : 709.78;
    CHECK(exp_of(0) == 1 && exp_of((real)-0.0) == 1);
    CHECK(exp_of(-INFINITY) == 0 && exp_of(-1e30) == 0 && exp_of(-750) == 0);
    CHECK(exp_of(INFINITY) == INFINITY && exp_of(1e30) == INFINITY && exp_of(huge) == INFINITY);
    CHECK(isfinite(exp_of(max)) && exp_of(max) > (sizeof(real) == 4 ? 3.39e38 : 1.79e308));
    CHECK(isnan(exp_of(NAN)) && isnan(exp_of(-NAN)));
    for (real_bits payload = 1; payload < (real_bits)(1 / ULP); payload *= 2) {
        vec_bits nan = (vec_bits)vec_set1(INFINITY) + payload;
        CHECK(isnan(vec_exp((vec)nan)[0]), "payload %lld", (long long)payload);
    }
    const double cut = sizeof(real) == 4 ? -87.336 : -708.396; // ln of the smallest normal number
    for (int i = -1000; i <= 1000; i++) {
        real e = exp_of((real)(cut + i * 1e-3));
        if (i > 10) CHECK(e > 0);
        if (i < 0) CHECK(e == 0);
        CHECK(e == 0 || e >= (sizeof(real) == 4 ? 0x1p-126 : 0x1p-1022), "no denormal result");
    }
}

TEST(lanes, "sum, largest and selection see every lane, and only theirs") {
    real x[VEC], other[VEC];
    for (int i = 0; i < VEC; i++) x[i] = (real)(1 << i), other[i] = 3;
    CHECK(vec_sum(vec_load(x)) == (real)((1 << VEC) - 1));
    for (int i = 0; i < VEC; i++) {
        vec v = vec_load(other);
        v[i] = 7;
        CHECK(vec_max(v) == 7);
        vec larger = vec_larger(v, vec_set1(5));
        for (int j = 0; j < VEC; j++) CHECK(larger[j] == (i == j ? 7 : 5));
    }
    CHECK(signbit(vec_set1((real)-0.0)[0]) && isnan(vec_set1(NAN)[VEC - 1]));
}

TEST(tails, "a row's tail gives the bits of a full vector and touches nothing beyond") {
    enum { N = 5 * VEC };
    real x[N], whole[N], part[N + 1];
    for (int i = 0; i < N; i++) x[i] = (real)(0.37 * i - 9);
    gelu_row(whole, x, N);
    for (size_t n = 0; n <= N; n++) {
        for (int i = 0; i <= N; i++) part[i] = 12345;
        gelu_row(part, x, n);
        CHECK(memcmp(part, whole, n * sizeof(real)) == 0, "n %zu", n);
        for (size_t i = n; i <= N; i++) CHECK(part[i] == 12345, "n %zu, element %zu", n, i);
    }
    for (int i = 0; i < N; i++) whole[i] = 2;
    gelu_grad_row(whole, x, N);
    for (size_t n = 0; n <= N; n++) {
        for (int i = 0; i <= N; i++) part[i] = 2;
        gelu_grad_row(part, x, n);
        CHECK(memcmp(part, whole, n * sizeof(real)) == 0, "n %zu", n);
        for (size_t i = n; i <= N; i++) CHECK(part[i] == 2, "n %zu, element %zu", n, i);
    }
}

TEST(gelu_accuracy, "GELU and its gradient agree with the tanh form in long double") {
    for (int i = -60000; i <= 60000; i++) {
        real x = (real)(i * 2e-4);
        long double want = exact_gelu(x), grad = exact_gelu_grad(x);
        if (x > -2) CHECK_NEAR(gelu_of(x), want, 8 * ULP * fabsl(want)); // below, the truth cancels
        CHECK_NEAR(gelu_of(x), want, 8 * ULP);
        CHECK_NEAR(gelu_grad_of(x), grad, 8 * ULP);
    }
}

TEST(gelu_grad_differences, "the gradient is the slope, by central differences in long double") {
    for (int i = -600; i <= 600; i++) {
        long double x = i * 0.01L, h = 1e-5L;
        long double slope = (exact_gelu(x + h) - exact_gelu(x - h)) / (2 * h);
        CHECK_NEAR(gelu_grad_of((real)x), slope, sizeof(real) == 4 ? 1e-6 : 1e-9);
    }
}

TEST(gelu_far, "far out GELU is x or 0, its gradient 1 or 0, and NaN stays NaN") {
    const real far[] = {50, 1e4, 1e6};
    for (int i = 0; i < 3; i++) {
        CHECK(gelu_of(far[i]) == far[i] && gelu_grad_of(far[i]) == 1, "x %g", (double)far[i]);
        CHECK(gelu_of(-far[i]) == 0, "x %g", (double)-far[i]);
        CHECK_NEAR(gelu_grad_of(-far[i]), 0, 1e-15);
    }
    CHECK(gelu_of(0) == 0 && gelu_grad_of(0) == (real)0.5);
    CHECK(isnan(gelu_of(NAN)) && isnan(gelu_grad_of(NAN)));
    CHECK(!isfinite(gelu_of(INFINITY)) && !isfinite(gelu_grad_of(INFINITY)));
}

int main(int argc, char **argv) { return test_main(argc, argv); }
