#include "shrink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One attempt: the kept faults without those numbered [from, to) among them. */
struct attempt {
    bool *keep;
    size_t runs, runs_max;
    shrink_fails *fails;
    void *context;
    size_t count;
};

static size_t kept(const bool *keep, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        n += keep[i];
    }
    return n;
}

/* True: it fails without them too, and they are gone. */
static bool try_without(struct attempt *a, size_t from, size_t to)
{
    bool *less = malloc(a->count);
    if (less == NULL) {
        (void)fprintf(stderr, "simulate: out of memory\n");
        abort();
    }
    memcpy(less, a->keep, a->count);
    for (size_t i = 0, n = 0; i < a->count; i++) {
        if (a->keep[i]) {
            less[i] = n < from || n >= to;
            n++;
        }
    }
    a->runs++;
    bool fails = a->fails(a->context, less, a->count);
    if (fails) {
        memcpy(a->keep, less, a->count);
    }
    free(less);
    return fails;
}

size_t shrink_list(shrink_fails *fails, void *context, bool *keep, size_t count, size_t runs_max,
                   size_t *ret_runs)
{
    struct attempt a = {
        .keep = keep, .runs_max = runs_max, .fails = fails, .context = context, .count = count};
    size_t left = kept(keep, count);
    /* Halves first, then quarters ...; at size one a pass without a gain ends it. */
    for (size_t size = (left + 1) / 2; size > 0 && left > 0 && a.runs < a.runs_max;) {
        bool gained = false;
        for (size_t from = 0; from < left && a.runs < a.runs_max;) {
            if (try_without(&a, from, from + size)) {
                left = kept(keep, count);
                gained = true;
            } else {
                from += size;
            }
        }
        if (size > 1) {
            size = size / 2;
        } else if (!gained) {
            size = 0;
        }
    }
    *ret_runs = a.runs;
    return left;
}
