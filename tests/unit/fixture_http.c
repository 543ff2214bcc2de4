#include "fixture_http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define ANSWER_MAX (16 * 1024 * 1024)

struct http_server *subject;
char subject_token_path[64];

static struct http_exchange *kept[LATER_MAX];
static size_t kept_count; /* guarded by mutex, as is kept */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

instant instant_in_ms(int64_t ms)
{
    return instant_add_ms(clock_now(), ms);
}

/* Routes --------------------------------------------------------------------------------------- */

static enum http_when answer_hello(void *context, const struct http_request *request,
                                   struct http_response *response)
{
    const char *name = http_request_query(request, "name");
    char text[128];
    (void)snprintf(text, sizeof text, "hello %s from %s", name == NULL ? "nobody" : name,
                   (const char *)context);
    response->type = "text/plain";
    response->body = strdup(text);
    response->size = strlen(text);
    return HTTP_NOW;
}

/* Says back what it got: the length of the body, and what is below the route's path. */
static enum http_when answer_echo(void *context, const struct http_request *request,
                                  struct http_response *response)
{
    char text[128];
    (void)context;
    (void)snprintf(text, sizeof text, "{\"bytes\": %zu, \"rest\": \"%s\"}", request->body_size,
                   request->rest);
    assert_int_equal(strlen(request->body), request->body_size);
    http_respond_json(response, 200, strdup(text));
    return HTTP_NOW;
}

static enum http_when answer_moved(void *context, const struct http_request *request,
                                   struct http_response *response)
{
    (void)context;
    (void)request;
    response->status = 307;
    response->retry_after_s = 3;
    (void)snprintf(response->location, sizeof response->location, "http://other.example/requests");
    return HTTP_NOW;
}

static enum http_when answer_later(void *context, const struct http_request *request,
                                   struct http_response *response)
{
    (void)context;
    (void)response;
    (void)pthread_mutex_lock(&mutex);
    assert_true(kept_count < LATER_MAX);
    kept[kept_count++] = request->exchange;
    (void)pthread_mutex_unlock(&mutex);
    return HTTP_LATER;
}

static size_t kept_now(void)
{
    (void)pthread_mutex_lock(&mutex);
    size_t n = kept_count;
    (void)pthread_mutex_unlock(&mutex);
    return n;
}

void later_answer(const char *text)
{
    (void)pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < kept_count; i++) {
        struct http_response response = {.status = 200, .type = "text/plain"};
        response.body = strdup(text);
        response.size = strlen(text);
        http_answer_later(kept[i], &response);
    }
    kept_count = 0;
    (void)pthread_mutex_unlock(&mutex);
}

static enum http_when answer_large(void *context, const struct http_request *request,
                                   struct http_response *response)
{
    (void)context;
    (void)request;
    response->type = "text/plain";
    response->body = calloc(1, LARGE_BYTES);
    response->size = LARGE_BYTES;
    return HTTP_NOW;
}

static char root[] = "root";
static char hello[] = "hello";

static const struct http_route routes[] = {
    {.path = "/", .method = HTTP_GET, .answer = answer_hello, .context = root},
    {.path = "/hello", .method = HTTP_GET, .answer = answer_hello, .context = hello},
    {.path = "/echo", .method = HTTP_POST, .answer = answer_echo},
    {.path = "/echo/", .method = HTTP_GET, .answer = answer_echo},
    {.path = "/guarded", .method = HTTP_POST, .guarded = true, .answer = answer_echo},
    {.path = "/moved", .method = HTTP_GET, .answer = answer_moved},
    {.path = "/later", .method = HTTP_GET, .answer = answer_later},
    {.path = "/large", .method = HTTP_GET, .answer = answer_large},
    {.path = "/metrics", .method = HTTP_GET, .answer = http_answer_metrics},
};

struct http_options subject_options(const char *token_file)
{
    return (struct http_options){.address = "127.0.0.1",
                                 .token_file = token_file,
                                 .routes = routes,
                                 .route_count = sizeof routes / sizeof routes[0]};
}

void later_wait(size_t n)
{
    instant until = instant_in_ms(SOON_MS);
    while (kept_now() < n) {
        assert_true(instant_before(clock_now(), until));
        (void)poll(NULL, 0, 2);
    }
}

/* A client that sees every byte ------------------------------------------------------------------
 */

int client_dial(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(http_server_port(subject))};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

void client_say(int fd, const char *text, size_t n)
{
    for (size_t sent = 0; sent < n;) {
        ssize_t k = send(fd, text + sent, n - sent, MSG_NOSIGNAL);
        assert_true(k > 0);
        sent += (size_t)k;
    }
}

static char answer[ANSWER_MAX];

size_t client_hear(int fd, int64_t ms, const char **ret_text)
{
    instant until = instant_in_ms(ms);
    size_t used = 0;
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, instant_poll_timeout(clock_now(), until)) <= 0) {
            fail_msg("the server neither answers nor closes within %lld ms", (long long)ms);
        }
        ssize_t n = recv(fd, answer + used, sizeof answer - 1 - used, 0);
        if (n <= 0) {
            answer[used] = '\0';
            *ret_text = answer;
            return used;
        }
        used += (size_t)n;
    }
}

/* One request on a connection of its own; the whole answer. */
const char *client_ask(const char *head, const char *body, size_t body_size)
{
    int fd = client_dial();
    char line[1024];
    int n = snprintf(line, sizeof line, "%s\r\nHost: test\r\nConnection: close\r\n", head);
    client_say(fd, line, (size_t)n);
    if (body != NULL) {
        n = snprintf(line, sizeof line, "Content-Length: %zu\r\n\r\n", body_size);
        client_say(fd, line, (size_t)n);
        client_say(fd, body, body_size);
    } else {
        client_say(fd, "\r\n", 2);
    }
    const char *text = NULL;
    (void)client_hear(fd, SOON_MS, &text);
    (void)close(fd);
    return text;
}

unsigned answer_status(const char *text)
{
    unsigned status = 0;
    assert_int_equal(sscanf(text, "HTTP/1.1 %u", &status), 1);
    return status;
}

bool text_has(const char *text, const char *part)
{
    return strcasestr(text, part) != NULL;
}

const char *answer_body(const char *text)
{
    const char *end = strstr(text, "\r\n\r\n");
    assert_non_null(end);
    return end + 4;
}

/* Fixtures ---------------------------------------------------------------------------------------
 */

int subject_with_token(void **state)
{
    struct error err = {.text = ""};
    (void)state;
    (void)snprintf(subject_token_path, sizeof subject_token_path, "/tmp/rs-test-http-token.XXXXXX");
    int fd = mkstemp(subject_token_path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, SUBJECT_TOKEN "\n", sizeof SUBJECT_TOKEN), sizeof SUBJECT_TOKEN);
    (void)close(fd);
    struct http_options o = subject_options(subject_token_path);
    if (http_server_start(&o, &subject, &err) != STATUS_OK) {
        fail_msg("%s", err.text);
    }
    kept_count = 0;
    return 0;
}

int subject_without_token(void **state)
{
    struct error err = {.text = ""};
    (void)state;
    struct http_options o = subject_options("");
    assert_int_equal(http_server_start(&o, &subject, &err), STATUS_OK);
    subject_token_path[0] = '\0';
    return 0;
}

int subject_end(void **state)
{
    (void)state;
    assert_int_equal(http_server_stop(subject, instant_in_ms(SOON_MS)), STATUS_OK);
    subject = NULL;
    if (subject_token_path[0] != '\0') {
        (void)unlink(subject_token_path);
    }
    return 0;
}
