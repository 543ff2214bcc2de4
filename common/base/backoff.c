#include "backoff.h"

int64_t backoff_ms(const struct backoff *policy, unsigned failures, uint64_t random)
{
    int64_t delay = policy->base_ms < 1 ? 1 : policy->base_ms;
    int64_t most = policy->most_ms < delay ? delay : policy->most_ms;
    for (unsigned i = 1; i < failures && delay < most; i++) {
        delay = delay > most / 2 ? most : delay * 2;
    }
    int64_t half = delay / 2;
    uint64_t spread = (uint64_t)(delay - half) + 1;
    return half + (int64_t)(random % spread);
}
