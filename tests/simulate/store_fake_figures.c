/* The port scheduler/store/store_figures.h on the database in memory: numbers for people, and here
 * are none. The observer's thread runs all the same: it is the witness of the database's clock. */
#include "store_fake.h"
#include "store_figures.h"

static void figures_execute(struct request *q, struct transaction *t)
{
    (void)t;
    request_answer(q, VERDICT_OK, STATUS_OK);
}

enum status store_figures(struct store *store, const struct figure_request *request,
                          instant deadline, struct figure_list *ret_figures, struct error *err)
{
    struct request *q = request_new(sizeof *q, OP_NONE, figures_execute);
    enum status status = exchange(store, deadline, q, err);
    (void)request;
    if (status == STATUS_OK) {
        ret_figures->count = 0;
    }
    request_end(q);
    return status;
}

enum status store_problems(struct store *store, instant deadline, struct problem_list *ret_problems,
                           struct error *err)
{
    struct request *q = request_new(sizeof *q, OP_NONE, figures_execute);
    enum status status = exchange(store, deadline, q, err);
    if (status == STATUS_OK) {
        ret_problems->count = 0;
        ret_problems->more = false;
    }
    request_end(q);
    return status;
}
