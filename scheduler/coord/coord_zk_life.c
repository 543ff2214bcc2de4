/* The session in the life file (session_file.h): written before it is used, removed when it was
 * closed in order; and what a killed predecessor left in it. The file saves time, nothing rests on
 * it: trouble with it is told, and the session goes on. */
#include <string.h>

#include "coord_zk.h"
#include "dead_session.h"
#include "log.h"

#define LEFTOVER_MS 3000 /* nothing else is to be done before: this process has no session yet */

/* A supervisor that only starts the daemon again has not closed it. */
void life_close_leftover(struct coord *c)
{
    struct zk_session session;
    struct error err = {.text = ""};
    bool was_open = false;
    if (c->life == NULL) {
        return;
    }
    enum status s = session_file_read(c->life, &session, &err);
    if (s == STATUS_NOT_FOUND) {
        return;
    }
    uint64_t id = s == STATUS_OK ? (uint64_t)session.id : 0;
    if (s == STATUS_OK) {
        s = session_close_dead(c->servers, &session, instant_add_ms(clock_now(), LEFTOVER_MS),
                               &was_open, &err);
        explicit_bzero(&session, sizeof session);
    }
    if (s != STATUS_OK) {
        log_event(LOG_LEVEL_WARN, "session of a killed predecessor not closed, it expires",
                  "id=0x%llx error=%s", (unsigned long long)id, log_quote(err.text).text);
    } else if (was_open) {
        log_event(LOG_LEVEL_INFO, "session of a killed predecessor closed", "id=0x%llx",
                  (unsigned long long)id);
    }
}

void life_keep_session(struct coord *c)
{
    struct zk_session session;
    struct error err = {.text = ""};
    if (c->life == NULL) {
        return;
    }
    zk_client_session(c->client, &session);
    if (session_file_write(c->life, &session, &err) != STATUS_OK) {
        life_file_remove(c->life); /* an older session in it is none to close for */
        log_event(LOG_LEVEL_WARN,
                  "session not kept: if this process is killed, it falls by expiry only",
                  "error=%s", log_quote(err.text).text);
    }
    explicit_bzero(&session, sizeof session);
}

void life_end_session(struct coord *c)
{
    /* Closed without a connection the session lives on: whoever comes after may still close it. */
    bool closes = c->client == NULL || zk_client_link(c->client) != ZK_LINK_DOWN;
    zk_client_close(c->client);
    c->client = NULL;
    if (c->life != NULL && closes) {
        life_file_remove(c->life);
    }
}
