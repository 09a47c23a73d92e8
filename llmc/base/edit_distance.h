/* edit_distance.h: how far apart two spellings are, for "did you mean". */
#ifndef LLMC_EDIT_DISTANCE_H
#define LLMC_EDIT_DISTANCE_H

/* Letters to insert, delete or replace, or neighbours to swap, to make b of a (optimal string alignment:
 * Damerau 1964, Levenshtein 1966); only the first 255 of each count. */
int edit_distance(const char *a, const char *b);

/* The largest distance at which `wanted` may be a misspelling of another name. */
int slip_distance(const char *wanted);

#endif
