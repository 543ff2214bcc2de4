#include "election.h"

#include <string.h>

#include "mutant.h"

static bool comes_before(const struct candidate *a, const struct candidate *b)
{
    return MUTANT("order_by_name") ? strcmp(a->name, b->name) < 0 : a->czxid < b->czxid;
}

struct election election_judge(const struct candidate *list, size_t count, const char *own_name,
                               int64_t session)
{
    struct election e = {.verdict = ELECTION_MISSING, .own = 0, .predecessor = 0, .ahead = 0};
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i].name, own_name) == 0 && list[i].owner == session) {
            e.own = i;
            found = true;
        }
    }
    if (!found) {
        return e;
    }
    for (size_t i = 0; i < count; i++) {
        if (!comes_before(&list[i], &list[e.own])) {
            continue;
        }
        if (e.ahead == 0 || comes_before(&list[e.predecessor], &list[i])) {
            e.predecessor = i;
        }
        e.ahead++;
    }
    e.verdict = e.ahead == 0 ? ELECTION_FIRST : ELECTION_BEHIND;
    return e;
}

bool election_is_orphan(const struct candidate *c, const char *own_name, int64_t session)
{
    return c->owner == session && strcmp(c->name, own_name) != 0;
}

bool candidate_has_guid(const char *name, const char *guid)
{
    size_t n = strlen(guid);
    return n > 0 && strncmp(name, guid, n) == 0 && strncmp(name + n, "-n-", 3) == 0;
}

bool candidate_name_is_valid(const char *name)
{
    char guid[UUID_TEXT_MAX];
    size_t n = sizeof guid - 1;
    if (strlen(name) <= n + 3) {
        return false;
    }
    memcpy(guid, name, n);
    guid[n] = '\0';
    return uuid_is_valid(guid) && strncmp(name + n, "-n-", 3) == 0;
}

enum election_resolution election_resolve(const struct candidate *list, size_t count,
                                          const char *guid, int64_t session, size_t *ret_own)
{
    bool found = false;
    size_t own = 0;
    for (size_t i = 0; i < count; i++) {
        if (!candidate_has_guid(list[i].name, guid)) {
            continue;
        }
        if (list[i].owner != session) {
            return ELECTION_FOREIGN;
        }
        if (!found || list[i].czxid < list[own].czxid) {
            own = i;
            found = true;
        }
    }
    if (!found) {
        return ELECTION_NOT_CREATED;
    }
    *ret_own = own;
    return ELECTION_CREATED;
}
