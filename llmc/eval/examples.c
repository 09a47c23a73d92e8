/* examples.c: see examples.h. Both readers append ids to one list and then describe the example; the rules that
 * hold for both are checked in one place, add_example. */
#include "examples.h"

#include "../base/error.h"
#include "../base/memory.h"
#include "../base/number.h"
#include "../base/rng.h"
#include "../files/input.h"
#include "../files/json_read.h"

#include <stdlib.h>
#include <string.h>

/* What a reader needs to know while it reads. */
typedef struct {
    Examples *examples;
    const ExamplesFor *model;
    Encoder *encoder; // of JSON lines
    size_t capacity;
    const char *unit; // "line" or "example", with
    size_t number;    // the number of the one being read
} Reader;

/* Ends the program: the current example has a fault. */
static _Noreturn void refuse(const Reader *r, const char *what) {
    fatal(EXIT_INPUT, "%s: %s %zu: %s", r->examples->path, r->unit, r->number, what);
}

/* Whether `most` (0: any number) are read. */
static bool enough(const Reader *r, int64_t most) {
    return most > 0 && r->examples->count >= (size_t)most;
}

// ---------------------------------------------------------------------------------------------
// What holds for every example

/* All ids must be below the model's vocabulary. */
static void check_ids(const Reader *r, const int32_t *ids, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= r->model->vocab)
            fatal(
                EXIT_INPUT,
                "%s: %s %zu: has token %d, but the model's are 0 to %d: another tokenizer's file?",
                r->examples->path, r->unit, r->number, (int)ids[i], r->model->vocab - 1);
}

/* An example needs a context, completions that are not empty, and room for both in the model. */
static void check_lengths(const Reader *r, const Example *e) {
    if (e->completions < 2) refuse(r, "has fewer than two completions");
    if (e->label < 0 || e->label >= e->completions)
        fatal(EXIT_INPUT, "%s: %s %zu: label is %d, but 0 to %d are expected", r->examples->path,
              r->unit, r->number, e->label, e->completions - 1);
    if (e->context < 1)
        refuse(r, "the context is empty; a model needs at least one token to continue from");
    for (int i = 0; i < e->completions; i++) {
        if (e->tokens[i] < 1) refuse(r, "a completion is empty");
        // the last token is only predicted: the model does not read it
        if (e->context + e->tokens[i] - 1 > r->model->seq_len)
            fatal(EXIT_INPUT,
                  "%s: %s %zu: context and completion have %d tokens, but the model's context is "
                  "%d; leave it out, or "
                  "use a model with longer sequences",
                  r->examples->path, r->unit, r->number, e->context + e->tokens[i],
                  r->model->seq_len);
    }
}

/* Takes over the example whose ids end the list of tokens. */
static void add_example(Reader *r, const Example *e) {
    Examples *all = r->examples;
    check_lengths(r, e);
    check_ids(r, all->tokens.ids + e->first, all->tokens.count - e->first);
    // doubled, so that 10,000 examples are copied 8 times and not 10,000 times
    if (all->count == r->capacity) {
        r->capacity = r->capacity ? 2 * r->capacity : 64;
        all->items =
            memory_grow(all->items, r->capacity, sizeof *all->items, "evaluation examples");
    }
    all->items[all->count++] = *e;
}

// ---------------------------------------------------------------------------------------------
// JSON lines

/* Appends the tokens of a text and returns how many they are. */
static int append_text(Reader *r, const char *text, size_t bytes) {
    TokenList *tokens = &r->examples->tokens;
    size_t before = tokens->count;
    encoder_add(r->encoder, text, bytes, tokens);
    return (int)(tokens->count - before);
}

/* A string member. */
static const char *text_of(const Reader *r, const Json *value, const char *name) {
    if (value && value->kind == JSON_STRING) return value->text;
    fatal(EXIT_INPUT, "%s: %s %zu: \"%s\" is %s, but a text is expected", r->examples->path,
          r->unit, r->number, name, json_kind(value));
}

/* The completions of HellaSwag: " " + ending, as build-nanogpt and llm.c render them. */
static void append_endings(Reader *r, Example *e, const Json *endings) {
    if (!endings || endings->kind != JSON_ARRAY || endings->count > COMPLETIONS_MOST)
        fatal(EXIT_INPUT, "%s: %s %zu: \"endings\" must be a list of up to %d texts",
              r->examples->path, r->unit, r->number, COMPLETIONS_MOST);
    for (const Json *ending = endings->first; ending; ending = ending->next) {
        const char *text = text_of(r, ending, "endings");
        // GPT-2's tokens begin with the blank before a word, so the blank belongs to the ending, not to the context.
        size_t bytes = strlen(text) + 1;
        char *spaced = memory_new(bytes + 1, 1, "an ending");
        spaced[0] = ' ';
        memcpy(spaced + 1, text, bytes);
        e->tokens[e->completions++] = append_text(r, spaced, bytes);
        free(spaced);
    }
}

/* "label": a number, or as some copies have it a text of one. */
static int label_of(const Reader *r, const Json *label) {
    int64_t value;
    bool good = label && (label->kind == JSON_NUMBER || label->kind == JSON_STRING) &&
                number_read_i64(label->text, &value) == NUMBER_OK;
    if (!good) refuse(r, "\"label\" is not a whole number: is this a test set, without answers?");
    // A value out of range may not fit an int: -1 and COMPLETIONS_MOST stand for it, and check_lengths refuses both.
    return value >= 0 && value < COMPLETIONS_MOST ? (int)value : value < 0 ? -1 : COMPLETIONS_MOST;
}

/* One JSON object: context, endings, label. */
static void read_line(Reader *r, const char *line, size_t bytes) {
    char problem[JSON_PROBLEM];
    const Json *json = json_read(line, bytes, problem);
    if (!json) refuse(r, problem);
    if (json->kind != JSON_OBJECT) refuse(r, "is not a JSON object");
    const char *context = text_of(r, json_member(json, "ctx"), "ctx");
    Example e = {.first = r->examples->tokens.count,
                 .label = label_of(r, json_member(json, "label"))};
    e.context = append_text(r, context, strlen(context));
    append_endings(r, &e, json_member(json, "endings"));
    add_example(r, &e);
    json_free(json);
}

/* Whether a line has nothing but blanks. */
static bool is_blank(const char *line, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if (!strchr(" \t\r", line[i])) return false;
    return true;
}

/* The JSON-lines format; blank lines are skipped. */
static void read_lines(Reader *r, const char *text, size_t size, int64_t most) {
    if (!r->model->tokenizer || !tokenizer_can_encode(r->model->tokenizer))
        fatal(EXIT_INPUT,
              "%s: is text, but this model's tokenizer is not known; name it with --tokenizer, or "
              "use a file of "
              "tokens (llm.c's)",
              r->examples->path);
    r->encoder = encoder_new(r->model->tokenizer, false);
    r->unit = "line";
    for (size_t at = 0; at < size && !enough(r, most);) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t bytes = end ? (size_t)(end - text) - at : size - at;
        r->number++;
        if (!is_blank(text + at, bytes)) read_line(r, text + at, bytes);
        at += bytes + 1;
    }
    encoder_free(r->encoder);
}

// ---------------------------------------------------------------------------------------------
// llm.c's files

enum { HEADER = 1024, MAGIC = 20240522, VERSION = 1, MARK = 65535 };

/* The uint16 numbers of one example. */
typedef struct {
    const unsigned char *at;
    size_t left;
} Numbers;

/* The next uint16 of an example in llm.c's format. */
static int next_number(const Reader *r, Numbers *numbers) {
    if (numbers->left == 0) refuse(r, "ends in the middle: its sizes do not agree");
    int value = load_u16(numbers->at);
    numbers->at += 2;
    numbers->left--;
    return value;
}

/* A number of tokens and the tokens; returns the number. */
static int append_tokens(Reader *r, Numbers *numbers) {
    int count = next_number(r, numbers);
    TokenList *tokens = &r->examples->tokens;
    token_list_reserve(tokens, (size_t)count);
    for (int i = 0; i < count; i++) tokens->ids[tokens->count++] = next_number(r, numbers);
    return count;
}

/* The example that begins with these bytes; returns how many it has. */
static size_t read_numbers(Reader *r, const unsigned char *bytes, size_t left) {
    size_t size = left >= 4 ? load_u16(bytes + 2) : 0;
    if (size < 4 || size > left || size % 2 || load_u16(bytes) != MARK)
        refuse(r,
               "does not begin as an example must (65535 and its size in bytes): is the file cut?");
    Numbers numbers = {bytes + 4, size / 2 - 2};
    next_number(r, &numbers); // its index
    Example e = {.first = r->examples->tokens.count, .label = next_number(r, &numbers)};
    // After the mark and the size: index, label, number of completions C; then C + 1 times a number of tokens and the
    // tokens themselves, the context first.
    int completions = next_number(r, &numbers);
    if (completions > COMPLETIONS_MOST) refuse(r, "has more than 16 completions");
    e.context = append_tokens(r, &numbers);
    while (e.completions < completions) e.tokens[e.completions++] = append_tokens(r, &numbers);
    if (numbers.left) refuse(r, "has numbers after its last completion: its sizes do not agree");
    add_example(r, &e);
    return size;
}

/* llm.c's format: the sizes in each example's header must agree with its numbers. */
static void read_llmc(Reader *r, const unsigned char *bytes, size_t size, int64_t most) {
    const char *path = r->examples->path;
    if (size < HEADER)
        fatal(EXIT_INPUT, "%s: has %zu bytes, but the header alone has %d", path, size, HEADER);
    uint32_t version = load_u32(bytes + 4), count = load_u32(bytes + 8);
    if (version != VERSION)
        fatal(EXIT_INPUT, "%s: version (header entry 1) is %u, but %d is expected", path,
              (unsigned)version, VERSION);
    r->unit = "example";
    size_t at = HEADER;
    // Only a file that is read to its end can be checked for bytes that are too many.
    for (; r->number < count && !enough(r, most); r->number++)
        at += read_numbers(r, bytes + at, size - at);
    if (r->number == count && at != size)
        fatal(EXIT_INPUT, "%s: %zu bytes follow the %u examples that the header counts", path,
              size - at, (unsigned)count);
}

// ---------------------------------------------------------------------------------------------

Examples *examples_open(const char *path, const ExamplesFor *model, int64_t most) {
    Examples *examples = memory_new(1, sizeof *examples, "evaluation examples");
    examples->path = path;
    Reader reader = {.examples = examples, .model = model};
    File *file = file_open(path);
    size_t size = file_size(file);
    const unsigned char *bytes = size ? file_at(file, 0, size) : NULL;
    // The content decides, not the name: 20240522 as 4 bytes in little-endian order, or an opening brace.
    if (size >= 4 && load_u32(bytes) == MAGIC)
        read_llmc(&reader, bytes, size, most);
    else if (size > 0 && bytes[0] == '{')
        read_lines(&reader, (const char *)bytes, size, most);
    else if (size > 0)
        fatal(EXIT_INPUT,
              "%s: is neither JSON lines (which begin with {) nor an llm.c evaluation file (magic "
              "%d)",
              path, MAGIC);
    file_close(file);
    if (examples->count == 0)
        fatal(EXIT_INPUT, "%s: has no example; fetch or write it again", path);
    return examples;
}

uint64_t examples_identity(const Examples *examples) {
    // Labels and lengths too: the same ids, divided otherwise, are other examples.
    uint64_t hash = hash_add(0, examples->count);
    for (size_t i = 0; i < examples->count; i++) {
        const Example *e = &examples->items[i];
        hash = hash_add(hash_add(hash, (uint64_t)e->label), (uint64_t)e->context);
        for (int k = 0; k < e->completions; k++) hash = hash_add(hash, (uint64_t)e->tokens[k]);
    }
    for (size_t i = 0; i < examples->tokens.count; i++) hash = hash_add(hash, (uint64_t)examples->tokens.ids[i]);
    return hash;
}

void examples_close(Examples *examples) {
    if (!examples) return;
    free(examples->items);
    free(examples->tokens.ids);
    free(examples);
}
