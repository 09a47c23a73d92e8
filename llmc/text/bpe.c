/* bpe.c: see bpe.h. The rank of a pair is found in a hash table. A short word is merged in place, searching all its
 * pairs for the next merge. A longer word keeps its tokens in a linked list and its pairs in a heap, so that n
 * bytes take n log n steps. */
#include "bpe.h"

#include "../base/memory.h"

#include <stdlib.h>
#include <string.h>

#define NO_RANK UINT32_MAX
// A short word's key holds a rank and a position, so that one comparison orders pairs by both. A pair of rank 300 at
// position 5 has the key 300 * 64 + 5 = 19205.
enum { POSITION_BITS = 6 }; // of BPE_SHORT positions

typedef struct {
    uint64_t pair; // left << 32 | right
    uint32_t rank; // NO_RANK: a free slot
    int32_t id;
} Slot;

struct Bpe {
    int32_t byte_ids[256];
    uint32_t *byte_ranks; // (256, 256): the rank of two bytes
    Slot *slots; // (mask + 1), a power of two, at most half of them in use
    uint64_t mask;
};

// ---------------------------------------------------------------------------------------------
// Merges by their pair

/* Two ids as one key. */
static uint64_t pair_of(int32_t left, int32_t right) { return (uint64_t)(uint32_t)left << 32 | (uint32_t)right; }

/* Fibonacci hashing: the high bits of a product with 2^64 / golden ratio. */
static uint64_t slot_of(const Bpe *bpe, uint64_t pair) {
    // The table needs few bits, so the left id is also mixed into the low half. The product's top 24 bits are used.
    uint64_t hash = (pair ^ pair >> 32 << 17) * 0x9E3779B97F4A7C15u;
    return hash >> 40 & bpe->mask;
}

/* The slot of a pair, or the free one where it would be. */
static const Slot *find(const Bpe *bpe, int32_t left, int32_t right) {
    uint64_t pair = pair_of(left, right), at = slot_of(bpe, pair);
    // At least half of the slots are free, so the search always ends.
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
    // The rank of a merge is its place in the list. The smallest rank is merged first.
    for (uint64_t i = 0; i < size; i++) bpe->slots[i].rank = NO_RANK;
    for (int i = 0; i < count; i++) {
        Slot *slot = (Slot *)find(bpe, merges[i].left, merges[i].right);
        if (slot->rank != NO_RANK) continue; // of a merge given twice the first counts
        *slot = (Slot){pair_of(merges[i].left, merges[i].right), (uint32_t)i, merges[i].id};
    }
    // Every word begins as single bytes. Their pairs have a table of 256 KiB, which is read without a search.
    bpe->byte_ranks = memory_new(256 * 256, sizeof *bpe->byte_ranks, "the merges of a tokenizer");
    for (int a = 0; a < 256; a++)
        for (int b = 0; b < 256; b++) bpe->byte_ranks[a * 256 + b] = find(bpe, byte_ids[a], byte_ids[b])->rank;
    return bpe;
}

void bpe_free(Bpe *bpe) {
    if (!bpe) return;
    free(bpe->byte_ranks);
    free(bpe->slots);
    free(bpe);
}

// ---------------------------------------------------------------------------------------------
// Short words

/* The tokens of a short word stay where their first bytes were. */
typedef struct {
    int32_t ids[BPE_SHORT];
    uint32_t keys[BPE_SHORT]; // of the pair that begins here: rank << 6 | position; NO_RANK: none
    unsigned char next[BPE_SHORT + 1], last[BPE_SHORT + 1]; // the neighbours' positions; last[0] is unused
} ShortWord;

/* The pair to merge next, or NO_RANK. Always all 64: compilers make a few vector instructions of that. */
static uint32_t least_key(const ShortWord *w) {
    uint32_t least = NO_RANK;
    for (int i = 0; i < BPE_SHORT; i++) least = w->keys[i] < least ? w->keys[i] : least;
    return least;
}

/* The rank of the pair that begins at `at`, with its place below: the smallest key is the next merge. */
static void set_key(const Bpe *bpe, ShortWord *w, size_t at, size_t next, size_t end) {
    uint32_t rank = next < end ? find(bpe, w->ids[at], w->ids[next])->rank : NO_RANK;
    w->keys[at] = rank == NO_RANK ? NO_RANK : rank << POSITION_BITS | (uint32_t)at;
}

void bpe_encode_short(const Bpe *bpe, const unsigned char *word, size_t bytes, TokenList *out) {
    ShortWord w;
    // All bits 1 is NO_RANK. All 64 keys are set, also those behind the word's end, because least_key reads them all.
    memset(w.keys, 0xff, sizeof w.keys);
    for (size_t i = 0; i < bytes; i++) {
        w.ids[i] = bpe->byte_ids[word[i]];
        w.next[i] = (unsigned char)(i + 1);
        w.last[i + 1] = (unsigned char)i;
    }
    // the pairs of single bytes have a table of their own
    for (size_t i = 0; i + 1 < bytes; i++) {
        uint32_t rank = bpe->byte_ranks[word[i] * 256 + word[i + 1]];
        w.keys[i] = rank == NO_RANK ? NO_RANK : rank << POSITION_BITS | (uint32_t)i;
    }
    // always the merge of the lowest rank; of equal ones the first in the word
    for (uint32_t key; (key = least_key(&w)) != NO_RANK;) {
        // The token at `at` takes over the bytes of the one at `gone`; `next` is the token after them.
        size_t at = key % BPE_SHORT, gone = w.next[at], next = w.next[gone];
        w.ids[at] = find(bpe, w.ids[at], w.ids[gone])->id;
        w.keys[gone] = NO_RANK;
        w.next[at] = (unsigned char)next;
        w.last[next] = (unsigned char)at;
        // Only two pairs have changed: the new token with the next one, and the one before it with the new token.
        set_key(bpe, &w, at, next, bytes);
        if (at > 0) set_key(bpe, &w, w.last[at], at, bytes);
    }
    token_list_reserve(out, bytes);
    // The first token stays at position 0: a merge keeps its left place.
    for (size_t i = 0; i < bytes; i = w.next[i]) out->ids[out->count++] = w.ids[i];
}

// ---------------------------------------------------------------------------------------------
// Words of any length

/* The tokens of a word in a doubly linked list, and its pairs in a heap by rank, then position. A pair whose
 * tokens have changed since it was put into the heap has another rank there, and is skipped. */
typedef struct {
    const Bpe *bpe;
    int32_t *ids;
    uint32_t *ranks;     // of the token's pair with the next one; NO_RANK also after the token was merged
    size_t *next, *last; // the neighbours; `count` and SIZE_MAX at the ends
    uint64_t *heap;      // rank << 32 | position
    size_t count, pairs;
} Word;

/* Adds a pair to the heap: it moves up until its parent is smaller. */
// The heap is binary: the children of entry i are 2i + 1 and 2i + 2, its parent is (i - 1) / 2.
static void heap_put(Word *w, uint64_t pair) {
    size_t at = w->pairs++;
    for (; at > 0 && w->heap[(at - 1) / 2] > pair; at = (at - 1) / 2) w->heap[at] = w->heap[(at - 1) / 2];
    w->heap[at] = pair;
}

/* Takes the smallest pair from the heap; the last one moves down from the top. */
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
// A pair that is not in the list of merges is never put into the heap.
static void pair_up(Word *w, size_t at) {
    size_t next = w->next[at];
    w->ranks[at] = next < w->count ? find(w->bpe, w->ids[at], w->ids[next])->rank : NO_RANK;
    if (w->ranks[at] != NO_RANK) heap_put(w, (uint64_t)w->ranks[at] << 32 | at);
}

/* Joins a token with the one after it, and ranks the two pairs that this makes. */
static void merge(Word *w, size_t at) {
    // Entries of the old pairs stay in the heap: to remove them there would take a search.
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
        // The list has a node for each byte, as in a short word.
        w.ids[i] = bpe->byte_ids[word[i]];
        w.next[i] = i + 1;
        w.last[i] = i - 1; // of the first SIZE_MAX
    }
    for (size_t i = 0; i < bytes; i++) pair_up(&w, i);
    // A word of equal letters has many pairs of one rank. The position in the low half takes the leftmost of them
    // first.
    while (w.pairs > 0) {
        uint64_t least = heap_take(&w);
        size_t at = (uint32_t)least;
        // Only an entry whose rank is still that of the pair at this place is merged.
        if (w.ranks[at] == least >> 32) merge(&w, at);
    }
    token_list_reserve(out, bytes);
    for (size_t i = 0; i < bytes; i = w.next[i]) out->ids[out->count++] = w.ids[i];
    free(w.ids), free(w.ranks), free(w.next), free(w.last), free(w.heap);
}
