/* text_units.h: how much text some tokens are, for figures that compare vocabularies: the loss of a text in bits
 * a byte, and its perplexity per word, do not depend on what its tokens are. */
#ifndef LLMC_TEXT_UNITS_H
#define LLMC_TEXT_UNITS_H

#include "../data/stream.h"
#include "../text/tokenizer.h"

typedef struct {
    uint64_t bytes; // of text: the end-of-text token has none
    uint64_t words; // runs of other bytes than blanks, tabs and line breaks
} TextUnits;

/* The text of tokens first .. first+count of a stream. */
TextUnits text_units(const Stream *stream, const Tokenizer *tokenizer, uint64_t first,
                     uint64_t count);

#endif
