/* What a running process takes of a file that was read again. */
#include "settings.h"

#include <string.h>

static bool lists_equal(const struct setting_list *a, const struct setting_list *b)
{
    bool equal = a->count == b->count;
    for (size_t i = 0; equal && i < a->count; i++) {
        equal = strcmp(a->items[i], b->items[i]) == 0;
    }
    return equal;
}

static size_t element_count(const struct setting *s, const char *base)
{
    size_t n = 0;
    memcpy(&n, base + s->count_offset, sizeof n);
    return n;
}

/* By meaning, not by bytes: what stands behind the end of a text is of no account. */
static bool values_equal(const struct setting *s, const char *a, const char *b)
{
    const void *x = a + s->offset;
    const void *y = b + s->offset;
    switch (s->type) {
    case SETTING_TEXT:
        return strcmp(x, y) == 0;
    case SETTING_INT:
        return memcmp(x, y, sizeof(int64_t)) == 0;
    case SETTING_BOOL:
        return memcmp(x, y, sizeof(bool)) == 0;
    case SETTING_LIST:
        return lists_equal(x, y);
    case SETTING_GROUPS:
        break;
    }
    size_t n = element_count(s, a);
    bool equal = n == element_count(s, b);
    for (size_t i = 0; equal && i < n * s->field_count; i++) {
        size_t at = s->offset + i / s->field_count * s->element_size;
        equal = values_equal(&s->fields[i % s->field_count], a + at, b + at);
    }
    return equal;
}

static void value_copy(const struct setting *s, char *to, const char *from)
{
    size_t size = 0;
    switch (s->type) {
    case SETTING_TEXT:
        size = s->size;
        break;
    case SETTING_INT:
        size = sizeof(int64_t);
        break;
    case SETTING_BOOL:
        size = sizeof(bool);
        break;
    case SETTING_LIST:
        size = sizeof(struct setting_list);
        break;
    case SETTING_GROUPS:
        size = s->capacity * s->element_size;
        memcpy(to + s->count_offset, from + s->count_offset, sizeof(size_t));
        break;
    }
    memcpy(to + s->offset, from + s->offset, size);
}

size_t settings_merge(const struct settings_spec *spec, const void *current, void *fresh,
                      struct settings_change ret_changes[SETTINGS_CHANGES_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < spec->count; i++) {
        const struct setting *s = &spec->table[i];
        if (values_equal(s, current, fresh)) {
            continue;
        }
        if (!s->reloadable) {
            value_copy(s, fresh, current);
        }
        if (n < SETTINGS_CHANGES_MAX) {
            ret_changes[n++] = (struct settings_change){.row = s, .applied = s->reloadable};
        }
    }
    return n;
}
