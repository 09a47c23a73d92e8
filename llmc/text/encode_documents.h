/* encode_documents.h: all documents of the inputs as ids, on all threads, in their order. While threads encode
 * one batch of text, one of them delivers the ids of the batch before and reads the batch after, so that
 * reading and writing take no time of their own. Memory: two batches, about 16 MiB and 2 MiB for each thread,
 * and their ids. */
#ifndef LLMC_ENCODE_DOCUMENTS_H
#define LLMC_ENCODE_DOCUMENTS_H

#include "documents.h"

/* Called for each segment in the order of the inputs, by one thread at a time. invalid: its bytes that are not
 * UTF-8. */
typedef void (*EncodedSegment)(void *context, const Segment *segment, const int32_t *ids, size_t count,
                               uint64_t invalid);

/* Called now and then: so many bytes of all inputs have been read. */
typedef void (*EncodeProgress)(void *context, uint64_t consumed);

/* threads: 0 for all cores. progress may be NULL. */
void encode_documents(Documents *documents, const Tokenizer *tokenizer, bool special, int threads,
                      EncodedSegment deliver, EncodeProgress progress, void *context);

#endif
