/* Requests of operators over HTTP: POST /requests and GET /requests/ID. One thread with a database
 * connection of its own, so that neither a slow database delays probes nor a flood of requests
 * delays planning: it asks one statement at a time, and at most REQUEST_WAITING_MAX clients wait.
 *
 * A process acts only for scopes that it leads: for others it names the leader (307) or says that
 * there is none (503). What is asked stands in table request; the scope's thread, of whatever
 * leader, carries it out; this thread looks for the answer. */
#ifndef RS_HTTP_REQUESTS_H
#define RS_HTTP_REQUESTS_H

#include "coord.h"
#include "http.h"
#include "scope.h"
#include "store_request.h"

struct http_requests;

/* Strings are copied, scopes borrowed until http_requests_stop. */
struct http_requests_options {
    const char *conninfo, *password_file;
    const char *url; /* our own: never redirected to; "" when there is none */
    struct scope *const *scopes;
    size_t count;
};

/* Owns: http_requests_stop. Returns: OK, FATAL. Thread: main. */
MUST_USE enum status http_requests_start(const struct http_requests_options *options,
                                         struct http_requests **ret_requests, struct error *err);

/* The routes; the context is the struct http_requests. */
enum http_when http_requests_post(void *requests, const struct http_request *request,
                                  struct http_response *response);
enum http_when http_requests_get(void *requests, const struct http_request *request,
                                 struct http_response *response);

/* When its thread last made a turn; it does at least every second, except while a database does not
 * answer: then after HTTP_REQUESTS_LATE_MS at most. Thread: any. */
instant http_requests_last_turn(const struct http_requests *requests);
#define HTTP_REQUESTS_LATE_MS 20000

/* Who led our scopes when the database was last asked (every HTTP_LEADERS_MS while it answers), for
 * people. *ret_at is when; ns 0: never yet. Returns how many. Thread: any. Blocks: never for long.
 */
size_t http_requests_leaders(struct http_requests *requests,
                             struct request_leader ret_leaders[COORD_SCOPES_MAX], instant *ret_at);
#define HTTP_LEADERS_MS 5000

/* Tell all who wait to ask elsewhere, and end the thread; whoever comes after is told so at once.
 * Everything stays in memory, since routes may still be asked, until http_requests_free.
 * Returns: OK; TIMEOUT: only _exit is left. Thread: main. Blocks: until deadline. */
MUST_USE enum status http_requests_stop(struct http_requests *requests, instant deadline);

/* After http_requests_stop returned OK and the server has ended. NULL is fine. */
void http_requests_free(struct http_requests *requests);

#endif
