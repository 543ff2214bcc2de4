#include "why_hops.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cell.h"
#include "civil.h"

bool why_hops_init(struct why_hops *h)
{
    *h = (struct why_hops){.hops = calloc(WHY_HOPS_MAX, sizeof h->hops[0])};
    return h->hops != NULL;
}

void why_hops_done(struct why_hops *h)
{
    free(h->hops);
    *h = (struct why_hops){.hops = NULL};
}

void why_hop_add(struct why_hops *h, int place, const char *step, utc_us at, const char *format,
                 ...)
{
    if (h->count == WHY_HOPS_MAX) {
        h->full = true;
        return;
    }
    struct why_hop *hop = &h->hops[h->count++];
    va_list args;
    hop->at = at;
    hop->place = place;
    (void)snprintf(hop->step, sizeof hop->step, "%s", step);
    va_start(args, format);
    (void)vsnprintf(hop->what, sizeof hop->what, format, args);
    va_end(args);
    text_trim(hop->what);
}

static int hop_order(const void *a, const void *b)
{
    const struct why_hop *x = a;
    const struct why_hop *y = b;
    int64_t at = utc_is_none(x->at) ? INT64_MAX : x->at.us;
    int64_t other = utc_is_none(y->at) ? INT64_MAX : y->at.us;
    return at < other ? -1 : at > other ? 1 : x->place - y->place;
}

static bool seconds_add(struct table *t, utc_us from, utc_us to)
{
    char text[32];
    if (!utc_is_finite(from) || !utc_is_finite(to)) {
        return table_cell_add(t, NULL);
    }
    (void)snprintf(text, sizeof text, "%.6f", (double)(to.us - from.us) / MICROS_A_SECOND);
    return table_cell_add(t, text);
}

static bool columns_make(struct table *t)
{
    static const struct column columns[] = {
        {.name = "at", .title = "TIME", .kind = COLUMN_INSTANT},
        {.name = "after_s", .title = "AFTER", .kind = COLUMN_SECONDS},
        {.name = "step", .kind = COLUMN_TEXT},
        {.name = "what", .kind = COLUMN_TEXT},
    };
    return table_columns_add(t, columns, sizeof columns / sizeof columns[0]);
}

struct table *why_hops_table(struct why_hops *h)
{
    struct table *t = table_new();
    utc_us before = UTC_NONE;
    qsort(h->hops, h->count, sizeof h->hops[0], hop_order);
    bool ok = t != NULL && columns_make(t);
    for (size_t i = 0; ok && i < h->count; i++) {
        const struct why_hop *hop = &h->hops[i];
        ok = cell_instant_add(t, hop->at) && seconds_add(t, before, hop->at) &&
             table_cell_add(t, hop->step) && table_cell_add(t, hop->what);
        before = hop->at;
    }
    if (!ok) {
        table_free(t);
        return NULL;
    }
    return t;
}
