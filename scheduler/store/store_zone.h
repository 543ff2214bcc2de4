/* Port: time zone data and the stored firings that they computed (sql/0018_zones.sql). Adapter:
 * store_pg_zone.c. Threads, deadlines and statuses: as store_plan.h. */
#ifndef RS_STORE_ZONE_H
#define RS_STORE_ZONE_H

#include "store_plan.h"

/* A zone that some version of the scope's schedules names. */
struct zone_use {
    char time_zone[ZONE_NAME_MAX];
    char tzdata[TZDATA_VERSION_MAX]; /* of the leader before, or of this one; "": nobody's yet */
    char digest[ZONE_DIGEST_MAX];
    bool settled; /* all stored firings follow these data, but for newer ones */
    char newest_tzdata[TZDATA_VERSION_MAX]; /* of all leaders there were */
    char newest_digest[ZONE_DIGEST_MAX];
};

struct zone_uses {
    struct zone_use rows[ZONE_SET_MAX];
    size_t count;
};

/* Returns: as store_due. */
MUST_USE enum status store_zones_in_use(const struct store_call *call, struct zone_uses *ret_uses,
                                        struct error *err);

/* By which data the leader computes: the first three members of each row, and `settled`.
 * Returns: OK; FENCED; INVALID; AGAIN; TIMEOUT. */
MUST_USE enum status store_note_zones(const struct store_call *call, const struct zone_use *rows,
                                      size_t count, struct error *err);

#define ZONE_PAGE_MAX 1000

/* Schedules of a zone whose next firing was computed by other data, a page by name. */
struct zone_page {
    char names[ZONE_PAGE_MAX][NAME_MAX_BYTES];
    size_t count;
    char looked_at[NAME_MAX_BYTES]; /* the next page begins behind it; "": this was the last */
};
struct zone_asked {
    const char *time_zone, *digest, *after;
};
/* Returns: as store_due. */
MUST_USE enum status store_of_zone(const struct store_call *call, struct zone_asked asked,
                                   struct zone_page *ret_page, struct error *err);

/* A next firing that other data put elsewhere. */
struct zone_move {
    char schedule[NAME_MAX_BYTES];
    char time_zone[ZONE_NAME_MAX];
    int64_t step;
    struct firing old, next;
    utc_us switched_at;                  /* planning begins there; UTC_NONE: as before */
    char old_tzdata[TZDATA_VERSION_MAX]; /* that computed `old` */
    char digest[ZONE_DIGEST_MAX];        /* of the file that computed `next` */
};

/* Write them by compare-and-set. Returns: OK; FENCED; INVALID (some row makes the statement fail);
 * AGAIN; TIMEOUT. */
MUST_USE enum status store_rezone(const struct store_call *call, const struct zone_move *moves,
                                  size_t count, const char *tzdata,
                                  struct written_rows *ret_written, struct error *err);

#endif
