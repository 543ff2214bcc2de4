/* The port scheduler/store/store_candidate.h on the database in memory: nobody asks for a handoff.
 */
#include "store_candidate.h"
#include "store_fake.h"

enum status candidate_follow(struct store *store, const struct authority *a,
                             const struct candidate_stand *stand, instant deadline,
                             enum candidate_wish *ret_wish, struct error *err)
{
    utc_us now = {0};
    (void)a;
    (void)stand;
    enum status status = store_clock(store, deadline, &now, err);
    if (status == STATUS_OK) {
        *ret_wish = CANDIDATE_WISH_NONE;
    }
    return status;
}

enum status candidate_rehearse(struct store *store, const struct authority *a, const char *member,
                               instant deadline, struct error *err)
{
    (void)store;
    (void)a;
    (void)member;
    (void)deadline;
    (void)err;
    return STATUS_OK;
}

bool store_heard(struct store *store, const char *channel)
{
    (void)store;
    (void)channel;
    return false;
}
