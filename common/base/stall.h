/* How long a loop did not turn although it should have: a turn that took long, or a wake-up that
 * came late (a stopped process, a starved machine). The longest of the last one to two minutes is
 * told, by the clock and not since it was last asked for, so that two scrapers do not spoil each
 * other's sight. A turn that has not ended yet counts as well.
 *
 * The loop's thread calls stall_turn when it begins a turn and stall_wait before it waits; any
 * thread reads. Blocks: never for long. */
#ifndef RS_STALL_H
#define RS_STALL_H

#include <pthread.h>
#include <stdbool.h>

#include "clock.h"

#define STALL_WINDOW_MS 60000

struct stall {
    pthread_mutex_t mutex; /* protects all below */
    bool begun;
    bool turning;   /* between stall_turn and stall_wait */
    instant due_at; /* turning: when the turn should have begun; else when the next should */
    instant window; /* begin of the present window */
    int64_t longest_ms, before_ms; /* of this window, and of the one before */
};

#define STALL_INIT                                                                                 \
    {                                                                                              \
        .mutex = PTHREAD_MUTEX_INITIALIZER                                                         \
    }

void stall_init(struct stall *s);

/* A turn begins; it should have begun when the wait ended, or was woken early: then now. */
void stall_turn(struct stall *s, instant now);

/* The turn is over; the loop wants the next one by `wake_at`. */
void stall_wait(struct stall *s, instant now, instant wake_at);

/* Seconds; 0 before the first turn. */
double stall_longest_s(struct stall *s, instant now);

#endif
