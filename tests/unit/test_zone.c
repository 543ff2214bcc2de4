/* Zones against glibc over the installed tzdata. Files are in test_zone_file.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "civil.h"
#include "fixture_zone.h"

static int64_t start_of_year(int32_t year)
{
    return civil_days_of(year, 1, 1) * SECONDS_A_DAY;
}

/* glibc reads the zone anew when TZ changes. */
static void glibc_use(const char *name)
{
    const char *directory = getenv("RS_TZDIR");
    if (directory != NULL && directory[0] != '\0') {
        assert_int_equal(setenv("TZDIR", directory, 1), 0);
    }
    assert_int_equal(setenv("TZ", name, 1), 0);
    tzset();
}

static uint64_t compared;

static void check_against_glibc(const struct zone *z, int64_t utc_s)
{
    struct tm tm;
    time_t t = (time_t)utc_s;
    assert_non_null(localtime_r(&t, &tm));
    compared++;
    if (tm.tm_gmtoff != zone_offset_at(z, utc_s)) {
        fail_msg("%s at %lld: glibc %ld, ours %d", zone_name(z), (long long)utc_s, tm.tm_gmtoff,
                 zone_offset_at(z, utc_s));
    }
}

static void test_offsets_agree_with_glibc_around_every_transition(void **state)
{
    (void)state;
    static const int64_t distances[] = {-86400, -3600, -1, 0, 1, 3600, 86400};
    compared = 0;
    for (size_t i = 0; i < zone_set_count(fixture_zones()); i++) {
        const struct zone *z = fixture_zone(zone_set_name(fixture_zones(), i));
        glibc_use(zone_set_name(fixture_zones(), i));
        struct zone_change change = {.at = start_of_year(1970) - 1};
        while (zone_change_after(z, change.at, &change) && change.at < start_of_year(2101)) {
            assert_int_not_equal(change.before, change.after);
            for (size_t k = 0; k < sizeof distances / sizeof distances[0]; k++) {
                check_against_glibc(z, change.at + distances[k]);
            }
        }
        for (int32_t year = 2038; year <= 2050; year++) {
            for (int day = 0; day < 5; day++) {
                check_against_glibc(z, start_of_year(year) + day * SECONDS_A_DAY + 43200);
            }
        }
    }
    print_message("%zu zones, %llu offsets compared with glibc\n", zone_set_count(fixture_zones()),
                  (unsigned long long)compared);
    assert_true(compared > 100000);
}

static void test_offsets_agree_with_glibc_at_random_instants_up_to_year_3000(void **state)
{
    (void)state;
    int64_t low = start_of_year(1850);
    uint64_t range = (uint64_t)(start_of_year(3000) - low);
    for (size_t i = 0; i < zone_set_count(fixture_zones()); i++) {
        const struct zone *z = fixture_zone(zone_set_name(fixture_zones(), i));
        glibc_use(zone_set_name(fixture_zones(), i));
        for (int k = 0; k < 300; k++) {
            check_against_glibc(z, low + (int64_t)(fixture_random() % range));
        }
    }
}

/* Says from the definition which instants show the local time w. */
static void check_local(const struct zone *z, int64_t w)
{
    struct zone_span span = zone_resolve(z, (struct local_time){w});
    bool by_before = zone_offset_at(z, w - span.before) == span.before;
    bool by_after = zone_offset_at(z, w - span.after) == span.after;
    bool good = span.start <= w && w < span.until;
    switch (span.kind) {
    case LOCAL_UNIQUE:
        good = good && by_before && span.before == span.after;
        break;
    case LOCAL_GAP:
        good = good && !by_before && !by_after && span.before < span.after &&
               span.until - span.start == span.after - span.before &&
               span.start == span.transition + span.before;
        break;
    case LOCAL_OVERLAP:
        good = good && by_before && by_after && span.before > span.after &&
               w - span.before < span.transition && w - span.after >= span.transition;
        break;
    }
    if (!good) {
        fail_msg("%s local %lld: kind %d", zone_name(z), (long long)w, (int)span.kind);
    }
}

static void test_local_times_resolve_by_definition_at_every_edge(void **state)
{
    (void)state;
    uint64_t gaps = 0;
    uint64_t overlaps = 0;
    for (size_t i = 0; i < zone_set_count(fixture_zones()); i++) {
        const struct zone *z = fixture_zone(zone_set_name(fixture_zones(), i));
        struct zone_change c = {.at = start_of_year(1800)};
        while (zone_change_after(z, c.at, &c) && c.at < start_of_year(2600)) {
            int64_t low = c.at + (c.before < c.after ? c.before : c.after);
            int64_t high = c.at + (c.before < c.after ? c.after : c.before);
            const int64_t points[] = {low - 1, low, (low + high) / 2, high - 1, high, high + 3600};
            for (size_t k = 0; k < sizeof points / sizeof points[0]; k++) {
                check_local(z, points[k]);
            }
            enum local_kind kind = zone_resolve(z, (struct local_time){low}).kind;
            assert_int_equal(kind, c.before < c.after ? LOCAL_GAP : LOCAL_OVERLAP);
            gaps += kind == LOCAL_GAP ? 1 : 0;
            overlaps += kind == LOCAL_OVERLAP ? 1 : 0;
            /* Spans join without holes. */
            struct zone_span unique = zone_resolve(z, (struct local_time){high});
            assert_int_equal(unique.start, high);
        }
    }
    print_message("%llu gaps, %llu overlaps\n", (unsigned long long)gaps,
                  (unsigned long long)overlaps);
    assert_true(gaps > 10000 && overlaps > 10000);
}

static void test_named_gaps_and_overlaps_are_what_history_says(void **state)
{
    (void)state;
    static const struct {
        const char *zone, *local;
        enum local_kind kind;
        int32_t before, after;
    } rows[] = {
        {"Europe/Berlin", "2026-03-29T02:30", LOCAL_GAP, 3600, 7200},
        {"Europe/Berlin", "2026-10-25T02:30", LOCAL_OVERLAP, 7200, 3600},
        {"Europe/Dublin", "2040-03-25T01:30", LOCAL_GAP, 0, 3600},
        {"Europe/Dublin", "2040-10-28T01:30", LOCAL_OVERLAP, 3600, 0},
        {"Pacific/Apia", "2011-12-30T12:00", LOCAL_GAP, -36000, 50400},
        {"Asia/Pyongyang", "2018-05-04T23:45", LOCAL_GAP, 30600, 32400},
        {"America/St_Johns", "2010-11-06T23:30", LOCAL_OVERLAP, -9000, -12600},
        {"Africa/Monrovia", "1972-01-07T00:30", LOCAL_GAP, -2670, 0},
        {"Europe/Volgograd", "2020-12-27T01:30", LOCAL_OVERLAP, 14400, 10800},
        {"Asia/Tokyo", "2026-03-29T02:30", LOCAL_UNIQUE, 32400, 32400},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct date_time t;
        assert_int_equal(date_time_parse(rows[i].local, &t, NULL), STATUS_OK);
        struct zone_span span = zone_resolve(fixture_zone(rows[i].zone), t.local);
        assert_int_equal(span.kind, rows[i].kind);
        assert_int_equal(span.before, rows[i].before);
        assert_int_equal(span.after, rows[i].after);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_offsets_agree_with_glibc_around_every_transition),
        cmocka_unit_test(test_offsets_agree_with_glibc_at_random_instants_up_to_year_3000),
        cmocka_unit_test(test_local_times_resolve_by_definition_at_every_edge),
        cmocka_unit_test(test_named_gaps_and_overlaps_are_what_history_says),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
