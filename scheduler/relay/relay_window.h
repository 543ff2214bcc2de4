/* Which outbox rows the relay has in hand. Pure: no I/O, no clock but the time it is told.
 *
 * Rows are fetched with a lower bound, `id > low`. Ids are not in commit order, so a row may appear
 * below the bound: therefore the bound is only a hint and goes back to 0 every few seconds and
 * after any failure, and ids in hand are skipped. (A cursor loses such rows for ever; a scan from 0
 * each time walks all the dead rows at the head.)
 *
 * A row in hand is sent (a report will come), delivered (may be deleted), or refused. It leaves
 * only when it was deleted, buried, or when its message failed: then it is fetched again. A refused
 * row is published once more with nothing else in flight, since a broker refuses whole batches
 * because of one message; refused alone it is buried. */
#ifndef RS_RELAY_WINDOW_H
#define RS_RELAY_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"

#define RELAY_RESET_MS 5000

struct relay_window;

/* Owns: window_free (NULL is fine). NULL when out of memory. capacity: rows in hand at most. */
struct relay_window *window_new(size_t capacity);
void window_free(struct relay_window *w);

/* Rows that may be fetched now; 0 while a refused row waits for its turn alone. */
size_t window_room(const struct relay_window *w);

/* The bound for the next fetch; goes back to 0 when RELAY_RESET_MS have passed since the last
 * time. */
int64_t window_low(struct relay_window *w, instant now);

/* A row was fetched: the bound moves to it, unless it went back since window_low was asked: what is
 * below must then be fetched again. True: publish it; false: it is in hand already. */
bool window_fetched(struct relay_window *w, int64_t id);

/* A fetched row could not be handed over (queue full, producer gone): as if never fetched, and the
 * bound goes back. */
void window_unfetch(struct relay_window *w, int64_t id);

/* Its report: delivered. Unknown ids are ignored, here and below. */
void window_delivered(struct relay_window *w, int64_t id);
/* Not delivered, or not known to be: it will be fetched again. */
void window_failed(struct relay_window *w, int64_t id);
/* The broker will not take it. True: it was alone, bury it now (then window_gone). */
bool window_refused(struct relay_window *w, int64_t id);

/* The refused row whose turn it is: nothing else is in flight. False: none. The caller publishes
 * it (window_sent_alone) or finds that it is gone (window_gone). */
bool window_alone(const struct relay_window *w, int64_t *ret_id);
void window_sent_alone(struct relay_window *w, int64_t id);

/* Up to `max` delivered ids, in any order; they stay in hand until window_gone. */
size_t window_deliveries(const struct relay_window *w, int64_t *ret_ids, size_t max);
size_t window_delivered_count(const struct relay_window *w);

/* The row is not in the outbox any more. */
void window_gone(struct relay_window *w, int64_t id);

/* The producer is gone, no report will come: all sent rows are as if never fetched. Delivered ones
 * stay, they may be deleted. */
void window_forget_sent(struct relay_window *w);

size_t window_sent_count(const struct relay_window *w);

#endif
