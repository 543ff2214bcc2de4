#include "dead_session.h"

#include <poll.h>

/* Asked for as the session's timeout, which the servers raise to what they allow: a server that
 * hangs is left after two thirds of it, and the dead session, if it comes to that, expires sooner.
 */
#define ATTACH_MS  1500
#define LOOK_MS    20 /* behind the library's events, in case one was lost */
#define ROUNDS_MAX 5

/* Wait until the servers have said whether the session is there; DOWN at the deadline. */
static enum zk_link link_wait(const struct zk_client *client, struct inbox *inbox, instant deadline)
{
    for (;;) {
        struct zk_message m;
        while (inbox_take(inbox, &m)) {
        }
        enum zk_link link = zk_client_link(client);
        if (link != ZK_LINK_DOWN || !instant_before(clock_now(), deadline)) {
            return link;
        }
        struct pollfd fd = {.fd = inbox_fd(inbox), .events = POLLIN};
        int wait = instant_poll_timeout(clock_now(), deadline);
        (void)poll(&fd, 1, wait < LOOK_MS ? wait : LOOK_MS);
    }
}

/* Attach to the session and close it. OK: *ret_link says what it was. */
static enum status attach_and_close(const char *servers, const struct zk_session *session,
                                    instant deadline, enum zk_link *ret_link, struct error *err)
{
    struct zk_client *client = NULL;
    struct inbox *inbox = inbox_new(sizeof(struct zk_message), 64);
    if (inbox == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory");
    }
    const struct zk_client_options options = {.servers = servers,
                                              .session_ms = ATTACH_MS,
                                              .session = 1,
                                              .inbox = inbox,
                                              .attach = session};
    enum status s = zk_client_open(&options, &client, err);
    if (s == STATUS_OK) {
        *ret_link = link_wait(client, inbox, deadline);
        zk_client_close(client);
    }
    inbox_free(inbox);
    return s;
}

/* The library does not tell what became of the close, so ask until the session is not there. The
 * first close is what the successor waits for: asking again costs it nothing. */
enum status session_close_dead(const char *servers, const struct zk_session *session,
                               instant deadline, bool *ret_was_open, struct error *err)
{
    bool was_open = false;
    for (int i = 0; i < ROUNDS_MAX; i++) {
        enum zk_link link = ZK_LINK_DOWN;
        enum status s = attach_and_close(servers, session, deadline, &link, err);
        if (s != STATUS_OK) {
            return s;
        }
        if (link == ZK_LINK_ENDED) {
            *ret_was_open = was_open;
            return STATUS_OK;
        }
        if (link != ZK_LINK_UP) {
            break;
        }
        was_open = true;
    }
    return error_set(err, STATUS_TIMEOUT, "%s",
                     was_open ? "it is not known whether the session was closed; otherwise it "
                                "expires"
                              : "no ZooKeeper server answered in time; the session expires");
}
