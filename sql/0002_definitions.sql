-- What users define: scopes, queues, calendars, reports, schedules. Users write these tables
-- directly; everything that cannot work is refused here where SQL can tell, with the remedy.

SET ROLE report_owner;

CREATE TABLE reports.installation (
    only_row boolean PRIMARY KEY DEFAULT true
        CHECK (only_row OR reports.refuse('an installation has one row', 'Update the row that is there.')),
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    claim_lease interval NOT NULL DEFAULT '60 seconds'
        CHECK (claim_lease BETWEEN interval '3 seconds' AND interval '1 hour'
            OR reports.refuse_value('installation', 'claim_lease', claim_lease::text, 'Write an interval from 3 seconds to 1 hour.')),
    reap_grace interval NOT NULL DEFAULT '5 seconds'
        CHECK (reap_grace BETWEEN interval '1 second' AND interval '10 minutes'
            OR reports.refuse_value('installation', 'reap_grace', reap_grace::text, 'Write an interval from 1 second to 10 minutes.')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE reports.installation IS 'One row: this installation of the report scheduler.';
COMMENT ON COLUMN reports.installation.only_row IS 'Always true; keeps the table at one row.';
COMMENT ON COLUMN reports.installation.id IS 'Identity of the installation; part of idempotency keys and artifact paths.';
COMMENT ON COLUMN reports.installation.claim_lease IS 'How long a claim lives without a heartbeat; one value for leader and workers, so that they cannot disagree.';
COMMENT ON COLUMN reports.installation.reap_grace IS 'How much later than the lease the leader reaps, so that a worker has killed its own job before.';
COMMENT ON COLUMN reports.installation.created_at IS 'When the schema was made.';
INSERT INTO reports.installation DEFAULT VALUES;

CREATE TABLE reports.scope (
    name reports.name PRIMARY KEY,
    description text NOT NULL DEFAULT '',
    catch_up_max integer DEFAULT 100
        CONSTRAINT scope_catch_up_max_check CHECK ((catch_up_max BETWEEN 1 AND 1000000) IS NOT FALSE
            OR reports.refuse_value(format('scope "%s"', name), 'catch_up_max', catch_up_max::text, 'Write a number from 1 to 1000000, or NULL for no bound.')),
    catch_up_per_minute integer
        CONSTRAINT scope_catch_up_per_minute_check CHECK ((catch_up_per_minute BETWEEN 1 AND 1000000) IS NOT FALSE
            OR reports.refuse_value(format('scope "%s"', name), 'catch_up_per_minute', catch_up_per_minute::text, 'Write a number from 1 to 1000000, or NULL for no bound.')),
    catch_up_order text NOT NULL DEFAULT 'oldest'
        CONSTRAINT scope_catch_up_order_check CHECK (catch_up_order IN ('oldest', 'newest')
            OR reports.refuse_value(format('scope "%s"', name), 'catch_up_order', catch_up_order, 'Write ''oldest'' or ''newest'', which go first.')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE reports.scope IS 'An independent field of authority: the schedules that one leader plans. Never deleted, since its fence never is (I2).';
COMMENT ON COLUMN reports.scope.name IS 'Name, also the ZooKeeper path element below /scopes.';
COMMENT ON COLUMN reports.scope.description IS 'For people.';
COMMENT ON COLUMN reports.scope.catch_up_max IS 'Most jobs of missed firings queued and running at once, so that a long outage ends in no storm; NULL: no bound. It limits when they run, never whether they are planned.';
COMMENT ON COLUMN reports.scope.catch_up_per_minute IS 'Most jobs of missed firings that are released within a minute, over all queues; the others wait. NULL: no bound.';
COMMENT ON COLUMN reports.scope.catch_up_order IS 'Which missed firings go first among those of one priority: oldest or newest.';
COMMENT ON COLUMN reports.scope.created_at IS 'When it was made.';

CREATE TABLE reports.queue (
    name reports.name PRIMARY KEY,
    description text NOT NULL DEFAULT '',
    max_outstanding integer
        CONSTRAINT queue_max_outstanding_check CHECK ((max_outstanding BETWEEN 1 AND 1000000) IS NOT FALSE
            OR reports.refuse_value(format('queue "%s"', name), 'max_outstanding', max_outstanding::text, 'Write a number from 1 to 1000000, or NULL for no bound; to stop a queue: reportctl hold --queue NAME.')),
    catch_up_per_minute integer
        CONSTRAINT queue_catch_up_per_minute_check CHECK ((catch_up_per_minute BETWEEN 1 AND 1000000) IS NOT FALSE
            OR reports.refuse_value(format('queue "%s"', name), 'catch_up_per_minute', catch_up_per_minute::text, 'Write a number from 1 to 1000000, or NULL for no bound of its own.')),
    catch_up_order text
        CONSTRAINT queue_catch_up_order_check CHECK ((catch_up_order IN ('oldest', 'newest')) IS NOT FALSE
            OR reports.refuse_value(format('queue "%s"', name), 'catch_up_order', catch_up_order, 'Write ''oldest'' or ''newest'', which go first, or NULL for what the scope says.')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE reports.queue IS 'A class of jobs; workers say which queues they serve.';
COMMENT ON COLUMN reports.queue.name IS 'Name, as in schedule.queue and worker.conf.';
COMMENT ON COLUMN reports.queue.description IS 'For people.';
COMMENT ON COLUMN reports.queue.max_outstanding IS 'Most jobs queued and running at once, for each scope; what is beyond it waits. NULL: no bound.';
COMMENT ON COLUMN reports.queue.catch_up_per_minute IS 'Most jobs of missed firings that are released into it within a minute, for each scope, and within what the scope allows. NULL: no bound of its own.';
COMMENT ON COLUMN reports.queue.catch_up_order IS 'Which missed firings go first among those of one priority: oldest or newest; NULL: as the scope says. A queue with newest goes before one with oldest.';
COMMENT ON COLUMN reports.queue.created_at IS 'When it was made.';
INSERT INTO reports.queue (name, description) VALUES ('default', 'Where a schedule''s jobs go unless it says otherwise.');

CREATE TABLE reports.calendar (
    name reports.name PRIMARY KEY,
    description text NOT NULL DEFAULT ''
        CONSTRAINT calendar_description_check CHECK (octet_length(description) < 512
            OR reports.refuse_value(format('calendar "%s"', name), 'description', description, 'Write at most 511 bytes.')),
    source text NOT NULL DEFAULT ''
        CONSTRAINT calendar_source_check CHECK (octet_length(source) < 1024
            OR reports.refuse_value(format('calendar "%s"', name), 'source', source, 'Write at most 1023 bytes.')),
    weekend_days integer[] NOT NULL DEFAULT '{6,7}'
        CONSTRAINT calendar_weekend_days_check CHECK (weekend_days <@ ARRAY[1,2,3,4,5,6,7] AND cardinality(weekend_days) < 7
            OR reports.refuse_value(format('calendar "%s"', name), 'weekend_days', weekend_days::text, 'Write at most six of 1 (Monday) to 7 (Sunday), such as {6,7}.')),
    valid_from date
        CONSTRAINT calendar_valid_from_check CHECK ((valid_from BETWEEN '1900-01-01' AND '2299-12-31') IS NOT FALSE
            OR reports.refuse_value(format('calendar "%s"', name), 'valid_from', valid_from::text, 'Write a date within the years 1900 to 2299, or NULL for no beginning.')),
    valid_through date
        CONSTRAINT calendar_valid_through_check CHECK ((valid_through BETWEEN '1900-01-01' AND '2299-12-31') IS NOT FALSE
            OR reports.refuse_value(format('calendar "%s"', name), 'valid_through', valid_through::text, 'Write a date within the years 1900 to 2299, or NULL for no end.')),
    beyond text NOT NULL DEFAULT 'weekends_only'
        CONSTRAINT calendar_beyond_check CHECK (beyond IN ('weekends_only', 'hold')
            OR reports.refuse_value(format('calendar "%s"', name), 'beyond', beyond, 'Write ''weekends_only'' or ''hold''.')),
    combine text
        CONSTRAINT calendar_combine_check CHECK ((combine IN ('union', 'intersection')) IS NOT FALSE
            OR reports.refuse_value(format('calendar "%s"', name), 'combine', combine, 'Write ''union'' (a business day is one of all parts) or ''intersection'' (one of any part), or NULL for a calendar without parts.')),
    version bigint NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT combination_has_validity_of_parts CHECK (combine IS NULL OR (valid_from IS NULL AND valid_through IS NULL)
            OR reports.refuse(format('calendar "%s": a combination is valid where its parts are', name), 'Write valid_from = NULL and valid_through = NULL.')),
    CONSTRAINT calendar_is_valid_some_time CHECK ((valid_from <= valid_through) IS NOT FALSE
            OR reports.refuse(format('calendar "%s": valid_through %s is before valid_from %s', name, valid_through, valid_from), 'Write a later valid_through, or NULL.'))
);
COMMENT ON TABLE reports.calendar IS 'A business calendar: weekends, and the days of calendar_day; or a combination of the calendars in calendar_part.';
COMMENT ON COLUMN reports.calendar.name IS 'Name, for ever: schedules name it.';
COMMENT ON COLUMN reports.calendar.description IS 'For people.';
COMMENT ON COLUMN reports.calendar.source IS 'Where its days come from, with what their licence wants to be said.';
COMMENT ON COLUMN reports.calendar.weekend_days IS 'ISO weekdays (1 Monday to 7 Sunday) that are never business days; what changes on a date stands in calendar_weekend. Not of a combination: its parts have their own.';
COMMENT ON COLUMN reports.calendar.valid_from IS 'First date the days are known for; NULL: no beginning.';
COMMENT ON COLUMN reports.calendar.valid_through IS 'Last date the days are known for; NULL: no end.';
COMMENT ON COLUMN reports.calendar.beyond IS 'Outside valid_from to valid_through. weekends_only: a day that has no row is judged by the weekend alone, with a warning; hold: there is no answer, and what needs one waits for newer data.';
COMMENT ON COLUMN reports.calendar.combine IS 'union: a business day is one of all parts (the holidays are united); intersection: one of any part; NULL: it has no parts.';
COMMENT ON COLUMN reports.calendar.version IS 'Grows with each change of the calendar, its rows or its parts, also over deletion and re-creation; set by trigger.';
COMMENT ON COLUMN reports.calendar.updated_at IS 'When that was.';

CREATE TABLE reports.calendar_weekend (
    calendar reports.name NOT NULL REFERENCES reports.calendar (name) ON DELETE CASCADE,
    from_date date NOT NULL
        CONSTRAINT calendar_weekend_from_date_check CHECK (from_date BETWEEN '1900-01-01' AND '2299-12-31'
            OR reports.refuse_value(format('calendar "%s"', calendar), 'from_date', from_date::text, 'Write a date within the years 1900 to 2299.')),
    weekend_days integer[] NOT NULL
        CONSTRAINT calendar_weekend_weekend_days_check CHECK (weekend_days <@ ARRAY[1,2,3,4,5,6,7] AND cardinality(weekend_days) < 7
            OR reports.refuse_value(format('calendar "%s", weekend from %s', calendar, from_date), 'weekend_days', weekend_days::text, 'Write at most six of 1 (Monday) to 7 (Sunday), such as {6,7}.')),
    PRIMARY KEY (calendar, from_date)
);
COMMENT ON TABLE reports.calendar_weekend IS 'A weekend that begins on a date; before the first of them calendar.weekend_days holds.';
COMMENT ON COLUMN reports.calendar_weekend.calendar IS 'The calendar.';
COMMENT ON COLUMN reports.calendar_weekend.from_date IS 'The first day it holds for.';
COMMENT ON COLUMN reports.calendar_weekend.weekend_days IS 'As in calendar.';

CREATE TABLE reports.calendar_day (
    calendar reports.name NOT NULL REFERENCES reports.calendar (name) ON DELETE CASCADE,
    day date NOT NULL
        CONSTRAINT calendar_day_day_check CHECK (day BETWEEN '1900-01-01' AND '2299-12-31'
            OR reports.refuse_value(format('calendar "%s"', calendar), 'day', day::text, 'Write a date within the years 1900 to 2299.')),
    kind text NOT NULL DEFAULT 'holiday'
        CONSTRAINT calendar_day_kind_check CHECK (kind IN ('holiday', 'working')
            OR reports.refuse_value(format('calendar "%s", day %s', calendar, day), 'kind', kind, 'Write ''holiday'', or ''working'' for a day that is worked although weekend or holiday.')),
    override boolean NOT NULL DEFAULT true,
    description text NOT NULL DEFAULT ''
        CONSTRAINT calendar_day_description_check CHECK (octet_length(description) < 512
            OR reports.refuse_value(format('calendar "%s", day %s', calendar, day), 'description', description, 'Write at most 511 bytes.')),
    source text NOT NULL DEFAULT ''
        CONSTRAINT calendar_day_source_check CHECK (octet_length(source) < 512
            OR reports.refuse_value(format('calendar "%s", day %s', calendar, day), 'source', source, 'Write at most 511 bytes.')),
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    recorded_by text NOT NULL DEFAULT session_user,
    PRIMARY KEY (calendar, day, override)
);
COMMENT ON TABLE reports.calendar_day IS 'A day that differs from the weekend rule: a holiday, or a make-up working day. Effective at once for occurrences that are not made yet.';
COMMENT ON COLUMN reports.calendar_day.calendar IS 'The calendar.';
COMMENT ON COLUMN reports.calendar_day.day IS 'The local date.';
COMMENT ON COLUMN reports.calendar_day.kind IS 'holiday, or working: a business day although weekend or holiday.';
COMMENT ON COLUMN reports.calendar_day.override IS 'true: entered by somebody; it holds against an imported row of the same day and outlives the next import. false: imported; the next import with --replace takes it away.';
COMMENT ON COLUMN reports.calendar_day.description IS 'What day it is, or why.';
COMMENT ON COLUMN reports.calendar_day.source IS 'Where it is announced.';
COMMENT ON COLUMN reports.calendar_day.recorded_at IS 'When the row was written; set by trigger.';
COMMENT ON COLUMN reports.calendar_day.recorded_by IS 'Login role that wrote it; set by trigger.';

CREATE TABLE reports.calendar_part (
    calendar reports.name NOT NULL REFERENCES reports.calendar (name) ON DELETE CASCADE,
    part reports.name NOT NULL REFERENCES reports.calendar (name),
    PRIMARY KEY (calendar, part)
);
CREATE INDEX calendar_part_part ON reports.calendar_part (part);
COMMENT ON TABLE reports.calendar_part IS 'What a combination is made of (calendar.combine); no calendar is a part of itself, also not by way of others.';
COMMENT ON COLUMN reports.calendar_part.calendar IS 'The combination.';
COMMENT ON COLUMN reports.calendar_part.part IS 'A calendar it combines, which may be a combination itself.';

CREATE TABLE reports.report (
    name reports.name PRIMARY KEY,
    description text NOT NULL DEFAULT '',
    kind text NOT NULL
        CONSTRAINT report_kind_check CHECK (kind IN ('sql', 'program', 'noop')
            OR reports.refuse_value(format('report "%s"', name), 'kind', kind, 'Write ''sql'', ''program'' or ''noop''.')),
    data_source reports.name,
    query text
        CONSTRAINT report_query_check CHECK ((octet_length(query) <= 262144) IS NOT FALSE
            OR reports.refuse(format('report "%s": its query has %s bytes', name, octet_length(query)), 'A query may have 262144 bytes; make a view or function of it in the data source.')),
    format text NOT NULL DEFAULT 'csv'
        CONSTRAINT report_format_check CHECK (format ~ '^[a-z0-9]{1,16}$'
            OR reports.refuse_value(format('report "%s"', name), 'format', format, 'Write ''csv'' or ''json''; for a program 1 to 16 of a-z and 0-9, the ending of its file.')),
    program reports.name,
    parameters jsonb NOT NULL DEFAULT '{}'
        CONSTRAINT report_parameters_check CHECK (jsonb_typeof(parameters) = 'object' AND octet_length(parameters::text) <= 65536
            OR reports.refuse_value(format('report "%s"', name), 'parameters', parameters::text, 'Write {"name": "value"} of at most 65536 bytes, or {} for none.')),
    owner text NOT NULL DEFAULT current_user,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT sql_needs_query CHECK (kind <> 'sql' OR (data_source IS NOT NULL AND query IS NOT NULL)
            OR reports.refuse(format('report "%s": kind ''sql'' needs a %s', name, concat_ws(' and a ', CASE WHEN data_source IS NULL THEN 'data_source' END, CASE WHEN query IS NULL THEN 'query' END)),
                          'Write data_source (a name that worker.conf knows) and query (one SELECT).')),
    CONSTRAINT program_needs_program CHECK (kind <> 'program' OR program IS NOT NULL
            OR reports.refuse(format('report "%s": kind ''program'' needs a program', name), 'Write program (the name of a program in worker.conf).'))
);
COMMENT ON TABLE reports.report IS 'What to produce.';
COMMENT ON COLUMN reports.report.name IS 'Name.';
COMMENT ON COLUMN reports.report.description IS 'For people.';
COMMENT ON COLUMN reports.report.kind IS 'sql: a query on a data source; program: a child process from worker.conf''s allow-list; noop: nothing, for drills and benchmarks.';
COMMENT ON COLUMN reports.report.data_source IS 'sql: name of a data source in worker.conf. Passwords never stand in SQL rows.';
COMMENT ON COLUMN reports.report.query IS 'sql: one SELECT; parameters in psql form, :''business_date''.';
COMMENT ON COLUMN reports.report.format IS 'sql: csv or json. program: the file name''s ending.';
COMMENT ON COLUMN reports.report.program IS 'program: name of a program in worker.conf.';
COMMENT ON COLUMN reports.report.parameters IS 'Default parameters (name: text, number or boolean); a schedule''s own override them.';
COMMENT ON COLUMN reports.report.owner IS 'Who to ask.';
COMMENT ON COLUMN reports.report.updated_at IS 'Last change.';

CREATE TABLE reports.schedule (
    name reports.name PRIMARY KEY,
    scope reports.name NOT NULL DEFAULT 'main' REFERENCES reports.scope (name),
    report reports.name NOT NULL REFERENCES reports.report (name),
    description text NOT NULL DEFAULT '',
    kind text NOT NULL
        CONSTRAINT schedule_kind_check CHECK (kind IN ('cron', 'rrule', 'interval', 'once')
            OR reports.refuse_value(format('schedule "%s"', name), 'kind', kind, 'Write ''cron'', ''rrule'', ''interval'' or ''once''.')),
    rule text NOT NULL
        CONSTRAINT schedule_rule_check CHECK (octet_length(rule) BETWEEN 1 AND 512
            OR reports.refuse_value(format('schedule "%s"', name), 'rule', rule, 'A rule has 1 to 512 bytes; make several schedules of one that is longer.')),
    dialect text NOT NULL DEFAULT 'std'
        CONSTRAINT schedule_dialect_check CHECK (dialect IN ('std', 'quartz')
            OR reports.refuse_value(format('schedule "%s"', name), 'dialect', dialect, 'Write ''std'' or ''quartz''.')),
    time_zone text NOT NULL DEFAULT 'UTC'
        CONSTRAINT schedule_time_zone_check CHECK (octet_length(time_zone) BETWEEN 1 AND 63
            OR reports.refuse_value(format('schedule "%s"', name), 'time_zone', time_zone, 'Write an IANA name such as Europe/Berlin or UTC.')),
    anchor timestamptz,
    start_local timestamp,
    exdates timestamp[],
    rdates timestamp[],
    starts_at timestamptz,
    ends_at timestamptz,
    paused boolean NOT NULL DEFAULT false,
    paused_until timestamptz
        CONSTRAINT schedule_paused_until_check CHECK ((isfinite(paused_until) AND paused_until < '10000-01-01') IS NOT FALSE
            OR reports.refuse_value(format('schedule "%s"', name), 'paused_until', paused_until::text, 'Write the instant at which it goes on, or NULL for a pause without end.')),
    dst_gap text NOT NULL DEFAULT 'auto'
        CONSTRAINT schedule_dst_gap_check CHECK (dst_gap IN ('auto', 'after', 'shift', 'skip')
            OR reports.refuse_value(format('schedule "%s"', name), 'dst_gap', dst_gap, 'Write ''auto'', ''after'', ''shift'' or ''skip''.')),
    dst_overlap text NOT NULL DEFAULT 'auto'
        CONSTRAINT schedule_dst_overlap_check CHECK (dst_overlap IN ('auto', 'first', 'second', 'both')
            OR reports.refuse_value(format('schedule "%s"', name), 'dst_overlap', dst_overlap, 'Write ''auto'', ''first'', ''second'' or ''both''.')),
    calendar reports.name,
    calendar_version bigint,
    nonbusiness text NOT NULL DEFAULT 'run'
        CONSTRAINT schedule_nonbusiness_check CHECK (nonbusiness IN ('run', 'skip', 'following', 'modified_following', 'preceding', 'modified_preceding',
                                                                     'half_month_modified_following', 'nearest')
            OR reports.refuse_value(format('schedule "%s"', name), 'nonbusiness', nonbusiness, 'Write ''run'', ''skip'', ''following'', ''modified_following'', ''preceding'', ''modified_preceding'', ''half_month_modified_following'' or ''nearest''.')),
    business_day_offset integer NOT NULL DEFAULT 0
        CONSTRAINT schedule_business_day_offset_check CHECK (business_day_offset BETWEEN -31 AND 31
            OR reports.refuse_value(format('schedule "%s"', name), 'business_day_offset', business_day_offset::text, 'Write a number of business days from -31 to 31.')),
    roll_collision text NOT NULL DEFAULT 'coalesce'
        CONSTRAINT schedule_roll_collision_check CHECK (roll_collision IN ('coalesce', 'run_all')
            OR reports.refuse_value(format('schedule "%s"', name), 'roll_collision', roll_collision, 'Write ''coalesce'' or ''run_all''.')),
    business_date text NOT NULL DEFAULT 'run_date',
    misfire text
        CONSTRAINT schedule_misfire_check CHECK ((misfire IN ('run_all', 'run_latest', 'skip', 'coalesce')) IS NOT FALSE
            OR reports.refuse_value(format('schedule "%s"', name), 'misfire', misfire, 'Write ''run_all'', ''run_latest'', ''skip'' or ''coalesce'', or NULL for the default.')),
    misfire_max integer NOT NULL DEFAULT 31
        CONSTRAINT schedule_misfire_max_check CHECK (misfire_max BETWEEN 1 AND 1000
            OR reports.refuse_value(format('schedule "%s"', name), 'misfire_max', misfire_max::text, 'Write a number from 1 to 1000; for none at all: misfire = ''skip''.')),
    misfire_age interval NOT NULL DEFAULT '7 days'
        CONSTRAINT schedule_misfire_age_check CHECK (misfire_age BETWEEN interval '1 minute' AND interval '3660 days'
            OR reports.refuse_value(format('schedule "%s"', name), 'misfire_age', misfire_age::text, 'Write an interval from 1 minute to 3660 days; for none at all: misfire = ''skip''.')),
    misfire_grace interval NOT NULL DEFAULT '60 seconds'
        CONSTRAINT schedule_misfire_grace_check CHECK (misfire_grace BETWEEN interval '1 second' AND interval '1 day'
            OR reports.refuse_value(format('schedule "%s"', name), 'misfire_grace', misfire_grace::text, 'Write an interval from 1 second to 1 day.')),
    overlap text NOT NULL DEFAULT 'allow'
        CONSTRAINT schedule_overlap_check CHECK (overlap IN ('allow', 'forbid', 'queue', 'replace')
            OR reports.refuse_value(format('schedule "%s"', name), 'overlap', overlap, 'Write ''allow'', ''forbid'', ''queue'' or ''replace''.')),
    queue reports.name NOT NULL DEFAULT 'default' REFERENCES reports.queue (name),
    priority integer NOT NULL DEFAULT 0
        CONSTRAINT schedule_priority_check CHECK (priority BETWEEN -1000 AND 1000
            OR reports.refuse_value(format('schedule "%s"', name), 'priority', priority::text, 'Write a number from -1000 to 1000; higher is claimed first.')),
    jitter_s integer NOT NULL DEFAULT 0
        CONSTRAINT schedule_jitter_s_check CHECK (jitter_s BETWEEN 0 AND 3600
            OR reports.refuse_value(format('schedule "%s"', name), 'jitter_s', jitter_s::text, 'Write a number of seconds from 0 to 3600.')),
    max_attempts integer NOT NULL DEFAULT 3
        CONSTRAINT schedule_max_attempts_check CHECK (max_attempts BETWEEN 1 AND 100
            OR reports.refuse_value(format('schedule "%s"', name), 'max_attempts', max_attempts::text, 'Write a number from 1 (no retries) to 100.')),
    retry_base interval NOT NULL DEFAULT '10 seconds'
        CONSTRAINT schedule_retry_base_check CHECK (retry_base BETWEEN interval '0' AND interval '1 day'
            OR reports.refuse_value(format('schedule "%s"', name), 'retry_base', retry_base::text, 'Write an interval from 0 to 1 day.')),
    retry_cap interval NOT NULL DEFAULT '10 minutes'
        CONSTRAINT schedule_retry_cap_check CHECK (retry_cap BETWEEN interval '0' AND interval '7 days'
            OR reports.refuse_value(format('schedule "%s"', name), 'retry_cap', retry_cap::text, 'Write an interval from 0 to 7 days.')),
    timeout interval NOT NULL DEFAULT '1 hour'
        CONSTRAINT schedule_timeout_check CHECK (timeout BETWEEN interval '1 second' AND interval '7 days'
            OR reports.refuse_value(format('schedule "%s"', name), 'timeout', timeout::text, 'Write an interval from 1 second to 7 days.')),
    breaker_failures integer
        CONSTRAINT schedule_breaker_failures_check CHECK ((breaker_failures BETWEEN 1 AND 1000) IS NOT FALSE
            OR reports.refuse_value(format('schedule "%s"', name), 'breaker_failures', breaker_failures::text, 'Write a number from 1 to 1000, or NULL for no circuit breaker.')),
    breaker_probe interval NOT NULL DEFAULT '15 minutes'
        CONSTRAINT schedule_breaker_probe_check CHECK (breaker_probe BETWEEN interval '1 second' AND interval '7 days'
            OR reports.refuse_value(format('schedule "%s"', name), 'breaker_probe', breaker_probe::text, 'Write an interval from 1 second to 7 days.')),
    parameters jsonb NOT NULL DEFAULT '{}'
        CONSTRAINT schedule_parameters_check CHECK (jsonb_typeof(parameters) = 'object' AND octet_length(parameters::text) <= 65536
            OR reports.refuse_value(format('schedule "%s"', name), 'parameters', parameters::text, 'Write {"name": "value"} of at most 65536 bytes, or {} for none.')),
    owner text NOT NULL DEFAULT current_user,
    effective_from timestamptz
        CONSTRAINT schedule_effective_from_check CHECK ((isfinite(effective_from) AND effective_from < '10000-01-01') IS NOT FALSE
            OR reports.refuse_value(format('schedule "%s"', name), 'effective_from', effective_from::text, 'Write the instant from which the row counts, or NULL for now.')),
    CONSTRAINT paused_until_needs_paused CHECK (paused OR paused_until IS NULL
            OR reports.refuse(format('schedule "%s": paused_until is %s, and it is not paused', name, paused_until), 'Write paused = true too, or paused_until = NULL.')),
    CONSTRAINT starts_before_end CHECK (starts_at IS NULL OR ends_at IS NULL OR starts_at < ends_at
            OR reports.refuse(format('schedule "%s": it ends at %s, which is not after its start at %s', name, ends_at, starts_at), 'Write an ends_at after starts_at, or NULL.')),
    CONSTRAINT misfire_age_covers_grace CHECK (misfire_age >= misfire_grace
            OR reports.refuse(format('schedule "%s": misfire_age %s is less than misfire_grace %s', name, misfire_age, misfire_grace), 'Write a misfire_age of at least misfire_grace.'))
);
CREATE INDEX schedule_report ON reports.schedule (report);
CREATE INDEX schedule_calendar ON reports.schedule (calendar, scope) WHERE calendar IS NOT NULL;
CREATE INDEX schedule_paused_until ON reports.schedule (scope, paused_until) WHERE paused_until IS NOT NULL;
COMMENT ON TABLE reports.schedule IS 'When to produce a report. Edit rows freely: each edit becomes a version, and the leader takes it in.';
COMMENT ON COLUMN reports.schedule.name IS 'Identity for ever; inserting a deleted name again continues it.';
COMMENT ON COLUMN reports.schedule.scope IS 'The scope whose leader plans it; never changes.';
COMMENT ON COLUMN reports.schedule.report IS 'What to produce.';
COMMENT ON COLUMN reports.schedule.description IS 'For people.';
COMMENT ON COLUMN reports.schedule.kind IS 'cron, rrule, interval or once.';
COMMENT ON COLUMN reports.schedule.rule IS 'cron: five fields, six with seconds first, seven with the year last; rrule: as in RFC 5545, such as FREQ=WEEKLY;INTERVAL=2;BYDAY=MO; interval: elapsed time such as 15 minutes; once: a local time such as 2030-04-12T06:00, optionally with its offset.';
COMMENT ON COLUMN reports.schedule.dialect IS 'cron: std, or quartz: the rule is written as Quartz writes it (weekdays 1-7 from Sunday, ? in one day field); the leader turns it into std and plans by that.';
COMMENT ON COLUMN reports.schedule.time_zone IS 'IANA zone the rule is meant in, e.g. Europe/Berlin.';
COMMENT ON COLUMN reports.schedule.anchor IS 'interval: the instant counting starts from; filled with the time of creation.';
COMMENT ON COLUMN reports.schedule.start_local IS 'rrule: the local time it begins with (DTSTART), which its intervals are counted from.';
COMMENT ON COLUMN reports.schedule.exdates IS 'rrule: local times at which it does not fire (EXDATE); at most 1000.';
COMMENT ON COLUMN reports.schedule.rdates IS 'rrule: local times at which it fires besides (RDATE); at most 1000.';
COMMENT ON COLUMN reports.schedule.starts_at IS 'No firing before this instant; NULL: from creation on.';
COMMENT ON COLUMN reports.schedule.ends_at IS 'No firing at or after this instant; NULL: open.';
COMMENT ON COLUMN reports.schedule.paused IS 'true: nothing fires from the edit on. What was due meanwhile is recorded as one gap when it goes on.';
COMMENT ON COLUMN reports.schedule.paused_until IS 'paused: the instant from which the leader lets it go on by itself; NULL: somebody will. Cleared when it goes on.';
COMMENT ON COLUMN reports.schedule.dst_gap IS 'cron and rrule: a local time that the clock jumps over. after: at the first instant after the gap; shift: later by its length; skip: not at all; auto: cron after for fixed times and skip for jobs that follow the clock, rrule shift.';
COMMENT ON COLUMN reports.schedule.dst_overlap IS 'cron and rrule: a local time that the clock shows twice. first, second or both; auto: cron first for fixed times and both for jobs that follow the clock, rrule first.';
COMMENT ON COLUMN reports.schedule.calendar IS 'The calendar that says which days are business days; NULL: none.';
COMMENT ON COLUMN reports.schedule.calendar_version IS 'calendar.version that the schedule follows; set by trigger, also when the calendar changes.';
COMMENT ON COLUMN reports.schedule.nonbusiness IS 'What becomes of a date that is no business day. run: it stays; skip: it does not fire; following, modified_following, preceding, modified_preceding, half_month_modified_following, nearest: it moves to a business day, and the firing keeps its key.';
COMMENT ON COLUMN reports.schedule.business_day_offset IS 'So many business days after (negative: before) the date that nonbusiness names; 0: none.';
COMMENT ON COLUMN reports.schedule.roll_collision IS 'Dates that move to one day. coalesce: the latest of them fires; run_all: each, a second apart.';
COMMENT ON COLUMN reports.schedule.business_date IS 'What a firing is about: run_date (the nominal local date), t_minus(N) (N business days before it), previous_week, current_week, previous_month, current_month, previous_quarter, current_quarter, fiscal_period(NAME) (the one before, by fiscal_period); with " cutoff HH:MM" behind it what fires earlier counts for the day before.';
COMMENT ON COLUMN reports.schedule.misfire IS 'What becomes of firings missed by more than misfire_grace: run_all, run_latest, skip, or coalesce: one run whose window covers all of them; NULL: run_all for daily and coarser rules, run_latest for finer ones.';
COMMENT ON COLUMN reports.schedule.misfire_max IS 'run_all: most missed firings that are run; older ones become a gap.';
COMMENT ON COLUMN reports.schedule.misfire_age IS 'run_all: missed firings older than this become a gap.';
COMMENT ON COLUMN reports.schedule.misfire_grace IS 'A firing younger than this is late, not missed.';
COMMENT ON COLUMN reports.schedule.overlap IS 'When a firing is due while a job of the schedule is still open. allow: both run; forbid: it is not run, which a gap records; queue: its job waits for the other to end; replace: the other is cancelled, and its job waits for that.';
COMMENT ON COLUMN reports.schedule.queue IS 'Which workers may run its jobs.';
COMMENT ON COLUMN reports.schedule.priority IS 'Higher is claimed first within a queue.';
COMMENT ON COLUMN reports.schedule.jitter_s IS 'Spread: every firing is due later by a number of seconds from 0 to jitter_s - 1 that follows from the schedule''s name. Keys, windows, starts_at and ends_at do not move. 0: none.';
COMMENT ON COLUMN reports.schedule.max_attempts IS 'Attempts a job may use.';
COMMENT ON COLUMN reports.schedule.retry_base IS 'Wait before the second attempt; doubles with each further one, with a quarter of jitter either way.';
COMMENT ON COLUMN reports.schedule.retry_cap IS 'Longest wait between attempts, jitter included.';
COMMENT ON COLUMN reports.schedule.timeout IS 'An attempt that runs longer is killed and counts as failed.';
COMMENT ON COLUMN reports.schedule.breaker_failures IS 'Circuit breaker: after so many failed jobs in a row firings are not run, which a gap records, but for one probe at a time; one that succeeds ends it. NULL: none.';
COMMENT ON COLUMN reports.schedule.breaker_probe IS 'How long after it opened, and after each probe that failed, the next firing is run as a probe.';
COMMENT ON COLUMN reports.schedule.parameters IS 'Parameters of the report for this schedule.';
COMMENT ON COLUMN reports.schedule.owner IS 'Who to ask.';
COMMENT ON COLUMN reports.schedule.effective_from IS 'From when the row as it stands counts; until then the version before it is in force. NULL, or past: from the edit on. An edit made before then takes its place.';

-- A version is a full copy: what was planned stays explainable after any later edit.
CREATE TABLE reports.schedule_version (
    schedule reports.name NOT NULL,
    version integer NOT NULL,
    scope reports.name NOT NULL,
    effective_from timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    recorded_by text NOT NULL DEFAULT session_user,
    change_reason text,
    ended boolean NOT NULL,
    report text NOT NULL,
    description text NOT NULL,
    kind text NOT NULL,
    rule text NOT NULL,
    dialect text NOT NULL DEFAULT 'std',
    time_zone text NOT NULL,
    anchor timestamptz,
    start_local timestamp,
    exdates timestamp[],
    rdates timestamp[],
    starts_at timestamptz,
    ends_at timestamptz,
    paused boolean NOT NULL,
    paused_until timestamptz,
    dst_gap text NOT NULL,
    dst_overlap text NOT NULL,
    calendar text,
    calendar_version bigint,
    nonbusiness text NOT NULL,
    business_day_offset integer NOT NULL DEFAULT 0,
    roll_collision text NOT NULL DEFAULT 'coalesce',
    business_date text NOT NULL,
    misfire text,
    misfire_max integer NOT NULL,
    misfire_age interval NOT NULL,
    misfire_grace interval NOT NULL,
    overlap text NOT NULL,
    queue text NOT NULL,
    priority integer NOT NULL,
    jitter_s integer NOT NULL,
    max_attempts integer NOT NULL,
    retry_base interval NOT NULL,
    retry_cap interval NOT NULL,
    timeout interval NOT NULL,
    breaker_failures integer,
    breaker_probe interval NOT NULL DEFAULT '15 minutes',
    parameters jsonb NOT NULL,
    owner text NOT NULL,
    PRIMARY KEY (schedule, version)
);
COMMENT ON TABLE reports.schedule_version IS 'One definition of a schedule with the instant it begins; appended by trigger, never changed.';
COMMENT ON COLUMN reports.schedule_version.schedule IS 'Name of the schedule.';
COMMENT ON COLUMN reports.schedule_version.version IS '1, 2, 3 ... within the schedule, also over deletion and re-creation.';
COMMENT ON COLUMN reports.schedule_version.effective_from IS 'The version before plans everything due before this instant.';
COMMENT ON COLUMN reports.schedule_version.recorded_at IS 'When the edit was made.';
COMMENT ON COLUMN reports.schedule_version.recorded_by IS 'Login role that made the edit.';
COMMENT ON COLUMN reports.schedule_version.change_reason IS 'Why, where a request said it.';
COMMENT ON COLUMN reports.schedule_version.ended IS 'The schedule was deleted: nothing fires under this version.';
DO $$
DECLARE
    c record;
BEGIN
    FOR c IN
        SELECT v.column_name, col_description('reports.schedule'::regclass, s.ordinal_position) AS text
          FROM information_schema.columns v
          JOIN information_schema.columns s
            ON s.table_schema = 'reports' AND s.table_name = 'schedule' AND s.column_name = v.column_name
         WHERE v.table_schema = 'reports' AND v.table_name = 'schedule_version' AND v.column_name NOT IN ('name', 'effective_from')
    LOOP
        EXECUTE format('COMMENT ON COLUMN reports.schedule_version.%I IS %L', c.column_name, 'As in schedule. ' || c.text);
    END LOOP;
END
$$;

CREATE TABLE reports.schedule_change (
    id bigint GENERATED ALWAYS AS IDENTITY,
    scope reports.name NOT NULL,
    schedule reports.name NOT NULL,
    version integer NOT NULL,
    made_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    announced boolean NOT NULL DEFAULT false,
    PRIMARY KEY (scope, id)
);
CREATE INDEX schedule_change_announced ON reports.schedule_change (scope, made_at) WHERE announced;
-- For due: what fires now, and was it edited? For changes: the oldest edit of each schedule.
CREATE INDEX schedule_change_schedule ON reports.schedule_change (scope, schedule, version);
COMMENT ON TABLE reports.schedule_change IS 'An edit the leader has not taken in yet; the durable side of NOTIFY.';
COMMENT ON COLUMN reports.schedule_change.id IS 'Order of arrival; not of commit, so the leader reads rows, never a cursor.';
COMMENT ON COLUMN reports.schedule_change.scope IS 'Scope of the schedule.';
COMMENT ON COLUMN reports.schedule_change.schedule IS 'The schedule.';
COMMENT ON COLUMN reports.schedule_change.version IS 'The version to take in.';
COMMENT ON COLUMN reports.schedule_change.made_at IS 'When the edit was made; of one that is announced: when it begins.';
COMMENT ON COLUMN reports.schedule_change.announced IS 'It begins later than it was made, and nobody looks at it before then.';

CREATE FUNCTION reports.check_report() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NEW.kind = 'http' THEN
        RAISE EXCEPTION 'report "%": kind ''http'' is not supported yet', NEW.name
            USING ERRCODE = 'feature_not_supported', HINT = 'Write kind = ''sql'', ''program'' or ''noop''.';
    END IF;
    IF NEW.kind = 'sql' AND NEW.format NOT IN ('csv', 'json') THEN
        RAISE EXCEPTION 'report "%": format % is not supported yet for sql', NEW.name, quote_literal(NEW.format)
            USING ERRCODE = 'feature_not_supported', HINT = 'Write format = ''csv'' or ''json''.';
    END IF;
    NEW.updated_at := clock_timestamp();
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION reports.check_report() IS 'Trigger on report: refuses formats that are not there yet.';
CREATE TRIGGER check_report BEFORE INSERT OR UPDATE ON reports.report
    FOR EACH ROW EXECUTE FUNCTION reports.check_report();

-- Only what is certain: a number that its field does not have. The leader knows the whole grammar.
CREATE FUNCTION reports.check_cron_numbers(p_schedule text, p_rule text) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    wrong record;
BEGIN
    -- Steps (/5), the n-th weekday (#2) and days before the last (L-3) have bounds of their own.
    SELECT f.what, f.low, f.high, n.digits[1] AS number INTO wrong
      FROM (SELECT f.fields, cardinality(f.fields) > 5 AS seconds FROM regexp_split_to_array(btrim(p_rule), '\s+') AS f (fields)) c
     CROSS JOIN LATERAL unnest(c.fields, CASE WHEN c.seconds THEN '{second}'::text[] END || '{minute,hour,day,month,weekday,year}'::text[],
                               CASE WHEN c.seconds THEN '{0}'::integer[] END || '{0,0,1,1,0,1970}'::integer[],
                               CASE WHEN c.seconds THEN '{59}'::integer[] END || '{59,23,31,12,7,2199}'::integer[])
               AS f (field, what, low, high)
     CROSS JOIN LATERAL regexp_matches(regexp_replace(f.field, '(/|#|L-)[0-9]+', '', 'gi'), '[0-9]+', 'g') AS n (digits)
     WHERE n.digits[1]::numeric NOT BETWEEN f.low AND f.high
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'schedule "%": % % of cron rule % is not within % to %', p_schedule, wrong.what, wrong.number,
            quote_literal(p_rule), wrong.low, wrong.high
            USING ERRCODE = 'invalid_parameter_value', HINT = 'The fields are [second] minute hour day month weekday [year]: 30 6 * * 1-5 is 06:30 from Monday to Friday.';
    END IF;
END
$$;
COMMENT ON FUNCTION reports.check_cron_numbers(text, text) IS 'Refuses a cron rule with a number that its field does not have.';

-- Steps and n-th weekdays, which check_cron_numbers leaves out.
CREATE FUNCTION reports.check_cron_steps(p_schedule text, p_rule text) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    wrong record;
BEGIN
    IF p_rule !~ '[/#]' THEN
        RETURN;
    END IF;
    SELECT f.what, f.most, f.unit, i.text, s.step[1]::numeric AS step INTO wrong
      FROM (SELECT f.fields, cardinality(f.fields) > 5 AS seconds FROM regexp_split_to_array(btrim(p_rule), '\s+') AS f (fields)) c
     CROSS JOIN LATERAL unnest(c.fields, CASE WHEN c.seconds THEN '{second}'::text[] END || '{minute,hour,"day of month",month,"day of week",year}'::text[],
                               CASE WHEN c.seconds THEN '{60}'::integer[] END || '{60,24,31,12,7,230}'::integer[],
                               CASE WHEN c.seconds THEN '{seconds}'::text[] END || '{minutes,hours,NULL,NULL,NULL,NULL}'::text[])
               AS f (field, what, most, unit)
     CROSS JOIN LATERAL unnest(string_to_array(f.field, ',')) AS i (text)
      LEFT JOIN LATERAL regexp_match(i.text, '/([0-9]+)$') AS s (step) ON true
     WHERE s.step[1]::numeric NOT BETWEEN 1 AND f.most OR (f.what = 'day of week' AND i.text ~ '#' AND i.text !~* '#([1-5]|L)$')
     LIMIT 1;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    RAISE EXCEPTION 'schedule "%": cron %: % "%": %', p_schedule, quote_literal(p_rule), wrong.what, wrong.text,
        CASE WHEN wrong.step IS NULL THEN 'a month has no such weekday' ELSE 'the step is out of range' END
        USING ERRCODE = 'invalid_parameter_value',
              HINT = CASE WHEN wrong.step IS NULL THEN 'Write one weekday and which in the month: 5#1 to 5#5, or 5L for the last.'
                          ELSE format('Write /1 to /%s', wrong.most)
                               || CASE WHEN wrong.step > wrong.most AND wrong.unit IS NOT NULL
                                       THEN format('; every %s %s is no cron but kind = ''interval'', rule = ''%s %s''', wrong.step, wrong.unit, wrong.step, wrong.unit)
                                       ELSE '' END || '.' END;
END
$$;
COMMENT ON FUNCTION reports.check_cron_steps(text, text) IS 'Refuses a cron rule with a step or an n-th weekday that its field does not have.';

-- What comes before the grammar of a recurrence rule, of which the leader knows the whole.
CREATE FUNCTION reports.check_recurrence(p_schedule text, p_rule text) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    frequency text := substring(p_rule FROM '(?i)(?:^|[;:])FREQ=([^;]*)');
BEGIN
    IF p_rule ~* '^RRULE:' THEN
        RAISE EXCEPTION 'schedule "%": % has "RRULE:" before the rule', p_schedule, quote_literal(p_rule)
            USING ERRCODE = 'invalid_parameter_value', HINT = format('Write only what follows it: %s', substr(p_rule, 7));
    ELSIF upper(frequency) = 'SECONDLY' THEN
        RAISE EXCEPTION 'schedule "%": FREQ=SECONDLY is not taken', p_schedule
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Write kind = ''interval'' with a rule such as 30 seconds, or FREQ=MINUTELY with BYSECOND.';
    ELSIF upper(frequency) <> ALL ('{MINUTELY,HOURLY,DAILY,WEEKLY,MONTHLY,YEARLY}') THEN
        RAISE EXCEPTION 'schedule "%": FREQ "%" is unknown', p_schedule, frequency
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Write MINUTELY, HOURLY, DAILY, WEEKLY, MONTHLY or YEARLY.';
    ELSIF p_rule ~* '(^|;)INTERVAL=0*(;|$)' THEN
        RAISE EXCEPTION 'schedule "%": % has no number from 1 on as INTERVAL', p_schedule, quote_literal(p_rule)
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Write a number from 1 on: INTERVAL=2 is every second one.';
    END IF;
END
$$;
COMMENT ON FUNCTION reports.check_recurrence(text, text) IS 'Refuses a recurrence rule with a prefix, or with a frequency or an interval that there is not.';

-- PostgreSQL takes a zone in any case of its letters, the leader as the list has it.
CREATE FUNCTION reports.zone_as_listed(p_zone text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET TimeZone = 'UTC' AS $$
BEGIN
    PERFORM set_config('TimeZone', p_zone, true);
    RETURN current_setting('TimeZone');
EXCEPTION WHEN OTHERS THEN
    RETURN p_zone; -- an abbreviation: what it may be, others judge
END
$$;
COMMENT ON FUNCTION reports.zone_as_listed(text) IS 'A time zone''s name in the letters of the list that PostgreSQL has it from.';

-- The rule's shape. The leader's own parser is the judge of the rest and writes `problem`.
CREATE FUNCTION reports.check_rule(p_schedule text, p_kind text, p_rule text, p_dialect text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    fields integer;
    length interval;
BEGIN
    IF p_kind = 'cron' THEN
        fields := cardinality(regexp_split_to_array(btrim(p_rule), '\s+'));
        IF p_dialect = 'quartz' THEN
            IF fields NOT IN (6, 7) THEN
                RAISE EXCEPTION 'schedule "%": a quartz rule has six or seven fields (second minute hour day month weekday [year]), % has %',
                    p_schedule, quote_literal(p_rule), fields
                    USING ERRCODE = 'invalid_parameter_value', HINT = 'Example: 0 30 6 ? * MON-FRI is 06:30 from Monday to Friday. With five fields write dialect = ''std''.';
            END IF;
        ELSIF p_rule ~ '^@' THEN
            IF p_rule !~ '^@(yearly|annually|monthly|weekly|daily|midnight|hourly)$' THEN
                RAISE EXCEPTION 'schedule "%": unknown cron nickname %', p_schedule, quote_literal(p_rule)
                    USING ERRCODE = 'invalid_parameter_value',
                          HINT = 'Write @hourly, @daily, @weekly, @monthly or @yearly in lower case, or five fields.';
            END IF;
        ELSIF fields NOT BETWEEN 5 AND 7 THEN
            RAISE EXCEPTION 'schedule "%": a cron rule has five fields (minute hour day month weekday), six with seconds first or seven with the year last, % has %',
                p_schedule, quote_literal(p_rule), fields
                USING ERRCODE = 'invalid_parameter_value', HINT = 'Example: 30 6 * * 1-5 is 06:30 from Monday to Friday.';
        ELSIF p_rule !~ '^[0-9A-Za-z*/,\-\s#+?]+$' THEN
            RAISE EXCEPTION 'schedule "%": cron rule % has characters that cannot stand in one', p_schedule, quote_literal(p_rule)
                USING ERRCODE = 'invalid_parameter_value', HINT = 'Example: 30 6 * * 1-5 is 06:30 from Monday to Friday.';
        ELSE
            PERFORM reports.check_cron_numbers(p_schedule, p_rule);
            PERFORM reports.check_cron_steps(p_schedule, p_rule);
        END IF;
    ELSIF p_kind = 'rrule' THEN
        IF p_rule !~ '^[A-Za-z0-9=;,:+-]+$' OR p_rule !~* '(^|;|:)FREQ=' THEN
            RAISE EXCEPTION 'schedule "%": % is not a recurrence rule', p_schedule, quote_literal(p_rule)
                USING ERRCODE = 'invalid_parameter_value', HINT = 'Write it as in RFC 5545 without blanks, e.g. FREQ=WEEKLY;INTERVAL=2;BYDAY=MO.';
        END IF;
        PERFORM reports.check_recurrence(p_schedule, p_rule);
    ELSIF p_kind = 'interval' THEN
        BEGIN
            length := p_rule::interval;
        EXCEPTION WHEN OTHERS THEN
            RAISE EXCEPTION 'schedule "%": % is not an interval', p_schedule, quote_literal(p_rule)
                USING ERRCODE = 'invalid_parameter_value', HINT = 'Write elapsed time such as 15 minutes or 36 hours.';
        END;
        IF extract(year FROM length) <> 0 OR extract(month FROM length) <> 0 THEN
            RAISE EXCEPTION 'schedule "%": an interval is elapsed time and cannot have months or years', p_schedule
                USING ERRCODE = 'invalid_parameter_value', HINT = 'Use kind = ''cron'' for calendar months, e.g. 0 6 1 * *.';
        END IF;
        IF length < interval '1 second' THEN
            RAISE EXCEPTION 'schedule "%": an interval is at least 1 second', p_schedule
                USING ERRCODE = 'invalid_parameter_value', HINT = 'Write elapsed time such as 15 minutes or 36 hours.';
        END IF;
        IF p_rule ~ '^\s*[0-9]+\s*$' THEN
            RAISE EXCEPTION 'schedule "%": interval %: a unit is missing after %', p_schedule, quote_literal(p_rule), btrim(p_rule)
                USING ERRCODE = 'invalid_parameter_value', HINT = format('Write it: %s minutes, or %s seconds, which PostgreSQL takes it for.', btrim(p_rule), btrim(p_rule));
        ELSIF p_rule !~ '^\s*([0-9]+\s*(s|sec|seconds?|mins?|minutes?|h|hours?|d|days?|weeks?)(?![a-z])\s*)+$' THEN
            RAISE EXCEPTION 'schedule "%": interval % is not made of whole numbers, each with its unit', p_schedule, quote_literal(p_rule)
                USING ERRCODE = 'invalid_parameter_value', HINT = 'Write seconds, minutes, hours, days or weeks in small letters, such as 1 hour 30 minutes.';
        END IF;
    ELSIF p_kind = 'once' THEN
        IF p_rule !~ '^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d)?$' THEN
            RAISE EXCEPTION 'schedule "%": % is not a local time', p_schedule, quote_literal(p_rule)
                USING ERRCODE = 'invalid_parameter_value', HINT = 'Write YYYY-MM-DDTHH:MM, e.g. 2030-04-12T06:00.';
        END IF;
        BEGIN
            PERFORM regexp_replace(p_rule, '(Z|[+-]\d\d:\d\d)$', '')::timestamp;
        EXCEPTION WHEN OTHERS THEN
            RAISE EXCEPTION 'schedule "%": % names a day or time that does not exist', p_schedule, quote_literal(p_rule)
                USING ERRCODE = 'invalid_parameter_value', HINT = 'Write YYYY-MM-DDTHH:MM, e.g. 2030-04-12T06:00.';
        END;
    END IF;
    -- Any other kind is refused by the column's CHECK, which names it.
END
$$;
COMMENT ON FUNCTION reports.check_rule(text, text, text, text) IS 'Refuses a rule whose shape cannot work.';

-- What stands beside the rule.
CREATE FUNCTION reports.check_dates(p_schedule text, p_column text, p_dates timestamp[]) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    wrong text;
BEGIN
    IF cardinality(p_dates) > 1000 OR array_ndims(p_dates) > 1 THEN
        RAISE EXCEPTION 'schedule "%": % has % local times', p_schedule, p_column, cardinality(p_dates)
            USING ERRCODE = 'check_violation', HINT = 'Write a list of at most 1000.';
    END IF;
    SELECT coalesce(quote_literal(d.at), 'NULL') INTO wrong FROM unnest(p_dates) AS d (at)
     WHERE (isfinite(d.at) AND d.at >= '0001-01-01' AND d.at < '10000-01-01' AND date_trunc('second', d.at) = d.at) IS NOT TRUE LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'schedule "%": % has %, which is not a local time in whole seconds', p_schedule, p_column, wrong
            USING ERRCODE = 'check_violation', HINT = 'Write YYYY-MM-DDTHH:MM:SS, e.g. {2030-04-12T06:00:00}.';
    END IF;
END
$$;
COMMENT ON FUNCTION reports.check_dates(text, text, timestamp[]) IS 'Refuses a list of local times that no rule could use.';

CREATE FUNCTION reports.check_rule_columns(s reports.schedule) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    col text;
    allowed text;
    kinds text;
BEGIN
    SELECT c.col, c.allowed, c.kinds INTO col, allowed, kinds
      FROM (VALUES ('start_local', s.start_local IS NOT NULL, '{rrule}'::text[], 'NULL', 'rrule'),
                   ('exdates', s.exdates IS NOT NULL, '{rrule}', 'NULL', 'rrule'),
                   ('rdates', s.rdates IS NOT NULL, '{rrule}', 'NULL', 'rrule'),
                   ('dialect', s.dialect <> 'std', '{cron}', '''std''', 'cron'),
                   ('dst_gap', s.dst_gap <> 'auto', '{cron,rrule}', '''auto''', 'cron and rrule'),
                   ('dst_overlap', s.dst_overlap <> 'auto', '{cron,rrule}', '''auto''', 'cron and rrule'))
           AS c (col, given, for_kinds, allowed, kinds)
     WHERE c.given AND s.kind <> ALL (c.for_kinds) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'schedule "%": % is for % only, and its kind is ''%''', s.name, col, kinds, s.kind
            USING ERRCODE = 'check_violation', HINT = format('Write %s = %s.', col, allowed);
    END IF;
    IF s.calendar IS NOT NULL AND s.kind = 'interval' THEN
        RAISE EXCEPTION 'schedule "%": an interval is elapsed time and takes no calendar', s.name
            USING ERRCODE = 'check_violation', HINT = 'Write calendar = NULL, or kind = ''cron'' or ''rrule''.';
    END IF;
    IF s.calendar IS NULL AND (s.nonbusiness <> 'run' OR s.business_day_offset <> 0) THEN
        RAISE EXCEPTION 'schedule "%": nonbusiness and business_day_offset need a calendar', s.name
            USING ERRCODE = 'check_violation', HINT = 'Write the name of one of reports.calendar; reportctl calendar import nyse makes a shipped one.';
    END IF;
    IF s.kind = 'rrule' THEN
        IF s.start_local IS NULL THEN
            RAISE EXCEPTION 'schedule "%": a recurrence rule needs start_local', s.name
                USING ERRCODE = 'check_violation', HINT = 'Write the local time of its first firing, e.g. 2030-04-12T06:00:00.';
        END IF;
        PERFORM reports.check_dates(s.name, 'start_local', ARRAY[s.start_local]);
        PERFORM reports.check_dates(s.name, 'exdates', s.exdates);
        PERFORM reports.check_dates(s.name, 'rdates', s.rdates);
    END IF;
END
$$;
COMMENT ON FUNCTION reports.check_rule_columns(reports.schedule) IS 'Refuses what stands beside a rule and cannot belong to it.';

-- A key is used once for ever, so an edit that is certain to come back to used ones is refused here, with
-- the way out. What only the rule can tell the leader finds, and writes `problem`.
CREATE FUNCTION reports.check_repeat(p_new reports.schedule, p_old reports.schedule) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    p record;
    used text;
    local_now timestamp;
BEGIN
    IF p_new.kind = p_old.kind AND p_new.rule = p_old.rule AND p_new.time_zone = p_old.time_zone THEN
        RETURN;
    END IF;
    SELECT * INTO p FROM reports.schedule_progress q WHERE q.schedule = p_new.name;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF p_new.kind = 'once' AND p.key_form = 'date' THEN
        used := to_char(CASE WHEN p_new.rule ~ '(Z|[+-]\d\d:\d\d)$' THEN p_new.rule::timestamptz AT TIME ZONE p_new.time_zone
                             ELSE p_new.rule::timestamp END, 'YYYY-MM-DD');
        IF EXISTS (SELECT FROM reports.occurrence o WHERE o.schedule = p_new.name AND o.occurrence_key = used) THEN
            RAISE EXCEPTION 'schedule "%": it has fired for % already, and each date fires once', p_new.name, used
                USING ERRCODE = 'unique_violation', HINT = 'Insert a new schedule for the new time.';
        END IF;
    END IF;
    -- The same rule west of here names the same local times again.
    IF p_new.kind = 'cron' AND p_old.kind = 'cron' AND p_new.rule = p_old.rule AND NOT p_new.paused
       AND p.key_form IN ('minute', 'second') THEN
        local_now := clock_timestamp() AT TIME ZONE p_new.time_zone;
        used := to_char(p.last_nominal, CASE p.key_form WHEN 'minute' THEN 'YYYY-MM-DD"T"HH24:MI' ELSE 'YYYY-MM-DD"T"HH24:MI:SS' END);
        IF p.last_nominal > local_now
           AND (p_new.starts_at IS NULL OR p_new.starts_at <= clock_timestamp())
           AND (p_new.ends_at IS NULL OR p_new.ends_at > p.last_nominal AT TIME ZONE p_new.time_zone)
           AND EXISTS (SELECT FROM reports.occurrence o WHERE o.schedule = p_new.name AND o.occurrence_key = used) THEN
            RAISE EXCEPTION 'schedule "%": in % it is % now, and it has fired for local times up to % already', p_new.name,
                p_new.time_zone, to_char(local_now, 'YYYY-MM-DD"T"HH24:MI'), used
                USING ERRCODE = 'unique_violation', HINT = 'Insert a new schedule for the new zone and delete this one.';
        END IF;
    END IF;
END
$$;
COMMENT ON FUNCTION reports.check_repeat(reports.schedule, reports.schedule) IS 'Refuses an edit that would certainly fire again under keys that exist.';

-- What an edit leaves of the end of a pause: with the pause it is gone, also when its time had come and no leader was there.
CREATE FUNCTION reports.check_paused_until(p_new reports.schedule, p_old reports.schedule) RETURNS timestamptz
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kept boolean := p_new.paused_until = p_old.paused_until;
BEGIN
    IF kept AND NOT p_new.paused THEN
        RETURN NULL;
    END IF;
    IF p_new.paused_until <= clock_timestamp() OR p_new.paused_until <= p_new.effective_from THEN
        RAISE EXCEPTION 'schedule "%": paused_until, %, is not after %', p_new.name, p_new.paused_until,
            CASE WHEN p_new.paused_until <= clock_timestamp() THEN format('now, %s', date_trunc('second', clock_timestamp()))
                 ELSE format('effective_from, %s', p_new.effective_from) END
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Write an instant that is to come, or NULL for a pause without end.';
    END IF;
    RETURN p_new.paused_until;
END
$$;
COMMENT ON FUNCTION reports.check_paused_until(reports.schedule, reports.schedule) IS 'The paused_until that a row may have; refuses one that is past.';

CREATE FUNCTION reports.check_schedule() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    listed text;
BEGIN
    IF TG_OP = 'UPDATE' AND (NEW.name <> OLD.name OR NEW.scope <> OLD.scope) THEN
        RAISE EXCEPTION 'schedule "%": name and scope never change', OLD.name
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Insert a new schedule under another name and delete this one.';
    END IF;
    -- A change of the calendar that is being made finds the schedules that use it by what is committed: wait for it.
    IF TG_OP = 'INSERT' OR NEW.calendar IS DISTINCT FROM OLD.calendar THEN
        PERFORM FROM reports.calendar c WHERE c.name = NEW.calendar FOR SHARE;
    END IF;
    NEW.calendar_version := (SELECT c.version FROM reports.calendar c WHERE c.name = NEW.calendar);
    IF NEW.calendar IS NOT NULL AND NEW.calendar_version IS NULL THEN
        RAISE EXCEPTION 'schedule "%": calendar "%" does not exist', NEW.name, NEW.calendar
            USING ERRCODE = 'foreign_key_violation', HINT = format('Make it first, or correct the name: reportctl calendar list; reportctl calendar import %s makes a shipped one.', NEW.calendar);
    END IF;
    PERFORM reports.check_business_date(NEW, CASE WHEN TG_OP = 'UPDATE' THEN OLD.business_date END);
    -- Its time had come before the edit, which is one of a schedule that goes on (record_version).
    NEW.paused := NEW.paused AND NOT (TG_OP = 'UPDATE' AND coalesce(NEW.paused_until = OLD.paused_until AND OLD.paused_until <= clock_timestamp(), false));
    NEW.paused_until := reports.check_paused_until(NEW, CASE WHEN TG_OP = 'UPDATE' THEN OLD END);
    PERFORM reports.check_rule(NEW.name, NEW.kind, NEW.rule, NEW.dialect);
    PERFORM reports.check_rule_columns(NEW);
    -- Abbreviations and POSIX strings are known to PostgreSQL too; the leader refuses those.
    BEGIN
        PERFORM clock_timestamp() AT TIME ZONE NEW.time_zone;
    EXCEPTION WHEN OTHERS THEN
        RAISE EXCEPTION 'schedule "%": unknown time zone %', NEW.name, quote_literal(NEW.time_zone)
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Write an IANA name such as Europe/Berlin or UTC.';
    END;
    IF NEW.time_zone <> 'UTC' AND (TG_OP = 'INSERT' OR NEW.time_zone IS DISTINCT FROM OLD.time_zone) THEN
        listed := reports.zone_as_listed(NEW.time_zone);
        IF NEW.time_zone <> listed AND lower(NEW.time_zone) = lower(listed) THEN
            RAISE EXCEPTION 'schedule "%": unknown time zone %', NEW.name, quote_literal(NEW.time_zone)
                USING ERRCODE = 'invalid_parameter_value', HINT = format('Write %s: its letters count.', quote_literal(listed));
        END IF;
    END IF;
    PERFORM reports.check_repeat(NEW, CASE WHEN TG_OP = 'UPDATE' THEN OLD END);
    IF NEW.kind = 'interval' AND NEW.anchor IS NULL THEN
        NEW.anchor := date_trunc('second', clock_timestamp());
    END IF;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION reports.check_schedule() IS 'Trigger on schedule: refuses what cannot work.';
CREATE TRIGGER check_schedule BEFORE INSERT OR UPDATE ON reports.schedule
    FOR EACH ROW EXECUTE FUNCTION reports.check_schedule();

-- A version that is announced and has not begun gives way to the next edit: it begins with that, and so
-- is in force for no time.
CREATE FUNCTION reports.replace_announced(p_scope text, p_schedule text, p_begins timestamptz, p_announced boolean) RETURNS timestamptz
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    gone integer[] := ARRAY(SELECT c.version FROM reports.schedule_change c
                             WHERE c.scope = p_scope AND c.schedule = p_schedule AND c.announced AND c.made_at > clock_timestamp());
    begins timestamptz := p_begins;
BEGIN
    IF cardinality(gone) > 0 THEN
        begins := greatest(begins, (SELECT v.effective_from FROM reports.schedule_version v
                                     WHERE v.schedule = p_schedule AND v.version <> ALL (gone) ORDER BY v.version DESC LIMIT 1));
        UPDATE reports.schedule_version v SET effective_from = begins WHERE v.schedule = p_schedule AND v.version = ANY (gone);
        UPDATE reports.schedule_change c SET made_at = CASE WHEN p_announced THEN begins ELSE clock_timestamp() END, announced = p_announced
         WHERE c.scope = p_scope AND c.schedule = p_schedule AND c.version = ANY (gone);
    END IF;
    RETURN begins;
END
$$;
COMMENT ON FUNCTION reports.replace_announced(text, text, timestamptz, boolean) IS 'An edit takes the place of versions that are announced; answers when it can begin.';

-- Two editors of one schedule are ordered by the row they both change; a re-insert after a delete by the primary
-- key. Versions begin in the order of their numbers, whatever the clock does.
CREATE FUNCTION reports.append_version(s reports.schedule, p_begins timestamptz, p_why text, p_ended boolean, p_announced boolean) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    next_version integer;
    begins timestamptz := reports.replace_announced(s.scope, s.name, p_begins, p_announced);
    latest timestamptz;
    its_scope text;
BEGIN
    SELECT v.version + 1, v.effective_from, v.scope INTO next_version, latest, its_scope
      FROM reports.schedule_version v WHERE v.schedule = s.name ORDER BY v.version DESC LIMIT 1;
    -- A name that was deleted goes on when it is inserted again, and its progress is one leader's for ever (I1).
    IF its_scope <> s.scope THEN
        RAISE EXCEPTION 'schedule "%": this name belongs to scope "%" for ever, also after its deletion', s.name, its_scope
            USING ERRCODE = 'invalid_parameter_value', HINT = format('Choose another name for a schedule in scope "%s".', s.scope);
    END IF;
    begins := greatest(begins, latest);
    INSERT INTO reports.schedule_version
        (schedule, version, scope, effective_from, change_reason, ended, report, description, kind, rule, time_zone,
         dialect, anchor, start_local, exdates, rdates, starts_at, ends_at, paused, paused_until, dst_gap, dst_overlap, calendar, calendar_version, nonbusiness,
         business_day_offset, roll_collision, business_date, misfire, misfire_max, misfire_age, misfire_grace, overlap, queue, priority,
         jitter_s, max_attempts, retry_base, retry_cap, timeout, breaker_failures, breaker_probe, parameters, owner)
    VALUES
        (s.name, coalesce(next_version, 1), s.scope, begins, p_why, p_ended, s.report, s.description,
         s.kind, s.rule, s.time_zone, s.dialect, s.anchor, s.start_local, s.exdates, s.rdates, s.starts_at, s.ends_at, s.paused, s.paused_until, s.dst_gap,
         s.dst_overlap, s.calendar, s.calendar_version, s.nonbusiness, s.business_day_offset, s.roll_collision, s.business_date, s.misfire, s.misfire_max,
         s.misfire_age, s.misfire_grace, s.overlap, s.queue, s.priority, s.jitter_s, s.max_attempts,
         s.retry_base, s.retry_cap, s.timeout, s.breaker_failures, s.breaker_probe, s.parameters, s.owner);
    INSERT INTO reports.schedule_change (scope, schedule, version, made_at, announced)
    VALUES (s.scope, s.name, coalesce(next_version, 1), CASE WHEN p_announced THEN begins ELSE clock_timestamp() END, p_announced);
END
$$;
COMMENT ON FUNCTION reports.append_version(reports.schedule, timestamptz, text, boolean, boolean) IS 'Appends a version with its change row.';

-- The version that is or was planned before those that are announced; an ended one or none: NULLs.
CREATE FUNCTION reports.version_before_announced(p_scope text, p_schedule text) RETURNS reports.schedule_version
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    its reports.schedule_version;
BEGIN
    SELECT v.* INTO its FROM reports.schedule_version v
     WHERE v.schedule = p_schedule
       AND NOT EXISTS (SELECT FROM reports.schedule_change c
                        WHERE c.scope = p_scope AND c.schedule = p_schedule AND c.version = v.version AND c.announced
                          AND c.made_at > clock_timestamp())
     ORDER BY v.version DESC LIMIT 1;
    RETURN CASE WHEN NOT its.ended THEN its END;
END
$$;
COMMENT ON FUNCTION reports.version_before_announced(text, text) IS 'The version of a schedule that counts until an announced one begins.';

-- A pause that is asked for, and its end, are of the rule in force as well as of what is announced: both go on as
-- they are written. What was announced before is in force for no time, and the leader need not see it.
CREATE FUNCTION reports.append_pause(s reports.schedule, p_begins timestamptz, p_why text) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    its reports.schedule_version := reports.version_before_announced(s.scope, s.name);
    its_pause jsonb := jsonb_build_object('paused', s.paused, 'paused_until', s.paused_until);
BEGIN
    IF its.version IS NOT NULL THEN
        PERFORM reports.append_version(jsonb_populate_record(s, to_jsonb(its) || its_pause), p_begins, p_why, false, false);
        DELETE FROM reports.schedule_change c
         WHERE c.scope = s.scope AND c.schedule = s.name AND c.version > its.version
           AND c.version < (SELECT max(v.version) FROM reports.schedule_version v WHERE v.schedule = s.name);
    END IF;
    PERFORM reports.append_version(s, s.effective_from, p_why, false, true);
END
$$;
COMMENT ON FUNCTION reports.append_pause(reports.schedule, timestamptz, text) IS 'Appends the versions of a pause, or of its end, of a schedule with an announced edit.';

-- Each edit appends a version and a change row and tells the leader.
--
-- Argument 'asked': the statement is one of our own functions carrying out a request. It may say in the
-- settings reports.asked_at and reports.change_reason (for the transaction) when that was asked and why,
-- so that a pause begins when somebody wanted it, not when a leader was there. Nobody else can back-date.
--
-- A pause whose paused_until has come ends then: with the first edit after it, which is the leader's own as a rule.
CREATE FUNCTION reports.record_version() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    s reports.schedule;
    resumed reports.schedule;
    begins timestamptz := clock_timestamp();
    why text;
    announced boolean := false;
BEGIN
    -- By image, not by equality: parameters {"x": 1.0} and {"x": 1} are equal and print differently.
    IF TG_OP = 'UPDATE' AND NEW *= OLD THEN
        RETURN NULL;
    END IF;
    s := CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
    IF TG_ARGV[0] = 'asked' THEN
        begins := least(begins, nullif(current_setting('reports.asked_at', true), '')::timestamptz);
        why := left(nullif(current_setting('reports.change_reason', true), ''), 500);
    ELSIF TG_OP <> 'DELETE' AND s.effective_from > begins THEN
        begins := s.effective_from;
        announced := true;
    END IF;
    IF TG_OP <> 'INSERT' AND OLD.paused_until <= begins AND OLD.paused_until <= clock_timestamp() THEN
        resumed := OLD;
        resumed.paused := false;
        resumed.paused_until := NULL;
        PERFORM reports.append_version(resumed, OLD.paused_until, 'paused_until had come', false, false);
    END IF;
    IF TG_ARGV[0] = 'asked' AND TG_OP = 'UPDATE' AND resumed.name IS NULL AND s.effective_from > clock_timestamp() THEN
        PERFORM reports.append_pause(s, begins, why);
    ELSIF resumed.name IS NULL OR TG_OP = 'DELETE' OR NOT NEW *= resumed THEN
        PERFORM reports.append_version(s, begins, why, TG_OP = 'DELETE', announced);
    END IF;
    PERFORM pg_notify('report_change', s.scope);
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION reports.record_version() IS 'Trigger on schedule: appends the version and the change row, notifies the leader.';
-- In the condition current_user is who runs the statement; in the function it would be the owner always.
CREATE TRIGGER record_version AFTER INSERT OR UPDATE OR DELETE ON reports.schedule
    FOR EACH ROW WHEN (current_user <> 'report_owner') EXECUTE FUNCTION reports.record_version();
CREATE TRIGGER record_version_asked AFTER INSERT OR UPDATE OR DELETE ON reports.schedule
    FOR EACH ROW WHEN (current_user = 'report_owner') EXECUTE FUNCTION reports.record_version('asked');

-- Names and parameters are judged before the foreign keys and CHECKs behind them, to say which row is
-- meant and the way out.
CREATE FUNCTION reports.check_parameters(p_what text, p_name text, p_parameters jsonb, p_for_query boolean) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    bad text;
BEGIN
    IF jsonb_typeof(p_parameters) IS DISTINCT FROM 'object' THEN
        RAISE EXCEPTION '% "%": parameters must be an object', p_what, p_name
            USING ERRCODE = 'check_violation', HINT = 'Write {"name": "value"}, or {} for none.';
    END IF;
    IF octet_length(p_parameters::text) > 65536 OR (SELECT count(*) FROM jsonb_object_keys(p_parameters)) > 1000 THEN
        RAISE EXCEPTION '% "%": parameters are larger than 65536 bytes or more than 1000', p_what, p_name
            USING ERRCODE = 'check_violation', HINT = 'Keep data in a table that the report reads, and give its key here.';
    END IF;
    -- The names of job_builtin in worker/base/job.c; tests/system/test_bad_rows.py tries each.
    SELECT k INTO bad FROM jsonb_object_keys(p_parameters) k
     WHERE k IN ('business_date', 'window_start', 'window_end', 'scheduled_for', 'schedule', 'attempt', 'occurrence_key')
     ORDER BY k LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '% "%": parameter "%" is built in and cannot be set', p_what, p_name, bad
            USING ERRCODE = 'check_violation', HINT = 'Give it another name.';
    END IF;
    SELECT e.key INTO bad FROM jsonb_each(p_parameters) e
     WHERE p_for_query AND jsonb_typeof(e.value) NOT IN ('string', 'number', 'boolean') ORDER BY e.key LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '% "%": parameter "%" is null, a list or an object', p_what, p_name, bad
            USING ERRCODE = 'check_violation', HINT = 'In a query only text, numbers and booleans can stand.';
    END IF;
END
$$;
COMMENT ON FUNCTION reports.check_parameters(text, text, jsonb, boolean) IS 'Refuses parameters that no job could use.';

CREATE FUNCTION reports.check_report_parameters() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    other record;
BEGIN
    PERFORM reports.check_parameters('report', NEW.name, NEW.parameters, NEW.kind = 'sql');
    IF TG_OP = 'UPDATE' AND NEW.kind = 'sql' AND OLD.kind <> 'sql' THEN
        FOR other IN SELECT s.name, s.parameters FROM reports.schedule s WHERE s.report = NEW.name LOOP
            PERFORM reports.check_parameters('schedule', other.name, other.parameters, true);
        END LOOP;
    END IF;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION reports.check_report_parameters() IS 'Trigger on report: refuses parameters that no job could use.';
CREATE TRIGGER check_parameters BEFORE INSERT OR UPDATE OF parameters, kind ON reports.report
    FOR EACH ROW EXECUTE FUNCTION reports.check_report_parameters();

CREATE FUNCTION reports.check_references() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    its_kind text;
BEGIN
    SELECT r.kind INTO its_kind FROM reports.report r WHERE r.name = NEW.report;
    IF NOT FOUND AND NEW.report IS NOT NULL THEN
        RAISE EXCEPTION 'schedule "%": report "%" does not exist', NEW.name, NEW.report
            USING ERRCODE = 'foreign_key_violation', HINT = 'Insert it into reports.report first, or correct the name.';
    END IF;
    IF NEW.queue IS NOT NULL AND NOT EXISTS (SELECT FROM reports.queue q WHERE q.name = NEW.queue) THEN
        RAISE EXCEPTION 'schedule "%": queue "%" does not exist', NEW.name, NEW.queue
            USING ERRCODE = 'foreign_key_violation',
                  HINT = 'Insert it into reports.queue first and let a worker serve it, or correct the name.';
    END IF;
    IF NEW.scope IS NOT NULL AND NOT EXISTS (SELECT FROM reports.scope s WHERE s.name = NEW.scope) THEN
        RAISE EXCEPTION 'schedule "%": scope "%" does not exist', NEW.name, NEW.scope
            USING ERRCODE = 'foreign_key_violation',
                  HINT = 'Insert it into reports.scope first and add it to scopes in scheduler.conf, or correct the name.';
    END IF;
    PERFORM reports.check_parameters('schedule', NEW.name, NEW.parameters, its_kind = 'sql');
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION reports.check_references() IS 'Trigger on schedule: refuses names that are not there and parameters that no job could use.';
CREATE TRIGGER check_references BEFORE INSERT OR UPDATE OF report, queue, scope, parameters ON reports.schedule
    FOR EACH ROW EXECUTE FUNCTION reports.check_references();

-- What others name is not deleted or renamed under them. Jobs and workers name a queue without a
-- foreign key: nobody would run the ones, and the others could not register again.
CREATE FUNCTION reports.keep_used() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    users text;
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.name = OLD.name THEN
        RETURN NEW;
    END IF;
    SELECT string_agg(CASE WHEN u.n <= 3 THEN format('"%s"', u.name) ELSE 'more' END, ', ') INTO users
      FROM (SELECT s.name, row_number() OVER (ORDER BY s.name) AS n FROM reports.schedule s
             WHERE CASE TG_TABLE_NAME WHEN 'report' THEN s.report ELSE s.queue END = OLD.name ORDER BY s.name LIMIT 4) u;
    IF users IS NOT NULL THEN
        RAISE EXCEPTION '% "%" is in use by schedule %', TG_TABLE_NAME, OLD.name, users
            USING ERRCODE = 'foreign_key_violation',
                  HINT = format('Delete those schedules first, or give them another %s.', TG_TABLE_NAME);
    END IF;
    IF TG_TABLE_NAME = 'queue' THEN
        SELECT format('worker "%s"', w.name) INTO users FROM reports.worker w
         WHERE w.state IN ('alive', 'draining') AND OLD.name = ANY (w.queues) LIMIT 1;
        IF users IS NULL THEN
            SELECT format('job %s:%s', j.schedule, j.occurrence_key) INTO users FROM reports.job j
             WHERE j.queue = OLD.name AND j.state IN ('waiting', 'queued', 'running', 'retry_wait') LIMIT 1;
        END IF;
        IF users IS NOT NULL THEN
            RAISE EXCEPTION 'queue "%" is in use by %', OLD.name, users
                USING ERRCODE = 'object_in_use',
                      HINT = 'Let its jobs end, then take it out of queues in worker.conf and restart those workers.';
        END IF;
    END IF;
    RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END
$$;
COMMENT ON FUNCTION reports.keep_used() IS 'Trigger on report and queue: refuses to take away what is in use, names who uses it.';
CREATE TRIGGER keep_used BEFORE DELETE OR UPDATE OF name ON reports.report
    FOR EACH ROW EXECUTE FUNCTION reports.keep_used();
CREATE TRIGGER keep_used BEFORE DELETE OR UPDATE OF name ON reports.queue
    FOR EACH ROW EXECUTE FUNCTION reports.keep_used();

RESET ROLE;
