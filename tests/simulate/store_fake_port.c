/* The port common/store/store.h: connections themselves. */
#include <stdio.h>
#include <string.h>

#include "store_fake.h"
#include "world.h"

enum status store_open(const struct store_options *options, instant deadline,
                       struct store **ret_store, struct error *err)
{
    struct process *p = process_current();
    int64_t until = process_true_at(p, deadline.ns);
    for (int trip = 0; trip < 4; trip++) {
        while (world_is_cut(p->node, SERVICE_POSTGRESQL, CUT_TO) ||
               world_is_cut(p->node, SERVICE_POSTGRESQL, CUT_FROM)) {
            if (kernel_now() >= until) {
                return error_set(err, STATUS_TIMEOUT, "the server does not answer");
            }
            (void)fiber_wait(kernel_now() + 50 * KERNEL_MS);
        }
        (void)fiber_wait(kernel_now() + 2 * world_latency(p->node, SERVICE_POSTGRESQL));
        if (!server.up) {
            return error_set(err, STATUS_AGAIN, "connection refused");
        }
    }
    struct store *s = kernel_new(sizeof *s);
    *s = (struct store){.next = store_fake_all,
                        .process = p,
                        .life = p->life,
                        .role = options->role,
                        .epoch = server.epoch,
                        .fd = kernel_fd_open(p)};
    store_fake_all = s;
    if (options->identity != NULL) {
        (void)snprintf(options->identity->installation, sizeof options->identity->installation,
                       "%s", INSTALLATION);
    }
    *ret_store = s;
    return STATUS_OK;
}

void store_close(struct store *store)
{
    if (store != NULL) {
        store->closed = true; /* what it sent is executed all the same: the server looks later */
        kernel_fd_close(store->fd);
        if (store->begun != NULL) {
            request_end(store->begun); /* nobody will ask for its answer */
            store->begun = store->running = NULL;
        }
    }
}

void store_fake_forget(struct process *p)
{
    for (struct store *s = store_fake_all; s != NULL; s = s->next) {
        if (s->process == p && s->life == p->life && !s->closed) {
            s->closed = true; /* what runs in the server goes on to its end */
            struct request *q = s->begun != NULL ? s->begun : s->running;
            s->running = s->begun = NULL;
            if (q != NULL) {
                q->waiter = NULL;
                request_end(q);
            }
        }
    }
}

bool store_is_broken(const struct store *store)
{
    return store->broken;
}

void store_cancel(struct store *store)
{
    int node = store->process->node;
    struct request *q = store->running;
    (void)fiber_wait(kernel_now() + 3 * world_latency(node, SERVICE_POSTGRESQL));
    if (q != NULL && store->running == q && server.up &&
        !world_is_cut(node, SERVICE_POSTGRESQL, CUT_TO)) {
        q->cancelled = true;
    }
}

bool store_blames_a_row(const struct error *err)
{
    return strncmp(err->code, "22", 2) == 0 || strncmp(err->code, "23", 2) == 0 ||
           strncmp(err->code, "P0", 2) == 0;
}

bool store_is_a_wait(const struct error *err)
{
    return strcmp(err->code, "57014") == 0 || strcmp(err->code, "55P03") == 0 ||
           strcmp(err->code, "40001") == 0 || strcmp(err->code, "40P01") == 0;
}

static void listen_execute(struct request *q, struct transaction *t)
{
    (void)t;
    q->store->listens = true;
    request_answer(q, VERDICT_OK, STATUS_OK);
}

enum status store_listen(struct store *store, const char *channel, instant deadline,
                         struct error *err)
{
    (void)channel;
    struct request *q = request_new(sizeof *q, OP_NONE, listen_execute);
    enum status status = exchange(store, deadline, q, err);
    request_end(q);
    return status;
}

int store_fd(const struct store *store)
{
    return store->broken ? -1 : store->fd;
}

enum status store_take_notifications(struct store *store, unsigned *ret_count)
{
    kernel_fd_clear(store->fd);
    if (store->broken || (store_fake_is_dead(store) &&
                          !world_is_cut(store->process->node, SERVICE_POSTGRESQL, CUT_FROM))) {
        store->broken = true;
        return STATUS_AGAIN;
    }
    *ret_count = store->notifications;
    store->notifications = 0;
    return STATUS_OK;
}

struct clock_request {
    struct request q;
    int64_t now;
};

static void clock_execute(struct request *q, struct transaction *t)
{
    ((struct clock_request *)q)->now = t->now;
    request_answer(q, VERDICT_OK, STATUS_OK);
}

enum status store_clock(struct store *store, instant deadline, utc_us *ret_now, struct error *err)
{
    struct clock_request *r = request_new(sizeof *r, OP_NONE, clock_execute);
    enum status status = exchange(store, deadline, &r->q, err);
    if (status == STATUS_OK) {
        ret_now->us = r->now;
    }
    request_end(&r->q);
    return status;
}

static void on_notified(void *context, uint64_t number)
{
    struct store *s = context;
    (void)number;
    if (!s->closed && !world_is_cut(s->process->node, SERVICE_POSTGRESQL, CUT_FROM)) {
        s->notifications++;
        kernel_fd_raise(s->fd);
    }
}

void database_notify(void)
{
    for (struct store *s = store_fake_all; s != NULL; s = s->next) {
        if (s->listens && !s->closed && !s->ended && s->epoch == server.epoch) {
            kernel_in(world_latency(s->process->node, SERVICE_POSTGRESQL), on_notified, s, 0);
        }
    }
}
