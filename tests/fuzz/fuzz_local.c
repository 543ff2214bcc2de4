/* Any bytes as a date, a local time, an RFC 3339 instant and a list of local times: refused with
 * one line, or what it is written as reads the same again. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "rule.h"

#define TIMES_MAX 100

static void date_try(const char *text)
{
    struct error err = {.text = ""};
    char written[DATE_TEXT_MAX];
    int64_t days = 0;
    if (date_parse(text, &days, &err) != STATUS_OK) {
        fuzz_refusal(&err);
        return;
    }
    date_format(days, written);
    MUST_HOLD(strcmp(text, written) == 0);
}

/* A local time is written as an instant in UTC is, without its Z. */
static void local_try(const char *text)
{
    struct error err = {.text = ""};
    char written[RFC3339_TEXT_MAX];
    struct date_time t;
    struct date_time again;
    if (date_time_parse(text, &t, &err) != STATUS_OK) {
        fuzz_refusal(&err);
        return;
    }
    MUST_HOLD(t.micros >= 0 && t.micros < MICROS_A_SECOND && (t.has_fraction || t.micros == 0));
    MUST_HOLD(t.has_offset || t.offset_s == 0);
    rfc3339_format_utc((utc_us){t.local.s * MICROS_A_SECOND + t.micros}, written);
    written[strlen(written) - 1] = '\0';
    MUST_HOLD(date_time_parse(written, &again, &err) == STATUS_OK);
    MUST_HOLD(again.local.s == t.local.s && again.micros == t.micros && !again.has_offset);
}

static void instant_try(const char *text)
{
    struct error err = {.text = ""};
    char written[RFC3339_TEXT_MAX];
    struct date_time t;
    utc_us at = {0};
    utc_us again = {0};
    if (rfc3339_parse(text, &at, &err) != STATUS_OK) {
        fuzz_refusal(&err);
        return;
    }
    MUST_HOLD(date_time_parse(text, &t, &err) == STATUS_OK && t.has_offset && t.has_seconds);
    MUST_HOLD(at.us == (t.local.s - t.offset_s) * MICROS_A_SECOND + t.micros);
    MUST_HOLD(t.offset_s == 0 || (t.offset_s < 0) == (text[strlen(text) - 6] == '-'));
    rfc3339_format(at, t.offset_s, written);
    MUST_HOLD(rfc3339_parse(written, &again, &err) == STATUS_OK && again.us == at.us);
    /* The first and the last day of all years may lie in another year of UTC, which has no text. */
    const int64_t day = floor_divide(utc_seconds(at), SECONDS_A_DAY);
    if (day >= civil_days_of(CIVIL_YEAR_MIN, 1, 1) &&
        day <= civil_days_of(CIVIL_YEAR_MAX, 12, 31)) {
        rfc3339_format_utc(at, written);
        MUST_HOLD(rfc3339_parse(written, &again, &err) == STATUS_OK && again.us == at.us);
    }
}

static void list_try(const char *text)
{
    struct error err = {.text = ""};
    struct local_time times[TIMES_MAX];
    size_t count = 0;
    if (local_times_parse(text, times, TIMES_MAX, &count, &err) != STATUS_OK) {
        fuzz_refusal(&err);
        return;
    }
    MUST_HOLD(count <= local_times_most(text));
    for (size_t i = 1; i < count; i++) {
        MUST_HOLD(times[i].s > times[i - 1].s);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = calloc(1, size + 1);
    MUST_HOLD(text != NULL);
    memcpy(text, data, size);
    date_try(text);
    local_try(text);
    instant_try(text);
    list_try(text);
    free(text);
    return 0;
}
