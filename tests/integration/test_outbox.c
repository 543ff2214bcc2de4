/* What the relay reads of the outbox, with a real PostgreSQL. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fixture_plan.h"
#include "store_outbox.h"

static bool index_was_read(void *argument)
{
    int64_t *before = argument;
    return fixture_count("SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = "
                         "'outbox_pkey'") > *before;
}

/* Statistics of an outbox are those of an empty one, as a rule. */
static void test_a_fetch_reads_its_rows_and_not_the_whole_backlog(void **state)
{
    (void)state;
    struct authority a = fixture_lead();
    struct outbox_row *rows = calloc(100, sizeof rows[0]);
    struct error err = {.text = ""};
    size_t n = 0;
    assert_non_null(rows);
    (void)fixture_sql("ANALYZE reports.outbox");
    (void)fixture_sql("INSERT INTO reports.outbox (scope, job_id, dispatch_number, schedule, "
                      "occurrence_key, queue, scheduled_for, generation) SELECT 'main', "
                      "gen_random_uuid(), 1, 'daily', 'k' || g, 'default', now(), 1 FROM "
                      "generate_series(1, 20000) g");
    (void)fixture_sql("SELECT pg_stat_force_next_flush()");
    int64_t before = fixture_count("SELECT idx_tup_read FROM pg_stat_user_indexes WHERE "
                                   "indexrelname = 'outbox_pkey'");
    struct store *store = fixture_plan_store();
    struct store_call call = {store, &a, instant_add_ms(clock_now(), 10000)};
    assert_int_equal(store_outbox_register(&call, &err), STATUS_OK);
    assert_int_equal(store_outbox_fetch(&call, 0, 100, rows, &n, &err), STATUS_OK);
    assert_int_equal(n, 100);
    store_close(store); /* what it read is counted now at the latest */
    assert_true(fixture_wait(index_was_read, &before, 10000));
    assert_in_range(fixture_count("SELECT idx_tup_read FROM pg_stat_user_indexes WHERE "
                                  "indexrelname = 'outbox_pkey'") -
                        before,
                    100, 200);
    free(rows);
}

static void test_a_row_comes_with_all_that_its_message_says(void **state)
{
    (void)state;
    struct authority a = fixture_lead();
    struct outbox_row row;
    struct error err = {.text = ""};
    size_t n = 0;
    (void)fixture_sql("INSERT INTO reports.outbox (scope, job_id, dispatch_number, schedule, "
                      "occurrence_key, queue, scheduled_for, generation, created_at) VALUES "
                      "('main', '0192A4C5-1b2c-7d3e-8f40-112233445566', 2, 'sales-daily', "
                      "'2030-04-12T06:00+02:00', 'default', '2030-04-12 04:00:00.25+00', "
                      "9007199254740993, '1969-12-31 23:59:59.5+00')");
    struct store *store = fixture_plan_store();
    struct store_call call = {store, &a, instant_add_ms(clock_now(), 10000)};
    assert_int_equal(store_outbox_fetch(&call, 0, 1, &row, &n, &err), STATUS_OK);
    assert_int_equal(n, 1);
    assert_int_equal(row.id, fixture_count("SELECT id FROM reports.outbox"));
    assert_string_equal(row.message.job_id, "0192a4c5-1b2c-7d3e-8f40-112233445566");
    assert_int_equal(row.message.dispatch_number, 2);
    assert_string_equal(row.message.schedule, "sales-daily");
    assert_string_equal(row.message.occurrence_key, "2030-04-12T06:00+02:00");
    assert_string_equal(row.message.queue, "default");
    assert_string_equal(row.message.scope, "main");
    assert_true(row.message.scheduled_for.us == INT64_C(1902196800250000));
    assert_true(row.message.generation == INT64_C(9007199254740993));
    assert_true(row.created_at.us == -500000);
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_fetch_reads_its_rows_and_not_the_whole_backlog),
        cmocka_unit_test(test_a_row_comes_with_all_that_its_message_says),
    };
    return fixture_plan_run("test_outbox", tests, sizeof tests / sizeof tests[0], NULL);
}
