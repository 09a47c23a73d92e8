/* incbin.h: what the assembler needs to place a file in the program: its section of constants, and a symbol's name. */
#ifndef LLMC_INCBIN_H
#define LLMC_INCBIN_H

// The object format decides the name of the section, and whether C names begin with an underscore (macOS: they do).
#if defined(__APPLE__)
#define SECTION ".const_data"
#define SYMBOL(name) "_" name
#else
#define SECTION ".section .rodata"
#define SYMBOL(name) name
#endif

#endif
