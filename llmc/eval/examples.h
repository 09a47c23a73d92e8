/* examples.h: multiple-choice questions for a language model: a context and its completions, one of which is
 * right. HellaSwag (Zellers et al. 2019) is such a set, and MMLU can be written as one.
 *
 * Two formats, recognised by content. Any fault in a file is fatal (EXIT_INPUT) and named by line or
 * example.
 *
 *   JSON lines    HellaSwag's own: {"ctx": "A man", "endings": ["sits.", ...], "label": 0, ...}, an example a
 *                 line. A completion is a space and the ending (build-nanogpt's hellaswag.py).
 *   llm.c's       256 int32: magic 20240522, version 1, examples, bytes of the longest; then for each, in uint16:
 *                 65535, its bytes, its index, label, completions, and for the context and every completion the
 *                 number of tokens and the tokens (llm.c's dev/data/data_common.py).
 *
 * Not here: how a model is scored on them (score.h). */
#ifndef LLMC_EXAMPLES_H
#define LLMC_EXAMPLES_H

#include "../text/tokenizer.h"

enum { COMPLETIONS_MOST = 16 };

typedef struct {
    size_t first; // in Examples.tokens: the context, then the completions one after the other
    int context;  // tokens of the context, at least 1
    int tokens[COMPLETIONS_MOST]; // of each completion, at least 1
    int completions;              // at least 2
    int label;                    // the right one
} Example;

typedef struct {
    const char *path;
    Example *items;
    size_t count;
    TokenList tokens;
} Examples;

/* Which model they are for. */
typedef struct {
    const Tokenizer *tokenizer; // of JSON lines; NULL: there is none, and they are refused
    int vocab, seq_len;
} ExamplesFor;

/* Reads the first `most` examples (0: all). Every id is below the vocabulary, and every context fits the
 * model's with each of its completions. The path must stay valid until examples_close. */
Examples *examples_open(const char *path, const ExamplesFor *model, int64_t most);
void examples_close(Examples *examples);

/* A 64-bit hash that distinguishes sets: of all tokens, lengths and labels. */
uint64_t examples_identity(const Examples *examples);

#endif
