/* The lifecycle's table against the edges it may have, and walks through it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "lifecycle.h"

#define TO(state) (1U << LIFECYCLE_##state)

/* Where each state may lead by itself, plus two sentences for any state: a lost session leads
 * to DOWN; a stop leads to RELEASING where there is a node, otherwise to STOPPED. */
static const unsigned allowed[LIFECYCLE_STATES] = {
    [LIFECYCLE_DOWN] = TO(CONNECTING) | TO(STOPPED),
    [LIFECYCLE_CONNECTING] = TO(ENROLLING) | TO(DOWN) | TO(STOPPED),
    [LIFECYCLE_HELD] = TO(ENROLLING) | TO(CONNECTING) | TO(DOWN) | TO(STOPPED),
    [LIFECYCLE_ENROLLING] =
        TO(FOLLOWING) | TO(ESTABLISHING) | TO(HELD) | TO(DOWN) | TO(RELEASING) | TO(STOPPED),
    [LIFECYCLE_FOLLOWING] = TO(ESTABLISHING) | TO(ENROLLING) | TO(DOWN) | TO(RELEASING),
    [LIFECYCLE_ESTABLISHING] =
        TO(PREPARING) | TO(ENROLLING) | TO(SUSPENDED) | TO(RELEASING) | TO(DOWN),
    [LIFECYCLE_PREPARING] =
        TO(ACTIVE) | TO(ESTABLISHING) | TO(SUSPENDED) | TO(RELEASING) | TO(DOWN),
    [LIFECYCLE_ACTIVE] = TO(ESTABLISHING) | TO(SUSPENDED) | TO(DRAINING) | TO(RELEASING) | TO(DOWN),
    [LIFECYCLE_SUSPENDED] = TO(ESTABLISHING) | TO(DOWN) | TO(RELEASING),
    [LIFECYCLE_DRAINING] = TO(SUSPENDED) | TO(RELEASING) | TO(DOWN),
    [LIFECYCLE_RELEASING] = TO(ENROLLING) | TO(HELD) | TO(STOPPED) | TO(DOWN),
    [LIFECYCLE_STOPPED] = 0,
};

static struct lifecycle in(enum lifecycle_state state)
{
    struct lifecycle l = {.state = state, .session = true};
    l.node = state == LIFECYCLE_FOLLOWING || state == LIFECYCLE_ESTABLISHING ||
             state == LIFECYCLE_PREPARING || state == LIFECYCLE_ACTIVE ||
             state == LIFECYCLE_SUSPENDED || state == LIFECYCLE_DRAINING ||
             state == LIFECYCLE_RELEASING;
    return l;
}

static void test_table_has_the_edges_it_may_have_and_no_other(void **state)
{
    (void)state;
    unsigned seen[LIFECYCLE_STATES] = {0};
    const struct lifecycle_row *row = NULL;
    for (size_t i = 0; (row = lifecycle_row_at(i)) != NULL; i++) {
        if (row->next == row->state) {
            continue;
        }
        if ((allowed[row->state] & (1U << row->next)) == 0) {
            fail_msg("the design has no edge %s -> %s", lifecycle_state_name(row->state),
                     lifecycle_state_name(row->next));
        }
        seen[row->state] |= 1U << row->next;
    }
    for (size_t s = 0; s < LIFECYCLE_STATES; s++) {
        for (unsigned n = 0; n < LIFECYCLE_STATES; n++) {
            if ((allowed[s] & ~seen[s] & (1U << n)) != 0) {
                fail_msg("the table lacks %s -> %s", lifecycle_state_name((enum lifecycle_state)s),
                         lifecycle_state_name((enum lifecycle_state)n));
            }
        }
    }
}

static void test_every_row_is_taken_when_its_state_event_and_guard_fit(void **state)
{
    (void)state;
    const struct lifecycle_row *row = NULL;
    for (size_t i = 0; (row = lifecycle_row_at(i)) != NULL; i++) {
        struct lifecycle l = in(row->state);
        l.node = row->guard == LIFECYCLE_WITH_NODE || (l.node && row->guard == LIFECYCLE_ALWAYS);
        l.session = row->guard != LIFECYCLE_WITHOUT_SESSION;
        l.stopping = row->guard == LIFECYCLE_STOPPING;
        l.holding = row->guard == LIFECYCLE_HOLDING;
        struct lifecycle_outcome out = lifecycle_step(&l, row->event);
        if (out.row != row) {
            fail_msg("row %zu (%s, %s) is shadowed", i, lifecycle_state_name(row->state),
                     lifecycle_event_name(row->event));
        }
        assert_int_equal(out.from, row->state);
        assert_int_equal(out.commands, row->commands);
        assert_int_equal(l.state, row->next);
        if (row->reason != LIFECYCLE_REASON_NONE) {
            assert_int_equal(l.reason, row->reason);
        }
    }
}

static void test_only_preparing_active_and_draining_may_write(void **state)
{
    (void)state;
    for (size_t i = 0; i < LIFECYCLE_STATES; i++) {
        enum lifecycle_state s = (enum lifecycle_state)i;
        bool fenced = s == LIFECYCLE_PREPARING || s == LIFECYCLE_ACTIVE || s == LIFECYCLE_DRAINING;
        assert_int_equal(lifecycle_may_write(s), fenced);
        enum lifecycle_write expect = fenced                        ? LIFECYCLE_WRITES_FENCED
                                      : s == LIFECYCLE_ESTABLISHING ? LIFECYCLE_WRITES_ESTABLISH
                                      : s == LIFECYCLE_RELEASING    ? LIFECYCLE_WRITES_RELEASE
                                                                    : LIFECYCLE_WRITES_NOTHING;
        assert_int_equal(lifecycle_meaning_of(s)->write, expect);
    }
}

static void test_lost_session_leads_to_down_from_any_state(void **state)
{
    (void)state;
    for (size_t i = 0; i < LIFECYCLE_STATES; i++) {
        struct lifecycle l = in((enum lifecycle_state)i);
        struct lifecycle_outcome out = lifecycle_step(&l, LIFECYCLE_EV_SESSION_LOST);
        bool final = i == LIFECYCLE_STOPPED;
        assert_int_equal(l.state, final ? LIFECYCLE_STOPPED : LIFECYCLE_DOWN);
        if (!final) {
            assert_false(l.node);
            assert_false(l.session);
        }
        if (!final && i != LIFECYCLE_DOWN) {
            assert_true((out.commands & LIFECYCLE_DO_BACKOFF) != 0);
        }
        if (i == LIFECYCLE_ACTIVE || i == LIFECYCLE_DRAINING) {
            assert_true((out.commands & LIFECYCLE_DO_STOP_RELAY) != 0);
            assert_int_equal(l.reason, LIFECYCLE_REASON_SESSION_EXPIRED);
        }
    }
}

static void test_stop_releases_where_there_is_a_node_and_stops_otherwise(void **state)
{
    (void)state;
    for (size_t i = 0; i < LIFECYCLE_STATES; i++) {
        for (int node = 0; node < 2; node++) {
            struct lifecycle l = in((enum lifecycle_state)i);
            if (i == LIFECYCLE_ENROLLING) {
                l.node = node == 1;
            }
            enum lifecycle_state expect = l.node ? LIFECYCLE_RELEASING : LIFECYCLE_STOPPED;
            if (i == LIFECYCLE_ACTIVE || i == LIFECYCLE_DRAINING) {
                expect = LIFECYCLE_DRAINING; /* which leads to RELEASING */
            }
            (void)lifecycle_step(&l, LIFECYCLE_EV_STOP);
            assert_int_equal(l.state, expect);
        }
    }
}

static void test_stopping_scope_never_enrolls_again_after_release(void **state)
{
    (void)state;
    struct lifecycle l = in(LIFECYCLE_ACTIVE);
    (void)lifecycle_step(&l, LIFECYCLE_EV_STOP);
    (void)lifecycle_step(&l, LIFECYCLE_EV_FENCED);
    assert_int_equal(l.state, LIFECYCLE_RELEASING);
    (void)lifecycle_step(&l, LIFECYCLE_EV_HOLD_FOUND);
    (void)lifecycle_step(&l, LIFECYCLE_EV_RELEASED);
    assert_int_equal(l.state, LIFECYCLE_STOPPED);
}

/* Every way out of ACTIVE other than a stop tells why. */
static void test_leaving_active_records_the_reason(void **state)
{
    (void)state;
    const struct {
        enum lifecycle_event event;
        enum lifecycle_state next;
        enum lifecycle_reason reason;
    } cases[] = {
        {LIFECYCLE_EV_STOP, LIFECYCLE_DRAINING, LIFECYCLE_REASON_STOPPED},
        {LIFECYCLE_EV_HANDOFF, LIFECYCLE_DRAINING, LIFECYCLE_REASON_HANDOFF},
        {LIFECYCLE_EV_SUSPENDED, LIFECYCLE_SUSPENDED, LIFECYCLE_REASON_SUSPENDED},
        {LIFECYCLE_EV_SESSION_LOST, LIFECYCLE_DOWN, LIFECYCLE_REASON_SESSION_EXPIRED},
        {LIFECYCLE_EV_NODE_LOST, LIFECYCLE_RELEASING, LIFECYCLE_REASON_NODE_LOST},
        {LIFECYCLE_EV_LEASE_EXPIRED, LIFECYCLE_RELEASING, LIFECYCLE_REASON_LEASE_EXPIRED},
        {LIFECYCLE_EV_FENCED, LIFECYCLE_RELEASING, LIFECYCLE_REASON_FENCED},
        {LIFECYCLE_EV_DATABASE_UNHEALTHY, LIFECYCLE_RELEASING, LIFECYCLE_REASON_DATABASE_UNHEALTHY},
        {LIFECYCLE_EV_DATABASE_MOVED, LIFECYCLE_ESTABLISHING, LIFECYCLE_REASON_DATABASE_MOVED},
        {LIFECYCLE_EV_STUCK, LIFECYCLE_RELEASING, LIFECYCLE_REASON_STUCK},
        {LIFECYCLE_EV_HOLD_FOUND, LIFECYCLE_RELEASING, LIFECYCLE_REASON_HELD},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lifecycle l = in(LIFECYCLE_ACTIVE);
        (void)lifecycle_step(&l, cases[i].event);
        assert_int_equal(l.state, cases[i].next);
        assert_int_equal(l.reason, cases[i].reason);
    }
}

static void test_leader_that_hands_over_drains_releases_and_enrolls_again(void **state)
{
    (void)state;
    struct lifecycle l = in(LIFECYCLE_ACTIVE);
    struct lifecycle_outcome out = lifecycle_step(&l, LIFECYCLE_EV_HANDOFF);
    assert_int_equal(out.commands, LIFECYCLE_DO_DRAIN);
    out = lifecycle_step(&l, LIFECYCLE_EV_DRAINED);
    assert_true((out.commands & LIFECYCLE_DO_RELEASE) != 0);
    assert_int_equal(l.reason, LIFECYCLE_REASON_HANDOFF);
    out = lifecycle_step(&l, LIFECYCLE_EV_RELEASED);
    assert_int_equal(l.state, LIFECYCLE_ENROLLING);
    assert_int_equal(out.commands, LIFECYCLE_DO_BACKOFF);
    assert_false(l.node);
}

static void test_only_a_follower_stands_aside_and_asks_the_database_before_it_enrolls(void **state)
{
    (void)state;
    for (size_t i = 0; i < LIFECYCLE_STATES; i++) {
        struct lifecycle l = in((enum lifecycle_state)i);
        struct lifecycle_outcome out = lifecycle_step(&l, LIFECYCLE_EV_STAND_ASIDE);
        if (i != LIFECYCLE_FOLLOWING) {
            assert_int_equal(l.state, i);
            assert_int_equal(out.commands, 0);
            continue;
        }
        assert_int_equal(l.state, LIFECYCLE_ENROLLING);
        assert_int_equal(out.commands, LIFECYCLE_DO_WITHDRAW | LIFECYCLE_DO_MEET);
        assert_false(l.node);
        out = lifecycle_step(&l, LIFECYCLE_EV_ENSEMBLE_KNOWN);
        assert_int_equal(out.commands, LIFECYCLE_DO_ENROLL);
    }
}

static void test_suspended_leader_comes_back_only_through_establishing(void **state)
{
    (void)state;
    struct lifecycle l = in(LIFECYCLE_ACTIVE);
    struct lifecycle_outcome out = lifecycle_step(&l, LIFECYCLE_EV_SUSPENDED);
    assert_true((out.commands & LIFECYCLE_DO_CANCEL) != 0);
    assert_false(lifecycle_may_write(l.state));
    out = lifecycle_step(&l, LIFECYCLE_EV_RESUMED);
    assert_int_equal(l.state, LIFECYCLE_ESTABLISHING);
    assert_true((out.commands & LIFECYCLE_DO_ESTABLISH) != 0);
    assert_true(l.node);
}

static void test_hold_found_while_leading_is_held_only_after_release(void **state)
{
    (void)state;
    struct lifecycle l = in(LIFECYCLE_ACTIVE);
    (void)lifecycle_step(&l, LIFECYCLE_EV_HOLD_FOUND);
    assert_int_equal(l.state, LIFECYCLE_RELEASING);
    (void)lifecycle_step(&l, LIFECYCLE_EV_RELEASED);
    assert_int_equal(l.state, LIFECYCLE_HELD);
    assert_false(l.node);
    (void)lifecycle_step(&l, LIFECYCLE_EV_LIFTED);
    assert_int_equal(l.state, LIFECYCLE_ENROLLING);
}

static void test_suspect_clock_ends_a_leadership_and_a_hold_meanwhile_is_held(void **state)
{
    (void)state;
    static const enum lifecycle_state leading[] = {LIFECYCLE_ESTABLISHING, LIFECYCLE_PREPARING,
                                                   LIFECYCLE_ACTIVE};
    for (size_t i = 0; i < sizeof leading / sizeof leading[0]; i++) {
        struct lifecycle l = in(leading[i]);
        (void)lifecycle_step(&l, LIFECYCLE_EV_CLOCK_SUSPECT);
        assert_int_equal(l.state, LIFECYCLE_RELEASING);
        assert_int_equal(l.reason, LIFECYCLE_REASON_CLOCK_SUSPECT);
        struct lifecycle other = l;
        (void)lifecycle_step(&other, LIFECYCLE_EV_RELEASED);
        assert_int_equal(other.state, LIFECYCLE_ENROLLING);
        (void)lifecycle_step(&l, LIFECYCLE_EV_HOLD_FOUND);
        (void)lifecycle_step(&l, LIFECYCLE_EV_RELEASED);
        assert_int_equal(l.state, LIFECYCLE_HELD);
    }
    struct lifecycle follower = in(LIFECYCLE_FOLLOWING);
    (void)lifecycle_step(&follower, LIFECYCLE_EV_CLOCK_SUSPECT);
    assert_int_equal(follower.state, LIFECYCLE_FOLLOWING);
}

static void test_rank_without_a_node_means_nothing(void **state)
{
    (void)state;
    struct lifecycle l = in(LIFECYCLE_ENROLLING);
    assert_null(lifecycle_step(&l, LIFECYCLE_EV_RANK_FIRST).row);
    assert_int_equal(l.state, LIFECYCLE_ENROLLING);
}

static uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

/* Events a shell in that state can be expected to produce until it has stopped. */
static void walk_to_stopped(struct lifecycle *l)
{
    for (int turn = 0; turn < 4 && l->state != LIFECYCLE_STOPPED; turn++) {
        (void)lifecycle_step(l, LIFECYCLE_EV_STOP);
        (void)lifecycle_step(l, LIFECYCLE_EV_DRAINED);
        (void)lifecycle_step(l, LIFECYCLE_EV_RELEASED);
    }
}

static void test_random_walks_keep_the_rules_and_reach_stopped(void **state)
{
    (void)state;
    const char *given = getenv("RS_TEST_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)clock_now().ns;
    print_message("seed %llu (RS_TEST_SEED repeats it)\n", (unsigned long long)seed);
    uint64_t x = seed * 2654435769U + 1;
    for (int walk = 0; walk < 2000; walk++) {
        struct lifecycle l = {.state = LIFECYCLE_DOWN};
        for (int i = 0; i < 200; i++) {
            enum lifecycle_event e = (enum lifecycle_event)(next_random(&x) % LIFECYCLE_EVENTS);
            if (e == LIFECYCLE_EV_STOP && next_random(&x) % 50 != 0) {
                continue; /* or every walk would end at once */
            }
            enum lifecycle_state from = l.state;
            struct lifecycle_outcome out = lifecycle_step(&l, e);
            assert_int_equal(out.from, from);
            assert_true(l.state == from || (allowed[from] & (1U << l.state)) != 0);
            bool writes = lifecycle_may_write(l.state);
            assert_true(!writes || l.state == LIFECYCLE_PREPARING || l.state == LIFECYCLE_ACTIVE ||
                        l.state == LIFECYCLE_DRAINING);
            /* Work begins only after the fence row accepted us. */
            if (writes && !lifecycle_may_write(from)) {
                assert_int_equal(from, LIFECYCLE_ESTABLISHING);
                assert_int_equal(e, LIFECYCLE_EV_ESTABLISHED);
            }
            /* Whoever leaves a leading state ends its relay. */
            if (from == LIFECYCLE_ACTIVE && l.state != from && l.state != LIFECYCLE_DRAINING) {
                assert_true((out.commands & LIFECYCLE_DO_STOP_RELAY) != 0);
            }
            /* A node is deleted by RELEASING, or by the withdraw of a superseded one. */
            if (l.state == LIFECYCLE_RELEASING && from != l.state) {
                assert_true((out.commands & LIFECYCLE_DO_RELEASE) != 0);
            }
        }
        walk_to_stopped(&l);
        assert_int_equal(l.state, LIFECYCLE_STOPPED);
    }
}

static void test_printed_table_names_every_state_and_row(void **state)
{
    (void)state;
    for (int f = LIFECYCLE_TEXT; f <= LIFECYCLE_MARKDOWN; f++) {
        char *text = NULL;
        size_t size = 0;
        FILE *to = open_memstream(&text, &size);
        assert_non_null(to);
        lifecycle_print(to, (enum lifecycle_format)f);
        assert_int_equal(fclose(to), 0);
        for (size_t s = 0; s < LIFECYCLE_STATES; s++) {
            assert_non_null(strstr(text, lifecycle_meaning_of((enum lifecycle_state)s)->meaning));
        }
        const struct lifecycle_row *row = NULL;
        for (size_t i = 0; (row = lifecycle_row_at(i)) != NULL; i++) {
            assert_non_null(strstr(text, row->comment));
            assert_string_not_equal(lifecycle_event_name(row->event), "?");
        }
        free(text);
    }
}

static void test_every_state_event_and_reason_has_a_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < LIFECYCLE_STATES; i++) {
        assert_non_null(lifecycle_state_name((enum lifecycle_state)i));
    }
    for (size_t i = 0; i < LIFECYCLE_EVENTS; i++) {
        assert_non_null(lifecycle_event_name((enum lifecycle_event)i));
    }
    for (size_t i = 0; i < LIFECYCLE_REASONS; i++) {
        assert_non_null(lifecycle_reason_name((enum lifecycle_reason)i));
    }
}

static void test_the_page_in_docs_is_fresh(void **state)
{
    (void)state;
    char *want = NULL;
    size_t want_size = 0;
    FILE *to = open_memstream(&want, &want_size);
    assert_non_null(to);
    lifecycle_print(to, LIFECYCLE_MARKDOWN);
    assert_int_equal(fclose(to), 0);
    FILE *file = fopen(TEST_SOURCE_DIR "/../docs/lifecycle.md", "r");
    if (file == NULL) {
        fail_msg("docs/lifecycle.md is missing: print it with reportctl lifecycle -o markdown");
    }
    char *have = calloc(1, want_size + 2);
    assert_non_null(have);
    size_t n = fread(have, 1, want_size + 1, file);
    assert_int_equal(fclose(file), 0);
    if (n != want_size || memcmp(have, want, want_size) != 0) {
        fail_msg("docs/lifecycle.md is stale: print it with reportctl lifecycle -o markdown");
    }
    free(have);
    free(want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_has_the_edges_it_may_have_and_no_other),
        cmocka_unit_test(test_every_row_is_taken_when_its_state_event_and_guard_fit),
        cmocka_unit_test(test_only_preparing_active_and_draining_may_write),
        cmocka_unit_test(test_lost_session_leads_to_down_from_any_state),
        cmocka_unit_test(test_stop_releases_where_there_is_a_node_and_stops_otherwise),
        cmocka_unit_test(test_stopping_scope_never_enrolls_again_after_release),
        cmocka_unit_test(test_leaving_active_records_the_reason),
        cmocka_unit_test(test_leader_that_hands_over_drains_releases_and_enrolls_again),
        cmocka_unit_test(test_only_a_follower_stands_aside_and_asks_the_database_before_it_enrolls),
        cmocka_unit_test(test_suspended_leader_comes_back_only_through_establishing),
        cmocka_unit_test(test_hold_found_while_leading_is_held_only_after_release),
        cmocka_unit_test(test_suspect_clock_ends_a_leadership_and_a_hold_meanwhile_is_held),
        cmocka_unit_test(test_rank_without_a_node_means_nothing),
        cmocka_unit_test(test_random_walks_keep_the_rules_and_reach_stopped),
        cmocka_unit_test(test_printed_table_names_every_state_and_row),
        cmocka_unit_test(test_every_state_event_and_reason_has_a_name),
        cmocka_unit_test(test_the_page_in_docs_is_fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
