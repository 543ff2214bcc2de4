#include "close_dead_session.h"

#include <poll.h>
#include <string.h>

#include "after_death.h"
#include "crash_point.h"
#include "log.h"
#include "scheduler_settings.h"

#define PROOF_MS 2000 /* the kernel takes a killed process apart well within this */
#define CLOSE_MS 6000
/* Asked for as the session's timeout, which the servers raise to what they allow: a server that
 * hangs is left after two thirds of it, and the dead session, if it comes to that, expires sooner.
 */
#define ATTACH_MS  1500
#define LIMIT_MS   15000 /* of the whole command, whatever hangs (a resolver may) */
#define LOOK_MS    20    /* behind the library's events, in case one was lost */
#define ROUNDS_MAX 5

/* ---- the session ---- */

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

/* ---- the command ---- */

static int close_kept(const struct scheduler_settings *s, struct life_file *file)
{
    struct zk_session session;
    struct error err = {.text = ""};
    bool was_open = false;
    instant began = clock_now();
    enum status status = session_file_read(file, &session, &err);
    if (status == STATUS_NOT_FOUND) {
        log_event(LOG_LEVEL_INFO, "no dead session to close", "reason=%s",
                  log_quote(err.text).text);
        return AFTER_DEATH_NOTHING;
    }
    uint64_t id = status == STATUS_OK ? (uint64_t)session.id : 0;
    if (status == STATUS_OK) {
        CRASH_POINT("dead_session.before");
        status = session_close_dead(s->zookeeper, &session, instant_add_ms(began, CLOSE_MS),
                                    &was_open, &err);
        explicit_bzero(&session, sizeof session);
        CRASH_POINT("dead_session.after");
    }
    if (status != STATUS_OK) {
        log_event(LOG_LEVEL_ERROR, "dead session not closed, it expires", "id=0x%llx error=%s",
                  (unsigned long long)id, log_quote(err.text).text);
        return AFTER_DEATH_FAILED;
    }
    life_file_remove(file);
    log_event(LOG_LEVEL_INFO, was_open ? "dead session closed" : "dead session was over already",
              "id=0x%llx took_ms=%lld", (unsigned long long)id,
              (long long)instant_ms_between(began, clock_now()));
    return was_open ? AFTER_DEATH_DONE : AFTER_DEATH_NOTHING;
}

int close_dead_session(const void *settings)
{
    const struct scheduler_settings *s = settings;
    struct life_file *file = NULL;
    int code = after_death_take("session_file", s->session_file, PROOF_MS, LIMIT_MS, &file);
    if (file != NULL) {
        code = close_kept(s, file);
        life_file_free(file);
    }
    return code;
}
