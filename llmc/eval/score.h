/* score.h: the score of a model on multiple-choice examples (examples.h).
 *
 * A completion's loss is the sum over its tokens, in nats, each after the context and those before it. The
 * model chooses the completion of the smallest loss (acc), or of the smallest mean loss of a token (acc_norm),
 * of equal ones the first. So build-nanogpt's hellaswag.py and llm.c do it; other harnesses divide by
 * bytes and their figures differ.
 *
 * Example i belongs to rank i mod R. Each rank counts right answers, and the counts are all-reduced: the figures
 * are the same for every number of ranks. An example is computed by itself, whatever --batch is, and so they do not
 * depend on that either. Next: text_units.h for bits per byte. */
#ifndef LLMC_SCORE_H
#define LLMC_SCORE_H

#include "../model/gpt2.h"
#include "../ranks/world.h"
#include "examples.h"

/* How many of the examples the model gets right. */
typedef struct {
    uint64_t examples, acc, acc_norm;
} Score;

/* Scores all examples. Every rank calls it, and gets the figures of all. */
Score score_examples(GPT2 *model, const Examples *examples, const World *world);

/* What it takes to score one example of a set after the other. */
typedef struct Scorer Scorer;
Scorer *scorer_new(GPT2 *model, const Examples *examples);
void scorer_free(Scorer *scorer);

/* The losses of an example's completions (completions). Fatal (EXIT_NONFINITE) where one is not finite. */
void score_losses(Scorer *scorer, const Example *example, double *losses);

static inline double score_share(uint64_t right, const Score *score) {
    return (double)right / (double)score->examples;
}

#endif
