/* Port: a small HTTP/1.1 server inside a daemon, for probes, metrics and the requests of operators.
 *
 * One thread does it all: accepts, reads, asks the routes, writes. A route's function therefore
 * only looks at snapshots; what takes longer is answered later (HTTP_LATER) by another thread. The
 * server itself answers: an unknown path 404, a wrong method 405, a body over HTTP_BODY_MAX 413, a
 * changing request without the right bearer token 401 or 403. Every refusal is {"error": "..."}
 * with the remedy.
 *
 * Bounds: HTTP_CONNECTIONS_MAX connections; HTTP_STEP_MS to send a whole request, head and body,
 * and as long to take the answer or to stay idle between two requests, then the connection is cut,
 * however busy it looks. From HTTP_CONNECTIONS_CROWDED connections on they have
 * HTTP_STEP_CROWDED_MS for each, so that idle ones cannot keep a probe out. */
#ifndef RS_HTTP_H
#define RS_HTTP_H

#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "status.h"

#define HTTP_CONNECTIONS_MAX     128
#define HTTP_CONNECTIONS_CROWDED 96
#define HTTP_ROUTES_MAX          16
#define HTTP_BODY_MAX            65536 /* bytes of a request's body */
#define HTTP_HEAD_MAX            16384 /* bytes of its line and headers */
#define HTTP_STEP_MS             10000
#define HTTP_STEP_CROWDED_MS     500
#define HTTP_LOCATION_MAX        512
#define HTTP_FILE_MAX            512 /* bytes of a path, with NUL */

enum http_method {
    HTTP_GET, /* HEAD as well: the same answer without its body */
    HTTP_POST,
};

struct http_exchange; /* one request that is being answered */

/* Borrowed while the function runs; with HTTP_LATER until the answer was given. */
struct http_request {
    enum http_method method;
    const char *path;
    const char *rest; /* of the path, behind the route's; "" when it is the whole */
    const char *body; /* NUL-terminated; "" when there is none */
    size_t body_size;
    struct http_exchange *exchange;
};

/* A value of the query string ("?scope=main"); NULL when it is not there. Borrowed like the rest.
 * Thread: the server's, within the route's function. */
const char *http_request_query(const struct http_request *request, const char *name);

struct http_response {
    unsigned status;                  /* 0: 200 */
    const char *type;                 /* static text; NULL: application/json */
    char *body;                       /* malloc'ed; the server frees it. NULL: none */
    size_t size;                      /* of body */
    char location[HTTP_LOCATION_MAX]; /* "": no Location */
    unsigned retry_after_s;           /* 0: no Retry-After */
};

enum http_when {
    HTTP_NOW,
    HTTP_LATER
};

/* Fill *response (zeroed) and return HTTP_NOW; or keep request->exchange, return HTTP_LATER, and
 * see that somebody calls http_answer_later for it exactly once, within HTTP_STEP_MS.
 * Thread: the server's. Blocks: must not. */
typedef enum http_when http_answer(void *context, const struct http_request *request,
                                   struct http_response *response);

struct http_route {
    const char *path; /* ends in '/' and is longer than "/": everything below it */
    enum http_method method;
    bool guarded; /* the bearer token is demanded */
    http_answer *answer;
    void *context;
};

/* Strings are copied. */
struct http_options {
    const char *address;          /* numeric, IPv4 or IPv6 */
    uint16_t port;                /* 0: any that is free */
    const char *token_file;       /* "" or NULL: guarded requests are refused with 403 */
    const char *certificate_file; /* PEM chain; "" or NULL: no TLS */
    const char *key_file;         /* PEM, readable by the owner only; with certificate_file */
    const struct http_route *routes;
    size_t route_count;
};

struct http_server;

/* Bind and start the thread. Owns: http_server_stop.
 * Returns: OK; INVALID (address, port in use, token, certificate or key; the text names the setting
 * and the remedy); FATAL. Thread: any. Blocks: on the file system. */
MUST_USE enum status http_server_start(const struct http_options *options,
                                       struct http_server **ret_server, struct error *err);

/* The port it listens on. Thread: any. */
uint16_t http_server_port(const struct http_server *server);

/* Cut all connections and end the thread; NULL is fine. Whoever answers later has ended by then.
 * Returns: OK, everything is freed; TIMEOUT: a route's function hangs or an answer is still owed:
 * only _exit is left. Blocks: until deadline. */
MUST_USE enum status http_server_stop(struct http_server *server, instant deadline);

/* Give the answer that HTTP_LATER promised. Takes response->body. Thread: any. Blocks: never. */
void http_answer_later(struct http_exchange *exchange, const struct http_response *response);

/* {"error": "..."} with this status. Thread: any. */
void http_respond_error(struct http_response *response, unsigned status, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* A JSON text that the caller made with malloc (as json_dumps does). NULL: out of memory, answered
 * with 500. */
void http_respond_json(struct http_response *response, unsigned status, char *text);

/* The route of /metrics: what common/base/metrics.h has counted. `context` is not used. */
enum http_when http_answer_metrics(void *context, const struct http_request *request,
                                   struct http_response *response);

#endif
