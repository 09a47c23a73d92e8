/* temporary.h: where an output is written before it gets its name, and how that is removed without touching
 * what belongs to others.
 *
 *   NAME.train_gpt2-0123456789abcdef.tmp/   made by one process for itself: mkdir fails where something is
 *     unfinished.train_gpt2     the mark: a directory without it is not ours. Locked (lock.h) by its process
 *     content                   the file, or the directory of files, that will be renamed to NAME
 *
 * Two processes that write to one NAME never use the same directory. If a directory has the mark and no process
 * holds its lock, its process is gone; the next process that writes to NAME removes it. Next: output.h. */
#ifndef LLMC_TEMPORARY_H
#define LLMC_TEMPORARY_H

typedef struct {
    char *directory, *content; // their paths
    int mark;                  // its descriptor
} Temporary;

/* Makes one for NAME, without content. Returns 0 or an errno. exit() removes it if it is then still there. */
int temporary_make(Temporary *temporary, const char *name);

/* Removes it with all content. Returns 0 or an errno. */
int temporary_remove(Temporary *temporary);

/* Removes what processes that are gone left in `directory` for NAME (its last part, without the directory), or
 * with NULL for any name. What cannot be removed, or has content but no mark, or belongs to a living process or
 * another user, stays. */
void temporary_clean(const char *directory, const char *name);

#endif
