/* nearest.c: see nearest.h. */
#include "nearest.h"

#include <string.h>

enum { LONGEST = 255 };

static int min(int a, int b) { return a < b ? a : b; }

int edit_distance(const char *a, const char *b) {
    int rows = (int)strnlen(a, LONGEST), columns = (int)strnlen(b, LONGEST);
    int line[LONGEST + 1]; // of the table whose cell (i, j) is the distance of a's i, b's j first letters
    for (int j = 0; j <= columns; j++) line[j] = j;
    for (int i = 1; i <= rows; i++) {
        int diagonal = line[0];
        line[0] = i;
        for (int j = 1; j <= columns; j++) {
            int replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = line[j];
            line[j] = min(replaced, min(line[j], line[j - 1]) + 1);
        }
    }
    return line[columns];
}

int slip_distance(const char *wanted) { return 1 + (int)strnlen(wanted, LONGEST) / 6; }
