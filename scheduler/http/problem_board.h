/* What the observer last read of the installation's problems, for the page: the observer writes it,
 * HTTP threads read it, and neither waits for the other. */
#ifndef RS_PROBLEM_BOARD_H
#define RS_PROBLEM_BOARD_H

#include <pthread.h>
#include <stdbool.h>

#include "store_figures.h"

struct problem_board {
    pthread_mutex_t mutex; /* protects all below */
    bool known;
    struct problem_list list;
};

void problem_board_init(struct problem_board *board);
void problem_board_done(struct problem_board *board);

/* NULL: not read of late. Thread: any. Blocks: never for long; so below. */
void problem_board_show(struct problem_board *board, const struct problem_list *list);

/* False: not known, and *ret_list is untouched. */
bool problem_board_read(struct problem_board *board, struct problem_list *ret_list);

#endif
