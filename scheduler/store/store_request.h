/* What the HTTP server's requests ask the database, over the store port. The functions of sql/
 * refuse what cannot be asked, and say the remedy; who carries a request out is the leader. Thread:
 * the connection's owner. Blocks: until deadline. */
#ifndef RS_STORE_REQUEST_H
#define RS_STORE_REQUEST_H

#include <stddef.h>

#include "civil.h"
#include "ident.h"
#include "key.h"
#include "store.h"

#define REQUEST_SUBJECT_MAX  (NAME_MAX_BYTES + KEY_MAX_BYTES) /* SCHEDULE:KEY, with NUL */
#define REQUEST_ARGUMENT_MAX 512
#define REQUEST_ANSWER_MAX   1024
#define REQUEST_WAITING_MAX  32 /* requests whose states are asked for at once */

/* What a client asks for. */
struct request_wish {
    char id[UUID_TEXT_MAX]; /* chosen by the client: repeating it returns the first answer */
    char kind[16];
    char subject[REQUEST_SUBJECT_MAX];
    char argument[REQUEST_ARGUMENT_MAX];
    bool has_argument;
    char until[RFC3339_TEXT_MAX]; /* of a pause: when it ends by itself; "": nobody says */
    /* A backfill that asks for firings: its bounds, which `argument` has too. */
    bool has_span;
    char from[KEY_MAX_BYTES], to[KEY_MAX_BYTES];
    bool beside, dry_run;
    int64_t timeout_s; /* after that it expires unanswered */
};

/* Who has to carry it out. */
struct request_place {
    char scope[NAME_MAX_BYTES];
    char member[254]; /* of the leader, "" when there is none */
    char url[256];    /* of the leader; "" when there is none or it told none */
};

/* Which scope a wish is about: that of the request with its id, otherwise of its subject. Who leads
 * is what view v_leader calls active: a silent leader counts as none.
 * Returns: OK; NOT_FOUND (the text names the subject and the remedy); AGAIN; TIMEOUT. */
MUST_USE enum status request_locate(struct store *store, const struct request_wish *wish,
                                    instant deadline, struct request_place *ret_place,
                                    struct error *err);

/* Who leads a scope, by the fence. */
struct request_leader {
    char scope[NAME_MAX_BYTES];
    char member[254]; /* whoever leads, or led last; "" before the first */
    int64_t incarnation, generation;
    bool leads; /* active, as view v_leader has it */
};

/* Of these scopes, at most `count`; one without a fence row is left out.
 * Returns: OK; AGAIN; TIMEOUT. */
MUST_USE enum status request_leaders(struct store *store, const char (*scopes)[NAME_MAX_BYTES],
                                     size_t count, instant deadline,
                                     struct request_leader *ret_leaders, size_t *ret_count,
                                     struct error *err);

struct request_standing {
    char id[UUID_TEXT_MAX];
    char state[16]; /* pending, done, refused, expired */
    char text[REQUEST_ANSWER_MAX];
};

/* Ask, or ask again with the same id. Returns: OK with the state so far; INVALID: refused at once,
 * err->code is the SQLSTATE; AGAIN; TIMEOUT (it may have been taken: ask again with the same id).
 */
MUST_USE enum status request_ask(struct store *store, const struct request_wish *wish,
                                 instant deadline, struct request_standing *ret_answer,
                                 struct error *err);

/* Firings of a backfill, as reports.ask_backfill takes them. */
struct request_firings {
    int32_t version;   /* of the schedule, that names them */
    const char *array; /* backfill_firings_json */
};

/* The same for a wish with a span, which brings its firings. Repeated, the first ones count.
 * Returns: as request_ask. */
MUST_USE enum status request_ask_backfill(struct store *store, const struct request_wish *wish,
                                          const struct request_firings *firings, instant deadline,
                                          struct request_standing *ret_answer, struct error *err);

/* Would reports.ask_backfill refuse firings of this version? Nothing is asked for. Returns: OK;
 * CONFLICT (the text says why, and the remedy); AGAIN; TIMEOUT. */
MUST_USE enum status request_backfill_check(struct store *store, const struct request_wish *wish,
                                            int32_t version, instant deadline, struct error *err);

/* The states of these; those that do not exist are left out.
 * Returns: OK; AGAIN; TIMEOUT. */
MUST_USE enum status request_states(struct store *store, const char (*ids)[UUID_TEXT_MAX],
                                    size_t count, instant deadline,
                                    struct request_standing ret_answers[REQUEST_WAITING_MAX],
                                    size_t *ret_count, struct error *err);

/* One request in full, as people look it up. Times as PostgreSQL prints them in UTC. */
struct request_record {
    struct request_standing answer;
    char kind[16];
    char scope[NAME_MAX_BYTES];
    char subject[REQUEST_SUBJECT_MAX];
    char argument[REQUEST_ARGUMENT_MAX];
    bool has_argument;
    char requested_at[40], answered_at[40]; /* the latter "" while pending */
    char job_id[UUID_TEXT_MAX];             /* "" when none is meant */
};

/* Returns: OK; NOT_FOUND; AGAIN; TIMEOUT. */
MUST_USE enum status request_read(struct store *store, const char *id, instant deadline,
                                  struct request_record *ret_record, struct error *err);

#endif
