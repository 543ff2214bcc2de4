#include "decision_log.h"

#include <inttypes.h>

#include "log.h"

void decision_tell(const char *what, const struct authority *authority, instant at,
                   const struct lease *lease)
{
    log_event(LOG_LEVEL_DEBUG, "leader work decided",
              "scope=%s what=%s incarnation=%" PRId64 " generation=%" PRId64 " at_ns=%" PRId64
              " lease_ns=%" PRId64,
              authority->scope, what, authority->incarnation, authority->generation, at.ns,
              lease_until(lease).ns);
}
