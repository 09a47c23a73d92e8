/* startup_table.h: the table that `train` prints at start-up and `plan` prints instead of training. */
#ifndef LLMC_STARTUP_TABLE_H
#define LLMC_STARTUP_TABLE_H

#include "plan.h"

/* Prints settings, derived values, decay groups, learning rates, work and memory to stdout. Rank 0 calls it. */
void startup_table_print(const Plan *plan, const Settings *settings, const World *world, const Dataset *data,
                         const Sequences *train);

#endif
