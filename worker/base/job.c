#include "job.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct job *job_new(void)
{
    return calloc(1, sizeof(struct job));
}

void job_free(struct job *job)
{
    if (job == NULL) {
        return;
    }
    for (size_t i = 0; i < job->parameter_count; i++) {
        free(job->parameters[i].name);
        free(job->parameters[i].text);
    }
    free(job->parameters);
    free(job->query);
    free(job->parameters_json);
    free(job);
}

/* "" in the job means that the occurrence has none. */
static const char *text_or_null(const char *text)
{
    return text[0] == '\0' ? NULL : text;
}

bool job_builtin(const struct job *job, size_t index, const char **ret_name,
                 struct parameter_value *ret_value)
{
    static const char *const names[] = {"business_date", "window_start", "window_end",
                                        "scheduled_for", "schedule",     "attempt",
                                        "occurrence_key"};
    const char *const texts[] = {job->business_date, job->window_start, job->window_end,
                                 job->scheduled_for, job->schedule,     NULL,
                                 job->occurrence_key};
    if (index >= sizeof names / sizeof names[0]) {
        return false;
    }
    *ret_name = names[index];
    if (texts[index] == NULL) {
        (void)snprintf(ret_value->room, sizeof ret_value->room, "%" PRId64, job->attempt);
        ret_value->text = ret_value->room;
    } else {
        ret_value->text = text_or_null(texts[index]);
    }
    return true;
}

static bool name_equals(const char *name, const char *text, size_t size)
{
    return strlen(name) == size && memcmp(name, text, size) == 0;
}

/* A comma-separated list that ends in "..." at its bound. */
static size_t list_add(char *text, size_t size, size_t used, const char *name)
{
    int n = snprintf(text + used, size - used, "%s%s", used == 0 ? "" : ", ", name);
    if (n < 0 || (size_t)n >= size - used) {
        size_t at = used + 4 < size ? used : size - 4;
        (void)snprintf(text + at, size - at, "%s", "...");
        return size;
    }
    return used + (size_t)n;
}

/* All names there are, for the error text. */
static void names_list(const struct job *job, char *text, size_t size)
{
    size_t used = 0;
    const char *name = NULL;
    struct parameter_value ignored;
    for (size_t i = 0; used < size && job_builtin(job, i, &name, &ignored); i++) {
        used = list_add(text, size, used, name);
    }
    for (size_t i = 0; used < size && i < job->parameter_count; i++) {
        used = list_add(text, size, used, job->parameters[i].name);
    }
}

static enum status type_check(const struct parameter *p, struct error *err)
{
    if (p->type == PARAMETER_OTHER) {
        return error_set(err, STATUS_INVALID,
                         "parameter \"%s\" is null, a list or an object; in a query only text, "
                         "numbers and booleans can stand",
                         p->name);
    }
    return STATUS_OK;
}

enum status job_parameter(const struct job *job, const char *name, size_t size,
                          struct parameter_value *ret_value, struct error *err)
{
    const char *builtin = NULL;
    struct parameter_value value;
    for (size_t i = 0; job_builtin(job, i, &builtin, &value); i++) {
        if (name_equals(builtin, name, size)) {
            *ret_value = value;
            if (value.text == value.room) { /* the copy must not point into the local */
                ret_value->text = ret_value->room;
            }
            return STATUS_OK;
        }
    }
    for (size_t i = 0; i < job->parameter_count; i++) {
        const struct parameter *p = &job->parameters[i];
        if (name_equals(p->name, name, size)) {
            enum status s = type_check(p, err);
            if (s == STATUS_OK) {
                ret_value->text = p->text;
            }
            return s;
        }
    }
    char known[ERROR_TEXT_MAX / 2];
    names_list(job, known, sizeof known);
    return error_set(err, STATUS_NOT_FOUND,
                     "the query names parameter \"%.*s\", which neither the report nor the "
                     "schedule defines; there are: %s",
                     size > 63 ? 63 : (int)size, name, known);
}

enum status job_parameters_check(const struct job *job, struct error *err)
{
    for (size_t i = 0; i < job->parameter_count; i++) {
        const struct parameter *p = &job->parameters[i];
        enum status s = type_check(p, err);
        if (s != STATUS_OK) {
            return s;
        }
        const char *builtin = NULL;
        struct parameter_value ignored;
        for (size_t b = 0; job_builtin(job, b, &builtin, &ignored); b++) {
            if (strcmp(builtin, p->name) == 0) {
                return error_set(err, STATUS_INVALID,
                                 "parameter \"%s\" is built in and cannot be set; give yours "
                                 "another name",
                                 p->name);
            }
        }
    }
    return STATUS_OK;
}
