/* heartbeat.c: see heartbeat.h. Everything here returns at once; nothing waits for another rank. */
#define _GNU_SOURCE
#include "heartbeat.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIGN = 0x73696e67, QUESTION, ANSWER }; // kinds; other programs' packets begin otherwise

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 // SO_NOSIGPIPE there
#endif

// ---- packets ----------------------------------------------------------------------------------

/* The code that only ranks of this run can compute: SipHash of all bytes before it. */
static uint64_t code_of(const Heartbeat *heart, const Packet *packet) {
    return siphash(&heart->key, packet, offsetof(Packet, code));
}

/* A packet of this rank. */
static Packet make(Heartbeat *heart, uint64_t kind, uint64_t number, const Pulse *pulse) {
    Packet packet = {.kind = kind, .rank = heart->rank, .number = number};
    if (pulse) packet.pulse = *pulse;
    // Last, because it covers all bytes before it.
    packet.code = code_of(heart, &packet);
    return packet;
}

/* Whether a packet of the right size is one of this run, from that rank. */
static bool is_genuine(const Heartbeat *heart, const Packet *packet, uint64_t kind, int from) {
    // Without the key nobody can compute the code, and a packet that was changed on its way has a wrong one.
    return packet->kind == kind && packet->rank == (uint64_t)from && packet->code == code_of(heart, packet);
}

// ---- sockets ----------------------------------------------------------------------------------

/* A socket that never waits, bound to a free port on every address; -1 when that fails. */
static int bound_socket(int type, in_port_t *port) {
    struct sockaddr_in any = {.sin_family = AF_INET};
    socklen_t size = sizeof any;
    int fd = socket(AF_INET, type, 0);
    if (fd < 0) return -1;
    // The socket closes in programs that this one starts. Nothing may wait here: a watchdog that waits cannot watch.
    // Port 0 in `any` asks the system for a free port; getsockname tells which one it gave.
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0 &&
        bind(fd, (struct sockaddr *)&any, sizeof any) == 0 &&
        getsockname(fd, (struct sockaddr *)&any, &size) == 0) {
        *port = any.sin_port;
        return fd;
    }
    close(fd);
    return -1;
}

/* This machine's addresses. */
static bool find_addresses(Peer *me) {
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) != 0) return false;
    // Every address that is up, loopback too: ranks of one machine may reach each other by it. IPv4 only.
    for (struct ifaddrs *i = all; i && me->count < HEARTBEAT_ADDRESSES; i = i->ifa_next)
        if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && i->ifa_flags & IFF_UP)
            me->address[me->count++] = ((struct sockaddr_in *)i->ifa_addr)->sin_addr;
    freeifaddrs(all);
    return true;
}

bool heartbeat_open(Heartbeat *heart, int rank, Peer *me) {
    heart->rank = (uint64_t)rank;
    // -1 before anything can fail: heartbeat_close closes only what is open.
    for (int i = 0; i < HEARTBEAT_CALLERS; i++) heart->callers[i].socket = -1;
    for (int i = 0; i < HEARTBEAT_ADDRESSES; i++) heart->questions[i].socket = -1;
    heart->udp = bound_socket(SOCK_DGRAM, &me->udp);
    heart->listener = bound_socket(SOCK_STREAM, &me->tcp);
    if (heart->udp >= 0 && heart->listener >= 0 && listen(heart->listener, HEARTBEAT_CALLERS) == 0 &&
        find_addresses(me))
        return true;
    heartbeat_close(heart);
    return false;
}

/* Closes a connection. */
static void hang_up(Caller *caller) {
    if (caller->socket >= 0) close(caller->socket);
    *caller = (Caller){.socket = -1};
}

void heartbeat_close(Heartbeat *heart) {
    for (int i = 0; i < HEARTBEAT_CALLERS; i++) hang_up(&heart->callers[i]);
    heartbeat_hang_up(heart);
    if (heart->udp >= 0) close(heart->udp);
    if (heart->listener >= 0) close(heart->listener);
    heart->udp = heart->listener = -1;
}

// ---- heartbeats, over UDP ------------------------------------------------------------------------

/* The i-th address of a peer. */
static struct sockaddr_in address_of(const Peer *peer, int i, in_port_t port) {
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = peer->address[i], .sin_port = port};
}

void heartbeat_send(Heartbeat *heart, const Peer *to, const Pulse *pulse) {
    Packet packet = make(heart, SIGN, ++heart->sent, pulse);
    for (int i = 0; i < to->count; i++) { // addresses that lead nowhere do no harm
        struct sockaddr_in address = address_of(to, i, to->udp);
        sendto(heart->udp, &packet, sizeof packet, MSG_NOSIGNAL, (struct sockaddr *)&address, sizeof address);
    }
}

/* Whether a packet came from an address of the peer. A peer with more addresses than are listed may send from any. */
static bool is_from(const Peer *peer, const struct sockaddr_in *sender) {
    if (peer->count == HEARTBEAT_ADDRESSES) return true;
    for (int i = 0; i < peer->count; i++)
        if (peer->address[i].s_addr == sender->sin_addr.s_addr && peer->udp == sender->sin_port) return true;
    return false;
}

bool heartbeat_receive(Heartbeat *heart, const Peer *peer, int from, int *budget, Pulse *pulse) {
    bool heard = false;
    for (; *budget > 0; --*budget) {
        Packet packet;
        struct sockaddr_in sender = {0};
        socklen_t size = sizeof sender;
        // MSG_TRUNC: n is the packet's whole length, so a longer one does not pass for one of the right size.
        ssize_t n = recvfrom(heart->udp, &packet, sizeof packet, MSG_TRUNC, (struct sockaddr *)&sender, &size);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
        if (n != (ssize_t)sizeof packet || !is_from(peer, &sender)) continue; // or an error of one that was sent
        // Numbers only rise. Over UDP packets may overtake each other; the older one has nothing new to say.
        if (!is_genuine(heart, &packet, SIGN, from) || packet.number <= heart->heard) continue;
        heart->heard = packet.number;
        *pulse = packet.pulse;
        heard = true;
    }
    return heard;
}

// ---- questions, over TCP ------------------------------------------------------------------------

void heartbeat_ask(Heartbeat *heart, const Peer *peer) {
    heartbeat_hang_up(heart);
    // The next number is a hash under the key, so an outsider cannot guess it, and an answer to an earlier question
    // does not count for this one.
    heart->question = siphash(&heart->key, &heart->question, sizeof heart->question);
    for (int i = 0; i < peer->count; i++) {
        struct sockaddr_in address = address_of(peer, i, peer->tcp);
        Caller *caller = &heart->questions[i];
        caller->socket = socket(AF_INET, SOCK_STREAM, 0);
        if (caller->socket < 0) continue;
        fcntl(caller->socket, F_SETFD, FD_CLOEXEC);
        fcntl(caller->socket, F_SETFL, O_NONBLOCK);
        // EINPROGRESS: the connection is being made; heartbeat_serve sends the question when it stands.
        if (connect(caller->socket, (struct sockaddr *)&address, sizeof address) != 0 && errno != EINPROGRESS)
            hang_up(caller);
    }
}

void heartbeat_hang_up(Heartbeat *heart) {
    for (int i = 0; i < HEARTBEAT_ADDRESSES; i++) hang_up(&heart->questions[i]);
}

/* Sends a packet, all or nothing: it is far smaller than any buffer. */
static bool send_packet(Caller *caller, const Packet *packet) {
    return send(caller->socket, packet, sizeof *packet, MSG_NOSIGNAL) == (ssize_t)sizeof *packet;
}

/* Continues to read. True when the packet is complete; closes the connection when it cannot become complete. */
static bool listen_to(Caller *caller) {
    // TCP is a stream: a packet may come in parts, so `bytes` counts what has come. n == 0: the other side has closed.
    ssize_t n = recv(caller->socket, (char *)&caller->packet + caller->bytes, sizeof(Packet) - caller->bytes, 0);
    if (n > 0) caller->bytes += (size_t)n;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) hang_up(caller);
    return caller->socket >= 0 && caller->bytes == sizeof(Packet);
}

/* Accepts connections; each replaces the one that came HEARTBEAT_CALLERS connections before it. */
static void take_calls(Heartbeat *heart, int *budget) {
    for (; *budget > 0; --*budget) {
        int fd = accept(heart->listener, NULL, NULL);
        if (fd < 0) break;
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        fcntl(fd, F_SETFL, O_NONBLOCK);
        // The oldest caller goes. Strangers who connect and say nothing thus cannot keep the ranks out.
        hang_up(&heart->callers[HEARTBEAT_CALLERS - 1]);
        memmove(&heart->callers[1], &heart->callers[0], (HEARTBEAT_CALLERS - 1) * sizeof(Caller));
        heart->callers[0] = (Caller){.socket = fd};
        if (listen_to(&heart->callers[0])) break; // a question that arrived with the connection is answered below
    }
}

/* Answers the ranks that ask over TCP whether this rank is alive. */
static void answer_calls(Heartbeat *heart) {
    for (int i = 0; i < HEARTBEAT_CALLERS; i++) {
        Caller *caller = &heart->callers[i];
        if (caller->socket < 0) continue;
        bool whole = caller->bytes == sizeof(Packet) || listen_to(caller);
        if (!whole) continue;
        // Any rank of this run may ask, so the sender's rank is the one that the packet names; the code proves it.
        if (is_genuine(heart, &caller->packet, QUESTION, (int)caller->packet.rank)) {
            Packet answer = make(heart, ANSWER, caller->packet.number, NULL);
            send_packet(caller, &answer);
        }
        hang_up(caller);
    }
}

bool heartbeat_serve(Heartbeat *heart, int from, int *budget) {
    take_calls(heart, budget);
    answer_calls(heart);
    bool answered = false;
    Packet question = make(heart, QUESTION, heart->question, NULL);
    for (int i = 0; i < HEARTBEAT_ADDRESSES; i++) {
        Caller *caller = &heart->questions[i];
        if (caller->socket < 0) continue;
        struct pollfd ready = {.fd = caller->socket, .events = POLLOUT};
        if (!caller->asked) { // still connecting
            // Without waiting: 0 means that the connection is not decided yet. When it failed, the send below fails.
            if (poll(&ready, 1, 0) == 0) continue;
            caller->asked = send_packet(caller, &question);
            if (!caller->asked) hang_up(caller);
            continue;
        }
        if (!listen_to(caller)) continue;
        // It must be the answer to this question, not one that was recorded earlier.
        answered |= is_genuine(heart, &caller->packet, ANSWER, from) && caller->packet.number == heart->question;
        hang_up(caller);
    }
    return answered;
}

int heartbeat_polls(const Heartbeat *heart, struct pollfd *polls) {
    int count = 0;
    polls[count++] = (struct pollfd){.fd = heart->udp, .events = POLLIN};
    polls[count++] = (struct pollfd){.fd = heart->listener, .events = POLLIN};
    // Callers whose question has not come as a whole.
    for (int i = 0; i < HEARTBEAT_CALLERS; i++)
        if (heart->callers[i].socket >= 0)
            polls[count++] = (struct pollfd){.fd = heart->callers[i].socket, .events = POLLIN};
    // Until the question is sent the wait is for the connection, after that for the answer.
    for (int i = 0; i < HEARTBEAT_ADDRESSES; i++)
        if (heart->questions[i].socket >= 0)
            polls[count++] = (struct pollfd){
                .fd = heart->questions[i].socket,
                .events = heart->questions[i].asked ? POLLIN : POLLOUT};
    return count;
}

// ---- the same system ----------------------------------------------------------------------------

/* The first line of a small file of /proc; "" when it cannot be read. */
static void read_line(const char *path, char *line, int size) {
    // 'e' closes the file in programs that this one starts.
    FILE *file = fopen(path, "re");
    if (!file || !fgets(line, size, file)) line[0] = '\0';
    if (file) fclose(file);
    line[strcspn(line, "\n")] = '\0';
}

void heartbeat_introduce(Peer *me, int64_t thread) {
    struct stat status;
    gethostname(me->host, sizeof me->host - 1);
    // Linux draws a new boot_id at each start of the system, so two machines never share it. Containers on one system
    // do share it, but may number processes apart; the inode of the PID namespace tells them apart.
    read_line("/proc/sys/kernel/random/boot_id", me->machine, sizeof me->machine);
    me->namespace = stat("/proc/self/ns/pid", &status) == 0 ? (uint64_t)status.st_ino : 0;
    me->process = getpid();
    me->thread = thread;
}

int64_t heartbeat_sleeps(const Peer *peer) {
    char path[96], text[4096];
    snprintf(path, sizeof path, "/proc/%lld/task/%lld/status", (long long)peer->process, (long long)peer->thread);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    // Linux counts here how often the thread gave up its core by itself, as the watchdog's thread does in each poll().
    const char *count = strstr(text, "\nvoluntary_ctxt_switches:");
    return count ? strtoll(strchr(count, ':') + 1, NULL, 10) : -1;
}

bool heartbeat_sees(const Peer *me, const Peer *peer) {
    // The last test is whether this system has such counts at all: read our own.
    return me->machine[0] && me->namespace && peer->thread && strcmp(me->machine, peer->machine) == 0 &&
           me->namespace == peer->namespace && heartbeat_sleeps(me) >= 0;
}
