/* A replica in the test's own process: coordination and one scope "main", on real services. Needs
 * RS_ZK and RS_KAFKA (`dev/stack env`). Failures are the test's failures. */
#ifndef RS_FIXTURE_REPLICA_H
#define RS_FIXTURE_REPLICA_H

#include "canceller.h"
#include "fixture_database.h"
#include "scope.h"

#define SOON_MS 20000

struct replica {
    bool running;
    struct inbox *urgent;
    struct coord *coord;
    struct scope *scope;
    struct canceller *canceller;
};

/* Where all are, unless told otherwise. Borrowed. */
void replica_places(const struct test_database *database, const char *root);

struct places {
    const char *root, *zookeeper, *database; /* NULL: the usual one */
    /* 0: the usual ones, with which no leader goes because the machine is slow. */
    int64_t statement_ms, unhealthy_ms, session_ms, margin_ms;
};

void replica_start(struct replica *r, const char *name, const struct places *p);
void replica_stop(struct replica *r);

/* Waits; false, with a message, at the limit. */
bool in_state(struct replica *r, enum lifecycle_state state, int64_t limit_ms);
/* ACTIVE under another generation than `old`. */
bool leads_anew(struct replica *r, int64_t old, int64_t limit_ms);
int64_t generation_of(struct replica *r);

#endif
