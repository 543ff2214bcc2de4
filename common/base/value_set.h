/* Small sets of numbers as bits: bit n of a 64-bit word stands for n. Pure. */
#ifndef RS_VALUE_SET_H
#define RS_VALUE_SET_H

#include <stdbool.h>
#include <stdint.h>

static inline bool set_has(uint64_t set, int value)
{
    return (set >> value & 1) != 0;
}

/* Lowest member >= from, or -1. */
static inline int set_first_from(uint64_t set, int from)
{
    if (from > 63 || set >> from == 0) {
        return -1;
    }
    return from + __builtin_ctzll(set >> from);
}

static inline int set_size(uint64_t set)
{
    return __builtin_popcountll(set);
}

/* The members < below; below may be anything from 0 on. */
static inline uint64_t set_below(uint64_t set, int below)
{
    return below > 63 ? set : set & (((uint64_t)1 << below) - 1);
}

/* The member with this many below it; the set must have more. */
static inline int set_nth(uint64_t set, int index)
{
    for (; index > 0; index--) {
        set &= set - 1;
    }
    return __builtin_ctzll(set);
}

#endif
