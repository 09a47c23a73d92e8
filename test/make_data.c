/* make_data.c: writes the bytes of a file as tokens, in each of the formats that the program reads.
 *   make_data llmc|npy|npy4|raw|raw4|raw8|swapped INPUT OUTPUT
 * and swapped, an llm.c shard of the other byte order, in one that it does not. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(const void *data, size_t size, FILE *file) {
    if (fwrite(data, 1, size, file) != size) exit(1);
}

static void put_npy_header(FILE *file, const char *type, size_t count) {
    char header[118];
    memset(header, ' ', sizeof header);
    int n = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (%zu,), }", type,
                     count);
    header[n] = ' ';
    header[sizeof header - 1] = '\n';
    put("\x93NUMPY\x01\x00\x76\x00", 10, file); // version 1.0, 118 bytes of header
    put(header, sizeof header, file);
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    const char *kind = argv[1];
    FILE *in = fopen(argv[2], "rb"), *out = fopen(argv[3], "wb");
    if (!in || !out) return 1;
    static unsigned char text[1 << 20];
    size_t count = fread(text, 1, sizeof text, in);
    if (strcmp(kind, "llmc") == 0) {
        int32_t header[256] = {20240520, 1, (int32_t)count};
        put(header, sizeof header, out);
    } else if (strcmp(kind, "npy") == 0) {
        put_npy_header(out, "<u2", count);
    } else if (strcmp(kind, "npy4") == 0) {
        put_npy_header(out, "<i4", count);
    } else if (strcmp(kind, "swapped") == 0) {
        uint32_t header[256] = {__builtin_bswap32(20240520), __builtin_bswap32(1), __builtin_bswap32((uint32_t)count)};
        put(header, sizeof header, out);
    } else if (strncmp(kind, "raw", 3) != 0) {
        return 2;
    }
    bool swapped = strcmp(kind, "swapped") == 0;
    size_t width = kind[strlen(kind) - 1] == '8' ? 8 : kind[strlen(kind) - 1] == '4' ? 4 : 2;
    for (size_t i = 0; i < count; i++) {
        unsigned char token[8] = {0};
        token[swapped] = text[i];
        put(token, width, out);
    }
    return fclose(out) != 0;
}
