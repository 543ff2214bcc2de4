#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "relay_window.h"

static const instant t0 = {INT64_C(1000000000000)};

static struct relay_window *fresh(size_t capacity)
{
    struct relay_window *w = window_new(capacity);
    assert_non_null(w);
    (void)window_low(w, t0); /* begins a reset period */
    return w;
}

static void test_a_row_in_hand_is_not_taken_twice(void **state)
{
    (void)state;
    struct relay_window *w = fresh(10);
    assert_true(window_fetched(w, 7));
    assert_false(window_fetched(w, 7));
    window_delivered(w, 7);
    assert_false(window_fetched(w, 7)); /* until it was deleted */
    window_gone(w, 7);
    assert_true(window_fetched(w, 7));
    window_free(w);
}

static void test_the_bound_follows_fetches_and_goes_back_in_time(void **state)
{
    (void)state;
    struct relay_window *w = fresh(10);
    assert_int_equal(window_low(w, t0), 0);
    (void)window_fetched(w, 5);
    (void)window_fetched(w, 9);
    assert_int_equal(window_low(w, t0), 9);
    assert_int_equal(window_low(w, instant_add_ms(t0, RELAY_RESET_MS - 1)), 9);
    assert_int_equal(window_low(w, instant_add_ms(t0, RELAY_RESET_MS)), 0);
    assert_true(window_fetched(w, 6)); /* committed late, below the bound: found after all */
    window_free(w);
}

static void test_a_failure_brings_the_row_back_at_once(void **state)
{
    (void)state;
    struct relay_window *w = fresh(10);
    (void)window_fetched(w, 5);
    (void)window_fetched(w, 6);
    window_failed(w, 5);
    assert_int_equal(window_low(w, t0), 0);
    assert_true(window_fetched(w, 5));
    assert_false(window_fetched(w, 6));
    window_free(w);
}

static void test_a_failure_is_not_forgotten_by_a_fetch_on_its_way(void **state)
{
    (void)state;
    struct relay_window *w = fresh(10);
    (void)window_fetched(w, 5);
    assert_int_equal(window_low(w, t0), 5); /* the fetch is sent with this bound */
    window_failed(w, 5);
    assert_true(window_fetched(w, 6)); /* and its answer is of before */
    assert_int_equal(window_low(w, t0), 0);
    assert_true(window_fetched(w, 5));
    assert_false(window_fetched(w, 6));
    assert_int_equal(window_low(w, t0), 6);
    window_free(w);
}

static void test_room_ends_at_the_capacity(void **state)
{
    (void)state;
    struct relay_window *w = fresh(3);
    assert_int_equal(window_room(w), 3);
    (void)window_fetched(w, 1);
    (void)window_fetched(w, 2);
    (void)window_fetched(w, 3);
    assert_int_equal(window_room(w), 0);
    assert_false(window_fetched(w, 4));
    window_delivered(w, 2);
    assert_int_equal(window_room(w), 0); /* still in the outbox */
    window_gone(w, 2);
    assert_int_equal(window_room(w), 1);
    window_free(w);
}

static void test_a_refused_row_is_tried_alone_before_it_is_buried(void **state)
{
    (void)state;
    struct relay_window *w = fresh(10);
    int64_t id = 0;
    (void)window_fetched(w, 1);
    (void)window_fetched(w, 2);
    assert_false(window_refused(w, 1)); /* in company */
    assert_int_equal(window_room(w), 0);
    assert_false(window_alone(w, &id)); /* 2 is still in flight */
    window_delivered(w, 2);
    assert_true(window_alone(w, &id));
    assert_int_equal(id, 1);
    window_sent_alone(w, 1);
    assert_false(window_alone(w, &id));
    assert_true(window_refused(w, 1)); /* now it is proved */
    window_gone(w, 1);
    assert_int_equal(window_room(w), 9);
    window_free(w);
}

static void test_a_row_that_passes_alone_is_delivered(void **state)
{
    (void)state;
    struct relay_window *w = fresh(10);
    int64_t id = 0;
    (void)window_fetched(w, 1);
    assert_false(window_refused(w, 1));
    assert_true(window_alone(w, &id));
    window_sent_alone(w, 1);
    window_delivered(w, 1);
    assert_int_equal(window_delivered_count(w), 1);
    assert_int_equal(window_deliveries(w, &id, 1), 1);
    assert_int_equal(id, 1);
    window_free(w);
}

static void test_without_a_producer_sent_rows_are_as_if_never_fetched(void **state)
{
    (void)state;
    struct relay_window *w = fresh(10);
    (void)window_fetched(w, 1);
    (void)window_fetched(w, 2);
    window_delivered(w, 2);
    window_forget_sent(w);
    assert_int_equal(window_low(w, t0), 0);
    assert_true(window_fetched(w, 1));
    assert_false(window_fetched(w, 2)); /* delivered: only to be deleted */
    window_free(w);
}

static void test_reports_about_unknown_rows_change_nothing(void **state)
{
    (void)state;
    struct relay_window *w = fresh(4);
    window_delivered(w, 9);
    window_failed(w, 9);
    assert_false(window_refused(w, 9));
    window_gone(w, 9);
    window_unfetch(w, 9);
    assert_int_equal(window_room(w), 4);
    assert_int_equal(window_delivered_count(w), 0);
    window_free(w);
}

/* ---- Nothing is lost, nothing is deleted without a report --------------------------------------
 */

#define ROWS        600
#define MODEL_FETCH 20

enum model_state {
    MODEL_UNBORN,
    MODEL_IN_OUTBOX,
    MODEL_DELETED,
    MODEL_BURIED,
};

struct model {
    enum model_state rows[ROWS];
    bool in_kafka[ROWS]; /* a report without error was given at least once */
    bool poison[ROWS];
    int64_t sent[ROWS];
    size_t sent_count;
    int64_t answer[MODEL_FETCH]; /* a fetch on its way: while there is one, nothing is deleted */
    size_t answer_count;
    uint64_t random;
};

static uint64_t model_random(struct model *m)
{
    m->random = m->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return m->random >> 33;
}

static void model_send(struct model *m, int64_t id)
{
    m->sent[m->sent_count++] = id;
}

/* The second half of a fetch: its rows are of the time when it was asked. */
static void model_answer(struct model *m, struct relay_window *w)
{
    for (size_t i = 0; i < m->answer_count; i++) {
        if (window_fetched(w, m->answer[i])) {
            model_send(m, m->answer[i]);
        }
    }
    m->answer_count = 0;
}

/* The first half, as the relay does it: id > low in id order up to the room. */
static void model_fetch(struct model *m, struct relay_window *w, instant now)
{
    if (m->answer_count > 0) {
        model_answer(m, w);
        return;
    }
    int64_t id = 0;
    if (window_alone(w, &id)) {
        window_sent_alone(w, id);
        model_send(m, id);
    }
    size_t room = window_room(w);
    int64_t low = window_low(w, now);
    size_t limit = room < MODEL_FETCH ? room : MODEL_FETCH;
    for (int64_t i = low + 1; i < ROWS && m->answer_count < limit; i++) {
        if (m->rows[i] == MODEL_IN_OUTBOX) {
            m->answer[m->answer_count++] = i;
        }
    }
}

static void model_report(struct model *m, struct relay_window *w)
{
    size_t k = model_random(m) % m->sent_count;
    int64_t id = m->sent[k];
    m->sent[k] = m->sent[--m->sent_count];
    if (m->poison[id]) {
        if (window_refused(w, id)) {
            model_answer(m, w);
            m->rows[id] = MODEL_BURIED;
            window_gone(w, id);
        }
    } else if (model_random(m) % 10 == 0) {
        window_failed(w, id);
    } else {
        m->in_kafka[id] = true;
        window_delivered(w, id);
    }
}

static void model_ack(struct model *m, struct relay_window *w)
{
    int64_t ids[50];
    model_answer(m, w); /* one statement at a time */
    size_t n = window_deliveries(w, ids, 50);
    for (size_t i = 0; i < n; i++) {
        assert_true(m->in_kafka[ids[i]]); /* never deleted without a report */
        m->rows[ids[i]] = MODEL_DELETED;
        window_gone(w, ids[i]);
    }
}

static void model_step(struct model *m, struct relay_window *w, instant now)
{
    switch (model_random(m) % 8) {
    case 0:
    case 1:
        model_fetch(m, w, now);
        break;
    case 2:
        model_ack(m, w);
        break;
    case 3:
        if (model_random(m) % 200 == 0) { /* the producer goes fatal: no report comes any more */
            m->sent_count = 0;
            window_forget_sent(w);
        }
        break;
    default:
        if (m->sent_count > 0) {
            model_report(m, w);
        }
        break;
    }
}

static void check_model(uint64_t seed)
{
    static struct model m;
    memset(&m, 0, sizeof m);
    m.random = seed;
    struct relay_window *w = window_new(1 + model_random(&m) % 60);
    instant now = t0;
    for (size_t i = 1; i < ROWS; i++) {
        m.poison[i] = model_random(&m) % 50 == 0;
    }
    size_t left = ROWS - 1;
    for (int step = 0; left > 0; step++) {
        assert_true(step < 400000);
        now = instant_add_ms(now, (int64_t)(model_random(&m) % 40));
        /* Rows become visible in any order, as transactions commit. */
        for (int i = 0; i < 3; i++) {
            size_t id = 1 + model_random(&m) % (ROWS - 1);
            if (m.rows[id] == MODEL_UNBORN) {
                m.rows[id] = MODEL_IN_OUTBOX;
            }
        }
        model_step(&m, w, now);
        left = 0;
        for (size_t i = 1; i < ROWS; i++) {
            left += m.rows[i] == MODEL_UNBORN || m.rows[i] == MODEL_IN_OUTBOX ? 1 : 0;
        }
    }
    for (size_t i = 1; i < ROWS; i++) {
        assert_int_equal(m.rows[i], m.poison[i] ? MODEL_BURIED : MODEL_DELETED);
    }
    assert_int_equal(window_sent_count(w), m.sent_count);
    window_free(w);
}

static void test_no_row_is_lost_and_none_is_deleted_without_a_report(void **state)
{
    (void)state;
    const char *given = getenv("RS_TEST_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : 20261130;
    print_message("RS_TEST_SEED=%llu\n", (unsigned long long)seed);
    for (uint64_t i = 0; i < 40; i++) {
        check_model(seed + i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_row_in_hand_is_not_taken_twice),
        cmocka_unit_test(test_the_bound_follows_fetches_and_goes_back_in_time),
        cmocka_unit_test(test_a_failure_brings_the_row_back_at_once),
        cmocka_unit_test(test_a_failure_is_not_forgotten_by_a_fetch_on_its_way),
        cmocka_unit_test(test_room_ends_at_the_capacity),
        cmocka_unit_test(test_a_refused_row_is_tried_alone_before_it_is_buried),
        cmocka_unit_test(test_a_row_that_passes_alone_is_delivered),
        cmocka_unit_test(test_without_a_producer_sent_rows_are_as_if_never_fetched),
        cmocka_unit_test(test_reports_about_unknown_rows_change_nothing),
        cmocka_unit_test(test_no_row_is_lost_and_none_is_deleted_without_a_report),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
