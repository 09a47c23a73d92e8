/* elementary.h: log, exp, sine, cosine and powers whose bits are the same on every machine.
 *
 * C libraries compute these within an ulp, each in its own way, and the same library in another way on
 * another processor; a run that used them would be another run there. Here are only +, -, *, / and
 * conversions of IEEE doubles, each rounded once and in a fixed order (make compiles with
 * -ffp-contract=off). sqrt, rint, ldexp and fma are exact by definition: those of <math.h> are used. */
#ifndef LLMC_ELEMENTARY_H
#define LLMC_ELEMENTARY_H

#include <stdint.h>

/* The natural logarithm, within 1 ulp. Negative: NaN; 0: -Inf; Inf and NaN stay. */
double elementary_log(double x);

/* e^x, within 1 ulp; 0 below the smallest normal number's logarithm (-708.4), Inf above 709.78; NaN stays. */
double elementary_exp(double x);

/* The sine and cosine of 2 pi turns, within 2 ulp, for |turns| < 2^51; exact at every quarter of a turn. */
void elementary_sine_cosine(double turns, double *sine, double *cosine);
double elementary_cosine(double turns);

/* base^exponent, within 1 ulp, for 0 <= base <= 1 and exponent >= 0. */
double elementary_power(double base, int64_t exponent);

#endif
