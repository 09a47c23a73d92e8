/* hf_config.h: config.json, the shape of a model in a Hugging Face directory. */
#ifndef LLMC_HF_CONFIG_H
#define LLMC_HF_CONFIG_H

#include "../files/output.h"
#include "../model/config.h"

/* The shape in a config.json. A model that computes anything else than this project's GPT-2
 * (another activation, epsilon, inner size, ...) is refused by the name of the setting. */
Config hf_config_read(const char *path);

/* Writes one for this shape. end_of_text: the id of the token that ends texts; -1: there is none. */
void hf_config_write(OutputFile *file, const Config *config, int32_t end_of_text);

#endif
