/* Reports of kind program: a child process under a keeper; its stdout is the artifact. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crash_point.h"
#include "program.h"
#include "runner.h"

#define LOOK_MS         250 /* how soon a renewed claim reaches the keeper */
#define ENVIRONMENT_MAX (SETTING_LIST_MAX + 20)
#define VARIABLE_MAX    320

struct run {
    struct runner *r;
    const struct program_settings *settings;
    struct program *program;
    struct artifact *artifact;
    struct error err; /* of the artifact store */
    enum status store_status;
    bool too_much;
    bool asked;       /* it was told to end; the outcome, if one was due, is filled in */
    instant deadline; /* as the keeper knows it */
};

/* The whole environment: nothing of the worker's own gets through. */
struct environment {
    char text[ENVIRONMENT_MAX][VARIABLE_MAX];
    const char *list[ENVIRONMENT_MAX + 1];
    size_t count;
};

static void variable_set(struct environment *e, const char *name, const char *value)
{
    if (e->count < ENVIRONMENT_MAX) {
        (void)snprintf(e->text[e->count], VARIABLE_MAX, "%s=%s", name, value);
        e->list[e->count] = e->text[e->count];
        e->count++;
    }
}

static void builtin_set(struct environment *e, const char *name, const char *value)
{
    char variable[64] = "REPORT_";
    size_t n = strlen(variable);
    for (const char *p = name; *p != '\0' && n + 1 < sizeof variable; p++) {
        variable[n++] = *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p;
    }
    variable[n] = '\0';
    variable_set(e, variable, value);
}

static struct environment *environment_new(const struct runner *r,
                                           const struct program_settings *settings)
{
    struct environment *e = calloc(1, sizeof *e);
    if (e == NULL) {
        return NULL;
    }
    const struct job *job = r->claim->job;
    const char *name = NULL;
    struct parameter_value value;
    variable_set(e, "PATH", "/usr/local/bin:/usr/bin:/bin");
    variable_set(e, "LANG", "C.UTF-8");
    variable_set(e, "REPORT_INSTALLATION", r->installation);
    variable_set(e, "REPORT_JOB_ID", job->id);
    variable_set(e, "REPORT_NAME", job->report);
    variable_set(e, "REPORT_SCOPE", job->scope);
    variable_set(e, "REPORT_CAUSE", job->cause);
    variable_set(e, "REPORT_FORMAT", job->format);
    for (size_t i = 0; job_builtin(job, i, &name, &value); i++) {
        builtin_set(e, name, value.text == NULL ? "" : value.text);
    }
    for (size_t i = 0; i < settings->environment.count && e->count < ENVIRONMENT_MAX; i++) {
        e->list[e->count++] = settings->environment.items[i];
    }
    return e;
}

static enum status start(struct run *x, const char *input, struct error *err)
{
    const char *arguments[SETTING_LIST_MAX + 1] = {NULL};
    struct environment *environment = environment_new(x->r, x->settings);
    if (environment == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory");
    }
    for (size_t i = 0; i < x->settings->arguments.count; i++) {
        arguments[i] = x->settings->arguments.items[i];
    }
    struct program_options options = {.keeper = x->r->w->keeper,
                                      .arguments = arguments,
                                      .environment = environment->list,
                                      .directory = x->settings->working_directory,
                                      .grace_ms = x->r->settings->kill_grace_ms,
                                      .memory_bytes = x->settings->memory_bytes,
                                      .cpu_s = x->settings->cpu_s,
                                      .life = x->r->w->life};
    x->deadline = claims_watch(x->r->w->claims, x->r->claim).deadline;
    enum status s = program_start(&options, input, x->deadline, &x->program, err);
    free(environment);
    return s;
}

static void output_take(struct run *x, size_t n)
{
    if (x->asked || x->store_status != STATUS_OK) {
        return; /* read on, so that it does not block in write before it dies */
    }
    if (artifact_size(x->artifact) + (int64_t)n > x->settings->max_output_bytes) {
        x->too_much = true;
        x->asked = true;
        program_kill(x->program);
        return;
    }
    x->store_status = artifact_write(x->artifact, x->r->buffer, n, &x->err);
    if (x->store_status != STATUS_OK) {
        x->asked = true;
        program_kill(x->program);
    }
}

/* Pass the claim's renewal on; end the program when the job has to stop. */
static void supervise(struct run *x)
{
    struct claim_watch watch = claims_watch(x->r->w->claims, x->r->claim);
    if (instant_before(x->deadline, watch.deadline) && watch.kill < KILL_EXPIRED) {
        x->deadline = watch.deadline;
        program_extend(x->program, watch.deadline);
    }
    if (watch.kill >= KILL_EXPIRED) {
        (void)runner_is_stopped(x->r); /* fills in the outcome */
        program_kill(x->program);      /* also when it was asked politely before */
        x->asked = true;
    } else if (!x->asked && runner_is_stopped(x->r)) {
        program_terminate(x->program);
        x->asked = true;
    }
}

static int look_ms(const struct run *x)
{
    int timeout = instant_poll_timeout(clock_now(), x->r->timeout_at);
    return x->asked || timeout > LOOK_MS ? LOOK_MS : timeout;
}

static void follow(struct run *x)
{
    size_t n = 0;
    for (;;) {
        supervise(x);
        switch (program_step(x->program, look_ms(x), x->asked ? -1 : x->r->wake_fd, x->r->buffer,
                             RUNNER_BUFFER, &n)) {
        case PROGRAM_QUIET:
            break;
        case PROGRAM_OUTPUT:
            output_take(x, n);
            break;
        case PROGRAM_ENDED:
            return;
        }
    }
}

static void end_describe(const struct program_end *end, char *text, size_t size)
{
    const char *tail = end->tail[0] == '\0' ? "" : "; stderr: ";
    switch (end->kind) {
    case PROGRAM_EXITED:
        (void)snprintf(text, size, "the program ended with status %d%s%s", end->code, tail,
                       end->tail);
        return;
    case PROGRAM_SIGNALLED:
        (void)snprintf(text, size, "the program was ended by signal %d (%s)%s%s", end->code,
                       end->code > 0 ? strsignal(end->code) : "?", tail, end->tail);
        return;
    case PROGRAM_NOT_STARTED:
        (void)snprintf(text, size, "the program could not be started: %s", strerror(end->code));
        return;
    case PROGRAM_KEEPER_GONE:
        (void)snprintf(text, size, "the program's keeper was killed%s%s", tail, end->tail);
        return;
    }
}

static void exit_code_set(struct outcome *o, const struct program_end *end)
{
    o->has_exit_code = end->kind == PROGRAM_EXITED || end->kind == PROGRAM_SIGNALLED;
    o->exit_code = end->kind == PROGRAM_SIGNALLED ? 128 + end->code : end->code;
}

static void complete(struct run *x)
{
    struct outcome *o = &x->r->claim->outcome;
    struct artifact_record record;
    struct error err;
    if (artifact_complete(x->artifact, x->r->claim->job->format, &record, &err) != STATUS_OK) {
        outcome_fail(o, OUTCOME_FAILED, true, err.text);
        return;
    }
    *o = (struct outcome){
        .kind = OUTCOME_SUCCEEDED, .has_artifact = true, .artifact = record, .rows = -1};
}

static void conclude(struct run *x, const struct program_end *end)
{
    struct outcome *o = &x->r->claim->outcome;
    char text[OUTCOME_ERROR_MAX];
    if (x->too_much) {
        (void)snprintf(text, sizeof text,
                       "the program wrote more than max_output_bytes (%lld); it was killed",
                       (long long)x->settings->max_output_bytes);
        outcome_fail(o, OUTCOME_FAILED, false, text);
    } else if (x->store_status != STATUS_OK) {
        outcome_fail(o, OUTCOME_FAILED, true, x->err.text);
    } else if (x->asked || runner_is_stopped(x->r)) {
        /* Filled in when it was asked to end. */
    } else if (end->deadline) {
        outcome_fail(o, OUTCOME_FAILED, true, RUNNER_EXPIRED); /* before the guard had looked */
    } else if (end->kind == PROGRAM_EXITED && end->code == 0) {
        complete(x);
    } else {
        end_describe(end, text, sizeof text);
        outcome_fail(o, OUTCOME_FAILED, true, text);
    }
    exit_code_set(o, end);
}

void runner_program(struct runner *r)
{
    const struct job *job = r->claim->job;
    struct run x = {.r = r, .settings = program_find(r->settings, job->program)};
    struct error err = {0};
    const struct artifact_store *store = runner_store(r);
    if (store == NULL) {
        return;
    }
    if (x.settings == NULL) {
        char text[200];
        (void)snprintf(text, sizeof text, "program \"%s\" is not in this worker's worker.conf",
                       job->program);
        outcome_fail(&r->claim->outcome, OUTCOME_FAILED, true, text);
        return;
    }
    char *input = job_context(job, r->installation);
    enum status s = input == NULL ? error_set(&err, STATUS_FATAL, "out of memory")
                                  : artifact_create(store, r->installation, job, &x.artifact, &err);
    if (s == STATUS_OK) {
        s = start(&x, input, &err);
    }
    if (s == STATUS_OK) {
        struct program_end end;
        CRASH_POINT("program.started");
        follow(&x);
        program_finish(x.program, &end);
        CRASH_POINT("program.ended");
        conclude(&x, &end);
    } else {
        outcome_fail(&r->claim->outcome, OUTCOME_FAILED, true, err.text);
    }
    artifact_abort(x.artifact);
    free(input);
}
