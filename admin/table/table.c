#include "table.h"

#include <stdlib.h>
#include <string.h>

struct table {
    struct column columns[TABLE_COLUMNS_MAX];
    size_t column_count;
    char **cells;
    size_t cell_count, cell_capacity;
};

struct table *table_new(void)
{
    return calloc(1, sizeof(struct table));
}

void table_free(struct table *t)
{
    if (t == NULL) {
        return;
    }
    for (size_t i = 0; i < t->cell_count; i++) {
        free(t->cells[i]);
    }
    free(t->cells);
    free(t);
}

bool table_column_add(struct table *t, const struct column *column)
{
    if (t->column_count == TABLE_COLUMNS_MAX) {
        return false;
    }
    t->columns[t->column_count++] = *column;
    return true;
}

bool table_columns_add(struct table *t, const struct column *columns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!table_column_add(t, &columns[i])) {
            return false;
        }
    }
    return true;
}

struct table *table_make(const struct column *columns, size_t count)
{
    struct table *t = table_new();
    if (t != NULL && !table_columns_add(t, columns, count)) {
        table_free(t);
        return NULL;
    }
    return t;
}

bool table_cell_add(struct table *t, const char *text)
{
    if (t->cell_count == t->cell_capacity) {
        size_t capacity = t->cell_capacity == 0 ? 256 : t->cell_capacity * 2;
        char **cells = realloc(t->cells, capacity * sizeof *cells);
        if (cells == NULL) {
            return false;
        }
        t->cells = cells;
        t->cell_capacity = capacity;
    }
    char *copy = text != NULL ? strdup(text) : NULL;
    if (text != NULL && copy == NULL) {
        return false;
    }
    t->cells[t->cell_count++] = copy;
    return true;
}

size_t table_rows(const struct table *t)
{
    return t->column_count == 0 ? 0 : t->cell_count / t->column_count;
}

size_t table_columns(const struct table *t)
{
    return t->column_count;
}

const struct column *table_column(const struct table *t, size_t column)
{
    return &t->columns[column];
}

const char *table_cell(const struct table *t, size_t row, size_t column)
{
    return t->cells[row * t->column_count + column];
}

const char *table_value(const struct table *t, size_t row, const char *name)
{
    for (size_t i = 0; i < t->column_count; i++) {
        if (strcmp(t->columns[i].name, name) == 0) {
            return table_cell(t, row, i);
        }
    }
    return NULL;
}

bool column_is_for_people(const struct column *column)
{
    return column->show != SHOW_PROGRAMS;
}

bool column_is_for_programs(const struct column *column)
{
    return column->show != SHOW_PEOPLE && column->show != SHOW_AGE_PEOPLE;
}

void table_hide(struct table *t, const char *name)
{
    for (size_t i = 0; i < t->column_count; i++) {
        if (strcmp(t->columns[i].name, name) == 0) {
            t->columns[i].show = SHOW_PROGRAMS;
        }
    }
}

void table_cut(struct table *t, size_t rows)
{
    size_t keep = rows * t->column_count;
    while (t->cell_count > keep) {
        free(t->cells[--t->cell_count]);
    }
}
