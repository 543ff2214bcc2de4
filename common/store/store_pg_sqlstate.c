/* PostgreSQL adapter of store.h: what an SQLSTATE means for the caller. */
#include <string.h>

#include "store_pg.h"

static bool state_is(const char *state, const char *prefix)
{
    return strncmp(state, prefix, strlen(prefix)) == 0;
}

enum status store_pg_sqlstate_status(const char *state)
{
    if (strcmp(state, "RS001") == 0) {
        return STATUS_CORRUPT;
    }
    if (strcmp(state, "57014") == 0) {
        return STATUS_TIMEOUT;
    }
    if (state_is(state, "08") || state_is(state, "57P") || state_is(state, "53") ||
        strcmp(state, "40001") == 0 || strcmp(state, "40P01") == 0 || strcmp(state, "55P03") == 0 ||
        strcmp(state, "25006") == 0) {
        return STATUS_AGAIN; /* 25006: read-only, the server has become a standby */
    }
    return STATUS_INVALID;
}

bool store_blames_a_row(const struct error *err)
{
    return state_is(err->code, "22") || state_is(err->code, "23") || state_is(err->code, "P0");
}

bool store_is_a_wait(const struct error *err)
{
    static const char *const codes[] = {"57014", "55P03", "40001", "40P01"};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (strcmp(err->code, codes[i]) == 0) {
            return true;
        }
    }
    return false;
}
