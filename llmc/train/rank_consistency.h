/* rank_consistency.h: what must be the same on every rank before they train together. mpirun can start ranks
 * with different options, and machines can hold different files under one name; such ranks would
 * wait for each other in the wrong places, or train on mixed batches. */
#ifndef LLMC_RANK_CONSISTENCY_H
#define LLMC_RANK_CONSISTENCY_H

#include "../eval/examples.h"
#include "../model/gpt2.h"
#include "../ranks/world.h"
#include "../settings/settings.h"
#include "dataset.h"

/* Fatal (EXIT_USAGE) unless every rank has rank 0's settings and data: the first rank that differs prints one line.
 * --threads may differ; --out is rank 0's alone. Every rank calls it. */
void rank_consistency_check(const World *world, const Settings *settings, const Dataset *data);

/* The same for the examples of --hellaswag; NULL on all ranks where there are none. */
void rank_consistency_check_examples(const World *world, const Examples *examples);

/* The same for the weights and moments to start from: machines may hold different files under one name, or
 * compute a random start with different mathematical libraries. Fatal (EXIT_INPUT). */
void rank_consistency_check_weights(const World *world, const GPT2 *model);

#endif
