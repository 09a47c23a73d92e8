/* byte_tokenizer.h: the tokenizer of models whose tokens are bytes, in the words of Hugging Face's
 * tokenizers library: byte-level BPE without merges, the id of a byte is its value. */
#ifndef LLMC_BYTE_TOKENIZER_H
#define LLMC_BYTE_TOKENIZER_H

#include "../files/output.h"

/* tokenizer.json and tokenizer_config.json. seq_len: the longest text that the model takes. */
void byte_tokenizer_write(OutputFile *file);
void byte_tokenizer_write_config(OutputFile *file, int seq_len);

#endif
