/* A next firing that newer time zone data computed is planned as it stands, and what those data
 * have called for is not called for again by older ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_subject.h"
#include "fixture_zone.h"
#include "planner.h"

static struct planned_firing firings[50];
static struct planned_gap gaps[10];

static struct plan_result plan(const struct plan_subject *s, const char *now, size_t *ret_firings)
{
    static struct plan_window window;
    struct plan_sink sink = {.firings = firings, .firing_max = 50, .gaps = gaps, .gap_max = 10};
    struct plan_result r;
    struct error err = {.text = ""};
    if (plan_schedule(s, fixture_instant(now), 0, &window, &sink, &r, &err) != STATUS_OK) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(sink.gap_count, 0);
    *ret_firings = sink.firing_count;
    return r;
}

/* Our data have the zone at -8, the newer ones at -7. */
static struct firing stored_by_newer(const char *at, const char *nominal_as_utc)
{
    return (struct firing){.found = true,
                           .at = fixture_instant(at),
                           .nominal = {utc_seconds(fixture_instant(nominal_as_utc))},
                           .offset_s = -7 * 3600};
}

static void test_a_stored_firing_is_planned_when_and_as_it_stands(void **state)
{
    (void)state;
    size_t count = 0;
    struct rule r = fixture_rule("cron", "30 6 * * *", "Etc/GMT+8", "2000-01-01T00:00:00Z");
    struct plan_subject s = fixture_subject(&r, "2030-04-11T14:30:00Z");
    s.stored = stored_by_newer("2030-04-12T13:30:00Z", "2030-04-12T06:30:00Z");
    struct plan_result got = plan(&s, "2030-04-12T13:30:05Z", &count);
    assert_int_equal(count, 1);
    assert_string_equal(firings[0].key, "2030-04-12");
    assert_true(firings[0].firing.at.us == fixture_instant("2030-04-12T13:30:00Z").us);
    assert_int_equal(firings[0].firing.offset_s, -7 * 3600);
    /* By our data the same date is still to come, an hour later; it has had its firing. */
    assert_true(got.next.at.us == fixture_instant("2030-04-13T14:30:00Z").us);
    s.stored.found = false;
    got = plan(&s, "2030-04-12T13:30:05Z", &count);
    assert_int_equal(count, 0);
}

static void test_times_of_day_that_newer_data_have_passed_do_not_come_again(void **state)
{
    (void)state;
    size_t count = 0;
    struct rule r = fixture_rule("cron", "*/15 * * * *", "Etc/GMT+8", "2000-01-01T00:00:00Z");
    struct plan_subject s = fixture_subject(&r, "2030-04-12T09:45:00Z");
    s.form = KEY_MINUTE;
    s.misfire = MISFIRE_RUN_ALL;
    s.stored = stored_by_newer("2030-04-12T10:00:00Z", "2030-04-12T03:00:00Z");
    struct plan_result got = plan(&s, "2030-04-12T10:50:00Z", &count);
    assert_int_equal(count, 1); /* 02:15 to 03:00 by our clock */
    assert_string_equal(firings[0].key, "2030-04-12T03:00");
    assert_true(got.next.at.us == fixture_instant("2030-04-12T11:15:00Z").us);
    got = plan(&s, "2030-04-12T11:30:00Z", &count);
    assert_int_equal(count, 3);
    assert_string_equal(firings[1].key, "2030-04-12T03:15");
    assert_string_equal(firings[2].key, "2030-04-12T03:30");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stored_firing_is_planned_when_and_as_it_stands),
        cmocka_unit_test(test_times_of_day_that_newer_data_have_passed_do_not_come_again),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
