#include "planning_rest.h"

#include <string.h>

void rest_clear(struct rest_table *t)
{
    t->count = 0;
}

/* t->count when there is none. */
static size_t index_of(const struct rest_table *t, const char *schedule)
{
    size_t i = 0;
    while (i < t->count && strcmp(t->entries[i].schedule, schedule) != 0) {
        i++;
    }
    return i;
}

const struct rest *rest_find(const struct rest_table *t, const char *schedule)
{
    size_t i = index_of(t, schedule);
    return i < t->count ? &t->entries[i] : NULL;
}

bool rest_is_on(const struct rest_table *t, const char *schedule, instant now)
{
    const struct rest *r = rest_find(t, schedule);
    return r != NULL && instant_before(now, r->until);
}

/* The entry, made where it is missing. When the table is full the one that ends first gives way:
 * it would soon be tried again anyway. */
static struct rest *entry_get(struct rest_table *t, const char *schedule)
{
    size_t at = index_of(t, schedule);
    struct rest *r = &t->entries[0];
    if (at < t->count) {
        return &t->entries[at];
    }
    if (t->count < REST_MAX) {
        r = &t->entries[t->count++];
    } else {
        for (size_t i = 1; i < t->count; i++) {
            r = instant_before(t->entries[i].until, r->until) ? &t->entries[i] : r;
        }
    }
    *r = (struct rest){.until = {0}};
    size_t n = strlen(schedule);
    n = n < sizeof r->schedule ? n : sizeof r->schedule - 1;
    memcpy(r->schedule, schedule, n);
    return r;
}

void rest_skip(struct rest_table *t, const char *schedule, instant now)
{
    struct rest *r = entry_get(t, schedule);
    r->until = instant_max(r->until, instant_add_ms(now, REST_MS));
}

bool rest_fail(struct rest_table *t, const char *schedule, instant now, uint64_t writes)
{
    struct rest *r = entry_get(t, schedule);
    if (r->failures == 0) {
        r->writes_then = writes;
    }
    int64_t ms = REST_MS;
    for (unsigned i = 0; i < r->failures && ms < REST_LONGEST_MS; i++) {
        ms *= 2;
    }
    r->failures++;
    r->until = instant_add_ms(now, ms < REST_LONGEST_MS ? ms : REST_LONGEST_MS);
    return r->failures >= REST_STRIKES_MAX && writes > r->writes_then;
}

void rest_forget(struct rest_table *t, const char *schedule)
{
    size_t at = index_of(t, schedule);
    if (at < t->count) {
        t->entries[at] = t->entries[--t->count];
    }
}

size_t rest_count(const struct rest_table *t, instant now)
{
    size_t n = 0;
    for (size_t i = 0; i < t->count; i++) {
        n += instant_before(now, t->entries[i].until) ? 1 : 0;
    }
    return n;
}
