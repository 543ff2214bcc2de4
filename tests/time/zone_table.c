/* What our zone tables say, for tests/time/zone_table.py to compare. Reads questions from stdin:
 * "Z NAME" takes a zone, "U SECONDS" asks for the offset at an instant, "L SECONDS" what a local
 * time is. Answers one line each: "ERROR text"; "OFFSET"; "KIND BEFORE AFTER". */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "zone_file.h"

static void zone_take(struct zone_set *zones, const char *name, const struct zone **zone)
{
    struct error err = {.text = ""};
    *zone = NULL;
    if (zone_set_find(zones, name, zone, &err) != STATUS_OK) {
        (void)printf("ERROR %s\n", err.text);
    } else {
        (void)printf("%s\n", zone_set_digest(zones, name));
    }
}

static void local_answer(const struct zone *zone, int64_t s)
{
    static const char *const kinds[] = {"unique", "gap", "overlap"};
    struct zone_span span = zone_resolve(zone, (struct local_time){s});
    (void)printf("%s %d %d\n", kinds[span.kind], span.before, span.after);
}

int main(void)
{
    struct zone_set *zones = NULL;
    const struct zone *zone = NULL;
    struct error err = {.text = ""};
    char line[256];
    if (zone_set_open(NULL, &zones, &err) != STATUS_OK) {
        (void)fprintf(stderr, "zone_table: %s\n", err.text);
        return 1;
    }
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == 'Z' && line[1] == ' ') {
            zone_take(zones, line + 2, &zone);
        } else if (zone == NULL) {
            (void)printf("ERROR no zone\n");
        } else if (line[0] == 'U') {
            (void)printf("%d\n", zone_offset_at(zone, strtoll(line + 1, NULL, 10)));
        } else {
            local_answer(zone, strtoll(line + 1, NULL, 10));
        }
    }
    zone_set_close(zones);
    return fflush(stdout) == 0 ? 0 : 1;
}
