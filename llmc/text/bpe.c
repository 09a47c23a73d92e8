/* bpe.c: see bpe.h. The rank of a pair is found in a hash table. A short word is merged in place, looking
 * through all its pairs for the next merge. A whole one keeps its tokens in a linked list and its pairs in a heap,
 * so that n bytes take n log n steps. */
#include "bpe.h"

#include "../base/memory.h"

#include <stdlib.h>
#include <string.h>

#define NO_RANK UINT32_MAX

typedef struct {
    uint64_t pair; // left << 32 | right
    uint32_t rank; // NO_RANK: a free slot
    int32_t id;
} Slot;

struct Bpe {
    int32_t byte_ids[256];
    Slot *slots; // (mask + 1), a power of two, at most half of them in use
    uint64_t mask;
};

// ---------------------------------------------------------------------------------------------
// Merges by their pair

static uint64_t pair_of(int32_t left, int32_t right) { return (uint64_t)(uint32_t)left << 32 | (uint32_t)right; }

/* Fibonacci hashing: the high bits of a product with 2^64 / golden ratio. */
static uint64_t slot_of(const Bpe *bpe, uint64_t pair) {
    uint64_t hash = (pair ^ pair >> 32 << 17) * 0x9E3779B97F4A7C15u;
    return hash >> 40 & bpe->mask;
}

/* The slot of a pair, or the free one where it would be. */
static const Slot *find(const Bpe *bpe, int32_t left, int32_t right) {
    uint64_t pair = pair_of(left, right), at = slot_of(bpe, pair);
    while (bpe->slots[at].rank != NO_RANK && bpe->slots[at].pair != pair) at = (at + 1) & bpe->mask;
    return &bpe->slots[at];
}

Bpe *bpe_new(const int32_t byte_ids[256], const Merge *merges, int count) {
    Bpe *bpe = memory_new(1, sizeof *bpe, "a tokenizer");
    memcpy(bpe->byte_ids, byte_ids, sizeof bpe->byte_ids);
    uint64_t size = 256;
    while (size < 2 * (uint64_t)count) size *= 2;
    bpe->mask = size - 1;
    bpe->slots = memory_new(size, sizeof *bpe->slots, "the merges of a tokenizer");
    for (uint64_t i = 0; i < size; i++) bpe->slots[i].rank = NO_RANK;
    for (int i = 0; i < count; i++) {
        Slot *slot = (Slot *)find(bpe, merges[i].left, merges[i].right);
        if (slot->rank != NO_RANK) continue; // of a merge given twice the first counts
        *slot = (Slot){pair_of(merges[i].left, merges[i].right), (uint32_t)i, merges[i].id};
    }
    return bpe;
}

void bpe_free(Bpe *bpe) {
    if (!bpe) return;
    free(bpe->slots);
    free(bpe);
}

// ---------------------------------------------------------------------------------------------
// Short words

void bpe_encode_short(const Bpe *bpe, const unsigned char *word, size_t bytes, TokenList *out) {
    int32_t ids[BPE_SHORT];
    uint32_t ranks[BPE_SHORT]; // of the pair of ids i and i+1
    size_t n = bytes;
    for (size_t i = 0; i < n; i++) ids[i] = bpe->byte_ids[word[i]];
    for (size_t i = 0; i + 1 < n; i++) ranks[i] = find(bpe, ids[i], ids[i + 1])->rank;
    for (;;) {
        size_t best = 0;
        uint32_t least = NO_RANK;
        for (size_t i = 0; i + 1 < n; i++)
            if (ranks[i] < least) least = ranks[i], best = i;
        if (least == NO_RANK) break;
        ids[best] = find(bpe, ids[best], ids[best + 1])->id;
        n--;
        memmove(ids + best + 1, ids + best + 2, (n - best - 1) * sizeof *ids);
        if (best + 1 < n) {
            memmove(ranks + best + 1, ranks + best + 2, (n - best - 2) * sizeof *ranks);
            ranks[best] = find(bpe, ids[best], ids[best + 1])->rank;
        }
        if (best > 0) ranks[best - 1] = find(bpe, ids[best - 1], ids[best])->rank;
    }
    token_list_reserve(out, n);
    memcpy(out->ids + out->count, ids, n * sizeof *ids);
    out->count += n;
}

// ---------------------------------------------------------------------------------------------
// Words of any length

/* The tokens of a word in a doubly linked list, and its pairs in a heap by rank, then position. A pair whose
 * tokens have changed since it was put into the heap has another rank there, and is passed over. */
typedef struct {
    const Bpe *bpe;
    int32_t *ids;
    uint32_t *ranks;     // of the token's pair with the next one; NO_RANK also where the token is no more
    size_t *next, *last; // the neighbours; `count` and SIZE_MAX at the ends
    uint64_t *heap;      // rank << 32 | position
    size_t count, pairs;
} Word;

static void heap_put(Word *w, uint64_t pair) {
    size_t at = w->pairs++;
    for (; at > 0 && w->heap[(at - 1) / 2] > pair; at = (at - 1) / 2) w->heap[at] = w->heap[(at - 1) / 2];
    w->heap[at] = pair;
}

static uint64_t heap_take(Word *w) {
    uint64_t least = w->heap[0], last = w->heap[--w->pairs];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < w->pairs; at = child) {
        if (child + 1 < w->pairs && w->heap[child + 1] < w->heap[child]) child++;
        if (w->heap[child] >= last) break;
        w->heap[at] = w->heap[child];
    }
    w->heap[at] = last;
    return least;
}

/* Looks the pair of a token and the next one up. */
static void pair_up(Word *w, size_t at) {
    size_t next = w->next[at];
    w->ranks[at] = next < w->count ? find(w->bpe, w->ids[at], w->ids[next])->rank : NO_RANK;
    if (w->ranks[at] != NO_RANK) heap_put(w, (uint64_t)w->ranks[at] << 32 | at);
}

static void merge(Word *w, size_t at) {
    size_t gone = w->next[at], next = w->next[gone];
    w->ids[at] = find(w->bpe, w->ids[at], w->ids[gone])->id;
    w->ranks[gone] = NO_RANK;
    w->next[at] = next;
    if (next < w->count) w->last[next] = at;
    pair_up(w, at);
    if (w->last[at] != SIZE_MAX) pair_up(w, w->last[at]);
}

void bpe_encode_whole(const Bpe *bpe, const unsigned char *word, size_t bytes, TokenList *out) {
    const char *what = "a long word";
    Word w = {.bpe = bpe, .count = bytes};
    w.ids = memory_new(bytes, sizeof *w.ids, what);
    w.ranks = memory_new(bytes, sizeof *w.ranks, what);
    w.next = memory_new(bytes, sizeof *w.next, what);
    w.last = memory_new(bytes, sizeof *w.last, what);
    w.heap = memory_new(size_mul(bytes, 3, what), sizeof *w.heap, what); // a merge puts in two pairs at most
    for (size_t i = 0; i < bytes; i++) {
        w.ids[i] = bpe->byte_ids[word[i]];
        w.next[i] = i + 1;
        w.last[i] = i - 1; // of the first SIZE_MAX
    }
    for (size_t i = 0; i < bytes; i++) pair_up(&w, i);
    while (w.pairs > 0) {
        uint64_t least = heap_take(&w);
        size_t at = (uint32_t)least;
        if (w.ranks[at] == least >> 32) merge(&w, at);
    }
    token_list_reserve(out, bytes);
    for (size_t i = 0; i < bytes; i = w.next[i]) out->ids[out->count++] = w.ids[i];
    free(w.ids), free(w.ranks), free(w.next), free(w.last), free(w.heap);
}
