/* The JSON of requests: what a client asks, and what it is told. No I/O. */
#ifndef RS_HTTP_WISH_H
#define RS_HTTP_WISH_H

#include "http.h"
#include "store_request.h"

#define WISH_TIMEOUT_S     60    /* when the client names none */
#define WISH_TIMEOUT_MAX_S 86400 /* as reports.ask has it */

/* {"id": uuid, "kind": ..., "subject": ..., "argument": text or null, "timeout_s": number}; a pause
 * may have "until": instant; a backfill has "from" and "to", and perhaps "beside": true and
 * "dry_run": true, or "cancel": uuid, and no argument.
 * Returns: OK; INVALID (the text names the member and the remedy). */
MUST_USE enum status wish_parse(const char *body, size_t size, struct request_wish *ret_wish,
                                struct error *err);

/* {"id", "state", "answer"}: 200 when it is done, 409 when it was refused or expired, 202 with
 * Location while it is pending. */
void wish_respond(struct http_response *response, const struct request_standing *answer);

/* The whole request, with 200 whatever its state. */
void wish_respond_record(struct http_response *response, const struct request_record *record);

#endif
