/* unicode_classes.h: which characters are letters, numbers and spaces, as Unicode 16.0 has it. */
#ifndef LLMC_UNICODE_CLASSES_H
#define LLMC_UNICODE_CLASSES_H

#include <stdint.h>

/* The classes that GPT-2's splitting pattern distinguishes: \p{L}, \p{N}, \s, and all others. */
typedef enum { CLASS_OTHER, CLASS_LETTER, CLASS_NUMBER, CLASS_SPACE } CharacterClass;

/* Where the class changes, in ascending order: code point << 2 | its class, which holds up to the
 * next change. Before the first entry the class is CLASS_OTHER. */
extern const uint32_t unicode_class_changes[];
extern const int unicode_class_change_count;

#endif
