/* heartbeat.h: the messages that ranks exchange beside MPI, so that a dead or hanging rank is noticed: packets
 * under a secret key, and the sockets they pass through. Part of watchdog.h, which decides.
 *
 * A heartbeat goes over UDP, every turn. Other machines on the network may send packets too, so a packet counts
 * only when its code (siphash.h) is right under the run's random key, it is from one of the sender's addresses, and
 * its number is above all before (so a recorded packet that is sent again is ignored). Of each socket a bounded
 * number of packets is read in a turn.
 *
 * Where UDP is silent a question goes over TCP, to the thread that sends the heartbeats. */
#ifndef LLMC_HEARTBEAT_H
#define LLMC_HEARTBEAT_H

#include "../base/activity.h"
#include "../base/siphash.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

enum { HEARTBEAT_ADDRESSES = 8, HEARTBEAT_CALLERS = 4 };

/* A rank as the others know it. */
typedef struct {
    char host[64];
    char machine[48];        // of this start of its system; "" where unknown
    uint64_t namespace;      // in which process and thread are numbered; 0: not known
    int64_t process, thread; // thread: the one that sends heartbeats; 0: not known
    int count;
    struct in_addr address[HEARTBEAT_ADDRESSES];
    in_port_t udp, tcp; // in network order
} Peer;

/* The content of a heartbeat. Times are in turns. */
typedef struct {
    ActivityState at;
    uint64_t still; // since its main thread made progress
    uint64_t idle;  // since any rank that it waits for made progress, as far as it knows
} Pulse;

typedef struct {
    uint64_t kind, rank, number;
    Pulse pulse;
    uint64_t code;
} Packet;

/* A connection with half a packet. */
typedef struct {
    int socket; // -1: none
    bool asked; // the question is sent
    size_t bytes;
    Packet packet; // of which `bytes` bytes have come
} Caller;

typedef struct {
    SipKey key;
    uint64_t rank;
    int udp, listener;
    uint64_t sent, heard; // numbers of the last packets
    Caller callers[HEARTBEAT_CALLERS];         // who asks this rank
    Caller questions[HEARTBEAT_ADDRESSES];     // what this rank asks: the same on each address
    uint64_t question;                         // its number
} Heartbeat;

/* Opens sockets for rank `rank` and writes their addresses to *me. False when that fails. */
bool heartbeat_open(Heartbeat *heart, int rank, Peer *me);
void heartbeat_close(Heartbeat *heart);

void heartbeat_send(Heartbeat *heart, const Peer *to, const Pulse *pulse);

/* Reads what has come, at most *budget packets, and subtracts their number from *budget. True, with *pulse, when a
 * heartbeat of rank `from` was among them. */
bool heartbeat_receive(Heartbeat *heart, const Peer *peer, int from, int *budget, Pulse *pulse);

/* Asks a rank over TCP whether it lives; heartbeat_serve returns true when it has answered. */
void heartbeat_ask(Heartbeat *heart, const Peer *peer);
void heartbeat_hang_up(Heartbeat *heart);

/* Answers those who ask and reads the answers of rank `from`: true when it has answered. */
bool heartbeat_serve(Heartbeat *heart, int from, int *budget);

/* The descriptors to wait for (at most HEARTBEAT_POLLS). Returns how many. */
enum { HEARTBEAT_POLLS = 2 + HEARTBEAT_CALLERS + HEARTBEAT_ADDRESSES };
int heartbeat_polls(const Heartbeat *heart, struct pollfd *polls);

/* Fills in a Peer for this process, except for addresses. */
void heartbeat_introduce(Peer *me, int64_t thread);

/* How often a thread of a process on this same system has gone to sleep, which a living one does every turn; -1: it
 * is gone, or this cannot be read (ask heartbeat_sees first). */
int64_t heartbeat_sleeps(const Peer *peer);

/* Whether heartbeat_sleeps works for this peer: it is on the same system, under the same numbers. */
bool heartbeat_sees(const Peer *me, const Peer *peer);

#endif
