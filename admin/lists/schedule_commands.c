/* `schedule NAME`: all about one; `next`: when it fires. */
#include "commands.h"

#include <stdio.h>
#include <string.h>

#include "cell.h"
#include "clock.h"
#include "firing_list.h"
#include "next_command.h"
#include "occurrence_list.h"
#include "rule_words.h"
#include "schedule_names.h"
#include "session.h"

struct query {
    const char *key;
    const char *title;
    const char *empty;
    const char *sql;
};

/* The rule is put into words, firings are computed, occurrences are searched for; these go behind
 * the first. */
static const struct query queries[] = {
    {"schedule", NULL, NULL,
     "SELECT v.name, v.scope, CASE WHEN v.paused THEN true END AS paused, v.paused_since_at AS"
     " \"paused_since_at~\", v.pause_reason, v.paused_until, v.problem, v.problem_since_at AS "
     "\"problem_since_at~\", v.report,"
     " v.description, v.kind, v.rule, CASE WHEN s.dialect <> 'std' THEN s.dialect END AS dialect,"
     " f.rule_std, v.time_zone, s.anchor, s.start_local, array_to_string(s.exdates, ', ') AS"
     " exdates, array_to_string(s.rdates, ', ') AS rdates, s.starts_at, s.ends_at,"
     " CASE WHEN s.kind IN ('cron', 'rrule') THEN s.dst_gap END AS dst_gap,"
     " CASE WHEN s.kind IN ('cron', 'rrule') THEN s.dst_overlap END AS dst_overlap,"
     " s.calendar, CASE WHEN s.calendar IS NOT NULL THEN s.nonbusiness END AS nonbusiness,"
     " nullif(s.business_day_offset, 0) AS business_day_offset,"
     " nullif(s.roll_collision, 'coalesce') AS roll_collision,"
     " nullif(s.business_date, 'run_date') AS business_date,"
     " nullif(s.jitter_s, 0) AS jitter_s,"
     " CASE WHEN s.effective_from > statement_timestamp() THEN s.effective_from END AS"
     " effective_from,"
     " v.next_fire_at, v.next_nominal AS next_local, v.last_fire_at, v.last_nominal AS last_local,"
     " v.last_key, v.last_state, coalesce(s.misfire, 'default') AS misfire, s.misfire_max,"
     " extract(epoch FROM s.misfire_age) AS misfire_age_s,"
     " extract(epoch FROM s.misfire_grace) AS misfire_grace_s, s.overlap, v.queue, v.priority,"
     " s.max_attempts, extract(epoch FROM s.retry_base) AS retry_base_s,"
     " extract(epoch FROM s.retry_cap) AS retry_cap_s, extract(epoch FROM s.timeout) AS timeout_s,"
     " v.breaker_failures, CASE WHEN v.breaker_failures IS NOT NULL THEN"
     " extract(epoch FROM v.breaker_probe) END AS breaker_probe_s, v.circuit,"
     " v.circuit_opened_at AS \"circuit_opened_at~\", v.circuit_probe_at,"
     " nullif(v.circuit_failures, 0) AS failures_in_a_row,"
     " s.parameters, v.owner, v.version AS version_in_force FROM reports.v_schedule v"
     " JOIN reports.schedule s ON s.name = v.name LEFT JOIN reports.v_schedule_version f"
     " ON f.schedule = v.name AND f.in_force WHERE v.name = $1"},
    {"gaps", "GAPS: FIRINGS NOT RUN", NULL,
     "SELECT firings, from_key, to_key, reason, version, recorded_at AS \"recorded_at~\""
     " FROM reports.v_gap WHERE schedule = $1 ORDER BY to_fire_at DESC LIMIT 10"},
    {"discarded", "GIVEN UP BY REQUEST", NULL,
     "SELECT firings, from_key, to_key, reason, discarded_by AS \"discarded_by|BY\", why,"
     " recorded_at AS \"recorded_at~\", request AS \"request-\""
     " FROM reports.v_catch_up_discard WHERE schedule = $1 ORDER BY recorded_at DESC LIMIT 10"},
    {"circuit", "CIRCUIT BREAKER", NULL,
     "SELECT at AS \"at~\", event, occurrence_key AS key, detail, job_id AS \"job_id-\" FROM"
     " reports.v_circuit_event WHERE schedule = $1 ORDER BY id DESC LIMIT 10"},
    {"versions", "VERSIONS", NULL,
     "SELECT version, concat_ws(', ', CASE WHEN in_force THEN 'in force'"
     " WHEN effective_from > statement_timestamp() AND version = max(version) OVER () THEN"
     " 'announced' END,"
     " CASE WHEN ended THEN 'deleted' WHEN paused THEN 'paused' END) AS \"state!\","
     " in_force AS \"in_force-\", NOT in_force AND effective_from > statement_timestamp() AND"
     " version = max(version) OVER () AS \"announced-\", ended AS \"ended-\", paused AS"
     " \"paused-\", effective_from,"
     " rule, time_zone, change_reason AS reason, recorded_by AS \"recorded_by|BY\","
     " paused_until AS \"paused_until-\","
     " report AS \"report?\", queue AS \"queue?\", kind AS \"kind?\" FROM "
     "reports.v_schedule_version WHERE schedule = $1"
     " ORDER BY version DESC LIMIT 5"},
};

#define QUERIES  (sizeof queries / sizeof queries[0])
#define SECTIONS (QUERIES + 3)
#define UPCOMING 5
#define LATEST   10

static enum exit_code sections_fill(struct session *s, const char *name,
                                    struct section sections[SECTIONS])
{
    const char *values[] = {name};
    enum exit_code code = EXIT_DONE;
    for (size_t i = 0; i < QUERIES && code == EXIT_DONE; i++) {
        struct section *to = &sections[i == 0 ? 0 : i + 3];
        *to = (struct section){.key = queries[i].key,
                               .title = queries[i].title,
                               .empty = queries[i].empty,
                               .facts = i == 0};
        code = session_select(s, queries[i].sql, 1, values, &to->table);
        if (i == 0 && code == EXIT_DONE && table_rows(to->table) == 0) {
            code = schedule_name_fail(s, name);
        }
    }
    return code;
}

static enum exit_code words_make(struct session *s, const char *name, const struct table *firings,
                                 struct table **ret_words)
{
    struct rule_words_about about = {.schedule = name};
    size_t rows = table_rows(firings);
    const char *last = rows > 0 ? table_value(firings, rows - 1, "fire_at") : NULL;
    utc_us at;
    if (last != NULL && cell_instant_parse(last, &at)) {
        about.shown_to = at;
    }
    return rule_words_make(s, &about, ret_words);
}

enum exit_code schedule_command(struct invocation *in)
{
    struct session s;
    struct firing_list firings = {0};
    struct section sections[SECTIONS] = {0};
    const char *name = command_text(in, "schedule");
    enum exit_code code = session_open(in, &s);
    if (code == EXIT_DONE) {
        code = sections_fill(&s, name, sections);
    }
    if (code == EXIT_DONE) {
        code = firing_list_make(&s, name, UPCOMING, &firings);
    }
    if (code == EXIT_DONE) {
        sections[1] = (struct section){.key = "rule_in_words", .title = "THE RULE IN WORDS"};
        code = words_make(&s, name, firings.table, &sections[1].table);
    }
    if (code == EXIT_DONE) {
        sections[2] = (struct section){
            .key = "next",
            .title = "NEXT FIRINGS",
            .table = firings.table,
            .empty = firings.problem.text[0] != '\0' ? firings.problem.text : firings.nothing.text,
        };
        sections[3] =
            (struct section){.key = "occurrences", .title = "LATEST OCCURRENCES", .empty = "none"};
        struct occurrence_range range = {.schedule = name, .limit = LATEST};
        code = occurrence_list_make(&s, &range, &sections[3].table);
    }
    if (code == EXIT_DONE) {
        session_print(&s, sections, SECTIONS);
    }
    for (size_t i = 0; i < SECTIONS; i++) {
        table_free(sections[i].table);
    }
    session_close(&s);
    return code;
}

/* ---- next ---- */

static enum exit_code next_cron(struct invocation *in)
{
    if (command_text(in, "schedule") != NULL) {
        return command_fail(in, EXIT_USAGE, "next takes a schedule or --cron, not both");
    }
    if (in->format_given) {
        return command_fail(in, EXIT_USAGE, "next --cron has no -o: it prints one instant a line");
    }
    /* Nothing is decided by it: somebody looks at a rule, and no database is there to be asked. */
    char now[CLOCK_STAMP_MAX];
    clock_stamp(now);
    const char *after = command_text(in, "--after");
    struct next_cron_arguments arguments = {
        .cron = command_text(in, "--cron"),
        .dialect = command_text(in, "--dialect"),
        .time_zone = command_text(in, "--time-zone"),
        .after = after != NULL ? after : now,
        .count = command_text(in, "--count"),
        .dst_gap = command_text(in, "--dst-gap"),
        .dst_overlap = command_text(in, "--dst-overlap"),
        .utc = command_flag(in, "--utc"),
        .explain = command_flag(in, "--explain"),
    };
    return exit_code_of(next_command_cron(&arguments, in->out, in->errors));
}

static enum exit_code next_rrule(struct invocation *in)
{
    if (command_text(in, "schedule") != NULL || command_text(in, "--cron") != NULL) {
        return command_fail(in, EXIT_USAGE, "next takes one of a schedule, --cron and --rrule");
    }
    if (in->format_given) {
        return command_fail(in, EXIT_USAGE, "next --rrule has no -o: it prints one instant a line");
    }
    if (command_text(in, "--dialect") != NULL) {
        return command_fail(in, EXIT_USAGE, "--dialect goes with --cron");
    }
    struct next_rrule_arguments arguments = {
        .rrule = command_text(in, "--rrule"),
        .start = command_text(in, "--start"),
        .time_zone = command_text(in, "--time-zone"),
        .after = command_text(in, "--after"),
        .count = command_text(in, "--count"),
        .exdate = command_text(in, "--exdate"),
        .rdate = command_text(in, "--rdate"),
        .dst_gap = command_text(in, "--dst-gap"),
        .dst_overlap = command_text(in, "--dst-overlap"),
        .utc = command_flag(in, "--utc"),
        .explain = command_flag(in, "--explain"),
    };
    return exit_code_of(next_command_rrule(&arguments, in->out, in->errors));
}

/* Like `next --cron`: one instant a line; scripts may ask for more with -o. */
static void firings_print(const struct session *s, struct table *t)
{
    if (s->in->format != OUTPUT_TABLE) {
        struct section only = {.key = "next", .table = t};
        session_print(s, &only, 1);
        return;
    }
    bool utc = command_flag(s->in, "--utc");
    for (size_t i = 0; i < table_rows(t); i++) {
        const char *at = table_value(t, i, "fire_at");
        if (utc) {
            (void)fprintf(s->in->out, "%.10sT%.*sZ\n", at, (int)(strlen(at) - 14), at + 11);
        } else {
            (void)fprintf(s->in->out, "%s\n", table_value(t, i, "local"));
        }
    }
}

/* --explain, below the firings. */
static enum exit_code words_print(struct session *s, const char *name, const struct table *firings)
{
    struct table *words = NULL;
    if (!command_flag(s->in, "--explain")) {
        return EXIT_DONE;
    }
    enum exit_code code = words_make(s, name, firings, &words);
    if (code == EXIT_DONE && table_rows(words) > 0) {
        (void)putc('\n', s->in->out);
        rule_words_print(words, s->in->out);
    }
    table_free(words);
    return code;
}

static enum exit_code next_schedule(struct invocation *in, const char *name)
{
    struct session s;
    struct firing_list firings = {0};
    enum exit_code code = session_open(in, &s);
    if (code == EXIT_DONE) {
        const char *count = command_text(in, "--count");
        code =
            firing_list_make(&s, name, count != NULL ? command_int(in, "--count") : 10, &firings);
    }
    if (code == EXIT_DONE && firings.problem.text[0] != '\0') {
        code = command_fail(in, EXIT_USAGE, "schedule \"%s\": %s", name, firings.problem.text);
    } else if (code == EXIT_DONE) {
        firings_print(&s, firings.table);
        code = words_print(&s, name, firings.table);
    }
    if (code == EXIT_DONE) {
        if (firings.nothing.text[0] != '\0') {
            code = command_fail(in, EXIT_DONE, "schedule \"%s\": %s", name, firings.nothing.text);
        }
    }
    table_free(firings.table);
    session_close(&s);
    return code;
}

enum exit_code next_command(struct invocation *in)
{
    static const char *const cron_only[] = {"--time-zone", "--after", "--dst-gap", "--dst-overlap",
                                            "--dialect"};
    static const char *const rrule_only[] = {"--start", "--exdate", "--rdate"};
    const char *name = command_text(in, "schedule");
    if (command_flag(in, "--explain") && in->format != OUTPUT_TABLE) {
        return command_fail(in, EXIT_USAGE,
                            "--explain is for people; with -o: reportctl schedule NAME -o json");
    }
    if (command_text(in, "--rrule") != NULL) {
        return next_rrule(in);
    }
    for (size_t i = 0; i < sizeof rrule_only / sizeof rrule_only[0]; i++) {
        if (command_text(in, rrule_only[i]) != NULL) {
            return command_fail(in, EXIT_USAGE, "%s goes with --rrule", rrule_only[i]);
        }
    }
    if (command_text(in, "--cron") != NULL) {
        return next_cron(in);
    }
    if (name == NULL) {
        return command_fail(in, EXIT_USAGE,
                            "next needs a schedule, or --cron EXPR --time-zone ZONE, "
                            "or --rrule RULE --start LOCAL --time-zone ZONE");
    }
    for (size_t i = 0; i < sizeof cron_only / sizeof cron_only[0]; i++) {
        if (command_text(in, cron_only[i]) != NULL) {
            return command_fail(in, EXIT_USAGE,
                                "%s goes with --cron or --rrule; a schedule has its own",
                                cron_only[i]);
        }
    }
    return next_schedule(in, name);
}
