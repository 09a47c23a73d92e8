/* command_plan.c: `train_gpt2 plan`: prints how one update is split, here or on --ranks ranks, and trains nothing;
 * or, for plots, the learning rates of the run. It takes train's options. */
#include "../base/error.h"
#include "../train/startup_table.h"
#include "../train/trainer.h"
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "step rate" of `points` steps, evenly spread over those that are executed; each step once. */
static void print_rates(const Plan *plan, int64_t points) {
    // The last step that is executed has index steps - 1 (chapter 27.2), so the curve ends there.
    int64_t last = plan->steps - 1, gaps = points > 1 ? points - 1 : 1;
    for (int64_t i = 0, before = -1; i < points; i++) {
        int64_t step = (int64_t)((double)last * (double)i / (double)gaps + 0.5);
        // Of a run shorter than `points`, several points fall on a step.
        if (step != before) printf("%lld %.9g\n", (long long)step, schedule_rate(&plan->schedule, step));
        before = step;
    }
}

int command_plan(int argc, char **argv) {
    Trainer t = {.world = world_open(&argc, &argv), .to_plan = true};
    t.settings = options_parse(argc, argv);
    const Settings *s = &t.settings;
    // --ranks plans for a machine that is not here, so the ranks of this one do not count.
    if (s->ranks)
        t.world = (World){.size = (int)s->ranks, .local_size = (int)s->ranks, .launcher = "--ranks"};
    if (strcmp(s->resume, "never") != 0 && t.world.rank == 0)
        warning("plan reads no checkpoint: it does not know the settings of the run that --resume names; give them as "
                "options");
    // The same steps as at the start of training, so that what is refused there is refused here.
    Dataset data = trainer_prepare(&t);
    t.settings.total_batch = t.plan.sequences * t.plan.T; // --micro-steps may have decided
    if (t.world.rank == 0 && s->rates)
        print_rates(&t.plan, s->rates);
    else if (t.world.rank == 0)
        startup_table_print(&t.plan, s, &t.world, &data, &t.sequences);
    examples_close(t.examples);
    weights_close(t.start);
    free(t.model_path);
    dataset_close(&data);
    settings_free(&t.settings);
    world_close();
    return EXIT_DONE;
}
