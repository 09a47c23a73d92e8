/* sequences.h: which sequences an update sees. The answer is a pure function of (seed, epoch, number).
 *
 * Sequence j of a stream of n tokens holds tokens jT .. jT+T: T inputs and, shifted by one, T targets. There
 * are ceil((n-1)/T) sequences. The last may be short: its missing targets are -1 (ignored). So every target of
 * the stream is served exactly once in an epoch, and nothing is dropped.
 *
 * Within an epoch the order is a keyed bijection of the sequence numbers (permutation.h), or without shuffling
 * the stream's own order. Epochs follow each other directly. The whole state of the data is therefore one
 * 64-bit counter, how many sequences were served: sequence number `served` of the endless order belongs to
 * epoch served / per_epoch. Not here: which rank trains on a sequence. Next: batch.h. */
#ifndef LLMC_SEQUENCES_H
#define LLMC_SEQUENCES_H

#include "stream.h"

typedef struct {
    const Stream *stream;
    int seq_len; // T
    uint64_t seed;
    bool shuffle;
    uint64_t per_epoch; // sequences in one epoch
    uint64_t targets;   // in one epoch: stream_length - 1
} Sequences;

/* Fatal (EXIT_INPUT) when the stream has fewer than two tokens: no target. */
Sequences sequences_new(const Stream *stream, int seq_len, uint64_t seed, bool shuffle);

/* The number j (0 .. per_epoch-1) of the sequence that is served after `served` others. */
uint64_t sequences_at(const Sequences *sequences, uint64_t served);

/* Targets of sequence j that count: T, or fewer for a short last sequence. */
int sequences_valid(const Sequences *sequences, uint64_t j);

/* Targets of the sequences that are served after `first` others, `count` of them: the N of an update. */
uint64_t sequences_valid_total(const Sequences *sequences, uint64_t first, uint64_t count);

/* Writes sequence j: inputs (T), targets (T). Inputs beyond the stream's end are 0, targets there -1.
 * Returns a 64-bit hash of the sequence's inputs and targets: added up over the sequences of an update
 * (modulo 2^64) these are the `data` fingerprint of the log, which does not depend on order or
 * split. */
uint64_t sequences_read(const Sequences *sequences, uint64_t j, int32_t *inputs, int32_t *targets);

#endif
