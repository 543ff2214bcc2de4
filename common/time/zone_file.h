/* The installed time zones (tzdata): which names exist, and their tables, each read once.
 *
 * A name is taken only if tzdata.zi lists it, letter by letter; nothing that a user writes is
 * ever used as a path otherwise. Links (US/Eastern) are names like others and stay as written.
 * A zone_set belongs to one thread; the tables in it are immutable and may be read by any.
 * It shows tzdata as it was when each zone was first asked for; a process that lives long makes
 * another one when tzdata has changed (zone_watch.h). */
#ifndef RS_ZONE_FILE_H
#define RS_ZONE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "status.h"
#include "zone.h"

#define ZONE_SET_MAX         2048 /* names in a list; tzdata 2025b has 597 */
#define TZDATA_VERSION_MAX   16
#define ZONE_DIRECTORY_MAX   1024
#define ZONE_LIST_MAX_BYTES  1048576 /* tzdata.zi has 112 KiB */
#define ZONE_DIRECTORY_USUAL "/usr/share/zoneinfo"
#define ZONE_DIGEST_MAX      17 /* the first 16 hexadecimal digits of a file's SHA-256, and NUL */

struct zone_set;

/* Read the list of names. directory NULL: $RS_TZDIR, or ZONE_DIRECTORY_USUAL.
 * Owns: *ret_set, zone_set_close (NULL is fine).
 * Returns: OK; NOT_FOUND (no tzdata.zi there: the text says what to install); INVALID (it is not
 * such a list); FATAL (out of memory). Thread: owner. Blocks: on reading files. */
MUST_USE enum status zone_set_open(const char *directory, struct zone_set **ret_set,
                                   struct error *err);
void zone_set_close(struct zone_set *set);

/* The table of a zone. Borrowed: until zone_set_close.
 * Returns: OK; INVALID (not a listed name: the text names it and the nearest spelling); NOT_FOUND
 * (listed but its file is not installed); CORRUPT (the file is no good, or a symbolic link out of
 * the directory); FATAL (out of memory). */
MUST_USE enum status zone_set_find(struct zone_set *set, const char *name,
                                   const struct zone **ret_zone, struct error *err);

/* Digest of the file that the zone's table was read from; "" when none was; always ZONE_DIGEST_MAX
 * bytes. Two files with one digest give the same times; two with different ones may, as fat and
 * slim ones do. Borrowed. */
const char *zone_set_digest(struct zone_set *set, const char *name);

/* Are the list and the files of the zones that were read still those that stand there? *ret_mark
 * names what stands there now: two looks with the same mark saw the same. Blocks: on the file
 * system. */
bool zone_set_is_current(const struct zone_set *set, uint64_t *ret_mark);

/* Make another set of what stands there now, with the same zones read. A zone whose file is no good
 * any more keeps its old table, with the reason as `fault`. Close the old set, which has lost such
 * tables, after OK. Owns: *ret_set, zone_set_close. Returns: as zone_set_open; `old` is as it was
 * unless OK. */
MUST_USE enum status zone_set_reload(struct zone_set *old, struct zone_set **ret_set,
                                     struct error *err);

/* One name of a set. Borrowed. */
struct zone_facts {
    const char *name;
    const struct zone *zone; /* NULL: not read */
    const char *digest;
    const char *fault; /* why its present file does not count, but an older one; "": it does */
};
struct zone_facts zone_set_facts(const struct zone_set *set, size_t index);

/* "2025b" of the list's first line, "" when it has none. Borrowed. */
const char *zone_set_version(const struct zone_set *set);

/* Is one version newer than another? They are compared as text: 2025b < 2026a < 2026f. The same
 * order is reports.tzdata_is_newer in sql/0004_work.sql; what it decides: sql/0018_zones.sql. Pure.
 */
bool tzdata_is_newer(const char *tzdata, const char *than);

/* All names in strcmp order. Borrowed. */
size_t zone_set_count(const struct zone_set *set);
const char *zone_set_name(const struct zone_set *set, size_t index);

#endif
