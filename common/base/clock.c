#include "clock.h"

#include <limits.h>

#define NS_PER_US INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S  INT64_C(1000000000)

static instant add(instant t, int64_t units, int64_t ns_per_unit)
{
    int64_t ns = 0;
    int64_t sum = 0;
    if (__builtin_mul_overflow(units, ns_per_unit, &ns) || __builtin_add_overflow(t.ns, ns, &sum)) {
        return units < 0 ? (instant){INT64_MIN} : INSTANT_NEVER;
    }
    return (instant){sum};
}

instant instant_add_ms(instant t, int64_t ms)
{
    return add(t, ms, NS_PER_MS);
}

instant instant_add_us(instant t, int64_t us)
{
    return add(t, us, NS_PER_US);
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

struct timespec instant_poll_wait(instant now, instant t)
{
    int64_t ns = instant_before(now, t) ? t.ns - now.ns : 0;
    int64_t most = (int64_t)(INT_MAX / 2) * NS_PER_MS;
    ns = ns > most ? most : ns;
    return (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
}
