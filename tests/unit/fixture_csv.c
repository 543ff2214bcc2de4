#include "fixture_csv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

FILE *fixture_cases_open(const char *name)
{
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/cases/%s", TEST_SOURCE_DIR, name);
    FILE *f = fopen(path, "r");
    if (f == NULL) {
        fail_msg("%s is missing", path);
    }
    return f;
}

bool fixture_csv_read(FILE *f, struct csv_row *ret_row)
{
    char line[CSV_LINE_MAX];
    if (fgets(line, sizeof line, f) == NULL) {
        return false;
    }
    line[strcspn(line, "\r\n")] = '\0';
    char *to = ret_row->text;
    ret_row->count = 0;
    for (const char *p = line;; p++) {
        assert_true(ret_row->count < CSV_COLUMNS_MAX);
        ret_row->columns[ret_row->count++] = to;
        bool quoted = *p == '"';
        p += quoted ? 1 : 0;
        while (*p != '\0' && (quoted || *p != ',')) {
            if (quoted && *p == '"') {
                if (p[1] != '"') {
                    p++;
                    break;
                }
                p++;
            }
            *to++ = *p++;
        }
        *to++ = '\0';
        if (*p == '\0') {
            return true;
        }
        assert_int_equal(*p, ',');
    }
}

bool fixture_is_one_line(const char *text)
{
    const char *end = strchr(text, '\n');
    return end != NULL && end > text && end[1] == '\0';
}
