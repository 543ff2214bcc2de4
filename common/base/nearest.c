#include "nearest.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define WORD_MAX 64

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

/* Levenshtein, with one row of the matrix. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t row[WORD_MAX];
    size_t an = strnlen(a, WORD_MAX - 1);
    size_t bn = strnlen(b, WORD_MAX - 1);
    for (size_t j = 0; j <= bn; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= an; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= bn; j++) {
            size_t above = row[j];
            row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1));
            diagonal = above;
        }
    }
    return row[bn];
}

struct nearest nearest_start(const char *typed)
{
    return (struct nearest){.typed = typed, .best = NULL, .distance = SIZE_MAX};
}

void nearest_offer(struct nearest *n, const char *known)
{
    size_t length = strnlen(n->typed, WORD_MAX - 1);
    size_t distance = edit_distance(n->typed, known);
    size_t bound = length / 3 + 1;
    /* A left-out unit or prefix ("tick" for "tick_ms") is near, but any real slip is nearer. */
    if (distance > bound && length >= 3 && strstr(known, n->typed) != NULL) {
        distance = bound;
    }
    if (distance <= bound && distance < n->distance) {
        n->best = known;
        n->distance = distance;
    }
}
