/* test_tokenizer.c: text becomes the ids that tiktoken and Hugging Face's tokenizers give (recorded in
 * fixtures/gpt2/cases.jsonl), whatever its bytes and however long its words, and these ids become the text again. */
#include "../llmc/base/error.h"
#include "../llmc/base/memory.h"
#include "../llmc/base/rng.h"
#include "../llmc/files/json_read.h"
#include "../llmc/text/split.h"
#include "../llmc/text/tokenizer_parts.h"
#include "../llmc/text/unicode_classes.h"
#include "files.h"
#include "test.h"

#define FIXTURES "test/fixtures/gpt2/"

/* Random numbers with a state, for texts that are unlikely in practice. */
typedef struct {
    uint64_t key, counter;
} Rng;

static uint64_t rng_next(Rng *rng) { return hash_mix(rng->key << 32 ^ rng->counter++); }
static Rng rng_new(uint64_t key) { return (Rng){key, 0}; }

static Tokenizer *gpt2(void) {
    static Tokenizer *t;
    if (!t) t = tokenizer_open("gpt2");
    return t;
}

static bool same(const TokenList *a, const TokenList *b) {
    return a->count == b->count && (a->count == 0 || memcmp(a->ids, b->ids, a->count * sizeof *a->ids) == 0);
}

/* Whether ids stand for exactly these bytes. */
static bool decodes_to(const Tokenizer *t, const TokenList *list, const void *text, size_t bytes) {
    size_t at = 0, length;
    for (size_t i = 0; i < list->count; i++, at += length) {
        const unsigned char *token = tokenizer_bytes(t, list->ids[i], &length);
        if (length == 0 || length > bytes - at || memcmp(token, (const char *)text + at, length) != 0) return false;
    }
    return at == bytes;
}

// ---------------------------------------------------------------------------------------------
// A slow and obvious reference: merges are looked for from the first to the last, words by the pattern

static void slow_word(const Tokenizer *t, const unsigned char *word, size_t bytes, TokenList *out) {
    int32_t *ids = memory_new(bytes, sizeof *ids, "test");
    size_t n = bytes;
    for (size_t i = 0; i < n; i++) ids[i] = t->byte_ids[word[i]];
    for (;;) {
        int best = t->merge_count;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            int low = 0; // a pair's merge, if there is one, makes a token of just these bytes
            for (low = 0; low < best; low++)
                if (t->merges[low].left == ids[i] && t->merges[low].right == ids[i + 1]) break;
            if (low < best) best = low, at = i;
        }
        if (best == t->merge_count) break;
        ids[at] = t->merges[best].id;
        memmove(ids + at + 1, ids + at + 2, (n - at - 2) * sizeof *ids);
        n--;
    }
    token_list_reserve(out, n);
    memcpy(out->ids + out->count, ids, n * sizeof *ids);
    out->count += n;
    free(ids);
}

/* A small tokenizer with merges that overlap as badly as they can: of random pairs of tokens. */
static Tokenizer *wild(uint64_t seed, int letters, int merges) {
    Tokenizer *t = memory_new(1, sizeof *t, "test");
    t->vocab = 256 + merges;
    t->end_of_text = -1;
    t->merge_count = merges;
    t->merges = memory_new((size_t)merges, sizeof *t->merges, "test");
    t->starts = memory_new((size_t)t->vocab + 1, sizeof *t->starts, "test");
    t->text = memory_new(1 << 20, 1, "test");
    for (int b = 0; b < 256; b++) t->byte_ids[b] = b, t->text[b] = (unsigned char)b, t->starts[b + 1] = (uint32_t)b + 1;
    Rng rng = rng_new(seed);
    for (int i = 0; i < merges; i++) {
        int32_t part[2];
        for (int k = 0; k < 2; k++) {
            do part[k] = (int32_t)(rng_next(&rng) % (uint64_t)(letters + i));
            while (part[k] >= letters && token_length(t, 256 + part[k] - letters) > 12);
            part[k] = part[k] < letters ? 'a' + part[k] : 256 + part[k] - letters;
        }
        t->merges[i] = (Merge){part[0], part[1], 256 + i};
        uint32_t at = t->starts[256 + i];
        for (int k = 0; k < 2; k++) {
            memcpy(t->text + at, t->text + t->starts[part[k]], token_length(t, part[k]));
            at += (uint32_t)token_length(t, part[k]);
        }
        t->starts[256 + i + 1] = at;
    }
    split_open();
    t->bpe = bpe_new(t->byte_ids, t->merges, merges);
    return t;
}

// ---------------------------------------------------------------------------------------------

TEST(cases, "all recorded texts have the ids that tiktoken and Hugging Face's tokenizers gave, and come back") {
    FILE *file = fopen(FIXTURES "cases.jsonl", "r");
    char *line = NULL, problem[JSON_PROBLEM];
    size_t room = 0;
    int count = 0;
    for (ssize_t length; file && (length = getline(&line, &room, file)) > 0; count++) {
        // Strings here end with 0, which the reader refuses: one case has such a byte, "a\0b".
        char *zero = strstr(line, "\\u0000");
        if (zero) memcpy(zero, "\\u0001", 6);
        const Json *json = json_read(line, (size_t)length, problem);
        if (!json) test_fail(__FILE__, __LINE__, "a case is JSON", "%s", problem);
        if (!json) break;
        char *text = memory_string(json_member(json, "text")->text);
        size_t bytes = strlen(text);
        if (zero) *strchr(text, 1) = 0;
        TokenList got = {0}, want = {0};
        tokenizer_encode(gpt2(), text, bytes, false, &got);
        for (const Json *id = json_member(json, "ids")->first; id; id = id->next) {
            token_list_reserve(&want, 1);
            want.ids[want.count++] = (int32_t)id->integer;
        }
        CHECK(same(&got, &want), "case %d: %.60s", count, line);
        CHECK(decodes_to(gpt2(), &got, text, bytes), "case %d: %.60s", count, line);
        free(text), free(got.ids), free(want.ids);
        json_free(json);
    }
    CHECK(count == 495, "%d cases", count);
    free(line);
    if (file) fclose(file);
}

TEST(classes, "every character of Unicode is letter, number, space or other as in the list that was tried out") {
    FILE *file = fopen(FIXTURES "classes.txt", "r");
    char line[256], kind;
    static char want[0x110000];
    int ranges = 0;
    while (file && fgets(line, sizeof line, file)) {
        unsigned first, last;
        int read = sscanf(line, "%c %X-%X", &kind, &first, &last);
        if (line[0] == '#' || read < 2) continue;
        for (unsigned c = first; c <= (read == 3 ? last : first); c++) want[c] = kind;
        ranges++;
    }
    if (file) fclose(file);
    CHECK(ranges == 831, "%d ranges", ranges);
    CharacterClass class = CLASS_OTHER;
    for (int c = 0, i = 0; c < 0x110000; c++) {
        for (; i < unicode_class_change_count && unicode_class_changes[i] >> 2 == (uint32_t)c; i++)
            class = (CharacterClass)(unicode_class_changes[i] & 3);
        CHECK(class == (want[c] == 'L'   ? CLASS_LETTER
                        : want[c] == 'N' ? CLASS_NUMBER
                        : want[c] == 'S' ? CLASS_SPACE
                                         : CLASS_OTHER),
              "U+%04X", c);
    }
}

/* The words of a text, with | between them. */
static const char *words(const char *text) {
    static char shown[400];
    size_t left = strlen(text), used = 0;
    split_open();
    for (size_t length; left > 0; text += length, left -= length) {
        length = split_word((const unsigned char *)text, left);
        if (length == 0 || length > left) return "no progress";
        memcpy(shown + used, text, length);
        used += length;
        shown[used++] = '|';
    }
    shown[used > 0 ? used - 1 : 0] = '\0';
    return shown;
}

TEST(split, "words are split as GPT-2's pattern does") {
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"don't we'll I'd you've 'tis", "don|'t| we|'ll| I|'d| you|'ve| '|tis"},
        {"DON'T 's's ''s 'r 'l", "DON|'|T| '|s|'s| ''|s| '|r| '|l"},
        {"a1b 22 c", "a|1|b| 22| c"},
        {"  x   y  ", " | x|  | y|  "},
        {"a\n\nb\n", "a|\n|\n|b|\n"},
        {"a \tb \n", "a| |\t|b| \n"},
        {"!? ... --x", "!?| ...| --|x"},
        {"na\xc3\xafve \xe4\xb8\xad\xe6\x96\x87\xef\xbc\x9a\xe4\xb8\x80",
         "na\xc3\xafve| \xe4\xb8\xad\xe6\x96\x87|\xef\xbc\x9a|\xe4\xb8\x80"},
        {"\xc2\xa0x\xe2\x80\x83\xe2\x80\x83y", "\xc2\xa0|x|\xe2\x80\x83|\xe2\x80\x83|y"},
        {"a\xff\xfe" "b \x80!c\xe4\xb8", "a|\xff\xfe|b| \x80!|c|\xe4\xb8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK(strcmp(words(cases[i].text), cases[i].words) == 0, "%s: %s", cases[i].text, words(cases[i].text));
}

/* A random text of `bytes` bytes that has something of everything. */
static void make_text(unsigned char *text, size_t bytes, Rng *rng) {
    static const char *const pieces[] = {
        "the", " of", "'s", "'ll", " ", "  ", "\n", "\r\n", "\t", "12", "x", "Q", "!", "...", "_", "<|", "'",
        "\xff", "\x80", "\xc3\xa9", "\xe4\xb8\xad", "\xe2\x80\x83", "\xf0\x9f\x98\x80", "\xc2\xbd"};
    for (size_t at = 0; at < bytes;) {
        const char *piece = pieces[rng_next(rng) % (sizeof pieces / sizeof *pieces)];
        for (; *piece && at < bytes; piece++) text[at++] = (unsigned char)*piece;
    }
}

TEST(random_bytes, "random bytes and random characters come back exactly (SOAK=1: a million texts)") {
    int texts = getenv("SOAK") ? 1000000 : 5000;
    Encoder *e = encoder_new(gpt2(), false);
    Rng rng = rng_new(7);
    unsigned char text[64];
    TokenList list = {0};
    for (int i = 0; i < texts; i++) {
        size_t bytes = rng_next(&rng) % sizeof text;
        if (i % 2)
            make_text(text, bytes, &rng);
        else
            for (size_t k = 0; k < bytes; k++) text[k] = (unsigned char)rng_next(&rng);
        list.count = 0;
        encoder_add(e, text, bytes, &list);
        CHECK(decodes_to(gpt2(), &list, text, bytes), "text %d", i);
    }
    free(list.ids);
    encoder_free(e);
}

TEST(merges_in_order, "words of any length are merged as by going through all merges one after the other") {
    unsigned char word[400];
    for (uint64_t seed = 1; seed <= 300; seed++) {
        Rng rng = rng_new(seed);
        int letters = 1 + (int)(seed % 3);
        Tokenizer *t = wild(seed, letters, 5 + (int)(seed % 40));
        size_t bytes = 1 + rng_next(&rng) % (sizeof word - 1);
        for (size_t i = 0; i < bytes; i++) word[i] = (unsigned char)('a' + rng_next(&rng) % (uint64_t)letters);
        TokenList want = {0}, whole = {0}, windows = {0};
        slow_word(t, word, bytes, &want);
        bpe_encode_whole(t->bpe, word, bytes, &whole);
        tokenizer_encode(t, word, bytes, false, &windows);
        CHECK(same(&whole, &want), "seed %d, a heap", (int)seed);
        CHECK(same(&windows, &want), "seed %d, windows", (int)seed);
        if (bytes <= BPE_SHORT) {
            whole.count = 0;
            bpe_encode_short(t->bpe, word, bytes, &whole);
            CHECK(same(&whole, &want), "seed %d, a short word", (int)seed);
        }
        free(want.ids), free(whole.ids), free(windows.ids);
        tokenizer_free(t);
    }
}

TEST(long_words, "in GPT-2's vocabulary a long word has the same ids through windows as through the heap") {
    static const char *const repeated[] = {"a", "-", "=", "ab", "xyz", "thecat", "\xe4\xb8\xad", "AAAA", "q", "ACGT"};
    unsigned char *word = memory_new(20000, 1, "test");
    Rng rng = rng_new(3);
    for (int i = 0; i < 30; i++) {
        size_t bytes = 0, most = 100 + rng_next(&rng) % 19000;
        if (i < 10) { // shifted by a letter, too
            const char *piece = repeated[i];
            while (bytes + strlen(piece) < most) memcpy(word + bytes, piece, strlen(piece)), bytes += strlen(piece);
        } else {
            while (bytes < most) word[bytes++] = (unsigned char)"ACGTacgtthequick"[rng_next(&rng) % (i < 20 ? 4 : 16)];
        }
        for (size_t shift = 0; shift < 3; shift++) {
            TokenList heap = {0}, got = {0};
            if (split_word(word + shift * (i != 6), bytes - shift * (i != 6)) != bytes - shift * (i != 6)) continue;
            bpe_encode_whole(gpt2()->bpe, word + shift * (i != 6), bytes - shift * (i != 6), &heap);
            tokenizer_encode(gpt2(), word + shift * (i != 6), bytes - shift * (i != 6), false, &got);
            CHECK(same(&heap, &got) && got.count > 0, "word %d, shift %d", i, (int)shift);
            free(heap.ids), free(got.ids);
        }
    }
    free(word);
}

TEST(cut, "a text that is cut where tokenizer_cut says has the same ids, whatever follows") {
    Rng rng = rng_new(11);
    unsigned char text[200];
    int cuts = 0;
    for (int i = 0; i < 20000; i++) {
        size_t bytes = 20 + rng_next(&rng) % 100;
        bool special = i % 4 == 0;
        make_text(text, sizeof text, &rng);
        if (special) memcpy(text + rng_next(&rng) % (bytes - 10), END_OF_TEXT, END_OF_TEXT_BYTES);
        size_t at = tokenizer_cut(gpt2(), text, bytes, special);
        if (at == 0) continue;
        cuts++;
        TokenList whole = {0}, parts = {0};
        tokenizer_encode(gpt2(), text, sizeof text, special, &whole);
        tokenizer_encode(gpt2(), text, at, special, &parts);
        tokenizer_encode(gpt2(), text + at, sizeof text - at, special, &parts);
        CHECK(at < bytes && same(&whole, &parts), "text %d, at %zu", i, at);
        free(whole.ids), free(parts.ids);
    }
    CHECK(cuts > 19000, "%d cuts", cuts);
}

TEST(special, "the end of text that is written out is text, and a token where that is asked for") {
    static const char text[] = "a <|endoftext|><|endoftext|> b<|endoftext";
    TokenList plain = {0}, special = {0};
    tokenizer_encode(gpt2(), text, strlen(text), false, &plain);
    tokenizer_encode(gpt2(), text, strlen(text), true, &special);
    CHECK(decodes_to(gpt2(), &plain, text, strlen(text)) && decodes_to(gpt2(), &special, text, strlen(text)));
    int ends[2] = {0};
    for (size_t i = 0; i < plain.count; i++) ends[0] += plain.ids[i] == 50256;
    for (size_t i = 0; i < special.count; i++) ends[1] += special.ids[i] == 50256;
    CHECK(ends[0] == 0 && ends[1] == 2, "%d and %d", ends[0], ends[1]);
    CHECK(special.count > 2 && special.ids[0] == 64 && special.ids[1] == 220, "the space before it is a word");
    free(plain.ids), free(special.ids);
}

TEST(bytes, "the bytes tokenizer gives each byte its value, has no end of text, and starts with a line break") {
    Tokenizer *t = tokenizer_open("bytes");
    unsigned char text[256];
    for (int b = 0; b < 256; b++) text[b] = (unsigned char)b;
    TokenList list = {0};
    tokenizer_encode(t, text, sizeof text, true, &list);
    for (int b = 0; b < 256; b++) CHECK(list.count == 256 && list.ids[b] == b);
    CHECK(decodes_to(t, &list, text, sizeof text));
    CHECK(tokenizer_vocab(t) == 256 && tokenizer_end_of_text(t) == -1 && tokenizer_start(t) == '\n');
    CHECK(tokenizer_is_bytes(t) && !tokenizer_is_bytes(gpt2()));
    CHECK(tokenizer_vocab(gpt2()) == 50257 && tokenizer_end_of_text(gpt2()) == 50256);
    CHECK(tokenizer_start(gpt2()) == 50256);
    CHECK(tokenizer_cut(t, text, 100, false) == 100);
    free(list.ids);
    tokenizer_free(t);
}

// ---------------------------------------------------------------------------------------------
// Files

/* Writes a tokenizer's files into a new directory. */
static const char *save(const Tokenizer *t, const char *name) {
    const char *directory = in_folder(name);
    Output *output = output_begin(directory, OUTPUT_DIRECTORY);
    for (int i = 0; tokenizer_file(t, i); i++) {
        OutputFile *file = output_open(output, tokenizer_file(t, i));
        tokenizer_write(t, i, file, 1024);
        output_close(file);
    }
    output_commit(output);
    return directory;
}

TEST(files_and_back, "the files that are written for a tokenizer make the same tokenizer again") {
    const char *names[] = {"gpt2", "bytes"};
    for (int i = 0; i < 2; i++) {
        Tokenizer *t = tokenizer_open(names[i]);
        const char *directory = save(t, names[i]);
        Tokenizer *again = tokenizer_open(directory);
        CHECK(tokenizer_identity(t) == tokenizer_identity(again), "%s", names[i]);
        CHECK(tokenizer_is_bytes(t) == tokenizer_is_bytes(again) && tokenizer_vocab(t) == tokenizer_vocab(again));
        CHECK(tokenizer_is_in(directory) && !tokenizer_is_in("test"));
        tokenizer_free(t), tokenizer_free(again);
        output_remove(directory);
    }
}

int main(int argc, char **argv) { return test_main(argc, argv); }
