/* The order of candidates: who is first, whom to watch, what of ours is left over. Pure.
 *
 * Order is by czxid, the zxid that created the node: it is what the fence compares, and it never
 * overflows as the ten-digit suffix of a name does. Nobody is "next": after each event the list is
 * read again and judged from scratch. */
#ifndef RS_ELECTION_H
#define RS_ELECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ident.h"

#define CANDIDATE_NAME_MAX 64 /* "<guid>-n-##########" and NUL, with room for a negative suffix */
#define CANDIDATES_MAX     64 /* replicas of one scope, and nodes of dying sessions */

struct candidate {
    char name[CANDIDATE_NAME_MAX]; /* last part of the path */
    int64_t czxid;
    int64_t owner; /* ephemeralOwner: the session that made it */
};

enum election_verdict {
    ELECTION_FIRST,   /* nobody is ahead */
    ELECTION_BEHIND,  /* `predecessor` is directly ahead */
    ELECTION_MISSING, /* the own node is not in the list */
};

struct election {
    enum election_verdict verdict;
    size_t own;         /* index; valid unless MISSING */
    size_t predecessor; /* index; valid when BEHIND */
    size_t ahead;       /* how many; 0 when first */
};

/* Judge the list. `own_name` as the server returned it; `session` the own session id: a node of
 * that name owned by another session is not ours (MISSING). */
struct election election_judge(const struct candidate *list, size_t count, const char *own_name,
                               int64_t session);

/* Is this node left over from us: made by our session, and not the own one? A lost answer or a lost
 * delete leaves one; undeleted it would stand before us for as long as we live. */
bool election_is_orphan(const struct candidate *c, const char *own_name, int64_t session);

enum election_resolution {
    ELECTION_NOT_CREATED, /* the create did not happen */
    ELECTION_CREATED,     /* *ret_own is the node; later duplicates are orphans */
    ELECTION_FOREIGN,     /* a node with our GUID belongs to another session: never adopt it */
};

/* After an ambiguous create, sync and list in the same session: did it happen? The node is found by
 * the GUID of the attempt; the lowest czxid is taken. */
enum election_resolution election_resolve(const struct candidate *list, size_t count,
                                          const char *guid, int64_t session, size_t *ret_own);

/* Has `name` the form "<guid>-n-<suffix>"? Anything else below the parent is not a candidate. */
bool candidate_name_is_valid(const char *name);

/* Does `name` carry the GUID of an attempt? */
bool candidate_has_guid(const char *name, const char *guid);

#endif
