#include "canceller.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "coord.h"
#include "thread_join.h"

#define STOP_INDEX SIZE_MAX

struct canceller {
    struct inbox *urgent; /* borrowed: struct coord_event */
    struct inbox *asked;  /* size_t: index of a scope, or STOP_INDEX */
    struct scope *const *scopes;
    size_t count;
    pthread_t thread;
};

/* Suspension and loss concern every scope of the process, and each is told once for each scope:
 * take them all, cancel once. */
static bool take_urgent(struct canceller *c)
{
    struct coord_event e;
    bool some = false;
    while (inbox_take(c->urgent, &e)) {
        some = true;
    }
    return some;
}

static void *canceller_thread(void *argument)
{
    struct canceller *c = argument;
    for (;;) {
        struct pollfd fds[2] = {{.fd = inbox_fd(c->urgent), .events = POLLIN},
                                {.fd = inbox_fd(c->asked), .events = POLLIN}};
        (void)poll(fds, 2, 1000);
        if (take_urgent(c)) {
            for (size_t i = 0; i < c->count; i++) {
                scope_cancel_statement(c->scopes[i]);
            }
        }
        size_t index = 0;
        while (inbox_take(c->asked, &index)) {
            if (index == STOP_INDEX) {
                return NULL;
            }
            scope_cancel_statement(c->scopes[index]);
        }
    }
}

enum status canceller_start(struct inbox *urgent, struct scope *const *scopes, size_t count,
                            struct canceller **ret_canceller, struct error *err)
{
    struct canceller *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory for the canceller");
    }
    *c = (struct canceller){.urgent = urgent, .scopes = scopes, .count = count};
    c->asked = inbox_new(sizeof(size_t), COORD_SCOPES_MAX + 1);
    int rc = c->asked == NULL ? -1 : pthread_create(&c->thread, NULL, canceller_thread, c);
    if (rc != 0) {
        inbox_free(c->asked);
        free(c);
        return error_set(err, STATUS_FATAL, "no thread to cancel statements");
    }
    *ret_canceller = c;
    return STATUS_OK;
}

void canceller_ask(struct canceller *c, size_t index)
{
    enum status full = inbox_post(c->asked, &index); /* full: it is cancelling already */
    (void)full;
}

enum status canceller_stop(struct canceller *c, instant deadline)
{
    if (c == NULL) {
        return STATUS_OK;
    }
    canceller_ask(c, STOP_INDEX);
    if (thread_join(c->thread, deadline) != STATUS_OK) {
        return STATUS_TIMEOUT;
    }
    inbox_free(c->asked);
    free(c);
    return STATUS_OK;
}
