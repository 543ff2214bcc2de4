#include "fixture_cron.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_zone.h"

static const char *const MONTHS[] = {"JAN", "FEB", "MAR", "APR", "may", "jun",
                                     "Jul", "AUG", "SEP", "OCT", "NOV", "DEC"};
static const char *const WEEKDAYS[] = {"SUN", "MON", "TUE", "wed", "thu", "Fri", "SAT"};

struct out {
    char *text;
    size_t used;
};

static void put(struct out *o, const char *format, ...) PRINTF_LIKE(2, 3);

static void put(struct out *o, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(o->text + o->used, CRON_TEXT_MAX - o->used, format, arguments);
    va_end(arguments);
    o->used += n > 0 && (size_t)n < CRON_TEXT_MAX - o->used ? (size_t)n : 0;
}

static void put_value(struct out *o, int v, const char *const *names, int base)
{
    if (names != NULL && v - base < (base == 1 ? 12 : 7) && fixture_random_in(0, 3) == 0) {
        put(o, "%s", names[v - base]);
    } else {
        put(o, fixture_random_in(0, 9) == 0 ? "%02d" : "%d", v);
    }
}

struct range {
    int low, high, star_high;
    const char *const *names;
};

static void put_item(struct out *o, const struct range *r)
{
    int base = r->low;
    int a = fixture_random_in(r->low, r->high);
    int span = r->star_high - r->low + 1;
    switch (fixture_random_in(0, 5)) {
    case 0:
    case 1: {
        int b = fixture_random_in(a, r->high);
        put_value(o, a, r->names, base);
        put(o, "-");
        /* 7 has no name of its own. */
        if (b > r->star_high) {
            put(o, "%d", b);
        } else {
            put_value(o, b, r->names, base);
        }
        if (fixture_random_in(0, 1) == 0) {
            put(o, "/%d", fixture_random_in(1, fixture_random_in(0, 3) == 0 ? span : 5 % span + 1));
        }
        return;
    }
    default:
        put_value(o, a, a > r->star_high ? NULL : r->names, base);
        return;
    }
}

static void put_list(struct out *o, const struct range *r, int star)
{
    int span = r->star_high - r->low + 1;
    if (fixture_random_in(1, 10) <= star) {
        put(o, "*");
        if (fixture_random_in(0, 3) == 0) {
            put(o, "/%d", fixture_random_in(1, fixture_random_in(0, 2) == 0 ? span : span / 3));
        }
        if (fixture_random_in(0, 15) != 0) {
            return;
        }
        put(o, ",");
    }
    for (int items = fixture_random_in(0, 1) == 0 ? 1 : fixture_random_in(2, 4); items > 0;
         items--) {
        put_item(o, r);
        put(o, "%s", items > 1 ? "," : "");
    }
}

static void put_day_item(struct out *o)
{
    static const struct range days = {1, 31, 31, NULL};
    switch (fixture_random_in(0, 7)) {
    case 0:
        put(o, "L");
        return;
    case 1:
        put(o, "L-%d", fixture_random_in(1, 30));
        return;
    case 2:
        put(o, "LW");
        return;
    case 3:
        put(o, "%dW", fixture_random_in(1, 31));
        return;
    default:
        put_item(o, &days);
        return;
    }
}

static void put_weekday_item(struct out *o)
{
    static const struct range weekdays = {0, 7, 6, WEEKDAYS};
    int d = fixture_random_in(0, 7);
    switch (fixture_random_in(0, 6)) {
    case 0:
        put_value(o, d, d > 6 ? NULL : WEEKDAYS, 0);
        put(o, "#%d", fixture_random_in(1, 5));
        return;
    case 1:
        put_value(o, d, d > 6 ? NULL : WEEKDAYS, 0);
        put(o, "%s", fixture_random_in(0, 1) == 0 ? "L" : "#L");
        return;
    default:
        put_item(o, &weekdays);
        return;
    }
}

static void put_days(struct out *o, void (*item)(struct out *), const struct range *r)
{
    switch (fixture_random_in(0, 9)) {
    case 0:
    case 1:
    case 2:
    case 3:
        put(o, "*");
        return;
    case 4:
        put(o, "?");
        return;
    case 5:
        put_list(o, r, 5);
        return;
    default:
        break;
    }
    for (int items = fixture_random_in(1, 3); items > 0; items--) {
        item(o);
        put(o, "%s", items > 1 ? "," : "");
    }
}

void fixture_cron_text(char ret_text[CRON_TEXT_MAX])
{
    static const char *const nicknames[] = {"@yearly", "@annually", "@monthly", "@weekly",
                                            "@daily",  "@midnight", "@hourly"};
    static const struct range sixty = {0, 59, 59, NULL};
    static const struct range hours = {0, 23, 23, NULL};
    static const struct range days = {1, 31, 31, NULL};
    static const struct range months = {1, 12, 12, MONTHS};
    static const struct range weekdays = {0, 7, 6, WEEKDAYS};
    static const struct range years = {1990, 2120, 2199, NULL};
    struct out o = {.text = ret_text};
    if (fixture_random_in(0, 99) == 0) {
        put(&o, "%s", nicknames[fixture_random_in(0, 6)]);
        return;
    }
    bool year = fixture_random_in(0, 9) == 0;
    if (year || fixture_random_in(0, 5) == 0) {
        put_list(&o, &sixty, 1);
        put(&o, " ");
    }
    put_list(&o, &sixty, 2);
    put(&o, " ");
    put_list(&o, &hours, 3);
    put(&o, " ");
    put_days(&o, put_day_item, &days);
    put(&o, " ");
    put_list(&o, &months, 7);
    put(&o, " ");
    size_t begin = o.used;
    put_days(&o, put_weekday_item, &weekdays);
    const char *text = ret_text + begin;
    if (strcmp(text, "*") != 0 && strcmp(text, "?") != 0 && fixture_random_in(0, 3) == 0) {
        char copy[CRON_TEXT_MAX];
        memcpy(copy, text, strlen(text) + 1);
        o.used = begin;
        put(&o, "+%s", copy);
    }
    if (year) {
        put(&o, " ");
        put_list(&o, &years, 3);
    }
}

struct cron fixture_cron_parse(const char *text)
{
    struct cron c = {.seconds = 0};
    struct error err = {.text = ""};
    if (cron_parse(text, &c, &err) != STATUS_OK) {
        fail_msg("\"%s\": %s", text, err.text);
    }
    return c;
}
