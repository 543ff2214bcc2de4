#include "source.h"

#include <string.h>

bool source_failure_is_retryable(enum status s, const char *sqlstate)
{
    static const char *const hopeless[] = {"0A", "21", "22", "23", "25", "2F",
                                           "34", "3B", "3F", "42", "44"};
    /* A nightly load drops a schema or table, makes it again and grants rights on it: for a while
     * they are not there. max_attempts bounds what a mere mistake costs. */
    static const char *const passing[] = {"3F000", "42P01", "42501"};
    if (sqlstate[0] == '\0') {
        return s != STATUS_INVALID && s != STATUS_NOT_FOUND;
    }
    for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++) {
        if (strcmp(sqlstate, passing[i]) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof hopeless / sizeof hopeless[0]; i++) {
        if (strncmp(sqlstate, hopeless[i], 2) == 0) {
            return false;
        }
    }
    return true;
}
