/* Any bytes as a TZif file: refused with one line, or a zone whose two questions, from instant to
 * local time and back, agree about every change of the clock. */
#include <string.h>

#include "fuzz.h"

#define CHANGES_MAX 4000
#define PROBED      24 /* changes looked at closely; behind them each sixteenth */
#define FAR_S       ((int64_t)300000 * 366 * SECONDS_A_DAY) /* behind what a utc_us can hold */

/* Is `utc_s` an instant at which the clock shows the local time? */
static bool clock_shows(const struct zone *z, int64_t utc_s, int64_t local)
{
    return utc_s + zone_offset_at(z, utc_s) == local;
}

static void local_check(const struct zone *z, int64_t local)
{
    const struct zone_span s = zone_resolve(z, (struct local_time){local});
    const bool before = clock_shows(z, local - s.before, local);
    const bool after = clock_shows(z, local - s.after, local);
    MUST_HOLD(s.start <= local && local < s.until);
    switch (s.kind) {
    case LOCAL_UNIQUE:
        MUST_HOLD(before && s.before == s.after && s.transition == 0);
        break;
    case LOCAL_GAP:
        MUST_HOLD(!before && !after && s.after > s.before);
        MUST_HOLD(s.start == s.transition + s.before && s.until == s.transition + s.after);
        break;
    case LOCAL_OVERLAP:
        MUST_HOLD(before && after && s.after < s.before);
        MUST_HOLD(local - s.before < s.transition && local - s.after >= s.transition);
        break;
    }
}

/* What the clock shows at an instant is a local time that leads back to it. */
static void instant_check(const struct zone *z, int64_t utc_s)
{
    const int32_t offset = zone_offset_at(z, utc_s);
    const struct zone_span s = zone_resolve(z, (struct local_time){utc_s + offset});
    MUST_HOLD(offset >= ZONE_OFFSET_MIN && offset <= ZONE_OFFSET_MAX);
    MUST_HOLD(s.kind != LOCAL_GAP && (s.before == offset || s.after == offset));
    MUST_HOLD(s.kind == LOCAL_UNIQUE || offset == (utc_s < s.transition ? s.before : s.after));
    local_check(z, utc_s + offset);
}

static void change_check(const struct zone *z, const struct zone_change *c)
{
    static const int64_t distances[] = {-86400, -3600, -1, 0, 1, 1800, 3600, 86400};
    MUST_HOLD(c->before != c->after);
    MUST_HOLD(zone_offset_at(z, c->at - 1) == c->before && zone_offset_at(z, c->at) == c->after);
    for (size_t i = 0; i < sizeof distances / sizeof distances[0]; i++) {
        instant_check(z, c->at + distances[i]);
        local_check(z, c->at + c->before + distances[i]);
        local_check(z, c->at + c->after + distances[i]);
    }
}

static void zone_ask(const struct zone *z)
{
    static const int64_t far[] = {-FAR_S, -62135596800, 0, 1767225600, 253402300799, FAR_S};
    struct zone_change c = {.at = -FAR_S};
    struct zone_change next;
    for (int i = 0; i < CHANGES_MAX && zone_change_after(z, c.at, &next); i++) {
        MUST_HOLD(next.at > c.at && next.before == zone_offset_at(z, c.at));
        c = next;
        if (i < PROBED || i % 16 == 0) {
            change_check(z, &c);
        }
    }
    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++) {
        instant_check(z, far[i]);
        local_check(z, far[i]);
        if (zone_change_after(z, far[i], &next)) {
            change_check(z, &next);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err = {.text = ""};
    struct zone *z = NULL;
    enum status s = zone_parse("Fuzz/Zone", data, size, &z, &err);
    if (s != STATUS_OK) {
        MUST_HOLD(z == NULL && strncmp(err.text, "time zone Fuzz/Zone: ", 21) == 0);
        fuzz_refusal(&err);
        return 0;
    }
    zone_ask(z);
    zone_free(z);
    z = NULL;
    /* A file that is cut off anywhere is no file. */
    MUST_HOLD(zone_parse("Fuzz/Zone", data, size - 1, &z, &err) == STATUS_INVALID);
    MUST_HOLD(zone_parse("Fuzz/Zone", data, size / 2, &z, &err) == STATUS_INVALID);
    return 0;
}
