/* One time zone: an immutable table read from a TZif file (RFC 9636), and the two questions one
 * asks it. Pure: the bytes come from the caller (zone_file.h), nothing here reads TZ or a clock.
 *
 * From local time to an instant there is not always one answer; both answers are given and the
 * caller chooses by its policy. Nothing chooses by is_dst, which is inverted in Dublin and
 * Morocco and equal on both sides of some overlaps: only before and after count.
 * Instants here are whole seconds since 1970 UTC, `utc_s`; -1 is one like any other. */
#ifndef RS_ZONE_H
#define RS_ZONE_H

#include <stddef.h>
#include <stdint.h>

#include "civil.h"
#include "status.h"

#define ZONE_NAME_MAX       64    /* with NUL; the longest name in use has 32 bytes */
#define ZONE_FILE_MAX_BYTES 65536 /* the largest file in use has 4 KiB */
#define ZONE_OFFSET_MIN     (-89999)
#define ZONE_OFFSET_MAX     93599

struct zone;

enum local_kind {
    LOCAL_UNIQUE,  /* the clock shows this time once */
    LOCAL_GAP,     /* never: the clock jumps over it */
    LOCAL_OVERLAP, /* twice: first with `before`, then with `after` */
};

/* What is true of a local time, and of all others in [start, until). */
struct zone_span {
    enum local_kind kind;
    int32_t before;     /* offset before the transition; UNIQUE: the offset */
    int32_t after;      /* offset from the transition on; UNIQUE: the offset */
    int64_t transition; /* utc_s of the transition; UNIQUE: 0 */
    int64_t start;      /* first local second of the span; INT64_MIN: since ever */
    int64_t until;      /* first local second behind it; INT64_MAX: for ever */
};

struct zone_change {
    int64_t at; /* utc_s: the first second with the offset `after` */
    int32_t before, after;
};

/* Read a TZif file of version 2 or later from memory and keep nothing of `bytes`.
 * Owns: *ret_zone, zone_free (NULL is fine).
 * Returns: OK; INVALID for anything that is not a complete, sane file without leap seconds. */
MUST_USE enum status zone_parse(const char *name, const unsigned char *bytes, size_t size,
                                struct zone **ret_zone, struct error *err);
void zone_free(struct zone *z);

const char *zone_name(const struct zone *z);

/* Seconds east of UTC at an instant; the file's last rule goes on for ever. Thread: any. */
int32_t zone_offset_at(const struct zone *z, int64_t utc_s);

/* What the local time `t` is in this zone. Thread: any. */
struct zone_span zone_resolve(const struct zone *z, struct local_time t);

/* The first change of offset strictly after an instant. False when there is none. Thread: any. */
bool zone_change_after(const struct zone *z, int64_t utc_s, struct zone_change *ret_change);

#endif
