/* Recent rows of the ledger without reading all of it. */
#ifndef RS_OCCURRENCE_LIST_H
#define RS_OCCURRENCE_LIST_H

#include "session.h"

struct occurrence_range {
    const char *schedule;  /* NULL: all */
    const char *from, *to; /* RFC 3339, [from, to) of scheduled_for; NULL: open */
    int64_t limit;
};

/* Newest first. Owns: *ret_table, table_free; set only when DONE. A failure has been reported. */
enum exit_code occurrence_list_make(struct session *s, const struct occurrence_range *range,
                                    struct table **ret_table);

struct recent_query {
    const char *sql; /* ... AND scheduled_for >= $`from` ... ORDER BY ... DESC LIMIT ... */
    int count;
    const char **values; /* its parameters; values[from] is filled in */
    int from;
    int64_t limit; /* the statement's own LIMIT: so many rows are enough */
};

/* Run the statement over growing spans until enough rows are found; the last span is everything. */
enum exit_code recent_select(struct session *s, const struct recent_query *q,
                             struct table **ret_table);

#endif
