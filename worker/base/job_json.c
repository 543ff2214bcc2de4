/* The JSON sides of a job: its parameters as the claim sends them, its context for a program. */
#include "job.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

static enum parameter_type type_of(const char *word)
{
    if (strcmp(word, "string") == 0) {
        return PARAMETER_TEXT;
    }
    if (strcmp(word, "number") == 0) {
        return PARAMETER_NUMBER;
    }
    return strcmp(word, "boolean") == 0 ? PARAMETER_BOOLEAN : PARAMETER_OTHER;
}

static bool parameter_read(const json_t *item, struct parameter *p)
{
    const char *name = json_string_value(json_array_get(item, 0));
    const char *type = json_string_value(json_array_get(item, 1));
    const json_t *text = json_array_get(item, 2);
    if (name == NULL || type == NULL || text == NULL) {
        return false;
    }
    p->name = strdup(name);
    p->type = type_of(type);
    p->text = strdup(json_is_string(text) ? json_string_value(text) : "");
    return p->name != NULL && p->text != NULL;
}

enum status job_parameters_parse(struct job *job, const char *text, struct error *err)
{
    json_error_t fault;
    json_t *list = json_loads(text, 0, &fault);
    size_t count = json_array_size(list);
    if (!json_is_array(list) || count > PARAMETERS_MAX) {
        json_decref(list);
        return error_set(err, STATUS_INVALID, "parameters cannot be read (at most %d): %s",
                         PARAMETERS_MAX, list == NULL ? fault.text : "wrong form");
    }
    enum status s = STATUS_OK;
    job->parameters = calloc(count == 0 ? 1 : count, sizeof *job->parameters);
    for (size_t i = 0; i < count && s == STATUS_OK; i++) {
        if (job->parameters == NULL ||
            !parameter_read(json_array_get(list, i), &job->parameters[i])) {
            s = error_set(err, STATUS_INVALID, "parameter %zu cannot be read", i + 1);
        }
        job->parameter_count = job->parameters == NULL ? 0 : i + 1;
    }
    json_decref(list);
    return s;
}

static json_t *text_or_null(const char *text)
{
    return text[0] == '\0' ? json_null() : json_string(text);
}

static json_t *context_object(const struct job *job, const char *installation)
{
    return json_pack("{s:s, s:s, s:I, s:s, s:s, s:s, s:I, s:s, s:s, s:o, s:o, s:o, s:s, s:s}",
                     "installation", installation, "job_id", job->id, "attempt",
                     (json_int_t)job->attempt, "scope", job->scope, "schedule", job->schedule,
                     "occurrence_key", job->occurrence_key, "revision", (json_int_t)job->revision,
                     "cause", job->cause, "scheduled_for", job->scheduled_for, "business_date",
                     text_or_null(job->business_date), "window_start",
                     text_or_null(job->window_start), "window_end", text_or_null(job->window_end),
                     "report", job->report, "format", job->format);
}

char *job_context(const struct job *job, const char *installation)
{
    json_t *object = context_object(job, installation);
    char *head = object == NULL ? NULL : json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII);
    json_decref(object);
    const char *parameters = job->parameters_json == NULL ? "{}" : job->parameters_json;
    size_t size =
        head == NULL ? 0 : strlen(head) + strlen(parameters) + sizeof ",\"parameters\":}\n";
    char *text = head == NULL ? NULL : malloc(size);
    if (text != NULL) {
        /* The object as PostgreSQL printed it: numbers keep all their digits. */
        head[strlen(head) - 1] = '\0';
        (void)snprintf(text, size, "%s,\"parameters\":%s}\n", head, parameters);
    }
    free(head);
    return text;
}
