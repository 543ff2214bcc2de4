/* A program under its keeper (keeper.h), seen from the worker. Each object belongs to one thread.
 *
 * Life: program_start; program_step until PROGRAM_ENDED; program_finish. The context goes to its
 * stdin, its stdout comes out of program_step, of its stderr the tail is kept for the error text.
 */
#ifndef RS_PROGRAM_H
#define RS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "life_file.h"
#include "status.h"

#define PROGRAM_TAIL_MAX 1500 /* bytes of stderr that are kept */

struct program;

/* All borrowed until program_start returns. */
struct program_options {
    const char *keeper;             /* path of report-keeper */
    const char *const *arguments;   /* NULL-terminated; the first is an absolute path */
    const char *const *environment; /* NULL-terminated "NAME=value": all that the program sees */
    const char *directory;
    int64_t grace_ms;
    int64_t memory_bytes;         /* address space; 0: no limit */
    int64_t cpu_s;                /* processor time; 0: no limit */
    const struct life_file *life; /* the keeper shares its lock; NULL: none */
};

enum program_event {
    PROGRAM_QUIET,  /* the timeout passed, or wake_fd became readable */
    PROGRAM_OUTPUT, /* bytes of stdout are in the buffer */
    PROGRAM_ENDED,  /* it and all that came from it are gone, and its output was read */
};

enum program_end_kind {
    PROGRAM_EXITED,
    PROGRAM_SIGNALLED,
    PROGRAM_NOT_STARTED, /* code: errno */
    PROGRAM_KEEPER_GONE, /* somebody killed the keeper; the program and its children were killed */
};

struct program_end {
    enum program_end_kind kind;
    int code;                        /* exit status or signal number */
    bool deadline;                   /* the keeper ended it at its deadline */
    char tail[PROGRAM_TAIL_MAX + 1]; /* end of stderr, valid UTF-8 */
};

/* Start a keeper and, through it, the program. It dies at `deadline` unless extended. `input` is
 * borrowed until the end. Owns: *ret_program, program_finish.
 * Returns: OK; AGAIN (no descriptor or process to be had); NOT_FOUND (no keeper at that path).
 * Blocks: never for long (posix_spawn). */
MUST_USE enum status program_start(const struct program_options *options, const char *input,
                                   instant deadline, struct program **ret_program,
                                   struct error *err);

/* Wait for something to happen, at most timeout_ms. `wake_fd` -1: none; with it readable the step
 * still does what is there to do, so a caller that has seen it passes -1 from then on. */
MUST_USE enum program_event program_step(struct program *p, int timeout_ms, int wake_fd,
                                         char *buffer, size_t size, size_t *ret_size);

/* The claim was renewed. Never blocks. */
void program_extend(struct program *p, instant deadline);

/* SIGTERM, and SIGKILL after the grace; SIGKILL at once. Asked for only: go on stepping. */
void program_terminate(struct program *p);
void program_kill(struct program *p);

/* How it ended; frees. Before PROGRAM_ENDED it kills first, and blocks until the keeper has. */
void program_finish(struct program *p, struct program_end *ret_end);

#endif
