/* gpt2_merges.c: GPT-2's merges, as the assembler places the file in the program. The file is made by
 * dev/make_gpt2_merges.py; LICENSE.gpt2 beside it is its licence. incbin.h has the words of the assembler. */
#include "tokenizer_parts.h"

#include "../base/incbin.h"

// .incbin copies the 200,000 bytes of the file. Its path is relative to where the compiler runs: the project's root.
// The last directive returns to the section of code, for what the compiler writes after it.
__asm__(SECTION "\n"
                ".globl " SYMBOL("gpt2_merges") "\n" SYMBOL("gpt2_merges") ":\n"
                                                                           ".incbin \"llmc/text/gpt2_merges.bin\"\n"
                                                                           ".text\n");
