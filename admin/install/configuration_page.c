#include "configuration_page.h"

#include <inttypes.h>
#include <string.h>

#include "scheduler_settings.h"
#include "worker_settings.h"

const struct configuration_page configuration_of_scheduler = {"report-scheduler", "scheduler.conf",
                                                              &scheduler_spec};
const struct configuration_page configuration_of_worker = {"report-worker", "worker.conf",
                                                           &worker_spec};

static const char introduction[] =
    "# Configuration\n"
    "\n"
    "Printed by `reportctl config-reference all` from the tables that the programs parse with; a\n"
    "test compares. [scheduler.conf](#schedulerconf) · [worker.conf](#workerconf) ·\n"
    "[in the database](#what-stands-in-the-database-instead)\n"
    "\n"
    "## How a file is read\n"
    "\n"
    "The form is libconfig's: `key = value;`, text in double quotes, `[\"a\", \"b\"]` for lists,\n"
    "`( { ... }, { ... } )` for lists of groups, `#` and `//` for comments. There is no "
    "`@include`.\n"
    "\n"
    "An unknown key, a wrong type, a value out of bounds or of the wrong form, and values that\n"
    "contradict each other are faults: `file:line: key: what, and what to write instead`, all of\n"
    "them in one run. A program does not start with a fault (exit status 2). What only the\n"
    "surroundings lack (a password file, a directory, a program) is a *warning*: it is written in\n"
    "the same form and to the log at the start, and stops nothing, with two exceptions. A worker "
    "does\n"
    "not start when the first of `artifact_stores` cannot be written, since it would claim jobs "
    "and\n"
    "use up their attempts. A daemon does not start when `http_token_file`,\n"
    "`http_tls_certificate_file` or `http_tls_key_file` cannot be used, since it would serve less\n"
    "than was asked for, or in clear text.\n"
    "\n"
    "```\n"
    "report-scheduler --config FILE --check-config    # faults and warnings; 0 without faults, "
    "else 2\n"
    "report-scheduler --config FILE --print-config    # what is in force, without secrets\n"
    "```\n"
    "\n"
    "The worker has the same options. Check as the daemon's user, or warnings about files speak "
    "of\n"
    "yours: `sudo -u report-worker report-worker --config /etc/report-scheduler/worker.conf\n"
    "--check-config`. `reportctl check-config` reads either file.\n"
    "\n"
    "## Reload\n"
    "\n"
    "SIGHUP (`systemctl reload`) reads the whole file again. With any fault the settings in force\n"
    "stay, every fault is logged, and "
    "`report_scheduler_settings_reloads_total{result=\"refused\"}`\n"
    "(or `report_worker_…`) counts. Otherwise each changed key is logged: those that say *SIGHUP\n"
    "applies a change* below hold from then on; the others are named with \"needs a restart\" and\n"
    "stay as they were. A job that runs keeps the settings it began with. The file is judged both\n"
    "by itself and together with the values that stay.\n"
    "\n"
    "Password files are not part of this: each is read again at every connect, so a new password\n"
    "needs neither a reload nor a restart.\n"
    "\n"
    "## Secrets\n"
    "\n"
    "Secrets stand in files of their own, one line, mode 0600, named by `*_file` settings; a\n"
    "password inside a connection string is refused. They are never on a command line, in the\n"
    "environment, in a log or in `--print-config`.\n"
    "\n"
    "A systemd credential is such a file. In a drop-in (`systemctl edit report-worker`):\n"
    "\n"
    "```\n"
    "[Service]\n"
    "LoadCredential=database.password:/etc/report-scheduler/worker.password\n"
    "```\n"
    "\n"
    "and in worker.conf the path that systemd gives it (`%d/database.password` in a unit):\n"
    "\n"
    "```\n"
    "database_password_file = \"/run/credentials/report-worker.service/database.password\";\n"
    "```\n"
    "\n"
    "The source may then belong to root with mode 0400. A credential is copied when the service\n"
    "starts: to change it, restart.\n"
    "\n"
    "## Times that hang together\n"
    "\n"
    "| rule | why |\n"
    "| --- | --- |\n"
    "| `zookeeper_session_ms` within 2 to 20 × `zookeeper_tick_ms` | the servers grant nothing "
    "else "
    "|\n"
    "| `zookeeper_session_ms` ≥ `zookeeper_tick_ms` + `lease_margin_ms` + 3 heartbeats of a eighth "
    "of "
    "it (at most 1 s) | otherwise no lease is left |\n"
    "| `database_statement_ms` ≤ `lease_margin_ms` | a statement decided under the lease ends "
    "under "
    "it |\n"
    "| `stuck_ms` > `drain_ms` + `database_connect_ms` + `database_statement_ms` | an honest turn "
    "is "
    "not stuck |\n"
    "| `stuck_ms` < `WatchdogSec` of the unit (60 s; worker 120 s) | a stuck scope steps down "
    "before "
    "it is killed |\n"
    "| `stop_ms` ≥ `drain_ms` + 2 × `database_statement_ms`; `TimeoutStopSec` (40 s) ≥ `stop_ms` + "
    "10 "
    "s | drain, release, close the session |\n"
    "| worker: `TimeoutStopSec` (65 s) ≥ `drain_ms` + `kill_grace_ms` + 30 s | jobs end, the rest "
    "is "
    "handed back, outcomes are recorded |\n"
    "| worker: `heartbeat_ms` at most a third of the installation's lease is used | two renewals "
    "may "
    "fail |\n"
    "\n";

static const char in_the_database[] =
    "## What stands in the database instead\n"
    "\n"
    "What the leader and all workers must agree on, and what belongs to one scope or queue, is a\n"
    "column and no setting; `\\d+ reports.installation` shows what each is for.\n"
    "\n"
    "| columns | what | more |\n"
    "| --- | --- | --- |\n"
    "| `installation`: `claim_lease`, `reap_grace` | how long a claim lives without a heartbeat, "
    "and how much later it is reaped | [The claim lease](administration.md#the-claim-lease) |\n"
    "| `installation`: `keep_attempts`, `keep_artifacts`, `keep_deliveries`, `keep_requests`, "
    "`keep_leadership_events`, `keep_fence_rejections` | how long things are kept | "
    "[Retention](administration.md#retention) |\n"
    "| `queue`: `max_outstanding`; `scope`: `catch_up_max`; both: `catch_up_per_minute`, "
    "`catch_up_order` | how many jobs at once, and how fast missed firings are made up for | "
    "[How many at once](schedules.md#how-many-at-once) |\n";

void configuration_print(const struct configuration_page *page, FILE *to)
{
    (void)fprintf(to, "## %s\n\nSettings of %s; `%s --print-settings` prints the keys alone.\n\n",
                  page->file, page->program, page->program);
    settings_print_reference(page->spec->table, page->spec->count, to);
}

void configuration_print_all(FILE *to)
{
    (void)fputs(introduction, to);
    configuration_print(&configuration_of_scheduler, to);
    configuration_print(&configuration_of_worker, to);
    (void)fputs(in_the_database, to);
}

/* ---- manual pages ---- */

/* Text of ours: backquotes mean bold; a line never begins with a control character. */
static void man_text(const char *text, FILE *to)
{
    bool bold = false;
    for (const char *p = text; *p != '\0'; p++) {
        switch (*p) {
        case '`':
            bold = !bold;
            (void)fputs(bold ? "\\fB" : "\\fR", to);
            break;
        case '\\':
            (void)fputs("\\e", to);
            break;
        case '-':
            (void)fputs("\\-", to);
            break;
        case '\n':
            (void)fputc(' ', to);
            break;
        default:
            (void)fputc(*p, to);
            break;
        }
    }
    (void)fputc('\n', to);
}

static void man_key(const struct setting *s, const char *prefix, FILE *to)
{
    char facts[SETTING_TEXT_MAX + 256];
    (void)fprintf(to, ".TP\n\\fB%s", prefix);
    (void)fprintf(to, "%s\\fR\n", s->key);
    man_text(s->why, to);
    setting_facts(s, facts, sizeof facts);
    (void)fputs(".br\n", to);
    man_text(facts, to);
}

void configuration_print_man(const struct configuration_page *page, FILE *to)
{
    char prefix[64];
    (void)fprintf(to,
                  ".TH %s 5\n.SH NAME\n%s \\- settings of %s\n.SH DESCRIPTION\n"
                  "libconfig's form: key = value; with text in double quotes. Faults are refused "
                  "as file:line: key: what, and what to write instead; \\fB%s \\-\\-config FILE "
                  "\\-\\-check\\-config\\fR says them all. SIGHUP applies what is marked so.\n"
                  ".SH SETTINGS\n",
                  page->file, page->file, page->program, page->program);
    for (size_t i = 0; i < page->spec->count; i++) {
        const struct setting *s = &page->spec->table[i];
        man_key(s, "", to);
        for (size_t f = 0; s->type == SETTING_GROUPS && f < s->field_count; f++) {
            (void)snprintf(prefix, sizeof prefix, "%s[].", s->key);
            man_key(&s->fields[f], prefix, to);
        }
    }
    (void)fprintf(to,
                  ".SH FILES\n/etc/report\\-scheduler/%s\n.SH SEE ALSO\n\\fB%s\\fR(8), "
                  "\\fBreportctl\\fR(1)\n",
                  page->file, page->program);
}
