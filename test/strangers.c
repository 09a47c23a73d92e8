/* strangers.c: hostile neighbours for the tests of the heartbeat: `strangers SECONDS PID...` floods every UDP
 * and TCP port that these processes listen on, over loopback, with what anybody on the network may send:
 * empty and huge packets, noise of every size, packets of the right shape with wrong codes, and (where raw
 * sockets are allowed) the processes' own packets recorded and sent again, sender's address and all.
 * Says how many of each it sent. Linux. */
#define _GNU_SOURCE
#include "../llmc/base/clock.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <netpacket/packet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64, RECORDS = 256, RECORD_BYTES = 2048, SIGN_BYTES = 72 };

static uint16_t ports[2][MOST]; // UDP's and TCP's
static int port_counts[2];

static unsigned char records[RECORDS][RECORD_BYTES];
static ssize_t record_bytes[RECORDS];
static int record_count;

static unsigned random_state = 12345;
static unsigned chance(unsigned below) {
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % below;
}

/* The port of the socket with that inode, if /proc/net/udp or tcp lists it as one that listens. */
static void find_port(int kind, const char *inode) {
    FILE *file = fopen(kind ? "/proc/net/tcp" : "/proc/net/udp", "r");
    char line[512];
    while (file && fgets(line, sizeof line, file)) {
        unsigned port, state;
        char found[32];
        if (sscanf(line, "%*d: %*x:%x %*x:%*x %x %*s %*s %*s %*s %*s %31s", &port, &state, found) != 3) continue;
        if (strcmp(found, inode) != 0 || (kind == 1 && state != 10) || port_counts[kind] == MOST) continue;
        ports[kind][port_counts[kind]++] = (uint16_t)port;
    }
    if (file) fclose(file);
}

static void find_ports(const char *process) {
    char folder[64], path[512], target[64];
    snprintf(folder, sizeof folder, "/proc/%s/fd", process);
    DIR *directory = opendir(folder);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        ssize_t n = readlink(path, target, sizeof target - 1);
        if (n < 9 || strncmp(target, "socket:[", 8) != 0) continue;
        target[n - 1] = '\0'; // the bracket
        find_port(0, target + 8);
        find_port(1, target + 8);
    }
    if (directory) closedir(directory);
}

/* Records packets to our ports for a second. */
static void record(void) {
    int tap = socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_IP));
    if (tap < 0) return;
    struct timeval patience = {0, 100000};
    setsockopt(tap, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    for (double end = clock_seconds() + 1; clock_seconds() < end && record_count < RECORDS;) {
        unsigned char *packet = records[record_count];
        ssize_t n = recv(tap, packet, RECORD_BYTES, 0);
        const struct iphdr *ip = (const struct iphdr *)packet;
        if (n < (ssize_t)sizeof *ip || ip->protocol != IPPROTO_UDP) continue;
        const struct udphdr *udp = (const struct udphdr *)(packet + 4 * ip->ihl);
        for (int i = 0; i < port_counts[0]; i++)
            if (ntohs(udp->dest) == ports[0][i]) {
                record_bytes[record_count++] = n;
                break;
            }
    }
    close(tap);
}

static struct sockaddr_in loopback(uint16_t port) {
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
}

static long noise_sent, forged_sent, replayed_sent, calls_made;

static void send_noise(int udp) {
    static unsigned char noise[65507];
    static const size_t sizes[] = {0, 1, 8, 16, SIGN_BYTES - 1, SIGN_BYTES, SIGN_BYTES + 1, 1400, 65507};
    size_t bytes = chance(2) ? sizes[chance(9)] : chance(512);
    struct sockaddr_in to = loopback(ports[0][chance((unsigned)port_counts[0])]);
    for (size_t i = 0; i < bytes && i < 128; i++) noise[i] = (unsigned char)chance(256);
    if (sendto(udp, noise, bytes, 0, (struct sockaddr *)&to, sizeof to) >= 0) noise_sent++;
}

/* A recorded packet: as it was, or with one bit changed (the checksum is left to be found right: 0). */
static void send_recorded(int raw, bool forge) {
    unsigned char packet[RECORD_BYTES];
    int i = (int)chance((unsigned)record_count);
    memcpy(packet, records[i], (size_t)record_bytes[i]);
    const struct iphdr *ip = (const struct iphdr *)packet;
    struct udphdr *udp = (struct udphdr *)(packet + 4 * ip->ihl);
    unsigned body = (unsigned)((unsigned char *)(udp + 1) - packet);
    if (forge) packet[body + chance((unsigned)record_bytes[i] - body)] ^= (unsigned char)(1 << chance(8));
    udp->check = 0;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = ip->daddr};
    if (sendto(raw, packet, (size_t)record_bytes[i], 0, (struct sockaddr *)&to, sizeof to) > 0)
        ++*(forge ? &forged_sent : &replayed_sent);
}

/* Calls that say nothing, noise, or half a question. */
static void call(void) {
    struct sockaddr_in to = loopback(ports[1][chance((unsigned)port_counts[1])]);
    unsigned char noise[128];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    connect(fd, (struct sockaddr *)&to, sizeof to);
    memset(noise, (int)chance(256), sizeof noise);
    send(fd, noise, chance(sizeof noise), MSG_NOSIGNAL);
    calls_made++;
    close(fd);
}

int main(int argc, char **argv) {
    for (int i = 2; i < argc; i++) find_ports(argv[i]);
    if (argc < 3 || port_counts[0] == 0) {
        fprintf(stderr, "strangers: no UDP port found\n");
        return 1;
    }
    record();
    int udp = socket(AF_INET, SOCK_DGRAM, 0), raw = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
    for (double end = clock_seconds() + atof(argv[1]); clock_seconds() < end;)
        for (int i = 0; i < 64; i++) {
            send_noise(udp);
            if (raw >= 0 && record_count) send_recorded(raw, true), send_recorded(raw, false);
            if (i == 0 && port_counts[1]) call();
        }
    printf("strangers: %d ports; sent: noise %ld, forged %ld, replayed %ld, calls %ld\n",
           port_counts[0] + port_counts[1], noise_sent, forged_sent, replayed_sent, calls_made);
    return 0;
}
