#include "fixture_business.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fixture_calendar.h"

static const struct fiscal_period YEAR[] = {
    {0, 0, "FY2030-P01"}, /* days are set by fiscal_of */
    {0, 0, "FY2030-P02"},
    {0, 0, "FY2030-P03"},
};

struct fiscal_periods fiscal_of(struct fiscal_period list[3])
{
    static const char *const days[][2] = {
        {"2030-01-28", "2030-02-24"}, {"2030-02-25", "2030-03-24"}, {"2030-03-25", "2030-04-28"}};
    for (size_t i = 0; i < 3; i++) {
        list[i] = YEAR[i];
        list[i].first = day_of(days[i][0]);
        list[i].last = day_of(days[i][1]);
    }
    return (struct fiscal_periods){3, list};
}

struct local_time local_of(const char *text)
{
    struct date_time t;
    assert_int_equal(date_time_parse(text, &t, NULL), STATUS_OK);
    return t.local;
}
