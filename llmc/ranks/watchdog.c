/* watchdog.c: see watchdog.h. Time is counted in the thread's own turns, not by the clock: when a whole
 * job is stopped and continued (Ctrl-Z, then fg), every rank has missed the same turns. */
#define _GNU_SOURCE
#include "watchdog.h"

#include "../base/error.h"
#include "../base/clock.h"
#include "heartbeat.h"
#include "stop.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    TURN_MS = 200,
    BUDGET = 4096,   // packets read in a turn: a flood takes a few percent of a core
    CHECK_TURNS = 10, // for the second check to confirm a silence
    ASK_TURNS = 3,
    GRACE_TURNS = 50, // for a launcher that is ending all ranks: the first rank has printed the reason
    STALE_TURNS = 25, // after which a heartbeat is too old to count
    LATER_TURNS = 10, // where all ranks wait, so that one line is printed
    SLACK_TURNS = 15, // so that a hanging rank is named before the ranks that wait for it
};

/* Of the rank that this one watches: the next in the ring. */
typedef struct {
    Peer peer;
    int rank;
    bool seen;       // it is on this system: the kernel shows whether it is alive
    bool known;      // it has sent a heartbeat, or is seen
    bool unheard;    // a warning was printed that its heartbeats do not arrive
    uint64_t silent; // turns
    uint64_t check;  // turns since the second check began, or 0
    int64_t sleeps;  // of its thread, when that was
    Pulse pulse;     // its last one
    uint64_t age;    // turns since that came
} Watched;

static struct {
    pthread_t thread;
    bool running;
    int stop[2]; // a pipe: closing its end stops the thread
    _Atomic int64_t thread_id;
    _Atomic uint64_t hang_limit, rank_limit; // in turns; 0: none
    atomic_bool joined;                      // what follows is filled in
    double rank_seconds;
    Peer me, before; // before: the rank that receives this one's heartbeats
    Watched after;
    Heartbeat heart;
} watch;

/* A limit in turns of the thread, at least one. */
static uint64_t turns_of(double seconds) {
    // 10 s are 51 turns: a limit counts whole turns, and the first one may be almost over.
    return seconds > 0 ? (uint64_t)(seconds * 1000 / TURN_MS) + 1 : 0;
}

/* And back, for messages. */
static double seconds_of(uint64_t turns) { return (double)turns * TURN_MS / 1000; }

// ---- hangs --------------------------------------------------------------------------------------

/* Ends all ranks: a main thread makes no progress. */
static _Noreturn void end_hang(int rank, const Peer *peer, const Pulse *pulse, uint64_t turns) {
    fatal_now(EXIT_RUNTIME,
              "rank %d (process %lld on %s) hangs: while %s it has made no progress for %.0f s, so all ranks end; look "
              "at that machine, its disks, network and GPUs, or set a longer --hang-timeout",
              rank, (long long)peer->process, peer->host, activity_name(pulse->at.activity), seconds_of(turns));
}

/* The pulse of this rank after one more turn. */
static void take_pulse(Pulse *mine) {
    ActivityState now = activity_state();
    // A change of activity is progress too. Nothing is counted in a turn in which the main thread moved.
    bool moved = now.progress != mine->at.progress || now.activity != mine->at.activity;
    mine->at = now;
    mine->still = moved ? 0 : mine->still + 1;
    mine->idle = mine->still;
    // idle == still for a rank that computes: nobody else can be the reason.
    if (!activity_waits(now.activity) || !atomic_load(&watch.joined)) return;
    // In a barrier rank 0 waits for all, but hears of rank 1 only; rank 1 passes on what it knows of rank 2, and so on.
    // One rank that computes keeps `idle` of all others low; where every rank waits, it rises on all of them.
    const Watched *w = &watch.after; // a rank that waits counts as idle only as long as the rank it waits for
    // Its pulse was taken a turn ago: without this turn, ranks that all wait would keep each other's count low.
    // 0: not known, so no reason to end.
    uint64_t theirs = w->age < STALE_TURNS ? w->pulse.idle + w->age + 1 : 0;
    if (theirs < mine->idle) mine->idle = theirs;
}

/* Whether this rank, or the one it watches, makes no progress for longer than the limit. */
static void judge_hang(const Pulse *mine) {
    // At 1800 s: limit 9001 turns, slack 915 turns or 183 s. A hanging rank ends itself at the limit, the rank before
    // it ends it at limit + slack, and ranks that only wait end at limit + 2 slack. So the culprit is named first.
    uint64_t limit = atomic_load(&watch.hang_limit), slack = SLACK_TURNS + limit / 10;
    if (limit == 0) return;
    bool waits = activity_waits(mine->at.activity), joined = atomic_load(&watch.joined);
    const Watched *w = &watch.after;
    // this rank itself
    if (!waits && mine->still >= limit) end_hang(world_rank(), &watch.me, mine, mine->still);
    // Before the ranks know each other, a long wait is all that there is to see.
    if (!joined) {
        if (waits && mine->still >= limit + 2 * slack) end_hang(world_rank(), &watch.me, mine, mine->still);
        return;
    }
    // the rank that it watches, if that rank cannot even end itself
    if (w->known && !activity_waits(w->pulse.at.activity) && w->pulse.still >= limit + slack)
        end_hang(w->rank, &w->peer, &w->pulse, w->pulse.still); // (a hanging rank should have ended itself)
    // Every rank waits, and none makes progress. (Each rank on the way from one that computes adds a turn.) Rank 0 says
    // so; the others only where it cannot.
    uint64_t others = world_rank() ? LATER_TURNS : 0;
    if (waits && mine->idle >= limit + 2 * slack + (uint64_t)world_size() + others)
        end_hang(world_rank(), &watch.me, mine, mine->idle);
}

// ---- silence ------------------------------------------------------------------------------------

/* The watched rank is alive: it has sent a heartbeat (`heard`), or the second check shows it. */
static void lives(Watched *w, bool heard) {
    // Resets the count of silence, and warns once where only the second check works: a firewall, as a rule.
    if (!heard && !w->unheard) {
        w->unheard = true;
        warning_now("rank %d (process %lld on %s) is alive, but its heartbeats do not arrive here (UDP port %d); "
                    "it is watched by %s",
                    w->rank, (long long)w->peer.process, w->peer.host, ntohs(watch.me.udp),
                    w->seen ? "the kernel's count of its turns" : "questions over TCP");
    }
    w->known = true;
    w->silent = w->check = 0;
    heartbeat_hang_up(&watch.heart);
}

/* Whether the watched rank is silent for longer than the limit, and the second check confirms it. */
static void judge_silence(Watched *w, bool answered) {
    uint64_t limit = atomic_load(&watch.rank_limit);
    if (answered) lives(w, false);
    if (limit == 0 || ++w->silent < limit) return;
    // Silent for the whole limit: now the second check. On one system the kernel is asked, elsewhere the rank over
    // TCP.
    // The count when the check began: a living thread has a higher one a turn later.
    if (w->check++ == 0) w->sleeps = w->seen ? heartbeat_sleeps(&w->peer) : -1;
    if (w->seen) {
        int64_t now = heartbeat_sleeps(&w->peer);
        // -1: the thread is gone. An unchanged count: it is stopped, or its process is.
        if (now >= 0 && now != w->sleeps) lives(w, false);
    } else if (w->check % ASK_TURNS == 1) {
        // In turns 1, 4, 7 and 10 of the check, each time over new connections.
        heartbeat_ask(&watch.heart, &w->peer);
    }
    // A stopping job ends its ranks one by one; the silence of those that ended first is not a failure.
    if (w->check < CHECK_TURNS + (stop_asked() ? GRACE_TURNS : 0)) return;
    if (w->known)
        fatal_now(EXIT_RUNTIME,
                  "rank %d (process %lld on %s) has sent no heartbeat for %g s: it died or hangs, so all ranks "
                  "end; look at that machine, or set a longer --rank-timeout",
                  w->rank, (long long)w->peer.process, w->peer.host, watch.rank_seconds);
    // never heard at all: no network for heartbeats: this alone does not end a run
    if (!w->unheard)
        warning_now("rank %d (process %lld on %s) answers neither over UDP nor over TCP; should it die or hang, only "
                    "MPI can notice it",
                    w->rank, (long long)w->peer.process, w->peer.host);
    // The watch starts again. If the rank answers later, it is watched from then on.
    w->unheard = true;
    w->silent = w->check = 0;
}

// ---- the thread ---------------------------------------------------------------------------------

/* Milliseconds of a clock that only goes forward. */
static int64_t now_ms(void) { return (int64_t)(clock_seconds() * 1000); }

/* Listens for one turn; false when the thread is to stop. *answered: the watched rank has, over TCP. */
static bool take_turn(bool *answered) {
    // Bounds of one turn: packets read, and connections accepted. A flood from strangers thus costs little time.
    int budget = BUDGET, calls = HEARTBEAT_CALLERS * 16;
    bool joined = atomic_load(&watch.joined);
    for (int64_t end = now_ms() + TURN_MS, left = TURN_MS; left > 0; left = end - now_ms()) {
        struct pollfd polls[1 + HEARTBEAT_POLLS] = {{.fd = watch.stop[0], .events = POLLIN}};
        int count = 1;
        // When a bound is reached the sockets are not polled until the next turn; else poll() would return at once,
        // again and again.
        if (joined && budget > 0 && calls > 0) count += heartbeat_polls(&watch.heart, polls + 1);
        // The pipe gets no bytes: closing its other end makes it ready.
        if (poll(polls, (nfds_t)count, (int)(left < TURN_MS ? left : TURN_MS)) > 0 && polls[0].revents) return false;
        if (!joined) continue;
        Watched *w = &watch.after;
        if (heartbeat_receive(&watch.heart, &w->peer, w->rank, &budget, &w->pulse)) {
            w->age = 0;
            lives(w, true);
        }
        *answered |= heartbeat_serve(&watch.heart, w->rank, &calls);
    }
    return true;
}

/* The system's number of this thread. */
static int64_t thread_number(void) {
#ifdef SYS_gettid
    return syscall(SYS_gettid);
#else
    return 0;
#endif
}

/* The thread: listen for a turn, send a heartbeat, then decide. */
static void *watch_thread(void *unused) {
    (void)unused;
    Pulse mine = {.at = activity_state()};
    bool answered = false;
    atomic_store(&watch.thread_id, thread_number());
    // Decisions come after listening, so that a heartbeat which came in time counts.
    for (; take_turn(&answered); answered = false) {
        take_pulse(&mine);
        if (atomic_load(&watch.joined)) {
            heartbeat_send(&watch.heart, &watch.before, &mine);
            judge_silence(&watch.after, answered);
            // Until the next heartbeat sets it to 0.
            watch.after.age++;
        }
        judge_hang(&mine);
    }
    return NULL;
}

void watchdog_start(double hang_timeout) {
    heartbeat_introduce(&watch.me, 0);
    atomic_store(&watch.hang_limit, turns_of(hang_timeout));
    // Without a pipe or a thread the run continues without a watchdog; watchdog_join prints a warning.
    if (pipe(watch.stop) != 0) return;
    // A new thread inherits the mask of its creator: all signals are blocked in it from its first instruction.
    sigset_t all, before; // signals are the main thread's
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    watch.running = pthread_create(&watch.thread, NULL, watch_thread, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    // introduce() sends the thread's number to the other ranks, so it must be known when this returns.
    while (watch.running && atomic_load(&watch.thread_id) == 0 && thread_number() != 0) usleep(100);
}

/* Sends every rank the data of all others, and a secret key that only these ranks have. False when one of them
 * cannot be watched. */
static bool introduce(const World *world) {
    // A rank that is not ready takes part all the same: the others would wait for its broadcasts forever.
    SipKey key = {0, 0};
    watch.heart.rank = (uint64_t)world->rank;
    int64_t ready = watch.running && heartbeat_open(&watch.heart, world->rank, &watch.me);
    heartbeat_introduce(&watch.me, atomic_load(&watch.thread_id));
    if (world->rank == 0) ready = ready && siphash_new_key(&key) == 0;
    // All or none: a ring with a gap would take the silence of an unwatched rank for its end.
    world_all_reduce_min(&ready, 1);
    world_broadcast(&key, sizeof key, 0);
    watch.heart.key = key;
    // Each rank in turn is the root. Of all peers only the two neighbours in the ring are kept.
    watch.after.rank = (world->rank + 1) % world->size;
    for (int rank = 0; rank < world->size; rank++) {
        Peer peer = watch.me;
        world_broadcast(&peer, sizeof peer, rank);
        if (rank == watch.after.rank) watch.after.peer = peer;
        if (rank == (world->rank + world->size - 1) % world->size) watch.before = peer;
    }
    return ready;
}

void watchdog_join(const World *world, double rank_timeout, double hang_timeout) {
    atomic_store(&watch.hang_limit, turns_of(hang_timeout));
    if (world->size == 1) return;
    watch.rank_seconds = rank_timeout;
    atomic_store(&watch.rank_limit, turns_of(rank_timeout));
    if (!introduce(world)) {
        if (world->rank == 0) warning("the ranks cannot watch each other: no sockets or no random numbers");
        return;
    }
    watch.after.seen = heartbeat_sees(&watch.me, &watch.after.peer);
    // A rank that the kernel shows needs no first heartbeat to count as known.
    watch.after.known = watch.after.seen;
    atomic_store(&watch.joined, true);
    world_barrier();
}

void watchdog_stop(void) {
    // After it all ranks stop within moments, long before the limit, so that no rank takes another's end for a failure.
    world_barrier();
    if (!watch.running) return;
    close(watch.stop[1]);
    pthread_join(watch.thread, NULL);
    close(watch.stop[0]);
    if (atomic_load(&watch.joined)) heartbeat_close(&watch.heart);
    atomic_store(&watch.joined, false);
    watch.running = false;
}
