#include "calendar_ics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <libical/ical.h>

#include "civil.h"

/* The file is cut into events here and libical sees one event at a time: that gives each complaint
 * its line, and bounds what a hostile file can make it build. */
#define EVENT_MAX_BYTES (64 * 1024)
#define EVENT_DEPTH_MAX 4 /* an event with its alarms */
#define EVENT_DAYS_MAX  366
#define COMPONENT_MAX   32 /* bytes of a component's name, with NUL */

struct reading {
    struct calendar_definition *d;
    const char *at, *end;
    int32_t lines;      /* read so far */
    int32_t line;       /* what a complaint is about */
    int32_t event_line; /* where the event begins */
    char *text;         /* the line as it is meant; EVENT_MAX_BYTES */
    char *event;        /* the event so far; EVENT_MAX_BYTES */
    size_t size;
    char open[EVENT_DEPTH_MAX][COMPONENT_MAX]; /* components open in the event, itself first */
    int depth;                                 /* how many; 0: outside of events */
    bool container;                            /* BEGIN:VCALENDAR was there */
};

/* ---- one event ---- */

static bool has_property(icalcomponent *event, icalproperty_kind kind)
{
    return icalcomponent_get_first_property(event, kind) != NULL;
}

static enum status event_check(icalcomponent *event, struct error *err)
{
    if (has_property(event, ICAL_RRULE_PROPERTY) || has_property(event, ICAL_EXRULE_PROPERTY)) {
        return error_set(err, STATUS_INVALID,
                         "the event recurs (RRULE), which is not expanded here; export it with one "
                         "event for each date, or write the dates as CSV");
    }
    if (has_property(event, ICAL_RDATE_PROPERTY) ||
        has_property(event, ICAL_RECURRENCEID_PROPERTY)) {
        return error_set(err, STATUS_INVALID,
                         "the event has further dates (RDATE, RECURRENCE-ID); write one event for "
                         "each date");
    }
    if (!has_property(event, ICAL_DTSTART_PROPERTY)) {
        return error_set(err, STATUS_INVALID,
                         "the event has no readable date; write DTSTART;VALUE=DATE:20300412");
    }
    return STATUS_OK;
}

static enum status date_take(struct icaltimetype t, const char *what, int64_t *ret_day,
                             struct error *err)
{
    if (!t.is_date) {
        return error_set(err, STATUS_INVALID,
                         "the event has a time of day; a holiday is a whole day: write "
                         "%s;VALUE=DATE:20300412",
                         what);
    }
    if (t.year < CALENDAR_YEAR_MIN || t.year > CALENDAR_YEAR_MAX || t.month < 1 || t.month > 12 ||
        t.day < 1 || t.day > civil_days_in_month(t.year, t.month)) {
        return error_set(err, STATUS_INVALID,
                         "%s is no date within %d to %d; write it as in 20300412", what,
                         CALENDAR_YEAR_MIN, CALENDAR_YEAR_MAX);
    }
    *ret_day = civil_days_of(t.year, t.month, t.day);
    return STATUS_OK;
}

/* How many days it lasts: DTEND is the first day after it; without DTEND or DURATION it is one. */
static enum status days_take(icalcomponent *event, int64_t day, int64_t *ret_days,
                             struct error *err)
{
    int64_t days = 1;
    icalproperty *end = icalcomponent_get_first_property(event, ICAL_DTEND_PROPERTY);
    icalproperty *duration = icalcomponent_get_first_property(event, ICAL_DURATION_PROPERTY);
    if (end != NULL) {
        int64_t after = 0;
        enum status s = date_take(icalproperty_get_dtend(end), "DTEND", &after, err);
        if (s != STATUS_OK) {
            return s;
        }
        days = after == day ? 1 : after - day; /* some programs write the day itself */
    } else if (duration != NULL) {
        struct icaldurationtype t = icalproperty_get_duration(duration);
        days = t.is_neg ? 0 : (int64_t)t.days + (int64_t)t.weeks * 7;
    }
    if (days < 1 || days > EVENT_DAYS_MAX) {
        return error_set(err, STATUS_INVALID,
                         "the event lasts %lld days; write a DTEND of 1 to %d days later",
                         (long long)days, EVENT_DAYS_MAX);
    }
    *ret_days = days;
    return STATUS_OK;
}

/* The event's title, its control characters turned to spaces, cut to what a label may have. */
static void label_take(icalcomponent *event, char label[CALENDAR_LABEL_MAX])
{
    const char *summary = icalcomponent_get_summary(event);
    (void)snprintf(label, CALENDAR_LABEL_MAX, "%s", summary != NULL ? summary : "");
    for (char *p = label; *p != '\0'; p++) {
        *p = (unsigned char)*p < 0x20 || *p == 0x7f ? ' ' : *p;
    }
    text_trim(label);
}

static enum status event_days(struct reading *r, icalcomponent *event, struct error *err)
{
    struct calendar_entry entry = {.line = r->event_line};
    int64_t days = 0;
    if (icalcomponent_get_status(event) == ICAL_STATUS_CANCELLED) {
        return STATUS_OK;
    }
    enum status s = event_check(event, err);
    if (s == STATUS_OK) {
        s = date_take(icalcomponent_get_dtstart(event), "DTSTART", &entry.day, err);
    }
    if (s == STATUS_OK) {
        s = days_take(event, entry.day, &days, err);
    }
    if (s != STATUS_OK) {
        return s;
    }
    label_take(event, entry.label);
    for (int64_t i = 0; i < days && s == STATUS_OK; i++) {
        s = calendar_definition_add(r->d, &entry, err);
        entry.day++;
    }
    return s;
}

static enum status event_take(struct reading *r, struct error *err)
{
    r->event[r->size] = '\0';
    icalcomponent *event = icalparser_parse_string(r->event);
    enum status s = STATUS_OK;
    if (event == NULL || icalcomponent_isa(event) != ICAL_VEVENT_COMPONENT) {
        s = error_set(err, STATUS_INVALID, "libical cannot read this event; export it again");
    } else {
        s = event_days(r, event, err);
    }
    if (event != NULL) {
        icalcomponent_free(event);
    }
    icalmemory_free_ring();
    return s;
}

/* ---- the file ---- */

/* "BEGIN:" in any case; what stands behind it. NULL: it is another line. */
static const char *line_begins(const char *line, const char *word)
{
    size_t n = strlen(word);
    return strncasecmp(line, word, n) == 0 ? line + n : NULL;
}

static enum status event_append(struct reading *r, size_t size, struct error *err)
{
    if (r->size + size + 3 > EVENT_MAX_BYTES) {
        return error_set(err, STATUS_INVALID, "the event is larger than %d bytes", EVENT_MAX_BYTES);
    }
    memcpy(r->event + r->size, r->text, size);
    memcpy(r->event + r->size + size, "\r\n", 2);
    r->size += size + 2;
    return STATUS_OK;
}

/* Keep count of the components that are open within an event. libical must not meet a stray END: it
 * writes to stderr then. */
static enum status nesting_take(struct reading *r, struct error *err)
{
    const char *begin = line_begins(r->text, "BEGIN:");
    const char *end = line_begins(r->text, "END:");
    if (begin != NULL) {
        if (r->depth == EVENT_DEPTH_MAX || strlen(begin) >= COMPONENT_MAX) {
            return error_set(err, STATUS_INVALID,
                             "components lie more than %d deep in the event, or have longer names "
                             "than any",
                             EVENT_DEPTH_MAX);
        }
        (void)snprintf(r->open[r->depth++], COMPONENT_MAX, "%s", begin);
        return STATUS_OK;
    }
    bool odd = line_begins(r->text, "BEGIN;") != NULL || line_begins(r->text, "END;") != NULL;
    if (odd || (end != NULL && strcasecmp(end, r->open[r->depth - 1]) != 0)) {
        return error_set(err, STATUS_INVALID,
                         "the event has an END of something else than began last; is the file cut "
                         "off?");
    }
    r->depth -= end != NULL ? 1 : 0;
    return STATUS_OK;
}

/* Append a line as it stands in the file to the line as it is meant. */
static enum status line_append(struct reading *r, const char *from, size_t size, size_t *used,
                               struct error *err)
{
    if (memchr(from, '\0', size) != NULL) {
        return error_set(err, STATUS_INVALID, "it has a NUL byte; export the calendar again");
    }
    if (*used + size >= EVENT_MAX_BYTES) {
        return error_set(err, STATUS_INVALID, "the line is longer than %d bytes",
                         EVENT_MAX_BYTES - 1);
    }
    memcpy(r->text + *used, from, size);
    *used += size;
    r->text[*used] = '\0';
    return STATUS_OK;
}

/* The next line with those behind it that begin with a space, which go on with it (RFC 5545, 3.1);
 * spaces at its end are left out. */
static enum status line_read(struct reading *r, size_t *ret_size, struct error *err)
{
    size_t used = 0;
    bool more = true;
    r->line = r->lines + 1;
    for (int32_t part = 0; more; part++) {
        const char *newline = memchr(r->at, '\n', (size_t)(r->end - r->at));
        const char *end = newline != NULL ? newline : r->end;
        const char *from = r->at + (part > 0 ? 1 : 0);
        r->at = newline != NULL ? newline + 1 : r->end;
        r->lines++;
        size_t size = (size_t)(end - from);
        size -= size > 0 && from[size - 1] == '\r' ? 1 : 0;
        enum status s = line_append(r, from, size, &used, err);
        if (s != STATUS_OK) {
            return s;
        }
        more = r->at < r->end && (*r->at == ' ' || *r->at == '\t');
    }
    while (used > 0 && strchr(" \t\r", r->text[used - 1]) != NULL) {
        r->text[--used] = '\0';
    }
    *ret_size = used;
    return STATUS_OK;
}

static enum status line_take(struct reading *r, struct error *err)
{
    size_t size = 0;
    enum status s = line_read(r, &size, err);
    if (s != STATUS_OK) {
        return s;
    }
    if (r->depth == 0) {
        const char *begin = line_begins(r->text, "BEGIN:");
        r->container = r->container || (begin != NULL && strcasecmp(begin, "VCALENDAR") == 0);
        if (begin == NULL || strcasecmp(begin, "VEVENT") != 0) {
            return STATUS_OK;
        }
        r->event_line = r->line;
        r->size = 0;
    }
    s = event_append(r, size, err);
    if (s == STATUS_OK) {
        s = nesting_take(r, err);
    }
    if (s == STATUS_OK && r->depth == 0) {
        s = event_take(r, err);
        r->line = r->event_line;
    } else if (s != STATUS_OK) {
        r->line = r->event_line;
    }
    return s;
}

static enum status lines_read(struct reading *r, const char *file, struct error *err)
{
    while (r->at < r->end) {
        enum status s = line_take(r, err);
        if (s != STATUS_OK) {
            return error_prefix(err, s, "%s:%d", file, (int)r->line);
        }
    }
    if (r->depth > 0) {
        return error_set(err, STATUS_INVALID, "%s:%d: the event does not end; is the file cut off?",
                         file, (int)r->event_line);
    }
    if (!r->container) {
        return error_set(err, STATUS_INVALID, "%s: no BEGIN:VCALENDAR; it is no iCalendar file",
                         file);
    }
    return STATUS_OK;
}

/* Several events on one day are usual ("Christmas Day" of two regions): one entry, both names. */
static void entries_merge(struct calendar_definition *d)
{
    size_t to = 0;
    for (size_t i = 0; i < d->entry_count; i++) {
        struct calendar_entry *kept = to > 0 ? &d->entries[to - 1] : NULL;
        const struct calendar_entry e = d->entries[i]; /* a copy: it may be moved over itself */
        if (kept == NULL || kept->day != e.day) {
            d->entries[to++] = e;
            continue;
        }
        if (strstr(kept->label, e.label) == NULL) {
            size_t used = strlen(kept->label);
            (void)snprintf(kept->label + used, sizeof kept->label - used, "; %s", e.label);
            text_trim(kept->label);
        }
    }
    d->entry_count = to;
}

static int by_day_and_line(const void *a, const void *b)
{
    const struct calendar_entry *x = a;
    const struct calendar_entry *y = b;
    if (x->day != y->day) {
        return x->day < y->day ? -1 : 1;
    }
    return (x->line > y->line) - (x->line < y->line);
}

enum status calendar_ics_parse(const struct calendar_source *source, struct calendar_definition *d,
                               struct error *err)
{
    if (source->size > CALENDAR_FILE_MAX_BYTES) {
        return error_set(err, STATUS_INVALID, "%s: larger than %d bytes; leave out years long gone",
                         source->file, CALENDAR_FILE_MAX_BYTES);
    }
    struct reading r = {.d = d, .at = source->text, .end = source->text + source->size};
    if (source->size >= 3 && memcmp(r.at, "\xef\xbb\xbf", 3) == 0) {
        r.at += 3; /* the byte order mark that some programs write */
    }
    r.event = malloc(EVENT_MAX_BYTES);
    r.text = malloc(EVENT_MAX_BYTES);
    enum status s = r.event != NULL && r.text != NULL
                        ? lines_read(&r, source->file, err)
                        : error_set(err, STATUS_FATAL, "out of memory");
    free(r.event);
    free(r.text);
    if (s != STATUS_OK) {
        return s;
    }
    if (d->entry_count == 0) {
        return error_set(err, STATUS_INVALID, "%s: it has no event; export it again", source->file);
    }
    qsort(d->entries, d->entry_count, sizeof d->entries[0], by_day_and_line);
    entries_merge(d);
    s = calendar_definition_finish(d, err);
    return s == STATUS_OK ? s : error_prefix(err, s, "%s", source->file);
}
