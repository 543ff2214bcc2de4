#include "cron_slow.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "civil.h"

enum {
    SECOND,
    MINUTE,
    HOUR,
    DAY,
    MONTH,
    WEEKDAY,
    YEAR,
};

static const int FIRST[] = {0, 0, 0, 1, 1, 0, 1970};
static const int LAST[] = {59, 59, 23, 31, 12, 6, 2199};

void cron_slow_open(struct cron_slow *c, const char *text)
{
    static const char *const nicknames[][2] = {
        {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
        {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
        {"@hourly", "0 * * * *"},
    };
    for (size_t i = 0; i < sizeof nicknames / sizeof nicknames[0]; i++) {
        text = strcmp(text, nicknames[i][0]) == 0 ? nicknames[i][1] : text;
    }
    memcpy(c->text, text, strlen(text) + 1);
    const char *found[8];
    int count = 0;
    char *rest = NULL;
    for (char *w = strtok_r(c->text, " \t", &rest); w != NULL && count < 8;
         w = strtok_r(NULL, " \t", &rest)) {
        found[count++] = w;
    }
    c->words[SECOND] = "0";
    c->words[YEAR] = "*";
    for (int i = 0; i < count && i < 7; i++) {
        c->words[count == 5 ? i + 1 : i] = found[i];
    }
}

/* A number, or the name of a month or a weekday, at *p. */
static int value_at(const char **p, int field)
{
    static const char names[2][64] = {"JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC",
                                      "SUNMONTUEWEDTHUFRISAT"};
    if ((**p >= '0' && **p <= '9') || (field != MONTH && field != WEEKDAY)) {
        char *end = NULL;
        int n = (int)strtol(*p, &end, 10);
        *p = end;
        return n;
    }
    const char *list = names[field == MONTH ? 0 : 1];
    int i = 0;
    while (strncasecmp(*p, list + (size_t)3 * (size_t)i, 3) != 0) {
        i++;
    }
    *p += 3;
    return i + (field == MONTH ? 1 : 0);
}

/* One item that is plain: "*", "*"/n, v, a-b, a-b/n. */
static bool item_has(const char *p, int field, int value)
{
    int low = FIRST[field];
    int high = LAST[field];
    if (*p == '*') {
        p++;
    } else {
        low = value_at(&p, field);
        high = low;
        if (*p == '-') {
            p++;
            high = value_at(&p, field);
        }
    }
    int step = *p == '/' ? (int)strtol(p + 1, NULL, 10) : 1;
    return value >= low && value <= high && (value - low) % step == 0;
}

/* Cut the next item of a list off. */
static bool item_next(const char **rest, char item[256])
{
    if (*rest == NULL) {
        return false;
    }
    size_t n = strcspn(*rest, ",");
    memcpy(item, *rest, n);
    item[n] = '\0';
    *rest = (*rest)[n] == ',' ? *rest + n + 1 : NULL;
    return true;
}

static bool list_has(const char *list, int field, int value)
{
    char item[256];
    while (item_next(&list, item)) {
        if (item_has(item, field, value)) {
            return true;
        }
    }
    return false;
}

/* Is d the Monday to Friday of its month that is nearest to a day of it? */
static bool is_nearest_weekday(struct civil_date d, int to)
{
    int length = civil_days_in_month(d.year, d.month);
    for (int distance = 0; distance < 3 && to <= length; distance++) {
        for (int side = -1; side <= 1; side += 2) {
            int day = to + side * distance;
            int weekday =
                day < 1 || day > length ? 0 : civil_weekday(civil_days_of(d.year, d.month, day));
            if (weekday != 0 && weekday != 6) {
                return d.day == day;
            }
        }
    }
    return false;
}

static bool day_has(const char *list, struct civil_date d)
{
    int length = civil_days_in_month(d.year, d.month);
    char item[256];
    while (item_next(&list, item)) {
        bool has = false;
        if (item[0] == 'L' && item[1] == 'W') {
            has = is_nearest_weekday(d, length);
        } else if (item[0] == 'L') {
            has = d.day == length - (item[1] == '-' ? (int)strtol(item + 2, NULL, 10) : 0);
        } else if (item[strlen(item) - 1] == 'W') {
            has = is_nearest_weekday(d, (int)strtol(item, NULL, 10));
        } else {
            has = item_has(item, DAY, d.day);
        }
        if (has) {
            return true;
        }
    }
    return false;
}

static bool weekday_has(const char *list, struct civil_date d)
{
    int weekday = civil_weekday(civil_days_of(d.year, d.month, d.day));
    bool last = d.day + 7 > civil_days_in_month(d.year, d.month);
    char item[256];
    while (item_next(&list, item)) {
        const char *p = item;
        bool has = false;
        if (strchr(item, '#') != NULL || item[strlen(item) - 1] == 'L') {
            has = value_at(&p, WEEKDAY) % 7 == weekday;
            p += *p == '#' ? 1 : 0;
            has = has && (*p == 'L' ? last : d.day > 7 * (*p - '1') && d.day <= 7 * (*p - '0'));
        } else {
            has = item_has(item, WEEKDAY, weekday) ||
                  (weekday == 0 && item[0] != '*' && item_has(item, WEEKDAY, 7));
        }
        if (has) {
            return true;
        }
    }
    return false;
}

static bool is_open(const char *word)
{
    return strcmp(word, "*") == 0 || strcmp(word, "?") == 0;
}

bool cron_slow_has_date(const struct cron_slow *c, int64_t day)
{
    struct civil_date d = civil_date_of(day);
    if (!list_has(c->words[MONTH], MONTH, d.month) ||
        (strcmp(c->words[YEAR], "*") != 0 && !list_has(c->words[YEAR], YEAR, d.year))) {
        return false;
    }
    const char *weekdays = c->words[WEEKDAY];
    bool both = weekdays[0] == '+';
    weekdays += both ? 1 : 0;
    bool any_day = is_open(c->words[DAY]);
    bool any_weekday = is_open(weekdays);
    bool by_day = any_day || day_has(c->words[DAY], d);
    bool by_weekday = any_weekday || weekday_has(weekdays, d);
    return both || any_day || any_weekday ? by_day && by_weekday : by_day || by_weekday;
}

bool cron_slow_has_time(const struct cron_slow *c, int hour, int minute, int second)
{
    return list_has(c->words[HOUR], HOUR, hour) && list_has(c->words[MINUTE], MINUTE, minute) &&
           list_has(c->words[SECOND], SECOND, second);
}

static int set_size(const struct cron_slow *c, int field)
{
    int n = 0;
    for (int v = FIRST[field]; v <= LAST[field]; v++) {
        n += list_has(c->words[field], field, v) ? 1 : 0;
    }
    return n;
}

int cron_slow_times(const struct cron_slow *c)
{
    return set_size(c, SECOND) * set_size(c, MINUTE) * set_size(c, HOUR);
}

bool cron_slow_follows_clock(const struct cron_slow *c)
{
    return c->words[SECOND][0] == '*' || c->words[MINUTE][0] == '*' || c->words[HOUR][0] == '*';
}

struct collection {
    const struct slow_question *q;
    struct slow_firing *firings;
    int count, most;
};

static void collect(struct collection *to, struct slow_firing f)
{
    if (f.at <= to->q->after || f.at > to->q->until) {
        return;
    }
    if (to->count < to->most) {
        to->firings[to->count] = f;
    }
    to->count++;
}

/* What becomes of one nominal time. */
static void nominal_collect(struct collection *to, int64_t n)
{
    const struct slow_question *q = to->q;
    struct zone_span span = zone_resolve(q->zone, (struct local_time){n});
    if (span.kind == LOCAL_UNIQUE) {
        collect(to, (struct slow_firing){n - span.before, n, span.before, false});
    } else if (span.kind == LOCAL_GAP) {
        if (q->gap == DST_GAP_SKIP || span.after - span.before > CRON_SLOW_CATCH_UP_S) {
            return;
        }
        int64_t at = q->gap == DST_GAP_AFTER ? span.transition : n - span.before;
        collect(to, (struct slow_firing){at, n, span.after, false});
    } else {
        bool both = q->overlap == DST_OVERLAP_BOTH;
        if (both || q->overlap == DST_OVERLAP_FIRST) {
            collect(to, (struct slow_firing){n - span.before, n, span.before, both});
        }
        if (both || q->overlap == DST_OVERLAP_SECOND) {
            collect(to, (struct slow_firing){n - span.after, n, span.after, both});
        }
    }
}

static int firing_order(const void *a, const void *b)
{
    const struct slow_firing *x = a;
    const struct slow_firing *y = b;
    if (x->at != y->at) {
        return x->at < y->at ? -1 : 1;
    }
    return x->nominal < y->nominal ? -1 : x->nominal > y->nominal ? 1 : 0;
}

/* The values that a field names, asked one by one. */
static void set_read(const struct cron_slow *c, int field, bool set[60])
{
    for (int v = FIRST[field]; v <= LAST[field]; v++) {
        set[v] = list_has(c->words[field], field, v);
    }
}

/* The times of day of one date within [low, high]. */
static void date_collect(struct collection *to, const bool clock[3][60], int64_t day,
                         const int64_t range[2])
{
    for (int minute = 0; minute < 1440; minute++) {
        if (!clock[HOUR][minute / 60] || !clock[MINUTE][minute % 60]) {
            continue;
        }
        for (int second = 0; second < 60; second++) {
            int64_t n = day * SECONDS_A_DAY + minute * 60 + second;
            if (clock[SECOND][second] && n >= range[0] && n <= range[1]) {
                nominal_collect(to, n);
            }
        }
    }
}

int cron_slow_firings(const struct slow_question *q, struct slow_firing *ret_firings, int most)
{
    struct collection to = {.q = q, .firings = ret_firings, .most = most};
    const int64_t range[2] = {q->after - q->reach, q->until + q->reach};
    bool clock[3][60] = {{false}};
    set_read(q->cron, SECOND, clock[SECOND]);
    set_read(q->cron, MINUTE, clock[MINUTE]);
    set_read(q->cron, HOUR, clock[HOUR]);
    int64_t last = floor_divide(range[1], SECONDS_A_DAY);
    for (int64_t day = floor_divide(range[0], SECONDS_A_DAY); day <= last; day++) {
        if (cron_slow_has_date(q->cron, day)) {
            date_collect(&to, (const bool(*)[60])clock, day, range);
        }
    }
    if (to.count > most) {
        return -1;
    }
    qsort(ret_firings, (size_t)to.count, sizeof ret_firings[0], firing_order);
    int kept = 0;
    for (int i = 0; i < to.count; i++) {
        /* On one instant the latest nominal time counts. */
        if (i + 1 == to.count || ret_firings[i + 1].at != ret_firings[i].at) {
            ret_firings[kept++] = ret_firings[i];
        }
    }
    return kept;
}
