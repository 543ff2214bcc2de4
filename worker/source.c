#include "source.h"

#include <string.h>

bool source_failure_is_retryable(enum status s, const char *sqlstate)
{
    static const char *const hopeless[] = {"0A", "21", "22", "23", "25", "2F",
                                           "34", "3B", "3F", "42", "44"};
    if (sqlstate[0] == '\0') {
        return s != STATUS_INVALID && s != STATUS_NOT_FOUND;
    }
    for (size_t i = 0; i < sizeof hopeless / sizeof hopeless[0]; i++) {
        if (strncmp(sqlstate, hopeless[i], 2) == 0) {
            return false;
        }
    }
    return true;
}
