/* Bounds that stand in C and in sql/: a value that one side takes and the other does not has room
 * for, or a word that people see judged by another figure, is found here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "artifact_path.h"
#include "backfill_json.h"
#include "fixture_database.h"
#include "http_page.h"
#include "http_wish.h"
#include "outcome.h"
#include "planner_batch.h"
#include "scope_shell.h"
#include "store_request.h"

enum relation {
    SAME,  /* the database's bound is this number */
    FITS,  /* text of the database's bound fits a buffer of this size, with NUL */
    HOLDS, /* the database takes at least this */
};

/* `pattern` finds the bound in the definition of a constraint, a function or a view of this name.
 * An interval counts in seconds. */
struct bound {
    const char *name, *pattern;
    enum relation relation;
    int64_t ours;
    const char *macro;
};
#define OURS(relation, macro, number) relation, (int64_t)(number), #macro

static const struct bound bounds[] = {
    {"name_shape", "\\{0,(\\d+)\\}", OURS(SAME, NAME_MAX_BYTES, NAME_MAX_BYTES - 2)},
    {"occurrence_key_shape", "\\{0,(\\d+)\\}", OURS(SAME, KEY_MAX_BYTES, KEY_MAX_BYTES - 2)},
    {"occurrence_occurrence_key_check", "<= (\\d+)", OURS(FITS, KEY_MAX_BYTES, KEY_MAX_BYTES)},
    {"backfill_firing_occurrence_key_check", "<= (\\d+)", OURS(FITS, KEY_MAX_BYTES, KEY_MAX_BYTES)},
    {"schedule_rule_check", "<= (\\d+)", OURS(FITS, PLAN_RULE_MAX, PLAN_RULE_MAX)},
    {"schedule_rule_check", "<= (\\d+)", OURS(FITS, RRULE_TEXT_MAX, RRULE_TEXT_MAX)},
    {"schedule_time_zone_check", "<= (\\d+)", OURS(FITS, ZONE_NAME_MAX, ZONE_NAME_MAX)},
    {"zone_state_time_zone_check", "<= (\\d+)", OURS(FITS, ZONE_NAME_MAX, ZONE_NAME_MAX)},
    {"zone_state_tzdata_check", "<= (\\d+)", OURS(FITS, TZDATA_VERSION_MAX, TZDATA_VERSION_MAX)},
    {"zone_state_digest_check", "<= (\\d+)", OURS(HOLDS, ZONE_DIGEST_MAX, ZONE_DIGEST_MAX - 1)},
    {"schedule_misfire_max_check", "<= (\\d+)", OURS(SAME, PLANNER_MISSED_MAX, PLANNER_MISSED_MAX)},
    {"schedule_jitter_s_check", "<= (\\d+)", OURS(SAME, RULE_JITTER_MAX_S, RULE_JITTER_MAX_S)},
    {"schedule_business_day_offset_check", "<= (\\d+)",
     OURS(SAME, BUSINESS_DAY_OFFSET_MAX, BUSINESS_DAY_OFFSET_MAX)},
    {"schedule_business_day_offset_check", ">= '-(\\d+)'",
     OURS(SAME, BUSINESS_DAY_OFFSET_MAX, BUSINESS_DAY_OFFSET_MAX)},
    {"check_dates", "cardinality\\(p_dates\\) > (\\d+)",
     OURS(SAME, RRULE_DATES_MAX, RRULE_DATES_MAX)},
    {"calendar_valid_from_check", "'(\\d+)-01-01'",
     OURS(SAME, CALENDAR_YEAR_MIN, CALENDAR_YEAR_MIN)},
    {"calendar_valid_through_check", "'(\\d+)-12-31'",
     OURS(SAME, CALENDAR_YEAR_MAX, CALENDAR_YEAR_MAX)},
    {"calendar_weekend_from_date_check", "'(\\d+)-01-01'",
     OURS(SAME, CALENDAR_YEAR_MIN, CALENDAR_YEAR_MIN)},
    {"calendar_weekend_from_date_check", "'(\\d+)-12-31'",
     OURS(SAME, CALENDAR_YEAR_MAX, CALENDAR_YEAR_MAX)},
    {"calendar_day_day_check", "'(\\d+)-01-01'", OURS(SAME, CALENDAR_YEAR_MIN, CALENDAR_YEAR_MIN)},
    {"calendar_day_day_check", "'(\\d+)-12-31'", OURS(SAME, CALENDAR_YEAR_MAX, CALENDAR_YEAR_MAX)},
    {"calendar_rows_changed", "d\\.calendar HAVING count\\(\\*\\) > (\\d+)",
     OURS(SAME, CALENDAR_DAYS_MAX, CALENDAR_DAYS_MAX)},
    /* Beside the weekend of the calendar's own row. */
    {"calendar_rows_changed", "w\\.calendar HAVING count\\(\\*\\) > (\\d+)",
     OURS(SAME, CALENDAR_WEEKENDS_MAX, CALENDAR_WEEKENDS_MAX - 1)},
    {"check_fiscal_periods", "x\\.n > (\\d+)", OURS(SAME, FISCAL_PERIODS_MAX, FISCAL_PERIODS_MAX)},
    {"fiscal_periods", "LIMIT (\\d+)", OURS(SAME, FISCAL_PERIODS_MAX, FISCAL_PERIODS_MAX)},
    {"fiscal_period_label_check", "\\{0,(\\d+)\\}",
     OURS(SAME, FISCAL_LABEL_MAX, FISCAL_LABEL_MAX - 2)},
    {"ask_backfill", "BETWEEN 1 AND (\\d+)", OURS(SAME, BACKFILL_MAX, BACKFILL_MAX)},
    {"request_argument_check", "<= (\\d+)", OURS(FITS, REQUEST_ARGUMENT_MAX, REQUEST_ARGUMENT_MAX)},
    {"request_subject_check", "<= (\\d+)",
     OURS(HOLDS, REQUEST_SUBJECT_MAX, REQUEST_SUBJECT_MAX - 1)},
    {"ask", "p_timeout > interval '([^']+)'", OURS(SAME, WISH_TIMEOUT_MAX_S, WISH_TIMEOUT_MAX_S)},
    {"artifact_path_check", "<= (\\d+)", OURS(HOLDS, ARTIFACT_PATH_MAX, ARTIFACT_PATH_MAX - 1)},
    {"record_outcomes", "left\\(g\\.error, (\\d+)\\)",
     OURS(SAME, OUTCOME_ERROR_MAX, OUTCOME_ERROR_MAX - 1)},
    {"v_problem", "due_lag_s > \\(?(\\d+)", OURS(SAME, PAGE_DUE_LAG_S, PAGE_DUE_LAG_S)},
    {"v_problem", "oldest_at < \\(statement_timestamp\\(\\) - '([^']+)'",
     OURS(SAME, PAGE_OUTBOX_OLD_S, PAGE_OUTBOX_OLD_S)},
    /* A follower that misses one of its signs of life still counts as there. */
    {"candidate_silence", "interval '([^']+)'",
     OURS(HOLDS, SCOPE_PING_MS, 2 * SCOPE_PING_MS / 1000 + 1)},
};

static struct test_database db;

static int64_t bound_of(const struct bound *b)
{
    static const char sql[] =
        "SELECT coalesce(CASE WHEN m ~ '^\\d+$' THEN m::bigint ELSE extract(epoch FROM m::interval)"
        "::bigint END, -1) FROM (SELECT (regexp_match(d.definition, $2))[1] AS m FROM ("
        "SELECT conname::text, pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE connamespace = 'reports'::regnamespace UNION ALL "
        "SELECT proname::text, prosrc FROM pg_proc WHERE pronamespace = 'reports'::regnamespace"
        " UNION ALL SELECT viewname::text, definition FROM pg_views WHERE schemaname = 'reports')"
        " AS d (name, definition) WHERE d.name = $1) x ORDER BY m NULLS LAST LIMIT 1";
    const char *const values[] = {b->name, b->pattern};
    PGresult *r = PQexecParams(db.connection, sql, 2, NULL, values, NULL, NULL, 0);
    if (PQresultStatus(r) != PGRES_TUPLES_OK) {
        fail_msg("%s: %s", b->name, PQerrorMessage(db.connection));
    }
    int64_t bound = PQntuples(r) == 1 ? strtoll(PQgetvalue(r, 0, 0), NULL, 10) : -1;
    PQclear(r);
    return bound;
}

static void test_bounds_of_the_database_are_those_of_the_code(void **state)
{
    (void)state;
    unsigned wrong = 0;
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        const struct bound *b = &bounds[i];
        int64_t theirs = bound_of(b);
        bool good = theirs >= 0 && ((b->relation == SAME && theirs == b->ours) ||
                                    (b->relation == FITS && theirs + 1 <= b->ours) ||
                                    (b->relation == HOLDS && theirs >= b->ours));
        if (!good) {
            print_error("%s of the database says %lld where %s wants %lld (-1: no \"%s\" in it)\n",
                        b->name, (long long)theirs, b->macro, (long long)b->ours, b->pattern);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

/* Members that a fence, a candidate or a sample of the clock names. */
static void test_names_of_members_fit_where_the_code_reads_them(void **state)
{
    (void)state;
    const struct bound b = {
        "candidate_member_check", "<= (\\d+)",
        OURS(FITS, request_leader.member, sizeof((struct request_leader *)NULL)->member)};
    assert_in_range(bound_of(&b), 1, b.ours - 1);
}

static void test_every_sqlstate_of_ours_is_in_the_table_of_the_port(void **state)
{
    (void)state;
    static const char raised[] =
        "SELECT string_agg(DISTINCT m[1], ' ' ORDER BY m[1]) FROM pg_proc p, "
        "regexp_matches(p.prosrc, 'ERRCODE = ''(RS\\d{3})''', 'g') m"
        " WHERE p.pronamespace = 'reports'::regnamespace";
    char listed[256] = "";
    char line[256];
    FILE *header = fopen(TEST_SOURCE_DIR "/../common/store/store.h", "r");
    assert_non_null(header);
    while (fgets(line, sizeof line, header) != NULL) {
        if (strncmp(line, " *   RS", 7) == 0) {
            size_t n = strlen(listed);
            assert_true(n + 8 < sizeof listed);
            (void)snprintf(listed + n, sizeof listed - n, "%s%.5s", n > 0 ? " " : "", line + 5);
        }
    }
    (void)fclose(header);
    assert_string_equal(listed, test_text(db.connection, raised));
}

static int database_create(void **state)
{
    (void)state;
    test_database_create(&db);
    return 0;
}

static int database_drop(void **state)
{
    (void)state;
    test_database_drop(&db);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds_of_the_database_are_those_of_the_code),
        cmocka_unit_test(test_names_of_members_fit_where_the_code_reads_them),
        cmocka_unit_test(test_every_sqlstate_of_ours_is_in_the_table_of_the_port),
    };
    return cmocka_run_group_tests(tests, database_create, database_drop);
}
