/* For tests that read the golden cases: rows of CSV, and a command run into memory. */
#ifndef RS_FIXTURE_CSV_H
#define RS_FIXTURE_CSV_H

#include <stdbool.h>
#include <stdio.h>

#define CSV_LINE_MAX    4096
#define CSV_COLUMNS_MAX 16

struct csv_row {
    char text[CSV_LINE_MAX]; /* the columns, each with its NUL */
    char *columns[CSV_COLUMNS_MAX];
    int count;
};

/* tests/cases/NAME; fails the test when it is missing. */
FILE *fixture_cases_open(const char *name);

/* One line; quoted columns may hold commas and doubled quotes, none holds a line end. False: the
 * end of the file. */
bool fixture_csv_read(FILE *f, struct csv_row *ret_row);

/* Exactly one line, with its line end. */
bool fixture_is_one_line(const char *text);

#endif
