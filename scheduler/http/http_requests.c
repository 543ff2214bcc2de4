#include "http_requests.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http_backfill_json.h"
#include "http_wish.h"
#include "inbox.h"
#include "log.h"
#include "settings.h"
#include "store_request.h"
#include "thread_join.h"

/* A client waits at most for one connect, or for two statements and its turn: all below add up to
 * less than HTTP_STEP_MS, unless the database hangs just then. */
#define CONNECT_MS    3000
#define STATEMENT_MS  1500
#define BACKFILL_MS   4000 /* its statements, instead of the second one */
#define LOCK_MS       250  /* for a row that another session holds: one client waits, not all */
#define RETRY_MS      1000 /* nobody waits for a database that could not be reached just now */
#define ANSWER_MS     8000 /* how long a client waits for the leader's answer */
#define LOOK_FIRST_MS 20   /* then twice as long each time */
#define LOOK_MOST_MS  320
#define TURN_MS       1000
#define RETRY_AFTER_S 1

/* As PostgreSQL names them; the functions of sql/ raise them by these names. */
#define NO_DATA_FOUND      "P0002"
#define UNIQUE_VIOLATION   "23505" /* the request id was used for something else */
#define NOT_YET            "55000" /* of a firing that is still to come */
#define LOCK_NOT_AVAILABLE "55P03"

struct errand {
    struct http_exchange *exchange; /* NULL: a wake-up */
    enum http_method method;
    struct request_wish wish; /* GET: the id only */
    instant until;            /* when the client is told that it is pending */
};

struct http_requests {
    char conninfo[SETTING_TEXT_MAX];
    char password_file[HTTP_FILE_MAX];
    char url[256];
    struct scope *const *scopes;
    size_t count;
    struct inbox *errands; /* struct errand; the HTTP thread posts */
    pthread_t thread;
    pthread_mutex_t mutex;     /* held to post an errand, and to set `stopping`: so that whoever
                                  ends finds every errand that was posted */
    atomic_bool stopping;      /* any thread */
    _Atomic int64_t turned_ns; /* any thread */

    pthread_mutex_t leaders_mutex; /* protects the next three */
    struct request_leader leaders[COORD_SCOPES_MAX];
    size_t leader_count;
    instant leaders_at;

    /* Below: the thread's only. */
    char names[COORD_SCOPES_MAX][NAME_MAX_BYTES]; /* of the scopes; not changed after the start */
    instant leaders_due;
    struct store *store;
    struct store_identity identity;
    instant retry_at;
    bool was_away; /* told in the log already */
    struct errand waiting[REQUEST_WAITING_MAX];
    struct request_standing answers[REQUEST_WAITING_MAX]; /* room for one look */
    size_t waiting_count;
    instant look_at;
    int64_t look_ms;
};

/* Routes: the HTTP server's thread ------------------------------------------------------ */

static void respond_away(struct http_response *response, const char *why)
{
    http_respond_error(response, 503, "%s", why);
    response->retry_after_s = RETRY_AFTER_S;
}

static enum http_when errand_post(struct http_requests *r, const struct errand *errand,
                                  struct http_response *response)
{
    (void)pthread_mutex_lock(&r->mutex);
    bool stopping = atomic_load(&r->stopping);
    bool posted = !stopping && inbox_post(r->errands, errand) == STATUS_OK;
    (void)pthread_mutex_unlock(&r->mutex);
    if (posted) {
        return HTTP_LATER;
    }
    respond_away(response, stopping
                               ? "this replica is stopping; ask another one"
                               : "too many requests are waiting; send it again, with the same id");
    return HTTP_NOW;
}

enum http_when http_requests_post(void *requests, const struct http_request *request,
                                  struct http_response *response)
{
    struct error err = {.text = ""};
    struct errand errand = {.exchange = request->exchange, .method = HTTP_POST};
    enum status s = wish_parse(request->body, request->body_size, &errand.wish, &err);
    if (s != STATUS_OK) {
        http_respond_error(response, 400, "%s", err.text);
        return HTTP_NOW;
    }
    errand.until = instant_add_ms(clock_now(), ANSWER_MS);
    return errand_post(requests, &errand, response);
}

enum http_when http_requests_get(void *requests, const struct http_request *request,
                                 struct http_response *response)
{
    struct errand errand = {.exchange = request->exchange, .method = HTTP_GET};
    if (!uuid_is_valid(request->rest)) {
        http_respond_error(response, 404, "a request's id is a UUID: /requests/ID");
        return HTTP_NOW;
    }
    (void)snprintf(errand.wish.id, sizeof errand.wish.id, "%s", request->rest);
    errand.until = instant_add_ms(clock_now(), ANSWER_MS);
    return errand_post(requests, &errand, response);
}

/* The database -------------------------------------------------------------------------- */

static instant in_ms(int64_t ms)
{
    return instant_add_ms(clock_now(), ms);
}

static void store_give_up(struct http_requests *r)
{
    store_close(r->store);
    r->store = NULL;
}

static enum status store_have(struct http_requests *r)
{
    if (r->store != NULL && !store_is_broken(r->store)) {
        return STATUS_OK;
    }
    store_close(r->store);
    r->store = NULL;
    if (instant_before(clock_now(), r->retry_at)) {
        return STATUS_AGAIN;
    }
    const struct store_options options = {.conninfo = r->conninfo,
                                          .password_file = r->password_file,
                                          .application_name = "report-scheduler:http",
                                          .role = STORE_SCHEDULER,
                                          .identity = &r->identity,
                                          .lock_timeout_ms = LOCK_MS};
    struct error err = {.text = ""};
    enum status s = store_open(&options, in_ms(CONNECT_MS), &r->store, &err);
    if (s != STATUS_OK) {
        r->store = NULL;
        r->retry_at = in_ms(RETRY_MS);
    }
    if (s != STATUS_OK && !r->was_away) {
        log_event(LOG_LEVEL_WARN, "HTTP requests have no database", "error=%s",
                  log_quote(err.text).text);
    }
    r->was_away = s != STATUS_OK;
    return s;
}

/* What a failed statement means. SQLSTATEs that sql/ raises on purpose are about the request. */
static void respond_failure(struct http_requests *r, struct http_response *response, enum status s,
                            const struct error *err)
{
    if (s == STATUS_NOT_FOUND || (s == STATUS_INVALID && strcmp(err->code, NO_DATA_FOUND) == 0)) {
        http_respond_error(response, 404, "%s", err->text);
    } else if (s == STATUS_CONFLICT ||
               (s == STATUS_INVALID &&
                (strcmp(err->code, UNIQUE_VIOLATION) == 0 || strcmp(err->code, NOT_YET) == 0))) {
        http_respond_error(response, 409, "%s", err->text);
    } else if (s == STATUS_INVALID && store_blames_a_row(err)) {
        http_respond_error(response, 400, "%s", err->text);
    } else if (strcmp(err->code, LOCK_NOT_AVAILABLE) == 0) {
        respond_away(response, "another session asks with this id and has not committed; send it "
                               "again, with the same id");
    } else if (s == STATUS_INVALID || s == STATUS_CORRUPT) {
        log_event(LOG_LEVEL_ERROR, "the database refuses an HTTP request", "code=%s error=%s",
                  err->code[0] == '\0' ? "none" : err->code, log_quote(err->text).text);
        http_respond_error(response, 500, "%s", err->text);
    } else {
        log_event(LOG_LEVEL_WARN, "an HTTP request failed", "status=%s error=%s", status_name(s),
                  log_quote(err->text).text);
        store_give_up(r);
        respond_away(response, "the database did not answer; whether the request was taken is "
                               "unknown: send it again, with the same id");
    }
}

/* One errand ---------------------------------------------------------------------------- */

static bool leads(const struct http_requests *r, const char *scope)
{
    for (size_t i = 0; i < r->count; i++) {
        struct scope_snapshot view = scope_read(r->scopes[i]);
        if (strcmp(view.name, scope) == 0) {
            return view.state == LIFECYCLE_ACTIVE;
        }
    }
    return false;
}

/* Not ours to act on: where else? */
static void respond_elsewhere(const struct http_requests *r, const struct request_place *place,
                              struct http_response *response)
{
    if (place->url[0] != '\0' && strcmp(place->url, r->url) != 0) {
        http_respond_error(response, 307, "scope \"%s\" is led by %s; ask there", place->scope,
                           place->member);
        (void)snprintf(response->location, sizeof response->location, "%s/requests", place->url);
        return;
    }
    bool silent = place->member[0] != '\0' && place->url[0] == '\0';
    http_respond_error(response, 503,
                       silent ? "scope \"%s\" is led by a replica that advertises no URL; set its "
                                "advertised_url, or use reportctl"
                              : "scope \"%s\" has no leader now; send it again, with the same id",
                       place->scope);
    response->retry_after_s = RETRY_AFTER_S;
}

static void wait_begin(struct http_requests *r, const struct errand *errand)
{
    r->waiting[r->waiting_count++] = *errand; /* there is room: errands are taken only then */
    r->look_ms = LOOK_FIRST_MS;
    r->look_at = in_ms(r->look_ms);
}

/* Returns false when the client goes on waiting. */
static bool post_serve(struct http_requests *r, const struct errand *errand,
                       struct http_response *response)
{
    struct error err = {.text = ""};
    struct request_place place;
    struct request_standing so_far;
    const struct request_wish *w = &errand->wish;
    enum status s = request_locate(r->store, w, in_ms(STATEMENT_MS), &place, &err);
    if (s == STATUS_OK && !leads(r, place.scope)) {
        respond_elsewhere(r, &place, response);
        return true;
    }
    if (s == STATUS_OK && w->dry_run) {
        s = http_backfill_show(r->store, w, in_ms(BACKFILL_MS), response, &err);
    } else if (s == STATUS_OK) {
        s = w->has_span ? http_backfill_ask(r->store, w, in_ms(BACKFILL_MS), &so_far, &err)
                        : request_ask(r->store, w, in_ms(STATEMENT_MS), &so_far, &err);
    }
    if (s != STATUS_OK) {
        respond_failure(r, response, s, &err);
    }
    if (s != STATUS_OK || w->dry_run) {
        return true;
    }
    log_event(LOG_LEVEL_INFO, "request taken over HTTP", "request=%s kind=%s subject=%s state=%s",
              w->id, w->kind, log_quote(w->subject).text, so_far.state);
    if (strcmp(so_far.state, "pending") == 0 && instant_before(clock_now(), errand->until)) {
        wait_begin(r, errand);
        return false;
    }
    wish_respond(response, &so_far);
    return true;
}

static bool get_serve(struct http_requests *r, const struct errand *errand,
                      struct http_response *response)
{
    struct error err = {.text = ""};
    struct request_record record;
    enum status s = request_read(r->store, errand->wish.id, in_ms(STATEMENT_MS), &record, &err);
    if (s != STATUS_OK) {
        respond_failure(r, response, s, &err);
        return true;
    }
    wish_respond_record(response, &record);
    return true;
}

static void errand_serve(struct http_requests *r, const struct errand *errand)
{
    struct http_response response = {.status = 0};
    if (!instant_before(clock_now(), errand->until)) {
        respond_away(&response,
                     "this replica was too busy to ask; send it again, with the same id");
    } else if (store_have(r) != STATUS_OK) {
        respond_away(&response,
                     "the database cannot be asked now; send it again, with the same id");
    } else if (errand->method == HTTP_POST ? !post_serve(r, errand, &response)
                                           : !get_serve(r, errand, &response)) {
        return;
    }
    http_answer_later(errand->exchange, &response);
}

/* Those who wait ------------------------------------------------------------------------ */

static const struct request_standing *answer_of(const struct request_standing *answers,
                                                size_t count, const char *id)
{
    for (size_t i = 0; i < count; i++) {
        if (strcasecmp(answers[i].id, id) == 0) {
            return &answers[i];
        }
    }
    return NULL;
}

/* Answer and drop those that are settled or have waited long enough. */
static void waiting_settle(struct http_requests *r, const struct request_standing *answers,
                           size_t count)
{
    size_t kept = 0;
    instant now = clock_now();
    for (size_t i = 0; i < r->waiting_count; i++) {
        const struct errand *e = &r->waiting[i];
        const struct request_standing *a = answer_of(answers, count, e->wish.id);
        struct request_standing pending = {.state = "pending"};
        if ((a == NULL || strcmp(a->state, "pending") == 0) && instant_before(now, e->until)) {
            r->waiting[kept++] = *e;
            continue;
        }
        (void)snprintf(pending.id, sizeof pending.id, "%s", e->wish.id);
        struct http_response response = {.status = 0};
        wish_respond(&response, a == NULL ? &pending : a);
        http_answer_later(e->exchange, &response);
    }
    r->waiting_count = kept;
}

static void waiting_look(struct http_requests *r)
{
    char ids[REQUEST_WAITING_MAX][UUID_TEXT_MAX];
    struct error err = {.text = ""};
    size_t count = 0;
    if (r->waiting_count == 0 || instant_before(clock_now(), r->look_at)) {
        return;
    }
    r->look_ms = r->look_ms * 2 < LOOK_MOST_MS ? r->look_ms * 2 : LOOK_MOST_MS;
    for (size_t i = 0; i < r->waiting_count; i++) {
        memcpy(ids[i], r->waiting[i].wish.id, sizeof ids[i]);
    }
    if (store_have(r) == STATUS_OK &&
        request_states(r->store, (const char(*)[UUID_TEXT_MAX])ids, r->waiting_count,
                       in_ms(STATEMENT_MS), r->answers, &count, &err) != STATUS_OK) {
        store_give_up(r);
    }
    waiting_settle(r, r->answers, count);
    r->look_at = in_ms(r->look_ms);
}

static void waiting_end(struct http_requests *r)
{
    struct errand e;
    struct http_response response;
    for (size_t i = 0; i < r->waiting_count; i++) {
        r->waiting[i].until = clock_now(); /* what was asked stands: the next leader answers it */
    }
    waiting_settle(r, NULL, 0);
    while (inbox_take(r->errands, &e)) {
        if (e.exchange != NULL) {
            response = (struct http_response){.status = 0};
            respond_away(&response, "this replica is stopping; ask another one");
            http_answer_later(e.exchange, &response);
        }
    }
}

/* For the page -------------------------------------------------------------------------- */

static void leaders_look(struct http_requests *r)
{
    struct request_leader leaders[COORD_SCOPES_MAX];
    struct error err = {.text = ""};
    size_t count = 0;
    if (instant_before(clock_now(), r->leaders_due)) {
        return;
    }
    r->leaders_due = in_ms(HTTP_LEADERS_MS);
    if (store_have(r) != STATUS_OK) {
        return;
    }
    if (request_leaders(r->store, (const char(*)[NAME_MAX_BYTES])r->names, r->count,
                        in_ms(STATEMENT_MS), leaders, &count, &err) != STATUS_OK) {
        store_give_up(r);
        return;
    }
    (void)pthread_mutex_lock(&r->leaders_mutex);
    memcpy(r->leaders, leaders, count * sizeof leaders[0]);
    r->leader_count = count;
    r->leaders_at = clock_now();
    (void)pthread_mutex_unlock(&r->leaders_mutex);
}

size_t http_requests_leaders(struct http_requests *requests,
                             struct request_leader ret_leaders[COORD_SCOPES_MAX], instant *ret_at)
{
    (void)pthread_mutex_lock(&requests->leaders_mutex);
    size_t count = requests->leader_count;
    memcpy(ret_leaders, requests->leaders, count * sizeof ret_leaders[0]);
    *ret_at = requests->leaders_at;
    (void)pthread_mutex_unlock(&requests->leaders_mutex);
    return count;
}

/* The thread ---------------------------------------------------------------------------- */

static void *requests_main(void *argument)
{
    struct http_requests *r = argument;
    struct errand errand;
    thread_name("http-requests");
    while (!atomic_load(&r->stopping)) {
        atomic_store(&r->turned_ns, clock_now().ns);
        waiting_look(r);
        if (r->waiting_count < REQUEST_WAITING_MAX && inbox_take(r->errands, &errand)) {
            if (errand.exchange != NULL) {
                errand_serve(r, &errand);
            }
            continue;
        }
        leaders_look(r); /* nobody waits for it: clients come first */
        instant now = clock_now();
        instant wake = instant_add_ms(now, TURN_MS);
        if (r->waiting_count > 0) {
            wake = instant_min(wake, r->look_at);
        }
        bool full = r->waiting_count == REQUEST_WAITING_MAX;
        struct pollfd p = {.fd = full ? -1 : inbox_fd(r->errands), .events = POLLIN};
        (void)poll(&p, 1, instant_poll_timeout(now, wake));
    }
    waiting_end(r);
    store_close(r->store);
    r->store = NULL;
    return NULL;
}

enum status http_requests_start(const struct http_requests_options *options,
                                struct http_requests **ret_requests, struct error *err)
{
    struct http_requests *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory for HTTP requests");
    }
    (void)snprintf(r->conninfo, sizeof r->conninfo, "%s", options->conninfo);
    (void)snprintf(r->password_file, sizeof r->password_file, "%s", options->password_file);
    (void)snprintf(r->url, sizeof r->url, "%s", options->url);
    r->scopes = options->scopes;
    r->count = options->count;
    (void)pthread_mutex_init(&r->mutex, NULL);
    (void)pthread_mutex_init(&r->leaders_mutex, NULL);
    for (size_t i = 0; i < r->count; i++) {
        (void)snprintf(r->names[i], sizeof r->names[i], "%s", scope_read(r->scopes[i]).name);
    }
    r->errands = inbox_new(sizeof(struct errand), REQUEST_WAITING_MAX);
    atomic_store(&r->turned_ns, clock_now().ns);
    int failure = r->errands == NULL ? ENOMEM : pthread_create(&r->thread, NULL, requests_main, r);
    if (failure != 0) {
        http_requests_free(r);
        return error_set(err, STATUS_FATAL, "no thread for HTTP requests: %s", strerror(failure));
    }
    *ret_requests = r;
    return STATUS_OK;
}

instant http_requests_last_turn(const struct http_requests *requests)
{
    return (instant){atomic_load(&requests->turned_ns)};
}

enum status http_requests_stop(struct http_requests *requests, instant deadline)
{
    const struct errand wake = {.exchange = NULL};
    (void)pthread_mutex_lock(&requests->mutex);
    atomic_store(&requests->stopping, true);
    (void)pthread_mutex_unlock(&requests->mutex);
    enum status full = inbox_post(requests->errands, &wake); /* full: it wakes anyway */
    (void)full;
    return thread_join(requests->thread, deadline);
}

void http_requests_free(struct http_requests *requests)
{
    if (requests != NULL) {
        inbox_free(requests->errands);
        (void)pthread_mutex_destroy(&requests->mutex);
        (void)pthread_mutex_destroy(&requests->leaders_mutex);
        free(requests);
    }
}
