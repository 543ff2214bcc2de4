#include "http_scheduler.h"

#include <stdlib.h>

#include "http.h"
#include "http_requests.h"
#include "http_view.h"
#include "log.h"
#include "loop_name.h"
#include "version.h"

struct scheduler_http {
    struct scheduler_http_options options;
    char member[NAME_MAX_BYTES];
    struct http_server *server;
    struct http_requests *requests;
};

static struct view *take(const struct scheduler_http *h, struct http_response *response)
{
    struct view *v = view_take(&h->options, h->member);
    if (v == NULL) {
        http_respond_error(response, 500, "out of memory");
    } else {
        view_loop_add(v,
                      &(struct view_turn){LOOP_REQUESTS, "", http_requests_last_turn(h->requests),
                                          HTTP_REQUESTS_LATE_MS});
        v->leader_count = http_requests_leaders(h->requests, v->leaders, &v->leaders_at);
    }
    return v;
}

static enum http_when livez(void *context, const struct http_request *request,
                            struct http_response *response)
{
    (void)request;
    struct view *v = take(context, response);
    if (v != NULL) {
        http_respond_json(response, view_is_live(v) ? 200 : 503, view_livez_json(v));
    }
    free(v);
    return HTTP_NOW;
}

static enum http_when readyz(void *context, const struct http_request *request,
                             struct http_response *response)
{
    const char *scope = http_request_query(request, "scope");
    struct view *v = take(context, response);
    if (v != NULL && scope != NULL && view_find(v, scope) == SIZE_MAX) {
        http_respond_error(response, 404,
                           "this replica takes no part in that scope; /readyz lists those it does");
    } else if (v != NULL) {
        bool ready = false;
        char *text = view_readyz_json(v, scope, &ready);
        http_respond_json(response, ready ? 200 : 503, text);
    }
    free(v);
    return HTTP_NOW;
}

static enum http_when page(void *context, const struct http_request *request,
                           struct http_response *response)
{
    (void)request;
    struct view *v = take(context, response);
    if (v != NULL) {
        response->type = "text/html; charset=utf-8";
        response->body = view_page(v, RS_VERSION, &response->size);
        response->status = response->body == NULL ? 500 : 200;
    }
    free(v);
    return HTTP_NOW;
}

static enum status take_requests(struct scheduler_http *h, struct error *err)
{
    const struct scheduler_settings *s = h->options.settings;
    const struct http_requests_options options = {.conninfo = s->database,
                                                  .password_file = s->database_password_file,
                                                  .url = s->advertised_url,
                                                  .scopes = h->options.scopes,
                                                  .count = h->options.count};
    return http_requests_start(&options, &h->requests, err);
}

static enum status serve(struct scheduler_http *h, struct error *err)
{
    const struct scheduler_settings *s = h->options.settings;
    const struct http_route routes[] = {
        {.path = "/", .method = HTTP_GET, .answer = page, .context = h},
        {.path = "/livez", .method = HTTP_GET, .answer = livez, .context = h},
        {.path = "/readyz", .method = HTTP_GET, .answer = readyz, .context = h},
        {.path = "/metrics", .method = HTTP_GET, .answer = http_answer_metrics},
        {.path = "/requests",
         .method = HTTP_POST,
         .guarded = true,
         .answer = http_requests_post,
         .context = h->requests},
        {.path = "/requests/",
         .method = HTTP_GET,
         .guarded = true, /* an answer quotes what an operator wrote, and a client may choose ids
                             that others can guess */
         .answer = http_requests_get,
         .context = h->requests},
    };
    const struct http_options options = {.address = s->http_address,
                                         .port = (uint16_t)s->http_port,
                                         .token_file = s->http_token_file,
                                         .certificate_file = s->http_tls_certificate_file,
                                         .key_file = s->http_tls_key_file,
                                         .routes = routes,
                                         .route_count = sizeof routes / sizeof routes[0]};
    return http_server_start(&options, &h->server, err);
}

enum status scheduler_http_start(const struct scheduler_http_options *options,
                                 struct scheduler_http **ret_http, struct error *err)
{
    const struct scheduler_settings *s = options->settings;
    *ret_http = NULL;
    if (s->http_address[0] == '\0') {
        return STATUS_OK;
    }
    struct scheduler_http *h = calloc(1, sizeof *h);
    if (h == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory for HTTP");
    }
    h->options = *options;
    (void)snprintf(h->member, sizeof h->member, "%s", s->name);
    enum status status = take_requests(h, err);
    if (status == STATUS_OK) {
        status = serve(h, err);
    }
    h->options.settings = NULL;
    if (status != STATUS_OK) {
        enum status ended = scheduler_http_stop(h, instant_add_ms(clock_now(), HTTP_STEP_MS));
        (void)ended; /* a thread that has nothing to do ends at once */
        return status;
    }
    log_event(LOG_LEVEL_INFO, "HTTP listens", "address=%s port=%u tls=%s", s->http_address,
              (unsigned)http_server_port(h->server),
              s->http_tls_certificate_file[0] == '\0' ? "no" : "yes");
    *ret_http = h;
    return STATUS_OK;
}

enum status scheduler_http_stop(struct scheduler_http *http, instant deadline)
{
    if (http == NULL) {
        return STATUS_OK;
    }
    if (http->requests != NULL && http_requests_stop(http->requests, deadline) != STATUS_OK) {
        return STATUS_TIMEOUT;
    }
    if (http_server_stop(http->server, deadline) != STATUS_OK) {
        return STATUS_TIMEOUT;
    }
    http_requests_free(http->requests);
    free(http);
    return STATUS_OK;
}
