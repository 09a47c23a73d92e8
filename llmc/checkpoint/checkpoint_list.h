/* checkpoint_list.h: the checkpoints of a run, OUT/step_NNNNNNNN: finds the newest good one, and removes old ones.
 * Other entries of OUT are never touched. Next: checkpoint.h for what is in one. */
#ifndef LLMC_CHECKPOINT_LIST_H
#define LLMC_CHECKPOINT_LIST_H

#include <stdbool.h>
#include <stdint.h>

/* OUT/step_NNNNNNNN; free() releases it. */
char *checkpoints_path(const char *out, int64_t step);

/* Whether OUT holds any, good or damaged. */
bool checkpoints_any(const char *out);

/* The newest checkpoint of OUT whose files all are as they were written, or NULL when there is none (or
 * no OUT). A warning names each newer one that is damaged, and why. free() releases the path. */
char *checkpoints_newest_good(const char *out);

/* Paths of all checkpoints of OUT, the oldest first; free() releases each and the list. */
char **checkpoints_all(const char *out, int *count);

/* Whether a directory is that of a run which has no checkpoint yet: its logs are there. */
bool checkpoints_is_bare_run(const char *path);

/* Where to find a model: the newest good checkpoint when `path` is the directory of a run, else itself. Promise 3:
 * wherever there are checksums, they were compared: a checkpoint named by its own path is verified, too, and
 * fatal (EXIT_INPUT) when it is damaged, or a run has none that is good. free() releases the path. */
char *checkpoints_resolve(const char *path);

/* The run continues from `step`: later checkpoints, damaged or written by an abandoned continuation, are renamed
 * to NAME.aside, with a warning. Leftovers of interrupted saves are removed. */
void checkpoints_set_aside(const char *out, int64_t step);

/* Points the link OUT/best to the checkpoint of `step`, or removes the link where that checkpoint does not exist.
 * If OUT/best is not a link, the function leaves it as it is and warns. */
void checkpoints_mark_best(const char *out, int64_t step);

/* After a checkpoint was saved: removes all but the newest `keep` (0: keeps all) and the one of step `best` (0:
 * none). A checkpoint with a file that this program does not write is left alone. */
void checkpoints_keep(const char *out, int64_t keep, int64_t best);

/* --overwrite: removes all checkpoints of OUT, likewise, and OUT/best. */
void checkpoints_remove(const char *out);

#endif
