/* gpt2_merges.c: GPT-2's merges, as the assembler places the file in the program. The file is made by
 * dev/make_gpt2_merges.py; LICENSE.gpt2 beside it is its licence. */
#include "tokenizer_parts.h"

#if defined(__APPLE__)
#define SECTION ".const_data"
#define SYMBOL(name) "_" name
#else
#define SECTION ".section .rodata"
#define SYMBOL(name) name
#endif

__asm__(SECTION "\n"
                ".globl " SYMBOL("gpt2_merges") "\n" SYMBOL("gpt2_merges") ":\n"
                                                                           ".incbin \"llmc/text/gpt2_merges.bin\"\n"
                                                                           ".text\n");
