#include "clock.h"

#include <limits.h>

#define NS_PER_MS INT64_C(1000000)

instant instant_add_ms(instant t, int64_t ms)
{
    int64_t add = 0;
    int64_t sum = 0;
    if (__builtin_mul_overflow(ms, NS_PER_MS, &add) || __builtin_add_overflow(t.ns, add, &sum)) {
        return ms < 0 ? (instant){INT64_MIN} : INSTANT_NEVER;
    }
    return (instant){sum};
}

int64_t instant_ms_between(instant a, instant b)
{
    int64_t ns = 0;
    if (__builtin_sub_overflow(b.ns, a.ns, &ns)) {
        ns = b.ns > a.ns ? INT64_MAX : INT64_MIN;
    }
    int64_t ms = ns / NS_PER_MS;
    return ns < 0 && ns % NS_PER_MS != 0 ? ms - 1 : ms;
}

bool instant_before(instant a, instant b)
{
    return a.ns < b.ns;
}

instant instant_min(instant a, instant b)
{
    return a.ns < b.ns ? a : b;
}

instant instant_max(instant a, instant b)
{
    return a.ns > b.ns ? a : b;
}

int instant_poll_timeout(instant now, instant t)
{
    if (!instant_before(now, t)) {
        return 0;
    }
    int64_t ns = t.ns - now.ns;
    if (ns > (int64_t)(INT_MAX / 2) * NS_PER_MS) {
        return INT_MAX / 2;
    }
    return (int)((ns + NS_PER_MS - 1) / NS_PER_MS);
}
