/* stop.h: asking a run to stop. SIGTERM, SIGINT, SIGUSR1 and SIGHUP set a flag that the training loop looks
 * at between two updates. A second of the first three ends the program at once, with the signal's default action.
 * SIGHUP comes when the terminal is gone; where it is ignored from the start (nohup) it stays so. */
#ifndef LLMC_STOP_H
#define LLMC_STOP_H

#include <stdbool.h>

/* From now on the first such signal only sets the flag. */
void stop_watch(void);

/* Whether this process has been asked to stop. From any thread. */
bool stop_asked(void);

/* Whether any rank has been asked to stop. All ranks call it together and get the same answer. */
bool stop_agreed(void);

#endif
