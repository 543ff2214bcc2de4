/* Which database a process belongs to. */
#include "store_pg.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t identity_mutex = PTHREAD_MUTEX_INITIALIZER; /* protects all identities */

static enum status identity_compare(struct store_identity *known,
                                    const struct store_identity *found, struct error *err)
{
    enum status s = STATUS_OK;
    (void)pthread_mutex_lock(&identity_mutex);
    if (known->installation[0] == '\0') {
        *known = *found;
    } else if (strcmp(known->installation, found->installation) != 0) {
        s = error_set(err, STATUS_INVALID,
                      "the database now holds installation %s, not %s as when this process "
                      "started; if that is meant, restart it",
                      found->installation, known->installation);
    } else if (strcmp(known->system, found->system) != 0) {
        s = error_set(err, STATUS_INVALID,
                      "the server is another cluster now (system identifier %s, not %s): a copy? "
                      "If it is meant to replace the old one, restart this process",
                      found->system, known->system);
    }
    (void)pthread_mutex_unlock(&identity_mutex);
    return s;
}

enum status store_pg_identify(struct store *store, struct store_identity *known, instant deadline,
                              struct error *err)
{
    PGresult *r = NULL;
    enum status s = store_pg_query(store,
                                   "SELECT c.system_identifier, i.id FROM pg_control_system() c, "
                                   "reports.installation i",
                                   0, NULL, deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    struct store_identity found = {.system = ""};
    if (PQntuples(r) == 1) {
        store_pg_text(r, 0, 0, found.system, sizeof found.system);
        store_pg_text(r, 0, 1, found.installation, sizeof found.installation);
    } else {
        s = error_set(err, STATUS_CORRUPT, "table reports.installation does not hold one row");
    }
    PQclear(r);
    return s == STATUS_OK ? identity_compare(known, &found, err) : s;
}
