/* Lists of local times, as a database writes them. */
#include "rule.h"

#include <stdio.h>
#include <string.h>

size_t local_times_most(const char *text)
{
    size_t n = strlen(text) > 2 ? 1 : 0;
    for (const char *p = strchr(text, ','); p != NULL; p = strchr(p + 1, ',')) {
        n++;
    }
    return n;
}

/* "2030-04-12 06:00:00", of `length` bytes. */
static enum status element_parse(const char *element, size_t length, struct local_time *ret,
                                 struct error *err)
{
    char text[32];
    struct date_time t;
    (void)snprintf(text, sizeof text, "%.*s", (int)(length < sizeof text ? length : 0), element);
    char *blank = strchr(text, ' ');
    if (blank != NULL) {
        *blank = 'T';
    }
    enum status s = date_time_parse(text, &t, err);
    if (s == STATUS_OK && (t.has_offset || t.has_fraction)) {
        s = error_set(err, STATUS_INVALID, "\"%s\" is not a local time in whole seconds", text);
    }
    if (s == STATUS_OK) {
        *ret = t.local;
    }
    return s;
}

enum status local_times_parse(const char *text, struct local_time *ret_times, size_t max,
                              size_t *ret_count, struct error *err)
{
    size_t count = 0;
    size_t length = strlen(text);
    if (length < 2 || text[0] != '{' || text[length - 1] != '}') {
        return error_set(err, STATUS_INVALID, "a list of local times stands in { }");
    }
    const char *end = text + length - 1; /* only the last } ends it */
    for (const char *p = text + 1; length > 2 && p <= end;) {
        size_t n = strcspn(p, ",");
        n = n < (size_t)(end - p) ? n : (size_t)(end - p);
        const char *next = p + n + 1;
        if (n >= 2 && p[0] == '"' && p[n - 1] == '"') {
            p++;
            n -= 2;
        }
        if (count == max) {
            return error_set(err, STATUS_FULL, "more than %zu local times", max);
        }
        enum status s = element_parse(p, n, &ret_times[count], err);
        if (s != STATUS_OK) {
            return s;
        }
        count++;
        p = next;
    }
    *ret_count = local_times_sort(ret_times, count);
    return STATUS_OK;
}
