/* What an attempt came to, as it is reported. A value; any thread. */
#ifndef RS_OUTCOME_H
#define RS_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

#include "artifact.h"
#include "status.h"

#define OUTCOME_ERROR_MAX 2001 /* bytes with NUL; the column keeps 2 000 characters */

enum outcome_kind {
    OUTCOME_SUCCEEDED,
    OUTCOME_FAILED,
    OUTCOME_TIMEOUT, /* ran longer than its schedule allows; tried again */
    OUTCOME_CANCELLED,
    OUTCOME_HANDED_BACK, /* the worker stops; does not count as an attempt */
};

struct outcome {
    enum outcome_kind kind;
    bool retryable;                /* FAILED, TIMEOUT */
    char error[OUTCOME_ERROR_MAX]; /* valid UTF-8; "" when there is nothing to say */
    bool has_exit_code;
    int exit_code; /* exit status, or 128 + signal */
    bool has_artifact;
    struct artifact_record artifact;
    int64_t rows; /* -1: not counted */
};

/* The word of the database for it. */
const char *outcome_name(enum outcome_kind kind);

/* Fill in a failure; the text is cleaned and cut. */
void outcome_fail(struct outcome *o, enum outcome_kind kind, bool retryable, const char *text);

#endif
