/* Inside of the HTTP server. Included by http_mhd*.c only; everything here is the server thread's,
 * except what says otherwise. */
#ifndef RS_HTTP_MHD_H
#define RS_HTTP_MHD_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "digest.h"
#include "http.h"
#include "inbox.h"

/* One connection: what the server's own deadline needs. The library's timeout is about silence
 * only, and a client that sends a byte a second is never silent. */
struct http_link {
    struct http_link *next, *previous;
    int fd;
    instant deadline; /* INSTANT_NEVER: an answer is owed to it, or it was cut */
};

struct http_server {
    struct MHD_Daemon *daemon;
    struct inbox *answers;  /* struct http_message; any thread posts */
    struct http_link links; /* head of the ring */
    size_t link_count;
    struct http_route routes[HTTP_ROUTES_MAX];
    size_t route_count;
    bool has_token;
    char token[DIGEST_TEXT_MAX]; /* SHA-256: equal lengths to compare */
    uint16_t port;
    unsigned busy; /* exchanges that exist */
    unsigned owed; /* of these, to be answered later */
    pthread_t thread;
    atomic_bool stopping; /* any thread */
    char trouble[256];    /* what the library said while it started */
};

struct http_message {
    struct http_exchange *exchange; /* NULL: a wake-up */
    struct http_response response;
};

/* http_mhd_exchange.c: callbacks of the library. */
enum MHD_Result http_on_request(void *server, struct MHD_Connection *connection, const char *url,
                                const char *method, const char *version, const char *upload,
                                size_t *upload_size, void **request_context);
void http_on_completed(void *server, struct MHD_Connection *connection, void **request_context,
                       enum MHD_RequestTerminationCode code);
void http_on_connection(void *server, struct MHD_Connection *connection, void **socket_context,
                        enum MHD_ConnectionNotificationCode code);
/* Let the exchange go on with its answer. */
void http_exchange_resume(const struct http_message *message);

#endif
