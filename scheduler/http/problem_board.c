#include "problem_board.h"

void problem_board_init(struct problem_board *board)
{
    *board = (struct problem_board){.known = false};
    (void)pthread_mutex_init(&board->mutex, NULL);
}

void problem_board_done(struct problem_board *board)
{
    (void)pthread_mutex_destroy(&board->mutex);
}

void problem_board_show(struct problem_board *board, const struct problem_list *list)
{
    (void)pthread_mutex_lock(&board->mutex);
    board->known = list != NULL;
    if (list != NULL) {
        board->list = *list;
    }
    (void)pthread_mutex_unlock(&board->mutex);
}

bool problem_board_read(struct problem_board *board, struct problem_list *ret_list)
{
    (void)pthread_mutex_lock(&board->mutex);
    bool known = board->known;
    if (known) {
        *ret_list = board->list;
    }
    (void)pthread_mutex_unlock(&board->mutex);
    return known;
}
