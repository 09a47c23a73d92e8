/* watchdog.c: see watchdog.h. Time is counted in the thread's own turns, not by the clock: when a
 * whole job is stopped and continued (Ctrl-Z, then fg), every rank has missed the same turns. */
#define _GNU_SOURCE
#include "watchdog.h"

#include "../base/error.h"
#include "../base/memory.h"
#include "../base/rng.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { TURN_MS = 200, MOST_ADDRESSES = 8 };

/* A rank as the others know it. */
typedef struct {
    char host[64];
    int process;
    int count;
    struct sockaddr_in address[MOST_ADDRESSES]; // where it listens
} Peer;

static struct {
    pthread_t thread;
    bool running;
    int stop[2]; // a pipe: closing its end stops the thread
    int socket;
    int rank, after; // this one, and the one it watches
    Peer before;     // who hears this one's signs of life
    Peer watched;
    int limit; // in turns
    double seconds;
    uint64_t cookie; // tells this job's signs from another's
} watch;

/* A sign of life. */
typedef struct {
    uint64_t cookie;
    int64_t rank;
} Sign;

/* Opens the socket on which this rank listens; false when that cannot be. */
static bool listen_anywhere(Peer *me) {
    struct sockaddr_in any = {.sin_family = AF_INET};
    socklen_t size = sizeof any;
    watch.socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (watch.socket < 0 || bind(watch.socket, (struct sockaddr *)&any, sizeof any) != 0 ||
        getsockname(watch.socket, (struct sockaddr *)&any, &size) != 0)
        return false;
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) != 0) return false;
    for (struct ifaddrs *i = all; i && me->count < MOST_ADDRESSES; i = i->ifa_next) {
        if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || !(i->ifa_flags & IFF_UP)) continue;
        me->address[me->count] = *(struct sockaddr_in *)i->ifa_addr;
        me->address[me->count++].sin_port = any.sin_port;
    }
    freeifaddrs(all);
    return true;
}

static void send_sign(void) {
    Sign sign = {watch.cookie, watch.rank};
    for (int i = 0; i < watch.before.count; i++) // those that lead nowhere do no harm
        sendto(watch.socket, &sign, sizeof sign, MSG_DONTWAIT,
               (struct sockaddr *)&watch.before.address[i], sizeof watch.before.address[i]);
}

/* Whether the watched rank has given a sign since the last call. */
static bool heard_sign(void) {
    Sign sign;
    bool heard = false;
    while (recv(watch.socket, &sign, sizeof sign, MSG_DONTWAIT) == sizeof sign)
        if (sign.cookie == watch.cookie && sign.rank == watch.after) heard = true;
    return heard;
}

static void end_process(int code) { _exit(code); } // the launcher then ends the others

static void *watch_thread(void *unused) {
    (void)unused;
    bool known = false;
    struct pollfd stop = {.fd = watch.stop[0], .events = POLLIN};
    for (int silent = 0; poll(&stop, 1, TURN_MS) == 0; silent++) {
        send_sign();
        if (heard_sign()) known = true, silent = 0;
        if (!known || silent < watch.limit) continue;
        error_set_end(end_process); // MPI may be what hangs
        fatal(EXIT_RUNTIME,
              "rank %d (process %d on %s) has given no sign of life for %g s: it died or hangs, so "
              "all ranks "
              "end; look at that machine, or set a longer --rank-timeout",
              watch.after, watch.watched.process, watch.watched.host, watch.seconds);
    }
    return NULL;
}

/* Tells every rank about every other. */
static void introduce(const World *world, Peer me) {
    for (int rank = 0; rank < world->size; rank++) {
        Peer peer = me;
        world_broadcast(&peer, sizeof peer, rank);
        if (rank == watch.after) watch.watched = peer;
        if (rank == (world->rank + world->size - 1) % world->size) watch.before = peer;
    }
}

void watchdog_start(const World *world, double seconds) {
    if (world->size == 1) return;
    Peer me = {.process = (int)getpid()};
    gethostname(me.host, sizeof me.host - 1);
    watch.rank = world->rank;
    watch.after = (world->rank + 1) % world->size;
    watch.seconds = seconds;
    watch.limit = (int)(seconds * 1000 / TURN_MS) + 1;
    watch.cookie = hash_mix(((uint64_t)time(NULL) << 24) ^ (uint64_t)getpid());
    bool listening = listen_anywhere(&me);
    world_broadcast(&watch.cookie, sizeof watch.cookie, 0);
    introduce(world, me);
    if (listening) send_sign(); // before the barrier: from here on every rank has been heard
    world_barrier();
    if (!listening || seconds == 0 || pipe(watch.stop) != 0) return;
    sigset_t all, before; // signals are the main thread's
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    watch.running = pthread_create(&watch.thread, NULL, watch_thread, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void watchdog_stop(void) {
    world_barrier();
    if (!watch.running) return;
    close(watch.stop[1]);
    pthread_join(watch.thread, NULL);
    close(watch.stop[0]);
    close(watch.socket);
    watch.running = false;
}
