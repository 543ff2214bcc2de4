#include "cell.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "civil.h"

bool cell_instant_parse(const char *text, utc_us *ret)
{
    char rfc3339[RFC3339_TEXT_MAX];
    cell_instant_format(text, rfc3339, sizeof rfc3339);
    return rfc3339_parse(rfc3339, ret, NULL) == STATUS_OK;
}

void cell_instant_format(const char *cell, char *ret_text, size_t size)
{
    size_t n = strlen(cell);
    if (n < 22 || strcmp(cell + n - 3, "+00") != 0) {
        (void)snprintf(ret_text, size, "%s", cell); /* infinity */
        return;
    }
    (void)snprintf(ret_text, size, "%.10s%c%.*sZ", cell, 'T', (int)(n - 14), cell + 11);
}

/* Two units at most, the smaller one left out when it is zero. From one minute on. */
static void long_duration_format(const char *sign, int64_t s, char *ret_text, size_t size)
{
    static const struct {
        int64_t seconds, small_seconds;
        const char *large, *small;
    } units[] = {{31536000, 86400, "y", "d"},
                 {86400, 3600, "d", "h"},
                 {3600, 60, "h", "m"},
                 {60, 1, "m", "s"}};
    size_t i = 0;
    while (s < units[i].seconds) {
        i++;
    }
    int64_t rest = s % units[i].seconds / units[i].small_seconds;
    if (rest == 0) {
        (void)snprintf(ret_text, size, "%s%" PRId64 "%s", sign, s / units[i].seconds,
                       units[i].large);
    } else {
        (void)snprintf(ret_text, size, "%s%" PRId64 "%s %02" PRId64 "%s", sign,
                       s / units[i].seconds, units[i].large, rest, units[i].small);
    }
}

void cell_duration_format(double seconds, char *ret_text, size_t size)
{
    const char *sign = seconds < 0 ? "-" : "";
    double whole = seconds < 0 ? -seconds : seconds;
    if (!(whole < 1e12)) { /* also not a number */
        (void)snprintf(ret_text, size, "-");
        return;
    }
    int64_t s = (int64_t)(whole + 0.5);
    if (whole == 0) {
        (void)snprintf(ret_text, size, "0s");
    } else if (whole < 1) {
        int64_t ms = (int64_t)(whole * 1000 + 0.5);
        (void)snprintf(ret_text, size, "%s%" PRId64 "ms", sign, ms > 0 ? ms : 1);
    } else if (whole < 10 && whole != (double)s) {
        (void)snprintf(ret_text, size, "%s%.1fs", sign, whole);
    } else if (s < 60) {
        (void)snprintf(ret_text, size, "%s%" PRId64 "s", sign, s);
    } else {
        long_duration_format(sign, s, ret_text, size);
    }
}

static void age_format(const char *cell, utc_us now, char *ret_text, size_t size)
{
    utc_us at;
    char text[32];
    if (!cell_instant_parse(cell, &at)) {
        (void)snprintf(ret_text, size, "%s", strcmp(cell, "-infinity") == 0 ? "never" : cell);
        return;
    }
    bool future = at.us > now.us;
    int64_t s = (future ? at.us - now.us : now.us - at.us) / MICROS_A_SECOND;
    if (s >= 60) {
        long_duration_format("", s, text, sizeof text);
    } else {
        (void)snprintf(text, sizeof text, "%" PRId64 "s", s);
    }
    if (s == 0) {
        (void)snprintf(ret_text, size, "now");
    } else {
        (void)snprintf(ret_text, size, future ? "in %s" : "%s ago", text);
    }
}

static void bytes_format(const char *cell, char *ret_text, size_t size)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = strtod(cell, NULL);
    size_t unit = 0;
    while (value >= 1024 && unit < 4) {
        value /= 1024;
        unit++;
    }
    (void)snprintf(ret_text, size, "%.*f %s", unit == 0 || value >= 100 ? 0 : 1, value,
                   units[unit]);
}

/* Instants on a terminal: whole seconds unless the fraction says something, with Z. */
static void instant_for_people(const char *cell, char *ret_text, size_t size)
{
    size_t n = strlen(cell);
    if (n < 22 || strcmp(cell + n - 3, "+00") != 0) {
        (void)snprintf(ret_text, size, "%s", cell);
        return;
    }
    (void)snprintf(ret_text, size, "%.19sZ", cell);
}

/* "2030-04-12 08:00:00" -> "2030-04-12 08:00": schedules mostly name minutes. */
static void local_format(const char *cell, char *ret_text, size_t size)
{
    bool whole_minute = strlen(cell) == 19 && strcmp(cell + 16, ":00") == 0;
    (void)snprintf(ret_text, size, "%.*s", whole_minute ? 16 : 19, cell);
}

/* Line ends and other control characters become one blank, with the blanks around them. */
static void text_format(const char *cell, char *ret_text, size_t size)
{
    size_t used = 0;
    bool blank = false;
    const char *at = cell;
    for (; *at != '\0' && used + 1 < size; at++) {
        unsigned char c = (unsigned char)*at;
        bool control = c < 0x20 || c == 0x7f;
        if (blank && (control || c == ' ')) {
            continue;
        }
        if (control) {
            used -= used > 0 && ret_text[used - 1] == ' ' ? 1 : 0;
        }
        ret_text[used++] = control ? ' ' : (char)c;
        blank = control;
    }
    /* A cut may have left a part of a UTF-8 character. */
    while (*at != '\0' && used > 0 && ((unsigned char)ret_text[used - 1] & 0xc0) == 0x80) {
        used--;
    }
    used -= *at != '\0' && used > 0 && ((unsigned char)ret_text[used - 1] & 0xc0) == 0xc0 ? 1 : 0;
    ret_text[used] = '\0';
}

void cell_format(const struct column *column, const char *cell, utc_us now,
                 char ret_text[CELL_TEXT_MAX])
{
    if (cell == NULL || *cell == '\0') {
        (void)snprintf(ret_text, CELL_TEXT_MAX, "-");
        return;
    }
    switch (column->kind) {
    case COLUMN_INSTANT:
        if (column->show == SHOW_AGE || column->show == SHOW_AGE_PEOPLE) {
            age_format(cell, now, ret_text, CELL_TEXT_MAX);
        } else {
            instant_for_people(cell, ret_text, CELL_TEXT_MAX);
        }
        break;
    case COLUMN_LOCAL:
        local_format(cell, ret_text, CELL_TEXT_MAX);
        break;
    case COLUMN_SECONDS:
        cell_duration_format(strtod(cell, NULL), ret_text, CELL_TEXT_MAX);
        break;
    case COLUMN_BYTES:
        bytes_format(cell, ret_text, CELL_TEXT_MAX);
        break;
    case COLUMN_BOOL:
        (void)snprintf(ret_text, CELL_TEXT_MAX, "%s", *cell == 't' ? "yes" : "no");
        break;
    case COLUMN_TEXT:
    case COLUMN_INT:
    case COLUMN_NUMBER:
    case COLUMN_JSON:
        text_format(cell, ret_text, CELL_TEXT_MAX);
        break;
    }
}

static void instant_make(utc_us at, char *ret_text, size_t size)
{
    char rfc3339[RFC3339_TEXT_MAX];
    rfc3339_format_utc(at, rfc3339);
    (void)snprintf(ret_text, size, "%.10s %.*s+00", rfc3339, (int)(strlen(rfc3339) - 12),
                   rfc3339 + 11);
}

bool cell_instant_add(struct table *t, utc_us at)
{
    char cell[RFC3339_TEXT_MAX];
    if (!utc_is_finite(at)) {
        return table_cell_add(t, NULL);
    }
    instant_make(at, cell, sizeof cell);
    return table_cell_add(t, cell);
}

bool column_is_right(const struct column *column)
{
    return column->kind == COLUMN_INT || column->kind == COLUMN_NUMBER ||
           column->kind == COLUMN_SECONDS || column->kind == COLUMN_BYTES;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text);
    size_t m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

void column_heading(const struct column *column, char ret_text[64])
{
    size_t n = strlen(column->name);
    if (column->title[0] != '\0') {
        (void)snprintf(ret_text, 64, "%s", column->title);
        return;
    }
    if (ends_with(column->name, "_at")) {
        n -= 3;
    } else if (ends_with(column->name, "_s") && column->kind == COLUMN_SECONDS) {
        n -= 2;
    } else if (ends_with(column->name, "_bytes") && column->kind == COLUMN_BYTES) {
        n -= 6;
    }
    for (size_t i = 0; i < n; i++) {
        ret_text[i] = column->name[i] == '_' ? ' ' : (char)toupper((unsigned char)column->name[i]);
    }
    ret_text[n] = '\0';
}
