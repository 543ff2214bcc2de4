/* Identities: random and time-ordered 128-bit ids (RFC 9562) and the names users give. */
#ifndef RS_IDENT_H
#define RS_IDENT_H

#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "status.h"

#define UUID_TEXT_MAX  37  /* 8-4-4-4-12 and NUL */
#define NAME_MAX_BYTES 64  /* a schedule, report, scope, queue name with NUL; same bound in SQL */
#define KEY_MAX_BYTES  128 /* an occurrence key with NUL; same bound in SQL */

/* Version 4, from getrandom(2). Thread: any. Never fails (aborts if the kernel has no entropy). */
void uuid_random(char ret_text[UUID_TEXT_MAX]);

/* Version 7: 48 bits of `ms` since the epoch, then random. Time-ordered so that index inserts stay
 * local; a promoted standby hands sequence values out again, so ids never come from a sequence. */
void uuid_time_ordered(utc_us at, char ret_text[UUID_TEXT_MAX]);

/* 64 random bits: jitter, not secrets. Thread: any. Never fails, as uuid_random. */
uint64_t random_number(void);

/* The id of the kernel's life, new at each boot (random(4)); false and "": it cannot be read. */
bool boot_id_read(char *ret_text, size_t size);

/* Is text a UUID in the canonical form, any version, either case? */
bool uuid_is_valid(const char *text);

/* [a-z0-9] then [a-z0-9_.-]*, 1 to 63 bytes: the same rule as the SQL domain reports.name. */
bool name_is_valid(const char *text);

#endif
