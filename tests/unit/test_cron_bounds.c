/* Bounds of cron: how long a gap may be to be caught up, what one search may cost, and that no key
 * comes twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cron_search.h"
#include "fixture_cron.h"
#include "fixture_zone.h"

static void put_u32(unsigned char **p, uint32_t v)
{
    for (int i = 3; i >= 0; i--) {
        *(*p)++ = (unsigned char)(v >> (8 * i));
    }
}

static void put_header(unsigned char **p, const uint32_t counts[6])
{
    memcpy(*p, "TZif2", 5);
    memset(*p + 5, 0, 15);
    *p += 20;
    for (int i = 0; i < 6; i++) {
        put_u32(p, counts[i]);
    }
}

/* A zone whose clock jumps once, at an instant, from UTC forward by `jump` seconds. */
static struct zone *zone_with_gap(int64_t at, int32_t jump)
{
    unsigned char bytes[256];
    unsigned char *p = bytes;
    put_header(&p, (const uint32_t[6]){0, 0, 0, 0, 1, 4});
    memset(p, 0, 6 + 4);
    p += 6 + 4;
    put_header(&p, (const uint32_t[6]){0, 0, 0, 1, 2, 4});
    put_u32(&p, (uint32_t)((uint64_t)at >> 32));
    put_u32(&p, (uint32_t)at);
    *p++ = 1; /* the transition is to type 1 */
    for (int type = 0; type < 2; type++) {
        put_u32(&p, type == 0 ? 0 : (uint32_t)jump);
        *p++ = 0;
        *p++ = 0;
    }
    memcpy(p, "XYZ", 4);
    p += 4;
    p += snprintf((char *)p, 64, "\n<XYZ>-%d:%02d:%02d\n", jump / 3600, jump / 60 % 60, jump % 60);
    struct zone *z = NULL;
    struct error err = {.text = ""};
    if (zone_parse("Made/Up", bytes, (size_t)(p - bytes), &z, &err) != STATUS_OK) {
        fail_msg("a jump of %d s: %s", jump, err.text);
    }
    return z;
}

/* 13:30 daily in a zone whose clock jumps from 13:00 on 2030-04-12. */
static struct firing fires_in_gap(int32_t jump, enum dst_gap_policy gap)
{
    int64_t at = civil_days_of(2030, 4, 12) * SECONDS_A_DAY + 13 * 3600;
    struct zone *z = zone_with_gap(at, jump);
    struct cron c = fixture_cron_parse("30 13 * * *");
    cron_set_policies(&c, gap, DST_OVERLAP_AUTO);
    struct firing f = cron_next(&c, z, utc_from_seconds(at - 3600));
    zone_free(z);
    return f;
}

static void test_a_gap_of_three_hours_is_caught_up_and_a_longer_one_is_not(void **state)
{
    (void)state;
    static const int32_t caught_up[] = {3600, 2 * 3600, 3 * 3600 - 1, 3 * 3600};
    static const int32_t not [] = {3 * 3600 + 1, 4 * 3600, 12 * 3600, 24 * 3600};
    int64_t day = civil_days_of(2030, 4, 12) * SECONDS_A_DAY;
    for (size_t i = 0; i < sizeof caught_up / sizeof caught_up[0]; i++) {
        struct firing f = fires_in_gap(caught_up[i], DST_GAP_AFTER);
        assert_int_equal(utc_seconds(f.at), day + 13 * 3600);
        assert_int_equal(f.nominal.s, day + 13 * 3600 + 1800);
        assert_int_equal(f.offset_s, caught_up[i]);
        f = fires_in_gap(caught_up[i], DST_GAP_SHIFT);
        assert_int_equal(utc_seconds(f.at), day + 13 * 3600 + 1800);
        assert_int_equal(f.nominal.s, day + 13 * 3600 + 1800);
    }
    for (size_t i = 0; i < sizeof not / sizeof not [0]; i++) {
        for (int gap = DST_GAP_AFTER; gap <= DST_GAP_SKIP; gap++) {
            struct firing f = fires_in_gap(not [i], (enum dst_gap_policy)gap);
            assert_int_equal(f.nominal.s, day + SECONDS_A_DAY + 13 * 3600 + 1800);
            assert_int_equal(utc_seconds(f.at), f.nominal.s - not [i]);
        }
    }
}

static int steps_of(const char *text, const char *zone, const char *after, enum dst_gap_policy gap)
{
    struct cron c = fixture_cron_parse(text);
    int steps = 0;
    cron_set_policies(&c, gap, DST_OVERLAP_AUTO);
    (void)cron_search(&c, fixture_zone(zone), fixture_instant(after), &steps);
    return steps;
}

static void test_the_steps_of_one_search_are_few_and_bounded(void **state)
{
    (void)state;
    static const char now[] = "2026-11-30T12:00:00Z";
    assert_in_range(steps_of("30 9 * * 1-5", "America/New_York", now, DST_GAP_AUTO), 0, 4);
    assert_in_range(steps_of("* * * * * *", "America/New_York", now, DST_GAP_AUTO), 0, 4);
    assert_in_range(steps_of("0 0 29 2 *", "America/New_York", now, DST_GAP_AUTO), 0, 20);
    /* A year, once, far away; and one that is over: years are looked at, not months. */
    assert_in_range(steps_of("0 0 0 1 1 * 2199", "UTC", now, DST_GAP_AUTO), 0, 400);
    assert_in_range(steps_of("0 0 0 1 1 * 2020", "UTC", now, DST_GAP_AUTO), 0, 900);
    /* Only ever in gaps that it skips: each is looked at, for the whole cycle. */
    int most = steps_of("30 2 * 3 7L", "Europe/Berlin", now, DST_GAP_SKIP);
    assert_in_range(most, 400, 2000);
    most = steps_of("30 2 * 3 7L", "Europe/Berlin", "8000-01-01T00:00:00Z", DST_GAP_SKIP);
    assert_in_range(most, 400, 2000);
    for (int i = 0; i < 3000; i++) {
        char text[CRON_TEXT_MAX];
        struct cron c;
        fixture_cron_text(text);
        if (cron_parse(text, &c, NULL) == STATUS_OK) {
            int steps = 0;
            cron_set_policies(&c, DST_GAP_SKIP, DST_OVERLAP_FIRST);
            (void)cron_search(&c, fixture_zone("America/New_York"),
                              utc_from_seconds(fixture_random_in(0, 2000000000)), &steps);
            most = steps > most ? steps : most;
        }
    }
    print_message("at most %d steps\n", most);
    assert_true(most <= 2000);
}

struct key {
    int64_t nominal;
    int32_t offset; /* 0 unless it is part of the key */
};

static int key_order(const void *a, const void *b)
{
    const struct key *x = a;
    const struct key *y = b;
    if (x->nominal != y->nominal) {
        return x->nominal < y->nominal ? -1 : 1;
    }
    return x->offset < y->offset ? -1 : x->offset > y->offset ? 1 : 0;
}

#define KEYS_MAX 80000 /* two firings a day */

/* A hundred years of one rule; with one time of day the local date is the key. */
static long check_keys(const char *text, const char *zone, enum dst_gap_policy gap,
                       enum dst_overlap_policy overlap)
{
    static struct key keys[KEYS_MAX];
    struct cron c = fixture_cron_parse(text);
    cron_set_policies(&c, gap, overlap);
    bool daily = cron_is_at_most_daily(&c);
    const struct zone *z = fixture_zone(zone);
    int64_t end = civil_days_of(2071, 1, 1) * SECONDS_A_DAY;
    size_t count = 0;
    for (struct firing f =
             cron_next(&c, z, utc_from_seconds(civil_days_of(1971, 1, 1) * SECONDS_A_DAY));
         f.found && utc_seconds(f.at) < end && count < KEYS_MAX; f = cron_next(&c, z, f.at)) {
        int64_t nominal = daily ? floor_divide(f.nominal.s, SECONDS_A_DAY) : f.nominal.s;
        keys[count++] = (struct key){nominal, f.offset_in_key ? f.offset_s : 0};
    }
    qsort(keys, count, sizeof keys[0], key_order);
    for (size_t i = 1; i < count; i++) {
        if (key_order(&keys[i - 1], &keys[i]) == 0) {
            fail_msg("\"%s\" in %s, gap %d, overlap %d: nominal %lld comes twice", text, zone,
                     (int)gap, (int)overlap, (long long)keys[i].nominal);
        }
    }
    return (long)count;
}

static void test_no_key_comes_twice_in_a_hundred_years(void **state)
{
    (void)state;
    static const char *const zones[] = {"America/New_York", "Europe/Dublin",    "Africa/Cairo",
                                        "Pacific/Apia",     "America/St_Johns", "Africa/Casablanca",
                                        "Pacific/Kwajalein"};
    static const char *const texts[] = {"30 2 * * *",   "0 0 * * *",    "1 0 * * *",
                                        "*/30 2 * * *", "30 0-3 * * *", "15 23,0 * * *"};
    long keys = 0;
    for (size_t i = 0; i < sizeof zones / sizeof zones[0]; i++) {
        for (int gap = DST_GAP_AFTER; gap <= DST_GAP_SKIP; gap++) {
            for (int overlap = DST_OVERLAP_FIRST; overlap <= DST_OVERLAP_BOTH; overlap++) {
                size_t text = fixture_random() % (sizeof texts / sizeof texts[0]);
                keys += check_keys(texts[text], zones[i], (enum dst_gap_policy)gap,
                                   (enum dst_overlap_policy)overlap);
            }
        }
    }
    print_message("%ld keys\n", keys);
    assert_true(keys > 1000000);
}

static void test_a_year_of_seconds_is_counted_by_days(void **state)
{
    (void)state;
    /* 31 536 000 firings, of which the two changes of the clock take one hour and give it back. */
    struct cron c = fixture_cron_parse("* * * * * *");
    const struct zone *z = fixture_zone("America/New_York");
    int64_t counted = cron_count(&c, z, fixture_instant("2026-01-01T00:00:00Z"),
                                 fixture_instant("2027-01-01T00:00:00Z"));
    assert_int_equal(counted, 365 * SECONDS_A_DAY - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_gap_of_three_hours_is_caught_up_and_a_longer_one_is_not),
        cmocka_unit_test(test_the_steps_of_one_search_are_few_and_bounded),
        cmocka_unit_test(test_no_key_comes_twice_in_a_hundred_years),
        cmocka_unit_test(test_a_year_of_seconds_is_counted_by_days),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
