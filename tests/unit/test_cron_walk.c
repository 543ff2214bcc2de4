/* Cron against an evaluator that shares no code with it: a walk over every minute. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cron.h"
#include "fixture_zone.h"

#if defined(__SANITIZE_ADDRESS__)
#define WALKED_CASES 1500
#else
#define WALKED_CASES 6000
#endif

/* An expression whose meaning is kept beside its text, as plain tables. */
struct model {
    char text[CRON_TEXT_MAX];
    size_t used;
    bool minute[60], hour[24], day[32], month[13], weekday[8];
    bool any_day, any_weekday, both_days, follows_clock;
    enum dst_gap_policy gap;
    enum dst_overlap_policy overlap;
};

static void model_write(struct model *m, const char *text)
{
    size_t n = strlen(text);
    assert_true(m->used + n < sizeof m->text);
    memcpy(m->text + m->used, text, n + 1);
    m->used += n;
}

static void model_write_int(struct model *m, int value)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%d", value);
    model_write(m, text);
}

/* Append a list of values, ranges and steps. */
static void model_list(struct model *m, bool *set, int low, int high)
{
    for (int items = fixture_random_in(1, 3); items > 0; items--) {
        int a = fixture_random_in(low, high);
        int b = fixture_random_in(a, high);
        int step = fixture_random_in(1, 5);
        model_write_int(m, a);
        if (fixture_random_in(0, 2) == 0) {
            model_write(m, "-");
            model_write_int(m, b);
            if (fixture_random_in(0, 1) == 0) {
                model_write(m, "/");
                model_write_int(m, step);
            } else {
                step = 1;
            }
            for (int v = a; v <= b; v += step) {
                set[v] = true;
            }
        } else {
            set[a] = true;
        }
        model_write(m, items > 1 ? "," : "");
    }
}

/* Append a field; returns whether it is "*". `star` in eight are, or begin with, a star. */
static bool model_field(struct model *m, bool *set, int low, int high, int star)
{
    if (fixture_random_in(1, 8) > star) {
        model_list(m, set, low, high);
        return false;
    }
    int step = fixture_random_in(0, 3) == 0 ? fixture_random_in(2, high - low + 1) : 1;
    model_write(m, "*");
    if (step > 1) {
        model_write(m, "/");
        model_write_int(m, step);
    }
    for (int v = low; v <= high; v += step) {
        set[v] = true;
    }
    return step == 1;
}

static void model_make(struct model *m)
{
    memset(m, 0, sizeof *m);
    size_t start = m->used;
    (void)model_field(m, m->minute, 0, 59, 2);
    m->follows_clock = m->text[start] == '*';
    model_write(m, " ");
    start = m->used;
    (void)model_field(m, m->hour, 0, 23, 3);
    m->follows_clock = m->follows_clock || m->text[start] == '*';
    model_write(m, " ");
    m->any_day = fixture_random_in(0, 3) > 0;
    if (m->any_day) {
        model_write(m, "*");
    } else {
        model_list(m, m->day, 1, 31);
    }
    model_write(m, " * ");
    m->any_weekday = fixture_random_in(0, 3) > 0;
    if (m->any_weekday) {
        model_write(m, "*");
    } else {
        m->both_days = fixture_random_in(0, 2) == 0;
        model_write(m, m->both_days ? "+" : "");
        model_list(m, m->weekday, 0, 7);
        m->weekday[0] = m->weekday[0] || m->weekday[7];
    }
    bool chosen = fixture_random_in(0, 2) == 0;
    m->gap = chosen ? (enum dst_gap_policy)fixture_random_in(DST_GAP_AFTER, DST_GAP_SKIP)
                    : (m->follows_clock ? DST_GAP_SKIP : DST_GAP_AFTER);
    chosen = fixture_random_in(0, 2) == 0;
    m->overlap =
        chosen ? (enum dst_overlap_policy)fixture_random_in(DST_OVERLAP_FIRST, DST_OVERLAP_BOTH)
               : (m->follows_clock ? DST_OVERLAP_BOTH : DST_OVERLAP_FIRST);
}

/* `minute` counts local minutes since 1970. */
static bool model_matches(const struct model *m, int64_t minute)
{
    int64_t days = floor_divide(minute, 1440);
    int64_t clock = minute - days * 1440;
    if (!m->minute[clock % 60] || !m->hour[clock / 60]) {
        return false;
    }
    bool day = m->day[civil_date_of(days).day];
    bool weekday = m->weekday[civil_weekday(days)];
    if (m->any_day || m->any_weekday) {
        return (m->any_day || day) && (m->any_weekday || weekday);
    }
    return m->both_days ? day && weekday : day || weekday;
}

#define WALK_BEFORE  (50 * 60) /* minutes walked before `after`, to know what was shown already */
#define WALK_AFTER   (4 * 1440)
#define WALK_BEYOND  (26 * 60) /* and behind the end, to know what will be shown again */
#define WALK_MINUTES (WALK_BEFORE + WALK_AFTER + WALK_BEYOND)
#define WALK_SHOWN   (WALK_MINUTES + 4 * 1440)

struct walk {
    int64_t start;                /* UTC minute of offset[0] */
    int64_t shown_base;           /* local minute of shown[0] */
    int32_t offset[WALK_MINUTES]; /* minutes */
    uint8_t shown[WALK_SHOWN];    /* how often the clock shows each local minute */
};

/* Look at the clock at every UTC minute. False when an offset has seconds. */
static bool walk_fill(struct walk *w, const struct zone *z, int64_t after_minute)
{
    w->start = after_minute - WALK_BEFORE;
    w->shown_base = w->start - 2 * 1440;
    memset(w->shown, 0, sizeof w->shown);
    for (int i = 0; i < WALK_MINUTES; i++) {
        int32_t offset = zone_offset_at(z, (w->start + i) * 60);
        if (offset % 60 != 0 || offset != zone_offset_at(z, (w->start + i) * 60 + 59)) {
            return false;
        }
        w->offset[i] = offset / 60;
        w->shown[w->start + i + w->offset[i] - w->shown_base]++;
    }
    return true;
}

struct found {
    bool found;
    int64_t at, nominal; /* minutes */
};

static void found_offer(struct found *f, int64_t at, int64_t nominal)
{
    if (!f->found || nominal > f->nominal) {
        *f = (struct found){true, at, nominal};
    }
}

/* The first firing by going through the minutes one by one, as a person with a clock would. */
static struct found walk_next(const struct model *m, const struct walk *w)
{
    static uint8_t seen[WALK_SHOWN];
    memset(seen, 0, sizeof seen);
    struct found f = {.found = false};
    int64_t gap_at = 0;
    int64_t gap_before = 0;
    int64_t gap_length = 0;
    for (int i = 0; i < WALK_BEFORE + WALK_AFTER && !f.found; i++) {
        int64_t at = w->start + i;
        int64_t local = at + w->offset[i];
        int64_t shown = local - w->shown_base;
        bool may = i > WALK_BEFORE; /* strictly after */
        bool second = seen[shown]++ > 0;
        bool twice = w->shown[shown] > 1;
        if (i > 0 && w->offset[i] > w->offset[i - 1]) {
            gap_at = at;
            gap_before = w->offset[i - 1];
            gap_length = w->offset[i] - w->offset[i - 1];
            for (int64_t n = at + gap_before; n < local && m->gap == DST_GAP_AFTER; n++) {
                if (may && gap_length <= 180 && model_matches(m, n)) {
                    found_offer(&f, at, n);
                }
            }
        }
        if (may && m->gap == DST_GAP_SHIFT && gap_length > 0 && gap_length <= 180 &&
            at - gap_at < gap_length && model_matches(m, at + gap_before)) {
            found_offer(&f, at, at + gap_before);
        }
        bool pass = !twice || m->overlap == DST_OVERLAP_BOTH ||
                    (m->overlap == DST_OVERLAP_FIRST) == !second;
        if (may && pass && model_matches(m, local)) {
            found_offer(&f, at, local);
        }
    }
    return f;
}

/* A minute in the two days before some transition of some zone since 1975. */
static const struct zone *random_place(int64_t *ret_after_minute)
{
    for (;;) {
        const char *name =
            zone_set_name(fixture_zones(), fixture_random() % zone_set_count(fixture_zones()));
        const struct zone *z = fixture_zone(name);
        int64_t t = civil_days_of(1975, 1, 1) * SECONDS_A_DAY +
                    (int64_t)(fixture_random() % (100u * 365 * 86400));
        struct zone_change change;
        if (zone_change_after(z, t, &change)) {
            *ret_after_minute = floor_divide(change.at, 60) - fixture_random_in(-3 * 60, 40 * 60);
            return z;
        }
        if (fixture_random_in(0, 9) == 0) {
            *ret_after_minute = t / 60;
            return z;
        }
    }
}

static void test_next_agrees_with_a_walk_over_every_minute(void **state)
{
    (void)state;
    static struct model m;
    static struct walk w;
    int fired = 0;
    int cases = 0;
    while (cases < WALKED_CASES) {
        int64_t after = 0;
        const struct zone *z = random_place(&after);
        if (!walk_fill(&w, z, after)) {
            continue;
        }
        model_make(&m);
        struct cron c = {.seconds = 0};
        struct error err = {.text = ""};
        if (cron_parse(m.text, &c, &err) != STATUS_OK) {
            assert_non_null(strstr(err.text, "never fires")); /* such as day 31 and day 31 + */
            continue;
        }
        cron_set_policies(&c, m.gap, m.overlap);
        struct found want = walk_next(&m, &w);
        struct firing got = cron_next(&c, z, utc_from_seconds(after * 60));
        cases++;
        fired += want.found ? 1 : 0;
        int64_t end = (w.start + WALK_BEFORE + WALK_AFTER) * 60;
        int64_t at = utc_seconds(got.at);
        bool agree = want.found
                         ? got.found && at == want.at * 60 && got.nominal.s == want.nominal * 60 &&
                               got.offset_s == zone_offset_at(z, at)
                         : !got.found || at >= end;
        if (!agree) {
            fail_msg("\"%s\" in %s after minute %lld, gap %d, overlap %d: walked to %lld (nominal "
                     "%lld), got %lld (nominal %lld)",
                     m.text, zone_name(z), (long long)after, (int)m.gap, (int)m.overlap,
                     (long long)(want.found ? want.at * 60 : -1), (long long)want.nominal * 60,
                     (long long)at, (long long)got.nominal.s);
        }
    }
    print_message("%d cases, %d fired within four days\n", cases, fired);
    assert_true(fired > WALKED_CASES / 2);
}

static void test_a_sweep_rises_and_is_the_same_from_any_instant_between(void **state)
{
    (void)state;
    static struct model m;
    for (int i = 0; i < 300; i++) {
        int64_t after = 0;
        const struct zone *z = random_place(&after);
        model_make(&m);
        struct cron c = {.seconds = 0};
        if (cron_parse(m.text, &c, NULL) != STATUS_OK) {
            continue;
        }
        cron_set_policies(&c, m.gap, m.overlap);
        utc_us t = utc_from_seconds(after * 60);
        for (int k = 0; k < 100; k++) {
            struct firing f = cron_next(&c, z, t);
            assert_true(f.found && f.at.us > t.us);
            uint64_t distance = (uint64_t)(f.at.us - t.us);
            utc_us between = {t.us + (int64_t)(fixture_random() % distance)};
            struct firing same = cron_next(&c, z, between);
            if (same.at.us != f.at.us || same.nominal.s != f.nominal.s) {
                fail_msg("\"%s\" in %s: from %lld to %lld, but from %lld to %lld", m.text,
                         zone_name(z), (long long)t.us, (long long)f.at.us, (long long)between.us,
                         (long long)same.at.us);
            }
            t = f.at;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_next_agrees_with_a_walk_over_every_minute),
        cmocka_unit_test(test_a_sweep_rises_and_is_the_same_from_any_instant_between),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
