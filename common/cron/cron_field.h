/* One field of a cron expression: its table of ranges and names, and the parsing of its items.
 * Pure; for cron_parse.c only. */
#ifndef RS_CRON_FIELD_H
#define RS_CRON_FIELD_H

#include "cron.h"

#define CRON_FIELDS_MAX 7

enum cron_field_kind {
    FIELD_SECOND,
    FIELD_MINUTE,
    FIELD_HOUR,
    FIELD_DAY,
    FIELD_MONTH,
    FIELD_WEEKDAY,
    FIELD_YEAR,
};

struct cron_field {
    enum cron_field_kind kind;
    const char *name;
    int min, max;  /* as written */
    int star_max;  /* the last value of "*": weekday 7 is 0 once more */
    int base;      /* value of bit 0 */
    int name_base; /* value of names[0] */
    const char *const *names;
    const char *text; /* of the expression at hand */
};

/* The values a field lists, bit n for base + n. */
struct cron_values {
    uint64_t bits[4];
};

/* The seven fields in the order second ... year; `text` is what an absent one stands for. */
extern const struct cron_field CRON_FIELDS[CRON_FIELDS_MAX];

/* Parse the list in f->text. Plain values go to *ret_values; L, W and # go to *c.
 * Returns: OK, INVALID (the text names the field and the item). */
MUST_USE enum status cron_field_parse(const struct cron_field *f, struct cron *c,
                                      struct cron_values *ret_values, struct error *err);

#endif
