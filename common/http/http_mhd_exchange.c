/* One request from its first byte to its answer. */
#include "http_mhd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A body beyond HTTP_BODY_MAX is read and forgotten up to here, so that the client, still sending,
 * sees the answer and not a reset. */
#define DRAIN_MAX (1024 * 1024)

enum exchange_state {
    EXCHANGE_READING,
    EXCHANGE_WAITING,
    EXCHANGE_ANSWERED
};

struct http_exchange {
    struct http_server *server;
    struct MHD_Connection *connection;
    enum exchange_state state;
    bool too_large;
    char *path; /* owned, like the body */
    char *body;
    size_t body_room;
    struct http_request request;
    const struct http_route *route;
    struct http_response response;
};

static struct http_link *link_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == NULL ? NULL : info->socket_context;
}

static void link_await(struct MHD_Connection *connection, instant deadline)
{
    struct http_link *link = link_of(connection);
    if (link != NULL) {
        link->deadline = deadline;
    }
}

/* Reading -------------------------------------------------------------------------------------- */

static struct http_exchange *exchange_new(struct http_server *server,
                                          struct MHD_Connection *connection, const char *url)
{
    struct http_exchange *x = calloc(1, sizeof *x);
    if (x == NULL) {
        return NULL;
    }
    x->server = server;
    x->connection = connection;
    x->path = strdup(url);
    if (x->path == NULL) {
        free(x);
        return NULL;
    }
    x->request = (struct http_request){.path = x->path, .rest = "", .body = "", .exchange = x};
    server->busy++;
    return x;
}

static bool announces_too_much(struct MHD_Connection *connection)
{
    const char *text =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return text != NULL && strtoull(text, NULL, 10) > DRAIN_MAX;
}

/* Returns false when there is no memory: the connection is then given up. */
static bool body_take(struct http_exchange *x, const char *bytes, size_t n)
{
    size_t used = x->request.body_size;
    if (x->too_large || n > HTTP_BODY_MAX - used) {
        x->too_large = true;
        return true;
    }
    if (used + n + 1 > x->body_room) {
        size_t room = x->body_room == 0 ? 1024 : x->body_room;
        while (room < used + n + 1) {
            room *= 2;
        }
        char *grown = realloc(x->body, room);
        if (grown == NULL) {
            return false;
        }
        x->body = grown;
        x->body_room = room;
    }
    memcpy(x->body + used, bytes, n);
    x->body[used + n] = '\0';
    x->request.body = x->body;
    x->request.body_size = used + n;
    return true;
}

/* Deciding ------------------------------------------------------------------------------------- */

static bool route_fits(const struct http_route *route, const char *path, const char **ret_rest)
{
    size_t n = strlen(route->path);
    if (n > 1 && route->path[n - 1] == '/') {
        *ret_rest = path + n;
        return strncmp(path, route->path, n) == 0 && path[n] != '\0';
    }
    *ret_rest = "";
    return strcmp(path, route->path) == 0;
}

static bool method_parse(const char *text, enum http_method *ret_method)
{
    if (strcmp(text, MHD_HTTP_METHOD_GET) == 0 || strcmp(text, MHD_HTTP_METHOD_HEAD) == 0) {
        *ret_method = HTTP_GET;
        return true;
    }
    *ret_method = HTTP_POST;
    return strcmp(text, MHD_HTTP_METHOD_POST) == 0;
}

/* The route, or its absence in *ret_allow: NULL where the path is unknown, else the methods. */
static const struct http_route *route_find(struct http_exchange *x, const char *method,
                                           const char **ret_allow)
{
    bool gets = false;
    bool posts = false;
    enum http_method wanted;
    bool known = method_parse(method, &wanted);
    for (size_t i = 0; i < x->server->route_count; i++) {
        const struct http_route *route = &x->server->routes[i];
        const char *rest = "";
        if (!route_fits(route, x->path, &rest)) {
            continue;
        }
        if (known && route->method == wanted) {
            x->request.method = wanted;
            x->request.rest = rest;
            return route;
        }
        gets = gets || route->method == HTTP_GET;
        posts = posts || route->method == HTTP_POST;
    }
    *ret_allow = gets && posts ? "GET, HEAD, POST" : gets ? "GET, HEAD" : posts ? "POST" : NULL;
    return NULL;
}

/* In the same time whatever was sent: digests of equal length, all of it looked at. */
static bool token_fits(const struct http_server *server, const char *authorization)
{
    static const char scheme[] = "Bearer ";
    size_t n = sizeof scheme - 1;
    char sent[DIGEST_TEXT_MAX];
    if (authorization == NULL || strncasecmp(authorization, scheme, n) != 0 ||
        digest_memory(authorization + n, strlen(authorization + n), sent) != STATUS_OK) {
        return false;
    }
    unsigned differing = 0;
    for (size_t i = 0; i < sizeof sent; i++) {
        differing |= (unsigned)(sent[i] ^ server->token[i]);
    }
    return differing == 0;
}

static bool is_refused(struct http_exchange *x)
{
    const char *authorization =
        MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
    if (!x->route->guarded) {
        return false;
    }
    if (!x->server->has_token) {
        http_respond_error(&x->response, MHD_HTTP_FORBIDDEN,
                           "this server takes no changing requests: it has no bearer token; set "
                           "http_token_file in its configuration and restart it");
        return true;
    }
    if (token_fits(x->server, authorization)) {
        return false;
    }
    http_respond_error(&x->response, MHD_HTTP_UNAUTHORIZED,
                       "%s; send \"Authorization: Bearer TOKEN\" with the content of the server's "
                       "http_token_file",
                       authorization == NULL ? "a bearer token is needed"
                                             : "the bearer token is not the right one");
    return true;
}

static enum http_when decide(struct http_exchange *x, const char *method, const char **ret_allow)
{
    if (x->too_large) {
        http_respond_error(&x->response, MHD_HTTP_CONTENT_TOO_LARGE,
                           "the body has more than %d bytes; send less", HTTP_BODY_MAX);
        return HTTP_NOW;
    }
    x->route = route_find(x, method, ret_allow);
    if (x->route == NULL && *ret_allow == NULL) {
        http_respond_error(&x->response, MHD_HTTP_NOT_FOUND,
                           "there is nothing at this path; see /livez, /readyz and /metrics");
        return HTTP_NOW;
    }
    if (x->route == NULL) {
        http_respond_error(&x->response, MHD_HTTP_METHOD_NOT_ALLOWED,
                           "this path does not take this method; use %s", *ret_allow);
        return HTTP_NOW;
    }
    if (is_refused(x)) {
        return HTTP_NOW;
    }
    return x->route->answer(x->route->context, &x->request, &x->response);
}

/* Answering ------------------------------------------------------------------------------------ */

static enum MHD_Result headers_add(struct MHD_Response *m, const struct http_response *response,
                                   const char *allow)
{
    char seconds[16];
    enum MHD_Result ok =
        MHD_add_response_header(m, MHD_HTTP_HEADER_CONTENT_TYPE,
                                response->type == NULL ? "application/json" : response->type);
    ok &= MHD_add_response_header(m, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    ok &= MHD_add_response_header(m, "X-Content-Type-Options", "nosniff");
    ok &= MHD_add_response_header(m, "Content-Security-Policy",
                                  "default-src 'none'; style-src 'unsafe-inline'");
    if (allow != NULL) {
        ok &= MHD_add_response_header(m, MHD_HTTP_HEADER_ALLOW, allow);
    }
    if (response->location[0] != '\0') {
        ok &= MHD_add_response_header(m, MHD_HTTP_HEADER_LOCATION, response->location);
    }
    if (response->retry_after_s > 0) {
        (void)snprintf(seconds, sizeof seconds, "%u", response->retry_after_s);
        ok &= MHD_add_response_header(m, MHD_HTTP_HEADER_RETRY_AFTER, seconds);
    }
    if (response->status == MHD_HTTP_UNAUTHORIZED) {
        ok &= MHD_add_response_header(m, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    }
    return ok;
}

/* MHD_NO gives the connection up: out of memory, or a header that cannot be one. */
static enum MHD_Result respond(struct http_exchange *x, const char *allow)
{
    struct http_response *response = &x->response;
    unsigned status = response->status == 0 ? MHD_HTTP_OK : response->status;
    struct MHD_Response *m = MHD_create_response_from_buffer(
        response->body == NULL ? 0 : response->size, response->body, MHD_RESPMEM_MUST_FREE);
    if (m == NULL) {
        return MHD_NO;
    }
    response->body = NULL; /* the library's now */
    enum MHD_Result ok = headers_add(m, response, allow);
    if (ok == MHD_YES) {
        ok = MHD_queue_response(x->connection, status, m);
    }
    MHD_destroy_response(m);
    x->state = EXCHANGE_ANSWERED;
    link_await(x->connection, instant_add_ms(clock_now(), HTTP_STEP_MS));
    return ok;
}

static enum MHD_Result answer(struct http_exchange *x, const char *method)
{
    const char *allow = NULL;
    if (x->state == EXCHANGE_READING && decide(x, method, &allow) == HTTP_LATER) {
        x->state = EXCHANGE_WAITING;
        x->server->owed++;
        link_await(x->connection, INSTANT_NEVER);
        MHD_suspend_connection(x->connection);
        return MHD_YES;
    }
    return respond(x, allow);
}

void http_exchange_resume(const struct http_message *message)
{
    struct http_exchange *x = message->exchange;
    x->response = message->response;
    x->state = EXCHANGE_ANSWERED;
    x->server->owed--;
    MHD_resume_connection(x->connection);
}

/* The library's callbacks ---------------------------------------------------------------------- */

enum MHD_Result http_on_request(void *server, struct MHD_Connection *connection, const char *url,
                                const char *method, const char *version, const char *upload,
                                size_t *upload_size, void **request_context)
{
    struct http_exchange *x = *request_context;
    (void)version;
    if (x == NULL) { /* the head is here, the body is not */
        x = exchange_new(server, connection, url);
        *request_context = x;
        if (x == NULL) {
            return MHD_NO;
        }
        if (announces_too_much(connection)) {
            x->too_large = true;
            return answer(x, method);
        }
        return MHD_YES;
    }
    if (*upload_size > 0) {
        bool taken = body_take(x, upload, *upload_size);
        *upload_size = 0;
        return taken ? MHD_YES : MHD_NO;
    }
    return answer(x, method);
}

void http_on_completed(void *server, struct MHD_Connection *connection, void **request_context,
                       enum MHD_RequestTerminationCode code)
{
    struct http_server *s = server;
    struct http_exchange *x = *request_context;
    (void)code;
    if (x == NULL) {
        return;
    }
    *request_context = NULL;
    link_await(connection, instant_add_ms(clock_now(), HTTP_STEP_MS));
    s->busy--;
    free(x->response.body);
    free(x->body);
    free(x->path);
    free(x);
}

void http_on_connection(void *server, struct MHD_Connection *connection, void **socket_context,
                        enum MHD_ConnectionNotificationCode code)
{
    struct http_server *s = server;
    struct http_link *link = *socket_context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        link = calloc(1, sizeof *link);
        *socket_context = link;
        if (link == NULL || info == NULL) {
            return; /* then only silence ends it */
        }
        link->fd = info->connect_fd;
        link->deadline = instant_add_ms(clock_now(), HTTP_STEP_MS);
        s->link_count++;
        link->previous = &s->links;
        link->next = s->links.next;
        s->links.next->previous = link;
        s->links.next = link;
        return;
    }
    if (link != NULL) {
        if (link->next != NULL) {
            link->next->previous = link->previous;
            link->previous->next = link->next;
            s->link_count--;
        }
        free(link);
        *socket_context = NULL;
    }
}

const char *http_request_query(const struct http_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->exchange->connection, MHD_GET_ARGUMENT_KIND, name);
}

void http_answer_later(struct http_exchange *exchange, const struct http_response *response)
{
    const struct http_message message = {.exchange = exchange, .response = *response};
    enum status posted = inbox_post(exchange->server->answers, &message);
    (void)posted; /* never full: room for one a connection, and a wake-up */
}
