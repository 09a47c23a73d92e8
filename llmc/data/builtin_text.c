/* builtin_text.c: the text that the program trains on when it is given none. The Makefile gathers this
 * project's source and docs into one file; the assembler places it in the program as it is. */
#include "builtin_text.h"

#include "../base/incbin.h"

// .incbin copies the bytes of a file as they are; BUILTIN_TEXT is its path, given by the Makefile. Two labels mark
// its beginning and its end. The last directive goes back to the section for code.
__asm__(SECTION "\n"
        ".globl " SYMBOL("builtin_text_start") "\n" SYMBOL("builtin_text_start") ":\n"
        ".incbin \"" BUILTIN_TEXT "\"\n"
        ".globl " SYMBOL("builtin_text_end") "\n" SYMBOL("builtin_text_end") ":\n"
        ".byte 0\n"
        ".text\n");

extern const unsigned char builtin_text_start[], builtin_text_end[];

const unsigned char *builtin_text(size_t *bytes) {
    *bytes = (size_t)(builtin_text_end - builtin_text_start);
    return builtin_text_start;
}
