/* json_read.h: reads JSON (RFC 8259), strictly: a text is untrusted until it has been checked.
 *
 * Refused beyond the grammar: duplicate names, nesting deeper than 64, text that is not UTF-8, lone
 * surrogates, \u0000 (strings here end with 0) and numbers too large for a double. Memory grows
 * with what was really read, never with a number that the text names, and stays in proportion to its
 * length (promise 15): a text of nothing but tiny values, more than 4096 and more than one in 6 bytes, is
 * refused. Writing: json_write.h. */
#ifndef LLMC_JSON_READ_H
#define LLMC_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT,
} JsonKind;

typedef struct Json {
    JsonKind kind : 8;
    bool is_integer;  // of a number: spelled without fraction and exponent, and within 64 bits
    uint32_t count;   // of an array or object
    const char *name; // of a member of an object, else NULL
    const char *text; // a string, decoded; a number as it is spelled
    double number;
    int64_t integer;                 // of a number that is one
    const struct Json *first, *next; // the first element inside; the next beside
} Json;

enum { JSON_PROBLEM = 200 };

/* The value that `text` spells; json_free releases it. NULL when it is not JSON: then problem (of
 * JSON_PROBLEM bytes) has the place and the reason: "line 3, column 7: a comma before the end of an array".
 */
const Json *json_read(const char *text, size_t bytes, char *problem);
void json_free(const Json *root);

/* The member of an object called `name`, or NULL; also NULL where `value` is NULL or not an object. */
const Json *json_member(const Json *value, const char *name);

/* True, with *out set, when `value` (which may be NULL) is a whole number from `least` to `most`.
 */
bool json_integer(const Json *value, int64_t least, int64_t most, int64_t *out);

/* Whether `value` (which may be NULL) is the string `text`. */
bool json_is(const Json *value, const char *text);

/* `text` for a message: at most 60 bytes of it, on one line, in shown, which is returned. */
enum { JSON_SHOWN = 64 };
const char *json_shown(const char *text, char shown[JSON_SHOWN]);

/* What kind of value this is, in words for a message; "nothing" for NULL. */
const char *json_kind(const Json *value);

#endif
