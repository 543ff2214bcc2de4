/* coord_zk_client.h: order, watches, what is certain after a lost connection, and how sessions end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "zookeeper_peer.h"

/* Nodes ---------------------------------------------------------------------------------------- */

static void test_candidates_get_growing_numbers_and_belong_to_the_session(void **state)
{
    (void)state;
    int64_t last = 0;
    for (int i = 0; i < 6; i++) {
        struct peer *p = i % 2 == 0 ? a : b;
        const struct zk_message *m = reply(p, create(p, "guid-n-", "x", ZK_CANDIDATE));
        assert_int_equal(m->answer, ZK_OK);
        assert_true(m->czxid > last);
        assert_true(m->owner == zk_client_session_id(p->client));
        assert_int_equal(strlen(m->text), strlen("guid-n-") + 10);
        assert_memory_equal(m->text, "guid-n-", strlen("guid-n-"));
        last = m->czxid;
        char name[sizeof m->text];
        memcpy(name, m->text, sizeof name);
        const struct zk_message *again = reply(p, get(p, name));
        assert_int_equal(again->answer, ZK_OK);
        assert_true(again->czxid == last);
        assert_true(again->owner == zk_client_session_id(p->client));
        assert_int_equal(again->version, 0);
        assert_string_equal(again->text, "x");
    }
}

static void test_a_node_is_made_once_and_only_below_a_node(void **state)
{
    (void)state;
    expect(a, create(a, "one", "first", ZK_PERSISTENT), ZK_OK);
    expect(a, create(a, "one", "second", ZK_PERSISTENT), ZK_NODE_EXISTS);
    expect(a, create(a, "one", "second", ZK_EPHEMERAL), ZK_NODE_EXISTS);
    expect(a, create(a, "none/one", "x", ZK_PERSISTENT), ZK_NO_NODE);
    expect(a, create(a, "none/guid-n-", "x", ZK_CANDIDATE), ZK_NO_NODE);
    const struct zk_message *m = reply(a, get(a, "one"));
    assert_string_equal(m->text, "first");
    assert_true(m->owner == 0);
}

static void test_what_is_not_there_is_told_so(void **state)
{
    (void)state;
    expect(a, get(a, "none"), ZK_NO_NODE);
    expect(a, watch(a, "none", 1), ZK_NO_NODE);
    expect(a, set(a, "none", "x"), ZK_NO_NODE);
    expect(a, set_version(a, "none", "x", 0), ZK_NO_NODE);
    expect(a, delete_(a, "none"), ZK_NO_NODE);
    expect(a, children(a, "none"), ZK_NO_NODE);
}

static void test_a_set_that_names_a_version_needs_that_version(void **state)
{
    (void)state;
    expect(a, create(a, "one", "0", ZK_PERSISTENT), ZK_OK);
    const struct zk_message *m = reply(a, set(a, "one", "1"));
    assert_int_equal(m->answer, ZK_OK);
    assert_int_equal(m->version, 1);
    m = reply(a, set_version(a, "one", "2", 1));
    assert_int_equal(m->answer, ZK_OK);
    assert_int_equal(m->version, 2);
    expect(b, set_version(b, "one", "other", 1), ZK_REFUSED);
    m = reply(a, get(a, "one"));
    assert_string_equal(m->text, "2");
    assert_int_equal(m->version, 2);
}

static void test_children_are_the_direct_ones(void **state)
{
    (void)state;
    expect(a, create(a, "one", "", ZK_PERSISTENT), ZK_OK);
    expect(a, create(a, "one/deep", "", ZK_PERSISTENT), ZK_OK);
    expect(a, create(a, "two", "", ZK_EPHEMERAL), ZK_OK);
    const struct zk_message *m = reply(a, children(a, ""));
    assert_int_equal(m->answer, ZK_OK);
    assert_non_null(m->names);
    assert_int_equal(m->names->count, 2);
    for (size_t i = 0; i < m->names->count; i++) {
        assert_true(strcmp(m->names->names[i], "one") == 0 ||
                    strcmp(m->names->names[i], "two") == 0);
    }
}

static void test_a_node_with_children_is_not_deleted(void **state)
{
    (void)state;
    expect(a, create(a, "one", "", ZK_PERSISTENT), ZK_OK);
    expect(a, create(a, "one/deep", "", ZK_PERSISTENT), ZK_OK);
    expect(a, delete_(a, "one"), ZK_REFUSED);
    expect(a, delete_(a, "one/deep"), ZK_OK);
    expect(a, delete_(a, "one"), ZK_OK);
    assert_false(is_there(b, "one"));
}

static void test_a_node_made_again_is_another_one(void **state)
{
    (void)state;
    int64_t before = reply(a, create(a, "one", "0", ZK_PERSISTENT))->czxid;
    expect(a, set(a, "one", "1"), ZK_OK);
    expect(a, delete_(a, "one"), ZK_OK);
    const struct zk_message *m = reply(a, create(a, "one", "0", ZK_PERSISTENT));
    assert_true(m->czxid > before);
    assert_int_equal(reply(a, get(a, "one"))->version, 0);
}

/* Order ---------------------------------------------------------------------------------------- */

static void test_answers_come_in_the_order_of_the_requests(void **state)
{
    (void)state;
    uint32_t ops[40];
    expect(a, create(a, "one", "-", ZK_PERSISTENT), ZK_OK);
    for (int i = 0; i < 40; i += 2) {
        char text[16];
        (void)snprintf(text, sizeof text, "%d", i);
        ops[i] = set(a, "one", text);
        ops[i + 1] = get(a, "one");
    }
    size_t last = 0;
    for (int i = 0; i < 40; i++) {
        size_t at = replied_at(a, ops[i]);
        assert_true(at > last);
        last = at;
    }
    for (int i = 1; i < 40; i += 2) { /* a read shows what was written before it */
        assert_int_equal(strtol(reply(a, ops[i])->text, NULL, 10), i - 1);
    }
}

static void test_a_read_after_sync_shows_what_others_were_acknowledged(void **state)
{
    (void)state;
    expect(b, create(b, "one", "-", ZK_PERSISTENT), ZK_OK);
    for (int i = 0; i < 20; i++) {
        char text[16];
        (void)snprintf(text, sizeof text, "%d", i);
        expect(b, set(b, "one", text), ZK_OK);
        (void)sync_(a, "one");
        assert_string_equal(reply(a, get(a, "one"))->text, text);
    }
}

/* Watches -------------------------------------------------------------------------------------- */

static void test_a_watch_fires_once(void **state)
{
    (void)state;
    expect(a, create(a, "one", "", ZK_PERSISTENT), ZK_OK);
    expect(a, watch(a, "one", 3), ZK_OK);
    expect(b, set(b, "one", "1"), ZK_OK);
    assert_true(find(a, 0, is_watch, 3, SOON_MS) != SIZE_MAX);
    expect(b, set(b, "one", "2"), ZK_OK);
    expect(b, delete_(b, "one"), ZK_OK);
    assert_false(is_there(a, "one"));
    let_pass(a, 200);
    assert_int_equal(watches_of(a, 3), 1);
}

static void test_each_scope_that_watches_a_node_is_told(void **state)
{
    (void)state;
    expect(a, create(a, "one", "", ZK_PERSISTENT), ZK_OK);
    expect(a, watch(a, "one", 1), ZK_OK);
    expect(a, watch(a, "one", 2), ZK_OK);
    expect(a, watch(a, "one", 2), ZK_OK); /* twice is once */
    expect(b, delete_(b, "one"), ZK_OK);
    assert_true(find(a, 0, is_watch, 1, SOON_MS) != SIZE_MAX);
    assert_true(find(a, 0, is_watch, 2, SOON_MS) != SIZE_MAX);
    let_pass(a, 200);
    assert_int_equal(watches_of(a, 1), 1);
    assert_int_equal(watches_of(a, 2), 1);
}

static void test_a_watch_is_told_before_the_answer_that_shows_the_change(void **state)
{
    (void)state;
    expect(b, create(b, "one", "-", ZK_PERSISTENT), ZK_OK);
    expect(a, sync_(a, "one"), ZK_OK);
    for (unsigned i = 0; i < 20; i++) {
        char text[16];
        bool shown = false;
        (void)snprintf(text, sizeof text, "%u", i);
        expect(a, watch(a, "one", 1), ZK_OK);
        size_t from = a->count;
        (void)set(b, "one", text);
        instant limit = instant_add_ms(clock_now(), SOON_MS);
        while (!shown && instant_before(clock_now(), limit)) {
            size_t at = replied_at(a, get(a, "one"));
            shown = strcmp(a->got[at].text, text) == 0;
            assert_true(!shown || find(a, from, is_watch, 1, 0) < at);
        }
        assert_true(shown);
    }
}

static void test_a_watch_is_told_before_the_answer_that_misses_the_node(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        bool gone = false;
        expect(b, create(b, "one", "-", ZK_EPHEMERAL), ZK_OK);
        expect(a, sync_(a, "one"), ZK_OK);
        expect(a, watch(a, "one", 1), ZK_OK);
        size_t from = a->count;
        (void)delete_(b, "one");
        instant limit = instant_add_ms(clock_now(), SOON_MS);
        while (!gone && instant_before(clock_now(), limit)) {
            size_t at = replied_at(a, i % 2 == 0 ? get(a, "one") : children(a, ""));
            gone = a->got[at].answer == ZK_NO_NODE ||
                   (a->got[at].names != NULL && a->got[at].names->count == 0);
            assert_true(!gone || find(a, from, is_watch, 1, 0) < at);
        }
        assert_true(gone);
    }
}

static void test_a_get_that_finds_nothing_leaves_no_watch(void **state)
{
    (void)state;
    expect(a, watch(a, "one", 5), ZK_NO_NODE);
    expect(b, create(b, "one", "", ZK_PERSISTENT), ZK_OK);
    expect(b, set(b, "one", "x"), ZK_OK);
    assert_true(is_there(a, "one"));
    let_pass(a, 200);
    assert_int_equal(watches_of(a, 5), 0);
}

/* Connections ---------------------------------------------------------------------------------- */

static void test_a_short_cut_keeps_session_nodes_and_watches(void **state)
{
    (void)state;
    int64_t session = zk_client_session_id(a->client);
    expect(a, create(a, "mine", "", ZK_EPHEMERAL), ZK_OK);
    expect(b, create(b, "other", "", ZK_PERSISTENT), ZK_OK);
    expect(a, sync_(a, ""), ZK_OK);
    expect(a, watch(a, "other", 7), ZK_OK);
    size_t from = a->count;
    contract_zk_cut();
    size_t down = find(a, from, is_link, ZK_LINK_DOWN, SOON_MS);
    assert_true(down != SIZE_MAX);
    assert_true(find(a, down, is_link, ZK_LINK_UP, SOON_MS) != SIZE_MAX);
    assert_true(zk_client_session_id(a->client) == session);
    assert_true(is_there(b, "mine"));
    assert_int_equal(watches_of(a, 7), 0);
    expect(b, delete_(b, "other"), ZK_OK);
    assert_true(find(a, 0, is_watch, 7, SOON_MS) != SIZE_MAX);
    assert_int_equal(watches_of(a, 7), 1);
}

static void test_what_changed_while_cut_off_is_told_after(void **state)
{
    (void)state;
    expect(b, create(b, "set", "", ZK_PERSISTENT), ZK_OK);
    expect(b, create(b, "gone", "", ZK_PERSISTENT), ZK_OK);
    expect(b, create(b, "same", "", ZK_PERSISTENT), ZK_OK);
    expect(a, sync_(a, ""), ZK_OK);
    expect(a, watch(a, "set", 1), ZK_OK);
    expect(a, watch(a, "gone", 2), ZK_OK);
    expect(a, watch(a, "same", 3), ZK_OK);
    contract_zk_way(WAY_CLOSED);
    assert_true(find(a, 0, is_link, ZK_LINK_DOWN, SOON_MS) != SIZE_MAX);
    expect(b, set(b, "set", "x"), ZK_OK);
    expect(b, delete_(b, "gone"), ZK_OK);
    assert_int_equal(watches_of(a, 1) + watches_of(a, 2), 0);
    contract_zk_way(WAY_OPEN);
    assert_true(find(a, 0, is_watch, 1, SOON_MS) != SIZE_MAX);
    assert_true(find(a, 0, is_watch, 2, SOON_MS) != SIZE_MAX);
    expect(a, sync_(a, ""), ZK_OK);
    let_pass(a, 200);
    assert_int_equal(watches_of(a, 1), 1);
    assert_int_equal(watches_of(a, 2), 1);
    assert_int_equal(watches_of(a, 3), 0);
}

/* The session goes on when answers come again in time. */
static void test_a_lost_answer_is_unsure_and_the_node_may_be_there(void **state)
{
    (void)state;
    int64_t session = zk_client_session_id(a->client);
    contract_zk_way(WAY_DEAF);
    uint32_t op = create(a, "one", "x", ZK_EPHEMERAL);
    size_t down = find(a, 0, is_link, ZK_LINK_DOWN, CONTRACT_SESSION_MS);
    assert_true(down != SIZE_MAX);
    size_t answered = replied_at(a, op);
    assert_int_equal(a->got[answered].answer, ZK_UNSURE);
    assert_true(down < answered); /* whoever reads it unsure knows already why */
    assert_true(is_there(b, "one"));
    contract_zk_way(WAY_OPEN);
    /* Either the session was in time, and the node is its own, or it has ended with the node. */
    instant limit = instant_add_ms(clock_now(), SOON_MS);
    while (find(a, down, is_link, ZK_LINK_UP, 0) == SIZE_MAX &&
           find(a, down, is_link, ZK_LINK_ENDED, 0) == SIZE_MAX) {
        assert_true(instant_before(clock_now(), limit));
        (void)peer_take(a, 50);
    }
    if (find(a, down, is_link, ZK_LINK_ENDED, 0) == SIZE_MAX) {
        const struct zk_message *m = reply(a, get(a, "one"));
        assert_int_equal(m->answer, ZK_OK);
        assert_true(m->owner == session);
    }
}

static void test_a_request_that_never_arrived_is_unsure_too(void **state)
{
    (void)state;
    contract_zk_way(WAY_HOLE);
    uint32_t op = create(a, "one", "x", ZK_PERSISTENT);
    expect(a, op, ZK_UNSURE);
    assert_false(is_there(b, "one"));
    contract_zk_way(WAY_OPEN); /* from here on it may still arrive: the packets are on their way */
}

/* As long as the connection holds, what is lost on the way is sent again. */
static void test_a_short_hole_is_a_delay_and_nothing_else(void **state)
{
    (void)state;
    expect(a, create(a, "one", "-", ZK_PERSISTENT), ZK_OK);
    for (int i = 0; i < 4; i++) {
        size_t from = a->count;
        contract_zk_way(i % 2 == 0 ? WAY_HOLE : WAY_OPEN);
        uint32_t first = set(a, "one", "x");
        uint32_t second = get(a, "one");
        let_pass(a, i % 2 == 0 ? CONTRACT_SESSION_MS / 6 : 0);
        contract_zk_way(WAY_OPEN);
        uint32_t third = get(a, "one");
        expect(a, first, ZK_OK);
        expect(a, second, ZK_OK);
        expect(a, third, ZK_OK);
        assert_true(replied_at(a, first) < replied_at(a, second));
        assert_true(replied_at(a, second) < replied_at(a, third));
        assert_true(find(a, from, is_link, ZK_LINK_DOWN, 0) == SIZE_MAX);
    }
}

/* What is asked while there is no connection: one answer, and no success without a connection. */
static void test_a_request_without_a_connection_is_answered_once(void **state)
{
    (void)state;
    contract_zk_way(WAY_CLOSED);
    assert_true(find(a, 0, is_link, ZK_LINK_DOWN, SOON_MS) != SIZE_MAX);
    uint32_t op = create(a, "one", "x", ZK_PERSISTENT);
    expect(a, op, ZK_UNSURE);
    assert_false(is_there(b, "one"));
    contract_zk_way(WAY_OPEN);
    let_pass(a, 500);
    size_t answers = 0;
    for (size_t i = 0; i < a->count; i++) {
        answers += is_reply(&a->got[i], op) ? 1 : 0;
    }
    assert_int_equal(answers, 1);
    assert_false(is_there(b, "one"));
}

/* Sessions ------------------------------------------------------------------------------------- */

/* Wait for a change of the link. False: this process stood still meanwhile, so that what it sees
 * may have happened long before. */
static bool sees_in_time(struct peer *p, enum zk_link link)
{
    bool in_time = true;
    instant limit = instant_add_ms(clock_now(), SOON_MS);
    size_t at = SIZE_MAX;
    while (at == SIZE_MAX) {
        instant begun = clock_now();
        assert_true(instant_before(begun, limit));
        at = find(p, 0, is_link, link, 20);
        in_time = in_time && instant_ms_between(begun, clock_now()) < CONTRACT_TICK_MS / 2;
    }
    return in_time;
}

static void test_a_cut_session_ends_by_the_servers_ticks(void **state)
{
    (void)state;
    expect(a, create(a, "mine", "", ZK_EPHEMERAL), ZK_OK);
    expect(b, sync_(b, ""), ZK_OK);
    expect(b, watch(b, "mine", 1), ZK_OK);
    instant cut = clock_now();
    contract_zk_way(WAY_HOLE);
    bool in_time = sees_in_time(a, ZK_LINK_DOWN);
    /* It knew before anybody could take its place. */
    (void)peer_take(b, 0);
    assert_true(!in_time || watches_of(b, 1) == 0);
    assert_true(find(b, 0, is_watch, 1, SOON_MS) != SIZE_MAX);
    int64_t after = instant_ms_between(cut, clock_now());
    /* The last sign of life is up to a third of a session old; ends are at whole ticks. */
    assert_true(after >= CONTRACT_SESSION_MS - CONTRACT_SESSION_MS / 3 - CONTRACT_TICK_MS);
    assert_true(contract_is_real() || /* there the machine may be busy */
                after <= CONTRACT_SESSION_MS + 2 * CONTRACT_TICK_MS);
    assert_false(is_there(b, "mine"));
    assert_true(find(a, 0, is_link, ZK_LINK_ENDED, 0) == SIZE_MAX); /* it cannot know yet */
    contract_zk_way(WAY_OPEN);
    assert_true(find(a, 0, is_link, ZK_LINK_ENDED, SOON_MS) != SIZE_MAX);
    struct zk_ticket *t = ticket(a);
    if (zk_client_get(a->client, t, below("mine")) == STATUS_OK) {
        expect(a, t->op, ZK_ENDED);
    }
}

static void test_a_closed_session_takes_its_nodes_along_at_once(void **state)
{
    (void)state;
    expect(a, create(a, "mine", "", ZK_EPHEMERAL), ZK_OK);
    expect(a, create(a, "stays", "", ZK_PERSISTENT), ZK_OK);
    expect(b, sync_(b, ""), ZK_OK);
    expect(b, watch(b, "mine", 1), ZK_OK);
    instant begun = clock_now();
    peer_close(a);
    assert_true(find(b, 0, is_watch, 1, SOON_MS) != SIZE_MAX);
    assert_true(instant_ms_between(begun, clock_now()) < CONTRACT_SESSION_MS / 2);
    assert_false(is_there(b, "mine"));
    assert_true(is_there(b, "stays"));
    a = peer_open(SIDE_EXPOSED);
}

/* The library's own thread may leave while its close still queues answers: those are lost. */
static void test_closing_answers_each_operation_once_at_most_and_nothing_after(void **state)
{
    (void)state;
    uint32_t ops[20];
    expect(a, create(a, "one", "", ZK_PERSISTENT), ZK_OK);
    contract_zk_way(WAY_DEAF);
    for (int i = 0; i < 20; i++) {
        ops[i] = i % 2 == 0 ? set(a, "one", "x") : get(a, "one");
    }
    zk_client_close(a->client);
    a->client = NULL;
    (void)peer_take(a, 0);
    size_t told = a->count;
    for (int i = 0; i < 20; i++) {
        size_t at = find(a, 0, is_reply, ops[i], 0);
        if (at != SIZE_MAX) {
            assert_true(a->got[at].answer == ZK_ENDED || a->got[at].answer == ZK_UNSURE);
            assert_true(find(a, at + 1, is_reply, ops[i], 0) == SIZE_MAX);
        }
    }
    (void)peer_take(a, 50);
    assert_true(a->count == told);
}

int contract_zookeeper(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, zookeeper_begin, zookeeper_end)
    const struct CMUnitTest tests[] = {
        CASE(test_candidates_get_growing_numbers_and_belong_to_the_session),
        CASE(test_a_node_is_made_once_and_only_below_a_node),
        CASE(test_what_is_not_there_is_told_so),
        CASE(test_a_set_that_names_a_version_needs_that_version),
        CASE(test_children_are_the_direct_ones),
        CASE(test_a_node_with_children_is_not_deleted),
        CASE(test_a_node_made_again_is_another_one),
        CASE(test_answers_come_in_the_order_of_the_requests),
        CASE(test_a_read_after_sync_shows_what_others_were_acknowledged),
        CASE(test_a_watch_fires_once),
        CASE(test_each_scope_that_watches_a_node_is_told),
        CASE(test_a_watch_is_told_before_the_answer_that_shows_the_change),
        CASE(test_a_watch_is_told_before_the_answer_that_misses_the_node),
        CASE(test_a_get_that_finds_nothing_leaves_no_watch),
        CASE(test_a_short_cut_keeps_session_nodes_and_watches),
        CASE(test_what_changed_while_cut_off_is_told_after),
        CASE(test_a_lost_answer_is_unsure_and_the_node_may_be_there),
        CASE(test_a_request_that_never_arrived_is_unsure_too),
        CASE(test_a_short_hole_is_a_delay_and_nothing_else),
        CASE(test_a_request_without_a_connection_is_answered_once),
        CASE(test_a_cut_session_ends_by_the_servers_ticks),
        CASE(test_a_closed_session_takes_its_nodes_along_at_once),
        CASE(test_closing_answers_each_operation_once_at_most_and_nothing_after),
    };
    return cmocka_run_group_tests_name("zookeeper", tests, NULL, NULL);
}
