#include "stall.h"

void stall_init(struct stall *s)
{
    *s = (struct stall)STALL_INIT;
}

/* Move the windows on to `now`. With the mutex held. */
static void windows_move(struct stall *s, instant now)
{
    int64_t passed_ms = instant_ms_between(s->window, now);
    if (passed_ms < STALL_WINDOW_MS) {
        return;
    }
    s->before_ms = passed_ms < 2 * (int64_t)STALL_WINDOW_MS ? s->longest_ms : 0;
    s->longest_ms = 0;
    s->window = now;
}

/* How long what is going on has lasted beyond its time. With the mutex held. */
static int64_t late_ms(const struct stall *s, instant now)
{
    if (!s->begun || !instant_before(s->due_at, now)) {
        return 0;
    }
    return instant_ms_between(s->due_at, now);
}

static void note(struct stall *s, instant now)
{
    int64_t late = late_ms(s, now);
    windows_move(s, now);
    s->longest_ms = late > s->longest_ms ? late : s->longest_ms;
}

void stall_turn(struct stall *s, instant now)
{
    (void)pthread_mutex_lock(&s->mutex);
    note(s, now);
    if (!s->begun) {
        s->window = now;
    }
    /* Woken early, or no wait in between. Otherwise the late wake-up and the turn that follows are
     * one stall. */
    if (!s->begun || s->turning || instant_before(now, s->due_at)) {
        s->due_at = now;
    }
    s->begun = true;
    s->turning = true;
    (void)pthread_mutex_unlock(&s->mutex);
}

void stall_wait(struct stall *s, instant now, instant wake_at)
{
    (void)pthread_mutex_lock(&s->mutex);
    note(s, now);
    s->turning = false;
    s->due_at = instant_max(now, wake_at);
    (void)pthread_mutex_unlock(&s->mutex);
}

double stall_longest_s(struct stall *s, instant now)
{
    (void)pthread_mutex_lock(&s->mutex);
    windows_move(s, now);
    int64_t ms = late_ms(s, now);
    ms = s->longest_ms > ms ? s->longest_ms : ms;
    ms = s->before_ms > ms ? s->before_ms : ms;
    (void)pthread_mutex_unlock(&s->mutex);
    return (double)ms / 1000;
}
