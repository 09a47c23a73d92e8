/* number.c: numbers as users write them: 250, 1e4, 10k, 0.5M, 6e-4. A text is first divided into sign, digits
 * and exponent; only a text that is a number as a whole is converted. Whole numbers are computed in integers,
 * so that 1e4 is exactly 10,000 and nothing is rounded through a double. */
#include "number.h"

#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* The parts of a number's text. */
typedef struct {
    bool negative, zero;
    const char *digits; // where the digits (and the point among them) start
    int length;         // of these
    int places;         // digits after the point
    int64_t exponent;   // power of ten from e or k or M, limited to +-EXPONENT_LIMIT
} Parts;

enum {
    EXPONENT_LIMIT = 100000
}; // beyond any type; so large that the digits cannot bring the value back into range

/* Reads [-]digits after e or E, all of the rest of the text. */
static bool read_exponent(const char *text, int64_t *exponent) {
    bool negative = *text == '-';
    if (*text == '-' || *text == '+') text++;
    if (!*text) return false;
    for (*exponent = 0; isdigit((unsigned char)*text); text++)
        if (*exponent < EXPONENT_LIMIT) *exponent = *exponent * 10 + (*text - '0');
    if (negative) *exponent = -*exponent;
    return !*text;
}

/* Divides a text into its parts; false where it is not a number. */
static bool take_apart(const char *text, Parts *parts) {
    *parts = (Parts){.negative = *text == '-', .zero = true};
    if (parts->negative) text++;
    parts->digits = text;
    int points = 0;
    for (; isdigit((unsigned char)*text) || *text == '.'; text++) {
        if (points && *text != '.') parts->places++;
        points += *text == '.';
        if (*text != '.' && *text != '0') parts->zero = false;
    }
    // Refused: two points, no digit at all ("", "."), and a text far longer than any number that is meant.
    ptrdiff_t length = text - parts->digits;
    if (points > 1 || length == points || length > 1000) return false;
    parts->length = (int)length;
    if (*text == 'e' || *text == 'E') return read_exponent(text + 1, &parts->exponent);
    if (*text == 'k' || *text == 'M') parts->exponent = *text++ == 'k' ? 3 : 6;
    return !*text;
}

/* |value| of the parts, exactly. Trailing zeros count as powers of ten, so 1.50e1 is 15. */
static NumberResult magnitude(const Parts *parts, uint64_t *value) {
    uint64_t mantissa = 0;
    int64_t power = parts->exponent - parts->places, zeros = 0;
    for (int i = 0; i < parts->length; i++) {
        if (parts->digits[i] == '.') continue;
        if (parts->digits[i] == '0') { // kept back until a digit follows that is not 0
            zeros++;
            continue;
        }
        for (; zeros > 0; zeros--)
            if (__builtin_mul_overflow(mantissa, (uint64_t)10, &mantissa)) return NUMBER_RANGE;
        if (__builtin_mul_overflow(mantissa, (uint64_t)10, &mantissa) ||
            __builtin_add_overflow(mantissa, (uint64_t)(parts->digits[i] - '0'), &mantissa))
            return NUMBER_RANGE;
    }
    power += zeros;
    // 1.5k: mantissa 15, power 3 - 1 = 2: 1500. 1.5: power -1, a fraction.
    if (mantissa && power < 0) return NUMBER_FRACTION;
    for (; mantissa && power > 0; power--)
        if (__builtin_mul_overflow(mantissa, (uint64_t)10, &mantissa)) return NUMBER_RANGE;
    *value = mantissa;
    return NUMBER_OK;
}

/* A whole number: its sign and size. */
static NumberResult whole(const char *text, bool *negative, uint64_t *size) {
    Parts parts;
    if (!take_apart(text, &parts)) return NUMBER_MALFORMED;
    *negative = parts.negative;
    return magnitude(&parts, size);
}

NumberResult number_read_i64(const char *text, int64_t *value) {
    bool negative;
    uint64_t size;
    NumberResult result = whole(text, &negative, &size);
    if (result != NUMBER_OK) return result;
    if (size > INT64_MAX) return NUMBER_RANGE;
    *value = negative ? -(int64_t)size : (int64_t)size;
    return NUMBER_OK;
}

NumberResult number_read_u64(const char *text, uint64_t *value) {
    bool negative;
    uint64_t size;
    NumberResult result = whole(text, &negative, &size);
    if (result != NUMBER_OK) return result;
    // -0 is 0
    if (negative && size > 0) return NUMBER_RANGE;
    *value = size;
    return NUMBER_OK;
}

NumberResult number_read_real(const char *text, double *value) {
    Parts parts;
    if (!take_apart(text, &parts)) return NUMBER_MALFORMED;
    char plain[1100]; // k and M as an exponent: the conversion then rounds once
    snprintf(plain, sizeof plain, "%.*se%lld", parts.length, parts.digits,
             (long long)parts.exponent);
    double size = strtod(plain, NULL);
    if (isinf(size) || (size == 0.0 && !parts.zero)) return NUMBER_RANGE;
    *value = parts.negative ? -size : size;
    return NUMBER_OK;
}

const char *number_write_real(char out[NUMBER_CHARS], double value) {
    // 17 digits always round-trip; 15 look better and often suffice
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, NUMBER_CHARS, "%.*g", digits, value);
        if (isnan(value) || strtod(out, NULL) == value) break;
    }
    return out;
}
