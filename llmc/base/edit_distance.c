/* edit_distance.c: how far apart two spellings are, by the table of Levenshtein 1966 with Damerau's swap of
 * neighbours. Only three of its rows are kept. */
#include "edit_distance.h"

#include "arithmetic.h"

#include <string.h>

enum { LONGEST = 255 };

/* Cell (i, j) of the table is the distance of a's first i letters from b's first j. It follows from the cells
 * above, left and diagonal (insert, delete, replace), and two rows above for a swap. */
int edit_distance(const char *a, const char *b) {
    int rows = (int)strnlen(a, LONGEST), columns = (int)strnlen(b, LONGEST);
    int table[3][LONGEST + 1], *before = table[0], *above = table[1], *line = table[2];
    for (int j = 0; j <= columns; j++) line[j] = j;
    for (int i = 1; i <= rows; i++) {
        int *oldest = before;
        before = above, above = line, line = oldest;
        line[0] = i;
        for (int j = 1; j <= columns; j++) {
            line[j] = int_min(above[j - 1] + (a[i - 1] != b[j - 1]), int_min(above[j], line[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                line[j] = int_min(line[j], before[j - 2] + 1);
        }
    }
    return line[columns];
}

/* One mistake for every six letters, and one more. */
int slip_distance(const char *wanted) { return 1 + (int)strnlen(wanted, LONGEST) / 6; }
