#include "moved.h"

#include <string.h>

#include "log.h"
#include "store_claim.h"

#define ASK_MS       5000 /* a leader that is there looks within a second or two: no news */
#define STATEMENT_MS 3000

void moved_tell(struct moved *m, struct store *store)
{
    char scopes[sizeof m->scopes] = "";
    instant now = clock_now();
    if (m->ask_at.ns == 0) {
        m->ask_at = instant_add_ms(now, ASK_MS);
    }
    if (instant_before(now, m->ask_at)) {
        return;
    }
    m->ask_at = instant_add_ms(now, ASK_MS);
    if (store_moved_scopes(store, instant_add_ms(now, STATEMENT_MS), scopes, sizeof scopes, NULL) !=
            STATUS_OK ||
        strcmp(scopes, m->scopes) == 0) {
        return;
    }
    memcpy(m->scopes, scopes, sizeof m->scopes);
    if (scopes[0] != '\0') {
        log_event(LOG_LEVEL_WARN,
                  "nothing is claimed: no leader has looked at this PostgreSQL server since it "
                  "started; a copy of the database stays so",
                  "scopes=%s", log_quote(scopes).text);
    } else {
        log_event(LOG_LEVEL_INFO, "a leader has looked at this PostgreSQL server, claims go on",
                  NULL);
    }
}
