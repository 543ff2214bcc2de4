#include "calendar_csv.h"

#include <stdio.h>
#include <string.h>

#include <csv.h>

#include "civil.h"
#include "nearest.h"

#define LINE_MAX_BYTES 4096
#define COLUMNS        3
#define KEY_MAX_CHARS  40 /* of a setting's name; what is longer is a comment */

enum column {
    COLUMN_DATE,
    COLUMN_KIND,
    COLUMN_NAME,
};

static const char *const column_names[COLUMNS] = {"date", "kind", "name"};

struct reading {
    struct calendar_definition *d;
    int32_t line;
    bool rows;                  /* the settings are over */
    bool first;                 /* the row at hand is the first */
    bool headed;                /* the first row named the columns */
    size_t count;               /* columns a row may have */
    enum column order[COLUMNS]; /* what they are, as the heading says or as in column_names */
};

/* ---- settings: "# key: value" ---- */

static const char *const setting_names[] = {"name",       "description",   "source", "attribution",
                                            "valid_from", "valid_through", "beyond", "weekend"};
#define SETTINGS (sizeof setting_names / sizeof setting_names[0])

static enum status text_set(char *to, size_t size, const char *value, struct error *err)
{
    if (to[0] != '\0') {
        return error_set(err, STATUS_INVALID, "it is said twice; leave out one");
    }
    if (strlen(value) >= size || !calendar_text_is_clean(value)) {
        return error_set(err, STATUS_INVALID, "write UTF-8 text of at most %zu bytes", size - 1);
    }
    (void)snprintf(to, size, "%s", value);
    return STATUS_OK;
}

static enum status name_set(struct calendar_definition *d, const char *value, struct error *err)
{
    if (!name_is_valid(value)) {
        return error_set(err, STATUS_INVALID,
                         "write 1 to 63 of a-z 0-9 _ . - beginning with a letter or digit");
    }
    return text_set(d->name, sizeof d->name, value, err);
}

/* A date of a setting, within the years that calendars and their tables have. */
static enum status day_take(const char *value, int64_t *ret_day, struct error *err)
{
    int64_t day = 0;
    enum status s = date_parse(value, &day, err);
    if (s != STATUS_OK) {
        return s;
    }
    int32_t year = civil_date_of(day).year;
    if (year < CALENDAR_YEAR_MIN || year > CALENDAR_YEAR_MAX) {
        return error_set(err, STATUS_INVALID,
                         "the year is not within %d to %d; for an older or "
                         "later date leave the setting out, or write open",
                         CALENDAR_YEAR_MIN, CALENDAR_YEAR_MAX);
    }
    *ret_day = day;
    return STATUS_OK;
}

static enum status bound_set(bool *ret_has, int64_t *ret_day, const char *value, struct error *err)
{
    if (*ret_has) {
        return error_set(err, STATUS_INVALID, "it is said twice; leave out one");
    }
    if (strcmp(value, "open") != 0) {
        enum status s = day_take(value, ret_day, err);
        if (s != STATUS_OK) {
            return s;
        }
    }
    *ret_has = true;
    return STATUS_OK;
}

static enum status beyond_set(struct calendar_definition *d, const char *value, struct error *err)
{
    bool hold = strcmp(value, "hold") == 0;
    if (!hold && strcmp(value, "weekends_only") != 0) {
        return error_set(err, STATUS_INVALID, "write weekends_only or hold");
    }
    d->beyond = hold ? CALENDAR_BEYOND_HOLD : CALENDAR_BEYOND_WEEKENDS;
    return STATUS_OK;
}

/* `since`: "" for the first, otherwise "from YYYY-MM-DD". */
static enum status weekend_set(struct calendar_definition *d, const char *since, const char *value,
                               struct error *err)
{
    struct calendar_weekend w = {.from = CALENDAR_ALWAYS};
    if (since[0] != '\0') {
        if (strncmp(since, "from ", 5) != 0) {
            return error_set(err, STATUS_INVALID, "write \"weekend from YYYY-MM-DD: Sat Sun\"");
        }
        enum status s = day_take(since + 5, &w.from, err);
        if (s != STATUS_OK) {
            return s;
        }
    }
    if (d->weekend_count == CALENDAR_WEEKENDS_MAX) {
        return error_set(err, STATUS_INVALID, "more than %d changes; leave out the oldest",
                         CALENDAR_WEEKENDS_MAX);
    }
    const struct calendar_weekend *last = &d->weekends[d->weekend_count];
    if (d->weekend_count == 0 ? since[0] != '\0' : last[-1].from >= w.from) {
        return error_set(err, STATUS_INVALID,
                         "first write \"weekend: Sat Sun\", then its changes in the order of their "
                         "dates");
    }
    enum status s = calendar_weekend_parse(value, &w.days, err);
    if (s == STATUS_OK) {
        d->weekends[d->weekend_count++] = w;
    }
    return s;
}

static enum status key_unknown(const char *key, struct error *err)
{
    struct nearest near = nearest_start(key);
    for (size_t i = 0; i < SETTINGS; i++) {
        nearest_offer(&near, setting_names[i]);
    }
    return error_set(
        err, STATUS_INVALID, "there is no setting of this name%s%s; begin a comment with ##",
        near.best != NULL ? "; did you mean " : "", near.best != NULL ? near.best : "");
}

static enum status setting_take(struct calendar_definition *d, const char *key, const char *value,
                                struct error *err)
{
    if (strcmp(key, "name") == 0) {
        return name_set(d, value, err);
    }
    if (strcmp(key, "description") == 0) {
        return text_set(d->description, sizeof d->description, value, err);
    }
    if (strcmp(key, "source") == 0) {
        return text_set(d->source, sizeof d->source, value, err);
    }
    if (strcmp(key, "attribution") == 0) {
        return text_set(d->attribution, sizeof d->attribution, value, err);
    }
    if (strcmp(key, "valid_from") == 0) {
        return bound_set(&d->has_valid_from, &d->valid_from, value, err);
    }
    if (strcmp(key, "valid_through") == 0) {
        return bound_set(&d->has_valid_through, &d->valid_through, value, err);
    }
    if (strcmp(key, "beyond") == 0) {
        return beyond_set(d, value, err);
    }
    if (strncmp(key, "weekend", 7) == 0 && (key[7] == '\0' || key[7] == ' ')) {
        return weekend_set(d, key[7] == ' ' ? key + 8 : "", value, err);
    }
    return key_unknown(key, err);
}

/* Is it one of the settings but for blanks and signs, as in "Valid through"? */
static bool key_is_meant(const char *key, size_t length)
{
    for (size_t i = 0; i < SETTINGS; i++) {
        const char *name = setting_names[i];
        size_t n = 0;
        while (n < length && name[n] != '\0' &&
               (key[n] == name[n] || (name[n] == '_' && strchr(" -.", key[n]) != NULL))) {
            n++;
        }
        if (name[n] == '\0' && key[n + strspn(key + n, " \t")] == ':') {
            return true;
        }
    }
    return false;
}

/* "##..." and what has no "key:" of one word in front is a comment. Capitals are as good as small
 * letters: a setting that is passed over makes another calendar. */
static enum status hash_line(struct reading *r, char *line, struct error *err)
{
    const char *said = line + 1 + strspn(line + 1, " \t");
    size_t length = strcspn(said, ":");
    char key[KEY_MAX_CHARS + 2] = "";
    if (line[1] == '#' || said[length] != ':' || length > KEY_MAX_CHARS) {
        return STATUS_OK;
    }
    for (size_t i = 0; i <= length; i++) {
        key[i] = (char)(said[i] >= 'A' && said[i] <= 'Z' ? said[i] - 'A' + 'a' : said[i]);
    }
    bool weekend = strncmp(key, "weekend ", 8) == 0;
    if (!weekend && strspn(key, "abcdefghijklmnopqrstuvwxyz_") != length &&
        !key_is_meant(key, length)) {
        return STATUS_OK;
    }
    key[length] = '\0';
    const char *value = said + length + 1;
    value += strspn(value, " \t");
    if (!calendar_text_is_clean(key)) {
        return error_set(err, STATUS_INVALID,
                         "the setting's name is not UTF-8 text; begin a comment with ##");
    }
    if (r->rows) {
        return error_set(err, STATUS_INVALID,
                         "the setting %s stands below the days; write it above them", key);
    }
    enum status s = setting_take(r->d, key, value, err);
    return s == STATUS_OK ? s : error_prefix(err, s, "%s", key);
}

/* ---- rows ---- */

struct row {
    char columns[COLUMNS][CALENDAR_LABEL_MAX];
    size_t count;
    bool too_long;
};

static void column_take(void *bytes, size_t size, void *data)
{
    struct row *row = data;
    if (row->count < COLUMNS) {
        row->too_long = row->too_long || size >= CALENDAR_LABEL_MAX;
        size_t n = size < CALENDAR_LABEL_MAX ? size : CALENDAR_LABEL_MAX - 1;
        if (n > 0) {
            memcpy(row->columns[row->count], bytes, n);
        }
        row->columns[row->count][n] = '\0';
    }
    row->count++;
}

static void row_end(int terminator, void *data)
{
    (void)terminator;
    (void)data;
}

/* One line is one row: a quote that is not closed on it is an error there and not at the end of the
 * file. */
static enum status row_split(const char *line, size_t size, struct row *row, struct error *err)
{
    struct csv_parser parser;
    if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI) != 0) {
        return error_set(err, STATUS_FATAL, "the CSV parser cannot be set up");
    }
    bool ok = csv_parse(&parser, line, size, column_take, row_end, row) == size &&
              csv_fini(&parser, column_take, row_end, row) == 0;
    int code = csv_error(&parser);
    csv_free(&parser);
    if (ok) {
        return STATUS_OK;
    }
    if (code == CSV_ENOMEM) {
        return error_set(err, STATUS_FATAL, "out of memory");
    }
    return error_set(err, STATUS_INVALID,
                     "the quotes do not match; write \"...\" around the whole column, and \"\" for "
                     "a quote in it");
}

/* What is no date, by what it most likely is: a list with other signs between its columns, or a
 * heading in other words. */
static enum status date_take(const struct reading *r, const char *cell, int64_t *ret_day,
                             struct error *err)
{
    bool other_sign = strpbrk(cell, ";\t") != NULL;
    bool heading = r->first && !(cell[0] >= '0' && cell[0] <= '9');
    if (other_sign) {
        return error_set(err, STATUS_INVALID,
                         "its columns are not separated by commas; write YYYY-MM-DD,kind,name, and "
                         "as a heading date,kind,name or date,name");
    }
    if (heading) {
        return error_set(err, STATUS_INVALID,
                         "it does not begin with a date, nor is it a heading; write YYYY-MM-DD, or "
                         "the heading date,kind,name or date,name");
    }
    return date_parse(cell, ret_day, err);
}

static enum status kind_refuse(const struct reading *r, const struct row *row, const char *kind,
                               struct error *err)
{
    bool name = !r->headed && row->count == 2;
    return error_set(err, STATUS_INVALID, "kind \"%s\" is wrong; write holiday or working%s", kind,
                     name ? ", or when it is a name the heading date,name above all rows" : "");
}

static enum status row_take(struct reading *r, const struct row *row, struct error *err)
{
    struct calendar_entry entry = {.line = r->line};
    const char *cells[COLUMNS] = {"", "", ""};
    if (row->count > r->count) {
        return error_set(err, STATUS_INVALID,
                         "it has %zu columns; write date,kind,name, with \"...\" around a name "
                         "that has a comma",
                         row->count);
    }
    for (size_t i = 0; i < row->count; i++) {
        cells[r->order[i]] = row->columns[i];
    }
    enum status s = date_take(r, cells[COLUMN_DATE], &entry.day, err);
    if (s != STATUS_OK) {
        return s;
    }
    const char *kind = cells[COLUMN_KIND];
    if (!calendar_text_is_clean(kind)) {
        return error_set(err, STATUS_INVALID,
                         "the kind is not UTF-8 text; write holiday or working");
    }
    entry.business = strcmp(kind, "working") == 0;
    if (!entry.business && kind[0] != '\0' && strcmp(kind, "holiday") != 0) {
        return kind_refuse(r, row, kind, err);
    }
    if (row->too_long) {
        return error_set(err, STATUS_INVALID, "a column is too long; write at most %d bytes",
                         CALENDAR_LABEL_MAX - 1);
    }
    (void)snprintf(entry.label, sizeof entry.label, "%s", cells[COLUMN_NAME]);
    return calendar_definition_add(r->d, &entry, err);
}

static bool row_is_heading(const struct row *row)
{
    for (size_t i = 0; i < row->count && i < COLUMNS; i++) {
        if (strcmp(row->columns[i], column_names[COLUMN_DATE]) == 0) {
            return true;
        }
    }
    return false;
}

/* The first row may say which columns there are, in any order. */
static enum status heading_take(struct reading *r, const struct row *row, struct error *err)
{
    bool said[COLUMNS] = {false};
    for (size_t i = 0; i < row->count; i++) {
        const char *name = i < COLUMNS ? row->columns[i] : "";
        size_t column = 0;
        while (column < COLUMNS && strcmp(name, column_names[column]) != 0) {
            column++;
        }
        if (column == COLUMNS || said[column]) {
            return error_set(err, STATUS_INVALID,
                             "the heading may have the columns date, kind and name, each once; "
                             "leave out the others");
        }
        said[column] = true;
        r->order[i] = (enum column)column;
    }
    r->count = row->count;
    return STATUS_OK;
}

static enum status line_take(struct reading *r, char *line, size_t size, struct error *err)
{
    if (memchr(line, '\0', size) != NULL) {
        return error_set(err, STATUS_INVALID, "it has a NUL byte; save the file as UTF-8 text");
    }
    if (line[strspn(line, " \t")] == '\0') {
        return STATUS_OK;
    }
    if (line[0] == '#') {
        return hash_line(r, line, err);
    }
    struct row row = {.count = 0};
    enum status s = row_split(line, size, &row, err);
    if (s != STATUS_OK) {
        return s;
    }
    r->first = !r->rows;
    r->rows = true;
    r->headed = r->headed || (r->first && row_is_heading(&row));
    return r->first && r->headed ? heading_take(r, &row, err) : row_take(r, &row, err);
}

/* The next line without its end and the spaces before that; false: there is none. */
static bool line_next(const char **at, const char *end, char line[LINE_MAX_BYTES], size_t *ret_size)
{
    if (*at == end) {
        return false;
    }
    const char *newline = memchr(*at, '\n', (size_t)(end - *at));
    size_t size = (size_t)((newline != NULL ? newline : end) - *at);
    *ret_size = size;
    size_t n = size < LINE_MAX_BYTES ? size : LINE_MAX_BYTES - 1;
    while (n > 0 && strchr(" \t\r", (*at)[n - 1]) != NULL && (*at)[n - 1] != '\0') {
        n--;
    }
    memcpy(line, *at, n);
    line[n] = '\0';
    *ret_size = size < LINE_MAX_BYTES ? n : size;
    *at = newline != NULL ? newline + 1 : end;
    return true;
}

enum status calendar_csv_parse(const struct calendar_source *source, struct calendar_definition *d,
                               struct error *err)
{
    struct reading r = {.d = d, .count = COLUMNS, .order = {COLUMN_DATE, COLUMN_KIND, COLUMN_NAME}};
    char line[LINE_MAX_BYTES];
    const char *at = source->text;
    const char *end = source->text + source->size;
    size_t size = 0;
    if (source->size > CALENDAR_FILE_MAX_BYTES) {
        return error_set(err, STATUS_INVALID, "%s: larger than %d bytes; leave out years long gone",
                         source->file, CALENDAR_FILE_MAX_BYTES);
    }
    if (source->size >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0) {
        at += 3; /* the byte order mark that some editors write */
    }
    while (line_next(&at, end, line, &size)) {
        r.line++;
        enum status s =
            size < LINE_MAX_BYTES
                ? line_take(&r, line, size, err)
                : error_set(err, STATUS_INVALID, "longer than %d bytes", LINE_MAX_BYTES - 1);
        if (s != STATUS_OK) {
            return error_prefix(err, s, "%s:%d", source->file, (int)r.line);
        }
    }
    enum status s = calendar_definition_finish(d, err);
    return s == STATUS_OK ? s : error_prefix(err, s, "%s", source->file);
}
