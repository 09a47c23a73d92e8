/* sequences.h: which rows an update sees. The answer is a pure function of (seed, epoch, index).
 *
 * Row j of a stream of n tokens holds tokens jT .. jT+T: T inputs and, shifted by one, T targets.
 * There are ceil((n-1)/T) rows; the last may be short: its missing targets are -1 (ignored). So
 * every target of the stream is served exactly once an epoch and nothing is dropped. Within an
 * epoch the order is a keyed bijection of the row numbers (permutation.h), or the stream's own
 * without shuffling. Epochs follow each other without a seam: the loader's whole state is one
 * 64-bit counter of rows served, `position`; row `position` belongs to epoch position / rows.
 * Not here: who trains on a row (the training loop). */
#ifndef LLMC_ROWS_H
#define LLMC_ROWS_H

#include "stream.h"

typedef struct {
    const Stream *stream;
    int seq_len; // T
    uint64_t seed;
    bool shuffle;
    uint64_t rows;    // in one epoch
    uint64_t targets; // in one epoch: stream_length - 1
} Rows;

/* Fatal (EXIT_INPUT) when the stream has fewer than two tokens: no target. */
Rows rows_new(const Stream *stream, int seq_len, uint64_t seed, bool shuffle);

/* The row number (0 .. rows-1) at a position of the endless order. */
uint64_t rows_at(const Rows *rows, uint64_t position);

/* Targets of row j that count: T, or fewer for a short last row. */
int rows_valid(const Rows *rows, uint64_t j);

/* Targets that count in positions first .. first+count: the N of an update. */
uint64_t rows_valid_total(const Rows *rows, uint64_t first, uint64_t count);

/* Writes row j: inputs (T), targets (T). Inputs beyond the stream's end are 0, targets there -1.
 * Returns a 64-bit hash of the row's inputs and targets: added up over the rows of an update
 * (modulo 2^64) these are the `data` fingerprint of the log, which does not depend on order or
 * split. */
uint64_t rows_read(const Rows *rows, uint64_t j, int32_t *inputs, int32_t *targets);

#endif
