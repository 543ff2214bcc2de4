/* Stored firings under other time zone data: the nominal time stays, the instant moves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "firing_move.h"
#include "fixture_zone.h"

static const struct rule_bounds OPEN = {.starts_at = {INT64_MIN}, .ends_at = {INT64_MIN}};

/* "2030-03-31T02:30:00" as a clock reads it. */
static struct local_time local(const char *text)
{
    struct date_time t;
    struct error err = {.text = ""};
    if (date_time_parse(text, &t, &err) != STATUS_OK) {
        fail_msg("%s", err.text);
    }
    return t.local;
}

/* A firing that data computed which had the zone at `offset_s`. */
static struct firing stored_by(const char *nominal, int32_t offset_s)
{
    struct local_time t = local(nominal);
    return (struct firing){
        .found = true, .at = utc_from_seconds(t.s - offset_s), .nominal = t, .offset_s = offset_s};
}

struct case_row {
    const char *rule, *nominal;
    int32_t offset_s;              /* stored */
    const char *at, *want_nominal; /* Europe/Berlin; want_nominal NULL: the same */
};

static void check(const struct case_row *c)
{
    struct rule r = fixture_rule("cron", c->rule, "Europe/Berlin", "2000-01-01T00:00:00Z");
    struct firing stored = stored_by(c->nominal, c->offset_s);
    struct firing f = firing_move(&r, OPEN, &stored);
    struct local_time want = local(c->want_nominal != NULL ? c->want_nominal : c->nominal);
    char at[RFC3339_TEXT_MAX];
    rfc3339_format_utc(f.at, at);
    if (!f.found || f.at.us != fixture_instant(c->at).us || f.nominal.s != want.s) {
        fail_msg("\"%s\" %s%+d: %s", c->rule, c->nominal, c->offset_s, f.found ? at : "none");
    }
}

static void test_the_instant_moves_and_the_nominal_time_stays(void **state)
{
    (void)state;
    static const struct case_row rows[] = {
        {"30 6 * * *", "2030-06-10T06:30:00", 7200, "2030-06-10T04:30:00Z", NULL},
        {"30 6 * * *", "2030-06-10T06:30:00", 3600, "2030-06-10T04:30:00Z", NULL},
        {"30 6 * * *", "2030-06-10T06:30:00", 10800, "2030-06-10T04:30:00Z", NULL},
        {"30 6 * * *", "2030-06-10T06:30:00", -39600, "2030-06-10T04:30:00Z", NULL},
        {"30 6 * * *", "2030-06-10T06:30:00", 50400, "2030-06-10T04:30:00Z", NULL},
        {"*/15 * * * *", "2030-06-10T03:15:00", 3600, "2030-06-10T01:15:00Z", NULL},
        {"*/15 * * * *", "2030-06-10T03:15:00", 10800, "2030-06-10T01:15:00Z", NULL},
        {"*/5 * * * * *", "2030-06-10T03:15:05", 10800, "2030-06-10T01:15:05Z", NULL},
        {"0 0 1 * *", "2030-07-01T00:00:00", 3600, "2030-06-30T22:00:00Z", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check(&rows[i]);
    }
}

/* Berlin's clock jumps from 02:00 to 03:00 on 2030-03-31 (01:00 UTC), and back on 2030-10-27. */
static void test_a_nominal_time_put_into_a_gap_or_an_overlap_follows_the_policy(void **state)
{
    (void)state;
    static const struct case_row rows[] = {
        {"30 2 * * *", "2030-03-31T02:30:00", 3600, "2030-03-31T01:00:00Z", NULL},
        {"30 2 * * *", "2030-03-31T02:30:00", 7200, "2030-03-31T01:00:00Z", NULL},
        /* One that follows the clock has nothing in a gap. */
        {"*/15 * * * *", "2030-03-31T02:30:00", 3600, "2030-03-31T01:00:00Z",
         "2030-03-31T03:00:00"},
        {"30 2 * * *", "2030-10-27T02:30:00", 3600, "2030-10-27T00:30:00Z", NULL},
        {"30 2 * * *", "2030-10-27T02:30:00", 7200, "2030-10-27T00:30:00Z", NULL},
        /* Both passes of one that follows the clock: it stays in its own. */
        {"*/15 * * * *", "2030-10-27T02:30:00", 7200, "2030-10-27T00:30:00Z", NULL},
        {"*/15 * * * *", "2030-10-27T02:30:00", 3600, "2030-10-27T01:30:00Z", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check(&rows[i]);
    }
}

static void test_one_that_an_old_gap_delayed_goes_back_to_its_time(void **state)
{
    (void)state;
    struct rule r = fixture_rule("cron", "30 2 * * *", "UTC", "2000-01-01T00:00:00Z");
    /* Older data had a gap here: nominal 02:30, at the first instant behind it. */
    struct firing stored = stored_by("2030-03-31T02:30:00", 3600);
    stored.at = fixture_instant("2030-03-31T01:00:00Z");
    stored.offset_s = 7200;
    struct firing f = firing_move(&r, OPEN, &stored);
    assert_true(f.at.us == fixture_instant("2030-03-31T02:30:00Z").us);
    assert_true(f.nominal.s == stored.nominal.s);
}

static void test_elapsed_time_and_written_instants_do_not_move(void **state)
{
    (void)state;
    struct rule r = fixture_rule("interval", "90 minutes", "Europe/Berlin", "2030-01-01T00:00:00Z");
    struct firing stored = rule_next(&r, fixture_instant("2030-06-10T00:00:00Z"));
    struct firing was = stored;
    stored.nominal.s += 3600;
    stored.offset_s += 3600;
    struct firing f = firing_move(&r, OPEN, &stored);
    assert_true(f.at.us == was.at.us && f.nominal.s == was.nominal.s);
    r = fixture_rule("once", "2030-06-10T06:30:00+02:00", "Europe/Berlin", "2000-01-01T00:00:00Z");
    stored = stored_by("2030-06-10T05:30:00", 3600);
    f = firing_move(&r, OPEN, &stored);
    assert_true(f.at.us == stored.at.us);
    assert_true(f.nominal.s == local("2030-06-10T06:30:00").s);
    r = fixture_rule("once", "2030-06-10T06:30:00", "Europe/Berlin", "2000-01-01T00:00:00Z");
    stored = stored_by("2030-06-10T06:30:00", 3600);
    f = firing_move(&r, OPEN, &stored);
    assert_true(f.at.us == fixture_instant("2030-06-10T04:30:00Z").us);
}

static void test_what_the_end_cuts_off_has_no_firing_left(void **state)
{
    (void)state;
    struct rule r = fixture_rule("cron", "30 6 * * *", "Europe/Berlin", "2000-01-01T00:00:00Z");
    struct rule_bounds ends = {.starts_at = {INT64_MIN},
                               .ends_at = fixture_instant("2030-06-10T04:30:00Z")};
    struct firing stored = stored_by("2030-06-10T06:30:00", 10800);
    assert_false(firing_move(&r, ends, &stored).found);
    ends.ends_at.us++;
    assert_true(firing_move(&r, ends, &stored).found);
}

/* Whatever the zones were: the nominal time is the same wherever the new zone has it once, and data
 * that are the same move nothing. */
static void test_random_firings_keep_their_nominal_times_from_zone_to_zone(void **state)
{
    (void)state;
    static const char *const texts[] = {"30 6 * * *", "*/15 * * * *", "0 2,3 * * 1-5",
                                        "5 0 1 * *",  "0 */2 * * *",  "59 23 L * *"};
    struct zone_set *zones = fixture_zones();
    for (int i = 0; i < 3000; i++) {
        const char *text = texts[i % 6];
        const char *from = zone_set_name(zones, fixture_random() % zone_set_count(zones));
        const char *to = zone_set_name(zones, fixture_random() % zone_set_count(zones));
        struct rule a = fixture_rule("cron", text, from, "2000-01-01T00:00:00Z");
        struct rule b = fixture_rule("cron", text, to, "2000-01-01T00:00:00Z");
        struct firing was =
            rule_next(&a, utc_from_seconds((int64_t)(fixture_random() % 4000000000U)));
        struct firing same = firing_move(&a, OPEN, &was);
        struct firing f = firing_move(&b, OPEN, &was);
        struct zone_span span = zone_resolve(b.zone, was.nominal);
        if (same.at.us != was.at.us || same.nominal.s != was.nominal.s ||
            (span.kind != LOCAL_GAP &&
             (f.nominal.s != was.nominal.s || zone_resolve(b.zone, f.nominal).kind != span.kind)) ||
            f.nominal.s < was.nominal.s) {
            fail_msg("\"%s\" from %s at %lld to %s", text, from, (long long)was.at.us, to);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_instant_moves_and_the_nominal_time_stays),
        cmocka_unit_test(test_a_nominal_time_put_into_a_gap_or_an_overlap_follows_the_policy),
        cmocka_unit_test(test_one_that_an_old_gap_delayed_goes_back_to_its_time),
        cmocka_unit_test(test_elapsed_time_and_written_instants_do_not_move),
        cmocka_unit_test(test_what_the_end_cuts_off_has_no_firing_left),
        cmocka_unit_test(test_random_firings_keep_their_nominal_times_from_zone_to_zone),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
