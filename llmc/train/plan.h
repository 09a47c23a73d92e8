/* plan.h: what one update will see. Everything that follows from the settings, the data and the number
 * of ranks, before a single number is computed; and its print at start-up. */
#ifndef LLMC_PLAN_H
#define LLMC_PLAN_H

#include "../data/sequences.h"
#include "../model/gpt2.h"
#include "../ranks/world.h"
#include "dataset.h"

typedef struct {
    Config config;
    int B, T;
    int64_t rows;      // S: rows of one update, total_batch / T
    int64_t units;     // of one update, over all ranks: ceil(S / B)
    int64_t most, least; // units per update of the busiest and the idlest rank
    int64_t steps;     // updates of the run
    Schedule schedule;
    uint64_t val_rows; // rows of one validation; 0: none
} Plan;

/* The shape that the settings ask for on this data: a named one, or with `stored` that of the weights to
 * start from, whose rows may be made shorter. Fatal (EXIT_USAGE) where it cannot be built. */
Config plan_config(const Settings *settings, const Dataset *data, const Config *stored);

/* Fatal (EXIT_USAGE) where tokens per update are not whole rows: names the two nearest totals. val NULL
 * for none. */
Plan plan_make(const Settings *settings, const Config *config, const World *world, const Rows *train,
               const Rows *val);

/* Fatal (EXIT_RUNTIME) when the run needs more memory than its device has: says how much, and the largest
 * --batch that would fit. The device must be open. */
void plan_check_memory(const Plan *plan, const Settings *settings, const World *world);

/* The start-up table: settings, derived values, decay groups, memory. */
void plan_print(const Plan *plan, const Settings *settings, const World *world, const Dataset *data,
                const Rows *train);

#endif
