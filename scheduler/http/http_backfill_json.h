/* A backfill that is asked for over HTTP. Which firings lie in its span only the rule says: they
 * are enumerated here, by the code that plans, as reportctl backfill does. Thread: the one of
 * http_requests.c. Blocks: until deadline, and computes for a second at most. */
#ifndef RS_HTTP_BACKFILL_JSON_H
#define RS_HTTP_BACKFILL_JSON_H

#include "http.h"
#include "store_request.h"

/* Ask, for a wish with a span, not dry_run. One whose id is known gets the first answer, whatever
 * the schedule has become. Returns: as request_ask; INVALID also for a span that is wrong;
 * NOT_FOUND (no firing, no schedule); CONFLICT. */
MUST_USE enum status http_backfill_ask(struct store *store, const struct request_wish *wish,
                                       instant deadline, struct request_standing *ret_answer,
                                       struct error *err);

/* Ask for nothing, and answer with what would become of each firing. Returns: as
 * http_backfill_ask; *response is untouched unless OK. */
MUST_USE enum status http_backfill_show(struct store *store, const struct request_wish *wish,
                                        instant deadline, struct http_response *response,
                                        struct error *err);

#endif
