/* SPDX-License-Identifier: BSD-2-Clause */
/* Suggests the name with the smallest edit distance to a misspelt word, if similar enough. */
#include "conf/report.h"

#include <assert.h>
#include <string.h>

#define LENGTH_MAX 64 /* no similar name is longer */

static unsigned least_of(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* The optimal string alignment distance: insertions, removals, changes and swaps of bytes. */
static unsigned word_distance(const char *a, size_t a_n, const char *b, size_t b_n)
{
    unsigned rows[3][LENGTH_MAX + 1];
    unsigned *before = rows[0], *last = rows[1], *row = rows[2], *spare;

    assert(a_n <= LENGTH_MAX && b_n <= LENGTH_MAX);
    for (unsigned j = 0; j <= b_n; j++)
        last[j] = j;
    for (unsigned i = 1; i <= a_n; i++) {
        row[0] = i;
        for (unsigned j = 1; j <= b_n; j++) {
            row[j] = last[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = least_of(row[j], least_of(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least_of(row[j], before[j - 2] + 1);
        }
        spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[b_n];
}

void nearest_try(struct nearest *nearest, const char *candidate)
{
    size_t n = strlen(nearest->word), candidate_n = strlen(candidate);
    unsigned most = n < 6 ? 1 : n < 9 ? 2 : 3; /* a third of the word, from 1 to 3 */
    unsigned d;

    if (n == 0 || n > LENGTH_MAX || candidate_n == 0 || candidate_n > LENGTH_MAX)
        return;
    d = word_distance(nearest->word, n, candidate, candidate_n);
    if (d >= n && d >= candidate_n) /* no common byte */
        return;
    if (nearest->found == NULL ? d <= most : d < nearest->distance) {
        nearest->distance = d;
        nearest->found = candidate;
    }
}
