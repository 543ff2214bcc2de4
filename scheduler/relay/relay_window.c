#include "relay_window.h"

#include <stdlib.h>

enum row_state {
    ROW_NONE,      /* the slot is free */
    ROW_SENT,      /* a report will come */
    ROW_DELIVERED, /* may be deleted */
    ROW_SUSPECT,   /* refused in company: waits for its turn alone */
    ROW_ALONE,     /* sent alone */
};

struct row {
    int64_t id;
    enum row_state state;
};

struct relay_window {
    struct row *rows; /* open addressing with linear probing, a power of two, at most half full */
    size_t size, capacity, count;
    size_t sent, delivered, suspects;
    int64_t low;
    bool went_back; /* since window_low: fetches on their way do not move the bound */
    instant reset_at;
};

struct relay_window *window_new(size_t capacity)
{
    struct relay_window *w = calloc(1, sizeof *w);
    if (w == NULL) {
        return NULL;
    }
    w->capacity = capacity > 0 ? capacity : 1;
    w->size = 2;
    while (w->size < 2 * w->capacity) {
        w->size *= 2;
    }
    w->rows = calloc(w->size, sizeof w->rows[0]);
    if (w->rows == NULL) {
        free(w);
        return NULL;
    }
    return w;
}

void window_free(struct relay_window *w)
{
    if (w != NULL) {
        free(w->rows);
        free(w);
    }
}

static size_t slot_home(const struct relay_window *w, int64_t id)
{
    uint64_t h = (uint64_t)id * UINT64_C(11400714819323198485); /* Fibonacci hashing */
    return (size_t)(h >> 32) & (w->size - 1);
}

/* The row's slot, or the free one where it would go. */
static size_t slot_of(const struct relay_window *w, int64_t id)
{
    size_t i = slot_home(w, id);
    while (w->rows[i].state != ROW_NONE && w->rows[i].id != id) {
        i = (i + 1) & (w->size - 1);
    }
    return i;
}

static struct row *row_find(const struct relay_window *w, int64_t id)
{
    struct row *r = &w->rows[slot_of(w, id)];
    return r->state == ROW_NONE ? NULL : r;
}

static void state_count(struct relay_window *w, enum row_state state, bool up)
{
    size_t *counter = NULL;
    switch (state) {
    case ROW_NONE:
        return;
    case ROW_SENT:
    case ROW_ALONE:
        counter = &w->sent;
        break;
    case ROW_DELIVERED:
        counter = &w->delivered;
        break;
    case ROW_SUSPECT:
        counter = &w->suspects;
        break;
    }
    *counter = up ? *counter + 1 : *counter - 1;
}

static void row_set(struct relay_window *w, struct row *r, enum row_state state)
{
    state_count(w, r->state, false);
    r->state = state;
    state_count(w, state, true);
}

/* Free a slot and move back what probed past it, so that searches never meet a hole. */
static void row_remove(struct relay_window *w, struct row *r)
{
    row_set(w, r, ROW_NONE);
    w->count--;
    size_t hole = (size_t)(r - w->rows);
    size_t i = (hole + 1) & (w->size - 1);
    while (w->rows[i].state != ROW_NONE) {
        size_t home = slot_home(w, w->rows[i].id);
        bool between = ((i - home) & (w->size - 1)) < ((i - hole) & (w->size - 1));
        if (!between) {
            w->rows[hole] = w->rows[i];
            w->rows[i].state = ROW_NONE;
            hole = i;
        }
        i = (i + 1) & (w->size - 1);
    }
}

size_t window_room(const struct relay_window *w)
{
    return w->suspects > 0 ? 0 : w->capacity - w->count;
}

int64_t window_low(struct relay_window *w, instant now)
{
    if (!instant_before(now, w->reset_at)) {
        w->low = 0;
        w->reset_at = instant_add_ms(now, RELAY_RESET_MS);
    }
    w->went_back = false;
    return w->low;
}

bool window_fetched(struct relay_window *w, int64_t id)
{
    if (!w->went_back) {
        w->low = id > w->low ? id : w->low;
    }
    struct row *r = &w->rows[slot_of(w, id)];
    if (r->state != ROW_NONE || w->count == w->capacity) {
        return false;
    }
    r->id = id;
    w->count++;
    row_set(w, r, ROW_SENT);
    return true;
}

static void bound_go_back(struct relay_window *w)
{
    w->low = 0;
    w->went_back = true;
}

static void row_fetch_again(struct relay_window *w, struct row *r)
{
    row_remove(w, r);
    bound_go_back(w);
}

void window_unfetch(struct relay_window *w, int64_t id)
{
    struct row *r = row_find(w, id);
    if (r != NULL && r->state == ROW_ALONE) {
        row_set(w, r, ROW_SUSPECT);
    } else if (r != NULL && r->state == ROW_SENT) {
        row_fetch_again(w, r);
    }
}

static struct row *row_reported(const struct relay_window *w, int64_t id)
{
    struct row *r = row_find(w, id);
    return r != NULL && (r->state == ROW_SENT || r->state == ROW_ALONE) ? r : NULL;
}

void window_delivered(struct relay_window *w, int64_t id)
{
    struct row *r = row_reported(w, id);
    if (r != NULL) {
        row_set(w, r, ROW_DELIVERED);
    }
}

void window_failed(struct relay_window *w, int64_t id)
{
    struct row *r = row_reported(w, id);
    if (r != NULL) {
        row_fetch_again(w, r);
    }
}

bool window_refused(struct relay_window *w, int64_t id)
{
    struct row *r = row_reported(w, id);
    if (r == NULL) {
        return false;
    }
    bool alone = r->state == ROW_ALONE;
    row_set(w, r, ROW_SUSPECT);
    return alone;
}

bool window_alone(const struct relay_window *w, int64_t *ret_id)
{
    if (w->suspects == 0 || w->sent > 0) {
        return false;
    }
    for (size_t i = 0; i < w->size; i++) {
        if (w->rows[i].state == ROW_SUSPECT) {
            *ret_id = w->rows[i].id;
            return true;
        }
    }
    return false;
}

void window_sent_alone(struct relay_window *w, int64_t id)
{
    struct row *r = row_find(w, id);
    if (r != NULL && r->state == ROW_SUSPECT) {
        row_set(w, r, ROW_ALONE);
    }
}

size_t window_deliveries(const struct relay_window *w, int64_t *ret_ids, size_t max)
{
    size_t n = 0;
    for (size_t i = 0; i < w->size && n < max && n < w->delivered; i++) {
        if (w->rows[i].state == ROW_DELIVERED) {
            ret_ids[n++] = w->rows[i].id;
        }
    }
    return n;
}

size_t window_delivered_count(const struct relay_window *w)
{
    return w->delivered;
}

void window_gone(struct relay_window *w, int64_t id)
{
    struct row *r = row_find(w, id);
    if (r != NULL) {
        row_remove(w, r);
    }
}

void window_forget_sent(struct relay_window *w)
{
    /* Removal moves rows back over the slot: look at it again; a full turn without one ends it. */
    size_t i = 0;
    while (w->sent > 0) {
        struct row *r = &w->rows[i];
        if (r->state == ROW_ALONE) {
            row_set(w, r, ROW_SUSPECT);
        } else if (r->state == ROW_SENT) {
            row_remove(w, r);
            continue;
        }
        i = (i + 1) & (w->size - 1);
    }
    bound_go_back(w);
}

size_t window_sent_count(const struct relay_window *w)
{
    return w->sent;
}
