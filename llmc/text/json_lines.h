/* json_lines.h: one text out of each of many JSON objects (RFC 8259) that follow each other, commonly one a
 * line. The text may be longer than memory: it is handed out in parts.
 *
 * Checked: the grammar around and within strings, brackets (at most 64 deep), and that each object has the
 * field once, with a string; the values of other fields are skipped. Bytes that are not UTF-8 and \u0000 are
 * handed out as they are; half of a surrogate pair becomes U+FFFD, as in tiktoken. A byte order mark before the
 * first object is skipped. Any fault is fatal (EXIT_INPUT) with file and line. Small documents: json_read.h. */
#ifndef LLMC_JSON_LINES_H
#define LLMC_JSON_LINES_H

#include "../files/byte_stream.h"

typedef struct {
    ByteStream *stream;
    const char *name;  // of the file, for messages
    const char *field; // the member that holds the text
    uint64_t line;     // counts from 1 (0: unknown, after a restart)
    bool in_object;    // after the text of an object
} JsonLines;

/* Goes to the text of the next object; false at the end of the input. *start: where in the input the object
 * begins, and the checksum of all bytes before it. */
bool json_lines_next(JsonLines *lines, uint64_t *start, uint64_t *checksum);

/* Writes the next bytes of the text to `out`, which has room for `room` >= 4; returns how many. 0: the text has
 * ended. */
size_t json_lines_text(JsonLines *lines, unsigned char *out, size_t room);

#endif
