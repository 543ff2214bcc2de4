#include "outcome.h"

#include <string.h>

#include "text.h"

const char *outcome_name(enum outcome_kind kind)
{
    switch (kind) {
    case OUTCOME_SUCCEEDED:
        return "succeeded";
    case OUTCOME_FAILED:
        return "failed";
    case OUTCOME_TIMEOUT:
        return "timeout";
    case OUTCOME_CANCELLED:
        return "cancelled";
    case OUTCOME_HANDED_BACK:
        return "handed_back";
    }
    return "failed";
}

void outcome_fail(struct outcome *o, enum outcome_kind kind, bool retryable, const char *text)
{
    o->kind = kind;
    o->retryable = retryable;
    o->has_artifact = false;
    o->rows = -1;
    text_clean(text, strlen(text), o->error, sizeof o->error);
}
