/* gelu.c: GELU in the tanh form of Hendrycks and Gimpel 2016 (GPT-2's "gelu_new"),
 *     gelu(x) = x/2 (1 + tanh(u)),  u = sqrt(2/pi) (x + 0.044715 x^3),
 * computed as x sigmoid(2u), the same function: (1 + tanh(u)) / 2 = 1 / (1 + e^-2u). That form needs one exp and
 * loses no precision where tanh(u) is near -1. */
#include "gelu.h"

#include "vec.h"

static const real SLOPE = 1.5957691216057308;   // 2 sqrt(2/pi)
static const real CUBIC = 0.071354816272600242; // 2 sqrt(2/pi) 0.044715

void gelu_row(real *out, const real *pre, size_t n) {
    for (size_t i = 0; i < n; i += VEC) {
        vec x = vec_load_n(pre + i, n - i);
        vec e = vec_exp(-x * (SLOPE + CUBIC * x * x));
        vec_store_n(out + i, x / (1 + e), n - i);
    }
}

/* With s = sigmoid(2u) = 1 / (1 + e) and e = e^-2u:
 *   gelu  = x s
 *   gelu' = s + x s' = s + x s (1 - s) (2u)',  1 - s = e s,  (2u)' = SLOPE + 3 CUBIC x^2 */
void gelu_grad_row(real *dx, const real *pre, size_t n) {
    const vec most = vec_set1(80); // e stays finite, so that e s is 1 there, and not Inf times 0
    for (size_t i = 0; i < n; i += VEC) {
        vec x = vec_load_n(pre + i, n - i);
        vec minus_2u = -x * (SLOPE + CUBIC * x * x);
        vec e = vec_exp(vec_select((vec_bits)(minus_2u > most), most, minus_2u));
        vec s = 1 / (1 + e);
        vec grad = s + x * s * (e * s) * (SLOPE + 3 * CUBIC * x * x);
        vec_store_n(dx + i, vec_load_n(dx + i, n - i) * grad, n - i);
    }
}
