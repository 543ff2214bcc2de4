/* The installed time zones (tzdata): which names exist, and their tables, each read once.
 *
 * A name is taken only if tzdata.zi lists it, letter by letter; nothing that a user writes is
 * ever used as a path otherwise. Links (US/Eastern) are names like others and stay as written.
 * A zone_set belongs to one thread; the tables in it are immutable and may be read by any.
 * It shows tzdata as it was when each zone was first asked for: live reload when tzdata changes
 * is not there yet; a restart takes a new tzdata in. */
#ifndef RS_ZONE_FILE_H
#define RS_ZONE_FILE_H

#include "status.h"
#include "zone.h"

#define ZONE_SET_MAX         2048 /* names in a list; tzdata 2025b has 597 */
#define TZDATA_VERSION_MAX   16
#define ZONE_DIRECTORY_MAX   1024
#define ZONE_LIST_MAX_BYTES  1048576 /* tzdata.zi has 112 KiB */
#define ZONE_DIRECTORY_USUAL "/usr/share/zoneinfo"

struct zone_set;

/* Read the list of names. directory NULL: $RS_TZDIR, or ZONE_DIRECTORY_USUAL.
 * Owns: *ret_set, zone_set_close (NULL is fine).
 * Returns: OK; NOT_FOUND (no tzdata.zi there: the text says what to install); INVALID (it is not
 * such a list); FULL (out of memory). Thread: owner. Blocks: on reading files. */
MUST_USE enum status zone_set_open(const char *directory, struct zone_set **ret_set,
                                   struct error *err);
void zone_set_close(struct zone_set *set);

/* The table of a zone. Borrowed: until zone_set_close.
 * Returns: OK; INVALID (not a listed name: the text names it and the nearest spelling); NOT_FOUND
 * (listed but its file is not installed); CORRUPT (the file is no good); FULL (out of memory). */
MUST_USE enum status zone_set_find(struct zone_set *set, const char *name,
                                   const struct zone **ret_zone, struct error *err);

/* "2025b" of the list's first line, "" when it has none. Borrowed. */
const char *zone_set_version(const struct zone_set *set);

/* All names in strcmp order. Borrowed. */
size_t zone_set_count(const struct zone_set *set);
const char *zone_set_name(const struct zone_set *set, size_t index);

#endif
