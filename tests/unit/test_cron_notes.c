/* Notes on cron expressions: each is made when it is true, and is not when it is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "clock_notes.h"
#include "fixture_cron.h"
#include "fixture_zone.h"
#include "rule_notes.h"

static struct notes notes_make(const struct cron *c, const struct zone *z, utc_us from)
{
    const struct rule r = {.kind = RULE_CRON, .zone = z, .cron = *c};
    const struct rule_around alone = {.bounds = {UTC_NONE, UTC_NONE}};
    struct notes n;
    rule_notes_make(&r, &alone, from, &n);
    return n;
}

static struct notes notes_of(const char *text, const char *zone, const char *from)
{
    struct cron c = {.seconds = 0};
    struct error err = {.text = ""};
    if (cron_parse(text, &c, &err) != STATUS_OK) {
        fail_msg("\"%s\": %s", text, err.text);
    }
    return notes_make(&c, fixture_zone(zone), fixture_instant(from));
}

static bool says(const struct notes *n, const char *words)
{
    for (int i = 0; i < n->count; i++) {
        if (strstr(n->text[i], words) != NULL) {
            return true;
        }
    }
    return false;
}

static void check(const char *text, const char *zone, const char *words, bool wanted)
{
    struct notes n = notes_of(text, zone, "2026-01-01T00:00:00Z");
    if (says(&n, words) != wanted) {
        for (int i = 0; i < n.count; i++) {
            print_error("  %s\n", n.text[i]);
        }
        fail_msg("\"%s\" in %s %s \"%s\"", text, zone, wanted ? "does not say" : "says", words);
    }
}

static void test_a_change_of_the_clock_is_told_with_its_date_and_what_becomes_of_it(void **state)
{
    (void)state;
    static const char berlin[] = "Europe/Berlin";
    check("30 2 * * *", berlin,
          "on 2026-03-29 the clock of Europe/Berlin skips 02:30: it runs once, at 03:00 (dst_gap "
          "after)",
          true);
    check("30 2 * * *", berlin,
          "on 2026-10-25 the clock of Europe/Berlin shows 02:30 twice: it runs the first time only",
          true);
    check("0,30 2 * * *", berlin, "skips 02:00 and others: it runs once, at 03:00", true);
    check("*/15 2 * * *", berlin, "skips 02:00 and others: it does not run (dst_gap skip)", true);
    check("*/15 2 * * *", berlin, "it runs the first and the second time", true);
    check("30 3 * * *", berlin, "the clock of", false);
    check("30 2 * * *", "Asia/Tokyo", "the clock of", false);
    check("*/15 * * * *", berlin, "the clock of", false);
    /* A fixed time in all hours is silent in one of them. */
    check("30 0-23 * * *", berlin, "shows 02:30 twice: it runs the first time only", true);
    check("0 0 * * *", "Africa/Cairo", "skips 00:00: it runs once, at 01:00", true);
    /* The first that matters, not the first there is. */
    check("30 2 * * 1", berlin, "the clock of", false);
    struct notes n = notes_of("0 12 * * *", "Pacific/Apia", "2011-01-01T00:00:00Z");
    assert_true(says(&n, "on 2011-12-30 the clock of Pacific/Apia skips more than three hours"));
}

static void test_chosen_policies_are_in_the_note(void **state)
{
    (void)state;
    struct cron c = {.seconds = 0};
    assert_int_equal(cron_parse("30 2 * * *", &c, NULL), STATUS_OK);
    cron_set_policies(&c, DST_GAP_SHIFT, DST_OVERLAP_SECOND);
    struct notes n =
        notes_make(&c, fixture_zone("Europe/Berlin"), fixture_instant("2026-01-01T00:00:00Z"));
    assert_true(says(&n, "skips 02:30: it runs at 03:30 (dst_gap shift)"));
    assert_true(says(&n, "it runs the second time only (dst_overlap second)"));
}

static void test_what_is_easily_taken_for_something_else_is_told(void **state)
{
    (void)state;
    check("0 0 13 * 5", "UTC", "match either; with +", true);
    check("0 0 13 * +5", "UTC", "match either", false);
    check("0 0 1-31 * 5", "UTC", "match either, which is every day", true);
    check("0 0 31 * *", "UTC", "a day 31: those are left out", true);
    check("0 0 30 * *", "UTC", "a day 30: those are left out", true);
    check("0 0 31 1,3 *", "UTC", "left out", false);
    check("0 0 28 * *", "UTC", "left out", false);
    check("0 0 1-31 * *", "UTC", "left out", false);
    check("0 0 29 2 *", "UTC", "leap years only", true);
    check("0 0 31W * *", "UTC", "a day 31", true);
    check("0 0 LW * *", "UTC", "holidays", true);
    check("0 0 15W * *", "UTC", "holidays", true);
    check("0 0 L * *", "UTC", "holidays", false);
    check("0 0 * * 5#5", "UTC", "5th", true);
    check("0 0 * * 5#4", "UTC", "5th", false);
    check("*/25 * * * *", "UTC", "after minute 50 comes minute 0, 10 minutes later", true);
    check("*/15 * * * *", "UTC", "steps begin again", false);
    check("*/25 6 * * *", "UTC", "steps begin again", false);
    check("0 */5 * * *", "UTC", "after hour 20 comes hour 0, 4 hours later", true);
    check("0 */6 * * *", "UTC", "steps begin again", false);
    check("*/7 * * * * *", "UTC", "after second 56 comes second 0, 4 seconds later", true);
    check("0 0 */2 * *", "UTC", "it is not every 2 days", true);
    check("0 0 1 */5 *", "UTC", "each year", true);
    check("0 0 1 */3 *", "UTC", "each year", false);
    check("0 0 * * */2", "UTC", "each week", true);
    check("0 0 * * 1,3,5", "UTC", "each week", false);
    check("*/15 * * * *", "UTC", "it fires 96 times", true);
    check("0 0 * * *", "UTC", "it fires", false);
    check("0 0 0 1 1 * 2020", "UTC",
          "nothing fires after 2026-01-01T00:00:00+00:00: its rule names no "
          "further time: the last was 2020-01-01T00:00:00+00:00",
          true);
    check("0 0 0 1 1 * 2020,2030", "UTC",
          "it ends: its last firing is that of 2030-01-01T00:00:00+00:00", true);
    check("0 0 0 1 1 * *", "UTC", "it ends", false);
}

static void test_a_plain_rule_has_no_note(void **state)
{
    (void)state;
    struct notes n = notes_of("30 6 * * 1-5", "Europe/Berlin", "2026-01-01T00:00:00Z");
    assert_int_equal(n.count, 0);
}

/* A note of a change is made exactly when some firing there is not as its nominal time reads. */
static void test_notes_of_changes_agree_with_the_firings_of_two_years(void **state)
{
    (void)state;
    static const char *const zones[] = {"Europe/Berlin", "America/New_York", "Australia/Lord_Howe",
                                        "Africa/Cairo", "Asia/Tokyo"};
    int told = 0;
    for (int i = 0; i < 300; i++) {
        char text[CRON_TEXT_MAX];
        const char *zone = zones[fixture_random_in(0, 4)];
        const struct zone *z = fixture_zone(zone);
        (void)snprintf(text, sizeof text, "%d %d * * %s", fixture_random_in(0, 59),
                       fixture_random_in(0, 4), fixture_random_in(0, 1) == 0 ? "*" : "0");
        struct cron c;
        assert_int_equal(cron_parse(text, &c, NULL), STATUS_OK);
        utc_us from = fixture_instant("2026-01-01T00:00:00Z");
        struct notes n = notes_make(&c, z, from);
        bool gap = false;
        bool overlap = false;
        int64_t end = utc_seconds(from) + CLOCK_NOTES_AHEAD_S;
        for (struct firing f = cron_next(&c, z, from); utc_seconds(f.at) < end;
             f = cron_next(&c, z, f.at)) {
            gap = gap || f.nominal.s != utc_seconds(f.at) + f.offset_s;
            overlap = overlap || zone_resolve(z, f.nominal).kind == LOCAL_OVERLAP;
        }
        if (says(&n, "dst_gap") != gap || says(&n, "dst_overlap") != overlap) {
            fail_msg("\"%s\" in %s: gap %d, overlap %d", text, zone, gap, overlap);
        }
        told += gap || overlap ? 1 : 0;
    }
    assert_true(told > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_change_of_the_clock_is_told_with_its_date_and_what_becomes_of_it),
        cmocka_unit_test(test_chosen_policies_are_in_the_note),
        cmocka_unit_test(test_what_is_easily_taken_for_something_else_is_told),
        cmocka_unit_test(test_a_plain_rule_has_no_note),
        cmocka_unit_test(test_notes_of_changes_agree_with_the_firings_of_two_years),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
