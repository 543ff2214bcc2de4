#include "http_wish.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "civil.h"

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
    static const char *const known[] = {"trigger",  "pause",   "resume",        "cancel",  "retry",
                                        "backfill", "discard", "breaker_close", "handoff", NULL};
    return is_one_of(kind, known)
               ? STATUS_OK
               : error_set(err, STATUS_INVALID,
                           "kind: there is no such kind; write trigger, pause, resume, cancel, "
                           "retry, backfill, discard, breaker_close or handoff");
}

/* Members that one kind has and others have not: refused there, since they would do nothing. */
static enum status members_of_kind_check(json_t *object, const char *kind, struct error *err)
{
    static const struct {
        const char *kind, *member;
    } only[] = {{"pause", "until"},     {"backfill", "from"},   {"backfill", "to"},
                {"backfill", "cancel"}, {"backfill", "beside"}, {"backfill", "dry_run"}};
    for (size_t i = 0; i < sizeof only / sizeof only[0]; i++) {
        if (json_object_get(object, only[i].member) != NULL && strcmp(kind, only[i].kind) != 0) {
            return error_set(err, STATUS_INVALID, "%s: only a %s has it, and this is a %s",
                             only[i].member, only[i].kind, kind);
        }
    }
    return STATUS_OK;
}

static enum status flag_take(json_t *object, const char *key, bool *ret_flag, struct error *err)
{
    json_t *value = json_object_get(object, key);
    if (value != NULL && !json_is_boolean(value)) {
        return error_set(err, STATUS_INVALID, "%s: must be true or false", key);
    }
    *ret_flag = json_is_true(value);
    return STATUS_OK;
}

static enum status until_take(json_t *object, struct request_wish *w, struct error *err)
{
    char text[sizeof w->until + 16]; /* an offset may be written at length */
    struct error why = {.text = ""};
    utc_us at;
    enum status s = text_take(object, "until", false, text, sizeof text, err);
    if (s != STATUS_OK || text[0] == '\0') {
        return s;
    }
    if (rfc3339_parse(text, &at, &why) != STATUS_OK) {
        return error_set(err, STATUS_INVALID, "until: %s", why.text);
    }
    rfc3339_format_utc(at, w->until);
    return STATUS_OK;
}

/* `argument` becomes what reportctl backfill writes there: the bounds, or the earlier request. */
static enum status backfill_take(json_t *object, struct request_wish *w, struct error *err)
{
    char earlier[UUID_TEXT_MAX + 1] = "";
    enum status s = text_take(object, "from", false, w->from, sizeof w->from, err);
    if (s == STATUS_OK) {
        s = text_take(object, "to", false, w->to, sizeof w->to, err);
    }
    if (s == STATUS_OK) {
        s = text_take(object, "cancel", false, earlier, sizeof earlier, err);
    }
    if (s == STATUS_OK) {
        s = flag_take(object, "beside", &w->beside, err);
    }
    if (s == STATUS_OK) {
        s = flag_take(object, "dry_run", &w->dry_run, err);
    }
    if (s != STATUS_OK) {
        return s;
    }
    bool cancels = earlier[0] != '\0';
    bool spans = w->from[0] != '\0' && w->to[0] != '\0';
    bool bare = w->from[0] == '\0' && w->to[0] == '\0' && !w->beside && !w->dry_run;
    if (w->has_argument || (cancels ? !bare : !spans)) {
        return error_set(err, STATUS_INVALID,
                         "from: a backfill has from and to, and beside and dry_run where they are "
                         "meant; or cancel, the id of an earlier one, alone; no argument");
    }
    if (cancels && !uuid_is_valid(earlier)) {
        return error_set(err, STATUS_INVALID, "cancel: must be the id of an earlier backfill");
    }
    w->has_span = spans;
    w->has_argument = true;
    (void)snprintf(w->argument, sizeof w->argument, "%s%s%s", cancels ? earlier : w->from,
                   cancels ? "" : " to ", w->to);
    return STATUS_OK;
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
    static const char *const members[] = {"id",        "kind",   "subject", "argument",
                                          "timeout_s", "until",  "from",    "to",
                                          "cancel",    "beside", "dry_run", NULL};
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(object, key, value)
    {
        if (!is_one_of(key, members)) {
            return error_set(err, STATUS_INVALID,
                             "there is a member that is not known; write id, kind, subject, "
                             "argument and timeout_s, for a pause until, for a backfill from, to, "
                             "cancel, beside and dry_run");
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
    if (s == STATUS_OK) {
        s = members_of_kind_check(object, w->kind, err);
    }
    if (s == STATUS_OK) {
        s = until_take(object, w, err);
    }
    if (s == STATUS_OK && strcmp(w->kind, "backfill") == 0) {
        s = backfill_take(object, w, err);
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

void wish_respond(struct http_response *response, const struct request_standing *answer)
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
