/* A scope's database connection: opened when it is time to, verified, registered, given up. */
#include "scope_shell.h"

#include "log.h"
#include "store_fence.h"

static const struct backoff store_backoff = {.base_ms = 100, .most_ms = 1000};

instant scope_in_ms(int64_t ms)
{
    return instant_add_ms(clock_now(), ms);
}

instant scope_statement_deadline(const struct scope *s)
{
    return scope_in_ms(s->options.statement_ms);
}

bool scope_may_decide(const struct scope *s)
{
    return lease_holds(s->lease, clock_now());
}

static void set_store(struct scope *s, struct store *store)
{
    (void)pthread_mutex_lock(&s->store_mutex);
    struct store *old = s->store;
    s->store = store;
    (void)pthread_mutex_unlock(&s->store_mutex);
    (void)pthread_mutex_lock(&s->view_mutex);
    s->view.has_database = store != NULL;
    (void)pthread_mutex_unlock(&s->view_mutex);
    store_close(old);
}

void scope_close_store(struct scope *s)
{
    set_store(s, NULL);
}

void scope_database_works(struct scope *s)
{
    s->healthy_at = clock_now();
    s->store_failures = 0;
    scope_set_problem(s, NULL, NULL);
}

static enum status store_prepare(struct scope *s, struct store *store, struct error *err)
{
    enum status status = store_listen(store, "report_change", scope_statement_deadline(s), err);
    if (status == STATUS_OK) {
        status = store_listen(store, "report_request", scope_statement_deadline(s), err);
    }
    if (status == STATUS_OK) { /* an outcome made room, or left a retry */
        status = store_listen(store, "report_work", scope_statement_deadline(s), err);
    }
    if (status == STATUS_OK) { /* a handoff began, or its successor is ready */
        status = store_listen(store, CANDIDATE_CHANNEL, scope_statement_deadline(s), err);
    }
    /* A connection that follows the one which established makes itself known, so that a successor
     * can end it. */
    if (status == STATUS_OK && lifecycle_may_write(s->life.state)) {
        status = scope_may_decide(s) ? fence_register(store, &s->authority, s->acknowledged,
                                                      scope_statement_deadline(s), err)
                                     : error_set(err, STATUS_AGAIN, "the lease does not hold");
        if (status == STATUS_CONFLICT) { /* a good connection, but not to what was established on */
            s->moved = true;
            return STATUS_OK;
        }
    }
    return status;
}

enum status scope_have_store(struct scope *s, struct error *err)
{
    if (s->store != NULL && !store_is_broken(s->store)) {
        return STATUS_OK;
    }
    if (s->store != NULL) {
        (void)error_set(&s->store_trouble, STATUS_AGAIN, "the connection was lost");
        set_store(s, NULL);
    }
    if (instant_before(clock_now(), s->store_retry_at)) {
        *err = s->store_trouble;
        return STATUS_AGAIN;
    }
    const struct store_options options = {.conninfo = s->options.conninfo,
                                          .password_file = s->options.password_file,
                                          .application_name = s->application_name,
                                          .role = STORE_SCHEDULER,
                                          .identity = &s->identity};
    struct store *store = NULL;
    enum status status = store_open(&options, scope_in_ms(s->options.connect_ms), &store, err);
    if (status == STATUS_OK) {
        status = store_prepare(s, store, err);
    }
    scope_mark_turn(s);
    if (status == STATUS_OK) {
        set_store(s, store);
        s->store_failures = 0;
        s->notified = true; /* what happened meanwhile was not notified to us */
        s->ping_at = scope_in_ms(SCOPE_PING_MS);
        return STATUS_OK;
    }
    store_close(store);
    s->store_trouble = *err;
    s->store_failures++;
    s->store_retry_at = scope_in_ms(backoff_ms(&store_backoff, s->store_failures, random_number()));
    if (status != STATUS_FENCED) {
        scope_set_problem(s, "no database", err);
    }
    return status;
}

/* A statement failed: remember why; the caller decides by the status. */
void scope_statement_failed(struct scope *s, const char *what, const struct error *err)
{
    scope_set_problem(s, what, err);
    s->work_at = scope_in_ms(SCOPE_RETRY_MS);
    if (s->store != NULL && store_is_broken(s->store)) {
        s->store_trouble = *err;
        set_store(s, NULL);
        s->store_retry_at = s->work_at;
    }
}

/* Step down when the database has not answered for too long. */
bool scope_gave_database_up(struct scope *s)
{
    if (instant_ms_between(s->healthy_at, clock_now()) < atomic_load(&s->unhealthy_ms)) {
        return false;
    }
    scope_feed(s, LIFECYCLE_EV_DATABASE_UNHEALTHY);
    return true;
}
