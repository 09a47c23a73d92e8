/* processor_needs.c: which features the compiler was allowed to use. It is compiled with the options of all files
 * and is data alone, for processor.c, which is compiled for every processor. */
#include "processor.h"

// A macro that is defined (as 1) is one character of text; one that is not stays its own name.
#define TEXT(macro) #macro
#define NEEDED(level, name, macro) sizeof TEXT(macro) == sizeof "1",

const unsigned char processor_needs[] = {PROCESSOR_FEATURES(NEEDED) 0};
