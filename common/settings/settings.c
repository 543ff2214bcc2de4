/* The only file that includes libconfig.h. One walk in file order finds every fault of a single
 * key; defaults are written before it, and what must be given but is not there is reported after
 * it. Last come the program's rules across keys, which leave out keys that have a fault already. */
#include "settings.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <libconfig.h>

#include "nearest.h"
#include "settings_fallback.h"
#include "settings_judge.h"
#include "settings_scan.h"

/* One group of the file against one table of settings. */
struct scope_of_keys {
    const struct setting *table;
    size_t count;
    char *base;         /* the struct (or element) that is filled */
    const char *prefix; /* "" or "data_sources[0]." */
    const config_setting_t *group;
};

/* ---- words for people ---- */

static const char *type_in_file(const config_setting_t *c)
{
    switch (config_setting_type(c)) {
    case CONFIG_TYPE_GROUP:
        return "a group { }";
    case CONFIG_TYPE_INT:
    case CONFIG_TYPE_INT64:
        return "a whole number";
    case CONFIG_TYPE_FLOAT:
        return "a number with a fraction";
    case CONFIG_TYPE_STRING:
        return "text";
    case CONFIG_TYPE_BOOL:
        return "a truth value";
    case CONFIG_TYPE_ARRAY:
        return "an array [ ]";
    case CONFIG_TYPE_LIST:
        return "a list ( )";
    default:
        return "nothing";
    }
}

/* "write ..." for a setting: what would have been right, with an example that works. */
static void remedy_write(const struct setting *s, char *text, size_t size)
{
    const char *blank = s->unit[0] != '\0' ? " " : "";
    switch (s->type) {
    case SETTING_TEXT:
        (void)snprintf(text, size, "write text in double quotes: %s = \"%s\";", s->key,
                       s->fallback != NULL && s->fallback[0] != '\0' ? s->fallback : "...");
        break;
    case SETTING_INT:
        (void)snprintf(text, size,
                       "write a whole number from %" PRId64 " to %" PRId64 "%s%s without quotes: "
                       "%s = %s;",
                       s->min, s->max, blank, s->unit, s->key,
                       s->fallback != NULL ? s->fallback : "...");
        break;
    case SETTING_BOOL:
        (void)snprintf(text, size, "write true or false without quotes: %s = %s;", s->key,
                       s->fallback != NULL ? s->fallback : "true");
        break;
    case SETTING_LIST:
        (void)snprintf(text, size, "write texts in brackets: %s = [\"first\", \"second\"];",
                       s->key);
        break;
    case SETTING_GROUPS:
        (void)snprintf(text, size, "write groups in parentheses: %s = ( { %s = ...; } );", s->key,
                       s->field_count > 0 ? s->fields[0].key : "name");
        break;
    }
}

static void unknown_key_report(struct settings_judge *l, const struct scope_of_keys *k,
                               const config_setting_t *c, const char *key)
{
    struct nearest near = nearest_start(config_setting_name(c));
    for (size_t i = 0; i < k->count; i++) {
        nearest_offer(&near, k->table[i].key);
    }
    if (near.best != NULL) {
        judge_fault(l, c, key, "unknown key; write %s, or remove the line", near.best);
        return;
    }
    char known[ERROR_TEXT_MAX / 2] = "";
    size_t used = 0;
    for (size_t i = 0; i < k->count; i++) {
        int n =
            snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "", k->table[i].key);
        if (n < 0 || (size_t)n >= sizeof known - used) {
            (void)snprintf(known + used, sizeof known - used, "%s", ", ...");
            break;
        }
        used += (size_t)n;
    }
    judge_fault(l, c, key, "unknown key; remove the line (known here: %s)", known);
}

/* The scan renamed a key that stands in its group twice. True: told. */
static bool repeat_report(struct settings_judge *l, const struct scope_of_keys *k,
                          const config_setting_t *c)
{
    const char *name = config_setting_name(c);
    const char *again = strstr(name, SETTINGS_AGAIN);
    if (again == NULL) {
        return false;
    }
    char first[KEY_TEXT_MAX];
    char key[KEY_TEXT_MAX * 2];
    (void)snprintf(first, sizeof first, "%.*s", (int)(again - name), name);
    (void)snprintf(key, sizeof key, "%s%s", k->prefix, first);
    const config_setting_t *before = config_setting_get_member(k->group, first);
    judge_fault(l, c, key, "was given before, at line %d; keep one of the two lines",
                before == NULL ? 0 : (int)config_setting_source_line(before));
    return true;
}

/* ---- values ---- */

static void group_load(struct settings_judge *l, const struct scope_of_keys *k);

static void type_fault(struct settings_judge *l, const struct setting *s, const config_setting_t *c,
                       const char *key)
{
    char remedy[ERROR_TEXT_MAX / 2];
    remedy_write(s, remedy, sizeof remedy);
    judge_fault(l, c, key, "is %s; %s", type_in_file(c), remedy);
}

/* One text against its row's form and surroundings. `at` is where it stands. */
static void text_judge(struct settings_judge *l, const struct setting *s,
                       const config_setting_t *at, const char *key, const char *value)
{
    struct error err = {.text = ""};
    if (s->form != NULL && s->form(value, &err) != STATUS_OK) {
        judge_fault(l, at, key, "%s", err.text);
    } else if (s->around != NULL && s->around(value, &err) != STATUS_OK) {
        judge_warn(l, at, key, err.text);
    }
}

static void text_load(struct settings_judge *l, const struct setting *s, const config_setting_t *c,
                      const char *key, char *field)
{
    const char *value = config_setting_get_string(c);
    if (value == NULL) {
        type_fault(l, s, c, key);
        return;
    }
    size_t n = strlen(value);
    if (n >= s->size) {
        judge_fault(l, c, key, "has %zu bytes; write at most %zu", n, s->size - 1);
    } else if (n == 0 && s->fallback == NULL) {
        judge_fault(l, c, key, "is empty; write a value between the quotes");
    } else {
        memcpy(field, value, n + 1);
        if (n > 0) {
            text_judge(l, s, c, key, value);
        }
    }
}

static void int_load(struct settings_judge *l, const struct setting *s, const config_setting_t *c,
                     const char *key, char *field)
{
    int type = config_setting_type(c);
    if (type != CONFIG_TYPE_INT && type != CONFIG_TYPE_INT64) {
        type_fault(l, s, c, key);
        return;
    }
    int64_t value =
        type == CONFIG_TYPE_INT ? config_setting_get_int(c) : (int64_t)config_setting_get_int64(c);
    if (value < s->min || value > s->max) {
        char remedy[ERROR_TEXT_MAX / 2];
        remedy_write(s, remedy, sizeof remedy);
        judge_fault(l, c, key, "%" PRId64 " is out of range; %s", value, remedy);
        return;
    }
    memcpy(field, &value, sizeof value);
}

static void list_load(struct settings_judge *l, const struct setting *s, const config_setting_t *c,
                      const char *key, char *field)
{
    struct setting_list *list = (struct setting_list *)(void *)field;
    int type = config_setting_type(c);
    if (type != CONFIG_TYPE_ARRAY && type != CONFIG_TYPE_LIST) {
        type_fault(l, s, c, key);
        return;
    }
    list->count = 0; /* the default is replaced, not extended */
    int n = config_setting_length(c);
    if (n > SETTING_LIST_MAX) {
        judge_fault(l, c, key, "has %d items; write at most %d", n, SETTING_LIST_MAX);
        return;
    }
    for (int i = 0; i < n; i++) {
        const config_setting_t *item = config_setting_get_elem(c, (unsigned)i);
        const char *value = config_setting_get_string(item);
        if (value == NULL) {
            judge_fault(l, item, key, "item %d is %s; write every item as text in double quotes",
                        i + 1, type_in_file(item));
        } else if (strlen(value) >= sizeof list->items[0]) {
            judge_fault(l, item, key, "item %d has %zu bytes; write at most %zu", i + 1,
                        strlen(value), sizeof list->items[0] - 1);
        } else {
            setting_list_add(list, value, strlen(value));
            text_judge(l, s, item, key, value);
        }
    }
    if (list->count == 0 && n == 0 && s->fallback == NULL) {
        judge_fault(l, c, key, "is empty; write at least one item");
    }
}

/* Elements that carry a name are looked up by it: a second one of that name would never be seen. */
static void names_check(struct settings_judge *l, const config_setting_t *groups, const char *key)
{
    int n = config_setting_length(groups);
    for (int i = 1; i < n; i++) {
        const config_setting_t *element = config_setting_get_elem(groups, (unsigned)i);
        const char *name = NULL;
        if (!config_setting_is_group(element) ||
            !config_setting_lookup_string(element, "name", &name)) {
            continue;
        }
        for (int j = 0; j < i; j++) {
            const config_setting_t *before = config_setting_get_elem(groups, (unsigned)j);
            const char *other = NULL;
            if (config_setting_is_group(before) &&
                config_setting_lookup_string(before, "name", &other) && strcmp(name, other) == 0) {
                judge_fault(l, element, key,
                            "a second element has the name \"%s\" (the first is at line %d); "
                            "write another name, or remove one",
                            name, (int)config_setting_source_line(before));
                break;
            }
        }
    }
}

static void groups_load(struct settings_judge *l, const struct setting *s,
                        const config_setting_t *c, const char *key, char *base)
{
    if (config_setting_type(c) != CONFIG_TYPE_LIST) {
        type_fault(l, s, c, key);
        return;
    }
    size_t n = (size_t)config_setting_length(c);
    if (n > s->capacity) {
        judge_fault(l, c, key, "has %zu elements; write at most %zu", n, s->capacity);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const config_setting_t *element = config_setting_get_elem(c, (unsigned)i);
        char prefix[KEY_TEXT_MAX];
        (void)snprintf(prefix, sizeof prefix, "%.*s[%zu].", KEY_TEXT_MAX - 32, key, i);
        if (!config_setting_is_group(element)) {
            judge_fault(l, element, key, "element %zu is %s; write a group: { %s = ...; }", i,
                        type_in_file(element), s->field_count > 0 ? s->fields[0].key : "name");
            continue;
        }
        struct scope_of_keys inner = {.table = s->fields,
                                      .count = s->field_count,
                                      .base = base + s->offset + i * s->element_size,
                                      .prefix = prefix,
                                      .group = element};
        group_load(l, &inner);
    }
    names_check(l, c, key);
    memcpy(base + s->count_offset, &n, sizeof n);
}

static void value_load(struct settings_judge *l, const struct setting *s, const config_setting_t *c,
                       const char *key, char *base)
{
    switch (s->type) {
    case SETTING_TEXT:
        text_load(l, s, c, key, base + s->offset);
        break;
    case SETTING_INT:
        int_load(l, s, c, key, base + s->offset);
        break;
    case SETTING_BOOL: {
        if (config_setting_type(c) != CONFIG_TYPE_BOOL) {
            type_fault(l, s, c, key);
            break;
        }
        bool value = config_setting_get_bool(c) != 0;
        memcpy(base + s->offset, &value, sizeof value);
        break;
    }
    case SETTING_LIST:
        list_load(l, s, c, key, base + s->offset);
        break;
    case SETTING_GROUPS:
        groups_load(l, s, c, key, base);
        break;
    }
}

static const struct setting *setting_find(const struct scope_of_keys *k, const char *key)
{
    for (size_t i = 0; i < k->count; i++) {
        if (strcmp(k->table[i].key, key) == 0) {
            return &k->table[i];
        }
    }
    return NULL;
}

static void group_load(struct settings_judge *l, const struct scope_of_keys *k)
{
    char key[KEY_TEXT_MAX * 2];
    for (size_t i = 0; i < k->count; i++) {
        setting_fallback_write(&k->table[i], k->base);
    }
    int n = config_setting_length(k->group);
    for (int i = 0; i < n; i++) {
        const config_setting_t *c = config_setting_get_elem(k->group, (unsigned)i);
        if (repeat_report(l, k, c)) {
            continue;
        }
        const struct setting *s = setting_find(k, config_setting_name(c));
        (void)snprintf(key, sizeof key, "%s%s", k->prefix, config_setting_name(c));
        if (s == NULL) {
            unknown_key_report(l, k, c, key);
        } else {
            value_load(l, s, c, key, k->base);
        }
    }
    for (size_t i = 0; i < k->count; i++) {
        const struct setting *s = &k->table[i];
        if (s->fallback != NULL || s->type == SETTING_GROUPS ||
            config_setting_get_member(k->group, s->key) != NULL) {
            continue;
        }
        char remedy[ERROR_TEXT_MAX / 2];
        remedy_write(s, remedy, sizeof remedy);
        (void)snprintf(key, sizeof key, "%s%s", k->prefix, s->key);
        judge_fault(l, config_setting_is_root(k->group) ? NULL : k->group, key,
                    "is missing and has no default; %s", remedy);
    }
}

/* ---- the file ---- */

static void syntax_fault(struct settings_judge *l)
{
    const char *text = config_error_text(l->config);
    const char *remedy = "look here and on the line before for a missing ; or quote or bracket";
    if (text == NULL || *text == '\0') {
        text = "syntax error";
    }
    if (strstr(text, "duplicate") != NULL) {
        text = "this key was given before";
        remedy = "keep one of the two lines";
    }
    l->fault_count = 1;
    (void)error_set(&l->first, STATUS_INVALID, "%s:%d: %s; %s", l->path,
                    config_error_line(l->config), text, remedy);
    if (l->lines != NULL) {
        (void)fprintf(l->lines, "%s\n", l->first.text);
    }
}

static void text_load_all(struct settings_judge *l, config_t *config, const char *text,
                          const struct settings_spec *spec, void *out)
{
    if (config_read_string(config, text) != CONFIG_TRUE) {
        syntax_fault(l);
        return;
    }
    struct scope_of_keys root = {.table = spec->table,
                                 .count = spec->count,
                                 .base = out,
                                 .prefix = "",
                                 .group = config_root_setting(config)};
    group_load(l, &root);
    if (spec->check != NULL) {
        spec->check(out, l);
    }
}

static enum status file_load(const struct settings_spec *spec, const char *path, void *out,
                             FILE *lines, struct error *err)
{
    struct settings_text file;
    struct settings_judge l = {.path = path, .lines = lines};
    enum status s = settings_text_read(path, &file, &l.first);
    if (s != STATUS_OK) {
        if (s == STATUS_INVALID && lines != NULL) {
            (void)fprintf(lines, "%s\n", l.first.text);
        }
        return error_set(err, s, "%s", l.first.text);
    }
    config_t config;
    config_init(&config);
    l.config = &config;
    l.last_line = file.lines;
    text_load_all(&l, &config, file.text, spec, out);
    config_destroy(&config);
    free(file.text);
    return judge_verdict(&l, err);
}

enum status settings_read(const struct settings_spec *spec, const char *path, void **ret_settings,
                          FILE *lines, struct error *err)
{
    void *settings = calloc(1, spec->size);
    if (settings == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory for the settings");
    }
    enum status s = file_load(spec, path, settings, lines, err);
    if (s != STATUS_OK) {
        free(settings);
        return s;
    }
    if (spec->complete != NULL) {
        spec->complete(settings);
    }
    *ret_settings = settings;
    return STATUS_OK;
}

enum status settings_recheck(const struct settings_spec *spec, const char *path,
                             const void *settings, FILE *lines, struct error *err)
{
    struct settings_judge l = {.path = path, .lines = lines};
    if (spec->check != NULL) {
        spec->check(settings, &l);
    }
    return judge_verdict(&l, err);
}
