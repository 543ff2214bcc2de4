#include "inbox.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct inbox {
    pthread_mutex_t mutex; /* protects all below but fd and the sizes */
    size_t head, count;
    uint64_t dropped;
    unsigned char *slots;
    size_t message_size, capacity;
    int fd; /* eventfd: 1 while count > 0 */
};

struct inbox *inbox_new(size_t message_size, size_t capacity)
{
    struct inbox *in = calloc(1, sizeof *in);
    if (in == NULL) {
        return NULL;
    }
    in->message_size = message_size;
    in->capacity = capacity;
    in->slots = calloc(capacity, message_size);
    in->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    (void)pthread_mutex_init(&in->mutex, NULL);
    if (in->slots == NULL || in->fd < 0) {
        inbox_free(in);
        return NULL;
    }
    return in;
}

void inbox_free(struct inbox *in)
{
    if (in == NULL) {
        return;
    }
    if (in->fd >= 0) {
        (void)close(in->fd);
    }
    (void)pthread_mutex_destroy(&in->mutex);
    free(in->slots);
    free(in);
}

enum status inbox_post(struct inbox *in, const void *message)
{
    enum status s = STATUS_OK;
    (void)pthread_mutex_lock(&in->mutex);
    if (in->count == in->capacity) {
        in->dropped++;
        s = STATUS_FULL;
    } else {
        size_t at = (in->head + in->count) % in->capacity;
        memcpy(in->slots + at * in->message_size, message, in->message_size);
        in->count++;
    }
    /* Written under the mutex: a take that empties the inbox must not swallow a later post's
     * wake-up. The counter is at most `capacity`, so the write cannot block. */
    uint64_t one = 1;
    ssize_t ignored = write(in->fd, &one, sizeof one);
    (void)ignored;
    (void)pthread_mutex_unlock(&in->mutex);
    return s;
}

bool inbox_take(struct inbox *in, void *ret_message)
{
    bool some = false;
    (void)pthread_mutex_lock(&in->mutex);
    if (in->count > 0) {
        memcpy(ret_message, in->slots + in->head * in->message_size, in->message_size);
        in->head = (in->head + 1) % in->capacity;
        in->count--;
        some = true;
    }
    if (in->count == 0) {
        uint64_t value = 0;
        ssize_t ignored = read(in->fd, &value, sizeof value);
        (void)ignored;
    }
    (void)pthread_mutex_unlock(&in->mutex);
    return some;
}

int inbox_fd(const struct inbox *in)
{
    return in->fd;
}

uint64_t inbox_take_dropped(struct inbox *in)
{
    (void)pthread_mutex_lock(&in->mutex);
    uint64_t n = in->dropped;
    in->dropped = 0;
    (void)pthread_mutex_unlock(&in->mutex);
    return n;
}
