/* Inside of the Kafka adapter: included by dispatch_kafka*.c files only. */
#ifndef RS_DISPATCH_KAFKA_H
#define RS_DISPATCH_KAFKA_H

#include <librdkafka/rdkafka.h>

#include "dispatch.h"

struct kafka_setting {
    const char *name;
    const char *value;
};

/* A configuration with what every client needs, the given settings and the user's properties on
 * top. `settings` ends with a NULL name. Callbacks get `opaque`.
 * Owns: *ret_conf, to rd_kafka_new or rd_kafka_conf_destroy. Returns: OK; INVALID; FATAL. */
MUST_USE enum status kafka_conf_new(const struct dispatch_options *options,
                                    const struct kafka_setting *settings, void *opaque,
                                    rd_kafka_conf_t **ret_conf, struct error *err);

/* Properties whose values may stand in files only; those files, "property=/path", NULL-terminated.
 */
bool kafka_property_is_secret(const char *name);
MUST_USE enum status kafka_secrets_apply(rd_kafka_conf_t *conf, const char *const *items,
                                         struct error *err);

/* For an error callback: keep the reason when a broker and we could not agree on who the other is.
 * A request that fails of it says "transport failure" only. */
void kafka_refusal_note(char text[DISPATCH_REASON_MAX], int code, const char *reason);

/* The caller's next decision for a call that failed. */
enum status kafka_status(rd_kafka_resp_err_t code);

/* End a client within bounds: rd_kafka_destroy can hang (librdkafka 2.0.2: a vanished topic, an
 * absent coordinator), so it runs on a thread of its own. False: it hangs and is abandoned. */
bool kafka_end(rd_kafka_t *rk, instant deadline);

/* Whole milliseconds until the deadline for librdkafka's int parameters, at most 1 h. */
int kafka_remaining_ms(instant deadline);

#endif
