/* The port scheduler/store/store_clock.h on the database in memory: every machine's testimony of a
 * step is taken note of and refuted at once. So in the simulation a step of the clock costs a
 * leadership; the hold, which would be lifted ten seconds later, is left to the tests on a real
 * server. */
#include "store_clock.h"
#include "store_fake.h"
#include "world.h"

static void note_execute(struct request *q, struct transaction *t)
{
    (void)t;
    request_answer(q, VERDICT_OK, STATUS_OK);
}

enum status store_note_clock(struct store *store, const struct clock_note *note, instant deadline,
                             struct clock_answer *ret_answer, struct error *err)
{
    struct request *q = request_new(sizeof *q, OP_NONE, note_execute);
    enum status status = exchange(store, deadline, q, err);
    (void)note;
    if (status == STATUS_OK) {
        *ret_answer = (struct clock_answer){.ruling = CLOCK_NOTED};
    }
    request_end(q);
    return status;
}
