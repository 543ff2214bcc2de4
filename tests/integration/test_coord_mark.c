/* The high-water mark on a real ZooKeeper ensemble: who may write it, and what is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "fixture_coord.h"
#include "fixture_database.h"
#include "log.h"

#define SOON_MS 15000

static const char first_job[] = "01890000-0001-7000-8000-000000000000";
static const char second_job[] = "01890000-0002-7000-8000-000000000000";

static void enroll(struct member *m, uint32_t attempt)
{
    assert_int_equal(coord_enroll(m->coord, m->scope, m->last.session, attempt), STATUS_OK);
    assert_true(expect_event(m, COORD_ENROLLED, SOON_MS));
}

static const char *read_mark(struct member *m)
{
    assert_int_equal(coord_read_mark(m->coord, m->scope), STATUS_OK);
    assert_true(expect_event(m, COORD_MARK, SOON_MS));
    return m->last.text;
}

/* It is written with a heartbeat, so now and then. */
static bool reads_soon(struct member *m, const char *mark)
{
    instant end = instant_add_ms(clock_now(), SOON_MS);
    while (strcmp(read_mark(m), mark) != 0) {
        if (!instant_before(clock_now(), end)) {
            print_error("the mark is \"%s\", not \"%s\"\n", m->last.text, mark);
            return false;
        }
        (void)poll(NULL, 0, 10);
    }
    return true;
}

static void test_mark_of_a_leader_is_read_by_its_successor(void **state)
{
    (void)state;
    char root[64];
    struct member a;
    struct member b;
    test_root(root);
    member_join(&a, root, NULL);
    member_join(&b, root, NULL);
    enroll(&a, 1);
    assert_true(expect_rank(&a, 0, SOON_MS));
    assert_string_equal(read_mark(&a), "");
    assert_int_equal(coord_write_mark(a.coord, a.scope, first_job), STATUS_OK);
    assert_true(reads_soon(&a, first_job));
    enroll(&b, 1);
    assert_true(expect_rank(&b, 1, SOON_MS));
    /* The last one counts, and what is left is written before the node goes. */
    assert_int_equal(coord_write_mark(a.coord, a.scope, first_job), STATUS_OK);
    assert_int_equal(coord_write_mark(a.coord, a.scope, second_job), STATUS_OK);
    assert_int_equal(coord_withdraw(a.coord, a.scope, 1), STATUS_OK);
    assert_true(expect_rank(&b, 0, SOON_MS));
    assert_string_equal(read_mark(&b), second_job);
    member_leave(&b);
    member_leave(&a);
}

static void test_mark_of_one_that_is_not_first_is_dropped(void **state)
{
    (void)state;
    char root[64];
    struct member a;
    struct member b;
    test_root(root);
    member_join(&a, root, NULL);
    member_join(&b, root, NULL);
    enroll(&a, 1);
    assert_true(expect_rank(&a, 0, SOON_MS));
    enroll(&b, 1);
    assert_true(expect_rank(&b, 1, SOON_MS));
    assert_string_equal(read_mark(&b), "");
    assert_int_equal(coord_write_mark(b.coord, b.scope, first_job), STATUS_OK);
    assert_string_equal(read_mark(&a), "");
    assert_int_equal(coord_write_mark(a.coord, a.scope, second_job), STATUS_OK);
    assert_true(reads_soon(&a, second_job));
    assert_string_equal(read_mark(&b), second_job);
    member_leave(&b);
    member_leave(&a);
}

static void test_mark_that_somebody_else_changed_is_read_again_before_it_is_written(void **state)
{
    (void)state;
    char root[64];
    char path[256];
    struct member a;
    struct operator_link *o = operator_connect();
    test_root(root);
    (void)snprintf(path, sizeof path, "%s/scopes/main/mark", root);
    member_join(&a, root, NULL);
    enroll(&a, 1);
    assert_true(expect_rank(&a, 0, SOON_MS));
    assert_string_equal(read_mark(&a), "");
    assert_int_equal(operator_create(o, path), ZK_OK); /* it knows of none */
    assert_int_equal(coord_write_mark(a.coord, a.scope, first_job), STATUS_OK);
    assert_true(reads_soon(&a, first_job));
    assert_int_equal(operator_write(o, path), ZK_OK);
    assert_string_equal(read_mark(&a), "");           /* "changed" is no job */
    assert_int_equal(operator_write(o, path), ZK_OK); /* another version */
    assert_int_equal(coord_write_mark(a.coord, a.scope, second_job), STATUS_OK);
    assert_true(reads_soon(&a, second_job));
    assert_int_equal(operator_delete(o, path), ZK_OK);
    assert_string_equal(read_mark(&a), "");
    assert_int_equal(coord_write_mark(a.coord, a.scope, first_job), STATUS_OK);
    assert_true(reads_soon(&a, first_job));
    member_leave(&a);
    operator_leave(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mark_of_a_leader_is_read_by_its_successor),
        cmocka_unit_test(test_mark_of_one_that_is_not_first_is_dropped),
        cmocka_unit_test(test_mark_that_somebody_else_changed_is_read_again_before_it_is_written),
    };
    (void)test_environment("RS_ZK");
    log_open("test_coord_mark", LOG_LEVEL_INFO);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
