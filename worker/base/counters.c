#include "counters.h"

#include <inttypes.h>
#include <stdio.h>

void counter_add(struct counters *c, enum counter which, uint64_t n)
{
    atomic_fetch_add_explicit(&c->value[which], n, memory_order_relaxed);
}

uint64_t counter_read(const struct counters *c, enum counter which)
{
    return atomic_load_explicit(&c->value[which], memory_order_relaxed);
}

const char *counter_name(enum counter which)
{
    static const char *const names[COUNTERS] = {
        "claimed",         "pulled",     "adopted",           "messages",    "duplicate",
        "stale",           "unclaimed",  "unknown",           "poison",      "shed",
        "succeeded",       "failed",     "cancelled",         "handed_back", "lost",
        "outcome_repeats", "heartbeats", "heartbeats_failed", "incarnations"};
    return names[which];
}

void counters_format(const struct counters *c, char *ret_text, size_t size)
{
    size_t used = 0;
    ret_text[0] = '\0';
    for (int i = 0; i < COUNTERS; i++) {
        uint64_t n = counter_read(c, (enum counter)i);
        if (n == 0) {
            continue;
        }
        int length = snprintf(ret_text + used, size - used, "%s%s=%" PRIu64, used == 0 ? "" : " ",
                              counter_name((enum counter)i), n);
        if (length < 0 || (size_t)length >= size - used) {
            ret_text[used] = '\0';
            return;
        }
        used += (size_t)length;
    }
}
