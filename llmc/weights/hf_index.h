/* hf_index.h: a Hugging Face model in several files. The weight_map of model.safetensors.index.json names the file
 * of the directory that has each tensor. */
#ifndef LLMC_HF_INDEX_H
#define LLMC_HF_INDEX_H

#include "safetensors.h"

typedef struct {
    char **paths; // (count), each once, in the order in which the map names them
    int count;
} HfFiles;

/* The files that an index names, with their directory. Fatal (EXIT_INPUT) where it is not such an index, or names
 * files outside of its directory. hf_files_free releases them. */
HfFiles hf_index_read(const char *path);
void hf_files_free(HfFiles *files);

/* Fatal (EXIT_INPUT) where a tensor is not in the file that the index names. */
void hf_index_check(const char *path, const SafeTensors *file);

#endif
