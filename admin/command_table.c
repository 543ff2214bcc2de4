/* The commands, in the order of the help. docs/reportctl.md and the manual page are printed from
 * these rows (`reportctl help --markdown`, `--man`); a unit test refuses stale ones. */
#include "commands.h"

#define READER   "report_reader"
#define OPERATOR "report_operator"

#define LIMIT(n)                                                                                   \
    {                                                                                              \
        .name = "--limit", .placeholder = "N", .kind = PARAMETER_OPTION, .value = VALUE_INT,       \
        .min = 1, .max = 100000, .fallback = n, .help = "how many rows at most."                   \
    }
#define SCOPE                                                                                      \
    {                                                                                              \
        .name = "--scope", .placeholder = "SCOPE", .kind = PARAMETER_OPTION, .value = VALUE_NAME,  \
        .help = "only this scope."                                                                 \
    }
#define BROKERS                                                                                    \
    {                                                                                              \
        .name = "--brokers", .placeholder = "LIST", .kind = PARAMETER_OPTION, .required = true,    \
        .help = "Kafka's bootstrap servers, host:port separated by commas."                        \
    }
#define TOPIC                                                                                      \
    {                                                                                              \
        .name = "name", .placeholder = "NAME", .kind = PARAMETER_WORD, .required = true,           \
        .help = "the topic."                                                                       \
    }

const struct command command_table[] = {
    {
        .words = "status",
        .summary =
            "How things stand, on one screen: problems first, then scopes and leaders, jobs, "
            "outbox, workers, holds.",
        .details = "PROBLEMS is what somebody should look at, most urgent first, each with what to "
                   "do; \"none\" means that nothing is known to be wrong. DUE LAG is how long the "
                   "oldest due firing has waited to be planned. REFUSED counts writes of "
                   "former leaders within a day: they changed nothing. Counts that could be huge "
                   "stop at a bound and end in +.",
        .privilege = READER,
        .run = status_command,
        .formats = FORMATS_PAGE,
    },
    {
        .words = "leaders",
        .summary = "Who leads each scope, by which generation, since when.",
        .details = "States: active; preparing; silent (no sign of life for 20 seconds); no leader "
                   "(it gave up in order, the reason is shown); never led.",
        .privilege = READER,
        .run = leaders_command,
        .formats = FORMATS_ROWS,
        .parameters = {LIMIT("100")},
    },
    {
        .words = "schedules",
        .summary = "The schedules with their next firing, the state of their last one, and what is "
                   "wrong with them.",
        .privilege = READER,
        .run = schedules_command,
        .formats = FORMATS_ROWS,
        .parameters = {SCOPE,
                       {.name = "--problem",
                        .kind = PARAMETER_FLAG,
                        .help = "only those that cannot be planned, with the reason."},
                       LIMIT("200")},
        .example = "reportctl schedules --problem",
    },
    {
        .words = "schedule",
        .summary = "All about one schedule: definition, next firings, latest occurrences, gaps, "
                   "versions.",
        .privilege = READER,
        .run = schedule_command,
        .formats = FORMATS_PAGE,
        .parameters = {{.name = "schedule",
                        .placeholder = "NAME",
                        .kind = PARAMETER_WORD,
                        .value = VALUE_NAME,
                        .required = true,
                        .help = "the schedule."}},
        .example = "reportctl schedule sales-daily",
    },
    {
        .words = "occurrences",
        .summary = "Firings and what became of each, newest first.",
        .privilege = READER,
        .run = occurrences_command,
        .formats = FORMATS_ROWS,
        .parameters = {{.name = "schedule",
                        .placeholder = "SCHEDULE",
                        .kind = PARAMETER_WORD,
                        .value = VALUE_NAME,
                        .help = "only of this schedule."},
                       {.name = "--from",
                        .placeholder = "INSTANT",
                        .kind = PARAMETER_OPTION,
                        .value = VALUE_INSTANT,
                        .help = "due at or after, e.g. 2030-04-12T00:00:00Z."},
                       {.name = "--to",
                        .placeholder = "INSTANT",
                        .kind = PARAMETER_OPTION,
                        .value = VALUE_INSTANT,
                        .help = "due before."},
                       LIMIT("50")},
        .example = "reportctl occurrences sales-daily --from 2030-04-01T00:00:00+02:00 -o csv",
    },
    {
        .words = "jobs",
        .summary = "Jobs, newest first.",
        .privilege = READER,
        .run = jobs_command,
        .formats = FORMATS_ROWS,
        .parameters = {{.name = "--state",
                        .placeholder = "STATE",
                        .kind = PARAMETER_OPTION,
                        .value = VALUE_CHOICE,
                        .choices = "waiting|queued|running|retry_wait|succeeded|failed|cancelled|"
                                   "quarantined",
                        .help = "only in this state."},
                       {.name = "--schedule",
                        .placeholder = "SCHEDULE",
                        .kind = PARAMETER_OPTION,
                        .value = VALUE_NAME,
                        .help = "only of this schedule."},
                       LIMIT("50")},
        .example = "reportctl jobs --state failed",
    },
    {
        .words = "job",
        .summary =
            "All about one job: its occurrence, state and claim, each attempt with its error, "
            "and the file.",
        .privilege = READER,
        .run = job_command,
        .formats = FORMATS_PAGE,
        .parameters = {{.name = "job",
                        .placeholder = "ID",
                        .kind = PARAMETER_WORD,
                        .required = true,
                        .help = "the job's id, or SCHEDULE:KEY."}},
        .example = "reportctl job sales-daily:2030-04-12",
    },
    {
        .words = "workers",
        .summary = "Worker processes: what they serve and how busy they are.",
        .details = "Those that ended more than an hour ago are left out unless --all is given. "
                   "silent: no heartbeat for half a claim lease.",
        .privilege = READER,
        .run = workers_command,
        .formats = FORMATS_ROWS,
        .parameters = {{.name = "--all",
                        .kind = PARAMETER_FLAG,
                        .help = "also those that ended long ago."},
                       LIMIT("100")},
    },
    {
        .words = "outbox",
        .summary = "Messages that wait for Kafka.",
        .details =
            "Their jobs do not depend on it: workers also pull ready jobs from the database.",
        .privilege = READER,
        .run = outbox_command,
        .formats = FORMATS_PAGE,
        .parameters = {SCOPE,
                       {.name = "--dead",
                        .kind = PARAMETER_FLAG,
                        .help = "those that could not be published, with the reason."},
                       LIMIT("20")},
    },
    {
        .words = "events",
        .summary = "The diary of leadership: elections, step-downs, holds, each with its reason.",
        .privilege = READER,
        .run = events_command,
        .formats = FORMATS_ROWS,
        .parameters = {SCOPE,
                       {.name = "--refused",
                        .kind = PARAMETER_FLAG,
                        .help = "the refused writes of former leaders instead."},
                       LIMIT("50")},
    },
    {
        .words = "trigger",
        .summary = "Fire a schedule now, through its leader.",
        .details = "The request is a row that the leader carries out and answers in one "
                   "transaction; a key that exists already is answered with the job that is there. "
                   "If no leader answers in time the request expires and is not carried out later "
                   "(exit code 4). Repeating a request id gives the first answer, so a lost "
                   "connection costs nothing.",
        .privilege = OPERATOR,
        .run = trigger_command,
        .formats = FORMATS_PAGE,
        .parameters = {{.name = "schedule",
                        .placeholder = "SCHEDULE",
                        .kind = PARAMETER_WORD,
                        .value = VALUE_NAME,
                        .required = true,
                        .help = "the schedule."},
                       {.name = "--key",
                        .placeholder = "KEY",
                        .kind = PARAMETER_OPTION,
                        .help = "the occurrence key, e.g. 2030-04-12; a date at its beginning is "
                                "the business date. Without it the request id is the key."},
                       {.name = "--wait",
                        .placeholder = "SECONDS",
                        .kind = PARAMETER_OPTION,
                        .value = VALUE_INT,
                        .min = 0,
                        .max = 3600,
                        .fallback = "30",
                        .help = "how long the leader may take; 0: do not wait for the answer."},
                       {.name = "--request-id",
                        .placeholder = "UUID",
                        .kind = PARAMETER_OPTION,
                        .value = VALUE_UUID,
                        .help = "identity of the request; made up when not given."}},
        .example = "reportctl trigger sales-daily --key 2030-04-12",
    },
    {
        .words = "next",
        .summary = "When a schedule, or a cron rule, fires next.",
        .details = "Strictly after the database's clock, or after --after. With --cron no server "
                   "is needed; it is the code that plans. One local instant with its offset a "
                   "line, fewer when fewer exist.",
        .privilege = READER " (with --cron: no database)",
        .run = next_command,
        .formats = FORMATS_ROWS,
        .parameters = {{.name = "schedule",
                        .placeholder = "SCHEDULE",
                        .kind = PARAMETER_WORD,
                        .value = VALUE_NAME,
                        .help = "the schedule."},
                       {.name = "--count",
                        .placeholder = "N",
                        .kind = PARAMETER_OPTION,
                        .value = VALUE_INT,
                        .min = 1,
                        .max = 100000,
                        .help = "how many; default 10 for a schedule, 1 with --cron."},
                       {.name = "--cron",
                        .placeholder = "EXPR",
                        .kind = PARAMETER_OPTION,
                        .help = "five fields, or @daily and the like, instead of a schedule."},
                       {.name = "--time-zone",
                        .placeholder = "ZONE",
                        .kind = PARAMETER_OPTION,
                        .help = "with --cron: IANA name, e.g. Europe/Berlin."},
                       {.name = "--after",
                        .placeholder = "INSTANT",
                        .kind = PARAMETER_OPTION,
                        .help = "with --cron: RFC 3339, e.g. 2030-04-12T00:00:00Z."},
                       {.name = "--dst-gap",
                        .placeholder = "POLICY",
                        .kind = PARAMETER_OPTION,
                        .help = "with --cron: auto, after, shift or skip."},
                       {.name = "--dst-overlap",
                        .placeholder = "POLICY",
                        .kind = PARAMETER_OPTION,
                        .help = "with --cron: auto, first, second or both."},
                       {.name = "--utc", .kind = PARAMETER_FLAG, .help = "print in UTC with Z."}},
        .example = "reportctl next --cron '30 6 * * 1-5' --time-zone Europe/Berlin --after "
                   "2030-03-29T00:00:00Z --count 3",
    },
    {
        .words = "migrate",
        .summary = "Create or update the schema: apply the numbered SQL files in order.",
        .details = "Each file in a transaction of its own, with its SHA-256 recorded in "
                   "reports.migration. A file that changed after it was applied, a migration this "
                   "version does not know, and a missing number are refused by name; nothing is "
                   "done then. Two runs at once are safe: the second waits and finds nothing to "
                   "do. --timeout bounds that wait, and each file.",
        .privilege = "a superuser, or a role that may create roles and schemas",
        .run = migrate_command,
        .parameters = {{.name = "--dir",
                        .placeholder = "DIR",
                        .kind = PARAMETER_OPTION,
                        .help = "where the files are; otherwise $REPORTCTL_SQL_DIR, otherwise "
                                "where they are installed."},
                       {.name = "--dry-run",
                        .kind = PARAMETER_FLAG,
                        .help = "only list what is and would be applied."}},
        .example = "reportctl --database dbname=reports migrate",
    },
    {
        .words = "topic create",
        .summary = "Make a Kafka topic for a queue's messages.",
        .run = topic_create_command,
        .parameters = {TOPIC,
                       {.name = "--partitions",
                        .placeholder = "N",
                        .kind = PARAMETER_OPTION,
                        .value = VALUE_INT,
                        .required = true,
                        .min = 1,
                        .max = 10000,
                        .help = "two to three times the largest number of workers."},
                       BROKERS,
                       {.name = "--replication",
                        .placeholder = "N",
                        .kind = PARAMETER_OPTION,
                        .value = VALUE_INT,
                        .min = 1,
                        .max = 100,
                        .fallback = "1",
                        .help = "copies of each partition."},
                       {.name = "--retention-hours",
                        .placeholder = "N",
                        .kind = PARAMETER_OPTION,
                        .value = VALUE_INT,
                        .min = 0,
                        .max = 8760,
                        .fallback = "0",
                        .help = "how long messages are kept; they are hints, hours are enough. 0: "
                                "the broker's default."}},
        .example = "reportctl topic create report-jobs --partitions 12 --brokers kafka:9092",
    },
    {
        .words = "topic delete",
        .summary = "Delete a Kafka topic. Jobs lose nothing: workers pull them from the database.",
        .run = topic_delete_command,
        .parameters = {TOPIC, BROKERS},
    },
    {
        .words = "lifecycle",
        .summary = "The states a scheduler goes through for a scope, and every step between them.",
        .run = lifecycle_command,
        .formats = FORMATS_MARKUP,
    },
    {
        .words = "check-config",
        .summary = "Check a settings file; every fault is one line with what to write instead.",
        .run = check_config_command,
        .parameters = {{.name = "file",
                        .placeholder = "FILE",
                        .kind = PARAMETER_WORD,
                        .required = true,
                        .help = "the file."},
                       {.name = "--kind",
                        .placeholder = "KIND",
                        .kind = PARAMETER_OPTION,
                        .value = VALUE_CHOICE,
                        .choices = "scheduler|worker",
                        .help = "whose settings; otherwise told from the file's name."}},
        .example = "reportctl check-config /etc/report-scheduler/scheduler.conf",
    },
    {
        .words = "config-reference",
        .summary = "Every setting of a program, with unit, default, bounds and why.",
        .run = config_reference_command,
        .parameters = {{.name = "program",
                        .placeholder = "scheduler|worker",
                        .kind = PARAMETER_WORD,
                        .value = VALUE_CHOICE,
                        .required = true,
                        .choices = "scheduler|worker",
                        .help = "the program."}},
    },
    {
        .words = "help",
        .summary = "Help; as a page or a manual page for the documentation.",
        .run = help_command,
        .parameters =
            {{.name = "--markdown", .kind = PARAMETER_FLAG, .help = "print docs/reportctl.md."},
             {.name = "--man", .kind = PARAMETER_FLAG, .help = "print docs/man/reportctl.1."}},
    },
    {.words = "pause",
     .summary = "Stop a schedule for a while.",
     .not_yet = "meanwhile delete the schedule, or set its ends_at"},
    {.words = "resume",
     .summary = "Let a paused schedule go on.",
     .not_yet = "schedules cannot be paused yet"},
    {.words = "cancel",
     .summary = "Cancel a job.",
     .not_yet = "meanwhile the job runs until it ends or its timeout passes"},
    {.words = "retry",
     .summary = "Run a failed job again.",
     .not_yet = "meanwhile trigger its schedule with another --key"},
    {.words = "queue",
     .summary = "Hold or resume a queue.",
     .not_yet = "meanwhile stop the workers that serve it"},
    {.words = "backfill",
     .summary = "Run the firings of a past span.",
     .not_yet = "meanwhile trigger single keys with --key"},
    {.words = "plan",
     .summary = "What will fire when, and how much at once.",
     .not_yet = "meanwhile reportctl next shows one schedule"},
    {.words = "verify",
     .summary = "Prove that every due firing has exactly one occurrence or a recorded gap.",
     .not_yet = "meanwhile reportctl schedule NAME shows occurrences and gaps"},
    {.words = "why",
     .summary = "Why a firing did, or did not, become a report.",
     .not_yet = "meanwhile see reportctl job SCHEDULE:KEY and reportctl schedule NAME"},
    {.words = "handoff",
     .summary = "Pass leadership on as planned.",
     .not_yet = "meanwhile stop the leading report-scheduler: it drains and releases"},
    {.words = "release-hold",
     .summary = "Lift a hold.",
     .not_yet = "meanwhile the owner sets lifted_at in reports.hold"},
    {.words = "fence",
     .summary = "Accept a rebuilt ZooKeeper ensemble (fence rebase).",
     .not_yet = "meanwhile keep the ensemble's data"},
};

const size_t command_count = sizeof command_table / sizeof command_table[0];
