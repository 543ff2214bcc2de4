#include "why_ask.h"

#include <stdio.h>
#include <string.h>

#include "instant_text.h"

/* "2030-04-12", a local time, or an instant. */
static enum status time_take(const char *text, struct why_ask *ask, struct error *err)
{
    char whole[48];
    struct date_time t;
    (void)snprintf(whole, sizeof whole, "%s%s", text, text_is_date(text) ? "T00:00" : "");
    enum status s = date_time_parse(whole, &t, err);
    if (s != STATUS_OK) {
        return error_prefix(err, s, "\"%.60s\" is no time", text);
    }
    ask->local = t.local;
    if (text_is_date(text)) {
        ask->form = WHY_DATE;
    } else if (t.has_offset) {
        ask->form = WHY_INSTANT;
        ask->at = utc_from_seconds(t.local.s - t.offset_s);
        ask->at.us += t.micros;
    } else {
        ask->form = WHY_LOCAL;
    }
    return STATUS_OK;
}

enum status why_ask_parse(const char *text, struct why_ask *ret_ask, struct error *err)
{
    struct why_ask ask = {.form = WHY_LATEST, .at = UTC_NONE};
    size_t n = strcspn(text, "@:");
    enum status s = STATUS_OK;
    (void)snprintf(ask.schedule, sizeof ask.schedule, "%.*s", n < NAME_MAX_BYTES ? (int)n : 0,
                   text);
    if (!name_is_valid(ask.schedule)) {
        return error_set(err, STATUS_INVALID,
                         "\"%.100s\" does not begin with the name of a schedule; write "
                         "sales-daily@2030-04-12T06:00 or sales-daily:2030-04-12",
                         text);
    }
    if (text[n] == '@') {
        s = time_take(text + n + 1, &ask, err);
    } else if (text[n] == ':') {
        size_t key = strlen(text + n + 1);
        if (key == 0 || key >= sizeof ask.key) {
            return error_set(err, STATUS_INVALID, "a key has 1 to 127 bytes");
        }
        ask.form = WHY_KEY;
        memcpy(ask.key, text + n + 1, key + 1);
    }
    if (s == STATUS_OK) {
        *ret_ask = ask;
    }
    return s;
}

bool why_ask_of_key(const struct why_ask *ask, struct why_ask *ret_time)
{
    struct why_ask time = *ask;
    char text[KEY_MAX_BYTES];
    (void)snprintf(text, sizeof text, "%s", ask->key);
    if (strlen(text) > 10 && (text[10] == '+' || text[10] == '-')) {
        text[10] = '\0'; /* of a date whose time came twice, the offset */
    }
    if (time_take(text, &time, NULL) != STATUS_OK) {
        return false;
    }
    time.of_key = true;
    *ret_time = time;
    return true;
}

enum local_kind why_instants(const struct zone *z, struct local_time local, utc_us *ret_first,
                             utc_us *ret_second)
{
    struct zone_span span = zone_resolve(z, local);
    switch (span.kind) {
    case LOCAL_UNIQUE:
    case LOCAL_OVERLAP:
        *ret_first = utc_from_seconds(local.s - span.before);
        *ret_second = utc_from_seconds(local.s - span.after);
        break;
    case LOCAL_GAP:
        *ret_first = *ret_second = utc_from_seconds(span.transition);
        break;
    }
    return span.kind;
}
