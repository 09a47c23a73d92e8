/* paths.c: see paths.h, and stream.h for the rules. */
#define _GNU_SOURCE // asprintf
#include "paths.h"

#include "../base/error.h"
#include "../base/memory.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

// ---- names ------------------------------------------------------------------------------------

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Whether `word` stands in a file's name between other characters than letters. */
static bool name_says(const char *path, const char *word) {
    const char *name = base_name(path);
    size_t length = strlen(word);
    for (const char *at = name; *at; at++)
        if (strncasecmp(at, word, length) == 0 && !isalpha((unsigned char)at[length]) &&
            (at == name || !isalpha((unsigned char)at[-1])))
            return true;
    return false;
}

static bool names_val(const char *path) {
    return name_says(path, "val") || name_says(path, "valid") || name_says(path, "validation");
}

static bool names_train(const char *path) { return name_says(path, "train"); }

static bool held_out(const char *path) { return names_val(path) || name_says(path, "test"); }

static bool is_data_name(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot && name[0] != '.' &&
           (strcasecmp(dot, ".bin") == 0 || strcasecmp(dot, ".npy") == 0 ||
            strcasecmp(dot, ".txt") == 0);
}

// ---- entries ----------------------------------------------------------------------------------

/* What one path stands for. */
typedef struct {
    PathList list;
    bool is_set; // a directory or glob, whose names may tell parts
} Entry;

static bool is_regular(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

static void list_add(PathList *list, const char *file) {
    list->files =
        memory_grow(list->files, (size_t)list->count + 1, sizeof *list->files, "file names");
    list->files[list->count++] = memory_string(file);
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static PathList list_directory(const char *path) {
    PathList list = {0};
    DIR *directory = opendir(path);
    if (!directory)
        fatal(EXIT_INPUT, "%s: directory cannot be read: %s; check its permissions", path,
              strerror(errno));
    const char *join = path[strlen(path) - 1] == '/' ? "" : "/";
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (!is_data_name(entry->d_name)) continue;
        char *file;
        if (asprintf(&file, "%s%s%s", path, join, entry->d_name) < 0)
            fatal(EXIT_RUNTIME, "%s: no memory for its file names", path);
        if (is_regular(file)) list_add(&list, file);
        free(file);
    }
    closedir(directory);
    if (list.count == 0)
        fatal(EXIT_INPUT,
              "%s: directory holds no data file (.bin, .npy or .txt); name files or a glob", path);
    return list;
}

static PathList list_glob(const char *pattern) {
    PathList list = {0};
    glob_t found;
    if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            if (is_regular(found.gl_pathv[i])) list_add(&list, found.gl_pathv[i]);
        globfree(&found);
    }
    if (list.count == 0) fatal(EXIT_INPUT, "%s: no file matches this pattern; check it", pattern);
    return list;
}

/* A path that exists is meant as it is, even with a * in its name. What does not exist and is no
 * pattern is kept: opening it will say so. */
static Entry entry_of(const char *path) {
    Entry entry = {.is_set = true};
    struct stat status;
    bool exists = stat(path, &status) == 0;
    if (exists && S_ISDIR(status.st_mode)) {
        entry.list = list_directory(path);
    } else if (!exists && strpbrk(path, "*?[")) {
        entry.list = list_glob(path);
    } else {
        entry.is_set = false;
        list_add(&entry.list, path);
    }
    qsort(entry.list.files, (size_t)entry.list.count, sizeof(char *), by_bytes);
    return entry;
}

static bool any(const PathList *list, bool (*says)(const char *path)) {
    for (int i = 0; i < list->count; i++)
        if (says(list->files[i])) return true;
    return false;
}

// ---- parts ------------------------------------------------------------------------------------

bool paths_have_val(const char *const *paths, int count) {
    bool found = false;
    for (int i = 0; i < count; i++) {
        Entry entry = entry_of(paths[i]);
        found |= entry.is_set && any(&entry.list, names_val);
        paths_free(&entry.list);
    }
    return found;
}

/* Adds to `list` the files of one entry that belong to training, or to validation. */
static void add_part(PathList *list, const Entry *entry, bool val) {
    bool named = any(&entry->list, names_train);
    for (int i = 0; i < entry->list.count; i++) {
        const char *file = entry->list.files[i];
        bool trains = !entry->is_set || (named ? names_train(file) : !held_out(file));
        if (val ? entry->is_set && names_val(file) : trains) list_add(list, file);
    }
}

PathList paths_expand(const char *const *paths, int count, StreamPart part) {
    if (part == STREAM_VAL && !paths_have_val(paths, count)) part = STREAM_ALL;
    PathList list = {0};
    for (int i = 0; i < count; i++) {
        Entry entry = entry_of(paths[i]);
        if (part == STREAM_ALL)
            for (int k = 0; k < entry.list.count; k++) list_add(&list, entry.list.files[k]);
        else
            add_part(&list, &entry, part == STREAM_VAL);
        paths_free(&entry.list);
    }
    if (list.count == 0)
        fatal(EXIT_INPUT,
              "%s: holds only files named val, valid, validation or test, none to train on; name "
              "a file itself to use it",
              count > 0 ? paths[0] : "data");
    return list;
}

void paths_free(PathList *list) {
    for (int i = 0; i < list->count; i++) free(list->files[i]);
    free(list->files);
    *list = (PathList){0};
}
