/* Apply sql/NNNN_name.sql in order, each in a transaction of its own together with its ledger row.
 *
 * Two runs at once are ordered by a session advisory lock; the second finds nothing to do. The lock
 * goes with the connection, so a run that dies leaves neither a lock nor half a migration. */
#include "commands.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "migration.h"
#include "session.h"
#include "store_admin.h"
#include "version.h"

#define LOOK_MS 200 /* between two tries for the lock */
/* hashtext('reportctl migrate') would depend on the server's version; this is a constant. */
#define LOCK_KEY "7235403218823168"

struct run {
    struct session session;
    const char *directory;
    struct migration_set files, applied;
    size_t first;
};

static enum exit_code migrate_fail(struct run *r, enum status s, const struct error *err)
{
    switch (s) {
    case STATUS_CONFLICT:
        return command_fail(r->session.in, EXIT_FAILED, "%s", err->text);
    case STATUS_INVALID:
        return err->code[0] != '\0' ? session_fail(&r->session, s, err)
                                    : command_fail(r->session.in, EXIT_USAGE, "%s", err->text);
    case STATUS_NOT_FOUND:
        return command_fail(r->session.in, EXIT_USAGE, "%s", err->text);
    case STATUS_OK:
    case STATUS_AGAIN:
    case STATUS_TIMEOUT:
    case STATUS_FENCED:
    case STATUS_HELD:
    case STATUS_CORRUPT:
    case STATUS_FULL:
    case STATUS_FATAL:
        break;
    }
    return session_fail(&r->session, s, err);
}

/* --dir, $REPORTCTL_SQL_DIR, or where they are installed; nothing is guessed. */
static const char *directory_of(const struct invocation *in)
{
    const char *given = command_text(in, "--dir");
    const char *environment = getenv("REPORTCTL_SQL_DIR");
    if (given != NULL) {
        return given;
    }
    return environment != NULL && environment[0] != '\0' ? environment : RS_DATA_DIR "/sql";
}

/* --timeout bounds each step by itself: the wait for the lock, and every file. */
static void deadline_renew(struct run *r)
{
    r->session.deadline = instant_add_ms(clock_now(), r->session.in->timeout_s * 1000);
}

static enum exit_code lock_take(struct run *r)
{
    bool said = false;
    instant until = r->session.deadline;
    for (;;) {
        deadline_renew(r);
        struct table *t = NULL;
        enum exit_code code =
            session_select(&r->session, "SELECT pg_try_advisory_lock(" LOCK_KEY ")", 0, NULL, &t);
        if (code != EXIT_DONE) {
            return code;
        }
        bool got = table_cell(t, 0, 0)[0] == 't';
        table_free(t);
        if (got) {
            return EXIT_DONE;
        }
        if (!instant_before(clock_now(), until)) {
            return command_fail(r->session.in, EXIT_FAILED,
                                "another reportctl migrate has been running for %lld s; try again "
                                "when it has ended",
                                (long long)r->session.in->timeout_s);
        }
        if (!said) {
            (void)fputs("reportctl: waiting for another reportctl migrate\n",
                        r->session.in->errors);
            said = true;
        }
        struct pollfd p = {.fd = store_fd(r->session.store), .events = POLLIN};
        (void)poll(&p, 1, LOOK_MS);
    }
}

/* The ledger is made by the first run; 0001 gives it to report_owner. */
static enum exit_code ledger_make(struct run *r)
{
    static const char script[] =
        "CREATE SCHEMA IF NOT EXISTS reports;"
        "CREATE TABLE IF NOT EXISTS reports.migration ("
        " number integer PRIMARY KEY, name text NOT NULL,"
        " checksum text NOT NULL CHECK (checksum ~ '^[0-9a-f]{64}$'),"
        " applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),"
        " applied_by text NOT NULL DEFAULT session_user);"
        "COMMENT ON TABLE reports.migration IS"
        " 'Migrations that reportctl migrate has applied; a file that changed since is refused.';"
        "COMMENT ON COLUMN reports.migration.number IS 'Order: 1, 2, 3 ... without gaps.';"
        "COMMENT ON COLUMN reports.migration.name IS 'File name without .sql.';"
        "COMMENT ON COLUMN reports.migration.checksum IS 'SHA-256 of the file.';"
        "COMMENT ON COLUMN reports.migration.applied_at IS 'When.';"
        "COMMENT ON COLUMN reports.migration.applied_by IS 'Login role that applied it.'";
    struct error err = {0};
    long position = 0;
    enum status s =
        store_admin_script(r->session.store, script, r->session.deadline, &position, &err);
    return s == STATUS_OK ? EXIT_DONE : session_fail(&r->session, s, &err);
}

static enum exit_code ledger_exists(struct run *r, bool *ret_exists)
{
    struct table *t = NULL;
    enum exit_code code = session_select(
        &r->session, "SELECT to_regclass('reports.migration') IS NOT NULL", 0, NULL, &t);
    if (code == EXIT_DONE) {
        *ret_exists = table_cell(t, 0, 0)[0] == 't';
    }
    table_free(t);
    return code;
}

static enum exit_code ledger_read(struct run *r)
{
    struct table *t = NULL;
    enum exit_code code = session_select(
        &r->session,
        "SELECT number, name, checksum FROM reports.migration ORDER BY number LIMIT 512", 0, NULL,
        &t);
    if (code != EXIT_DONE) {
        return code;
    }
    for (size_t i = 0; i < table_rows(t) && i < MIGRATIONS_MAX; i++) {
        struct migration *m = &r->applied.items[i];
        m->number = (int)strtol(table_cell(t, i, 0), NULL, 10);
        (void)snprintf(m->name, sizeof m->name, "%s", table_cell(t, i, 1));
        (void)snprintf(m->checksum, sizeof m->checksum, "%s", table_cell(t, i, 2));
        r->applied.count = i + 1;
    }
    table_free(t);
    return EXIT_DONE;
}

/* The script and its ledger row in one string: the simple protocol makes one transaction of it. */
static char *script_compose(const char *script, const struct migration *m)
{
    static const char form[] =
        "\n;RESET ROLE; INSERT INTO reports.migration (number, name, checksum)"
        " VALUES (%d, '%s', '%s')";
    size_t size = strlen(script) + sizeof form + sizeof m->name + sizeof m->checksum + 16;
    char *text = malloc(size);
    if (text != NULL) {
        size_t n = strlen(script);
        memcpy(text, script, n);
        (void)snprintf(text + n, size - n, form, m->number, m->name, m->checksum);
    }
    return text;
}

static enum exit_code migration_apply(struct run *r, const struct migration *m)
{
    struct error err = {0};
    char *script = NULL;
    long position = -1;
    deadline_renew(r);
    enum status s = migration_read(r->directory, m, &script, &err);
    if (s != STATUS_OK) {
        return migrate_fail(r, s, &err);
    }
    char *whole = script_compose(script, m);
    s = whole == NULL
            ? error_set(&err, STATUS_FATAL, "out of memory")
            : store_admin_script(r->session.store, whole, r->session.deadline, &position, &err);
    enum exit_code code = EXIT_DONE;
    if (s != STATUS_OK && position >= 0) {
        code = command_fail(r->session.in, EXIT_FAILED, "%s/%s.sql:%d: %s (rolled back)",
                            r->directory, m->name, migration_line_at(script, position), err.text);
    } else if (s != STATUS_OK) {
        (void)error_prefix(&err, s, "%s/%s.sql", r->directory, m->name);
        code = command_fail(r->session.in, EXIT_FAILED, "%s (rolled back)", err.text);
    } else {
        (void)fprintf(r->session.in->out, "%s applied\n", m->name);
        (void)fflush(r->session.in->out);
    }
    free(whole);
    free(script);
    return code;
}

/* Read the ledger (if there is one) and find the first file to apply. */
static enum exit_code plan_make(struct run *r)
{
    struct error err = {0};
    bool exists = false;
    enum exit_code code = ledger_exists(r, &exists);
    if (code == EXIT_DONE && exists) {
        code = ledger_read(r);
    }
    if (code != EXIT_DONE) {
        return code;
    }
    enum status s = migration_set_compare(&r->files, &r->applied, &r->first, &err);
    return s == STATUS_OK ? EXIT_DONE : migrate_fail(r, s, &err);
}

static enum exit_code dry_run(struct run *r)
{
    enum exit_code code = plan_make(r);
    for (size_t i = 0; i < r->files.count && code == EXIT_DONE; i++) {
        (void)fprintf(r->session.in->out, "%s %s\n", r->files.items[i].name,
                      i < r->first ? "is applied" : "would be applied");
    }
    return code;
}

static enum exit_code real_run(struct run *r)
{
    enum exit_code code = lock_take(r);
    if (code == EXIT_DONE) {
        code = plan_make(r);
    }
    if (code == EXIT_DONE && r->first == r->files.count) {
        (void)fprintf(r->session.in->out, "nothing to do: %zu migrations are applied\n", r->first);
        return EXIT_DONE;
    }
    if (code == EXIT_DONE && r->applied.count == 0) {
        code = ledger_make(r);
    }
    for (size_t i = r->first; i < r->files.count && code == EXIT_DONE; i++) {
        code = migration_apply(r, &r->files.items[i]);
    }
    return code;
}

enum exit_code migrate_command(struct invocation *in)
{
    struct run *r = calloc(1, sizeof *r); /* two sets of migrations are too much for a stack */
    struct error err = {0};
    if (r == NULL) {
        return command_fail(in, EXIT_FAILED, "out of memory");
    }
    r->session.in = in;
    r->directory = directory_of(in);
    enum status s = migration_set_read(r->directory, &r->files, &err);
    enum exit_code code = s == STATUS_OK ? session_open(in, &r->session) : migrate_fail(r, s, &err);
    if (code == EXIT_DONE) {
        code = command_flag(in, "--dry-run") ? dry_run(r) : real_run(r);
    }
    session_close(&r->session);
    free(r);
    return code;
}
