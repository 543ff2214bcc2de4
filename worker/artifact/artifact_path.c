#include "artifact_path.h"

#include <stdio.h>
#include <string.h>

#define UUID_BYTES (UUID_TEXT_MAX - 1)

void artifact_directory(const char *installation, const struct job *job,
                        char ret_text[ARTIFACT_PATH_MAX])
{
    char key[KEY_MAX_BYTES];
    (void)snprintf(key, sizeof key, "%s", job->occurrence_key);
    for (char *p = key; *p != '\0'; p++) {
        if (*p == ':') {
            *p = '_';
        } else if (*p == '+') {
            *p = 'p';
        }
    }
    (void)snprintf(ret_text, ARTIFACT_PATH_MAX, "%s/%s/%s/%s", installation, job->scope,
                   job->schedule, key);
}

void artifact_name(const struct job *job, const char *ending, char ret_text[ARTIFACT_NAME_MAX])
{
    (void)snprintf(ret_text, ARTIFACT_NAME_MAX, "%s.%s.%s", job->id, job->token, ending);
}

void artifact_temporary_name(const struct job *job, char ret_text[ARTIFACT_NAME_MAX])
{
    (void)snprintf(ret_text, ARTIFACT_NAME_MAX, ".%s.%s.tmp", job->id, job->token);
}

bool artifact_name_parse(const char *name, char ret_job[UUID_TEXT_MAX],
                         char ret_token[UUID_TEXT_MAX], bool *ret_temporary)
{
    bool temporary = name[0] == '.';
    const char *p = temporary ? name + 1 : name;
    char job[UUID_TEXT_MAX];
    char token[UUID_TEXT_MAX];
    if (strlen(p) < 2 * UUID_BYTES + 3 || p[UUID_BYTES] != '.' || p[2 * UUID_BYTES + 1] != '.' ||
        (temporary && strcmp(p + 2 * UUID_BYTES + 1, ".tmp") != 0)) {
        return false;
    }
    (void)snprintf(job, sizeof job, "%.*s", UUID_BYTES, p);
    (void)snprintf(token, sizeof token, "%.*s", UUID_BYTES, p + UUID_BYTES + 1);
    if (!uuid_is_valid(job) || !uuid_is_valid(token)) {
        return false;
    }
    memcpy(ret_job, job, sizeof job);
    memcpy(ret_token, token, sizeof token);
    *ret_temporary = temporary;
    return true;
}
