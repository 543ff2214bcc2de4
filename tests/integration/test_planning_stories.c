/* Random stories on a real PostgreSQL: edits of all kinds in an outage, leaders that die in the
 * middle of catching up, and then the proof. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_edits.h"
#include "fixture_verify.h"

#define STORIES   20
#define DELAYED   6
#define EDITS_MAX 8
#define SPAN_MIN  360 /* minutes ago that a story begins at most */

static uint64_t random_state;

static int random_in(int low, int high)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return low + (int)((random_state >> 33) % (uint64_t)(high - low + 1));
}

static const char *random_rule(void)
{
    static const char *const rules[] = {
        "kind = 'cron', rule = '* * * * *'",
        "kind = 'cron', rule = '*/5 * * * *'",
        "kind = 'cron', rule = '*/7 * * * *'",
        "kind = 'cron', rule = '30 * * * *'",
        "kind = 'interval', rule = '11 minutes', anchor = '2026-01-01T00:00:00Z'",
    };
    return rules[random_in(0, sizeof rules / sizeof rules[0] - 1)];
}

static const char *random_policy(void)
{
    static const char *const policies[] = {
        "misfire = 'run_all', misfire_max = 1000",
        "misfire = 'run_all', misfire_max = 9",
        "misfire = 'run_all', misfire_age = '2 hours'",
        "misfire = 'run_latest'",
        "misfire = 'skip'",
        "misfire = 'coalesce'",
    };
    return policies[random_in(0, sizeof policies / sizeof policies[0] - 1)];
}

/* An edit that changes something in any case: otherwise there would be no version to move. */
static void story_edit(const char *set, const char *ago)
{
    static int number;
    char changed[300];
    (void)snprintf(changed, sizeof changed, "%s, description = 'edit %d'", set, ++number);
    fixture_edit("story", changed, ago);
}

/* One more edit; after a deletion the only one there is is to insert it again. */
static void random_edit(int minutes_ago)
{
    char ago[32];
    char set[200];
    (void)snprintf(ago, sizeof ago, "%d minutes %d seconds", minutes_ago, random_in(0, 59));
    if (fixture_count("SELECT count(*) FROM reports.schedule") == 0) {
        fixture_insert("story", "*/3 * * * *", ago);
        return;
    }
    switch (random_in(0, 7)) {
    case 0:
        fixture_delete("story", ago);
        return;
    case 1:
    case 2:
        story_edit("paused = NOT paused", ago);
        return;
    case 3:
        story_edit(random_policy(), ago);
        return;
    case 4:
        (void)snprintf(set, sizeof set, "paused = NOT paused, %s", random_rule());
        story_edit(set, ago);
        return;
    default:
        story_edit(random_rule(), ago);
        return;
    }
}

/* A leader whose lease ends in the middle of what it does. */
static void lead_for_a_moment(void)
{
    struct leader l = leader_make();
    struct error err = {.text = ""};
    struct planning_options options = {.scope = "main",
                                       .lease = &l.lease,
                                       .tz_poll_ms = 60000,
                                       .statement_ms = 5000,
                                       .batch_schedules = 1000,
                                       .look_ms = PLANNING_LOOK_MS};
    l.planning = planning_new(&options);
    assert_non_null(l.planning);
    fixture_lease(&l.lease, random_in(1, 25));
    enum status s = planning_prepare(l.planning, &l.authority, l.store, &err);
    struct planning_result r = {.more = true};
    while (s == STATUS_OK && r.more) {
        s = planning_step(l.planning, &l.authority, l.store, true, &r, &err);
    }
    assert_true(s == STATUS_OK || s == STATUS_AGAIN);
    leader_leave(&l);
}

static void test_no_story_of_edits_and_dying_leaders_loses_or_doubles_a_firing(void **state)
{
    (void)state;
    const char *seed = getenv("RS_TEST_SEED");
    random_state = seed != NULL ? strtoull(seed, NULL, 10) : 20261130;
    print_message("RS_TEST_SEED=%llu\n", (unsigned long long)random_state);
    for (int story = 0; story < STORIES; story++) {
        fixture_plan_clear();
        int minutes = random_in(60, SPAN_MIN);
        int edits = random_in(1, EDITS_MAX);
        char ago[32];
        (void)snprintf(ago, sizeof ago, "%d minutes", minutes);
        fixture_schedule("story", "cron", "*/2 * * * *", ago, random_policy());
        for (int i = 0; i < edits; i++) {
            minutes = random_in(minutes * 2 / 3, minutes - 1);
            random_edit(minutes);
        }
        for (int i = random_in(0, 3); i > 0; i--) {
            lead_for_a_moment();
        }
        struct leader l = leader_make();
        leader_prepare(&l);
        check_nothing_lost(&l, "story", 0);
        assert_string_equal(fixture_verify(2), "");
        assert_string_equal(fixture_problem("story"), "");
        leader_leave(&l);
    }
}

static const char *random_delay(void)
{
    static const char *const delays[] = {"jitter_s = 0", "jitter_s = 90", "jitter_s = 900",
                                         "jitter_s = 3600"};
    return delays[random_in(0, sizeof delays / sizeof delays[0] - 1)];
}

/* From the first firing to the last each one is there once, run or in a gap. */
static void check_unbroken(int step_min)
{
    int64_t firings = fixture_count("SELECT (SELECT count(*) FROM reports.occurrence) + "
                                    "(SELECT coalesce(sum(firings), 0) FROM reports.schedule_gap)");
    int64_t steps = fixture_count(
        "SELECT extract(epoch FROM max(k.at) - min(k.at))::bigint / 60 / %d + 1 FROM (SELECT "
        "occurrence_key::timestamp FROM reports.occurrence UNION ALL SELECT from_key::timestamp "
        "FROM reports.schedule_gap UNION ALL SELECT to_key::timestamp FROM reports.schedule_gap) "
        "AS k (at)",
        step_min);
    assert_int_equal(firings, steps);
}

static void test_no_story_of_delays_loses_or_doubles_a_firing(void **state)
{
    (void)state;
    for (int story = 0; story < DELAYED; story++) {
        fixture_plan_clear();
        int minutes = random_in(120, SPAN_MIN);
        char ago[32];
        (void)snprintf(ago, sizeof ago, "%d minutes", minutes);
        fixture_schedule("story", "cron", "*/2 * * * *", ago, random_policy());
        for (int i = random_in(2, EDITS_MAX); i > 0; i--) {
            minutes = random_in(minutes * 2 / 3, minutes - 1);
            (void)snprintf(ago, sizeof ago, "%d minutes %d seconds", minutes, random_in(0, 59));
            story_edit(random_in(0, 3) > 0 ? random_delay() : random_policy(), ago);
        }
        for (int i = random_in(0, 2); i > 0; i--) {
            lead_for_a_moment();
        }
        struct leader l = leader_make();
        leader_prepare(&l);
        (void)leader_settle(&l);
        assert_string_equal(fixture_problem("story"), "");
        check_unbroken(2);
        leader_leave(&l);
        assert_string_equal(fixture_verify(2), "");
    }
}

/* An outage of an hour with one edit 40 minutes ago, and many within a moment a minute ago. */
static void outage_with_edits(int many)
{
    fixture_insert("often", "* * * * *", "60 minutes");
    fixture_edit("often", "misfire = 'run_all', misfire_max = 3, misfire_grace = '1 second'",
                 "59 minutes");
    fixture_edit("often", "priority = 1", "40 minutes");
    (void)fixture_sql("DO $$ BEGIN FOR i IN 1 .. %d LOOP UPDATE reports.schedule SET description = "
                      "i::text WHERE name = 'often'; END LOOP; END $$",
                      many);
    (void)fixture_sql("UPDATE reports.schedule_version SET effective_from = clock_timestamp() - "
                      "interval '1 minute' + version * interval '1 us' WHERE version > 3");
}

static void check_missed_at_most(int many, int64_t least)
{
    outage_with_edits(many);
    struct leader l = leader_make();
    leader_prepare(&l);
    assert_true(leader_step_until(&l, "SELECT count(*) FROM reports.schedule_change", "0", 60000));
    (void)leader_settle(&l);
    int64_t missed =
        fixture_count("SELECT count(*) FROM reports.occurrence WHERE cause = 'misfire'");
    assert_true(missed >= least && missed <= 3);
    check_nothing_lost(&l, "often", 58);
    leader_leave(&l);
}

static void test_twenty_five_quick_edits_in_an_outage_run_no_more_than_misfire_max(void **state)
{
    (void)state;
    check_missed_at_most(25, 3);
}

static void test_more_edits_than_are_looked_at_run_fewer_and_the_gap_says_so(void **state)
{
    (void)state;
    check_missed_at_most(1100, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_story_of_edits_and_dying_leaders_loses_or_doubles_a_firing),
        cmocka_unit_test(test_no_story_of_delays_loses_or_doubles_a_firing),
        cmocka_unit_test(test_twenty_five_quick_edits_in_an_outage_run_no_more_than_misfire_max),
        cmocka_unit_test(test_more_edits_than_are_looked_at_run_fewer_and_the_gap_says_so),
    };
    return fixture_plan_run("test_planning_stories", tests, sizeof tests / sizeof tests[0], NULL);
}
