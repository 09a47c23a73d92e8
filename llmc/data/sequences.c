/* sequences.c: see sequences.h. */
#include "sequences.h"

#include "../base/error.h"
#include "../base/rng.h"
#include "permutation.h"

#include <inttypes.h>
#include <string.h>

Rows rows_new(const Stream *stream, int seq_len, uint64_t seed, bool shuffle) {
    uint64_t tokens = stream_length(stream), T = (uint64_t)seq_len;
    if (tokens < 2)
        fatal(EXIT_INPUT,
              "%s: tokens are %" PRIu64 ", but 2 or more are expected (an input and its target)",
              stream_name(stream), tokens);
    uint64_t targets = tokens - 1;
    return (Rows){stream, seq_len, seed, shuffle, targets / T + (targets % T != 0), targets};
}

uint64_t rows_at(const Rows *rows, uint64_t position) {
    uint64_t epoch = position / rows->rows, index = position % rows->rows;
    if (!rows->shuffle) return index;
    return permute(index, rows->rows, hash_add(hash_add(0, rows->seed), epoch));
}

int rows_valid(const Rows *rows, uint64_t j) {
    uint64_t T = (uint64_t)rows->seq_len, left = rows->targets - j * T;
    return (int)(left < T ? left : T);
}

uint64_t rows_valid_total(const Rows *rows, uint64_t first, uint64_t count) {
    uint64_t total = 0, T = (uint64_t)rows->seq_len;
    if (rows->targets % T == 0) return count * T;
    for (uint64_t end = first + count; first < end;) {
        uint64_t rest = rows->rows - first % rows->rows; // of this epoch
        uint64_t part = rest < end - first ? rest : end - first;
        if (part == rows->rows)
            total += rows->targets; // a whole epoch
        else
            for (uint64_t i = 0; i < part; i++)
                total += (uint64_t)rows_valid(rows, rows_at(rows, first + i));
        first += part;
    }
    return total;
}

uint64_t rows_read(const Rows *rows, uint64_t j, int32_t *inputs, int32_t *targets) {
    size_t T = (size_t)rows->seq_len, valid = (size_t)rows_valid(rows, j);
    uint64_t first = j * T;
    // target i is token first + i + 1 of the stream, input i the one before
    stream_read(rows->stream, first, 1, inputs);
    stream_read(rows->stream, first + 1, valid, targets);
    memcpy(inputs + 1, targets, (valid < T ? valid : T - 1) * sizeof *inputs);
    for (size_t i = valid + 1; i < T; i++) inputs[i] = 0;
    for (size_t i = valid; i < T; i++) targets[i] = -1;

    uint64_t hash = 0;
    for (size_t i = 0; i < T; i++)
        hash = hash_add(hash, (uint64_t)(uint32_t)inputs[i] << 32 | (uint32_t)targets[i]);
    return hash;
}
