/* hf_index.c: see hf_index.h.
 *
 *   {"metadata": {"total_size": 497759232},
 *    "weight_map": {"transformer.wte.weight": "model-00001-of-00002.safetensors", ...}} */
#include "hf_index.h"

#include "../base/error.h"
#include "../base/memory.h"
#include "../files/input.h"
#include "../files/json_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// a bound on the files that an index, which is untrusted, can make the program open
enum { MOST_FILES = 4096 };

/* The index's document, whose weight_map is a non-empty object of file names; json_free releases it. */
static const Json *read_index(const char *path) {
    char problem[JSON_PROBLEM], shown[JSON_SHOWN];
    File *file = file_open(path);
    const Json *root =
        json_read((const char *)file_at(file, 0, file_size(file)), file_size(file), problem);
    // json_read works on a copy of the text, so the values stay valid
    file_close(file);
    if (!root) fatal(EXIT_INPUT, "%s: is not JSON: %s", path, problem);
    const Json *map = json_member(root, "weight_map");
    if (!map || map->kind != JSON_OBJECT || map->count == 0)
        fatal(EXIT_INPUT, "%s: weight_map is %s, expected an object with a file for each tensor",
              path, map && map->kind == JSON_OBJECT ? "empty" : json_kind(map));
    // a name with a slash, as ../../secret, could lead out of the directory
    for (const Json *entry = map->first; entry; entry = entry->next)
        if (entry->kind != JSON_STRING || !*entry->text || strchr(entry->text, '/'))
            fatal(EXIT_INPUT, "%s: weight_map names no file of this directory for tensor \"%s\"",
                  path, json_shown(entry->name, shown));
    return root;
}

/* The file's name in the directory of the index. */
static char *beside(const char *path, const char *name) {
    const char *slash = strrchr(path, '/');
    // folder: the bytes up to the last slash, with it; 0 for a path without one
    size_t folder = slash ? (size_t)(slash + 1 - path) : 0, bytes = folder + strlen(name) + 1;
    char *joined = memory_new(bytes, 1, "a file name");
    snprintf(joined, bytes, "%.*s%s", (int)folder, path, name);
    return joined;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool has(const HfFiles *files, const char *name) {
    // the newest first: entries that follow each other in the map are often in one file
    for (int i = files->count - 1; i >= 0; i--)
        if (strcmp(base_name(files->paths[i]), name) == 0) return true;
    return false;
}

HfFiles hf_index_read(const char *path) {
    HfFiles files = {NULL, 0};
    const Json *root = read_index(path);
    for (const Json *entry = json_member(root, "weight_map")->first; entry; entry = entry->next) {
        // the map has an entry for each tensor, so each file is named many times
        if (has(&files, entry->text)) continue;
        if (files.count == MOST_FILES)
            fatal(EXIT_INPUT, "%s: weight_map names more than %d files", path, MOST_FILES);
        files.paths = memory_grow(files.paths, (size_t)files.count + 1, sizeof *files.paths,
                                  "a list of files");
        files.paths[files.count++] = beside(path, entry->text);
    }
    json_free(root);
    return files;
}

void hf_files_free(HfFiles *files) {
    for (int i = 0; i < files->count; i++) free(files->paths[i]);
    free(files->paths);
    *files = (HfFiles){NULL, 0};
}

void hf_index_check(const char *path, const SafeTensors *file) {
    char shown[JSON_SHOWN];
    const Json *root = read_index(path);
    for (const Json *entry = json_member(root, "weight_map")->first; entry; entry = entry->next) {
        // Found in another file than the index says, index and files are of different saves: some tensors may be old.
        const SafeTensor *tensor = safetensors_find(file, entry->name);
        if (!tensor || strcmp(base_name(safetensor_path(file, tensor)), entry->text) != 0)
            fatal(EXIT_INPUT, "%s: tensor \"%s\" is not in %s, although weight_map names it", path,
                  json_shown(entry->name, shown), entry->text);
    }
    json_free(root);
}
