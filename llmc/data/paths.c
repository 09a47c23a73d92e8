/* paths.c: from what a user names (files, directories, globs) to a list of files, and which of them are training
 * data. What a file is for follows from words in its name or in its folders' names: train, val, test and the like.
 * Files are taken in the order of their names' bytes, so that every machine has the same order. stream.h has the
 * rules as a user sees them. */
#include "paths.h"

#include "../base/error.h"
#include "../base/memory.h"
#include "../files/path.h"

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

typedef enum { PART_NONE, PART_TRAIN, PART_VAL, PART_TEST } NamedPart;

/* The words in a name that imply a file's part. What is held out goes before training data: a file whose name
 * has both words is not trained on. */
static const struct {
    const char *word;
    NamedPart part;
} part_words[] = {
    {"val", PART_VAL},   {"valid", PART_VAL},    {"validation", PART_VAL}, {"dev", PART_VAL},
    {"eval", PART_VAL},  {"test", PART_TEST},    {"testing", PART_TEST},   {"heldout", PART_TEST},
    {"train", PART_TRAIN}, {"training", PART_TRAIN},
};

/* Whether the name has `word` with no letter directly before or after it. */
static bool has_word(const char *name, size_t length, const char *word) {
    // Digits, '_' and '.' end a word, letters do not: "my_val2.bin" has the word val, "evaluate.bin" does not.
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= length; i++)
        if (strncasecmp(name + i, word, n) == 0 && (i == 0 || !isalpha((unsigned char)name[i - 1])) &&
            (i + n == length || !isalpha((unsigned char)name[i + n])))
            return true;
    return false;
}

/* The part that a file's or folder's name implies. */
static NamedPart component_part(const char *name, size_t length) {
    // Where a name has several of the words, the first one in the table decides.
    for (size_t i = 0; i < sizeof part_words / sizeof *part_words; i++)
        if (has_word(name, length, part_words[i].word)) return part_words[i].part;
    return PART_NONE;
}

/* The part that a path implies: by the file's own name, else by the nearest folder that implies one. */
static NamedPart path_part(const char *path) {
    size_t end = strlen(path);
    // From the last component to the first, so the file's own name goes before its folders: "val/train.bin" trains.
    for (;;) {
        size_t begin = end;
        while (begin > 0 && path[begin - 1] != '/') begin--;
        NamedPart part = component_part(path + begin, end - begin);
        if (part != PART_NONE || begin == 0) return part;
        end = begin - 1;
    }
}

/* A directory's data files are those with these endings. */
typedef struct {
    const char *endings[4]; // up to NULL
    const char *in_words;
} Endings;

static const Endings data_endings = {{".bin", ".npy", ".txt"}, "data file (.bin, .npy or .txt)"};
static const Endings text_endings = {{".txt", ".jsonl", ".ndjson"}, "text (.txt, .jsonl or .ndjson)"};

/* Whether a name ends like a data file; hidden files are never data. */
static bool has_ending(const char *name, const Endings *wanted) {
    const char *dot = strrchr(name, '.');
    for (int i = 0; dot && name[0] != '.' && wanted->endings[i]; i++)
        if (strcasecmp(dot, wanted->endings[i]) == 0) return true;
    return false;
}

// ---- entries ----------------------------------------------------------------------------------

/* The files that one path names. */
typedef struct {
    PathList list;
    bool is_set;  // a directory or glob: names of its files may imply parts
    size_t fixed; // characters of each path that the user wrote: they imply nothing
} Entry;

/* Whether to take an entry of a set: a regular file, or one that cannot be examined (such as a link that leads
 * nowhere): opening it reports the error; leaving it out would silently train on other data. */
static bool is_wanted(const char *path) {
    struct stat status;
    return stat(path, &status) != 0 || S_ISREG(status.st_mode);
}

/* Whether a path is a directory, also through a link. */
static bool is_directory(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Appends a copy of a name. */
static void list_add(PathList *list, const char *file) {
    list->files =
        memory_grow(list->files, (size_t)list->count + 1, sizeof *list->files, "file names");
    list->files[list->count++] = memory_string(file);
}

/* The order of files: by bytes, not by the locale. */
static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A data file's path as it is shown: without a second slash. */
static char *join(const char *folder, const char *name) {
    size_t length = strlen(folder);
    char *path = path_join(folder, name);
    if (length > 0 && folder[length - 1] == '/') memmove(path + length, path + length + 1, strlen(path + length));
    return path;
}

/* Adds the data files of a directory; or, with `parts`, those of its folders that are named as a part. */
static void add_directory(PathList *list, const char *path, const Endings *wanted, bool parts) {
    DIR *directory = opendir(path);
    if (!directory)
        fatal(EXIT_INPUT, "%s: directory cannot be read: %s; check its permissions", path, strerror(errno));
    // readdir returns NULL at the end and after an error; only errno, set to 0 before, tells which.
    for (struct dirent *entry; (errno = 0, entry = readdir(directory));) {
        const char *name = entry->d_name;
        char *file = join(path, name);
        if (!parts && has_ending(name, wanted) && is_wanted(file)) list_add(list, file);
        // Folders are searched one level deep only: the call below has parts == false.
        if (parts && name[0] != '.' && component_part(name, strlen(name)) != PART_NONE && is_directory(file))
            add_directory(list, file, wanted, false);
        free(file);
    }
    if (errno) fatal(EXIT_INPUT, "%s: directory cannot be read to its end: %s", path, strerror(errno));
    closedir(directory);
}

/* The files of a directory; if there are none, those of its folders that are named as a part (train/, val/). */
static PathList list_directory(const char *path, const Endings *wanted) {
    PathList list = {0};
    add_directory(&list, path, wanted, false);
    if (list.count == 0) add_directory(&list, path, wanted, true);
    if (list.count == 0)
        fatal(EXIT_INPUT, "%s: directory holds no %s; name files or a glob", path, wanted->in_words);
    return list;
}

/* The length of the folder part before a pattern's first special character. */
static size_t fixed_part(const char *pattern) {
    size_t end = strcspn(pattern, "*?[");
    while (end > 0 && pattern[end - 1] != '/') end--;
    return end;
}

/* The files that a pattern matches. */
static PathList list_glob(const char *pattern) {
    PathList list = {0};
    glob_t found;
    // GLOB_ERR: a folder that cannot be read is an error. Without it glob would leave its files out, and the run
    // would train on less data than the user named. GLOB_NOSORT: glob's order follows the locale; entry_of sorts by
    // bytes.
    int code = glob(pattern, GLOB_NOSORT | GLOB_ERR, NULL, &found);
    if (code == GLOB_ABORTED && (errno == ENOENT || errno == ENOTDIR))
        fatal(EXIT_INPUT, "%s: no file matches this pattern: there is no directory %.*s; check it", pattern,
              (int)fixed_part(pattern), pattern);
    if (code == GLOB_ABORTED)
        fatal(EXIT_INPUT, "%s: a directory of this pattern cannot be read; check its permissions", pattern);
    if (code == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            if (is_wanted(found.gl_pathv[i])) list_add(&list, found.gl_pathv[i]);
        globfree(&found);
    }
    if (list.count == 0) fatal(EXIT_INPUT, "%s: no file matches this pattern; check it", pattern);
    return list;
}

/* A path that exists is meant as it is, even with a * in its name. A path that neither exists nor is a pattern is
 * kept: opening it reports the error. */
static Entry entry_of(const char *path, const Endings *wanted) {
    Entry entry = {.is_set = true};
    struct stat status;
    bool exists = stat(path, &status) == 0;
    if (!exists && strcmp(path, "-") == 0 && wanted == &data_endings)
        fatal(EXIT_USAGE,
              "-: standard input can be read only once, but data are read again each epoch; save them to a file and "
              "give its name, or make shards of text with train_gpt2 tokenize - --out DIR");
    // what exists is taken as it is, even with a * in its name; only what does not exist is a pattern
    if (exists && S_ISDIR(status.st_mode)) {
        entry.list = list_directory(path, wanted);
        // Only the path after these characters implies a part. A user's folder called test/ does not make all that is
        // in it test data.
        entry.fixed = strlen(path);
    } else if (!exists && strpbrk(path, "*?[")) {
        entry.list = list_glob(path);
        entry.fixed = fixed_part(path);
    } else {
        entry.is_set = false;
        list_add(&entry.list, path);
    }
    // readdir and glob give files in the order of the file system, which is another one on another machine.
    qsort(entry.list.files, (size_t)entry.list.count, sizeof(char *), by_bytes);
    return entry;
}

/* The part that the name of an entry's file implies. A file that the user named by itself has no part. */
static NamedPart file_part(const Entry *entry, int file) {
    return entry->is_set ? path_part(entry->list.files[file] + entry->fixed) : PART_NONE;
}

/* Whether any file of the entry has this part. */
static bool any_has_part(const Entry *entry, NamedPart part) {
    for (int i = 0; i < entry->list.count; i++)
        if (file_part(entry, i) == part) return true;
    return false;
}

// ---- parts ------------------------------------------------------------------------------------

StreamNames paths_names(const char *const *paths, int count) {
    StreamNames names = {0};
    for (int i = 0; i < count; i++) {
        Entry entry = entry_of(paths[i], &data_endings);
        for (int k = 0; k < entry.list.count; k++) {
            NamedPart part = file_part(&entry, k);
            names.train += part == PART_TRAIN;
            names.val += part == PART_VAL;
            names.test += part == PART_TEST;
            names.others += part == PART_NONE && entry.is_set;
        }
        paths_free(&entry.list);
    }
    return names;
}

/* Adds to `list` the files of one entry that belong to a part. */
static void add_part(PathList *list, const Entry *entry, StreamPart part) {
    // Where a file is named train, files without a part are something else and left out. Where none is, they are the
    // training data.
    bool named = any_has_part(entry, PART_TRAIN);
    for (int i = 0; i < entry->list.count; i++) {
        NamedPart implied = file_part(entry, i);
        bool trains = implied == (named ? PART_TRAIN : PART_NONE);
        bool wanted = part == STREAM_ALL || (part == STREAM_TRAIN && trains) ||
                      (part == STREAM_VAL && implied == PART_VAL) || (part == STREAM_TEST && implied == PART_TEST);
        if (wanted) list_add(list, entry->list.files[i]);
    }
}

PathList paths_expand(const char *const *paths, int count, StreamPart part) {
    StreamNames names = paths_names(paths, count);
    // No name implies this part, so the names do not divide the files: all of them are taken.
    if ((part == STREAM_VAL && names.val == 0) || (part == STREAM_TEST && names.test == 0)) part = STREAM_ALL;
    PathList list = {0};
    for (int i = 0; i < count; i++) {
        Entry entry = entry_of(paths[i], &data_endings);
        add_part(&list, &entry, part);
        paths_free(&entry.list);
    }
    if (list.count == 0)
        fatal(EXIT_INPUT,
              "%s: holds only files named val, valid, validation, dev, eval or test, none to train on; name "
              "a file itself to use it",
              count > 0 ? paths[0] : "data");
    return list;
}

PathList paths_expand_texts(const char *const *paths, int count) {
    PathList list = {0};
    for (int i = 0; i < count; i++) {
        Entry entry = entry_of(paths[i], &text_endings);
        add_part(&list, &entry, STREAM_ALL);
        paths_free(&entry.list);
    }
    return list;
}

void paths_free(PathList *list) {
    for (int i = 0; i < list->count; i++) free(list->files[i]);
    free(list->files);
    *list = (PathList){0};
}
