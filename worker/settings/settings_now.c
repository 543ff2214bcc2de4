#include "settings_now.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct held {
    const struct worker_settings *settings;
    struct worker_settings *owned; /* NULL: borrowed */
    uint64_t number;
    size_t holders;
    struct held *older;
};

struct settings_now {
    pthread_mutex_t mutex; /* protects all below */
    struct held *newest;   /* in force; the older ones still have holders */
};

static struct held *held_new(const struct worker_settings *settings, struct worker_settings *owned,
                             struct held *older)
{
    struct held *h = calloc(1, sizeof *h);
    if (h != NULL) {
        *h = (struct held){.settings = settings,
                           .owned = owned,
                           .number = older != NULL ? older->number + 1 : 1,
                           .older = older};
    }
    return h;
}

struct settings_now *settings_now_new(const struct worker_settings *first)
{
    struct settings_now *now = calloc(1, sizeof *now);
    if (now == NULL) {
        return NULL;
    }
    now->newest = held_new(first, NULL, NULL);
    if (now->newest == NULL) {
        free(now);
        return NULL;
    }
    (void)pthread_mutex_init(&now->mutex, NULL);
    return now;
}

void settings_now_free(struct settings_now *now)
{
    if (now == NULL) {
        return;
    }
    while (now->newest != NULL) {
        struct held *h = now->newest;
        now->newest = h->older;
        assert(h->holders == 0);
        free(h->owned);
        free(h);
    }
    (void)pthread_mutex_destroy(&now->mutex);
    free(now);
}

/* Under the mutex: let go of what is neither in force nor held. */
static void older_release(struct settings_now *now)
{
    for (struct held **p = &now->newest->older; *p != NULL;) {
        struct held *h = *p;
        if (h->holders > 0) {
            p = &h->older;
            continue;
        }
        *p = h->older;
        free(h->owned);
        free(h);
    }
}

const struct worker_settings *settings_take(struct settings_now *now, uint64_t *ret_number)
{
    (void)pthread_mutex_lock(&now->mutex);
    struct held *h = now->newest;
    h->holders++;
    if (ret_number != NULL) {
        *ret_number = h->number;
    }
    (void)pthread_mutex_unlock(&now->mutex);
    return h->settings;
}

void settings_give(struct settings_now *now, const struct worker_settings *taken)
{
    (void)pthread_mutex_lock(&now->mutex);
    struct held *h = now->newest;
    while (h != NULL && h->settings != taken) {
        h = h->older;
    }
    assert(h != NULL && h->holders > 0);
    h->holders--;
    older_release(now);
    (void)pthread_mutex_unlock(&now->mutex);
}

enum status settings_replace(struct settings_now *now, struct worker_settings *fresh)
{
    (void)pthread_mutex_lock(&now->mutex);
    struct held *h = held_new(fresh, fresh, now->newest);
    if (h != NULL) {
        now->newest = h;
        older_release(now);
    }
    (void)pthread_mutex_unlock(&now->mutex);
    if (h == NULL) {
        free(fresh);
        return STATUS_FATAL;
    }
    return STATUS_OK;
}
