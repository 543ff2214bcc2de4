#include "settings_fallback.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void setting_list_add(struct setting_list *list, const char *text, size_t n)
{
    assert(list->count < SETTING_LIST_MAX && n < sizeof list->items[0]);
    memcpy(list->items[list->count], text, n);
    list->items[list->count][n] = '\0';
    list->count++;
}

static void list_split(struct setting_list *list, const char *text)
{
    while (*text != '\0') {
        text += strspn(text, ", ");
        size_t n = strcspn(text, ",");
        if (n > 0) {
            setting_list_add(list, text, n);
        }
        text += n;
    }
}

void setting_fallback_write(const struct setting *s, char *base)
{
    void *field = base + s->offset;
    if (s->fallback == NULL) {
        return;
    }
    switch (s->type) {
    case SETTING_TEXT:
        assert(strlen(s->fallback) < s->size);
        memcpy(field, s->fallback, strlen(s->fallback) + 1);
        break;
    case SETTING_INT: {
        char *end = NULL;
        int64_t value = strtoll(s->fallback, &end, 10);
        assert(*s->fallback != '\0' && *end == '\0' && value >= s->min && value <= s->max);
        memcpy(field, &value, sizeof value);
        break;
    }
    case SETTING_BOOL: {
        bool value = strcmp(s->fallback, "true") == 0;
        assert(value || strcmp(s->fallback, "false") == 0);
        memcpy(field, &value, sizeof value);
        break;
    }
    case SETTING_LIST:
        list_split(field, s->fallback);
        break;
    case SETTING_GROUPS:
        break;
    }
}
