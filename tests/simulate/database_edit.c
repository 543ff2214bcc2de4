/* What users do to schedules (sql/0002_definitions.sql), and looking rows up. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "database.h"
#include "world.h"

const struct db_version *version_of(int schedule, int version)
{
    for (size_t i = db.version_count; i > 0; i--) {
        const struct db_version *v = &db.versions[i - 1];
        if (v->schedule == schedule && v->version == version) {
            return v;
        }
    }
    return NULL;
}

void schedule_name(int schedule, char ret_name[NAME_MAX_BYTES])
{
    (void)snprintf(ret_name, NAME_MAX_BYTES, "schedule-%02d", schedule);
}

int schedule_find(const char *name)
{
    return (int)strtol(name + strlen("schedule-"), NULL, 10);
}

size_t occurrence_find(int schedule, const char *key)
{
    size_t i = 0;
    while (i < db.job_count &&
           (db.occurrences[i].schedule != schedule || strcmp(db.occurrences[i].key, key) != 0)) {
        i++;
    }
    return i;
}

size_t job_find(const char *id)
{
    size_t i = 0;
    while (i < db.job_count && strcmp(db.jobs[i].id, id) != 0) {
        i++;
    }
    return i;
}

/* INSERT, UPDATE or DELETE of the schedule's row: a version and a change, as the trigger makes. */
void edit(int schedule, int scope, const struct recipe *recipe)
{
    struct transaction t = {
        .call = ++world.calls, .op = OP_EDIT, .node = -1, .scope = scope, .now = database_now()};
    if (db.version_count == VERSIONS_MAX) {
        return;
    }
    int last = 0;
    for (size_t i = 0; i < db.version_count; i++) {
        last = db.versions[i].schedule == schedule ? db.versions[i].version : last;
    }
    const struct db_version *before = version_of(schedule, last);
    struct db_version *v = &db.versions[db.version_count++];
    *v = (struct db_version){
        .schedule = schedule, .version = last + 1, .effective_from = t.now, .recipe = *recipe};
    /* Never before the version that it follows, whatever the clock shows. */
    if (before != NULL && before->effective_from > v->effective_from) {
        v->effective_from = before->effective_from;
    }
    db.schedule_scope[schedule] = scope;
    db.schedules = schedule + 1 > db.schedules ? schedule + 1 : db.schedules;
    tell_version(&t, v);
    for (size_t i = 0; i < CHANGES_MAX; i++) {
        if (!db.changes[i].used) {
            db.changes[i] = (struct db_change){
                .used = true, .id = ++db.next_change, .schedule = schedule, .version = v->version};
            break;
        }
    }
    tell_call(&t, VERDICT_OK);
}
