/* Whole worker processes: jobs that wait in the database become files, or clear failures. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "digest.h"
#include "fixture_worker.h"

static struct test_database db;
static struct test_worker worker;

static const char settings[] =
    "slots = 4;\npull_idle_ms = 50;\nkill_grace_ms = 300;\ndrain_ms = 300;\n"
    "programs = (\n"
    "  { name = \"echo\"; arguments = [\"/bin/sh\", \"-c\", \"cat; env | sort\"];\n"
    "    environment = [\"EXTRA=yes\"]; },\n"
    "  { name = \"fails\"; arguments = [\"/bin/sh\", \"-c\", \"echo why >&2; exit 7\"]; },\n"
    "  { name = \"floods\"; arguments = [\"/usr/bin/yes\"]; max_output_bytes = 100000; },\n"
    "  { name = \"hangs\"; arguments = [\"/bin/sh\", \"-c\", \"sleep 600\"]; },\n"
    "  { name = \"missing\"; arguments = [\"/no/such/program\"]; }\n"
    ");\n";

static const char reports[] =
    "INSERT INTO reports.scope (name) VALUES ('main') ON CONFLICT DO NOTHING;"
    "INSERT INTO reports.report (name, kind, data_source, query, format, parameters) VALUES"
    " ('numbers', 'sql', 'warehouse', 'SELECT g AS n, :''color'' AS color, :''business_date''::date"
    " AS day FROM generate_series(1, 3) g', 'csv', '{\"color\": \"red, or \\\"blue\\\"\"}'),"
    " ('numbers-json', 'sql', 'warehouse', 'SELECT 1 AS a, NULL AS b', 'json', '{}'),"
    " ('bad-sql', 'sql', 'warehouse', 'SELECT * FROM no_such_table', 'csv', '{}'),"
    " ('bad-parameter', 'sql', 'warehouse', 'SELECT :''unknown''', 'csv', '{}'),"
    " ('away', 'sql', 'away', 'SELECT 1', 'csv', '{}'),"
    " ('no-source', 'sql', 'nowhere', 'SELECT 1', 'csv', '{}'),"
    " ('sleeps', 'sql', 'warehouse', 'SELECT pg_sleep(600)', 'csv', '{}');"
    "INSERT INTO reports.report (name, kind) VALUES ('noop', 'noop');"
    "INSERT INTO reports.report (name, kind, program, format) VALUES ('echo', 'program', 'echo',"
    " 'txt'), ('fails', 'program', 'fails', 'txt'), ('floods', 'program', 'floods', 'txt'),"
    " ('hangs', 'program', 'hangs', 'txt'), ('missing', 'program', 'missing', 'txt'),"
    " ('unlisted', 'program', 'unlisted', 'txt');";

static int group_setup(void **state)
{
    (void)state;
    test_database_create(&db);
    test_run(db.connection, reports);
    test_worker_prepare(&worker, &db, settings);
    test_worker_start(&worker, &db);
    return 0;
}

static int group_teardown(void **state)
{
    (void)state;
    test_worker_done(&worker, false);
    test_database_drop(&db);
    return 0;
}

static char *about(const char *column, const char *job)
{
    static char sql[512];
    (void)snprintf(sql, sizeof sql, "SELECT %s FROM reports.job WHERE id = '%s'", column, job);
    return sql;
}

static char *of_attempt(const char *column, const char *job)
{
    static char sql[512];
    (void)snprintf(sql, sizeof sql,
                   "SELECT %s FROM reports.job_attempt WHERE job_id = '%s' ORDER BY attempt DESC",
                   column, job);
    return sql;
}

static char *of_artifact(const char *column, const char *job)
{
    static char sql[512];
    (void)snprintf(sql, sizeof sql, "SELECT %s FROM reports.artifact WHERE job_id = '%s'", column,
                   job);
    return sql;
}

static void expect_text(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        print_error("\"%s\" does not hold \"%s\"\n", text, part);
        fail();
    }
}

/* The artifact's file, after its size and hash were compared with the row. */
static char *artifact_read(const char *job)
{
    char path[1400];
    char sha[DIGEST_TEXT_MAX];
    struct stat st;
    (void)snprintf(path, sizeof path, "%s/artifacts/%s", worker.directory,
                   test_text(db.connection, of_artifact("path", job)));
    assert_int_equal(digest_file(path, sha, NULL), STATUS_OK);
    assert_string_equal(sha, test_text(db.connection, of_artifact("encode(sha256,'hex')", job)));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, test_int(db.connection, of_artifact("size_bytes", job)));
    FILE *f = fopen(path, "re");
    char *text = NULL;
    size_t size = 0;
    assert_non_null(f);
    if (getdelim(&text, &size, '\0', f) < 0) {
        text[0] = '\0';
    }
    (void)fclose(f);
    return text;
}

static void succeed(const char *job)
{
    if (!test_wait_text(db.connection, about("state", job), "succeeded", WORKER_LIMIT_MS)) {
        print_error("%s\n", test_text(db.connection, about("error", job)));
        fail();
    }
}

static void test_waiting_job_is_pulled_and_done(void **state)
{
    (void)state;
    char job[UUID_TEXT_MAX];
    (void)snprintf(job, sizeof job, "%s", test_job(&db, "noop", "k1"));
    succeed(job);
    assert_int_equal(test_int(db.connection, about("attempt", job)), 1);
    assert_string_equal(test_text(db.connection, of_attempt("outcome", job)), "succeeded");
}

static void test_query_becomes_a_csv_file_with_matching_hash(void **state)
{
    (void)state;
    char job[UUID_TEXT_MAX];
    (void)snprintf(job, sizeof job, "%s", test_job(&db, "numbers", "2030-04-12"));
    succeed(job);
    char *text = artifact_read(job);
    assert_string_equal(text, "n,color,day\n"
                              "1,\"red, or \"\"blue\"\"\",2030-04-12\n"
                              "2,\"red, or \"\"blue\"\"\",2030-04-12\n"
                              "3,\"red, or \"\"blue\"\"\",2030-04-12\n");
    free(text);
    assert_int_equal(test_int(db.connection, of_artifact("row_count", job)), 3);
    assert_string_equal(test_text(db.connection, of_artifact("media_type", job)),
                        "text/csv; charset=utf-8");
}

static void test_query_becomes_a_json_file(void **state)
{
    (void)state;
    char job[UUID_TEXT_MAX];
    (void)snprintf(job, sizeof job, "%s", test_job(&db, "numbers-json", "k1"));
    succeed(job);
    char *text = artifact_read(job);
    assert_string_equal(text, "[\n{\"a\":1,\"b\":null}\n]\n");
    free(text);
}

static void test_program_gets_its_context_and_nothing_of_the_workers_environment(void **state)
{
    (void)state;
    char job[UUID_TEXT_MAX];
    (void)snprintf(job, sizeof job, "%s", test_job(&db, "echo", "2030-04-12T06:00"));
    succeed(job);
    char *text = artifact_read(job);
    expect_text(text, "\"occurrence_key\":\"2030-04-12T06:00\"");
    expect_text(text, "\"parameters\":{}");
    expect_text(text, "\nEXTRA=yes\n");
    expect_text(text, "\nREPORT_BUSINESS_DATE=2030-04-12\n");
    expect_text(text, "\nREPORT_SCHEDULED_FOR=2030-04-12T06:00:00Z\n");
    expect_text(text, "\nREPORT_ATTEMPT=1\n");
    assert_null(strstr(text, "RS_PG_SUPER"));
    free(text);
}

static void fails_for_good(const char *report, const char *part)
{
    char job[UUID_TEXT_MAX];
    (void)snprintf(job, sizeof job, "%s", test_job(&db, report, "k1"));
    assert_true(test_wait_text(db.connection, about("state", job), "failed", WORKER_LIMIT_MS));
    assert_int_equal(test_int(db.connection, about("attempt", job)), 1);
    expect_text(test_text(db.connection, about("error", job)), part);
    assert_int_equal(test_int(db.connection, of_artifact("count(*)", job)), 0);
}

static void waits_for_a_retry(const char *report, const char *part)
{
    char job[UUID_TEXT_MAX];
    (void)snprintf(job, sizeof job, "%s", test_job(&db, report, "k1"));
    assert_true(test_wait_text(db.connection, about("state", job), "retry_wait", WORKER_LIMIT_MS));
    expect_text(test_text(db.connection, about("error", job)), part);
}

static void test_missing_table_may_come_back_and_is_tried_again(void **state)
{
    (void)state;
    waits_for_a_retry("bad-sql", "relation \"no_such_table\" does not exist");
}

static void test_unknown_parameter_fails_at_once_and_is_named(void **state)
{
    (void)state;
    fails_for_good("bad-parameter", "parameter \"unknown\"");
}

static void test_flood_of_output_is_bounded(void **state)
{
    (void)state;
    fails_for_good("floods", "more than max_output_bytes (100000)");
}

static void test_unreachable_data_source_is_tried_again(void **state)
{
    (void)state;
    waits_for_a_retry("away", "data source \"away\"");
}

static void test_unknown_data_source_and_program_are_tried_again_elsewhere(void **state)
{
    (void)state;
    waits_for_a_retry("no-source", "data source \"nowhere\" is not in this worker's");
    waits_for_a_retry("unlisted", "program \"unlisted\" is not in this worker's");
}

static void test_failing_program_reports_status_and_stderr(void **state)
{
    (void)state;
    char job[UUID_TEXT_MAX];
    (void)snprintf(job, sizeof job, "%s", test_job(&db, "fails", "k1"));
    assert_true(test_wait_text(db.connection, about("state", job), "retry_wait", WORKER_LIMIT_MS));
    expect_text(test_text(db.connection, about("error", job)), "status 7; stderr: why");
    assert_int_equal(test_int(db.connection, of_attempt("exit_code", job)), 7);
}

static void test_missing_program_says_so(void **state)
{
    (void)state;
    waits_for_a_retry("missing", "could not be started: No such file or directory");
}

static void timeout_of(const char *report)
{
    char job[UUID_TEXT_MAX];
    char sql[256];
    test_run(db.connection, "BEGIN");
    (void)snprintf(job, sizeof job, "%s", test_job(&db, report, "timeout"));
    (void)snprintf(sql, sizeof sql, "UPDATE reports.job SET timeout = '1 second' WHERE id = '%s'",
                   job);
    test_run(db.connection, sql);
    test_run(db.connection, "COMMIT");
    assert_true(test_wait_text(db.connection, about("state", job), "retry_wait", WORKER_LIMIT_MS));
    assert_string_equal(test_text(db.connection, of_attempt("outcome", job)), "timeout");
    expect_text(test_text(db.connection, about("error", job)),
                "longer than the schedule's timeout");
}

static void test_query_that_runs_too_long_is_ended_as_timeout(void **state)
{
    (void)state;
    timeout_of("sleeps");
    assert_true(test_wait_text(
        db.connection,
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND pid <>"
        " pg_backend_pid() AND state = 'active' AND datname = current_database()",
        "0", 20000));
}

static void test_program_that_runs_too_long_is_ended_as_timeout(void **state)
{
    (void)state;
    timeout_of("hangs");
}

static void test_outcome_survives_a_passing_error_of_the_server(void **state)
{
    (void)state;
    /* An I/O error, once: sequences keep their value over the rollback. */
    test_run(db.connection,
             "CREATE SEQUENCE public.failures; GRANT USAGE ON public.failures TO PUBLIC;"
             "CREATE FUNCTION public.fail_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
             " IF nextval('public.failures') = 1 THEN RAISE EXCEPTION 'could not read block 7'"
             " USING ERRCODE = '58030'; END IF; RETURN NEW; END $$;"
             "CREATE TRIGGER fail_once BEFORE INSERT ON reports.job_attempt FOR EACH ROW"
             " EXECUTE FUNCTION public.fail_once()");
    char job[UUID_TEXT_MAX];
    (void)snprintf(job, sizeof job, "%s", test_job(&db, "numbers", "io-error"));
    assert_true(test_wait_text(db.connection, about("state", job), "succeeded", WORKER_LIMIT_MS));
    assert_int_equal(test_int(db.connection, about("attempt", job)), 1);
    assert_true(test_int(db.connection, "SELECT last_value FROM public.failures") >= 2);
    char sql[256];
    char path[512];
    (void)snprintf(sql, sizeof sql, "SELECT path FROM reports.artifact WHERE job_id = '%s'", job);
    (void)snprintf(path, sizeof path, "%s/artifacts/%s", worker.directory,
                   test_text(db.connection, sql));
    assert_int_equal(access(path, R_OK), 0);
    test_run(db.connection, "DROP TRIGGER fail_once ON reports.job_attempt");
}

/* Last: it stops the worker. */
static void test_stopping_worker_hands_back_what_does_not_end(void **state)
{
    (void)state;
    char job[UUID_TEXT_MAX];
    (void)snprintf(job, sizeof job, "%s", test_job(&db, "hangs", "stop"));
    assert_true(test_wait_text(db.connection, about("state", job), "running", WORKER_LIMIT_MS));
    assert_int_equal(test_worker_stop(&worker, SIGTERM, WORKER_LIMIT_MS), 0);
    assert_string_equal(test_text(db.connection, about("state", job)), "retry_wait");
    assert_string_equal(test_text(db.connection, of_attempt("outcome", job)), "handed_back");
    assert_int_equal(test_int(db.connection, about("handed_back", job)), 1);
    assert_string_equal(test_text(db.connection, "SELECT state FROM reports.worker"), "stopped");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waiting_job_is_pulled_and_done),
        cmocka_unit_test(test_query_becomes_a_csv_file_with_matching_hash),
        cmocka_unit_test(test_query_becomes_a_json_file),
        cmocka_unit_test(test_program_gets_its_context_and_nothing_of_the_workers_environment),
        cmocka_unit_test(test_missing_table_may_come_back_and_is_tried_again),
        cmocka_unit_test(test_unknown_parameter_fails_at_once_and_is_named),
        cmocka_unit_test(test_flood_of_output_is_bounded),
        cmocka_unit_test(test_unreachable_data_source_is_tried_again),
        cmocka_unit_test(test_unknown_data_source_and_program_are_tried_again_elsewhere),
        cmocka_unit_test(test_failing_program_reports_status_and_stderr),
        cmocka_unit_test(test_missing_program_says_so),
        cmocka_unit_test(test_query_that_runs_too_long_is_ended_as_timeout),
        cmocka_unit_test(test_program_that_runs_too_long_is_ended_as_timeout),
        cmocka_unit_test(test_outcome_survives_a_passing_error_of_the_server),
        cmocka_unit_test(test_stopping_worker_hands_back_what_does_not_end),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
