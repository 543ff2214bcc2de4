/* Faults and warnings of one file while it is judged, for settings*.c only. libconfig's types stay
 * opaque here. Thread: the one that judges. */
#ifndef RS_SETTINGS_JUDGE_H
#define RS_SETTINGS_JUDGE_H

#include <stdio.h>

#include "settings.h"

struct config_t;
struct config_setting_t;

#define KEY_TEXT_MAX 160
/* Keys remembered as faulty; beyond it every further key counts as faulty. */
#define FAULTY_MAX 128

struct settings_judge {
    const char *path;
    FILE *lines;                   /* may be NULL */
    const struct config_t *config; /* NULL: there is no file */
    size_t fault_count;
    size_t faulty_count;
    char faulty[FAULTY_MAX][KEY_TEXT_MAX];
    int last_line; /* where a missing key is reported: that is where it would be added */
    struct error first;
};

/* `at`: where it stands in the file; NULL: where it would be added. Further faults of a key are
 * told as well: a walk through the file meets each place once. */
void judge_fault(struct settings_judge *l, const struct config_setting_t *at, const char *key,
                 const char *format, ...) PRINTF_LIKE(4, 5);
void judge_warn(struct settings_judge *l, const struct config_setting_t *at, const char *key,
                const char *what);

/* Returns: OK: no fault; INVALID: err says the first and their number. */
MUST_USE enum status judge_verdict(const struct settings_judge *l, struct error *err);

#endif
