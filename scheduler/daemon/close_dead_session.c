#include "close_dead_session.h"

#include <string.h>

#include "after_death.h"
#include "crash_point.h"
#include "dead_session.h"
#include "log.h"
#include "scheduler_settings.h"

#define PROOF_MS 2000 /* the kernel takes a killed process apart well within this */
#define CLOSE_MS 6000
#define LIMIT_MS 15000 /* of the whole command, whatever hangs (a resolver may) */

static int close_kept(const struct scheduler_settings *s, struct life_file *file)
{
    struct zk_session session;
    struct error err = {.text = ""};
    bool was_open = false;
    instant began = clock_now();
    enum status status = session_file_read(file, &session, &err);
    if (status == STATUS_NOT_FOUND) {
        log_event(LOG_LEVEL_INFO, "no dead session to close", "reason=%s",
                  log_quote(err.text).text);
        return AFTER_DEATH_NOTHING;
    }
    uint64_t id = status == STATUS_OK ? (uint64_t)session.id : 0;
    if (status == STATUS_OK) {
        CRASH_POINT("dead_session.before");
        status = session_close_dead(s->zookeeper, &session, instant_add_ms(began, CLOSE_MS),
                                    &was_open, &err);
        explicit_bzero(&session, sizeof session);
        CRASH_POINT("dead_session.after");
    }
    if (status != STATUS_OK) {
        log_event(LOG_LEVEL_ERROR, "dead session not closed, it expires", "id=0x%llx error=%s",
                  (unsigned long long)id, log_quote(err.text).text);
        return AFTER_DEATH_FAILED;
    }
    life_file_remove(file);
    log_event(LOG_LEVEL_INFO, was_open ? "dead session closed" : "dead session was over already",
              "id=0x%llx took_ms=%lld", (unsigned long long)id,
              (long long)instant_ms_between(began, clock_now()));
    return was_open ? AFTER_DEATH_DONE : AFTER_DEATH_NOTHING;
}

int close_dead_session(const void *settings)
{
    const struct scheduler_settings *s = settings;
    struct life_file *file = NULL;
    int code = after_death_take("session_file", s->session_file, PROOF_MS, LIMIT_MS, &file);
    if (file != NULL) {
        code = close_kept(s, file);
        life_file_free(file);
    }
    return code;
}
