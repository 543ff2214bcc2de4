#include "reload.h"

#include <stdio.h>
#include <stdlib.h>

#include "log.h"
#include "daemon_main.h"

/* A value in a log line; secrets and groups are not shown by setting_format. */
#define VALUE_MAX 200

/* A text as it is: the log quotes it, and once is enough. */
static void value_format(const struct setting *row, const void *settings, char ret_text[VALUE_MAX])
{
    if (row->type == SETTING_TEXT && !row->secret) {
        (void)snprintf(ret_text, VALUE_MAX, "%s", (const char *)settings + row->offset);
        text_trim(ret_text);
    } else {
        setting_format(row, settings, ret_text, VALUE_MAX);
    }
}

static void changes_log(const void *before, const void *after,
                        const struct settings_change *changes, size_t count)
{
    size_t restart = 0;
    for (size_t i = 0; i < count; i++) {
        char old[VALUE_MAX];
        char new[VALUE_MAX];
        if (!changes[i].applied) {
            log_event(LOG_LEVEL_WARN, "a changed setting needs a restart and is left as it was",
                      "key=%s", changes[i].row->key);
            restart++;
            continue;
        }
        value_format(changes[i].row, before, old);
        value_format(changes[i].row, after, new);
        log_event(LOG_LEVEL_INFO, "setting changed", "key=%s from=%s to=%s", changes[i].row->key,
                  log_quote(old).text, log_quote(new).text);
    }
    log_event(LOG_LEVEL_INFO, "settings reloaded", "applied=%zu need_restart=%zu", count - restart,
              restart);
}

/* Two sets of rules: the file by itself, and what it comes to here, where some of its values do not
 * apply yet. */
static enum status fresh_read(const struct reload *r, const void *current, FILE *lines,
                              void **ret_fresh, struct error *err)
{
    struct settings_change changes[SETTINGS_CHANGES_MAX];
    void *fresh = NULL;
    enum status s = settings_read(r->spec, r->path, &fresh, lines, err);
    if (s != STATUS_OK) {
        return s;
    }
    size_t count = settings_merge(r->spec, current, fresh, changes);
    s = settings_recheck(r->spec, r->path, fresh, NULL, err);
    if (s != STATUS_OK) {
        free(fresh);
        return error_prefix(err, s, "beside the values that only a restart would change");
    }
    log_level_set(daemon_log_level(r->spec, fresh));
    changes_log(current, fresh, changes, count);
    *ret_fresh = fresh;
    return STATUS_OK;
}

enum status reload_read(const struct reload *r, const void *current, void **ret_fresh)
{
    char *text = NULL;
    size_t size = 0;
    void *fresh = NULL;
    struct error err = {.text = ""};
    FILE *lines = open_memstream(&text, &size);
    enum status s = lines == NULL ? error_set(&err, STATUS_FATAL, "out of memory")
                                  : fresh_read(r, current, lines, &fresh, &err);
    if (lines != NULL && fclose(lines) == 0) {
        daemon_log_lines("settings", text);
    }
    free(text);
    metric_add(metric_get(r->counted, s == STATUS_OK ? "applied" : "refused", NULL), 1);
    if (s != STATUS_OK) {
        log_event(LOG_LEVEL_ERROR, "settings refused, going on with those in force", "error=%s",
                  log_quote(err.text).text);
        return s;
    }
    *ret_fresh = fresh;
    return STATUS_OK;
}
