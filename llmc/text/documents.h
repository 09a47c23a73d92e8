/* documents.h: inputs as documents, and documents as segments that can be encoded apart.
 *
 *   text           a file is a document, whatever its bytes are; so is standard input ("-")
 *   JSON lines     an object is a document: its member called `field`. Inputs are read so where a field is named, or
 *                  where they are called .jsonl or .ndjson (then the field is "text")
 *
 * A segment is a document or a part of one, at most 16 MiB: it ends where tokenizer_cut allows it. Only a word
 * longer than 16 MiB is cut within, and then its tokens may be others there. Segments depend on the input
 * alone, not on threads, nor on where reading began. Next: json_lines.h,
 * then encode_documents.h. */
#ifndef LLMC_DOCUMENTS_H
#define LLMC_DOCUMENTS_H

#include "tokenizer.h"

typedef struct Documents Documents;

/* Where reading can begin again. */
typedef struct {
    int input;         // its number
    uint64_t offset;   // in it
    uint64_t checksum; // of all bytes of the input before it; 0: not known
} DocumentPlace;

typedef struct {
    size_t first, bytes; // the text of the batch from `first` on
    bool begins;         // is the beginning of its document
    bool can_begin;      // reading can begin at `place`, and gives this segment first
    DocumentPlace place;
} Segment;

/* Segments one after the other, and their text. */
typedef struct {
    unsigned char *text;
    size_t bytes, capacity;
    Segment *segments;
    int count, segment_capacity;
    uint64_t consumed; // bytes of all inputs that were read up to here
} SegmentBatch;

/* paths (count): files, or "-". field: NULL for text, but for .jsonl and .ndjson. The arguments must stay valid. */
Documents *documents_open(const char *const *paths, int count, const char *field, const Tokenizer *tokenizer,
                          bool special);

/* Begins again at a place that an earlier start has recorded. Fatal (EXIT_INPUT) if the bytes of standard input
 * before that place have changed. */
void documents_seek(Documents *documents, const DocumentPlace *place);

/* Fills the batch with about `bytes` bytes of text; false when there are none left. */
bool documents_read(Documents *documents, SegmentBatch *batch, size_t bytes);

void documents_close(Documents *documents);
void segment_batch_free(SegmentBatch *batch);

#endif
