#include "http_worker.h"

#include <jansson.h>
#include <stdlib.h>

#include "artifact_health.h"
#include "http.h"
#include "log.h"
#include "loop_name.h"

#define GUARD_LATE_MS 15000 /* the end of a stop waits 10 s for outcomes */

struct worker_http {
    struct worker *worker;
    struct http_server *server;
};

static bool loop_add(json_t *loops, const char *name, const _Atomic int64_t *turned_ns,
                     int64_t allowed_ms)
{
    instant turned = {atomic_load(turned_ns)};
    int64_t silent_ms = instant_ms_between(turned, clock_now());
    bool turns = silent_ms < allowed_ms;
    silent_ms = silent_ms < 0 ? 0 : silent_ms;
    (void)json_array_append_new(loops, json_pack("{s:s, s:b, s:f, s:f}", "loop", name, "turns",
                                                 turns, "silent_s", (double)silent_ms / 1e3,
                                                 "allowed_s", (double)allowed_ms / 1e3));
    return turns;
}

static enum http_when livez(void *context, const struct http_request *request,
                            struct http_response *response)
{
    struct worker *w = ((struct worker_http *)context)->worker;
    json_t *loops = json_array();
    (void)request;
    int64_t stuck_ms = w->settings->stuck_ms;
    bool live = loop_add(loops, LOOP_MAIN, &w->guard_turned_ns, GUARD_LATE_MS);
    live = loop_add(loops, LOOP_HEARTBEAT, &w->heartbeat_turned_ns, stuck_ms) && live;
    live = loop_add(loops, LOOP_OUTCOMES, &w->outcomes_turned_ns, stuck_ms) && live;
    if (!atomic_load(&w->draining)) { /* at a stop it ends first */
        live = loop_add(loops, LOOP_CLAIMS, &w->intake_turned_ns, stuck_ms) && live;
    }
    json_t *object = json_pack("{s:b, s:o}", "live", live, "loops", loops);
    http_respond_json(response, live ? 200 : 503,
                      json_dumps(object, JSON_INDENT(1) | JSON_REAL_PRECISION(6)));
    json_decref(object);
    return HTTP_NOW;
}

static enum http_when readyz(void *context, const struct http_request *request,
                             struct http_response *response)
{
    struct worker *w = ((struct worker_http *)context)->worker;
    struct incarnation_copy me = {.id = ""};
    (void)request;
    const struct worker_settings *settings = settings_take(w->now, NULL);
    int64_t slots = settings->slots;
    settings_give(w->now, settings);
    bool registered = worker_incarnation(w, &me);
    bool draining = atomic_load(&w->draining);
    struct error store = {.text = ""};
    bool stores = artifact_health_is_good(&store);
    bool ready = registered && !draining && stores;
    struct claim_counts n = claims_count(w->claims);
    const char *why = draining      ? "it is stopping and claims nothing more"
                      : !registered ? "it is not registered in the database; its log says why"
                                    : store.text;
    json_t *why_json = json_string(why); /* a directory's name may be in any encoding */
    why_json = why_json == NULL ? json_string("see the log: the text is not UTF-8") : why_json;
    json_t *object = json_pack(
        "{s:b, s:o, s:s, s:b, s:b, s:b, s:I, s:I, s:I}", "ready", ready, "why", why_json, "worker",
        me.id, "registered", registered, "draining", draining, "artifact_store", stores, "slots",
        (json_int_t)slots, "running", (json_int_t)n.running, "waiting", (json_int_t)n.waiting);
    http_respond_json(response, ready ? 200 : 503, json_dumps(object, JSON_INDENT(1)));
    json_decref(object);
    return HTTP_NOW;
}

static enum status serve(struct worker_http *h, struct error *err)
{
    const struct worker_settings *s = h->worker->settings;
    const struct http_route routes[] = {
        {.path = "/livez", .method = HTTP_GET, .answer = livez, .context = h},
        {.path = "/readyz", .method = HTTP_GET, .answer = readyz, .context = h},
        {.path = "/metrics", .method = HTTP_GET, .answer = http_answer_metrics},
    };
    const struct http_options options = {.address = s->http_address,
                                         .port = (uint16_t)s->http_port,
                                         .certificate_file = s->http_tls_certificate_file,
                                         .key_file = s->http_tls_key_file,
                                         .routes = routes,
                                         .route_count = sizeof routes / sizeof routes[0]};
    return http_server_start(&options, &h->server, err);
}

enum status worker_http_start(struct worker *w, struct worker_http **ret_http, struct error *err)
{
    const struct worker_settings *s = w->settings;
    *ret_http = NULL;
    if (s->http_address[0] == '\0') {
        return STATUS_OK;
    }
    struct worker_http *h = calloc(1, sizeof *h);
    if (h == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory for HTTP");
    }
    h->worker = w;
    enum status status = serve(h, err);
    if (status != STATUS_OK) {
        free(h);
        return status;
    }
    log_event(LOG_LEVEL_INFO, "HTTP listens", "address=%s port=%u tls=%s", s->http_address,
              (unsigned)http_server_port(h->server),
              s->http_tls_certificate_file[0] == '\0' ? "no" : "yes");
    *ret_http = h;
    return STATUS_OK;
}

enum status worker_http_stop(struct worker_http *http, instant deadline)
{
    if (http == NULL) {
        return STATUS_OK;
    }
    if (http_server_stop(http->server, deadline) != STATUS_OK) {
        return STATUS_TIMEOUT;
    }
    free(http);
    return STATUS_OK;
}
