/* documents.c: see documents.h. Text is taken from the input's buffer as it is; the text of a JSON object is
 * gathered without its escapes first. Both are read SEGMENT bytes at a time, and more only where no place to cut is
 * found. */
#include "documents.h"

#include "../base/error.h"
#include "../base/memory.h"
#include "../files/file_kind.h"
#include "json_lines.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
// A batch ends after MOST_SEGMENTS even if it has little text: empty documents add no bytes and would fill it forever.

enum { SEGMENT = 1 << 16, LARGEST = 1 << 24, MOST_SEGMENTS = 1 << 17 };

struct Documents {
    const char *const *paths;
    int count;
    const char *field;
    const Tokenizer *tokenizer;
    bool special;

    int input;          // the open one, or the next
    ByteStream *stream; // NULL: not open
    bool is_json;
    JsonLines lines;
    bool is_fresh;           // no document of it has begun
    bool in_document;        // its beginning was read
    unsigned char *gathered; // of a JSON text, (gathered_bytes)
    size_t gathered_bytes, gathered_capacity;
    bool text_ended;   // nothing follows what was gathered
    uint64_t consumed; // of the inputs before the open one
};

/* Whether a file's name implies JSON lines. */
static bool is_json_name(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && (strcasecmp(dot, ".jsonl") == 0 || strcasecmp(dot, ".ndjson") == 0);
}

Documents *documents_open(const char *const *paths, int count, const char *field, const Tokenizer *tokenizer,
                          bool special) {
    Documents *d = memory_new(1, sizeof *d, "documents");
    *d = (Documents){.paths = paths, .count = count, .field = field, .tokenizer = tokenizer, .special = special};
    return d;
}

/* Opens the next input. */
static void open_input(Documents *d) {
    const char *path = d->paths[d->input];
    d->stream = byte_stream_open(path);
    d->is_json = d->field || is_json_name(path);
    d->lines =
        (JsonLines){.stream = d->stream, .name = byte_stream_name(path), .field = d->field ? d->field : "text"};
    // No document of this input has begun. A text file has one document even if it is empty.
    d->is_fresh = true;
    d->in_document = false;
    // A model or an archive that is named by mistake is refused: any bytes can be encoded, so nothing later would find
    // it.
    size_t there;
    const unsigned char *head = byte_stream_peek(d->stream, FILE_KIND_HEAD, &there);
    FileKind kind = file_kind_of_head(head, there);
    if (kind.what) fatal(EXIT_INPUT, "%s: is %s, but text is expected; %s", d->lines.name, kind.what, kind.data);
}

/* Closes it, and counts its bytes. */
static void close_input(Documents *d) {
    d->consumed += byte_stream_offset(d->stream);
    byte_stream_close(d->stream);
    d->stream = NULL;
    d->input++;
}

void documents_close(Documents *d) {
    if (!d) return;
    byte_stream_close(d->stream);
    free(d->gathered);
    free(d);
}

void documents_seek(Documents *d, const DocumentPlace *place) {
    // Whole inputs before the place are only counted, so that the progress is right.
    for (; d->input < place->input; d->input++) {
        uint64_t bytes;
        int64_t modified;
        byte_stream_status(d->paths[d->input], &bytes, &modified);
        d->consumed += bytes;
    }
    if (d->input == d->count) return;
    open_input(d);
    // A file is not read up to the place, so its checksum is 0: for files their size and time are compared
    // (tokenize.h).
    byte_stream_skip(d->stream, place->offset);
    uint64_t checksum = byte_stream_checksum(d->stream);
    if (checksum && place->checksum && checksum != place->checksum)
        fatal(EXIT_INPUT,
              "%s: its first %llu bytes differ from those that an earlier start read; give the same input, or "
              "--overwrite",
              d->lines.name, (unsigned long long)place->offset);
    // Text continues in the middle of its document. In JSON lines a place is always the beginning of an object.
    d->in_document = !d->is_json && place->offset > 0;
    d->is_fresh = !d->in_document;
}

// ---------------------------------------------------------------------------------------------
// The text of the open document

/* The next bytes of the document: `wanted`, or fewer where *ended. */
static const unsigned char *look(Documents *d, size_t wanted, size_t *there, bool *ended) {
    if (!d->is_json) {
        // One byte more than wanted shows whether the document ends just there.
        const unsigned char *text = byte_stream_peek(d->stream, wanted + 1, there);
        *ended = *there <= wanted;
        if (*there > wanted) *there = wanted;
        return text;
    }
    // json_lines_text needs room for 4 bytes, the longest character.
    if (d->gathered_capacity < wanted + 4) {
        d->gathered_capacity = wanted + 4;
        d->gathered = memory_grow(d->gathered, d->gathered_capacity, 1, "a document");
    }
    // Escapes are removed while the text is gathered, so the tokenizer sees the text itself: \n is one byte.
    while (!d->text_ended && d->gathered_bytes < wanted) {
        size_t room = d->gathered_capacity - d->gathered_bytes;
        size_t n = json_lines_text(&d->lines, d->gathered + d->gathered_bytes, room);
        d->gathered_bytes += n;
        d->text_ended = n == 0;
    }
    *there = d->gathered_bytes;
    *ended = d->text_ended;
    return d->gathered;
}

/* Removes bytes that were taken from the front of the current text. */
static void drop(Documents *d, size_t bytes) {
    if (!d->is_json) {
        byte_stream_take(d->stream, bytes);
        return;
    }
    d->gathered_bytes -= bytes;
    // What is behind the cut begins the next segment.
    memmove(d->gathered, d->gathered + bytes, d->gathered_bytes);
}

/* Where a word that is too long is cut: not within a character. */
static size_t cut_within(const unsigned char *text, size_t bytes) {
    // A character has at most 4 bytes, and all but its first are 10xxxxxx. The last 4 bytes therefore hold a boundary.
    size_t at = bytes - 4;
    while (at < bytes && (text[at] & 0xc0) == 0x80) at++;
    return at;
}

/* Appends the next segment of the open document; closes the document with its last. */
static void read_segment(Documents *d, SegmentBatch *batch) {
    const unsigned char *text;
    size_t wanted = SEGMENT, there, cut;
    bool ended;
    for (;; wanted *= 2) {
        // A segment is cut as late as the text looked at allows. Where no place is found, twice as much is looked at.
        text = look(d, wanted, &there, &ended);
        cut = ended ? there : tokenizer_cut(d->tokenizer, text, there, d->special);
        if (cut == 0 && !ended && there >= LARGEST) cut = cut_within(text, there);
        if (cut > 0 || ended) break;
    }
    // The text is copied: the stream's buffer is only valid until the next call.
    if (batch->capacity - batch->bytes < cut) {
        batch->capacity = 2 * batch->capacity + cut;
        batch->text = memory_grow(batch->text, batch->capacity, 1, "a batch of text");
    }
    if (cut) memcpy(batch->text + batch->bytes, text, cut);
    batch->segments[batch->count - 1].bytes = cut;
    batch->bytes += cut;
    drop(d, cut);
    if (ended) d->in_document = false;
}

/* A new segment at the end of the batch. */
static Segment *add_segment(SegmentBatch *batch) {
    if (batch->count == batch->segment_capacity) {
        batch->segment_capacity = 2 * batch->segment_capacity + 64;
        batch->segments = memory_grow(batch->segments, (size_t)batch->segment_capacity, sizeof *batch->segments,
                                      "a batch of text");
    }
    batch->segments[batch->count] = (Segment){.first = batch->bytes};
    return &batch->segments[batch->count++];
}

/* Goes to the next document, of the next input where need be; false: there is none. */
static bool begin_document(Documents *d, DocumentPlace *place) {
    for (; d->input < d->count; close_input(d)) {
        if (!d->stream) open_input(d);
        *place = (DocumentPlace){.input = d->input};
        // The text of the last document was taken to its end.
        d->text_ended = false;
        if (d->is_json && json_lines_next(&d->lines, &place->offset, &place->checksum)) return true;
        if (!d->is_json && d->is_fresh) {
            d->is_fresh = false;
            return true;
        }
    }
    return false;
}

bool documents_read(Documents *d, SegmentBatch *batch, size_t bytes) {
    batch->bytes = 0;
    batch->count = 0;
    while (batch->bytes < bytes && batch->count < MOST_SEGMENTS) {
        DocumentPlace place;
        // A text file can be read again from any segment on. Within a JSON object it cannot: the reader would have to
        // know that it is inside a string.
        bool begins = !d->in_document, can_begin = begins || !d->is_json;
        if (begins && !begin_document(d, &place)) break;
        d->in_document = true;
        // Here the text continues, so the place is where the stream stands.
        if (!begins && can_begin)
            place = (DocumentPlace){d->input, byte_stream_offset(d->stream), byte_stream_checksum(d->stream)};
        Segment *segment = add_segment(batch);
        segment->begins = begins;
        segment->can_begin = can_begin;
        if (can_begin) segment->place = place;
        read_segment(d, batch);
    }
    // The position counts what the next segment has not taken yet as unread.
    batch->consumed = d->consumed + (d->stream ? byte_stream_offset(d->stream) : 0);
    return batch->count > 0;
}

void segment_batch_free(SegmentBatch *batch) {
    free(batch->text);
    free(batch->segments);
    *batch = (SegmentBatch){0};
}
