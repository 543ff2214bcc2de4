/* Ask the leader for something and wait for its answer. Only the leader acts; the request is a row
 * that outlives this process, and repeating its id gives the first answer, so a connection that
 * breaks is opened again and the same is asked again.
 * Thread: main. Blocks: at most the wait and --timeout. */
#ifndef RS_REQUEST_RUN_H
#define RS_REQUEST_RUN_H

#include "ident.h"
#include "session.h"

#define REQUEST_MORE_MAX 3

struct request {
    const char *kind;     /* "trigger", "pause" ... */
    const char *subject;  /* the schedule or job */
    const char *argument; /* NULL: none */
    const char *option;   /* how the command line says the argument: "--key" */
    const char *read; /* SELECT of the row, with $1 the id and $2 MARGIN_S; NULL: the usual one */
    /* How it is asked: SELECT of the state, $1 the id, $2 kind, $3 subject, $4 argument, $5 time,
     * and behind them `more`; NULL: reports.ask. `words`: the options of the command line, in place
     * of `option` and the argument. */
    const char *ask, *words;
    const char *command; /* the command line up to `words`; NULL: kind and subject */
    const char *until;   /* of a pause, an instant; NULL: without end */
    const char *const *more;
    int more_count; /* at most REQUEST_MORE_MAX */
    char id[UUID_TEXT_MAX];
    int64_t wait_s;              /* how long the leader may take; 0: do not wait */
    struct table *row;           /* one row: what is known of it. Owns: table_free */
    struct store_identity asked; /* whom; "" before the first connection has told */
    bool astray;                 /* a later connection led to somebody else */
    char told[128];              /* of its progress, the last */
};

/* Ask, wait, print the answer. The session is open. Returns DONE (answered, or not waited for),
 * REFUSED (refused, expired, or no answer in time), or the code of what failed; all reported. */
enum exit_code request_run(struct session *s, struct request *r);

/* Add a word to a command line that people may copy, behind a space, quoted for a shell where it
 * must be. Cut at `size`. */
void request_word_add(char *text, size_t size, const char *word);

#endif
