/* A business calendar as it is written down: weekends, entries with their names, validity, where it
 * comes from. A file (calendar_csv.h, calendar_ics.h) becomes one of these, and this a `struct
 * calendar` that answers questions. Pure. */
#ifndef RS_CALENDAR_DEFINITION_H
#define RS_CALENDAR_DEFINITION_H

#include "calendar.h"
#include "ident.h"

#define CALENDAR_FILE_MAX_BYTES (1024 * 1024)
#define CALENDAR_TEXT_MAX       512 /* description, source, attribution, with NUL */
#define CALENDAR_LABEL_MAX      128 /* an entry's name, with NUL */

struct calendar_entry {
    int64_t day;
    int32_t line; /* of the file, from 1; 0: none */
    bool business;
    char label[CALENDAR_LABEL_MAX]; /* "Good Friday"; UTF-8, may be empty */
};

struct calendar_definition {
    char name[NAME_MAX_BYTES]; /* "" where the file does not say it, as the texts below */
    char description[CALENDAR_TEXT_MAX];
    char source[CALENDAR_TEXT_MAX];
    char attribution[CALENDAR_TEXT_MAX];
    struct calendar_weekend weekends[CALENDAR_WEEKENDS_MAX];
    size_t weekend_count; /* 0 until it is said or finished */
    bool has_valid_from, has_valid_through;
    int64_t valid_from, valid_through;
    enum calendar_beyond beyond;
    struct calendar_entry *entries; /* owned; ascending by day once finished */
    size_t entry_count, entry_room;
};

void calendar_definition_init(struct calendar_definition *d);
void calendar_definition_done(struct calendar_definition *d);

/* Returns: OK; INVALID (a bound, a day out of the years, a label that is no UTF-8 text or too
 * long); FATAL (out of memory). */
MUST_USE enum status calendar_definition_add(struct calendar_definition *d,
                                             const struct calendar_entry *entry, struct error *err);

/* Put entries in order and fill in what was not said: a weekend of Saturday and Sunday; validity
 * from the January of the first entry to the December of the last, and always without entries.
 * Returns: OK; INVALID (one day twice, a validity that ends before it begins). */
MUST_USE enum status calendar_definition_finish(struct calendar_definition *d, struct error *err);

/* Make the calendar of a finished definition. Owns: calendar_free. Returns: as calendar_new. */
MUST_USE enum status calendar_definition_compile(const struct calendar_definition *d,
                                                 struct calendar **ret, struct error *err);

/* "Sat Sun", English names of three letters or more in any case, or "none", as bits.
 * Returns: OK; INVALID. */
MUST_USE enum status calendar_weekend_parse(const char *text, uint8_t *ret_days, struct error *err);

/* Is it UTF-8 without control characters? */
bool calendar_text_is_clean(const char *text);

#endif
