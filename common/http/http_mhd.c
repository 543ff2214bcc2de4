/* The HTTP server's loop, its beginning and its end, with libmicrohttpd driven from outside: so
 * that one thread owns everything, and deadlines are ours. */
#include "http_mhd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http_files.h"
#include "settings.h"
#include "thread_join.h"

#define TURN_MS    1000
#define LINGER_MS  500 /* at the stop, for answers that are on their way */
#define BACKLOG    512 /* they wait here while it is crowded */
#define STACK_SIZE (1u << 20)

/* The loop ------------------------------------------------------------------------------------- */

/* When it has had its time. Whoever only sits there must not keep probes out: near the bound a step
 * has less time, though enough for a client that means it. */
static instant link_end(const struct http_link *l, bool crowded)
{
    return crowded && l->deadline.ns != INSTANT_NEVER.ns
               ? instant_add_ms(l->deadline, HTTP_STEP_CROWDED_MS - HTTP_STEP_MS)
               : l->deadline;
}

/* Cut what has had its time. Returns when the next one has. */
static instant cut_late(struct http_server *s, instant now)
{
    instant next = INSTANT_NEVER;
    bool crowded = s->link_count >= HTTP_CONNECTIONS_CROWDED;
    for (struct http_link *l = s->links.next; l != &s->links; l = l->next) {
        if (!instant_before(now, link_end(l, crowded))) {
            /* The library finds the end of the stream and closes; it owns the descriptor. */
            (void)shutdown(l->fd, SHUT_RDWR);
            l->deadline = INSTANT_NEVER;
        }
        next = instant_min(next, link_end(l, crowded));
    }
    return next;
}

static void take_answers(struct http_server *s)
{
    struct http_message message;
    while (inbox_take(s->answers, &message)) {
        if (message.exchange != NULL) {
            http_exchange_resume(&message);
        }
    }
}

static void wait_for_work(struct http_server *s, instant next)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    instant now = clock_now();
    next = instant_min(next, instant_add_ms(now, TURN_MS));
    int wait_ms = instant_poll_timeout(now, next);
    MHD_UNSIGNED_LONG_LONG wish_ms = 0;
    if (MHD_get_timeout(s->daemon, &wish_ms) == MHD_YES &&
        wish_ms < (MHD_UNSIGNED_LONG_LONG)wait_ms) {
        wait_ms = (int)wish_ms;
    }
    struct pollfd fds[2] = {{.fd = inbox_fd(s->answers), .events = POLLIN},
                            {.fd = info->epoll_fd, .events = POLLIN}};
    (void)poll(fds, 2, wait_ms);
}

/* True when the thread may end: nothing is owed, and what was answered had its chance to leave. */
static bool is_over(struct http_server *s, instant *stop_at)
{
    if (!atomic_load(&s->stopping)) {
        return false;
    }
    if (stop_at->ns == INSTANT_NEVER.ns) {
        *stop_at = instant_add_ms(clock_now(), LINGER_MS);
        int listener = MHD_quiesce_daemon(s->daemon);
        if (listener >= 0) {
            (void)close(listener);
        }
    }
    return s->owed == 0 && (s->busy == 0 || !instant_before(clock_now(), *stop_at));
}

static void *server_main(void *argument)
{
    struct http_server *s = argument;
    instant stop_at = INSTANT_NEVER;
    thread_name("http");
    for (;;) {
        take_answers(s);
        (void)MHD_run(s->daemon);
        instant next = cut_late(s, clock_now());
        if (is_over(s, &stop_at)) {
            break;
        }
        wait_for_work(s, instant_min(next, stop_at));
    }
    MHD_stop_daemon(s->daemon);
    s->daemon = NULL;
    return NULL;
}

/* Beginning ------------------------------------------------------------------------------------ */

static enum status address_parse(const struct http_options *o, struct sockaddr_storage *ret_address,
                                 socklen_t *ret_size, struct error *err)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(o->port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(o->port)};
    memset(ret_address, 0, sizeof *ret_address);
    if (inet_pton(AF_INET, o->address, &v4.sin_addr) == 1) {
        memcpy(ret_address, &v4, sizeof v4);
        *ret_size = sizeof v4;
        return STATUS_OK;
    }
    if (inet_pton(AF_INET6, o->address, &v6.sin6_addr) == 1) {
        memcpy(ret_address, &v6, sizeof v6);
        *ret_size = sizeof v6;
        return STATUS_OK;
    }
    return error_set(err, STATUS_INVALID,
                     "http_address: \"%s\" is no address; write one as numbers, for example "
                     "\"127.0.0.1\", \"::1\" or \"0.0.0.0\"",
                     o->address);
}

static uint16_t port_of(int fd)
{
    struct sockaddr_storage bound;
    socklen_t size = sizeof bound;
    struct sockaddr_in v4 = {0};
    if (getsockname(fd, (struct sockaddr *)&bound, &size) != 0) {
        return 0;
    }
    memcpy(&v4, &bound, sizeof v4); /* the port lies at the same place in both families */
    return ntohs(v4.sin_port);
}

static enum status listener_open(const struct http_options *o, int *ret_fd, struct error *err)
{
    struct sockaddr_storage address;
    socklen_t size = 0;
    int on = 1;
    enum status s = address_parse(o, &address, &size, err);
    if (s != STATUS_OK) {
        return s;
    }
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* Reuse: connections of the process before this one may linger in TIME_WAIT. */
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        bind(fd, (struct sockaddr *)&address, size) == 0 && listen(fd, BACKLOG) == 0) {
        *ret_fd = fd;
        return STATUS_OK;
    }
    s = error_set(err, STATUS_INVALID,
                  "http_port: cannot listen on %s port %u: %s; choose another http_port or "
                  "http_address, or http_address = \"\" for no HTTP",
                  o->address, (unsigned)o->port, strerror(errno));
    if (fd >= 0) {
        (void)close(fd);
    }
    return s;
}

/* What the library says while it starts is the only reason it gives. */
static void PRINTF_LIKE(2, 0) on_trouble(void *server, const char *format, va_list arguments)
{
    struct http_server *s = server;
    (void)vsnprintf(s->trouble, sizeof s->trouble, format, arguments);
}

static enum status daemon_start(struct http_server *s, int listener, const struct http_files *files,
                                struct error *err)
{
    bool tls = files->certificate != NULL;
    struct MHD_OptionItem options[] = {
        {MHD_OPTION_EXTERNAL_LOGGER, (intptr_t)on_trouble, s},
        {MHD_OPTION_LISTEN_SOCKET, listener, NULL},
        {MHD_OPTION_CONNECTION_LIMIT, HTTP_CONNECTIONS_MAX, NULL},
        {MHD_OPTION_CONNECTION_TIMEOUT, HTTP_STEP_MS / 1000, NULL},
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT, HTTP_HEAD_MAX, NULL},
        {MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)http_on_completed, s},
        {MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)http_on_connection, s},
        {tls ? MHD_OPTION_HTTPS_MEM_CERT : MHD_OPTION_END, 0, files->certificate},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, files->key},
        {MHD_OPTION_END, 0, NULL},
    };
    if (tls && MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES) {
        return error_set(err, STATUS_INVALID,
                         "http_tls_certificate_file: this libmicrohttpd was built without TLS; "
                         "remove the setting and put a TLS proxy in front");
    }
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    s->daemon = MHD_start_daemon(flags | (tls ? MHD_USE_TLS : 0), 0, NULL, NULL, http_on_request, s,
                                 MHD_OPTION_ARRAY, options, MHD_OPTION_END);
    s->trouble[strcspn(s->trouble, "\r\n")] = '\0';
    return s->daemon != NULL
               ? STATUS_OK
               : error_set(err, tls ? STATUS_INVALID : STATUS_FATAL,
                           "the HTTP server does not start: %s%s", s->trouble,
                           tls ? "; check http_tls_certificate_file and http_tls_key_file" : "");
}

static enum status token_take(struct http_server *s, const char *path, struct error *err)
{
    char token[SETTING_TEXT_MAX];
    if (path == NULL || path[0] == '\0') {
        return STATUS_OK;
    }
    enum status status = secret_read(path, token, sizeof token, err);
    if (status == STATUS_OK) {
        status = digest_memory(token, strlen(token), s->token);
        s->has_token = true;
        explicit_bzero(token, sizeof token);
    } else {
        (void)error_prefix(err, STATUS_INVALID, "http_token_file");
        status = STATUS_INVALID;
    }
    return status;
}

static enum status thread_begin(struct http_server *s, struct error *err)
{
    pthread_attr_t attributes;
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, STACK_SIZE);
    int failure = pthread_create(&s->thread, &attributes, server_main, s);
    (void)pthread_attr_destroy(&attributes);
    return failure == 0 ? STATUS_OK
                        : error_set(err, STATUS_FATAL, "no thread for HTTP: %s", strerror(failure));
}

static void server_free(struct http_server *s)
{
    if (s->daemon != NULL) {
        MHD_stop_daemon(s->daemon);
    }
    inbox_free(s->answers);
    explicit_bzero(s->token, sizeof s->token);
    free(s);
}

static enum status server_make(struct http_server *s, const struct http_options *o,
                               struct error *err)
{
    int listener = -1;
    struct http_files files = {0};
    s->answers = inbox_new(sizeof(struct http_message), HTTP_CONNECTIONS_MAX + 2);
    if (s->answers == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory for HTTP");
    }
    enum status status = token_take(s, o->token_file, err);
    if (status == STATUS_OK) {
        status = http_files_read(&files, o->certificate_file, o->key_file, err);
    }
    if (status == STATUS_OK) {
        status = listener_open(o, &listener, err);
    }
    if (status == STATUS_OK) {
        s->port = port_of(listener);
        status = daemon_start(s, listener, &files, err);
        if (status != STATUS_OK) {
            (void)close(listener);
        }
    }
    http_files_free(&files);
    return status;
}

enum status http_server_start(const struct http_options *options, struct http_server **ret_server,
                              struct error *err)
{
    struct http_server *s = calloc(1, sizeof *s);
    if (s == NULL || options->route_count > HTTP_ROUTES_MAX) {
        free(s);
        return error_set(err, STATUS_FATAL, "no memory or no room for %zu HTTP routes",
                         options->route_count);
    }
    s->links.next = s->links.previous = &s->links;
    s->route_count = options->route_count;
    memcpy(s->routes, options->routes, options->route_count * sizeof s->routes[0]);
    enum status status = server_make(s, options, err);
    if (status == STATUS_OK) {
        status = thread_begin(s, err);
    }
    if (status != STATUS_OK) {
        server_free(s);
        return status;
    }
    *ret_server = s;
    return STATUS_OK;
}

/* Looking and ending --------------------------------------------------------------------------- */

uint16_t http_server_port(const struct http_server *server)
{
    return server->port;
}

enum status http_server_stop(struct http_server *server, instant deadline)
{
    const struct http_message wake = {.exchange = NULL};
    if (server == NULL) {
        return STATUS_OK;
    }
    atomic_store(&server->stopping, true);
    enum status full = inbox_post(server->answers, &wake); /* full: it wakes anyway */
    (void)full;
    if (thread_join(server->thread, deadline) != STATUS_OK) {
        return STATUS_TIMEOUT;
    }
    server_free(server);
    return STATUS_OK;
}
