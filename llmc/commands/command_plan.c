/* command_plan.c: `train_gpt2 plan`: prints what one update will see, here or in a world of --ranks, and
 * trains nothing. It takes train's options. */
#include "../base/error.h"
#include "../train/startup_table.h"
#include "../train/trainer.h"
#include "commands.h"

int command_plan(int argc, char **argv) {
    Trainer t = {.world = world_open(&argc, &argv)};
    t.settings = options_parse(argc, argv);
    const Settings *s = &t.settings;
    if (s->ranks)
        t.world = (World){.size = (int)s->ranks, .local_size = (int)s->ranks, .launcher = "--ranks"};
    Dataset data = trainer_prepare(&t);
    t.settings.total_batch = t.plan.sequences * t.plan.T; // --micro-steps may have decided
    if (t.world.rank == 0) startup_table_print(&t.plan, s, &t.world, &data, &t.sequences);
    examples_close(t.examples);
    weights_close(t.start);
    dataset_close(&data);
    settings_free(&t.settings);
    world_close();
    return EXIT_DONE;
}
