/* doubles.h: where fatal() goes when readers are fuzzed (doubles.c), and what it or a warning said last. */
#ifndef FUZZ_DOUBLES_H
#define FUZZ_DOUBLES_H

#include <setjmp.h>

extern jmp_buf doubles_end;
extern char doubles_said[2048];

#endif
