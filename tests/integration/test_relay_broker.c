/* The broker dies and comes back under the relay. A program of its own: no other may need Kafka
 * meanwhile (tests/CMakeLists.txt lets it run alone). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture_relay.h"

static instant in_ms(int64_t ms)
{
    return instant_add_ms(clock_now(), ms);
}

static void test_a_killed_broker_keeps_rows_until_it_is_back(void **state)
{
    (void)state;
    static const char *const properties[] = {"message.timeout.ms=3000", NULL};
    struct relay_place where = {fixture_environment("RS_KAFKA"), fixture_topic("killed", 0),
                                properties};
    struct relay *r = relay_run(fixture_lead(), where);
    relay_rows(10, "before");
    relay_wake(r);
    assert_true(fixture_wait(relay_outbox_is_empty, NULL, 60000));
    fixture_stack("kill", "kafka");
    relay_rows(100, "during");
    relay_wake(r);
    assert_true(fixture_wait(relay_lost_kafka, r, 60000));
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.outbox"), 100);
    fixture_stack("start", "kafka");
    assert_true(fixture_wait(relay_outbox_is_empty, NULL, 60000));
    assert_true(fixture_wait(relay_has_kafka, r, 60000));
    relay_stop(r, in_ms(5000));
    assert_true(relay_read_jobs(where.topic, 110)); /* some of them twice, perhaps */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_killed_broker_keeps_rows_until_it_is_back),
    };
    return fixture_plan_run("test_relay_broker", tests, sizeof tests / sizeof tests[0],
                            relay_before_each);
}
