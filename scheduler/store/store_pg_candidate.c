/* PostgreSQL adapter of store_candidate.h. */
#include "store_candidate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "store_pg.h"

#define INT_TEXT_MAX 24

static const char *state_word(enum candidate_state state)
{
    switch (state) {
    case CANDIDATE_READY:
        return "ready";
    case CANDIDATE_SUSPENDED:
        return "suspended";
    case CANDIDATE_HELD:
        return "held";
    }
    return "";
}

static enum status wish_parse(const char *word, enum candidate_wish *ret_wish, struct error *err)
{
    static const char *const words[] = {[CANDIDATE_WISH_NONE] = "none",
                                        [CANDIDATE_WISH_ASIDE] = "aside",
                                        [CANDIDATE_WISH_SUCCESSOR] = "successor",
                                        [CANDIDATE_WISH_READY] = "ready"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(word, words[i]) == 0) {
            *ret_wish = (enum candidate_wish)i;
            return STATUS_OK;
        }
    }
    return error_set(err, STATUS_CORRUPT, "reports.follow answered \"%s\"", word);
}

enum status candidate_follow(struct store *store, const struct authority *a,
                             const struct candidate_stand *stand, instant deadline,
                             enum candidate_wish *ret_wish, struct error *err)
{
    char incarnation[INT_TEXT_MAX], generation[INT_TEXT_MAX], ahead[INT_TEXT_MAX];
    (void)snprintf(incarnation, sizeof incarnation, "%" PRId64, a->incarnation);
    (void)snprintf(generation, sizeof generation, "%" PRId64, a->generation);
    (void)snprintf(ahead, sizeof ahead, "%u", stand->ahead);
    const char *values[] = {a->scope,
                            incarnation,
                            generation,
                            stand->member,
                            state_word(stand->state),
                            stand->state == CANDIDATE_HELD ? NULL : ahead,
                            stand->state == CANDIDATE_HELD ? stand->why : NULL,
                            stand->confirmed ? "true" : "false",
                            stand->url};
    PGresult *r = NULL;
    enum status s =
        store_pg_query(store,
                       "SELECT reports.follow($1::text, $2::bigint, $3::bigint, $4::text, "
                       "$5::text, $6::integer, $7::text, $8::boolean, $9::text)",
                       9, values, deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    char word[16];
    store_pg_text(r, 0, 0, word, sizeof word);
    PQclear(r);
    return wish_parse(word, ret_wish, err);
}

enum status candidate_rehearse(struct store *store, const struct authority *a, const char *member,
                               instant deadline, struct error *err)
{
    char incarnation[INT_TEXT_MAX];
    (void)snprintf(incarnation, sizeof incarnation, "%" PRId64, a->incarnation);
    const char *values[] = {incarnation, member};
    PGresult *r = NULL;
    enum status s = store_pg_query(store, "SELECT reports.rehearse($1::bigint, $2::text)", 2,
                                   values, deadline, &r, err);
    if (s == STATUS_OK) {
        PQclear(r);
    }
    return s;
}
