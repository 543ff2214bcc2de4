/* Coming firings of a stored schedule, computed by the rules that plan them. */
#ifndef RS_FIRING_LIST_H
#define RS_FIRING_LIST_H

#include "session.h"

struct firing_list {
    struct table *table;  /* table_free; NULL unless DONE */
    struct error problem; /* text "" unless the rule cannot be computed */
    struct error nothing; /* text "" unless the table is empty for another reason: which */
};

/* Read the schedule's definition and compute its next `count` firings strictly after the database's
 * clock, within its start and end. A failure has been reported (NOT_FOUND: no such schedule now). A
 * rule that cannot be computed is none: ret->problem says why, and the table is empty. So it is
 * when nothing is to come (paused, ended, past): ret->nothing says so. */
enum exit_code firing_list_make(struct session *s, const char *schedule, int64_t count,
                                struct firing_list *ret);

#endif
