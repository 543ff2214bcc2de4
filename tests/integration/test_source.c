/* Data sources: a real PostgreSQL, read through the port. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "csv_rows.h"
#include "fixture_database.h"
#include "json_rows.h"
#include "source.h"

static struct test_database db;
static struct source *source;
static int wake_fd;

static struct source_wait wait_of(int64_t ms)
{
    return (struct source_wait){.wake_fd = wake_fd, .deadline = instant_add_ms(clock_now(), ms)};
}

#define STATEMENT_MS 20000
#define LONG_MS      300000 /* millions of rows, checked by a sanitizer, on a busy machine */

static struct source *source_new(int64_t statement_ms)
{
    struct source_options options = {.conninfo = db.super,
                                     .password_file = "",
                                     .application = "test_source",
                                     .statement_timeout_ms = statement_ms};
    struct source_wait wait = wait_of(5000);
    struct source *s = NULL;
    struct error err;
    if (source_open(&options, &wait, &s, &err) != STATUS_OK) {
        print_error("%s\n", err.text);
        fail();
    }
    return s;
}

static int group_setup(void **state)
{
    (void)state;
    test_database_create(&db);
    test_run(db.connection, "CREATE TABLE target (x text)");
    wake_fd = eventfd(0, EFD_NONBLOCK);
    source = source_new(STATEMENT_MS);
    return 0;
}

static int group_teardown(void **state)
{
    (void)state;
    source_close(source);
    (void)close(wake_fd);
    test_database_drop(&db);
    return 0;
}

static struct job *job_make(const char *query, const char *parameters)
{
    struct job *j = job_new();
    assert_non_null(j);
    j->query = strdup(query);
    (void)snprintf(j->schedule, sizeof j->schedule, "%s", "sales-daily");
    (void)snprintf(j->business_date, sizeof j->business_date, "%s", "2030-04-12");
    assert_int_equal(job_parameters_parse(j, parameters, NULL), STATUS_OK);
    return j;
}

enum form {
    AS_CSV,
    AS_JSON
};

/* The whole result as text, in `out`. */
static enum status read_all(const struct job *j, enum form form, struct bytes *out,
                            struct error *err)
{
    const struct source_column *columns = NULL;
    const struct source_cell *cells = NULL;
    struct source_wait wait = wait_of(20000);
    enum status s = source_query(source, j, &wait, err);
    int64_t rows = 0;
    if (s == STATUS_OK) {
        size_t count = source_columns(source, &columns);
        if (form == AS_CSV) {
            csv_header(out, columns, count);
        }
        while ((s = source_next(source, &wait, &cells, err)) == STATUS_OK) {
            if (form == AS_CSV) {
                csv_row(out, cells, count);
            } else {
                json_row(out, columns, cells, count, rows);
            }
            rows++;
        }
        if (s == STATUS_NOT_FOUND) {
            s = STATUS_OK;
            if (form == AS_JSON) {
                json_end(out, rows);
            }
        }
    }
    source_end(source);
    return s;
}

static void expect(const char *query, const char *parameters, enum form form, const char *text)
{
    struct job *j = job_make(query, parameters);
    struct bytes out = {.most = 1 << 20};
    struct error err = {0};
    if (read_all(j, form, &out, &err) != STATUS_OK) {
        print_error("%s\n", err.text);
        fail();
    }
    bytes_add_char(&out, '\0');
    assert_string_equal(out.data, text);
    assert_false(source_is_broken(source));
    bytes_free(&out);
    job_free(j);
}

/* The query fails, the text holds `part`, and the connection serves the next one. */
static void refuse(const char *query, const char *parameters, const char *part, bool retryable)
{
    struct job *j = job_make(query, parameters);
    struct bytes out = {.most = 1 << 20};
    struct error err = {0};
    enum status s = read_all(j, AS_CSV, &out, &err);
    assert_int_not_equal(s, STATUS_OK);
    if (strstr(err.text, part) == NULL) {
        print_error("\"%s\" does not hold \"%s\"\n", err.text, part);
        fail();
    }
    assert_int_equal(source_failure_is_retryable(s, err.code), retryable);
    bytes_free(&out);
    job_free(j);
    if (source_is_broken(source)) {
        source_close(source);
        source = source_new(STATEMENT_MS);
    }
    expect("SELECT 1 AS one", "[]", AS_CSV, "one\n1\n");
}

static const char types[] =
    "SELECT 1::int2 AS i, 9007199254740993::int8 AS big, 1.10::numeric AS n, 'NaN'::float8 AS nan,"
    " 0.1::float8 AS f, true AS yes, NULL::bool AS none, '' AS empty, E'a\\nb, \"c\"' AS t,"
    " '\\xdeadbeef'::bytea AS b, '2030-04-12'::date AS d,"
    " '2030-04-12 06:00:00.5'::timestamp AS ts, '1 day 02:00'::interval AS iv,"
    " '{\"k\": [1]}'::jsonb AS js, ARRAY[1,2] AS arr";

static void test_types_in_csv(void **state)
{
    (void)state;
    expect(types, "[]", AS_CSV,
           "i,big,n,nan,f,yes,none,empty,t,b,d,ts,iv,js,arr\n"
           "1,9007199254740993,1.10,NaN,0.1,t,,\"\",\"a\nb, \"\"c\"\"\",\\xdeadbeef,2030-04-12,"
           "2030-04-12 06:00:00.5,1 day 02:00:00,\"{\"\"k\"\": [1]}\",\"{1,2}\"\n");
}

static void test_types_in_json(void **state)
{
    (void)state;
    expect(types, "[]", AS_JSON,
           "[\n{\"i\":1,\"big\":9007199254740993,\"n\":1.10,\"nan\":\"NaN\",\"f\":0.1,\"yes\":true,"
           "\"none\":null,\"empty\":\"\",\"t\":\"a\\nb, \\\"c\\\"\",\"b\":\"\\\\xdeadbeef\","
           "\"d\":\"2030-04-12\",\"ts\":\"2030-04-12 06:00:00.5\",\"iv\":\"1 day 02:00:00\","
           "\"js\":{\"k\": [1]},\"arr\":\"{1,2}\"}\n]\n");
}

static void test_csv_is_what_the_server_writes_itself(void **state)
{
    (void)state;
    static const char query[] =
        "SELECT g, CASE WHEN g % 3 = 0 THEN NULL ELSE repeat('x\"', g) END AS a,"
        " E'l1\\r\\nl2,' AS b, '' AS c, g * 1.5 AS d, g % 2 = 0 AS e FROM generate_series(1, 50) g";
    char sql[1024];
    struct bytes copy = {.most = 1 << 20};
    (void)snprintf(sql, sizeof sql, "COPY (%s) TO STDOUT (FORMAT csv, HEADER)", query);
    PQclear(PQexec(db.connection, sql));
    char *line = NULL;
    for (int n = 0; (n = PQgetCopyData(db.connection, &line, 0)) > 0; PQfreemem(line)) {
        bytes_add(&copy, line, (size_t)n);
    }
    bytes_add_char(&copy, '\0');
    PQclear(PQgetResult(db.connection));
    PQclear(PQgetResult(db.connection));
    expect(query, "[]", AS_CSV, copy.data);
    bytes_free(&copy);
}

static void test_empty_results(void **state)
{
    (void)state;
    expect("SELECT 1 AS a, 2 AS b WHERE false", "[]", AS_CSV, "a,b\n");
    expect("SELECT 1 AS a WHERE false", "[]", AS_JSON, "[]\n");
}

static void test_parameters_are_quoted_by_the_client_library(void **state)
{
    (void)state;
    expect("SELECT :'p' AS v, :\"c\" FROM (SELECT 7 AS \"odd \"\"name\") s",
           "[[\"p\",\"string\",\"'; DROP TABLE target; -- \\\\\"],"
           "[\"c\",\"string\",\"odd \\\"name\"]]",
           AS_CSV, "v,\"odd \"\"name\"\n'; DROP TABLE target; -- \\,7\n");
    expect("SELECT :'p' || '!' AS v", "[[\"p\",\"string\",\"' || pg_sleep(9) || '\"]]", AS_CSV,
           "v\n' || pg_sleep(9) || '!\n");
    expect("SELECT 'it''s :''p'' --' AS v, :'n' + 1 AS n, :'b'::bool AS b",
           "[[\"n\",\"number\",\"41\"],[\"b\",\"boolean\",\"true\"]]", AS_CSV,
           "v,n,b\nit's :'p' --,42,t\n");
    assert_string_equal(test_text(db.connection, "SELECT count(*) FROM target"), "0");
}

static void test_built_ins_reach_the_query(void **state)
{
    (void)state;
    expect("SELECT :'business_date'::date + 1 AS d, :'schedule' AS s,"
           " :'window_start'::timestamptz IS NULL AS first",
           "[]", AS_CSV, "d,s,first\n2030-04-13,sales-daily,t\n");
}

static void test_bare_parameter_is_refused_and_foreign_colon_is_left_alone(void **state)
{
    (void)state;
    refuse("SELECT :schedule", "[]", "write :'schedule' for a value", false);
    expect("SELECT (ARRAY[1,2,3])[1:two.n] AS a FROM (SELECT 2 AS n) two", "[]", AS_CSV,
           "a\n\"{1,2}\"\n");
}

static void test_only_one_statement_runs(void **state)
{
    (void)state;
    refuse("SELECT 1; SELECT 2", "[]", "cannot insert multiple commands", false);
}

static void test_source_is_only_read(void **state)
{
    (void)state;
    refuse("INSERT INTO target VALUES ('x') RETURNING x", "[]", "read-only transaction", false);
    refuse("COMMIT", "[]", "returns no rows", false);
    refuse("COPY target TO STDOUT", "[]", "returns no rows", false);
    refuse("", "[]", "returns no rows", false);
    assert_string_equal(test_text(db.connection, "SELECT count(*) FROM target"), "0");
}

static void test_failures_are_retryable_only_where_that_can_help(void **state)
{
    (void)state;
    refuse("SELEC 1", "[]", "syntax error", false);
    /* Perhaps being loaded anew at this moment. */
    refuse("SELECT * FROM no_such", "[]", "\"no_such\" does not exist", true);
    assert_true(source_failure_is_retryable(STATUS_INVALID, "42501"));
    assert_true(source_failure_is_retryable(STATUS_INVALID, "3F000"));
    assert_false(source_failure_is_retryable(STATUS_INVALID, "42703"));
    refuse("SELECT 1/0", "[]", "division by zero", false);
    refuse("SELECT 1/(5-g) FROM generate_series(1,9) g", "[]", "division by zero", false);
    assert_true(source_failure_is_retryable(STATUS_AGAIN, ""));
    assert_true(source_failure_is_retryable(STATUS_AGAIN, "40001"));
    assert_true(source_failure_is_retryable(STATUS_AGAIN, "53300"));
    assert_true(source_failure_is_retryable(STATUS_TIMEOUT, "57014"));
    assert_true(source_failure_is_retryable(STATUS_INVALID, "XX000"));
    assert_false(source_failure_is_retryable(STATUS_NOT_FOUND, ""));
}

static void test_session_of_one_job_does_not_show_in_the_next(void **state)
{
    (void)state;
    expect("SELECT set_config('work_mem', '77MB', false) AS m, pg_advisory_lock(99)::text AS l",
           "[]", AS_CSV, "m,l\n77MB,\"\"\n");
    expect("SELECT current_setting('work_mem') = '77MB' AS same,"
           " (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 99"
           " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS "
           "locks",
           "[]", AS_CSV, "same,locks\nf,0\n");
}

static void test_waking_ends_a_query_and_the_server_stops(void **state)
{
    (void)state;
    struct job *j = job_make("SELECT pg_sleep(601)", "[]");
    struct source_wait wait = wait_of(20000);
    struct error err = {0};
    uint64_t one = 1;
    instant begun = clock_now();
    assert_int_equal(write(wake_fd, &one, sizeof one), sizeof one);
    assert_int_equal(source_query(source, j, &wait, &err), STATUS_TIMEOUT);
    source_end(source);
    assert_true(instant_ms_between(begun, clock_now()) < 15000); /* its own deadline: 20 s */
    assert_int_equal(read(wake_fd, &one, sizeof one), sizeof one);
    assert_true(test_wait_text(db.connection,
                               "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND"
                               " query LIKE '%pg_sleep(601)%' AND pid <> pg_backend_pid()"
                               " AND datname = current_database()",
                               "0", 20000));
    job_free(j);
    source_close(source);
    source = source_new(STATEMENT_MS);
}

static void test_deadline_ends_a_stream_that_never_pauses(void **state)
{
    (void)state;
    struct job *j = job_make("SELECT g FROM generate_series(1, 100000000) g", "[]");
    struct source_wait wait = wait_of(300);
    const struct source_cell *cells = NULL;
    struct error err = {0};
    enum status s = source_query(source, j, &wait, &err);
    while (s == STATUS_OK) {
        s = source_next(source, &wait, &cells, &err);
    }
    assert_int_equal(s, STATUS_TIMEOUT);
    source_end(source);
    job_free(j);
    if (source_is_broken(source)) {
        source_close(source);
        source = source_new(STATEMENT_MS);
    }
    expect("SELECT 1 AS one", "[]", AS_CSV, "one\n1\n");
}

/* VmHWM of this process in KiB; the peak is reset before. */
static int64_t peak_kib(bool reset)
{
    char line[256];
    int64_t kib = 0;
    if (reset) {
        FILE *f = fopen("/proc/self/clear_refs", "we");
        assert_non_null(f);
        (void)fputs("5", f);
        (void)fclose(f);
    }
    FILE *f = fopen("/proc/self/status", "re");
    assert_non_null(f);
    while (fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0) {
            kib = strtoll(line + 6, NULL, 10);
        }
    }
    (void)fclose(f);
    return kib;
}

static int64_t rows_count(const char *query)
{
    struct job *j = job_make(query, "[]");
    struct source_wait wait = wait_of(LONG_MS);
    const struct source_cell *cells = NULL;
    struct error err = {0};
    int64_t rows = 0;
    enum status s = source_query(source, j, &wait, &err);
    while (s == STATUS_OK && (s = source_next(source, &wait, &cells, &err)) == STATUS_OK) {
        rows++;
    }
    assert_int_equal(s, STATUS_NOT_FOUND);
    source_end(source);
    job_free(j);
    return rows;
}

static void test_memory_does_not_grow_with_the_result(void **state)
{
    (void)state;
    static const char few[] = "SELECT g, repeat('x', 100) FROM generate_series(1, 1000) g";
    /* The sanitizers' allocator keeps freed memory back, so the large one is smaller there. */
#ifdef __SANITIZE_ADDRESS__
    static const char many[] = "SELECT g, repeat('x', 100) FROM generate_series(1, 200000) g";
    const int64_t expected = 200000;
    const int64_t slack_kib = 600 * 1024;
#else
    static const char many[] = "SELECT g, repeat('x', 100) FROM generate_series(1, 2000000) g";
    const int64_t expected = 2000000;
    const int64_t slack_kib = 2048;
#endif
    source_close(source);
    source = source_new(LONG_MS);
    assert_int_equal(rows_count(few), 1000);
    (void)peak_kib(true);
    assert_int_equal(rows_count(few), 1000);
    int64_t small = peak_kib(false);
    (void)peak_kib(true);
    assert_int_equal(rows_count(many), expected);
    int64_t large = peak_kib(false);
    if (large > small + slack_kib) {
        print_error("peak %" PRId64 " KiB for 1 000 rows, %" PRId64 " KiB for %" PRId64 "\n", small,
                    large, expected);
        fail();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types_in_csv),
        cmocka_unit_test(test_types_in_json),
        cmocka_unit_test(test_csv_is_what_the_server_writes_itself),
        cmocka_unit_test(test_empty_results),
        cmocka_unit_test(test_parameters_are_quoted_by_the_client_library),
        cmocka_unit_test(test_built_ins_reach_the_query),
        cmocka_unit_test(test_bare_parameter_is_refused_and_foreign_colon_is_left_alone),
        cmocka_unit_test(test_only_one_statement_runs),
        cmocka_unit_test(test_source_is_only_read),
        cmocka_unit_test(test_failures_are_retryable_only_where_that_can_help),
        cmocka_unit_test(test_session_of_one_job_does_not_show_in_the_next),
        cmocka_unit_test(test_waking_ends_a_query_and_the_server_stops),
        cmocka_unit_test(test_deadline_ends_a_stream_that_never_pauses),
        cmocka_unit_test(test_memory_does_not_grow_with_the_result),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
