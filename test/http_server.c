/* http_server.c: a web server for tests, which breaks off in the middle of files.
 *
 *   http_server DIR PORTFILE CUT
 *
 * Serves the files of DIR on 127.0.0.1, on a free port whose number it writes to PORTFILE. A response
 * announces all of the file, or of the rest that a "Range: bytes=N-" asks for, and ends after CUT bytes.
 * CUT 0: it sends everything, but knows no ranges. Ends after two minutes, or when it is killed. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *folder;
static long cut;

static void say(int to, const char *text) {
    if (write(to, text, strlen(text)) < 0) perror("http_server");
}

/* Answers "GET /path HTTP/1.1" or HEAD. */
static void answer(int to, const char *request) {
    char method[8], path[256], name[512], head[256];
    long from = 0;
    if (sscanf(request, "%7s /%255s", method, path) != 2 || strstr(path, "..")) return;
    const char *range = strstr(request, "Range: bytes=");
    if (range && cut > 0) from = atol(range + 13);
    snprintf(name, sizeof name, "%s/%s", folder, path);
    FILE *file = fopen(name, "rb");
    if (!file) {
        say(to, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        return;
    }
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    if (from > 0)
        snprintf(head, sizeof head,
                 "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes %ld-%ld/%ld\r\n"
                 "Content-Length: %ld\r\nConnection: close\r\n\r\n",
                 from, size - 1, size, size - from);
    else
        snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %ld\r\nConnection: close\r\n\r\n",
                 size);
    say(to, head);
    if (strcmp(method, "HEAD") != 0) {
        static char bytes[1 << 20];
        fseek(file, from, SEEK_SET);
        size_t most = cut > 0 && cut < (long)sizeof bytes ? (size_t)cut : sizeof bytes, n;
        do {
            n = fread(bytes, 1, most, file);
            if (n > 0 && write(to, bytes, n) < 0) break;
        } while (n == most && cut == 0);
    }
    fclose(file);
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    folder = argv[1];
    cut = atol(argv[3]);
    alarm(120);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    if (bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(listener, 8) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &length) != 0)
        return 1;
    FILE *port = fopen(argv[2], "w");
    if (!port) return 1;
    fprintf(port, "%d\n", ntohs(at.sin_port));
    fclose(port);
    for (;;) {
        char request[4096] = {0};
        int to = accept(listener, NULL, NULL);
        if (to < 0) return 1;
        if (read(to, request, sizeof request - 1) > 0) answer(to, request);
        shutdown(to, SHUT_WR);
        while (read(to, request, sizeof request) > 0) {} // until the client is gone, too
        close(to);
    }
}
