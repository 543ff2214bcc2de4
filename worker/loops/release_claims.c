#include "release_claims.h"

#include <poll.h>

#include "after_death.h"
#include "incarnation_file.h"
#include "log.h"
#include "worker_settings.h"

#define PROOF_MS   5000 /* keepers have to kill what the worker started */
#define CONNECT_MS 5000
#define RELEASE_MS 5000
#define LIMIT_MS   20000 /* of the whole command, whatever hangs */
#define AGAIN_MS   50    /* between two tries for rows that others hold */

enum status claims_release(struct store *store, const char *worker, instant deadline,
                           struct released_claims *ret_released, struct error *err)
{
    struct released_claims all = {.jobs = 0};
    bool ended_before = false;
    for (int i = 0;; i++) {
        struct released_claims r;
        enum status s = store_release_claims(store, worker, deadline, &r, err);
        if (s != STATUS_OK) {
            return s;
        }
        ended_before = i == 0 ? r.ended_before : ended_before;
        r.jobs += all.jobs;
        all = r;
        if (r.remaining == 0 || !instant_before(instant_add_ms(clock_now(), AGAIN_MS), deadline)) {
            break;
        }
        (void)poll(NULL, 0, AGAIN_MS);
    }
    all.ended_before = ended_before;
    *ret_released = all;
    return STATUS_OK;
}

static int release_kept(const struct worker_settings *w, const char *worker, struct life_file *file)
{
    struct error err = {.text = ""};
    struct store *store = NULL;
    struct released_claims released = {.jobs = 0};
    instant began = clock_now();
    const struct store_options options = {.conninfo = w->database,
                                          .password_file = w->database_password_file,
                                          .application_name = "report-worker release",
                                          .role = STORE_WORKER};
    enum status s = store_open(&options, instant_add_ms(began, CONNECT_MS), &store, &err);
    if (s == STATUS_OK) {
        s = claims_release(store, worker, instant_add_ms(clock_now(), RELEASE_MS), &released, &err);
        store_close(store);
    }
    if (s != STATUS_OK || released.remaining > 0) {
        log_event(LOG_LEVEL_ERROR, "claims of the dead worker not all released, they lapse",
                  "worker=%s released=%lld remaining=%lld error=%s", worker,
                  (long long)released.jobs, (long long)released.remaining,
                  log_quote(s == STATUS_OK ? "other sessions hold their rows" : err.text).text);
        return AFTER_DEATH_FAILED;
    }
    life_file_remove(file);
    log_event(LOG_LEVEL_INFO,
              !released.known                               ? "the database never met the worker"
              : released.ended_before && released.jobs == 0 ? "the worker had ended already"
                                                            : "claims of the dead worker released",
              "worker=%s jobs=%lld took_ms=%lld", worker, (long long)released.jobs,
              (long long)instant_ms_between(began, clock_now()));
    return !released.known || (released.ended_before && released.jobs == 0) ? AFTER_DEATH_NOTHING
                                                                            : AFTER_DEATH_DONE;
}

int release_claims(const void *settings)
{
    const struct worker_settings *w = settings;
    struct life_file *file = NULL;
    char worker[UUID_TEXT_MAX];
    struct error err = {.text = ""};
    int code = after_death_take("incarnation_file", w->incarnation_file, PROOF_MS, LIMIT_MS, &file);
    if (file == NULL) {
        return code;
    }
    enum status s = incarnation_file_read(file, worker, &err);
    if (s == STATUS_OK) {
        code = release_kept(w, worker, file);
    } else if (s == STATUS_NOT_FOUND) {
        log_event(LOG_LEVEL_INFO, "no dead worker to release", "reason=%s",
                  log_quote(err.text).text);
        code = AFTER_DEATH_NOTHING;
    } else {
        log_event(LOG_LEVEL_ERROR, "refused: it is not known whose claims to release", "error=%s",
                  log_quote(err.text).text);
        code = AFTER_DEATH_FAILED;
    }
    life_file_free(file);
    return code;
}
