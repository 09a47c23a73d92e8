/* shard_tokenizer.c: the tokenizer that made a directory of shards, from the file that `tokenize` leaves there. */
#include "shard_tokenizer.h"

#include "../base/memory.h"
#include "../files/json_read.h"
#include "../files/path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_BYTES = 1 << 24 }; // of a tokenize.json; it lists the inputs

/* DIRECTORY/tokenize.json; free() releases it. */
static char *note_path(const char *path) {
    // "data" (a directory), "data/a.bin" and "data/*.bin" give data/tokenize.json; "a.bin" gives ./tokenize.json.
    struct stat status;
    bool directory = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
    const char *slash = strrchr(path, '/');
    size_t length = directory ? strlen(path) : slash ? (size_t)(slash - path) : 1;
    const char *from = directory || slash ? path : ".";
    size_t size = size_add(length, sizeof "/tokenize.json", "a file name");
    char *note = memory_new(size, 1, "a file name");
    snprintf(note, size, "%.*s/tokenize.json", (int)length, from);
    return note;
}

bool shard_tokenizer_find(const char *path, ShardTokenizer *found) {
    char problem[JSON_PROBLEM], *note = note_path(path);
    size_t bytes = 0;
    char *text = (char *)path_read(note, MOST_BYTES, &bytes);
    free(note);
    // A file that is missing or damaged is not an error here: root is NULL then, and no member is found.
    const Json *root = text ? json_read(text, bytes, problem) : NULL;
    const Json *name = json_member(root, "tokenizer"), *identity = json_member(root, "tokenizer_identity");
    bool good = name && name->kind == JSON_STRING && identity && identity->kind == JSON_STRING;
    if (good)
        *found = (ShardTokenizer){memory_string(name->text), strtoull(identity->text, NULL, 16)};
    json_free(root);
    free(text);
    return good;
}
