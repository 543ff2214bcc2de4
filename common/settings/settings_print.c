/* The reference page comes from the same rows that check the file, so it cannot lag behind. */
#include "settings.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
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

/* A bounded text that grows at its end. */
struct tail {
    char *text;
    size_t size, used;
};

static void tail_add(struct tail *t, const char *format, ...) PRINTF_LIKE(2, 3);

static void tail_add(struct tail *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->text + t->used, t->size - t->used, format, args);
    va_end(args);
    size_t room = t->size - t->used - 1;
    t->used += n > 0 ? ((size_t)n < room ? (size_t)n : room) : 0;
}

static void fallback_add(const struct setting *s, struct tail *t)
{
    if (s->type == SETTING_GROUPS) {
        tail_add(t, "default: none; at most %zu elements", s->capacity);
    } else if (s->fallback == NULL) {
        tail_add(t, "must be given");
    } else if (s->secret && s->fallback[0] != '\0') {
        tail_add(t, "default: not shown");
    } else if (s->fallback[0] == '\0') {
        tail_add(t, "default: empty");
    } else {
        tail_add(t, "default: `%s`", s->fallback);
    }
}

void setting_facts(const struct setting *s, char *ret_text, size_t size)
{
    assert(size > 0);
    struct tail t = {.text = ret_text, .size = size};
    ret_text[0] = '\0';
    tail_add(&t, "%s", type_words(s));
    if (s->type == SETTING_INT) {
        tail_add(&t, " from %" PRId64 " to %" PRId64, s->min, s->max);
    }
    if (s->unit[0] != '\0') {
        tail_add(&t, ", %s", s->unit);
    }
    if (s->type == SETTING_TEXT) {
        tail_add(&t, " of at most %zu bytes", s->size - 1);
    }
    tail_add(&t, "; ");
    fallback_add(s, &t);
    tail_add(&t, "%s; %s.", s->secret ? "; never shown" : "",
             s->reloadable ? "SIGHUP applies a change" : "a change needs a restart");
}

static void facts_print(const struct setting *s, FILE *to)
{
    char facts[SETTING_TEXT_MAX + 256];
    setting_facts(s, facts, sizeof facts);
    (void)fprintf(to, "%s\n\n", facts);
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

/* ---- values ---- */

static void tail_quote(struct tail *t, const char *value)
{
    tail_add(t, "\"");
    for (const char *p = value; *p != '\0'; p++) {
        tail_add(t, *p == '"' || *p == '\\' ? "\\%c" : "%c", *p);
    }
    tail_add(t, "\"");
}

static void list_format(const struct setting_list *list, struct tail *t)
{
    tail_add(t, "[");
    for (size_t i = 0; i < list->count; i++) {
        tail_add(t, "%s", i > 0 ? ", " : "");
        tail_quote(t, list->items[i]);
    }
    tail_add(t, "]");
}

void setting_format(const struct setting *s, const void *settings, char *ret_text, size_t size)
{
    assert(size > 0);
    const char *field = (const char *)settings + s->offset;
    struct tail t = {.text = ret_text, .size = size};
    ret_text[0] = '\0';
    if (s->secret) {
        tail_add(&t, "(not shown)");
        return;
    }
    switch (s->type) {
    case SETTING_TEXT:
        tail_quote(&t, field);
        break;
    case SETTING_INT: {
        int64_t value = 0;
        memcpy(&value, field, sizeof value);
        tail_add(&t, "%" PRId64, value);
        break;
    }
    case SETTING_BOOL:
        tail_add(&t, "%s", *(const bool *)(const void *)field ? "true" : "false");
        break;
    case SETTING_LIST:
        list_format((const struct setting_list *)(const void *)field, &t);
        break;
    case SETTING_GROUPS:
        tail_add(&t, "(...)");
        break;
    }
}

static void value_print(const struct setting *s, const char *base, const char *indent, FILE *to);

static void groups_print(const struct setting *s, const char *base, FILE *to)
{
    size_t n = 0;
    memcpy(&n, base + s->count_offset, sizeof n);
    (void)fprintf(to, "%s = (\n", s->key);
    for (size_t i = 0; i < n; i++) {
        (void)fputs("    {\n", to);
        for (size_t f = 0; f < s->field_count; f++) {
            value_print(&s->fields[f], base + s->offset + i * s->element_size, "        ", to);
        }
        (void)fprintf(to, "    }%s\n", i + 1 < n ? "," : "");
    }
    (void)fputs(");\n", to);
}

static void value_print(const struct setting *s, const char *base, const char *indent, FILE *to)
{
    char text[SETTING_LIST_MAX * 2 * 260]; /* the longest list, every byte escaped */
    if (s->type == SETTING_GROUPS) {
        groups_print(s, base, to);
        return;
    }
    setting_format(s, base, text, sizeof text);
    (void)fprintf(to, s->secret ? "%s# %s = %s\n" : "%s%s = %s;\n", indent, s->key, text);
}

void settings_print_values(const struct settings_spec *spec, const void *settings, FILE *to)
{
    for (size_t i = 0; i < spec->count; i++) {
        value_print(&spec->table[i], settings, "", to);
    }
}
