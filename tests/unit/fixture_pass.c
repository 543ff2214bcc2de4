#include "fixture_pass.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture_zone.h"

struct planned_firing firings[PASS_FIRINGS_MAX];
struct planned_gap gaps[PASS_GAPS_MAX];
struct plan_sink sink;

struct plan_result plan_at(const struct plan_subject *s, const char *now)
{
    static struct plan_window window;
    struct plan_result r = {.moved = false};
    struct error err = {.text = ""};
    sink = (struct plan_sink){firings, 0, PASS_FIRINGS_MAX, gaps, 0, PASS_GAPS_MAX};
    enum status status = plan_schedule(s, fixture_instant(now), 0, &window, &sink, &r, &err);
    if (status != STATUS_OK) {
        fail_msg("%s: %s", status_name(status), err.text);
    }
    return r;
}

void check_instant(utc_us t, const char *want)
{
    char text[RFC3339_TEXT_MAX];
    rfc3339_format_utc(t, text);
    assert_string_equal(text, want);
}
