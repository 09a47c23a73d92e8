/* lock.h: a lock that one process holds. It is released when the process ends, however it ends.
 *
 * A lock is a file, locked with flock(2) for as long as the process holds it open; its text names the holder:
 * "process 4711 on host". The kernel releases it when the process ends. The file itself stays. It relies on flock
 * working between all who use the file. It does on local disks, on NFS from Linux 2.6.12 on (where the server must
 * lock: not with -o nolock), on Lustre with -o flock and on GPFS. Where a file system has no locks, lock_take
 * reports it, and the caller must not continue. */
#ifndef LLMC_LOCK_H
#define LLMC_LOCK_H

#include <stdbool.h>

typedef struct Lock Lock;

enum { LOCK_HOLDER = 160 };

/* Takes the lock `path`, which is created where it is missing, and waits up to `seconds` while another
 * process holds it. Returns 0 and the lock; EWOULDBLOCK, with the name of the process in `holder`; or another errno
 * when the file cannot be locked. A link is not followed (ELOOP), and a file with another name is not used
 * (EMLINK). */
int lock_take(const char *path, double seconds, Lock **lock, char holder[LOCK_HOLDER]);

/* Whether `path` still leads to the locked file: false when its directory was moved, removed or replaced. */
bool lock_is_in_place(const Lock *lock);

/* Gives it back; NULL is allowed. */
void lock_release(Lock *lock);

/* flock, without waiting; again after a signal. Returns 0 or an errno. */
int lock_descriptor(int descriptor);

#endif
