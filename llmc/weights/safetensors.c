/* safetensors.c: the format of Hugging Face's safetensors: 8 bytes with the length of the header, a JSON header
 * with a name, type, shape and place for each tensor, then the data. Nothing in a file is trusted before it was
 * checked: sizes are computed with overflow checks, and the tensors must cover the data exactly, without hole or
 * overlap. A model may lie in several files (parts); their names must not collide. */
#include "safetensors.h"

#include "../base/error.h"
#include "half.h"
#include "../base/memory.h"
#include "../base/parallel.h"
#include "../files/input.h"
#include "../files/json_read.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LENGTH_BYTES = 8,
    MAX_HEADER = 100000000, // the reference reader's limit
    PIECE = 1 << 16,        // elements that a thread converts at a time
};

/* One file: a model may lie in several. */
typedef struct {
    File *file;
    const Json *header;
    size_t data; // where the header ends
} Part;

typedef struct {
    const char *name;
    int index; // of its tensor
} NamedIndex;

struct SafeTensors {
    Part *parts; // (part_count)
    int part_count;
    SafeTensor *tensors; // (count), by part and begin
    int count;
    NamedIndex *by_name; // (named), sorted; the tensors of the parts that are complete
    size_t named;
};

// The types that the format knows, with the bytes of an element. Only three can be weights here; the sizes of the
// others are needed to check that the tensors cover the file.
static const struct {
    const char *name;
    size_t bytes;
    bool is_float; // can be read as floats
} dtypes[] = {{"F32", 4, true},      {"F16", 2, true},      {"BF16", 2, true}, {"F64", 8, false},
              {"I64", 8, false},     {"U64", 8, false},     {"I32", 4, false}, {"U32", 4, false},
              {"I16", 2, false},     {"U16", 2, false},     {"I8", 1, false},  {"U8", 1, false},
              {"F8_E4M3", 1, false}, {"F8_E5M2", 1, false}, {"BOOL", 1, false}};

/* The index of a type in the table above, or -1. */
static int dtype_of(const char *name) {
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (strcmp(dtypes[i].name, name) == 0) return (int)i;
    return -1;
}

// ---------------------------------------------------------------------------------------------
// Reading the header

// Ends the program for a fault of one tensor: file, tensor, and what is wrong.
__attribute__((format(printf, 3, 4))) _Noreturn static void
bad_tensor(const Part *part, const char *name, const char *format, ...) {
    char message[300], shown[JSON_SHOWN];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    fatal(EXIT_INPUT, "%s: tensor \"%s\": %s", file_path(part->file), json_shown(name, shown),
          message);
}

/* The JSON header, after the checks of its length. */
static const Json *read_header(Part *part, const char *path) {
    size_t size = file_size(part->file);
    if (size < LENGTH_BYTES)
        fatal(EXIT_INPUT, "%s: %zu bytes are too few for a safetensors file; is it the right file?",
              path, size);
    // In a file of another kind these 8 bytes are most often a huge number, which the next two checks refuse.
    uint64_t length = load_u64(file_at(part->file, 0, LENGTH_BYTES));
    if (length > MAX_HEADER)
        fatal(EXIT_INPUT,
              "%s: gives its header's size as %llu bytes, but at most %d are allowed: not a "
              "safetensors file",
              path, (unsigned long long)length, MAX_HEADER);
    if (length > size - LENGTH_BYTES)
        fatal(EXIT_INPUT,
              "%s: gives its header's size as %llu bytes, but %zu follow: not a safetensors file, "
              "or cut",
              path, (unsigned long long)length, size - LENGTH_BYTES);
    part->data = LENGTH_BYTES + (size_t)length;

    const char *text = (const char *)file_at(part->file, LENGTH_BYTES, (size_t)length);
    // the reference reader wants { as the first byte, too
    // checked before the parser, which would allow blanks first
    if (length == 0 || text[0] != '{')
        fatal(EXIT_INPUT, "%s: the header does not start with {: not a safetensors file", path);
    char problem[JSON_PROBLEM];
    const Json *header = json_read(text, (size_t)length, problem);
    if (!header) fatal(EXIT_INPUT, "%s: the header is not JSON: %s", path, problem);
    return header;
}

/* __metadata__ is an object of strings; its content is not used. */
static void check_metadata(const Part *part, const Json *metadata) {
    if (metadata->kind != JSON_OBJECT)
        fatal(EXIT_INPUT, "%s: __metadata__ is %s, expected an object", file_path(part->file),
              json_kind(metadata));
    for (const Json *member = metadata->first; member; member = member->next)
        if (member->kind != JSON_STRING) {
            char shown[JSON_SHOWN];
            fatal(EXIT_INPUT, "%s: __metadata__ member \"%s\" is %s, expected a string",
                  file_path(part->file), json_shown(member->name, shown), json_kind(member));
        }
}

/* dtype and shape; sets count and bytes from them. */
static void read_shape(const Part *part, const Json *entry, SafeTensor *tensor) {
    const Json *dtype = json_member(entry, "dtype"), *shape = json_member(entry, "shape");
    if (!dtype || dtype->kind != JSON_STRING)
        bad_tensor(part, entry->name, "dtype is %s, expected a string", json_kind(dtype));
    int type = dtype_of(dtype->text);
    char shown[JSON_SHOWN];
    if (type < 0)
        bad_tensor(part, entry->name, "unknown dtype \"%s\"", json_shown(dtype->text, shown));
    if (!shape || shape->kind != JSON_ARRAY)
        bad_tensor(part, entry->name, "shape is %s, expected an array", json_kind(shape));
    if (shape->count > SAFETENSORS_DIMS)
        bad_tensor(part, entry->name, "has %u dimensions, expected at most %d", shape->count,
                   SAFETENSORS_DIMS);

    // sizes may be anything: products are checked for overflow
    // without sizes it is a scalar, one element; a size of 0 makes an empty tensor, which is allowed
    tensor->dtype = dtypes[type].name;
    tensor->count = 1;
    for (const Json *size = shape->first; size; size = size->next) {
        int64_t n;
        if (!json_integer(size, 0, INT64_MAX, &n))
            bad_tensor(part, entry->name, "shape holds %s, expected whole numbers from 0",
                       json_kind(size));
        if (__builtin_mul_overflow(tensor->count, (size_t)n, &tensor->count))
            bad_tensor(part, entry->name, "shape counts more elements than 64 bits");
        tensor->shape[tensor->dims++] = (size_t)n;
    }
    if (__builtin_mul_overflow(tensor->count, dtypes[type].bytes, &tensor->bytes))
        bad_tensor(part, entry->name, "shape counts more bytes than 64 bits");
}

/* One entry of the header, checked against the part's size. */
static SafeTensor read_tensor(const Part *part, const Json *entry) {
    SafeTensor tensor = {.name = entry->name};
    if (entry->kind != JSON_OBJECT)
        bad_tensor(part, entry->name, "is %s, expected an object", json_kind(entry));
    read_shape(part, entry, &tensor);

    const Json *offsets = json_member(entry, "data_offsets");
    // begin and end relative to the data, which begin after the header
    int64_t begin, end, room = (int64_t)(file_size(part->file) - part->data);
    if (!offsets || offsets->kind != JSON_ARRAY || offsets->count != 2)
        bad_tensor(part, entry->name, "data_offsets is %s, expected an array of two numbers",
                   json_kind(offsets));
    // the end may be no less than the beginning: that is its lower bound here
    if (!json_integer(offsets->first, 0, INT64_MAX, &begin) ||
        !json_integer(offsets->first->next, begin, INT64_MAX, &end))
        bad_tensor(part, entry->name,
                   "data_offsets are not two whole numbers, the first the smaller");
    if (end > room)
        bad_tensor(part, entry->name,
                   "ends at byte %lld of the data, but the file has only %lld: cut?",
                   (long long)end, (long long)room);
    // the size is given twice, by offsets and by type and shape: they must agree
    if ((size_t)(end - begin) != tensor.bytes)
        bad_tensor(part, entry->name, "data_offsets span %lld bytes, but dtype and shape need %zu",
                   (long long)(end - begin), tensor.bytes);
    tensor.begin = part->data + (size_t)begin;
    return tensor;
}

/* By where they begin; empty tensors before the one that begins at the same byte. */
static int by_begin(const void *a, const void *b) {
    const SafeTensor *x = a, *y = b;
    // An empty tensor ends where it begins. Sorted behind a tensor that begins there, it would seem to overlap that
    // one.
    size_t x_end = x->begin + x->bytes, y_end = y->begin + y->bytes;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x_end > y_end) - (x_end < y_end);
}

/* For sorting and binary search. */
static int compare_names(const void *a, const void *b) {
    return strcmp(((const NamedIndex *)a)->name, ((const NamedIndex *)b)->name);
}

/* For safetensors_find: a model of thousands of layers looks up tens of thousands of names. */
static void sort_names(SafeTensors *st) {
    // again after each part: the next part's names are looked up among those of all parts before it
    size_t count = (size_t)st->count;
    st->by_name = memory_grow(st->by_name, count + 1, sizeof *st->by_name, "a list of tensors");
    for (int i = 0; i < st->count; i++) st->by_name[i] = (NamedIndex){st->tensors[i].name, i};
    if (count) qsort(st->by_name, count, sizeof *st->by_name, compare_names);
    st->named = count;
}

/* A part's tensors, in this order, must cover its data: no hole, no overlap, nothing after the last one. */
static void check_cover(const Part *part, const SafeTensor *tensors, int count) {
    // at: where the next tensor must begin. If it begins later there is a hole, if earlier an overlap.
    size_t at = part->data;
    for (int i = 0; i < count; i++) {
        const SafeTensor *tensor = &tensors[i];
        if (tensor->begin != at)
            bad_tensor(part, tensor->name,
                       "begins at byte %zu of the data, but the one before ends at %zu",
                       tensor->begin - part->data, at - part->data);
        at += tensor->bytes;
    }
    if (at != file_size(part->file))
        fatal(EXIT_INPUT, "%s: %zu bytes follow after the last tensor", file_path(part->file),
              file_size(part->file) - at);
}

/* Opens a part and appends its tensors, by begin. */
static void add_part(SafeTensors *st, const char *path) {
    int number = st->part_count++, first = st->count;
    Part *part = &st->parts[number];
    part->file = file_open(path);
    part->header = read_header(part, path);
    // room for each entry of the header, of which one, __metadata__, is not a tensor
    st->tensors = memory_grow(st->tensors, (size_t)first + part->header->count + 1, sizeof *st->tensors,
                              "a list of tensors");
    for (const Json *entry = part->header->first; entry; entry = entry->next) {
        if (strcmp(entry->name, "__metadata__") == 0) {
            check_metadata(part, entry);
            continue;
        }
        // within one file, json_read has refused a name that is there twice
        if (number > 0 && safetensors_find(st, entry->name))
            bad_tensor(part, entry->name, "is in another file of this model, too");
        st->tensors[st->count] = read_tensor(part, entry);
        st->tensors[st->count++].part = number;
    }
    // in the order of the data, so that holes and overlaps show
    // by_begin and check_cover see only this part's tensors: each file has data of its own
    int count = st->count - first;
    if (count) qsort(st->tensors + first, (size_t)count, sizeof *st->tensors, by_begin);
    check_cover(part, st->tensors + first, count);
    sort_names(st);
}

SafeTensors *safetensors_open_parts(const char *const *paths, int count) {
    SafeTensors *st = memory_new(1, sizeof *st, paths[0]);
    st->parts = memory_new((size_t)count, sizeof *st->parts, "a list of files");
    for (int i = 0; i < count; i++) add_part(st, paths[i]);
    return st;
}

SafeTensors *safetensors_open(const char *path) { return safetensors_open_parts(&path, 1); }

void safetensors_close(SafeTensors *st) {
    if (!st) return;
    for (int i = 0; i < st->part_count; i++) {
        file_close(st->parts[i].file);
        json_free(st->parts[i].header);
    }
    free(st->parts);
    free(st->by_name);
    free(st->tensors);
    free(st);
}

// ---------------------------------------------------------------------------------------------
// Reading tensors

const char *safetensors_path(const SafeTensors *st) { return file_path(st->parts[0].file); }

const char *safetensor_path(const SafeTensors *st, const SafeTensor *tensor) {
    return file_path(st->parts[tensor->part].file);
}

int safetensors_count(const SafeTensors *st) { return st->count; }

const SafeTensor *safetensors_get(const SafeTensors *st, int index) { return &st->tensors[index]; }

const SafeTensor *safetensors_find(const SafeTensors *st, const char *name) {
    // until the first part is complete there is no list, and bsearch must not be given NULL
    const NamedIndex key = {.name = name};
    const NamedIndex *found =
        st->named ? bsearch(&key, st->by_name, st->named, sizeof *st->by_name, compare_names) : NULL;
    return found ? &st->tensors[found->index] : NULL;
}

bool safetensor_is_float(const SafeTensor *tensor) {
    return dtypes[dtype_of(tensor->dtype)].is_float;
}

size_t safetensor_width(const SafeTensor *tensor) { return dtypes[dtype_of(tensor->dtype)].bytes; }

const unsigned char *safetensor_at(SafeTensors *st, const SafeTensor *tensor, size_t first,
                                   size_t count) {
    size_t width = safetensor_width(tensor);
    return file_at(st->parts[tensor->part].file, tensor->begin + first * width, count * width);
}

void safetensor_floats(const SafeTensor *tensor, const unsigned char *data, size_t count,
                       float *out) {
    // F32 is copied; F16 and BF16 are converted, by one function each. A single piece is not worth waking the threads.
    bool wide = strcmp(tensor->dtype, "F32") == 0;
    float (*convert)(uint16_t) = tensor->dtype[0] == 'B' ? float_of_bf16 : float_of_f16;
    size_t pieces = (count + PIECE - 1) / PIECE;
    PARALLEL_FOR_IF(pieces > 1)
    for (size_t piece = 0; piece < pieces; piece++) {
        size_t first = piece * PIECE, end = count - first < PIECE ? count : first + PIECE;
        if (wide) memcpy(out + first, data + 4 * first, 4 * (end - first));
        for (size_t i = first; !wide && i < end; i++) out[i] = convert(load_u16(data + 2 * i));
    }
}

// ---------------------------------------------------------------------------------------------
// Writing

void safetensors_write_header(OutputFile *file, const SafeTensorSpec *specs, int count) {
    // The header is made in memory first, because its length stands before it in the file.
    char *text = NULL;
    size_t length = 0, offset = 0;
    FILE *memory = open_memstream(&text, &length);
    if (!memory) fatal(EXIT_RUNTIME, "no memory for the header of a safetensors file");
    // "pt": tensors as PyTorch lays them out; transformers looks for this entry
    fprintf(memory, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (int i = 0; i < count; i++) {
        const SafeTensorSpec *spec = &specs[i];
        size_t columns = spec->dims == 2 ? spec->shape[1] : 1;
        // each tensor begins where the one before ends: no hole, no overlap
        size_t end = offset + spec->shape[0] * columns * sizeof(float);
        fprintf(memory, ",\"%s\":{\"dtype\":\"F32\",\"shape\":[%zu", spec->name, spec->shape[0]);
        if (spec->dims == 2) fprintf(memory, ",%zu", columns);
        fprintf(memory, "],\"data_offsets\":[%zu,%zu]}", offset, end);
        offset = end;
    }
    fprintf(memory, "}");
    // open_memstream brings `length` up to date only at a flush
    fflush(memory);
    while ((LENGTH_BYTES + length) % 8 !=
           0) { // so that the data are aligned when the file is mapped
        fputc(' ', memory);
        fflush(memory);
    }
    if (fclose(memory) != 0) fatal(EXIT_RUNTIME, "no memory for the header of a safetensors file");
    unsigned char prefix[LENGTH_BYTES];
    // little-endian: the lowest byte first
    for (int i = 0; i < LENGTH_BYTES; i++) prefix[i] = (unsigned char)((uint64_t)length >> 8 * i);
    output_write(file, prefix, sizeof prefix);
    output_write(file, text, length);
    free(text);
}
