/* The dispatch message: "job N is waiting". Pure codec, no I/O, no clock, no randomness.
 *
 * Kafka only ever carries a hint (invariant I5): a worker that gets one claims the job by its id
 * and reads everything else from PostgreSQL, so all fields but job_id are for routing and for
 * people. CloudEvents 1.0 in binary mode: attributes are headers (ce_*), the value is a small JSON
 * object. 64-bit numbers are written as strings, since many JSON readers keep 53 bits only.
 *
 *   {"v":1,"job_id":"…","dispatch_number":1,"schedule":"sales-daily","occurrence_key":"2030-04-12",
 *    "scheduled_for":"2030-04-12T06:00:00Z","scope":"main","generation":"4294967299","queue":"default"}
 *
 * Version: "v" is the major version. A reader ignores fields it does not know and refuses a major
 * version it does not know. */
#ifndef RS_MESSAGE_H
#define RS_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "ident.h"
#include "status.h"

#define MESSAGE_VERSION          1
#define MESSAGE_TYPE             "report.job.dispatch.v1"
#define MESSAGE_VALUE_MAX        1024  /* bytes we write, with NUL; a full one has about 700 */
#define MESSAGE_READ_MAX         16384 /* bytes we are willing to parse */
#define MESSAGE_HEADERS          8     /* headers we write */
#define MESSAGE_HEADER_VALUE_MAX 160
#define MESSAGE_TRACEPARENT_MAX  56 /* "00-<32 hex>-<16 hex>-01" and NUL */

struct message {
    char job_id[UUID_TEXT_MAX]; /* lower case */
    int32_t dispatch_number;    /* 1 or more: how often the job was put into the outbox */
    char schedule[NAME_MAX_BYTES];
    char occurrence_key[KEY_MAX_BYTES];
    utc_us scheduled_for;
    char scope[NAME_MAX_BYTES];
    int64_t generation; /* of the leader that wrote the outbox row */
    char queue[NAME_MAX_BYTES];
};

/* One header of a message, as written or as read. Borrowed text, not NUL-terminated when read. */
struct message_header {
    const char *name; /* NUL-terminated */
    const char *value;
    size_t size;
};

/* An encoded message; holds its own text. The key of the Kafka message is the job id. */
struct message_text {
    char value[MESSAGE_VALUE_MAX];
    size_t value_size; /* without NUL */
    struct message_header headers[MESSAGE_HEADERS];
    size_t header_count;
    char header_values[MESSAGE_HEADERS][MESSAGE_HEADER_VALUE_MAX]; /* what headers[] points to */
};

/* Encode in place; ret_text->headers points into *ret_text, so do not copy the struct.
 * `id` is the outbox id (ce_id "<scope>/<id>": the same message sent twice keeps it), `made_at`
 * when the outbox row was written (ce_time).
 * Returns: OK; INVALID (a field is empty or malformed: the text names it). Thread: any. */
MUST_USE enum status message_encode(const struct message *m, int64_t id, utc_us made_at,
                                    struct message_text *ret_text, struct error *err);

/* Read a message. Strict: size, JSON with duplicate names refused, each field's type and shape.
 * Unknown fields are ignored. `headers` may be NULL with count 0; when there is a ce_type it must
 * be a dispatch of a known major version.
 * Returns: OK; INVALID (poison: count it, store its offset, go on; the text says what is wrong).
 * Thread: any. */
MUST_USE enum status message_decode(const void *value, size_t size,
                                    const struct message_header *headers, size_t header_count,
                                    struct message *ret_message, struct error *err);

/* W3C traceparent of a dispatch. The trace id is the job id, whose last seven bytes are random (as
 * the specification asks), so that the pull path and retries find the same trace without the
 * message; the span id differs with the dispatch number. */
void message_traceparent(const char *job_id, int32_t dispatch_number,
                         char ret_text[MESSAGE_TRACEPARENT_MAX]);

#endif
