#include "fixture_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAIRS_MAX 16
#define LOOK_MS   5

struct pair {
    int client, server; /* -1: free */
};

struct proxy {
    int listener;
    struct sockaddr_in upstream;
    char address[32];
    pthread_t thread;
    atomic_int mode, used; /* used: by the thread's present turn */
    atomic_bool cut, stop;
    _Atomic(const char *) marker; /* NULL: none is waited for */
    struct pair pairs[PAIRS_MAX];
};

static void give_up(const char *what)
{
    perror(what);
    exit(2);
}

static void close_pair(struct pair *pair)
{
    (void)close(pair->client);
    (void)close(pair->server);
    *pair = (struct pair){-1, -1};
}

static void accept_one(struct proxy *p)
{
    int client = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);
    if (client < 0) {
        return;
    }
    for (size_t i = 0; i < PAIRS_MAX; i++) {
        if (p->pairs[i].client >= 0 || atomic_load(&p->mode) == PROXY_REFUSE) {
            continue;
        }
        int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(server, (const struct sockaddr *)&p->upstream, sizeof p->upstream) != 0) {
            (void)close(server);
            break;
        }
        p->pairs[i] = (struct pair){client, server};
        return;
    }
    (void)close(client);
}

static bool move_answer(const struct pair *pair, bool deliver)
{
    char buffer[16384];
    ssize_t n = read(pair->server, buffer, sizeof buffer);
    if (n <= 0) {
        return false;
    }
    return !deliver || send(pair->client, buffer, (size_t)n, MSG_NOSIGNAL) == n;
}

static bool move_request(struct proxy *p, const struct pair *pair)
{
    char buffer[16384];
    ssize_t n = read(pair->client, buffer, sizeof buffer);
    if (n <= 0) {
        return false;
    }
    const char *marker = atomic_load(&p->marker);
    if (marker != NULL && memmem(buffer, (size_t)n, marker, strlen(marker)) != NULL) {
        /* Before it is sent: no answer can be faster. */
        atomic_store(&p->marker, NULL);
        atomic_store(&p->mode, PROXY_DEAF);
    }
    return send(pair->server, buffer, (size_t)n, MSG_NOSIGNAL) == n;
}

static void serve(struct proxy *p)
{
    int mode = atomic_load(&p->mode);
    atomic_store(&p->used, mode);
    struct pollfd fds[1 + 2 * PAIRS_MAX];
    bool wanted = mode != PROXY_HOLE;
    fds[0] = (struct pollfd){.fd = p->listener, .events = POLLIN};
    for (size_t i = 0; i < PAIRS_MAX; i++) {
        fds[1 + 2 * i] = (struct pollfd){.fd = wanted ? p->pairs[i].client : -1, .events = POLLIN};
        fds[2 + 2 * i] = (struct pollfd){.fd = wanted ? p->pairs[i].server : -1, .events = POLLIN};
    }
    (void)poll(fds, 1 + 2 * PAIRS_MAX, LOOK_MS);
    if (fds[0].revents != 0) {
        accept_one(p);
    }
    for (size_t i = 0; i < PAIRS_MAX; i++) {
        struct pair *pair = &p->pairs[i];
        bool good = true;
        if (fds[1 + 2 * i].revents != 0) {
            good = move_request(p, pair);
        }
        if (good && fds[2 + 2 * i].revents != 0) {
            /* Read again: a request of this turn may have made it deaf. */
            good = move_answer(pair, atomic_load(&p->mode) != PROXY_DEAF);
        }
        if (!good) {
            close_pair(pair);
        }
    }
}

static void *proxy_run(void *argument)
{
    struct proxy *p = argument;
    while (!atomic_load(&p->stop)) {
        if (atomic_exchange(&p->cut, false) || atomic_load(&p->mode) == PROXY_REFUSE) {
            for (size_t i = 0; i < PAIRS_MAX; i++) {
                if (p->pairs[i].client >= 0) {
                    close_pair(&p->pairs[i]);
                }
            }
        }
        serve(p);
    }
    return NULL;
}

struct proxy *proxy_start(const char *server)
{
    struct proxy *p = calloc(1, sizeof *p);
    char host[64] = "";
    unsigned port = 0;
    if (p == NULL || sscanf(server, "%63[^:]:%u", host, &port) != 2) {
        give_up("proxy");
    }
    p->upstream = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof own;
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (inet_pton(AF_INET, host, &p->upstream.sin_addr) != 1 ||
        bind(p->listener, (const struct sockaddr *)&own, sizeof own) != 0 ||
        listen(p->listener, 16) != 0 ||
        getsockname(p->listener, (struct sockaddr *)&own, &size) != 0) {
        give_up("proxy");
    }
    (void)snprintf(p->address, sizeof p->address, "127.0.0.1:%u", (unsigned)ntohs(own.sin_port));
    for (size_t i = 0; i < PAIRS_MAX; i++) {
        p->pairs[i] = (struct pair){-1, -1};
    }
    if (pthread_create(&p->thread, NULL, proxy_run, p) != 0) {
        give_up("proxy");
    }
    return p;
}

const char *proxy_address(const struct proxy *p)
{
    return p->address;
}

void proxy_set(struct proxy *p, enum proxy_mode mode)
{
    atomic_store(&p->mode, (int)mode);
    while (atomic_load(&p->used) != (int)mode) { /* a turn takes LOOK_MS at most */
        (void)poll(NULL, 0, 1);
    }
}

void proxy_deafen_at(struct proxy *p, const char *marker)
{
    atomic_store(&p->marker, marker);
}

bool proxy_is_deaf(const struct proxy *p)
{
    return atomic_load(&p->mode) == PROXY_DEAF;
}

void proxy_cut(struct proxy *p)
{
    atomic_store(&p->cut, true);
}

void proxy_stop(struct proxy *p)
{
    atomic_store(&p->stop, true);
    (void)pthread_join(p->thread, NULL);
    for (size_t i = 0; i < PAIRS_MAX; i++) {
        if (p->pairs[i].client >= 0) {
            close_pair(&p->pairs[i]);
        }
    }
    (void)close(p->listener);
    free(p);
}
