#include "store_fence.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "store_pg.h"

#define INT_TEXT_MAX 24

struct numbers {
    char incarnation[INT_TEXT_MAX], generation[INT_TEXT_MAX];
};

static const char *or_empty(const char *text)
{
    return text == NULL ? "" : text;
}

static struct numbers numbers_of(const struct authority *a)
{
    struct numbers n;
    (void)snprintf(n.incarnation, sizeof n.incarnation, "%" PRId64, a->incarnation);
    (void)snprintf(n.generation, sizeof n.generation, "%" PRId64, a->generation);
    return n;
}

/* Run a function that answers one row. Owns: *ret_result, PQclear by the caller, only when OK. */
static enum status call(struct store *store, const char *sql, const char *const *values,
                        instant deadline, PGresult **ret_result, struct error *err)
{
    int count = 0;
    while (values[count] != NULL) {
        count++;
    }
    PGresult *r = NULL;
    enum status s = store_pg_query(store, sql, count, values, deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    int rows = PQntuples(r);
    if (rows != 1) {
        PQclear(r);
        return error_set(err, STATUS_CORRUPT,
                         "a function of schema reports answered %d rows, not one", rows);
    }
    *ret_result = r;
    return STATUS_OK;
}

/* Run a function that answers one word: `good` or "fenced". */
static enum status call_guarded(struct store *store, const char *sql, const char *const *values,
                                const char *good, instant deadline, struct error *err)
{
    PGresult *r = NULL;
    enum status s = call(store, sql, values, deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    char word[32];
    store_pg_text(r, 0, 0, word, sizeof word);
    PQclear(r);
    if (strcmp(word, good) == 0) {
        return STATUS_OK;
    }
    if (strcmp(word, "fenced") == 0) {
        return error_set(err, STATUS_FENCED, "another generation holds scope \"%s\"", values[0]);
    }
    if (strcmp(word, "moved") == 0) {
        return error_set(err, STATUS_CONFLICT,
                         "the server is not the one that scope \"%s\" was established on",
                         values[0]);
    }
    return error_set(err, STATUS_CORRUPT, "the database answered \"%s\" where \"%s\" was expected",
                     word, good);
}

enum status fence_meet(struct store *store, const char *ensemble, const char *member,
                       instant deadline, enum fence_ensemble *ret_meeting, int64_t *ret_incarnation,
                       struct error *err)
{
    const char *values[] = {ensemble, member, NULL};
    PGresult *r = NULL;
    enum status s =
        call(store, "SELECT verdict, incarnation FROM reports.ensemble_meet($1::text, $2::text)",
             values, deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    char word[32];
    store_pg_text(r, 0, 0, word, sizeof word);
    int64_t incarnation = store_pg_int(r, 0, 1);
    PQclear(r);
    bool retired = strcmp(word, "retired") == 0;
    if (retired || strcmp(word, "unknown") == 0) {
        *ret_meeting = retired ? FENCE_ENSEMBLE_RETIRED : FENCE_ENSEMBLE_UNKNOWN;
        return STATUS_OK;
    }
    bool adopted = strcmp(word, "adopted") == 0;
    if (!adopted && strcmp(word, "known") != 0) {
        return error_set(err, STATUS_CORRUPT, "ensemble_meet answered \"%s\"", word);
    }
    *ret_meeting = adopted ? FENCE_ENSEMBLE_ADOPTED : FENCE_ENSEMBLE_KNOWN;
    *ret_incarnation = incarnation;
    return STATUS_OK;
}

enum status fence_root_refused(struct store *store, const struct fence_root *root, instant deadline,
                               struct error *err)
{
    const char *values[] = {root->ensemble, root->member, root->owner, NULL};
    PGresult *r = NULL;
    enum status s = call(store, "SELECT reports.root_refused($1::text, $2::text, $3::text)", values,
                         deadline, &r, err);
    if (s == STATUS_OK) {
        PQclear(r);
    }
    return s;
}

enum status fence_read(struct store *store, const char *scope, instant deadline,
                       struct fence_row *ret_row, struct error *err)
{
    const char *values[] = {scope, NULL};
    PGresult *r = NULL;
    enum status s = call(store,
                         "SELECT incarnation, generation, released, held, hold FROM "
                         "reports.fence_read($1::text)",
                         values, deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    *ret_row = (struct fence_row){.incarnation = store_pg_int(r, 0, 0),
                                  .generation = store_pg_int(r, 0, 1),
                                  .released = store_pg_bool(r, 0, 2),
                                  .held = store_pg_bool(r, 0, 3)};
    store_pg_text(r, 0, 4, ret_row->hold, sizeof ret_row->hold);
    text_trim(ret_row->hold);
    PQclear(r);
    return STATUS_OK;
}

enum status fence_establish(struct store *store, const struct authority *a,
                            const struct fence_member *member, instant deadline, struct error *err)
{
    struct numbers n = numbers_of(a);
    const char *values[] = {
        a->scope,     n.incarnation,         n.generation,           a->owner,
        member->name, or_empty(member->url), or_empty(member->mark), or_empty(member->acknowledged),
        NULL};
    PGresult *r = NULL;
    enum status s =
        call(store,
             "SELECT verdict, stored_incarnation, stored_generation, stored_member FROM "
             "reports.establish($1::text, $2::bigint, $3::bigint, $4::uuid, $5::text, "
             "$6::text, ARRAY[nullif($7, '')::uuid, nullif($8, '')::uuid])",
             values, deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    char word[32];
    store_pg_text(r, 0, 0, word, sizeof word);
    struct fence_row stored = {.incarnation = store_pg_int(r, 0, 1),
                               .generation = store_pg_int(r, 0, 2)};
    char holder[254];
    store_pg_text(r, 0, 3, holder, sizeof holder);
    PQclear(r);
    if (strcmp(word, "established") == 0) {
        return STATUS_OK;
    }
    if (strcmp(word, "superseded") == 0) {
        return error_set(err, STATUS_FENCED,
                         "scope \"%s\" is held by member %s, generation %" PRId64
                         " of incarnation %" PRId64 ", not below our %" PRId64 " of %" PRId64,
                         a->scope, holder, stored.generation, stored.incarnation, a->generation,
                         a->incarnation);
    }
    if (strcmp(word, "held") == 0) {
        return error_set(err, STATUS_HELD, "a hold stands on scope \"%s\" (reportctl holds)",
                         a->scope);
    }
    return error_set(err, STATUS_CORRUPT, "establish answered \"%s\"", word);
}

bool fence_is_busy(const struct error *err)
{
    return strcmp(err->code, "55P03") == 0; /* lock_not_available */
}

enum status fence_terminate(struct store *store, const struct authority *a, instant deadline,
                            int64_t *ret_ended, struct error *err)
{
    struct numbers n = numbers_of(a);
    const char *values[] = {a->scope, n.incarnation, n.generation, NULL};
    PGresult *r = NULL;
    enum status s =
        call(store, "SELECT reports.terminate_backends($1::text, $2::bigint, $3::bigint)", values,
             deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    *ret_ended = store_pg_int(r, 0, 0);
    PQclear(r);
    return STATUS_OK;
}

enum status fence_register(struct store *store, const struct authority *a, const char *acknowledged,
                           instant deadline, struct error *err)
{
    struct numbers n = numbers_of(a);
    const char *values[] = {a->scope, n.incarnation,          n.generation,
                            a->owner, or_empty(acknowledged), NULL};
    return call_guarded(store,
                        "SELECT reports.register_backend($1::text, $2::bigint, $3::bigint, "
                        "$4::uuid, 'scope', nullif($5, '')::uuid)",
                        values, "ok", deadline, err);
}

enum status fence_prove_regressed(struct store *store, const struct authority *a,
                                  const struct fence_proof *proof, instant deadline,
                                  struct error *err)
{
    struct numbers n = numbers_of(a);
    char read[INT_TEXT_MAX];
    (void)snprintf(read, sizeof read, "%" PRId64, proof->read);
    const char *values[] = {a->scope, n.incarnation, n.generation, read, proof->member, NULL};
    PGresult *r = NULL;
    enum status s = call(store,
                         "SELECT reports.prove_regressed($1::text, $2::bigint, $3::bigint, "
                         "$4::bigint, $5::text)",
                         values, deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    bool proved = store_pg_bool(r, 0, 0);
    PQclear(r);
    return proved ? STATUS_OK
                  : error_set(err, STATUS_CONFLICT, "the fence row does not bear the proof out");
}

enum status fence_activated(struct store *store, const struct authority *a, int64_t prepared_ms,
                            instant deadline, struct error *err)
{
    struct numbers n = numbers_of(a);
    char ms[INT_TEXT_MAX];
    (void)snprintf(ms, sizeof ms, "%" PRId64, prepared_ms);
    const char *values[] = {a->scope, n.incarnation, n.generation, a->owner, ms, NULL};
    return call_guarded(store,
                        "SELECT reports.activated($1::text, $2::bigint, $3::bigint, $4::uuid, "
                        "$5::bigint)",
                        values, "ok", deadline, err);
}

enum status fence_release(struct store *store, const struct authority *a, const char *reason,
                          instant deadline, struct error *err)
{
    struct numbers n = numbers_of(a);
    const char *values[] = {a->scope, n.incarnation, n.generation, a->owner, reason, NULL};
    return call_guarded(store,
                        "SELECT reports.release($1::text, $2::bigint, $3::bigint, $4::uuid, "
                        "$5::text)",
                        values, "released", deadline, err);
}

enum status fence_note(struct store *store, const struct authority *a,
                       const struct fence_note *note, instant deadline, struct error *err)
{
    struct numbers n = numbers_of(a);
    const char *values[] = {a->scope,    n.incarnation, n.generation, note->member,
                            note->event, note->reason,  NULL};
    PGresult *r = NULL;
    enum status s = call(store,
                         "SELECT reports.note_leadership($1::text, $2::bigint, $3::bigint, "
                         "$4::text, $5::text, $6::text)",
                         values, deadline, &r, err);
    if (s == STATUS_OK) {
        PQclear(r);
    }
    return s;
}
