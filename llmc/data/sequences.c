/* sequences.c: the order of sequences, and their reading. sequences_at is the order; sequences_valid_total is
 * the N of chapter 27.3, computed without reading a token; sequences_read makes inputs and targets. */
#include "sequences.h"

#include "../base/error.h"
#include "../base/rng.h"
#include "permutation.h"

#include <inttypes.h>
#include <string.h>

Sequences sequences_new(const Stream *stream, int seq_len, uint64_t seed, bool shuffle) {
    uint64_t tokens = stream_length(stream), T = (uint64_t)seq_len;
    if (tokens < 2)
        fatal(EXIT_INPUT,
              "%s: tokens are %" PRIu64 ", but 2 or more are expected (an input and its target)",
              stream_name(stream), tokens);
    // Example: 10 tokens have 9 targets; with T = 4 they are sequences of 4, 4 and 1 targets.
    uint64_t targets = tokens - 1;
    return (Sequences){stream, seq_len, seed, shuffle, targets / T + (targets % T != 0), targets};
}

uint64_t sequences_at(const Sequences *sequences, uint64_t served) {
    // Example: served = 7 with 3 sequences in an epoch is epoch 2 (the third), index 1.
    uint64_t epoch = served / sequences->per_epoch, index = served % sequences->per_epoch;
    if (!sequences->shuffle) return index;
    // The key depends on the seed and the epoch alone: each epoch has another order, and a resumed run finds the same
    // one.
    return permute(index, sequences->per_epoch, hash_add(hash_add(0, sequences->seed), epoch));
}

int sequences_valid(const Sequences *sequences, uint64_t j) {
    uint64_t T = (uint64_t)sequences->seq_len, left = sequences->targets - j * T;
    return (int)(left < T ? left : T);
}

uint64_t sequences_valid_total(const Sequences *sequences, uint64_t first, uint64_t count) {
    uint64_t total = 0, T = (uint64_t)sequences->seq_len;
    if (sequences->targets % T == 0) return count * T; // no sequence is short
    // Epoch by epoch: a whole one has all targets; of a part each sequence is asked whether it is the short one.
    for (uint64_t end = first + count; first < end;) {
        uint64_t rest = sequences->per_epoch - first % sequences->per_epoch; // of this epoch
        uint64_t part = rest < end - first ? rest : end - first;
        if (part == sequences->per_epoch)
            total += sequences->targets; // a whole epoch
        else
            for (uint64_t i = 0; i < part; i++)
                total += (uint64_t)sequences_valid(sequences, sequences_at(sequences, first + i));
        first += part;
    }
    return total;
}

uint64_t sequences_read(const Sequences *sequences, uint64_t j, int32_t *inputs, int32_t *targets) {
    size_t T = (size_t)sequences->seq_len, valid = (size_t)sequences_valid(sequences, j);
    uint64_t first = j * T;
    // target i is token first + i + 1 of the stream, input i the one before
    stream_read(sequences->stream, first, 1, inputs);
    stream_read(sequences->stream, first + 1, valid, targets);
    // Input i + 1 is target i, so a token is read from the file once. The last target of a whole sequence is no
    // input.
    memcpy(inputs + 1, targets, (valid < T ? valid : T - 1) * sizeof *inputs);
    for (size_t i = valid + 1; i < T; i++) inputs[i] = 0;
    for (size_t i = valid; i < T; i++) targets[i] = -1;

    // The hash takes input and target of a position as one number of 64 bits.
    uint64_t hash = 0;
    for (size_t i = 0; i < T; i++)
        hash = hash_add(hash, (uint64_t)(uint32_t)inputs[i] << 32 | (uint32_t)targets[i]);
    return hash;
}
