#include "http_wish.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

static bool is_one_of(const char *word, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (strcmp(word, *words) == 0) {
            return true;
        }
    }
    return false;
}

/* Copy a text member. `must`: it may be neither absent nor null. */
static enum status text_take(json_t *object, const char *key, bool must, char *ret_text,
                             size_t size, struct error *err)
{
    json_t *value = json_object_get(object, key);
    if (!must && (value == NULL || json_is_null(value))) {
        ret_text[0] = '\0';
        return STATUS_OK;
    }
    if (!json_is_string(value)) {
        return error_set(err, STATUS_INVALID, "%s: must be a text", key);
    }
    size_t n = json_string_length(value);
    if (n == 0 || n >= size) {
        return error_set(err, STATUS_INVALID, "%s: must have 1 to %zu bytes", key, size - 1);
    }
    memcpy(ret_text, json_string_value(value), n + 1); /* without NUL inside: the parser's rule */
    return STATUS_OK;
}

static enum status kind_check(const char *kind, struct error *err)
{
    static const char *const known[] = {"trigger", "pause",   "resume",        "cancel",
                                        "retry",   "handoff", "breaker_close", NULL};
    static const char *const later[] = {"backfill", NULL};
    if (is_one_of(kind, known)) {
        return STATUS_OK;
    }
    if (is_one_of(kind, later)) {
        return error_set(err, STATUS_NOT_FOUND,
                         "kind: \"%s\" is not built yet; trigger, pause, resume, cancel, retry, "
                         "breaker_close and handoff are",
                         kind);
    }
    return error_set(err, STATUS_INVALID,
                     "kind: there is no such kind; write trigger, pause, resume, cancel, retry, "
                     "breaker_close or "
                     "handoff");
}

static enum status timeout_take(json_t *object, int64_t *ret_timeout_s, struct error *err)
{
    json_t *value = json_object_get(object, "timeout_s");
    if (value == NULL) {
        *ret_timeout_s = WISH_TIMEOUT_S;
        return STATUS_OK;
    }
    if (!json_is_integer(value) || json_integer_value(value) < 1 ||
        json_integer_value(value) > WISH_TIMEOUT_MAX_S) {
        return error_set(err, STATUS_INVALID,
                         "timeout_s: must be a whole number of seconds from 1 to %d",
                         WISH_TIMEOUT_MAX_S);
    }
    *ret_timeout_s = json_integer_value(value);
    return STATUS_OK;
}

static enum status members_check(json_t *object, struct error *err)
{
    static const char *const members[] = {"id", "kind", "subject", "argument", "timeout_s", NULL};
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(object, key, value)
    {
        if (!is_one_of(key, members)) {
            return error_set(err, STATUS_INVALID,
                             "there is a member that is not known; write id, kind, subject, "
                             "argument and timeout_s only");
        }
    }
    return STATUS_OK;
}

static enum status wish_take(json_t *object, struct request_wish *w, struct error *err)
{
    enum status s = members_check(object, err);
    if (s == STATUS_OK) {
        s = text_take(object, "id", true, w->id, sizeof w->id, err);
    }
    if (s == STATUS_OK && !uuid_is_valid(w->id)) {
        s = error_set(err, STATUS_INVALID,
                      "id: must be a UUID that you choose; repeating it is how a request is sent "
                      "again safely");
    }
    if (s == STATUS_OK) {
        s = text_take(object, "kind", true, w->kind, sizeof w->kind, err);
    }
    if (s == STATUS_OK) {
        s = kind_check(w->kind, err);
    }
    if (s == STATUS_OK) {
        s = text_take(object, "subject", true, w->subject, sizeof w->subject, err);
    }
    if (s == STATUS_OK) {
        s = text_take(object, "argument", false, w->argument, sizeof w->argument, err);
        w->has_argument = w->argument[0] != '\0';
    }
    return s == STATUS_OK ? timeout_take(object, &w->timeout_s, err) : s;
}

enum status wish_parse(const char *body, size_t size, struct request_wish *ret_wish,
                       struct error *err)
{
    json_error_t trouble;
    struct request_wish wish = {.id = ""};
    json_t *object = json_loadb(body, size, JSON_REJECT_DUPLICATES, &trouble);
    if (object == NULL) {
        return error_set(err, STATUS_INVALID, "line %d, column %d: the body is not JSON: %s",
                         trouble.line, trouble.column, trouble.text);
    }
    enum status s = json_is_object(object)
                        ? wish_take(object, &wish, err)
                        : error_set(err, STATUS_INVALID, "the body must be a JSON object");
    json_decref(object);
    if (s == STATUS_OK) {
        *ret_wish = wish;
    }
    return s;
}

/* Answers may have been cut at a bound, in the middle of a letter. */
static json_t *text_json(const char *text)
{
    json_t *value = text[0] == '\0' ? json_null() : json_string(text);
    return value == NULL ? json_string("(cannot be shown)") : value;
}

void wish_respond(struct http_response *response, const struct request_answer *answer)
{
    bool pending = strcmp(answer->state, "pending") == 0;
    bool done = strcmp(answer->state, "done") == 0;
    json_t *object = json_pack("{s:s, s:s, s:o}", "id", answer->id, "state", answer->state,
                               "answer", text_json(answer->text));
    http_respond_json(response, pending ? 202 : done ? 200 : 409, json_dumps(object, 0));
    json_decref(object);
    if (pending) {
        (void)snprintf(response->location, sizeof response->location, "/requests/%s", answer->id);
    }
}

void wish_respond_record(struct http_response *response, const struct request_record *record)
{
    const struct request_record *q = record;
    json_t *object = json_pack(
        "{s:s, s:s, s:o, s:s, s:s, s:o, s:o, s:s, s:o, s:o}", "id", q->answer.id, "state",
        q->answer.state, "answer", text_json(q->answer.text), "kind", q->kind, "scope", q->scope,
        "subject", text_json(q->subject), "argument",
        q->has_argument ? text_json(q->argument) : json_null(), "requested_at", q->requested_at,
        "answered_at", text_json(q->answered_at), "job", text_json(q->job_id));
    http_respond_json(response, 200, json_dumps(object, 0));
    json_decref(object);
}
