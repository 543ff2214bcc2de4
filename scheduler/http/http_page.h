/* The parts of the page for people (http_page*.c only): cells, durations, sections. Pure. */
#ifndef RS_HTTP_PAGE_H
#define RS_HTTP_PAGE_H

#include <stdio.h>

#include "http_view.h"

#define PAGE_DUE_LAG_S    30 /* as reports.v_problem has it */
#define PAGE_OUTBOX_OLD_S 60 /* the same */

/* Text that is not ours: a server's error text, a user's scope. */
void page_escaped(FILE *to, const char *text);

/* A cell of such text; `label` is its heading, which a narrow screen shows beside it. `class` may
 * be "". */
void page_cell(FILE *to, const char *class, const char *label, const char *text);

/* "45 s", "2 min 5 s", "3 h", "1 d 4 h". */
void page_duration(FILE *to, int64_t ms);

/* Who leads a scope by the database; NULL: not known, or there is no such scope. */
const struct request_leader *page_leader(const struct view *view, const char *scope);

/* First of all, what is wrong, in one line each; or that nothing is known to be. */
void page_verdict(FILE *to, const struct view *view);

/* What the database tells of each scope. */
void page_facts(FILE *to, const struct view *view);

#endif
