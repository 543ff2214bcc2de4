/* The reference page comes from the same rows that check the file, so it cannot lag behind. */
#include "settings.h"

#include <inttypes.h>
#include <string.h>

static const char *type_words(const struct setting *s)
{
    switch (s->type) {
    case SETTING_TEXT:
        return "text";
    case SETTING_INT:
        return "whole number";
    case SETTING_BOOL:
        return "`true` or `false`";
    case SETTING_LIST:
        return "list of texts `[\"a\", \"b\"]`";
    case SETTING_GROUPS:
        return "list of groups `( { ... }, { ... } )`";
    }
    return "";
}

static void fallback_print(const struct setting *s, FILE *to)
{
    if (s->type == SETTING_GROUPS) {
        (void)fprintf(to, "default: none; at most %zu elements", s->capacity);
    } else if (s->fallback == NULL) {
        (void)fputs("**must be given**", to);
    } else if (s->secret) {
        (void)fputs("default: not shown", to);
    } else if (s->fallback[0] == '\0') {
        (void)fputs("default: empty", to);
    } else {
        (void)fprintf(to, "default: `%s`", s->fallback);
    }
}

static void facts_print(const struct setting *s, FILE *to)
{
    (void)fputs(type_words(s), to);
    if (s->type == SETTING_INT) {
        (void)fprintf(to, " from %" PRId64 " to %" PRId64, s->min, s->max);
    }
    if (s->unit[0] != '\0') {
        (void)fprintf(to, ", %s", s->unit);
    }
    if (s->type == SETTING_TEXT) {
        (void)fprintf(to, " of at most %zu bytes", s->size - 1);
    }
    (void)fputs("; ", to);
    fallback_print(s, to);
    (void)fprintf(to, "; %s",
                  s->reloadable ? "SIGHUP applies a change" : "a change needs a restart");
    (void)fputs(".\n\n", to);
}

void settings_print_reference(const struct setting *table, size_t count, FILE *to)
{
    for (size_t i = 0; i < count; i++) {
        const struct setting *s = &table[i];
        (void)fprintf(to, "### `%s`\n\n%s\n\n", s->key, s->why);
        facts_print(s, to);
        for (size_t f = 0; s->type == SETTING_GROUPS && f < s->field_count; f++) {
            (void)fprintf(to, "#### `%s[].%s`\n\n%s\n\n", s->key, s->fields[f].key,
                          s->fields[f].why);
            facts_print(&s->fields[f], to);
        }
    }
}
