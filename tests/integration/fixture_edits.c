#include "fixture_edits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void version_move(const char *schedule, const char *ago)
{
    (void)fixture_sql("UPDATE reports.schedule_version v SET effective_from = clock_timestamp() - "
                      "interval '%s' WHERE schedule = '%s' AND version = (SELECT max(w.version) "
                      "FROM reports.schedule_version w WHERE w.schedule = v.schedule)",
                      ago, schedule);
}

void fixture_edit(const char *schedule, const char *set, const char *ago)
{
    (void)fixture_sql("UPDATE reports.schedule SET %s WHERE name = '%s'", set, schedule);
    version_move(schedule, ago);
}

void fixture_written_at(const char *schedule, const char *since)
{
    (void)fixture_sql("DELETE FROM reports.schedule_change WHERE schedule = '%s' AND version = 1",
                      schedule);
    (void)fixture_sql("UPDATE reports.schedule_version SET effective_from = '%s' WHERE "
                      "schedule = '%s'",
                      since, schedule);
}

void fixture_insert(const char *schedule, const char *rule, const char *ago)
{
    (void)fixture_sql("INSERT INTO reports.schedule (name, report, kind, rule) VALUES ('%s', "
                      "'nothing', 'cron', '%s')",
                      schedule, rule);
    version_move(schedule, ago);
}

void fixture_delete(const char *schedule, const char *ago)
{
    (void)fixture_sql("DELETE FROM reports.schedule WHERE name = '%s'", schedule);
    version_move(schedule, ago);
}

/* Apart from the scheduler: the versions say what was due, minute by minute. What a pause or a
 * problem withholds becomes a gap when it is over: until then it is left out. */
static const char PROOF[] =
    "CREATE OR REPLACE FUNCTION public.proof(p_schedule text, p_until timestamptz) RETURNS text "
    "LANGUAGE sql AS $$ "
    "WITH v AS ( "
    "SELECT w.*, lead(effective_from) OVER (ORDER BY version) AS ends, string_to_array(w.rule, ' "
    "') AS f "
    "FROM reports.schedule_version w WHERE schedule = p_schedule "
    "), over AS ( "
    "SELECT * FROM v WHERE NOT ended AND (ends IS NOT NULL OR NOT paused) "
    "AND NOT (ends IS NULL AND EXISTS (SELECT FROM reports.schedule_progress p "
    "WHERE p.schedule = p_schedule AND p.problem IS NOT NULL)) "
    "), due AS ( "
    "SELECT v.version, v.paused, t "
    "FROM over v, generate_series(date_trunc('minute', v.effective_from), least(v.ends, p_until), "
    "'1 minute') t "
    "WHERE v.kind = 'cron' AND v.f[3] = '*' "
    "AND CASE WHEN v.f[1] = '*' THEN true "
    "WHEN v.f[1] ~ '^[0-9]+$' THEN extract(minute FROM t) = v.f[1]::int "
    "ELSE extract(minute FROM t)::int %% substr(v.f[1], 3)::int = 0 END "
    "AND CASE WHEN v.f[2] = '*' THEN true ELSE extract(hour FROM t) = v.f[2]::int END "
    "AND t >= v.effective_from AND t < coalesce(v.ends, 'infinity') AND t <= p_until "
    "UNION ALL "
    "SELECT v.version, v.paused, t "
    "FROM over v, generate_series(v.anchor, least(v.ends, p_until), v.rule::interval) t "
    "WHERE v.kind = 'interval' "
    "AND t >= v.effective_from AND t < coalesce(v.ends, 'infinity') AND t <= p_until "
    "), o AS ( "
    "SELECT * FROM reports.occurrence "
    "WHERE schedule = p_schedule AND cause IN ('schedule', 'misfire') AND scheduled_for <= p_until "
    "), g AS ( "
    "SELECT * FROM reports.schedule_gap WHERE schedule = p_schedule "
    "), fate AS ( "
    "SELECT d.t, d.paused, EXISTS (SELECT FROM o WHERE o.scheduled_for = d.t) AS made, "
    "EXISTS (SELECT FROM g WHERE d.t BETWEEN g.from_fire_at AND g.to_fire_at) AS gap, "
    "EXISTS (SELECT FROM reports.occurrence k JOIN reports.schedule_progress p USING (schedule) "
    "WHERE k.schedule = p_schedule AND p.key_form = 'date' "
    "AND k.occurrence_key = to_char(d.t, 'YYYY-MM-DD')) AS known "
    "FROM due d "
    ") "
    "SELECT format('due=%%s lost=%%s both=%%s uncalled=%%s twice=%%s ran_paused=%%s "
    "uncounted=%%s', count(*), "
    "count(*) FILTER (WHERE NOT made AND NOT gap AND NOT known), "
    "count(*) FILTER (WHERE made AND gap), "
    "(SELECT count(*) FROM o WHERE o.scheduled_for NOT IN (SELECT d.t FROM due d)), "
    "(SELECT count(*) - count(DISTINCT scheduled_for) FROM o), "
    "count(*) FILTER (WHERE made AND paused), "
    "(SELECT coalesce(sum(firings), 0) FROM g) - count(*) FILTER (WHERE gap)) "
    "FROM fate $$ ";

static void story_print(const char *schedule)
{
    print_error("now %s\n", fixture_sql("SELECT clock_timestamp()::time(0)"));
    print_error("%s\n", fixture_sql("SELECT string_agg(format(E'v%%s %%s %%s %%s%%s%%s %%s %%s', "
                                    "version, effective_from::time(3), kind, rule, CASE WHEN "
                                    "paused THEN ' paused' END, CASE WHEN ended THEN ' ended' END, "
                                    "misfire, misfire_max), E'\\n' ORDER BY version) FROM "
                                    "reports.schedule_version WHERE schedule = '%s'",
                                    schedule));
    print_error("%s\n", fixture_sql("SELECT string_agg(format('v%%s %%s %%s %%s..%%s', version, "
                                    "reason, firings, from_key, to_key), E'\\n' ORDER BY "
                                    "from_fire_at) FROM reports.schedule_gap WHERE schedule = '%s'",
                                    schedule));
    print_error(
        "%s\n",
        fixture_sql("SELECT string_agg(t, E'\\n' ORDER BY t) FROM (SELECT format('v%%s %%s "
                    "%%s: %%s..%%s', version, cause, count(*), min(scheduled_for)::time(0), "
                    "max(scheduled_for)::time(0)) AS t FROM reports.occurrence WHERE "
                    "schedule = '%s' GROUP BY version, cause) x",
                    schedule));
}

void check_nothing_lost(struct leader *l, const char *schedule, int64_t due_at_least)
{
    char until[64];
    char want[200];
    (void)fixture_sql(PROOF);
    (void)snprintf(until, sizeof until, "%s", fixture_sql("SELECT clock_timestamp()"));
    (void)leader_settle(l);
    const char *answer = fixture_sql("SELECT public.proof('%s', '%s')", schedule, until);
    int due = 0;
    assert_int_equal(sscanf(answer, "due=%d", &due), 1);
    (void)snprintf(want, sizeof want,
                   "due=%d lost=0 both=0 uncalled=0 twice=0 ran_paused=0 uncounted=0", due);
    if (strcmp(answer, want) != 0) {
        print_error("%s\n", answer);
        story_print(schedule);
        fail();
    }
    assert_true(due >= due_at_least);
}

const char *fixture_gaps(const char *schedule)
{
    return fixture_sql("SELECT string_agg(format('%%s %%s %%s..%%s', reason, firings, from_key, "
                       "to_key), ', ' ORDER BY from_fire_at) FROM reports.schedule_gap WHERE "
                       "schedule = '%s'",
                       schedule);
}
