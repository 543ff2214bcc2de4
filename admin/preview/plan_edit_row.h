/* The edit of a schedule's row that `reportctl plan --set COLUMN=VALUE` writes down. */
#ifndef RS_PLAN_EDIT_ROW_H
#define RS_PLAN_EDIT_ROW_H

#include "session.h"

#define EDIT_COLUMN_MAX 64

struct plan_edit_column {
    char name[EDIT_COLUMN_MAX];
    const char
        *value; /* borrowed from the command line; NULL and DEFAULT are what they are in SQL */
};

struct plan_edit_row {
    struct plan_edit_column columns[REPEATS_MAX];
    size_t count;
};

/* From the values of --set. Asks nothing. Returns: DONE; USAGE, reported. */
MUST_USE enum exit_code plan_edit_row_parse(struct invocation *in, struct plan_edit_row *ret_edit);

/* Write it to reports.schedule, in the transaction that is open. A failure has been reported: USAGE
 * with the tables' own words, NOT_FOUND. Blocks: until the session's deadline. */
MUST_USE enum exit_code plan_edit_row_write(struct session *s, const char *schedule,
                                            const struct plan_edit_row *edit);

/* The statement that makes it. Owns: free. NULL: out of memory. */
char *plan_edit_row_statement(const char *schedule, const struct plan_edit_row *edit);

#endif
