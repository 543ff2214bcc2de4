/* Any bytes as a CSV calendar: refused with one line, or a calendar that answers every question. */
#include <string.h>

#include "calendar_csv.h"
#include "fuzz.h"

#define ASKED_MAX 40 /* entries about which it is asked */

/* No business day lies strictly between the two. */
static bool none_between(const struct calendar *c, int64_t after, int64_t before)
{
    for (int64_t day = after + 1; day < before; day++) {
        if (calendar_is_business_day(c, day)) {
            return false;
        }
    }
    return true;
}

/* Answers are as they should be whatever the calendar says. */
static void calendar_ask(const struct calendar *c, int64_t day)
{
    for (int how = ROLL_RUN; how <= ROLL_NEAREST; how++) {
        struct calendar_answer a = {.day = day};
        enum status s = calendar_roll(c, (enum roll_convention)how, day, &a, NULL);
        if (s != STATUS_OK) {
            MUST_HOLD(s == STATUS_HELD || s == STATUS_NOT_FOUND);
            MUST_HOLD(s == STATUS_HELD || how != ROLL_FOLLOWING ||
                      none_between(c, day - 1, day + CALENDAR_CLOSED_MAX));
            continue;
        }
        const int64_t moved = a.day < day ? day - a.day : a.day - day;
        MUST_HOLD(how < ROLL_FOLLOWING || calendar_is_business_day(c, a.day));
        MUST_HOLD(moved <= calendar_longest_closed(c));
        MUST_HOLD(how != ROLL_FOLLOWING || (a.day >= day && none_between(c, day - 1, a.day)));
        MUST_HOLD(how != ROLL_PRECEDING || (a.day <= day && none_between(c, a.day, day + 1)));
        MUST_HOLD(how != ROLL_NEAREST || none_between(c, day - moved, day + moved));
    }
    struct calendar_answer there = {0};
    struct calendar_answer back = {0};
    if (calendar_roll(c, ROLL_FOLLOWING, day, &there, NULL) == STATUS_OK) {
        const int64_t from = there.day;
        MUST_HOLD(calendar_add(c, from, 7, &there, NULL) != STATUS_OK ||
                  calendar_add(c, there.day, -7, &back, NULL) != STATUS_OK || back.day == from);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct calendar_source source = {.text = (const char *)data, .size = size, .file = "f"};
    struct calendar_definition d;
    struct error err = {.text = ""};
    struct calendar *c = NULL;
    calendar_definition_init(&d);
    enum status s = calendar_csv_parse(&source, &d, &err);
    if (s != STATUS_OK) {
        MUST_HOLD(err.text[0] == 'f');
        fuzz_refusal(&err);
    } else {
        MUST_HOLD(calendar_definition_compile(&d, &c, &err) == STATUS_OK);
        calendar_ask(c, d.entry_count > 0 ? d.entries[d.entry_count - 1].day + 1 : 20000);
        for (size_t i = 0; i < d.entry_count && i < ASKED_MAX; i++) {
            calendar_ask(c, d.entries[i].day - 1);
            calendar_ask(c, d.entries[i].day);
        }
        calendar_free(c);
    }
    calendar_definition_done(&d);
    return 0;
}
