#include "message.h"

#include <inttypes.h>
#include <string.h>

#include <jansson.h>

#include "civil.h"

#define TYPE_STEM "report.job.dispatch.v"

/* The same shape as the SQL domain reports.occurrence_key. */
static bool key_is_valid(const char *text)
{
    const char *first = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    const char *rest = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:+-";
    size_t n = strlen(text);
    return n >= 1 && n < KEY_MAX_BYTES && strchr(first, text[0]) != NULL && strspn(text, rest) == n;
}

static void uuid_lower(char *text)
{
    for (char *c = text; *c != '\0'; c++) {
        if (*c >= 'A' && *c <= 'F') {
            *c = (char)(*c - 'A' + 'a');
        }
    }
}

static enum status message_check(const struct message *m, struct error *err)
{
    if (!uuid_is_valid(m->job_id)) {
        return error_set(err, STATUS_INVALID, "job_id is not a UUID");
    }
    if (m->dispatch_number < 1) {
        return error_set(err, STATUS_INVALID, "dispatch_number is below 1");
    }
    if (!name_is_valid(m->schedule)) {
        return error_set(err, STATUS_INVALID, "schedule is not a name");
    }
    if (!key_is_valid(m->occurrence_key)) {
        return error_set(err, STATUS_INVALID, "occurrence_key is not one");
    }
    if (!name_is_valid(m->scope)) {
        return error_set(err, STATUS_INVALID, "scope is not a name");
    }
    if (!name_is_valid(m->queue)) {
        return error_set(err, STATUS_INVALID, "queue is not a name");
    }
    if (m->generation < 0) {
        return error_set(err, STATUS_INVALID, "generation is negative");
    }
    return STATUS_OK;
}

/* Text that grows within a bound; `used` beyond `size` says that it did not fit. Written without
 * printf, which was half of the relay's work for a message. */
struct growing {
    char *text; /* ends in NUL while it fits */
    size_t used, size;
};

static void add(struct growing *g, const char *text)
{
    size_t n = strlen(text);
    if (g->used < g->size && n < g->size - g->used) {
        memcpy(g->text + g->used, text, n + 1);
    }
    g->used += n;
}

static void add_number(struct growing *g, int64_t number)
{
    char digits[24];
    char *at = digits + sizeof digits - 1;
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    *at = '\0';
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (number < 0) {
        *--at = '-';
    }
    add(g, at);
}

static bool it_fits(const struct growing *g)
{
    return g->used < g->size;
}

/* FNV-1a: spreads well enough for span ids, which need not be secret or strong. */
static uint64_t text_hash(uint64_t h, const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        h = (h ^ (unsigned char)*c) * UINT64_C(1099511628211);
    }
    return h;
}

void message_traceparent(const char *job_id, int32_t dispatch_number,
                         char ret_text[MESSAGE_TRACEPARENT_MAX])
{
    char trace[33];
    size_t n = 0;
    for (const char *c = job_id; *c != '\0' && n < 32; c++) {
        if (*c != '-') {
            trace[n++] = *c;
        }
    }
    trace[n] = '\0';
    uuid_lower(trace);
    char number[16];
    struct growing g = {number, 0, sizeof number};
    add(&g, "/");
    add_number(&g, dispatch_number);
    uint64_t span = text_hash(text_hash(UINT64_C(14695981039346656037), trace), number);
    span = span != 0 ? span : 1; /* an all-zero span id is invalid */
    char digits[17] = "";
    for (size_t i = 0; i < 16; i++) {
        digits[i] = "0123456789abcdef"[(span >> (60 - 4 * i)) & 15];
    }
    g = (struct growing){ret_text, 0, MESSAGE_TRACEPARENT_MAX};
    add(&g, "00-");
    add(&g, trace);
    add(&g, "-");
    add(&g, digits);
    add(&g, "-01");
}

/* The next header, empty: its value is added to it, then header_end. */
static struct growing header_begin(struct message_text *t, const char *name)
{
    size_t i = t->header_count;
    t->headers[i].name = name;
    t->headers[i].value = t->header_values[i];
    return (struct growing){t->header_values[i], 0, MESSAGE_HEADER_VALUE_MAX};
}

/* All values are bounded by the fields' own bounds, which message_check has seen to. */
static void header_end(struct message_text *t, const struct growing *value)
{
    t->headers[t->header_count++].size = value->used;
}

static void header_add(struct message_text *t, const char *name, const char *value)
{
    struct growing g = header_begin(t, name);
    add(&g, value);
    header_end(t, &g);
}

static void headers_encode(const struct message *m, int64_t id, utc_us made_at,
                           struct message_text *t)
{
    char made[RFC3339_TEXT_MAX];
    char trace[MESSAGE_TRACEPARENT_MAX];
    rfc3339_format_utc(made_at, made);
    message_traceparent(m->job_id, m->dispatch_number, trace);
    t->header_count = 0;
    header_add(t, "content-type", "application/json");
    header_add(t, "ce_specversion", "1.0");
    struct growing g = header_begin(t, "ce_id");
    add(&g, m->scope);
    add(&g, "/");
    add_number(&g, id);
    header_end(t, &g);
    g = header_begin(t, "ce_source");
    add(&g, "/report-scheduler/scopes/");
    add(&g, m->scope);
    header_end(t, &g);
    header_add(t, "ce_type", MESSAGE_TYPE);
    header_add(t, "ce_time", made);
    header_add(t, "ce_subject", m->job_id);
    header_add(t, "traceparent", trace);
}

enum status message_encode(const struct message *m, int64_t id, utc_us made_at,
                           struct message_text *ret_text, struct error *err)
{
    enum status s = message_check(m, err);
    if (s != STATUS_OK) {
        return s;
    }
    char when[RFC3339_TEXT_MAX];
    rfc3339_format_utc(m->scheduled_for, when);
    /* Checked above: no field holds a character that JSON would want escaped. */
    struct growing g = {ret_text->value, 0, sizeof ret_text->value};
    add(&g, "{\"v\":");
    add_number(&g, MESSAGE_VERSION);
    add(&g, ",\"job_id\":\"");
    add(&g, m->job_id);
    add(&g, "\",\"dispatch_number\":");
    add_number(&g, m->dispatch_number);
    add(&g, ",\"schedule\":\"");
    add(&g, m->schedule);
    add(&g, "\",\"occurrence_key\":\"");
    add(&g, m->occurrence_key);
    add(&g, "\",\"scheduled_for\":\"");
    add(&g, when);
    add(&g, "\",\"scope\":\"");
    add(&g, m->scope);
    add(&g, "\",\"generation\":\"");
    add_number(&g, m->generation);
    add(&g, "\",\"queue\":\"");
    add(&g, m->queue);
    add(&g, "\"}");
    if (!it_fits(&g)) {
        return error_set(err, STATUS_INVALID, "the message does not fit %d bytes",
                         MESSAGE_VALUE_MAX);
    }
    ret_text->value_size = g.used;
    headers_encode(m, id, made_at, ret_text);
    return STATUS_OK;
}

/* A string field into a bounded buffer. json_loadb refuses U+0000, so strlen is the whole. */
static enum status field_text(const json_t *object, const char *name, char *ret_text, size_t size,
                              struct error *err)
{
    const json_t *field = json_object_get(object, name);
    if (!json_is_string(field)) {
        return error_set(err, STATUS_INVALID, "%s is %s", name,
                         field == NULL ? "missing" : "not a string");
    }
    if (json_string_length(field) >= size) {
        return error_set(err, STATUS_INVALID, "%s is longer than %zu bytes", name, size - 1);
    }
    memcpy(ret_text, json_string_value(field), json_string_length(field) + 1);
    return STATUS_OK;
}

static enum status field_number(const json_t *object, const char *name, int64_t most,
                                int64_t *ret_number, struct error *err)
{
    const json_t *field = json_object_get(object, name);
    if (!json_is_integer(field)) {
        return error_set(err, STATUS_INVALID, "%s is %s", name,
                         field == NULL ? "missing" : "not an integer");
    }
    int64_t value = json_integer_value(field);
    if (value < 1 || value > most) {
        return error_set(err, STATUS_INVALID, "%s is out of range", name);
    }
    *ret_number = value;
    return STATUS_OK;
}

static enum status decimal_parse(const char *name, const char *text, int64_t *ret_number,
                                 struct error *err)
{
    int64_t value = 0;
    const char *c = text;
    for (; *c >= '0' && *c <= '9'; c++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *c - '0', &value)) {
            break;
        }
    }
    if (*c != '\0' || c == text) {
        return error_set(err, STATUS_INVALID, "%s is not a decimal number", name);
    }
    *ret_number = value;
    return STATUS_OK;
}

static enum status type_check(const struct message_header *headers, size_t count, struct error *err)
{
    size_t stem = strlen(TYPE_STEM);
    for (size_t i = 0; i < count; i++) {
        const struct message_header *h = &headers[i];
        if (strcmp(h->name, "ce_type") != 0) {
            continue;
        }
        if (h->value == NULL || h->size < stem || memcmp(h->value, TYPE_STEM, stem) != 0) {
            return error_set(err, STATUS_INVALID, "ce_type is not that of a dispatch");
        }
        if (h->size != strlen(MESSAGE_TYPE) || memcmp(h->value, MESSAGE_TYPE, h->size) != 0) {
            return error_set(err, STATUS_INVALID,
                             "ce_type names a major version that this program does not know");
        }
    }
    return STATUS_OK;
}

static enum status version_check(const json_t *object, struct error *err)
{
    const json_t *v = json_object_get(object, "v");
    if (!json_is_integer(v)) {
        return error_set(err, STATUS_INVALID, "v is %s", v == NULL ? "missing" : "not an integer");
    }
    if (json_integer_value(v) != MESSAGE_VERSION) {
        return error_set(err, STATUS_INVALID, "major version %" JSON_INTEGER_FORMAT " is not known",
                         json_integer_value(v));
    }
    return STATUS_OK;
}

static enum status object_read(const json_t *object, struct message *m, struct error *err)
{
    char when[RFC3339_TEXT_MAX] = "";
    char generation[24] = "";
    int64_t number = 0;
    enum status s = version_check(object, err);
    const struct {
        const char *name;
        char *text;
        size_t size;
    } texts[] = {
        {"job_id", m->job_id, sizeof m->job_id},
        {"schedule", m->schedule, sizeof m->schedule},
        {"occurrence_key", m->occurrence_key, sizeof m->occurrence_key},
        {"scheduled_for", when, sizeof when},
        {"scope", m->scope, sizeof m->scope},
        {"generation", generation, sizeof generation},
        {"queue", m->queue, sizeof m->queue},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0] && s == STATUS_OK; i++) {
        s = field_text(object, texts[i].name, texts[i].text, texts[i].size, err);
    }
    if (s == STATUS_OK) {
        s = field_number(object, "dispatch_number", INT32_MAX, &number, err);
    }
    if (s == STATUS_OK) {
        s = decimal_parse("generation", generation, &m->generation, err);
    }
    if (s == STATUS_OK) {
        s = rfc3339_parse(when, &m->scheduled_for, err);
        s = s == STATUS_OK ? s : error_prefix(err, STATUS_INVALID, "scheduled_for");
    }
    m->dispatch_number = (int32_t)number;
    uuid_lower(m->job_id);
    return s == STATUS_OK ? message_check(m, err) : s;
}

enum status message_decode(const void *value, size_t size, const struct message_header *headers,
                           size_t header_count, struct message *ret_message, struct error *err)
{
    enum status s = type_check(headers, header_count, err);
    if (s != STATUS_OK) {
        return s;
    }
    if (value == NULL || size == 0 || size > MESSAGE_READ_MAX) {
        return error_set(err, STATUS_INVALID, "the value has %zu bytes; 1 to %d are read", size,
                         MESSAGE_READ_MAX);
    }
    json_error_t why;
    json_t *object = json_loadb(value, size, JSON_REJECT_DUPLICATES, &why);
    if (object == NULL) {
        return error_set(err, STATUS_INVALID, "not JSON: %s at byte %d", why.text, why.position);
    }
    struct message m = {0};
    if (json_is_object(object)) {
        s = object_read(object, &m, err);
    } else {
        s = error_set(err, STATUS_INVALID, "not a JSON object");
    }
    json_decref(object);
    if (s == STATUS_OK) {
        *ret_message = m;
    }
    return s;
}
