#include "fixture_calendar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "civil.h"

int64_t day_of(const char *text)
{
    int64_t day = 0;
    assert_int_equal(date_parse(text, &day, NULL), STATUS_OK);
    return day;
}

struct calendar *calendar_of(const struct calendar_rules *rules)
{
    struct calendar *c = NULL;
    struct error err = {.text = ""};
    enum status s = calendar_new(rules, &c, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(s, STATUS_OK);
    return c;
}

static const struct calendar_weekend saturday_and_sunday = {CALENDAR_ALWAYS, SAT_SUN};

struct calendar_rules rules_of(const struct calendar_special *days, size_t count)
{
    return (struct calendar_rules){
        .weekends = &saturday_and_sunday,
        .weekend_count = 1,
        .days = days,
        .day_count = count,
        .valid_from = CALENDAR_ALWAYS,
        .valid_through = CALENDAR_FOREVER,
    };
}
