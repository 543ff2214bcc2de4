/* The commands, in the order of the help. docs/reportctl.md and the manual page are printed from
 * these rows (`reportctl help --markdown`, `--man`); a unit test refuses stale ones. */
#include "command_arguments.h"
#include "commands.h"

/* table: exempt from the length limit */
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
                       {.name = "--paused", .kind = PARAMETER_FLAG, .help = "only paused ones."},
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
        .summary = "Jobs, those planned last first.",
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
                       {.name = "--queue",
                        .placeholder = "QUEUE",
                        .kind = PARAMETER_OPTION,
                        .value = VALUE_NAME,
                        .help = "only of this queue."},
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
        .details = "Those that ended more than a day ago are left out unless --all is given. "
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
        .details = "A key that exists already is answered with the job that is there. " REQUEST,
        .privilege = OPERATOR,
        .run = trigger_command,
        .formats = FORMATS_PAGE,
        .parameters = {SCHEDULE,
                       {.name = "--key",
                        .placeholder = "KEY",
                        .kind = PARAMETER_OPTION,
                        .help = "the occurrence key, e.g. 2030-04-12; a date at its beginning is "
                                "the business date. Without it the request id is the key."},
                       WAIT,
                       REQUEST_ID},
        .example = "reportctl trigger sales-daily --key 2030-04-12",
    },
    {
        .words = "pause",
        .summary = "Stop a schedule for a while, through its leader.",
        .details =
            "From now on nothing of it fires; what was due before still does, and jobs that "
            "were made go on. The firings between pause and resume become one gap row with "
            "reason paused. With --until its leader lets it go on at that instant by itself; "
            "asked again, the end is the one that was given last, and none without "
            "--until. " REQUEST,
        .privilege = OPERATOR,
        .run = pause_command,
        .formats = FORMATS_PAGE,
        .parameters = {SCHEDULE,
                       REASON("why; shown with the schedule."),
                       {.name = "--until",
                        .placeholder = "INSTANT",
                        .kind = PARAMETER_OPTION,
                        .value = VALUE_INSTANT,
                        .help = "when it goes on by itself, e.g. 2030-04-12T06:00:00+02:00."},
                       WAIT,
                       REQUEST_ID},
        .example = "reportctl pause sales-daily --reason 'the source is being moved' --until "
                   "2030-04-12T06:00:00+02:00",
    },
    {
        .words = "resume",
        .summary = "Let a paused schedule go on, through its leader.",
        .details =
            "Firings due from now on are run; those of the pause are not made up for. " REQUEST,
        .privilege = OPERATOR,
        .run = resume_command,
        .formats = FORMATS_PAGE,
        .parameters = {SCHEDULE, REASON("why."), WAIT, REQUEST_ID},
        .example = "reportctl resume sales-daily",
    },
    {
        .words = "breaker close",
        .summary = "Close the circuit breaker of a schedule, through its leader.",
        .details =
            "Its firings are run again from the next one on, and failed jobs are counted anew. "
            "What was suppressed stays in its gap. " REQUEST,
        .privilege = OPERATOR,
        .run = breaker_close_command,
        .formats = FORMATS_PAGE,
        .parameters = {SCHEDULE, REASON("why."), WAIT, REQUEST_ID},
        .example = "reportctl breaker close sales-daily --reason 'the table is back'",
    },
    {
        .words = "cancel",
        .summary = "Cancel a job, through its leader.",
        .details = "A job that waits is cancelled at once. One that runs is told to stop with its "
                   "next heartbeat; whatever it comes to, it ends as cancelled and its file is not "
                   "shown. " REQUEST,
        .privilege = OPERATOR,
        .run = cancel_command,
        .formats = FORMATS_PAGE,
        .parameters = {JOB, REASON("why."), WAIT, REQUEST_ID},
        .example = "reportctl cancel sales-daily:2030-04-12",
    },
    {
        .words = "retry",
        .summary = "Run a failed or cancelled job again, through its leader.",
        .details =
            "It gets a fresh set of attempts and keeps its occurrence, key and business "
            "date. A job that succeeded is refused without --again, by which it becomes its next "
            "revision: the file that is there is kept, and superseded when another is "
            "made. " REQUEST,
        .privilege = OPERATOR,
        .run = retry_command,
        .formats = FORMATS_PAGE,
        .parameters = {JOB,
                       {.name = "--again",
                        .kind = PARAMETER_FLAG,
                        .help = "also a job that succeeded."},
                       WAIT,
                       REQUEST_ID},
        .example = "reportctl retry sales-daily:2030-04-12",
    },
    {
        .words = "backfill",
        .summary = "Run the firings of a past span that were never run, through the leader.",
        .details =
            "The firings are those that the rule names now, with keys from --from to --to (both "
            "included; the beginning of a key stands for all that begin so), at most 1000 a "
            "request. A key that has an occurrence already is skipped and listed, whatever became "
            "of that; a gap that covers a key stays recorded. The jobs have the lowest priority, "
            "count in the catch-up budget of the scope, and keep apart from the overlap policy: a "
            "schedule that does not allow overlap is refused without --beside. --cancel ends what "
            "is still open of an earlier backfill. " REQUEST,
        .privilege = OPERATOR,
        .run = backfill_command,
        .formats = FORMATS_ROWS,
        .parameters = {SCHEDULE,
                       {.name = "--from",
                        .placeholder = "KEY",
                        .kind = PARAMETER_OPTION,
                        .help = "the first key, e.g. 2030-04-12, or a month."},
                       {.name = "--to",
                        .placeholder = "KEY",
                        .kind = PARAMETER_OPTION,
                        .help = "the last key."},
                       {.name = "--dry-run",
                        .kind = PARAMETER_FLAG,
                        .help = "ask for nothing, and show what would become of each firing."},
                       {.name = "--beside",
                        .kind = PARAMETER_FLAG,
                        .help = "its jobs may run beside each other and beside the schedule's own, "
                                "although that does not allow overlap."},
                       {.name = "--cancel",
                        .placeholder = "REQUEST",
                        .kind = PARAMETER_OPTION,
                        .value = VALUE_UUID,
                        .help = "cancel the open jobs of the backfill with this request id."},
                       WAIT,
                       REQUEST_ID},
        .example = "reportctl backfill sales-daily --from 2030-04-01 --to 2030-04-30 --dry-run",
    },
    {
        .words = "handoff",
        .summary = "Pass the leadership of a scope on, as planned.",
        .details =
            "The leader goes on until its successor has confirmed that it is next in line and can "
            "take over; then it drains, releases, and the successor leads some milliseconds later. "
            "Printed are that gap and who leads now. If the successor is not known, not ready, or "
            "does not confirm, the leader stays and the reason is printed. The request names the "
            "generation to leave, so that repeating its id moves nothing a second time.",
        .privilege = OPERATOR,
        .run = handoff_command,
        .formats = FORMATS_PAGE,
        .parameters = {{.name = "scope",
                        .placeholder = "SCOPE",
                        .kind = PARAMETER_WORD,
                        .value = VALUE_NAME,
                        .required = true,
                        .help = "the scope."},
                       {.name = "--to",
                        .placeholder = "MEMBER",
                        .kind = PARAMETER_OPTION,
                        .help = "name of the scheduler that is to lead; without it the next in "
                                "line."},
                       WAIT,
                       REQUEST_ID},
        .example = "reportctl handoff main --to scheduler-2",
    },
    {
        .words = "catchup show",
        .summary = "After an outage: what of the missed firings waits, and when it will be done.",
        .details =
            "MAX is catch_up_max, the most that run at once; A MINUTE is catch_up_per_minute, of "
            "the scope and of the queues; FIRST is catch_up_order. LAST MINUTE is how many were "
            "released in it, and EXPECTED END when the last will be at that rate, or before any "
            "was at A MINUTE. BACKFILL are those that somebody asked for. Live work goes before "
            "all of it. Counting stops at 100 000.",
        .privilege = READER,
        .run = catchup_show_command,
        .formats = FORMATS_PAGE,
        .parameters = {{.name = "scope",
                        .placeholder = "SCOPE",
                        .kind = PARAMETER_WORD,
                        .value = VALUE_NAME,
                        .help = "only this scope."}},
        .example = "reportctl catchup show",
    },
    {
        .words = "catchup discard",
        .summary = "Give up missed firings that wait, through the leader.",
        .details =
            "Their jobs are cancelled, with who asked and why, and a record is kept for ever "
            "(reportctl schedule shows it). What is queued or runs already stays, and so do jobs "
            "of a backfill (backfill --cancel ends those) and all live work; retry brings one "
            "back. At most 5000 are discarded at once; the answer says whether more wait. Asks "
            "first. " REQUEST,
        .privilege = OPERATOR,
        .run = catchup_discard_command,
        .formats = FORMATS_ROWS,
        .parameters = {{.name = "schedule",
                        .placeholder = "SCHEDULE",
                        .kind = PARAMETER_WORD,
                        .value = VALUE_NAME,
                        .help = "those of this schedule."},
                       {.name = "--queue",
                        .placeholder = "QUEUE",
                        .kind = PARAMETER_OPTION,
                        .value = VALUE_NAME,
                        .help = "those of all schedules in this queue."},
                       {.name = "--scope",
                        .placeholder = "SCOPE",
                        .kind = PARAMETER_OPTION,
                        .value = VALUE_NAME,
                        .help = "with --queue: of this scope; needed where there are several."},
                       {.name = "--before",
                        .placeholder = "INSTANT",
                        .kind = PARAMETER_OPTION,
                        .value = VALUE_INSTANT,
                        .help = "only what was due before."},
                       REASON("why; kept with who asked. Needed."),
                       {.name = "--dry-run",
                        .kind = PARAMETER_FLAG,
                        .help = "ask for nothing, and show what would be discarded."},
                       YES,
                       WAIT,
                       REQUEST_ID},
        .example = "reportctl catchup discard sales-hourly --reason 'yesterday is of no use'",
    },
    {
        .words = "requests",
        .summary = "What was asked of the leaders, with the answers, newest first.",
        .privilege = READER,
        .run = requests_command,
        .formats = FORMATS_ROWS,
        .parameters = {SCOPE,
                       {.name = "--state",
                        .placeholder = "STATE",
                        .kind = PARAMETER_OPTION,
                        .value = VALUE_CHOICE,
                        .choices = "pending|done|refused|expired",
                        .help = "only in this state."},
                       LIMIT("50")},
    },
    {
        .words = "queues",
        .summary = "The queues: bound, what is queued, running and waiting, and who serves them.",
        .details = "BOUND is max_outstanding, the most jobs queued and running in a scope; - is no "
                   "bound. WAITING holds back for capacity, overlap or a retry. WORKERS are alive "
                   "and serve the queue; SLOTS is how many jobs they run at once.",
        .privilege = READER,
        .run = queues_command,
        .formats = FORMATS_ROWS,
        .parameters = {LIMIT("200")},
    },
    {
        .words = "queue hold",
        .summary = "Stop workers from claiming jobs of a queue.",
        .details = "Planning goes on, so jobs gather; running ones go on. No leader is needed.",
        .privilege = OPERATOR,
        .run = queue_hold_command,
        .parameters = {QUEUE,
                       {.name = "--reason",
                        .placeholder = "TEXT",
                        .kind = PARAMETER_OPTION,
                        .fallback = "no reason given",
                        .help = "why; shown wherever the hold is."}},
        .example = "reportctl queue hold warehouse --reason 'load window'",
    },
    {
        .words = "queue resume",
        .summary = "Let a held queue go on: lifts every hold on it.",
        .privilege = OPERATOR,
        .run = queue_resume_command,
        .parameters = {QUEUE},
    },
    {
        .words = "hold",
        .summary = "Stop a scope, or the whole installation, until the hold is lifted.",
        .details = "Nothing is planned, published or claimed there; running jobs go on and their "
                   "outcomes are recorded. Firings that fall due meanwhile follow the misfire "
                   "policy afterwards. No leader is needed.",
        .privilege = OPERATOR,
        .run = hold_command,
        .parameters = {{.name = "reason",
                        .placeholder = "REASON",
                        .kind = PARAMETER_WORD,
                        .help = "why; shown wherever the hold is."},
                       REASON("the same; one of the two is needed."),
                       SCOPE},
        .example = "reportctl hold --scope main --reason 'the warehouse is being moved'",
    },
    {
        .words = "holds",
        .summary = "The holds that stand: on what, since when, by whom, why.",
        .privilege = READER,
        .run = holds_command,
        .formats = FORMATS_ROWS,
        .parameters = {{.name = "--all",
                        .kind = PARAMETER_FLAG,
                        .help = "also those that were lifted, newest first."},
                       LIMIT("100")},
    },
    {
        .words = "clocks",
        .summary = "Each scheduler's clock against PostgreSQL's, and the steps it has seen.",
        .details = "Offset is the machine's wall clock minus PostgreSQL's, known to half of the "
                   "round trip; no firing depends on it. A step is what PostgreSQL's clock went "
                   "further than the machine's; verdict says what came of it: raised (the hold "
                   "clock_hold), known (it stood already), own (the machine had been stopped), "
                   "waits (for other machines).",
        .privilege = READER,
        .run = clocks_command,
        .formats = FORMATS_ROWS,
        .parameters = {LIMIT("100")},
    },
    {
        .words = "tz status",
        .summary = "Time zones in use, by whose data their firings are stored, and this machine's.",
        .details =
            "Standing is that of this machine's data to what computed the stored firings: same; "
            "older (stored by an older tzdata: a leader with this machine's data would compute "
            "them again); other (of the same version, with another digest: the same); newer (such "
            "a leader would leave them as they stand); unknown; unreadable (this machine has no "
            "good file of the zone). Settled: the leader has gone through all firings of the zone "
            "since its data changed. Set RS_TZDIR where the scheduler has tz_directory. Reads "
            "every schedule.",
        .privilege = READER,
        .run = tz_status_command,
        .formats = FORMATS_ROWS,
        .parameters = {LIMIT("1000")},
        .example = "reportctl tz status -o csv",
    },
    {
        .words = "tz drift",
        .summary = "Stored firings that this machine's time zone data put at another instant.",
        .details = "What a leader with this machine's tzdata would move, and by how many seconds; "
                   "keys never move. Reads every schedule.",
        .privilege = READER,
        .run = tz_drift_command,
        .formats = FORMATS_ROWS,
        .parameters = {{.name = "--time-zone",
                        .placeholder = "ZONE",
                        .kind = PARAMETER_OPTION,
                        .help = "only schedules in this zone."},
                       LIMIT("100")},
        .example = "RS_TZDIR=/srv/tzdata-2026f reportctl tz drift --time-zone America/Vancouver",
    },
    {
        .words = "release-hold",
        .summary = "Lift a hold.",
        .details = "Of a hold that a guard raised for a database that forgot something "
                   "(database_rewound) it shows first what may be run and sent again, and asks. "
                   "zxid_regressed is lifted by reportctl fence rebase only.",
        .privilege = OPERATOR,
        .run = release_hold_command,
        .parameters = {{.name = "hold",
                        .placeholder = "ID",
                        .kind = PARAMETER_WORD,
                        .value = VALUE_INT,
                        .required = true,
                        .min = 1,
                        .max = INT64_MAX,
                        .help = "its number, as reportctl holds shows it."},
                       YES},
        .example = "reportctl release-hold 3",
    },
    {
        .words = "fence show",
        .summary =
            "Whose writes are accepted in each scope, on which server and ensemble, and what "
            "forbids the work.",
        .details =
            "MARK is the newest job that ZooKeeper or the leader remembered when it was "
            "established; a database that does not know it is held (database_rewound). MOVED: "
            "no leader has looked at this PostgreSQL server since it started, so nothing of "
            "the scope is claimed or sent. REFUSED ENSEMBLES are those that schedulers are "
            "HELD for: INSTALLATION names whose the zookeeper_root is (root_taken), without one it "
            "is ensemble_unknown.",
        .privilege = READER,
        .run = fence_show_command,
        .formats = FORMATS_PAGE,
        .parameters = {SCOPE},
    },
    {
        .words = "fence rebase",
        .summary =
            "Go over to a ZooKeeper ensemble that was rebuilt, or restored from an older state.",
        .details =
            "Adopts the ensemble that waiting schedulers see, as the next incarnation, for all "
            "scopes at once; lifts the holds zxid_regressed. Who did it and why stands in "
            "reportctl events. It shows what it will do and asks first. While a leader of the "
            "ensemble in force gives signs of life it is refused: stop those schedulers. With "
            "--force they are fenced at once and wait in HELD.",
        .privilege = OPERATOR,
        .run = fence_rebase_command,
        .parameters = {{.name = "--reason",
                        .placeholder = "TEXT",
                        .kind = PARAMETER_OPTION,
                        .required = true,
                        .help = "what became of the old ensemble."},
                       {.name = "--ensemble",
                        .placeholder = "ID",
                        .kind = PARAMETER_OPTION,
                        .help =
                            "which one, when schedulers see several; reportctl fence show lists "
                            "them."},
                       {.name = "--force",
                        .kind = PARAMETER_FLAG,
                        .help = "although a leader of the ensemble in force lives."},
                       YES},
        .example = "reportctl fence rebase --reason 'all three disks were lost, CHG-4711'",
    },
    {
        .words = "fence audit",
        .summary =
            "Check that generations only grew and that nothing of a former leader got through.",
        .details = "A finding is either wrong, which must never be (exit code 1), or worth a look: "
                   "writes of former leaders that were refused, by function and member; their "
                   "sessions that are still connected; guards that hold a scope. With --strict any "
                   "finding makes the exit code 1, for cron.",
        .privilege = READER,
        .run = fence_audit_command,
        .formats = FORMATS_ROWS,
        .parameters = {{.name = "--hours",
                        .placeholder = "N",
                        .kind = PARAMETER_OPTION,
                        .value = VALUE_INT,
                        .min = 1,
                        .max = 87600,
                        .fallback = "24",
                        .help = "how far back refused writes are counted."},
                       {.name = "--strict",
                        .kind = PARAMETER_FLAG,
                        .help = "exit code 1 for whatever is found."}},
        .example = "reportctl fence audit --strict",
    },
    {
        .words = "why",
        .summary = "What became of one firing, and why: each step from the rule to the file, or "
                   "why nothing exists.",
        .details =
            "Asked by SCHEDULE@TIME, where TIME is local to the schedule's zone "
            "(2030-04-12T06:00), an instant (2030-04-12T04:00:00Z) or a date, or by SCHEDULE:KEY; "
            "SCHEDULE alone means its latest firing. AFTER is the time since the step before. "
            "Where there is no occurrence it says why: not due yet, paused, a problem, a gap and "
            "its reason, before starts_at, after ends_at, deleted, no leader, held, a day that the "
            "calendar takes away, or a time that the rule does not name, with the nearest before "
            "and after. Where a calendar moves firings, TIME means what runs then, or else what is "
            "about it, and KEY only the latter.",
        .privilege = READER,
        .run = why_command,
        .formats = FORMATS_PAGE,
        .parameters = {{.name = "subject",
                        .placeholder = "SUBJECT",
                        .kind = PARAMETER_WORD,
                        .required = true,
                        .help = "SCHEDULE@TIME, SCHEDULE:KEY or SCHEDULE."}},
        .example = "reportctl why sales-daily@2030-04-12T06:00",
    },
    {
        .words = "verify",
        .summary = "Prove that each firing that was due has exactly one occurrence, or lies in a "
                   "recorded gap.",
        .details =
            "Recomputes what each version of each schedule had to fire while it was in force, with "
            "the code that plans, and compares it with the record: firings that are missing, "
            "occurrences that no version names, gaps that do not say what they cover, jobs, "
            "attempts and files that do not fit their firing, progress that would pass something "
            "over. Exit code 0: proved; 1: something is wrong; 2: it could not be checked, or not "
            "all of it; for cron and CI. Findings of verdict look are no fault and change no exit "
            "code. FIRINGS counts firings that follow one another, of which KEY and TIME are the "
            "first. NOT YET in the summary: due since less than --grace and not planned. It reads "
            "only, in chunks; --timeout bounds each. What it cannot find: docs/operations.md.",
        .privilege = READER,
        .run = verify_command,
        .formats = FORMATS_ROWS,
        .parameters = {{.name = "--from",
                        .placeholder = "INSTANT",
                        .kind = PARAMETER_OPTION,
                        .value = VALUE_INSTANT,
                        .help = "firings due at or after; default 31 days before --to."},
                       {.name = "--to",
                        .placeholder = "INSTANT",
                        .kind = PARAMETER_OPTION,
                        .value = VALUE_INSTANT,
                        .help = "firings due before; default now."},
                       {.name = "--schedule",
                        .placeholder = "SCHEDULE",
                        .kind = PARAMETER_OPTION,
                        .value = VALUE_NAME,
                        .help = "only this schedule."},
                       {.name = "--grace",
                        .placeholder = "SECONDS",
                        .kind = PARAMETER_OPTION,
                        .value = VALUE_INT,
                        .min = 0,
                        .max = 86400,
                        .fallback = "60",
                        .help = "how long after it is due a firing may be without its occurrence."},
                       LIMIT("1000")},
        .example = "reportctl verify --from 2030-04-01T00:00:00Z --to 2030-05-01T00:00:00Z -o csv",
    },
    {
        .words = "next",
        .summary = "When a schedule, a cron rule or a recurrence rule fires next.",
        .details = "Strictly after the database's clock, or after --after. With --cron or --rrule "
                   "no server is needed; it is the code that plans. One local instant with its "
                   "offset a line, fewer when fewer exist.",
        .privilege = READER " (with --cron or --rrule: no database)",
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
                        .help = "how many; default 10 for a schedule, otherwise 1."},
                       {.name = "--cron",
                        .placeholder = "EXPR",
                        .kind = PARAMETER_OPTION,
                        .help = "five to seven fields, or @daily and the like, instead of a "
                                "schedule."},
                       {.name = "--dialect",
                        .placeholder = "DIALECT",
                        .kind = PARAMETER_OPTION,
                        .help = "with --cron: std, or quartz: 6 or 7 fields, weekdays 1-7 from "
                                "Sunday, ? in one day field."},
                       {.name = "--rrule",
                        .placeholder = "RULE",
                        .kind = PARAMETER_OPTION,
                        .help = "a recurrence rule of RFC 5545, e.g. FREQ=MONTHLY;BYDAY=-1FR."},
                       {.name = "--start",
                        .placeholder = "LOCAL",
                        .kind = PARAMETER_OPTION,
                        .help = "with --rrule: DTSTART, e.g. 2030-04-12T06:00:00."},
                       {.name = "--exdate",
                        .placeholder = "LOCAL,...",
                        .kind = PARAMETER_OPTION,
                        .help = "with --rrule: local times that do not fire."},
                       {.name = "--rdate",
                        .placeholder = "LOCAL,...",
                        .kind = PARAMETER_OPTION,
                        .help = "with --rrule: local times that fire besides."},
                       {.name = "--time-zone",
                        .placeholder = "ZONE",
                        .kind = PARAMETER_OPTION,
                        .help = "with --cron or --rrule: IANA name, e.g. Europe/Berlin."},
                       {.name = "--after",
                        .placeholder = "INSTANT",
                        .kind = PARAMETER_OPTION,
                        .help =
                            "with --cron or --rrule: RFC 3339, e.g. 2030-04-12T00:00:00Z; default "
                            "with --cron now, by this machine's clock, with --rrule the start."},
                       {.name = "--dst-gap",
                        .placeholder = "POLICY",
                        .kind = PARAMETER_OPTION,
                        .help = "with --cron or --rrule: auto, after, shift or skip."},
                       {.name = "--dst-overlap",
                        .placeholder = "POLICY",
                        .kind = PARAMETER_OPTION,
                        .help = "with --cron or --rrule: auto, first, second or both."},
                       {.name = "--utc", .kind = PARAMETER_FLAG, .help = "print in UTC with Z."},
                       {.name = "--explain",
                        .kind = PARAMETER_FLAG,
                        .help = "say below what the rule means, what changes of the clock do to "
                                "it, and what is easily misread."}},
        .example = "reportctl next --cron '30 6 * * 1-5' --time-zone Europe/Berlin --after "
                   "2030-03-29T00:00:00Z --count 3",
    },
    {
        .words = "calendar list",
        .summary = "The business calendars in the database, and how many schedules use each.",
        .privilege = READER,
        .run = calendar_list_command,
        .formats = FORMATS_ROWS,
        .parameters = {LIMIT("200")},
    },
    {
        .words = "calendar show",
        .summary = "All about one calendar: weekend, validity, parts, and its days of a year.",
        .details = "Of a combination, the days of all its parts.",
        .privilege = READER,
        .run = calendar_show_command,
        .formats = FORMATS_PAGE,
        .parameters = {CALENDAR_NAME(true),
                       {.name = "--year",
                        .placeholder = "YEAR",
                        .kind = PARAMETER_OPTION,
                        .value = VALUE_INT,
                        .min = 1900,
                        .max = 2299,
                        .help = "whose days; default the current year."}},
        .example = "reportctl calendar show nyse --year 2030",
    },
    {
        .words = "calendar import",
        .summary = "Make a calendar of a CSV or iCalendar file or of a shipped one, or renew it.",
        .details =
            "Without FILE the shipped calendar of that name is taken. Days that were imported "
            "before are replaced by those of the file; days that somebody entered (override) stay "
            "and hold against it. Counts are of days. The formats: docs/calendars.md.",
        .privilege = AUTHOR,
        .run = calendar_import_command,
        .formats = FORMATS_PAGE,
        .parameters = {CALENDAR_NAME(true),
                       {.name = "file",
                        .placeholder = "FILE",
                        .kind = PARAMETER_WORD,
                        .help =
                            "a file (with a slash, or ending in .csv or .ics), or the name of a "
                            "shipped calendar."},
                       {.name = "--replace",
                        .kind = PARAMETER_FLAG,
                        .help = "although there is a calendar of that name."},
                       {.name = "--dry-run",
                        .kind = PARAMETER_FLAG,
                        .help = "only say what would change, with the days."}},
        .example = "reportctl calendar import bank ./bank-holidays.ics --replace",
    },
    {
        .words = "calendar check",
        .summary = "What is wrong with the calendars, or soon will be.",
        .details = "A finding is either wrong (exit code 1): validity is over, a combination of "
                   "nothing; or worth a look: validity ends within 60 days, holidays on weekend "
                   "days that somebody entered, overrides that agree or differ with what was "
                   "imported, days outside validity. USED BY names the schedules. With --strict "
                   "any finding makes the "
                   "exit code 1, for cron.",
        .privilege = READER,
        .run = calendar_check_command,
        .formats = FORMATS_ROWS,
        .parameters = {CALENDAR_NAME(false),
                       {.name = "--strict",
                        .kind = PARAMETER_FLAG,
                        .help = "exit code 1 for whatever is found."}},
        .example = "reportctl calendar check nyse",
    },
    {
        .words = "roll",
        .summary = "A date moved to a business day of a calendar.",
        .details =
            "Needs no server. CONVENTION is run (stay), skip (print nothing unless the date is a "
            "business day), following, preceding, modified_following and modified_preceding (not "
            "into another month), half_month_modified_following (nor across the 15th) or nearest "
            "(the next when both are as near). A date outside the calendar's validity is judged by "
            "the weekend alone, with a warning on stderr. Shipped calendars: docs/calendars.md.",
        .run = roll_command,
        .parameters = {{.name = "date",
                        .placeholder = "DATE",
                        .kind = PARAMETER_WORD,
                        .required = true,
                        .help = "the date, e.g. 2030-04-12."},
                       CALENDAR_SOURCE,
                       {.name = "--convention",
                        .placeholder = "CONVENTION",
                        .kind = PARAMETER_OPTION,
                        .required = true,
                        .help = "what to do when it is no business day."}},
        .example = "reportctl roll --calendar nyse --convention modified_following 2026-07-04",
    },
    {
        .words = "business-day",
        .summary = "The N-th business day after or before a date, or the first or last of a month.",
        .details = "Needs no server. The date itself is not counted: --add 1 is the next business "
                   "day, --add -1 the one before (T-1), also from a weekend; 0 is refused.",
        .run = business_day_command,
        .parameters = {{.name = "date",
                        .placeholder = "DATE",
                        .kind = PARAMETER_WORD,
                        .help = "with --add: the date to count from, e.g. 2030-04-12."},
                       CALENDAR_SOURCE,
                       {.name = "--add",
                        .placeholder = "N",
                        .kind = PARAMETER_OPTION,
                        .help = "how many business days, from -10000 to 10000, not 0."},
                       {.name = "--first",
                        .placeholder = "MONTH",
                        .kind = PARAMETER_OPTION,
                        .help = "the first business day of a month, e.g. 2030-04."},
                       {.name = "--last",
                        .placeholder = "MONTH",
                        .kind = PARAMETER_OPTION,
                        .help = "the last business day of a month."}},
        .example = "reportctl business-day --calendar target --add -1 2026-04-07",
    },
    {
        .words = "plan",
        .summary = "What an edit of a schedule would do, before it is made: firings added, "
                   "removed, moved and redated.",
        .details = "The edit is tried in a transaction that is rolled back, so what the tables "
                   "refuse is refused here in the same words; then it is judged as the leader "
                   "would. Nothing is changed; the statement that makes the edit is printed. "
                   "NULL and DEFAULT are written as they are, anything else is a value. A key "
                   "whose instant is another one has moved; one that is about another "
                   "business date at the same instant is redated. What a pause with an end "
                   "lets come again is listed too.",
        .privilege = AUTHOR,
        .run = plan_command,
        .formats = FORMATS_ROWS,
        .parameters = {SCHEDULE,
                       {.name = "--set",
                        .placeholder = "COLUMN=VALUE",
                        .kind = PARAMETER_OPTION,
                        .required = true,
                        .repeats = true,
                        .help = "a column of the schedule's row and its new value; again for "
                                "another column."},
                       {.name = "--days",
                        .placeholder = "N",
                        .kind = PARAMETER_OPTION,
                        .value = VALUE_INT,
                        .min = 1,
                        .max = 3660,
                        .fallback = "90",
                        .help = "how far ahead."},
                       LIMIT("200")},
        .example =
            "reportctl plan sales-daily --set 'rule=30 7 * * 1-5' --set time_zone=Europe/Berlin",
    },
    {
        .words = "forecast",
        .summary = "How much is due when: firings a day and a queue, the busiest minutes, and "
                   "schedules that are due in the same second.",
        .details = "From now on, by the rules in force and the edits that are announced; paused "
                   "schedules and those with a problem fire nothing. Days are those of UTC. "
                   "A schedule with very many firings is counted by days and is in no minute; "
                   "the page says how many there are.",
        .privilege = READER,
        .run = forecast_command,
        .formats = FORMATS_ROWS,
        .parameters = {{.name = "--days",
                        .placeholder = "N",
                        .kind = PARAMETER_OPTION,
                        .value = VALUE_INT,
                        .min = 1,
                        .max = 31,
                        .fallback = "7",
                        .help = "how far ahead."},
                       SCOPE,
                       {.name = "--queue",
                        .placeholder = "QUEUE",
                        .kind = PARAMETER_OPTION,
                        .value = VALUE_NAME,
                        .help = "only of this queue."},
                       {.name = "--limit",
                        .placeholder = "N",
                        .kind = PARAMETER_OPTION,
                        .value = VALUE_INT,
                        .min = 1,
                        .max = 1000,
                        .fallback = "10",
                        .help = "how many of the busiest minutes and seconds."}},
        .example = "reportctl forecast --days 7 --queue warehouse",
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
                       KAFKA_CONFIG,
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
        .parameters = {TOPIC, BROKERS, KAFKA_CONFIG},
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
                        .placeholder = "scheduler|worker|all",
                        .kind = PARAMETER_WORD,
                        .value = VALUE_CHOICE,
                        .required = true,
                        .choices = "scheduler|worker|all",
                        .help = "the program; all: docs/configuration.md."},
                       {.name = "--man",
                        .kind = PARAMETER_FLAG,
                        .help = "print docs/man/scheduler.conf.5 or worker.conf.5."}},
    },
    {
        .words = "help",
        .summary = "Help; as a page or a manual page for the documentation.",
        .run = help_command,
        .parameters =
            {{.name = "--markdown", .kind = PARAMETER_FLAG, .help = "print docs/reportctl.md."},
             {.name = "--man", .kind = PARAMETER_FLAG, .help = "print docs/man/reportctl.1."}},
    },
    {.words = "catchup",
     .summary = "What missed firings wait for, and letting go of them.",
     .not_yet = "meanwhile look with reportctl jobs --state waiting, and cancel single jobs"},
};

const size_t command_count = sizeof command_table / sizeof command_table[0];
