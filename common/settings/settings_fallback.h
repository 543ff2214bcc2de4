/* Writes the defaults of a settings table; for settings*.c only. The values are rows of
 * scheduler_settings.c, worker_settings.c and settings_shared.h. */
#ifndef RS_SETTINGS_FALLBACK_H
#define RS_SETTINGS_FALLBACK_H

#include "settings.h"

/* Write the default of *s, if it has one, into the struct (or element) at base. A fallback that
 * does not fit its own row is a bug of the table: asserted, not reported. */
void setting_fallback_write(const struct setting *s, char *base);

/* Append n bytes of text; both bounds were checked by the caller. */
void setting_list_add(struct setting_list *list, const char *text, size_t n);

#endif
