/* A claimed job: all that is needed to run one attempt, as the claim returned it. A value that is
 * never changed after the claim; any thread may read it. */
#ifndef RS_JOB_H
#define RS_JOB_H

#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "ident.h"
#include "status.h"

#define JOB_TIME_MAX   48 /* an RFC 3339 instant with NUL */
#define JOB_DATE_MAX   16
#define JOB_WORD_MAX   17 /* kind, format, cause with NUL */
#define PARAMETERS_MAX 1000

enum parameter_type {
    PARAMETER_TEXT,
    PARAMETER_NUMBER,
    PARAMETER_BOOLEAN,
    PARAMETER_OTHER, /* null, array, object: cannot stand in a query */
};

/* One parameter of the report or schedule; numbers keep the digits that the user wrote. */
struct parameter {
    char *name;
    enum parameter_type type;
    char *text;
};

struct job {
    char id[UUID_TEXT_MAX];
    char token[UUID_TEXT_MAX];
    int64_t attempt;
    int64_t revision;
    char scope[NAME_MAX_BYTES];
    char schedule[NAME_MAX_BYTES];
    char occurrence_key[KEY_MAX_BYTES];
    char scheduled_for[JOB_TIME_MAX];
    char business_date[JOB_DATE_MAX]; /* "" when the occurrence has none; so the windows */
    char window_start[JOB_TIME_MAX];
    char window_end[JOB_TIME_MAX];
    char cause[JOB_WORD_MAX];
    int64_t timeout_ms;
    int64_t late_us, waited_us; /* at the claim, by the database: since scheduled_for, run_after */
    instant received_at;
    char report[NAME_MAX_BYTES];
    char kind[JOB_WORD_MAX]; /* "" when the report row is gone */
    char data_source[NAME_MAX_BYTES];
    char format[JOB_WORD_MAX];
    char program[NAME_MAX_BYTES];
    char *query;           /* NULL unless kind is sql */
    char *parameters_json; /* the merged object as PostgreSQL prints it */
    struct parameter *parameters;
    size_t parameter_count;
    char problem[200]; /* why it cannot be run at all; "" as a rule */
};

/* The database knows a claim by its job and token. */
struct claim_pair {
    char job_id[UUID_TEXT_MAX];
    char token[UUID_TEXT_MAX];
    int64_t attempt;
};

/* NULL when out of memory. Owns: job_free (NULL is fine). */
struct job *job_new(void);
void job_free(struct job *job);

/* Read `[["name", "type", "text"], ...]` (what the claim statement makes of jsonb, so that a number
 * never passes through a double) into job->parameters.
 * Returns: OK; INVALID (not of that form, or more than PARAMETERS_MAX). In job_json.c. */
MUST_USE enum status job_parameters_parse(struct job *job, const char *text, struct error *err);

/* The context a program reads on stdin: one JSON object. Owns: free. NULL when out of memory.
 * In job_json.c. */
char *job_context(const struct job *job, const char *installation);

/* What a name stands for in a query. `text` is borrowed from the job or from `room`; NULL means SQL
 * NULL (a window that the occurrence does not have). */
struct parameter_value {
    const char *text;
    char room[24];
};

/* Look a parameter up: built-ins first, then the job's own.
 * Returns: OK; NOT_FOUND (the text names it and what there is); INVALID (of a type that cannot
 * stand in a query; the text names it). Thread: any. */
MUST_USE enum status job_parameter(const struct job *job, const char *name, size_t size,
                                   struct parameter_value *ret_value, struct error *err);

/* Are all own parameters usable in a query? INVALID names the first that is not: of another type
 * than text, number or boolean, or named like a built-in. */
MUST_USE enum status job_parameters_check(const struct job *job, struct error *err);

/* Names and values of the built-ins; false behind the last. A value of NULL: not known here. */
bool job_builtin(const struct job *job, size_t index, const char **ret_name,
                 struct parameter_value *ret_value);

#endif
