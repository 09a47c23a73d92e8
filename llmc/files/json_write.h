/* json_write.h: writes JSON (RFC 8259) into memory, member by member. What it writes, json_read.h
 * reads.
 *
 *   JsonWriter w = {0};
 *   json_open(&w, NULL, '{');
 *   json_put_string(&w, "event", "val");
 *   json_put_real(&w, "loss", 3.25);
 *   json_close(&w, '}');                    // w.text is {"event":"val","loss":3.25}
 *   free(w.text);
 *
 * name: of a member; NULL for an array's element and for the outermost value. */
#ifndef LLMC_JSON_WRITE_H
#define LLMC_JSON_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    char *text; // ends with 0
    size_t length, capacity;
    bool lines; // set before the first call: each member is on a line of its own
    int depth;  // open brackets
} JsonWriter;

/* '{' and '}' around members, '[' and ']' around elements. */
void json_open(JsonWriter *w, const char *name, char bracket);
void json_close(JsonWriter *w, char bracket);

/* NULL becomes null. Bytes that are not UTF-8 become U+FFFD, for JSON must be UTF-8. */
void json_put_string(JsonWriter *w, const char *name, const char *text);
void json_put_integer(JsonWriter *w, const char *name, int64_t value);
void json_put_unsigned(JsonWriter *w, const char *name, uint64_t value);

/* A number that round-trips: reading it gives the same double. JSON has no NaN and no infinities: these become the
 * strings "NaN", "Infinity" and "-Infinity", so that a record shows which it was. */
void json_put_real(JsonWriter *w, const char *name, double value);

/* Text that is JSON already. */
void json_put_json(JsonWriter *w, const char *name, const char *json);

/* Text between values, such as a line break. */
void json_put_space(JsonWriter *w, const char *space);

#endif
