#include "after_death.h"

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log.h"

static void *limit_main(void *argument)
{
    instant end = instant_add_ms(clock_now(), (intptr_t)argument);
    while (instant_before(clock_now(), end)) {
        (void)poll(NULL, 0, instant_poll_timeout(clock_now(), end));
    }
    log_event(LOG_LEVEL_ERROR, "it took too long, ending at once; what is left lapses by itself",
              NULL);
    _exit(AFTER_DEATH_FAILED);
}

/* Neither a resolver nor a library may keep a service manager waiting. */
static void limit_start(int64_t limit_ms)
{
    pthread_t thread;
    pthread_attr_t attributes;
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attributes, limit_main, (void *)(intptr_t)limit_ms) != 0) {
        log_event(LOG_LEVEL_WARN, "the command has no limit: no thread for it", NULL);
    }
    (void)pthread_attr_destroy(&attributes);
}

/* An ordered stop removes the file, and whoever mistypes its path finds none either: the directory
 * tells them apart. */
static bool has_directory(const char *path)
{
    char directory[4096];
    const char *slash = strrchr(path, '/');
    size_t n = slash == NULL ? 0 : (size_t)(slash - path);
    if (n == 0 || n >= sizeof directory) {
        return true;
    }
    (void)snprintf(directory, sizeof directory, "%.*s", (int)n, path);
    return access(directory, F_OK) == 0;
}

int after_death_take(const char *key, const char *path, int64_t proof_ms, int64_t limit_ms,
                     struct life_file **ret_file)
{
    struct error err = {.text = ""};
    if (path[0] == '\0') {
        log_event(LOG_LEVEL_ERROR, "no life file is set, so nothing is known of a dead process",
                  "key=%s", key);
        return AFTER_DEATH_SETTINGS;
    }
    limit_start(limit_ms);
    enum status s =
        life_file_take(path, LIFE_PROVE, instant_add_ms(clock_now(), proof_ms), ret_file, &err);
    switch (s) {
    case STATUS_OK:
        return AFTER_DEATH_DONE;
    case STATUS_NOT_FOUND:
        if (!has_directory(path)) {
            log_event(LOG_LEVEL_ERROR,
                      "the directory of the life file is not there: is the path mistyped? Nothing "
                      "is known of a dead process",
                      "key=%s path=%s", key, log_quote(path).text);
            return AFTER_DEATH_SETTINGS;
        }
        log_event(LOG_LEVEL_INFO, "nothing to clean up", "reason=%s", log_quote(err.text).text);
        return AFTER_DEATH_NOTHING;
    case STATUS_CONFLICT:
    case STATUS_TIMEOUT:
        log_event(LOG_LEVEL_ERROR, "refused: it lives", "reason=%s", log_quote(err.text).text);
        return AFTER_DEATH_LIVES;
    case STATUS_AGAIN:
    case STATUS_FENCED:
    case STATUS_HELD:
    case STATUS_INVALID:
    case STATUS_CORRUPT:
    case STATUS_FULL:
    case STATUS_FATAL:
        break;
    }
    log_event(LOG_LEVEL_ERROR, "refused: not proved dead", "error=%s", log_quote(err.text).text);
    return AFTER_DEATH_FAILED;
}
