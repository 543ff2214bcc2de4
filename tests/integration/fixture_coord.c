#include "fixture_coord.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture_database.h"

#define UP_MS 15000

static const char *const event_names[] = {
    "session up", "session lost", "suspended", "resumed",   "enrolled",
    "failed",     "rank",         "node lost", "withdrawn", "mark",
};

void test_root(char ret_root[64])
{
    char id[UUID_TEXT_MAX];
    uuid_random(id);
    (void)snprintf(ret_root, 64, "/rs-test/%s", id);
}

static void member_begin(struct member *m, const char *root, const char *servers,
                         const char *digest_file, int64_t session_ms)
{
    struct error err = {.text = ""};
    const struct coord_options options = {.servers =
                                              servers != NULL ? servers : test_environment("RS_ZK"),
                                          .root = root,
                                          .session_ms = session_ms,
                                          .tick_ms = TEST_TICK_MS,
                                          .margin_ms = TEST_MARGIN_MS,
                                          .name = "test",
                                          .url = "",
                                          .digest_file = digest_file};
    *m = (struct member){.events = inbox_new(sizeof(struct coord_event), 64)};
    if (m->events == NULL || coord_new(&options, &m->coord, &err) != STATUS_OK ||
        coord_add_scope(m->coord, "main", m->events, &m->scope, &err) != STATUS_OK ||
        coord_start(m->coord, &err) != STATUS_OK) {
        (void)fprintf(stderr, "cannot join: %s\n", err.text);
        exit(2);
    }
}

void member_try(struct member *m, const char *root, const char *servers, const char *digest_file)
{
    member_begin(m, root, servers, digest_file, TEST_SESSION_MS);
}

void member_join(struct member *m, const char *root, const char *servers)
{
    member_try(m, root, servers, NULL);
    assert_true(expect_event(m, COORD_SESSION_UP, UP_MS));
}

void member_join_for_long(struct member *m, const char *root, const char *servers)
{
    member_begin(m, root, servers, NULL, LONG_SESSION_MS);
    assert_true(expect_event(m, COORD_SESSION_UP, UP_MS));
}

void member_leave(struct member *m)
{
    assert_int_equal(coord_stop(m->coord, instant_add_ms(clock_now(), 10000)), STATUS_OK);
    coord_free(m->coord);
    inbox_free(m->events);
}

bool event_comes(struct member *m, enum coord_event_type type, int64_t limit_ms)
{
    instant end = instant_add_ms(clock_now(), limit_ms);
    for (;;) {
        while (inbox_take(m->events, &m->last)) {
            if (m->last.type == type) {
                return true;
            }
        }
        int wait_ms = instant_poll_timeout(clock_now(), end);
        if (wait_ms == 0) {
            return false;
        }
        struct pollfd fd = {.fd = inbox_fd(m->events), .events = POLLIN};
        (void)poll(&fd, 1, wait_ms);
    }
}

bool expect_event(struct member *m, enum coord_event_type type, int64_t limit_ms)
{
    bool came = event_comes(m, type, limit_ms);
    if (!came) {
        print_error("no event \"%s\" within %lld ms\n", event_names[type], (long long)limit_ms);
    }
    return came;
}

bool expect_rank(struct member *m, unsigned ahead, int64_t limit_ms)
{
    instant end = instant_add_ms(clock_now(), limit_ms);
    while (event_comes(m, COORD_RANK, instant_poll_timeout(clock_now(), end))) {
        if (m->last.ahead == ahead) {
            return true;
        }
    }
    print_error("no rank %u within %lld ms\n", ahead, (long long)limit_ms);
    return false;
}

/* Children ----------------------------------------------------------------------------------- */

struct child_report {
    bool is_lease;
    instant lease_until;
    struct coord_event event;
};

static void report(int to, const struct child_report *r)
{
    if (write(to, r, sizeof *r) != (ssize_t)sizeof *r) {
        _exit(3);
    }
}

static void child_loop(const char *root, int to)
{
    struct member m;
    uint32_t attempt = 0;
    int64_t told = -1;
    member_try(&m, root, NULL, NULL);
    for (;;) {
        struct pollfd fd = {.fd = inbox_fd(m.events), .events = POLLIN};
        struct child_report r = {.is_lease = false};
        (void)poll(&fd, 1, 10);
        while (inbox_take(m.events, &r.event)) {
            report(to, &r);
            if (r.event.type == COORD_SESSION_UP || r.event.type == COORD_NODE_LOST ||
                r.event.type == COORD_ENROLL_FAILED) {
                if (coord_enroll(m.coord, m.scope, r.event.session, ++attempt) != STATUS_OK) {
                    _exit(4);
                }
            }
        }
        instant until = lease_until(coord_lease(m.coord));
        if (until.ns != told) {
            told = until.ns;
            report(to, &(struct child_report){.is_lease = true, .lease_until = until});
        }
    }
}

void child_start(struct child *c, const char *root)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    *c = (struct child){.from = ends[0]};
    c->pid = fork();
    assert_true(c->pid >= 0);
    if (c->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)close(ends[0]);
        child_loop(root, ends[1]);
    }
    (void)close(ends[1]);
}

bool child_expects(struct child *c, enum coord_event_type type, int64_t limit_ms)
{
    instant end = instant_add_ms(clock_now(), limit_ms);
    for (;;) {
        struct pollfd fd = {.fd = c->from, .events = POLLIN};
        struct child_report r;
        int wait_ms = instant_poll_timeout(clock_now(), end);
        if (poll(&fd, 1, wait_ms) == 1 && read(c->from, &r, sizeof r) == (ssize_t)sizeof r) {
            if (r.is_lease) {
                c->lease_until = r.lease_until;
            } else if (r.event.type == type) {
                c->last = r.event;
                return true;
            }
        } else if (wait_ms == 0 || (fd.revents & POLLHUP) != 0) {
            print_error("child: no event \"%s\" within %lld ms\n", event_names[type],
                        (long long)limit_ms);
            return false;
        }
    }
}

void child_end(struct child *c)
{
    (void)kill(c->pid, SIGKILL);
    (void)waitpid(c->pid, NULL, 0);
    (void)close(c->from);
}

/* The operator ------------------------------------------------------------------------------- */

struct operator_link {
    struct zk_client *client;
    struct inbox *inbox;
    struct zk_ticket ticket;
};

static struct zk_message answer_to(struct operator_link *o, enum status sent)
{
    struct zk_message m = {.answer = ZK_REFUSED};
    instant end = instant_add_ms(clock_now(), UP_MS);
    assert_int_equal(sent, STATUS_OK);
    while (instant_before(clock_now(), end)) {
        struct pollfd fd = {.fd = inbox_fd(o->inbox), .events = POLLIN};
        (void)poll(&fd, 1, 100);
        while (inbox_take(o->inbox, &m)) {
            if (m.type == ZK_MESSAGE_REPLY) {
                return m;
            }
        }
    }
    fail_msg("ZooKeeper does not answer the operator");
    return m;
}

struct operator_link *operator_connect(void)
{
    struct operator_link *o = calloc(1, sizeof *o);
    assert_non_null(o);
    struct error err = {.text = ""};
    o->inbox = inbox_new(sizeof(struct zk_message), 64);
    o->ticket = (struct zk_ticket){.inbox = o->inbox};
    const struct zk_client_options options = {
        .servers = test_environment("RS_ZK"), .session_ms = 10000, .inbox = o->inbox};
    assert_int_equal(zk_client_open(&options, &o->client, &err), STATUS_OK);
    return o;
}

void operator_identify(struct operator_link *o, const char *digest)
{
    /* An identity can be told only over a link that is up. */
    instant end = instant_add_ms(clock_now(), UP_MS);
    while (zk_client_link(o->client) != ZK_LINK_UP && instant_before(clock_now(), end)) {
        (void)poll(NULL, 0, 10);
    }
    assert_int_equal(answer_to(o, zk_client_identify(o->client, &o->ticket, digest)).answer, ZK_OK);
}

/* Another server than the members' answers the operator: one that lags behind does not know yet
 * what they were told. */
static void catch_up(struct operator_link *o, const char *path)
{
    assert_int_equal(answer_to(o, zk_client_sync(o->client, &o->ticket, path)).answer, ZK_OK);
}

bool operator_sees_open(struct operator_link *o, const char *path)
{
    catch_up(o, path);
    struct zk_message m = answer_to(o, zk_client_access(o->client, &o->ticket, path));
    assert_int_equal(m.answer, ZK_OK);
    return m.open;
}

enum zk_answer operator_write(struct operator_link *o, const char *path)
{
    return answer_to(o, zk_client_set(o->client, &o->ticket, path, "changed")).answer;
}

enum zk_answer operator_delete(struct operator_link *o, const char *path)
{
    return answer_to(o, zk_client_delete(o->client, &o->ticket, path)).answer;
}

enum zk_answer operator_create(struct operator_link *o, const char *path)
{
    return answer_to(o, zk_client_create(o->client, &o->ticket, path, "", ZK_PERSISTENT)).answer;
}

int operator_count(struct operator_link *o, const char *path)
{
    catch_up(o, path);
    struct zk_message m = answer_to(o, zk_client_children(o->client, &o->ticket, path));
    int count = m.names != NULL ? (int)m.names->count : -1;
    free(m.names);
    return count;
}

void operator_leave(struct operator_link *o)
{
    zk_client_close(o->client);
    inbox_free(o->inbox);
    free(o);
}
