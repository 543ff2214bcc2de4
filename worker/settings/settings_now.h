/* The settings in force, which SIGHUP may replace while jobs run by the older ones. A thread takes
 * them for one piece of work (a job, a sweep) and gives them back; what it holds does not change,
 * and goes when its last holder has given it back.
 * Thread: any. Blocks: never for long. */
#ifndef RS_SETTINGS_NOW_H
#define RS_SETTINGS_NOW_H

#include <stdint.h>

#include "worker_settings.h"

struct settings_now;

/* `first` is borrowed until settings_now_free, which comes after all was given back. NULL: no
 * memory; NULL is fine to free. */
struct settings_now *settings_now_new(const struct worker_settings *first);
void settings_now_free(struct settings_now *now);

/* Never NULL. `ret_number` (may be NULL): differs for each replacement, so that what was made by
 * one set (a connection) is not used by another. */
const struct worker_settings *settings_take(struct settings_now *now, uint64_t *ret_number);
void settings_give(struct settings_now *now, const struct worker_settings *taken);

/* From now on these. Owns: *fresh, with free, from here on also when it fails.
 * Returns: OK; FATAL (memory: the settings in force stay). */
MUST_USE enum status settings_replace(struct settings_now *now, struct worker_settings *fresh);

#endif
