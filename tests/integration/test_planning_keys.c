/* Edits that move firings of a day, on a real PostgreSQL: no date is lost and no key comes twice.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_edits.h"

/* A zone in which it is neither early nor late now, so that two hours either way are today. */
static char zone[32];

/* "0 H * * *": so many hours from now in that zone. */
static const char *rule_at(int hours)
{
    static char rule[4][32];
    static unsigned next;
    char *text = rule[next++ % 4];
    (void)snprintf(text, sizeof rule[0], "%s",
                   fixture_sql("SELECT format('0 %%s * * *', extract(hour FROM now() AT TIME ZONE "
                               "'%s') + %d)",
                               zone, hours));
    return text;
}

static void edit_rule(const char *rule, const char *ago)
{
    char set[64];
    (void)snprintf(set, sizeof set, "rule = '%s'", rule);
    fixture_edit("daily", set, ago);
}

/* A daily schedule so many hours from now, written three days ago. */
static void write_daily(int hours, const char *more)
{
    char set[200];
    /* The text always changes something, the zone only where it is not the one of the fixture. */
    (void)snprintf(set, sizeof set, "description = 'daily', time_zone = '%s'%s%s", zone,
                   more != NULL ? ", " : "", more != NULL ? more : "");
    fixture_schedule("daily", "cron", rule_at(hours), "3 days", set);
}

/* Occurrences of today: "cause scheduled-hours-from-now version". */
static const char *today(void)
{
    return fixture_sql(
        "SELECT coalesce(string_agg(format('%%s %%s', cause, round(extract(epoch FROM "
        "scheduled_for - date_trunc('hour', now())) / 3600)), ', ' ORDER BY scheduled_for), 'none')"
        " FROM reports.occurrence WHERE occurrence_key = to_char(now() AT TIME ZONE '%s', "
        "'YYYY-MM-DD')",
        zone);
}

/* Hours from the present one to the next firing. */
static int64_t hours_to_next(void)
{
    return fixture_count("SELECT extract(epoch FROM next_fire_at - date_trunc('hour', now()))::int "
                         "/ 3600 FROM reports.schedule_progress");
}

static void test_a_date_moved_into_the_past_of_today_is_planned_at_once_and_once(void **state)
{
    (void)state;
    write_daily(2, NULL);
    struct leader l = leader_make();
    leader_prepare(&l);
    assert_int_equal(leader_settle(&l), 3);
    assert_string_equal(today(), "none");
    edit_rule(rule_at(-2), "0 seconds");
    assert_int_equal(leader_settle(&l), 1);
    assert_string_equal(today(), "edit -2");
    assert_int_equal(hours_to_next(), 22);
    /* And back: today is done, so it is tomorrow's turn, and no gap tells of a loss. */
    edit_rule(rule_at(2), "0 seconds");
    assert_int_equal(leader_settle(&l), 0);
    assert_string_equal(today(), "edit -2");
    assert_int_equal(hours_to_next(), 26);
    assert_string_equal(fixture_gaps("daily"), "");
    assert_string_equal(fixture_problem("daily"), "");
    leader_leave(&l);
}

static void test_the_same_while_nobody_leads(void **state)
{
    (void)state;
    write_daily(2, NULL);
    edit_rule(rule_at(-2), "30 minutes");
    edit_rule(rule_at(1), "20 minutes");
    edit_rule(rule_at(-1), "10 minutes");
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)leader_settle(&l);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.occurrence"), 4);
    assert_int_equal(fixture_count("SELECT count(DISTINCT occurrence_key) FROM reports.occurrence"),
                     4);
    assert_int_equal(hours_to_next(), 23);
    assert_string_equal(fixture_gaps("daily"), "");
    leader_leave(&l);
}

static void test_a_date_moved_into_the_past_in_a_pause_is_in_its_gap(void **state)
{
    (void)state;
    char set[80];
    write_daily(2, NULL);
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)leader_settle(&l);
    (void)snprintf(set, sizeof set, "paused = true, rule = '%s'", rule_at(-2));
    fixture_edit("daily", set, "5 seconds");
    (void)leader_settle(&l);
    fixture_edit("daily", "paused = false", "0 seconds");
    (void)leader_settle(&l);
    assert_string_equal(today(), "none");
    assert_string_equal(
        fixture_sql("SELECT reason || ' ' || firings || ' ' || (from_key = to_char(now() AT TIME "
                    "ZONE '%s', 'YYYY-MM-DD')) FROM reports.schedule_gap",
                    zone),
        "paused 1 true");
    leader_leave(&l);
}

static void test_a_rule_moved_to_later_today_begins_tomorrow_if_today_has_run(void **state)
{
    (void)state;
    write_daily(-2, NULL);
    struct leader l = leader_make();
    leader_prepare(&l);
    assert_int_equal(leader_settle(&l), 3);
    edit_rule(rule_at(2), "0 seconds");
    assert_int_equal(leader_settle(&l), 0);
    assert_int_equal(hours_to_next(), 26);
    assert_string_equal(fixture_gaps("daily"), "");
    assert_string_equal(fixture_problem("daily"), "");
    leader_leave(&l);
}

static void test_a_rule_moved_to_later_today_runs_today_if_today_was_skipped(void **state)
{
    (void)state;
    write_daily(-2, "misfire = 'skip'");
    struct leader l = leader_make();
    leader_prepare(&l);
    assert_int_equal(leader_settle(&l), 0);
    edit_rule(rule_at(2), "0 seconds");
    assert_int_equal(leader_settle(&l), 0);
    assert_int_equal(hours_to_next(), 2);
    leader_leave(&l);
}

static void
test_a_zone_change_westward_of_a_dated_schedule_goes_on_with_the_first_free_date(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "5 days",
                     "time_zone = 'Pacific/Kiritimati'"); /* 14 hours ahead of UTC */
    struct leader l = leader_make();
    leader_prepare(&l);
    int64_t made = leader_settle(&l);
    fixture_edit("daily", "time_zone = 'Pacific/Pago_Pago'", "0 seconds"); /* 11 behind */
    (void)leader_settle(&l);
    assert_string_equal(fixture_problem("daily"), "");
    assert_string_equal(fixture_gaps("daily"), "");
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.occurrence"), made);
    assert_string_equal(fixture_sql("SELECT next_nominal::date - (SELECT max(business_date) FROM "
                                    "reports.occurrence) FROM reports.schedule_progress"),
                        "1");
    leader_leave(&l);
}

/* The error of an edit that must be refused. */
static const char *refusal(const char *sql)
{
    static char text[1000];
    PGresult *r = PQexec(fixture_plan_super(), sql);
    assert_int_equal(PQresultStatus(r), PGRES_FATAL_ERROR);
    (void)snprintf(text, sizeof text, "%s %s", PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY),
                   PQresultErrorField(r, PG_DIAG_MESSAGE_HINT));
    PQclear(r);
    return text;
}

static void test_a_zone_change_westward_of_finer_keys_is_refused_or_is_a_problem(void **state)
{
    (void)state;
    fixture_schedule("hourly", "cron", "0 * * * *", "6 hours",
                     "time_zone = 'Asia/Tokyo', misfire = 'run_all'");
    struct leader l = leader_make();
    leader_prepare(&l);
    assert_true(leader_settle(&l) >= 5);
    /* The same rule: certain, so SQL says it. */
    const char *text =
        refusal("UPDATE reports.schedule SET time_zone = 'UTC' WHERE name = 'hourly'");
    assert_non_null(strstr(text, "schedule \"hourly\": in UTC it is"));
    assert_non_null(strstr(text, "Insert a new schedule"));
    /* Another rule that meets the old keys: the leader says it, and no key_taken piles up. */
    fixture_edit("hourly", "time_zone = 'UTC', rule = '0,15 * * * *'", "0 seconds");
    (void)leader_settle(&l);
    assert_non_null(strstr(fixture_problem("hourly"), "would fire again under keys that exist"));
    assert_non_null(strstr(fixture_problem("hourly"), "make a new schedule"));
    assert_string_equal(fixture_gaps("hourly"), "");
    /* One that does not meet them is welcome. */
    fixture_edit("hourly", "rule = '30 * * * *'", "0 seconds");
    (void)leader_settle(&l);
    assert_string_equal(fixture_problem("hourly"), "");
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.schedule_progress WHERE "
                                   "next_fire_at > now()"),
                     1);
    leader_leave(&l);
}

static void test_once_cannot_be_moved_onto_its_own_used_date(void **state)
{
    (void)state;
    char sql[300];
    char later[64];
    (void)snprintf(later, sizeof later, "%s",
                   fixture_sql("SELECT to_char(now() AT TIME ZONE '%s' + interval '2 hours', "
                               "'YYYY-MM-DD\"T\"HH24:MI')",
                               zone));
    (void)fixture_sql("INSERT INTO reports.schedule (name, report, kind, time_zone, rule) SELECT "
                      "'once', 'nothing', 'once', '%s', to_char(now() AT TIME ZONE '%s' - interval "
                      "'2 hours', 'YYYY-MM-DD\"T\"HH24:MI')",
                      zone, zone);
    (void)fixture_sql("UPDATE reports.schedule_version SET effective_from = now() - interval '1 "
                      "day'");
    struct leader l = leader_make();
    leader_prepare(&l);
    assert_int_equal(leader_settle(&l), 1);
    (void)snprintf(sql, sizeof sql, "UPDATE reports.schedule SET rule = '%s' WHERE name = 'once'",
                   later);
    assert_non_null(strstr(refusal(sql), "each date fires once Insert a new schedule"));
    /* By deletion and insertion it is the same schedule. */
    (void)fixture_sql("DELETE FROM reports.schedule WHERE name = 'once'");
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO reports.schedule (name, report, kind, time_zone, rule) VALUES "
                   "('once', 'nothing', 'once', '%s', '%s')",
                   zone, later);
    assert_non_null(strstr(refusal(sql), "each date fires once"));
    leader_leave(&l);
}

static void before_each(void)
{
    (void)snprintf(zone, sizeof zone, "%s",
                   fixture_sql("SELECT CASE WHEN extract(hour FROM now() AT TIME ZONE 'UTC') "
                               "BETWEEN 3 AND 20 THEN 'UTC' ELSE 'Asia/Tokyo' END"));
}

static const struct {
    const char *name, *kind, *rule, *more;
} key_rows[] = {
    {"fixed", "cron", "30 2 * * *", ""},
    {"clock", "cron", "*/60 2 * * *", ""},
    {"twice", "cron", "30 2,14 * * *", ""},
    {"twice-clock", "cron", "*/60 2,14 * * *", ""},
    {"minutes", "interval", "1 day 1 minute", ", anchor = '2020-01-01 00:00+00'"},
    {"seconds", "interval", "25 hours", ", anchor = '2020-01-01 00:00:07.5+00'"},
    {"one-in-a-range", "cron", "30 2-2 * * 0", ", dst_overlap = 'both'"},
    {"second-pass", "cron", "30 2 * * 0", ", dst_overlap = 'second', jitter_s = 600"},
    {"six", "cron", "30 15 2,14 * * 0", ", dst_overlap = 'both'"},
    {"six-daily", "cron", "30 */60 2 * * 0", ""},
    {"quartz-clock", "cron", "0 /20 2 ? * SUN", ", dialect = 'quartz'"},
    {"quartz-one", "cron", "0 30/40 2 ? * SUN", ", dialect = 'quartz', dst_overlap = 'both'"},
    {"quartz-hour", "cron", "0 30 * ? * SUN", ", dialect = 'quartz', jitter_s = 600"},
    {"rule", "rrule", "FREQ=WEEKLY;BYDAY=SU", ", start_local = '2020-01-01 02:30'"},
    {"rule-both", "rrule", "FREQ=WEEKLY;BYDAY=SU",
     ", start_local = '2020-01-01 02:30', dst_overlap = 'both', jitter_s = 600"},
    {"rule-hour", "rrule", "FREQ=WEEKLY;BYDAY=SU;BYHOUR=2,2;BYSECOND=5",
     ", start_local = '2020-01-01 06:30', dst_overlap = 'both'"},
    {"rule-hours", "rrule", "FREQ=WEEKLY;BYDAY=SU;BYHOUR=2,14",
     ", start_local = '2020-01-01 02:30', dst_overlap = 'both'"},
    {"rule-picked", "rrule", "FREQ=DAILY;BYDAY=SU;BYHOUR=2,14;BYSETPOS=1",
     ", start_local = '2020-01-01 02:30', dst_overlap = 'both'"},
};

/* Over a year; the finer ones on Sundays, which are the days on which the clock changes. */
static void write_rules_of_all_kinds(void)
{
    static const char all[] = "misfire = 'run_all', misfire_max = 1000, misfire_age = '400 days', "
                              "time_zone = 'Europe/Berlin'";
    char set[512];
    for (size_t i = 0; i < sizeof key_rows / sizeof key_rows[0]; i++) {
        (void)snprintf(set, sizeof set, "kind = '%s', rule = '%s', %s%s", key_rows[i].kind,
                       key_rows[i].rule, all, key_rows[i].more);
        fixture_schedule(key_rows[i].name, "cron", "0 0 * * *", "370 days", set);
    }
}

/* Where both passes may have run, no spelling of a time that did passes but those that are there.
 * Of one rule SQL cannot tell the time of day: there no spelling does. */
static void check_spellings_of_overlaps(void)
{
    assert_int_equal(fixture_count("SELECT count(DISTINCT o.schedule) FROM reports.occurrence o "
                                   "WHERE o.occurrence_key ~ '[+]0[12]:00$'"),
                     12);
    assert_string_equal(
        fixture_sql(
            "SELECT string_agg(format('%%s:%%s passes', o.schedule, s.key), ', ') FROM "
            "(SELECT * FROM reports.occurrence WHERE extract(isodow FROM nominal_local) = 7 OFFSET "
            "0) o JOIN reports.schedule_version v USING (schedule, version) CROSS JOIN LATERAL "
            "(SELECT replace(to_char(o.nominal_local, f.form), ' ', 'T') || a.suffix "
            "AS key FROM unnest('{YYYY-MM-DD,YYYY-MM-DD HH24:MI,YYYY-MM-DD HH24:MI:SS}'::text[]) "
            "f (form), unnest('{\"\",+02:00,+01:00,Z}'::text[]) a (suffix)) s CROSS JOIN LATERAL "
            "reports.key_fault(o.schedule, s.key) k WHERE v.kind <> 'interval' AND "
            "cardinality(reports.local_instants(o.nominal_local, v.time_zone)) = 2 AND k.fault IS "
            "NULL AND NOT EXISTS (SELECT FROM reports.occurrence x WHERE x.schedule = o.schedule "
            "AND x.occurrence_key = s.key)"),
        "");
}

/* A manual key is judged by SQL, and firings get theirs from key.c: over a year with both changes
 * of the clock they agree to the byte, or a firing could be made twice. */
static void test_sql_knows_each_key_that_the_planner_writes(void **state)
{
    (void)state;
    write_rules_of_all_kinds();
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)leader_settle(&l);
    assert_true(fixture_count("SELECT count(*) FROM reports.occurrence") > 2500);
    assert_true(fixture_count("SELECT count(*) FROM reports.occurrence "
                              "WHERE occurrence_key LIKE '%%+02:00'") >= 2);
    assert_string_equal(
        fixture_sql("SELECT string_agg(format('%%s:%%s is not %%s', o.schedule, o.occurrence_key, "
                    "k.keys), ', ') FROM reports.occurrence o JOIN reports.schedule_version v "
                    "USING (schedule, version) JOIN reports.schedule_progress p USING (schedule) "
                    "CROSS JOIN LATERAL (SELECT CASE v.kind WHEN 'interval' THEN "
                    "reports.interval_keys(v, p.key_form, o.scheduled_for) ELSE "
                    "reports.local_keys(v, p.key_form, o.nominal_local) END AS keys) k "
                    "WHERE (o.occurrence_key = ANY (k.keys)) IS NOT TRUE AND NOT (o.schedule = "
                    "'rule-picked' AND k.keys IS NULL)"),
        "");
    check_spellings_of_overlaps();
    /* Another spelling of one that ran, and the next one's, are nobody's to make. */
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.occurrence o CROSS JOIN LATERAL "
                                   "reports.key_fault(o.schedule, replace(o.occurrence_key, 'Z', "
                                   "'+00:00')) k WHERE o.occurrence_key LIKE '%%Z' AND k.fault IS "
                                   "NULL"),
                     0);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.schedule_progress p CROSS JOIN "
                                   "LATERAL reports.key_fault(p.schedule, to_char(p.next_fire_at "
                                   "AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')) k "
                                   "WHERE p.schedule = 'seconds' AND k.to_come"),
                     1);
    leader_leave(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sql_knows_each_key_that_the_planner_writes),
        cmocka_unit_test(test_a_date_moved_into_the_past_of_today_is_planned_at_once_and_once),
        cmocka_unit_test(test_the_same_while_nobody_leads),
        cmocka_unit_test(test_a_date_moved_into_the_past_in_a_pause_is_in_its_gap),
        cmocka_unit_test(test_a_rule_moved_to_later_today_begins_tomorrow_if_today_has_run),
        cmocka_unit_test(test_a_rule_moved_to_later_today_runs_today_if_today_was_skipped),
        cmocka_unit_test(
            test_a_zone_change_westward_of_a_dated_schedule_goes_on_with_the_first_free_date),
        cmocka_unit_test(test_a_zone_change_westward_of_finer_keys_is_refused_or_is_a_problem),
        cmocka_unit_test(test_once_cannot_be_moved_onto_its_own_used_date),
    };
    return fixture_plan_run("test_planning_keys", tests, sizeof tests / sizeof tests[0],
                            before_each);
}
