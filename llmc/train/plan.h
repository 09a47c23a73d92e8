/* plan.h: how one update is split. Everything that follows from the settings, the data and the number
 * of ranks, before a single number is computed. Next: startup_table.h, which prints it;
 * dataset.h for the data that it plans with. */
#ifndef LLMC_PLAN_H
#define LLMC_PLAN_H

#include "../data/sequences.h"
#include "../model/gpt2.h"
#include "../optimizer/adamw.h"
#include "../ranks/world.h"
#include "dataset.h"

typedef struct {
    Config config;
    int B, T;
    int64_t sequences;       // S: of one update, total_batch / T
    int64_t micro_batches;   // of one update, over all ranks: ceil(S / B)
    int64_t max_micro_steps; // micro-batches of one update on the rank that has the most
    int64_t min_micro_steps; // and on the rank that has the fewest
    int64_t steps;     // updates of the run
    Schedule schedule;       // of the learning rate
    AdamW optimizer;         // and the other settings of the optimizer
    uint64_t val_sequences; // sequences of one validation; 0: none
} Plan;

/* The shape that the settings ask for on this data: a named one, or with `stored` that of the weights to
 * start from, whose sequences may be made shorter. Fatal (EXIT_USAGE) where it cannot be built. */
Config plan_config(const Settings *settings, const Dataset *data, const Config *stored);

/* Fatal (EXIT_USAGE) where tokens per update are not whole sequences: names the two nearest totals. val NULL
 * for none. */
Plan plan_make(const Settings *settings, const Config *config, const World *world,
               const Sequences *train, const Sequences *val);

/* Fatal (EXIT_RUNTIME) when the run needs more memory than its device has: the message has both figures, and the
 * largest --batch that would fit. The device must be open. */
void plan_check_memory(const Plan *plan, const Settings *settings, const World *world);

/* Memory of a rank with micro-batches of B sequences, in bytes. *sums: what the sums of gradients over
 * micro-batches and ranks take beside it. */
MemoryPlan plan_memory(const Plan *plan, const Settings *settings, const World *world, int B, size_t *sums);

/* All of that together, in bytes. */
size_t plan_memory_total(const MemoryPlan *memory, size_t sums);

#endif
