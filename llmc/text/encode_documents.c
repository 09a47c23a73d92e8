/* encode_documents.c: many documents into ids on all threads. A batch of segments is read, cut into tasks of about the
 * same size, encoded side by side, and delivered in the order of the inputs: the result does not depend on the number
 * of threads. Each thread has an encoder with a cache of its own. */
#include "encode_documents.h"

#include "../base/memory.h"
#include "../base/parallel.h"
#include "../base/utf8.h"

#include <stdlib.h>
#include <string.h>

// Bytes of text in a batch, more of them for each thread, and in a task. A task of 64 KiB is small enough that all
// threads end at about the same time, and large enough that taking one costs nothing.
enum { BATCH = 1 << 22, BATCH_PER_THREAD = 1 << 20, TASK = 1 << 16 };

/* Segments first .. first + count of a batch, which one thread encodes, and what it finds. */
typedef struct {
    int first, count;
    TokenList ids; // of all its segments
} Task;

/* A batch of text on its way. */
typedef struct {
    SegmentBatch text;
    size_t *ends;      // (segments) where each segment's ids end in its task's list
    uint64_t *invalid; // (segments)
    Task *tasks;
    int task_count, task_capacity, segment_capacity;
} Batch;

/* Bytes that are not UTF-8. */
static uint64_t count_invalid(const unsigned char *text, size_t bytes) {
    uint64_t invalid = 0, eight;
    for (size_t i = 0, length; i < bytes; i += length) {
        // Eight bytes at a time while they are ASCII, which has the top bit 0. Most texts are almost all ASCII.
        length = 8;
        if (bytes - i >= 8 && (memcpy(&eight, text + i, 8), (eight & 0x8080808080808080u) == 0)) continue;
        length = utf8_length(text + i, bytes - i);
        invalid += length == 0;
        if (length == 0) length = 1;
    }
    return invalid;
}

/* Shares the segments out: each task has at least TASK bytes. */
static void make_tasks(Batch *b) {
    if (b->text.count > b->segment_capacity) {
        b->segment_capacity = b->text.segment_capacity;
        b->ends = memory_grow(b->ends, (size_t)b->segment_capacity, sizeof *b->ends, "a batch of text");
        b->invalid = memory_grow(b->invalid, (size_t)b->segment_capacity, sizeof *b->invalid, "a batch of text");
    }
    b->task_count = 0;
    // tasks of about TASK bytes, made of whole segments
    // The first segment begins a task, as if one before it were full.
    size_t bytes = TASK;
    for (int i = 0; i < b->text.count; i++) {
        if (bytes >= TASK) {
            if (b->task_count == b->task_capacity) {
                int more = 2 * b->task_capacity + 16;
                // The lists of ids keep their memory from batch to batch, so only the new part of the array is set to
                // zero.
                b->tasks = memory_grow(b->tasks, (size_t)more, sizeof *b->tasks, "a batch of text");
                memset(b->tasks + b->task_capacity, 0, (size_t)(more - b->task_capacity) * sizeof *b->tasks);
                b->task_capacity = more;
            }
            b->tasks[b->task_count++].first = i;
            b->tasks[b->task_count - 1].count = 0;
            bytes = 0;
        }
        b->tasks[b->task_count - 1].count++;
        bytes += b->text.segments[i].bytes;
    }
}

/* Encodes the segments of one task, one after another. */
static void encode_task(Batch *b, Task *task, Encoder *encoder) {
    // The list is this thread's own while it grows. The tasks beside this one lie in the same cache line, and a count
    // that two threads write there word by word made two threads slower than one.
    TokenList ids = task->ids;
    ids.count = 0;
    for (int i = task->first; i < task->first + task->count; i++) {
        const unsigned char *text = b->text.text + b->text.segments[i].first;
        // The ids of all segments of a task form one list; ends[i] is where those of segment i end.
        encoder_add(encoder, text, b->text.segments[i].bytes, &ids);
        b->ends[i] = ids.count;
        b->invalid[i] = count_invalid(text, b->text.segments[i].bytes);
    }
    task->ids = ids;
}

/* Calls `deliver` for each segment of the batch, in order. */
static void deliver_batch(const Batch *b, EncodedSegment deliver, void *context) {
    for (int t = 0; t < b->task_count; t++) {
        size_t from = 0;
        for (int i = b->tasks[t].first; i < b->tasks[t].first + b->tasks[t].count; i++) {
            // A task of empty segments may have no list, and C allows no arithmetic on NULL.
            const int32_t *ids = from < b->ends[i] ? b->tasks[t].ids.ids + from : NULL;
            deliver(context, &b->text.segments[i], ids, b->ends[i] - from, b->invalid[i]);
            from = b->ends[i];
        }
    }
}

/* Releases a batch. */
static void release_batch(Batch *b) {
    for (int t = 0; t < b->task_capacity; t++) free(b->tasks[t].ids.ids);
    free(b->tasks);
    free(b->ends);
    free(b->invalid);
    segment_batch_free(&b->text);
}

void encode_documents(Documents *documents, const Tokenizer *tokenizer, bool special, int threads,
                      EncodedSegment deliver, EncodeProgress progress, void *context) {
    if (threads == 0) threads = omp_get_max_threads();
    // More threads get more text, since each batch ends with a wait for the slowest of them.
    size_t bytes = BATCH + (size_t)threads * BATCH_PER_THREAD;
    Encoder **encoders = memory_new((size_t)threads, sizeof(Encoder *), "encoders");
    for (int i = 0; i < threads; i++) encoders[i] = encoder_new(tokenizer, special);
    // Two batches: while all threads encode one, a single task delivers the batch before and reads the next.
    Batch batches[2] = {0}, *now = &batches[0], *other = &batches[1];
    bool more = documents_read(documents, &now->text, bytes);
    make_tasks(now);
    // With three batches the rounds are:
    //   encode 1   deliver none   read 2
    //   encode 2   deliver 1      read 3
    //   encode 3   deliver 2      read none
    // and after the loop batch 3 is delivered.
    while (now->task_count > 0) {
        PARALLEL_EACH_OF(threads)
        // Iteration 0 comes first, because delivering and reading may take longer than a task.
        for (int i = 0; i <= now->task_count; i++) {
            if (i > 0) {
                encode_task(now, &now->tasks[i - 1], encoders[omp_get_thread_num()]);
                continue;
            }
            deliver_batch(other, deliver, context);
            more = more && documents_read(documents, &other->text, bytes);
            // An empty batch ends the loop in the next round.
            if (!more) other->text.count = 0;
            make_tasks(other);
        }
        if (progress) progress(context, now->text.consumed);
        Batch *done = now;
        now = other, other = done;
    }
    deliver_batch(other, deliver, context);
    for (int i = 0; i < threads; i++) encoder_free(encoders[i]);
    free(encoders);
    release_batch(&batches[0]);
    release_batch(&batches[1]);
}
