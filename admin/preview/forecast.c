#include "forecast.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY_US ((int64_t)SECONDS_A_DAY * MICROS_A_SECOND)

enum status forecast_open(utc_us from, int64_t days, struct forecast *ret)
{
    struct forecast f = {.from = from, .until = {from.us + days * DAY_US}};
    f.first_second = floor_divide(f.from.us, MICROS_A_SECOND);
    f.seconds = (size_t)(days * SECONDS_A_DAY + 1);
    f.first_day = floor_divide(f.first_second, SECONDS_A_DAY);
    f.days = (size_t)(floor_divide(f.until.us - 1, DAY_US) - f.first_day) + 1;
    f.due = calloc(f.seconds, sizeof f.due[0]);
    f.example = calloc(f.seconds, sizeof f.example[0]);
    if (f.due == NULL || f.example == NULL) {
        forecast_close(&f);
        return STATUS_FATAL;
    }
    *ret = f;
    return STATUS_OK;
}

void forecast_close(struct forecast *f)
{
    free(f->queues);
    free(f->due);
    free(f->example);
    free(f->names);
    *f = (struct forecast){.days = 0};
}

/* Room for one more; NULL: none. */
static void *grown(void *items, size_t count, size_t *max, size_t size)
{
    if (count < *max) {
        return items;
    }
    size_t more = *max == 0 ? 64 : 2 * *max;
    void *to = realloc(items, more * size);
    if (to != NULL) {
        *max = more;
    }
    return to;
}

/* The queue's row, made where it is new; NULL: out of memory. */
static struct forecast_queue *queue_find(struct forecast *f, const char *name)
{
    size_t low = 0;
    size_t high = f->queue_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(f->queues[middle].name, name);
        if (order == 0) {
            return &f->queues[middle];
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    void *queues = grown(f->queues, f->queue_count, &f->queue_max, sizeof f->queues[0]);
    if (queues == NULL) {
        return NULL;
    }
    f->queues = queues;
    memmove(&f->queues[low + 1], &f->queues[low], (f->queue_count - low) * sizeof f->queues[0]);
    f->queues[low] = (struct forecast_queue){.schedules = 0};
    (void)snprintf(f->queues[low].name, sizeof f->queues[low].name, "%s", name);
    f->queue_count++;
    return &f->queues[low];
}

static bool name_keep(struct forecast *f, const char *name)
{
    if (f->name_count > 0 && strcmp(f->names[f->name_count - 1], name) == 0) {
        return true;
    }
    void *names = grown(f->names, f->name_count, &f->name_max, sizeof f->names[0]);
    if (names == NULL) {
        return false;
    }
    f->names = names;
    (void)snprintf(f->names[f->name_count++], sizeof f->names[0], "%s", name);
    return true;
}

/* One by one: into seconds and days. */
static bool firings_add(struct forecast *f, const struct forecast_subject *s)
{
    for (struct firing g = rule_next_within(s->rule, s->after, s->bounds);
         g.found && g.at.us < s->before.us; g = rule_next_within(s->rule, g.at, s->bounds)) {
        int64_t second = utc_seconds(g.at) - f->first_second;
        int64_t day = floor_divide(utc_seconds(g.at), SECONDS_A_DAY) - f->first_day;
        f->day_firings[day]++;
        if (f->due[second]++ == 0) {
            if (!name_keep(f, s->schedule)) {
                return false;
            }
            f->example[second] = (uint32_t)f->name_count;
        }
    }
    return true;
}

/* By days only. */
static void days_add(struct forecast *f, const struct forecast_subject *s)
{
    for (size_t i = 0; i < f->days; i++) {
        int64_t begin = (f->first_day + (int64_t)i) * DAY_US;
        int64_t end = begin + DAY_US;
        utc_us after = {begin - 1 > s->after.us ? begin - 1 : s->after.us};
        utc_us before = {end < s->before.us ? end : s->before.us};
        if (after.us < before.us) {
            f->day_firings[i] += rule_count_within(s->rule, after, before, s->bounds);
        }
    }
}

enum status forecast_add(struct forecast *f, const struct forecast_subject *subject)
{
    struct forecast_subject s = *subject;
    s.after.us = s.after.us > f->from.us ? s.after.us : f->from.us;
    s.before.us = s.before.us < f->until.us ? s.before.us : f->until.us;
    int64_t firings =
        s.after.us < s.before.us ? rule_count_within(s.rule, s.after, s.before, s.bounds) : 0;
    if (firings == 0) {
        return STATUS_OK;
    }
    struct forecast_queue *queue = queue_find(f, s.queue);
    if (queue == NULL) {
        return STATUS_FATAL;
    }
    bool coarse = firings > FORECAST_SCHEDULE_FIRINGS ||
                  f->firings - f->coarse_firings + firings > FORECAST_FIRINGS_MAX;
    bool again = strcmp(f->last, s.schedule) == 0;
    bool same_queue = again && strcmp(f->last_queue, s.queue) == 0;
    queue->firings += firings;
    queue->schedules += same_queue ? 0 : 1;
    f->firings += firings;
    f->schedules += again ? 0 : 1;
    f->coarse_firings += coarse ? firings : 0;
    f->coarse_schedules += coarse && !(again && f->last_coarse) ? 1 : 0;
    (void)snprintf(f->last, sizeof f->last, "%s", s.schedule);
    (void)snprintf(f->last_queue, sizeof f->last_queue, "%s", s.queue);
    f->last_coarse = coarse || (again && f->last_coarse);
    if (coarse) {
        days_add(f, &s);
        return STATUS_OK;
    }
    return firings_add(f, &s) ? STATUS_OK : STATUS_FATAL;
}

static void peak_offer(struct forecast_peak *peaks, size_t *count, size_t most,
                       const struct forecast_peak *p)
{
    size_t at = *count;
    while (at > 0 && peaks[at - 1].firings < p->firings) {
        at--;
    }
    if (at == most) {
        return;
    }
    size_t behind = (*count < most ? *count : most - 1) - at;
    memmove(&peaks[at + 1], &peaks[at], behind * sizeof peaks[0]);
    peaks[at] = *p;
    *count += *count < most ? 1 : 0;
}

size_t forecast_peaks(const struct forecast *f, int64_t length, int64_t least,
                      struct forecast_peak *ret_peaks, size_t most)
{
    size_t count = 0;
    for (size_t i = 0; i < f->seconds;) {
        int64_t begin = floor_divide(f->first_second + (int64_t)i, length) * length;
        struct forecast_peak p = {.at = begin};
        for (; i < f->seconds && f->first_second + (int64_t)i < begin + length; i++) {
            p.firings += f->due[i];
            if (f->due[i] > p.most) {
                p.most = f->due[i];
                p.example = f->names[f->example[i] - 1];
            }
        }
        if (p.firings >= least && p.firings > 0) {
            peak_offer(ret_peaks, &count, most, &p);
        }
    }
    return count;
}

int64_t forecast_collisions(const struct forecast *f)
{
    int64_t seconds = 0;
    for (size_t i = 0; i < f->seconds; i++) {
        seconds += f->due[i] > 1 ? 1 : 0;
    }
    return seconds;
}
