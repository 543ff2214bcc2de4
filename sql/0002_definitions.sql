-- What users define: scopes, queues, calendars, reports, schedules. Users write these tables
-- directly; everything that cannot work is refused here where SQL can tell, with the remedy.

SET ROLE report_owner;

CREATE TABLE reports.installation (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    claim_lease interval NOT NULL DEFAULT '60 seconds'
        CHECK (claim_lease BETWEEN interval '3 seconds' AND interval '1 hour'),
    reap_grace interval NOT NULL DEFAULT '5 seconds'
        CHECK (reap_grace BETWEEN interval '1 second' AND interval '10 minutes'),
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
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE reports.scope IS 'An independent field of authority: the schedules that one leader plans. Never deleted, since its fence never is (I2).';
COMMENT ON COLUMN reports.scope.name IS 'Name, also the ZooKeeper path element below /scopes.';
COMMENT ON COLUMN reports.scope.description IS 'For people.';
COMMENT ON COLUMN reports.scope.created_at IS 'When it was made.';

CREATE TABLE reports.queue (
    name reports.name PRIMARY KEY,
    description text NOT NULL DEFAULT '',
    max_outstanding integer CONSTRAINT max_outstanding_is_not_supported_yet CHECK (max_outstanding IS NULL),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE reports.queue IS 'A class of jobs; workers say which queues they serve.';
COMMENT ON COLUMN reports.queue.name IS 'Name, as in schedule.queue and worker.conf.';
COMMENT ON COLUMN reports.queue.description IS 'For people.';
COMMENT ON COLUMN reports.queue.max_outstanding IS 'Most jobs queued and running per scope. Not yet: must be NULL (no bound).';
COMMENT ON COLUMN reports.queue.created_at IS 'When it was made.';
INSERT INTO reports.queue (name, description) VALUES ('default', 'Where a schedule''s jobs go unless it says otherwise.');

CREATE TABLE reports.calendar (
    name reports.name PRIMARY KEY,
    description text NOT NULL DEFAULT '',
    weekend_days integer[] NOT NULL DEFAULT '{6,7}'
        CHECK (weekend_days <@ ARRAY[1,2,3,4,5,6,7] AND cardinality(weekend_days) < 7),
    valid_through date
);
COMMENT ON TABLE reports.calendar IS 'A business calendar. Schedules cannot refer to one yet.';
COMMENT ON COLUMN reports.calendar.name IS 'Name.';
COMMENT ON COLUMN reports.calendar.description IS 'For people.';
COMMENT ON COLUMN reports.calendar.weekend_days IS 'ISO weekdays (1 Monday to 7 Sunday) that are never business days.';
COMMENT ON COLUMN reports.calendar.valid_through IS 'Last date the holiday rows are known for; NULL: open.';

CREATE TABLE reports.calendar_day (
    calendar reports.name NOT NULL REFERENCES reports.calendar (name) ON UPDATE CASCADE ON DELETE CASCADE,
    day date NOT NULL,
    business boolean NOT NULL,
    description text NOT NULL DEFAULT '',
    PRIMARY KEY (calendar, day)
);
COMMENT ON TABLE reports.calendar_day IS 'A day that differs from the weekend rule: a holiday, or a make-up working day.';
COMMENT ON COLUMN reports.calendar_day.calendar IS 'The calendar.';
COMMENT ON COLUMN reports.calendar_day.day IS 'The local date.';
COMMENT ON COLUMN reports.calendar_day.business IS 'false: holiday; true: working day although a weekend.';
COMMENT ON COLUMN reports.calendar_day.description IS 'For people.';

CREATE TABLE reports.report (
    name reports.name PRIMARY KEY,
    description text NOT NULL DEFAULT '',
    kind text NOT NULL CHECK (kind IN ('sql', 'program', 'noop')),
    data_source reports.name,
    query text CHECK (octet_length(query) <= 262144),
    format text NOT NULL DEFAULT 'csv' CHECK (format ~ '^[a-z0-9]{1,16}$'),
    program reports.name,
    parameters jsonb NOT NULL DEFAULT '{}'
        CHECK (jsonb_typeof(parameters) = 'object' AND octet_length(parameters::text) <= 65536),
    owner text NOT NULL DEFAULT current_user,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT sql_needs_query CHECK (kind <> 'sql' OR (data_source IS NOT NULL AND query IS NOT NULL)),
    CONSTRAINT program_needs_program CHECK (kind <> 'program' OR program IS NOT NULL)
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
    kind text NOT NULL CHECK (kind IN ('cron', 'interval', 'once')),
    rule text NOT NULL CHECK (octet_length(rule) BETWEEN 1 AND 512),
    time_zone text NOT NULL DEFAULT 'UTC' CHECK (octet_length(time_zone) BETWEEN 1 AND 63),
    anchor timestamptz,
    starts_at timestamptz,
    ends_at timestamptz,
    paused boolean NOT NULL DEFAULT false,
    dst_gap text NOT NULL DEFAULT 'auto',
    dst_overlap text NOT NULL DEFAULT 'auto',
    calendar reports.name,
    nonbusiness text NOT NULL DEFAULT 'run',
    business_date text NOT NULL DEFAULT 'run_date',
    misfire text CHECK (misfire IN ('run_all', 'run_latest', 'skip')),
    misfire_max integer NOT NULL DEFAULT 31 CHECK (misfire_max BETWEEN 1 AND 1000),
    misfire_age interval NOT NULL DEFAULT '7 days' CHECK (misfire_age BETWEEN interval '1 minute' AND interval '3660 days'),
    misfire_grace interval NOT NULL DEFAULT '60 seconds' CHECK (misfire_grace BETWEEN interval '1 second' AND interval '1 day'),
    overlap text NOT NULL DEFAULT 'allow',
    queue reports.name NOT NULL DEFAULT 'default' REFERENCES reports.queue (name),
    priority integer NOT NULL DEFAULT 0 CHECK (priority BETWEEN -1000 AND 1000),
    jitter_s integer NOT NULL DEFAULT 0,
    max_attempts integer NOT NULL DEFAULT 3 CHECK (max_attempts BETWEEN 1 AND 100),
    retry_base interval NOT NULL DEFAULT '10 seconds' CHECK (retry_base BETWEEN interval '0' AND interval '1 day'),
    retry_cap interval NOT NULL DEFAULT '10 minutes' CHECK (retry_cap BETWEEN interval '0' AND interval '7 days'),
    timeout interval NOT NULL DEFAULT '1 hour' CHECK (timeout BETWEEN interval '1 second' AND interval '7 days'),
    parameters jsonb NOT NULL DEFAULT '{}'
        CHECK (jsonb_typeof(parameters) = 'object' AND octet_length(parameters::text) <= 65536),
    owner text NOT NULL DEFAULT current_user,
    CONSTRAINT starts_before_end CHECK (starts_at IS NULL OR ends_at IS NULL OR starts_at < ends_at),
    CONSTRAINT misfire_age_covers_grace CHECK (misfire_age >= misfire_grace)
);
CREATE INDEX schedule_report ON reports.schedule (report);
COMMENT ON TABLE reports.schedule IS 'When to produce a report. Edit rows freely: each edit becomes a version, and the leader takes it in.';
COMMENT ON COLUMN reports.schedule.name IS 'Identity for ever; inserting a deleted name again continues it.';
COMMENT ON COLUMN reports.schedule.scope IS 'The scope whose leader plans it; never changes.';
COMMENT ON COLUMN reports.schedule.report IS 'What to produce.';
COMMENT ON COLUMN reports.schedule.description IS 'For people.';
COMMENT ON COLUMN reports.schedule.kind IS 'cron, interval or once.';
COMMENT ON COLUMN reports.schedule.rule IS 'cron: five fields; interval: elapsed time such as 15 minutes; once: a local time such as 2030-04-12T06:00, optionally with its offset.';
COMMENT ON COLUMN reports.schedule.time_zone IS 'IANA zone the rule is meant in, e.g. Europe/Berlin.';
COMMENT ON COLUMN reports.schedule.anchor IS 'interval: the instant counting starts from; filled with the time of creation.';
COMMENT ON COLUMN reports.schedule.starts_at IS 'No firing before this instant; NULL: from creation on.';
COMMENT ON COLUMN reports.schedule.ends_at IS 'No firing at or after this instant; NULL: open.';
COMMENT ON COLUMN reports.schedule.paused IS 'Not yet: must be false.';
COMMENT ON COLUMN reports.schedule.dst_gap IS 'Not yet: must be auto (fixed times run once after a gap; jobs that follow the clock do not).';
COMMENT ON COLUMN reports.schedule.dst_overlap IS 'Not yet: must be auto (fixed times run once, at the first; jobs that follow the clock run in both).';
COMMENT ON COLUMN reports.schedule.calendar IS 'Not yet: must be NULL.';
COMMENT ON COLUMN reports.schedule.nonbusiness IS 'Not yet: must be run.';
COMMENT ON COLUMN reports.schedule.business_date IS 'What date a firing is about. Not yet other than run_date (the nominal local date).';
COMMENT ON COLUMN reports.schedule.misfire IS 'What becomes of firings missed by more than misfire_grace: run_all, run_latest or skip; NULL: run_all for daily and coarser rules, run_latest for finer ones.';
COMMENT ON COLUMN reports.schedule.misfire_max IS 'run_all: most missed firings that are run; older ones become a gap.';
COMMENT ON COLUMN reports.schedule.misfire_age IS 'run_all: missed firings older than this become a gap.';
COMMENT ON COLUMN reports.schedule.misfire_grace IS 'A firing younger than this is late, not missed.';
COMMENT ON COLUMN reports.schedule.overlap IS 'allow; forbid, queue and replace: not yet.';
COMMENT ON COLUMN reports.schedule.queue IS 'Which workers may run its jobs.';
COMMENT ON COLUMN reports.schedule.priority IS 'Higher is claimed first within a queue.';
COMMENT ON COLUMN reports.schedule.jitter_s IS 'Seconds of deterministic spread. Not yet: must be 0.';
COMMENT ON COLUMN reports.schedule.max_attempts IS 'Attempts a job may use.';
COMMENT ON COLUMN reports.schedule.retry_base IS 'Wait before the second attempt; doubles with each further one, with a quarter of jitter either way.';
COMMENT ON COLUMN reports.schedule.retry_cap IS 'Longest wait between attempts, jitter included.';
COMMENT ON COLUMN reports.schedule.timeout IS 'An attempt that runs longer is killed and counts as failed.';
COMMENT ON COLUMN reports.schedule.parameters IS 'Parameters of the report for this schedule.';
COMMENT ON COLUMN reports.schedule.owner IS 'Who to ask.';

-- A version is a full copy: what was planned stays explainable after any later edit.
CREATE TABLE reports.schedule_version (
    schedule reports.name NOT NULL,
    version integer NOT NULL,
    scope reports.name NOT NULL,
    effective_from timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    recorded_by text NOT NULL DEFAULT session_user,
    ended boolean NOT NULL,
    report text NOT NULL,
    description text NOT NULL,
    kind text NOT NULL,
    rule text NOT NULL,
    time_zone text NOT NULL,
    anchor timestamptz,
    starts_at timestamptz,
    ends_at timestamptz,
    paused boolean NOT NULL,
    dst_gap text NOT NULL,
    dst_overlap text NOT NULL,
    calendar text,
    nonbusiness text NOT NULL,
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
         WHERE v.table_schema = 'reports' AND v.table_name = 'schedule_version' AND v.column_name <> 'name'
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
    PRIMARY KEY (scope, id)
);
COMMENT ON TABLE reports.schedule_change IS 'An edit the leader has not taken in yet; the durable side of NOTIFY.';
COMMENT ON COLUMN reports.schedule_change.id IS 'Order of arrival; not of commit, so the leader reads rows, never a cursor.';
COMMENT ON COLUMN reports.schedule_change.scope IS 'Scope of the schedule.';
COMMENT ON COLUMN reports.schedule_change.schedule IS 'The schedule.';
COMMENT ON COLUMN reports.schedule_change.version IS 'The version to take in.';
COMMENT ON COLUMN reports.schedule_change.made_at IS 'When the edit was made.';

-- Refuse what is not built yet by name, so that nobody believes a policy is in force.
CREATE FUNCTION reports.refuse_not_yet(p_schedule text, p_column text, p_value text, p_allowed text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF p_value IS DISTINCT FROM p_allowed THEN
        RAISE EXCEPTION 'schedule "%": % = % is not supported yet', p_schedule, p_column,
            coalesce(quote_literal(p_value), 'NULL')
            USING ERRCODE = 'feature_not_supported',
                  HINT = format('Write %s = %s.', p_column, coalesce(quote_literal(p_allowed), 'NULL'));
    END IF;
END
$$;
COMMENT ON FUNCTION reports.refuse_not_yet(text, text, text, text) IS 'Raises "not supported yet" unless the value is the allowed one.';

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

-- The rule's shape. The leader's own parser is the judge of the rest and writes `problem`.
CREATE FUNCTION reports.check_rule(p_schedule text, p_kind text, p_rule text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    fields integer;
    length interval;
BEGIN
    IF p_kind = 'cron' THEN
        fields := cardinality(regexp_split_to_array(btrim(p_rule), '\s+'));
        IF p_rule ~ '^@' THEN
            IF p_rule !~ '^@(yearly|annually|monthly|weekly|daily|midnight|hourly)$' THEN
                RAISE EXCEPTION 'schedule "%": unknown cron nickname %', p_schedule, quote_literal(p_rule)
                    USING ERRCODE = 'invalid_parameter_value',
                          HINT = 'Write @hourly, @daily, @weekly, @monthly or @yearly in lower case, or five fields.';
            END IF;
        ELSIF fields <> 5 THEN
            RAISE EXCEPTION 'schedule "%": a cron rule has five fields (minute hour day month weekday), % has %',
                p_schedule, quote_literal(p_rule), fields
                USING ERRCODE = 'invalid_parameter_value', HINT = 'Example: 30 6 * * 1-5 is 06:30 from Monday to Friday.';
        ELSIF p_rule !~ '^[0-9A-Za-z*/,\-\s#+?]+$' THEN
            RAISE EXCEPTION 'schedule "%": cron rule % has characters that cannot stand in one', p_schedule, quote_literal(p_rule)
                USING ERRCODE = 'invalid_parameter_value', HINT = 'Example: 30 6 * * 1-5 is 06:30 from Monday to Friday.';
        END IF;
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
                USING ERRCODE = 'invalid_parameter_value';
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
COMMENT ON FUNCTION reports.check_rule(text, text, text) IS 'Refuses a rule whose shape cannot work.';

CREATE FUNCTION reports.check_schedule() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND (NEW.name <> OLD.name OR NEW.scope <> OLD.scope) THEN
        RAISE EXCEPTION 'schedule "%": name and scope never change', OLD.name
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Insert a new schedule and delete this one.';
    END IF;
    IF NEW.kind = 'rrule' THEN
        RAISE EXCEPTION 'schedule "%": kind ''rrule'' is not supported yet', NEW.name
            USING ERRCODE = 'feature_not_supported', HINT = 'Write kind = ''cron'', ''interval'' or ''once''.';
    END IF;
    PERFORM reports.refuse_not_yet(NEW.name, 'paused', NEW.paused::text, 'false');
    PERFORM reports.refuse_not_yet(NEW.name, 'dst_gap', NEW.dst_gap, 'auto');
    PERFORM reports.refuse_not_yet(NEW.name, 'dst_overlap', NEW.dst_overlap, 'auto');
    PERFORM reports.refuse_not_yet(NEW.name, 'calendar', NEW.calendar, NULL);
    PERFORM reports.refuse_not_yet(NEW.name, 'nonbusiness', NEW.nonbusiness, 'run');
    PERFORM reports.refuse_not_yet(NEW.name, 'business_date', NEW.business_date, 'run_date');
    PERFORM reports.refuse_not_yet(NEW.name, 'overlap', NEW.overlap, 'allow');
    PERFORM reports.refuse_not_yet(NEW.name, 'jitter_s', NEW.jitter_s::text, '0');
    PERFORM reports.check_rule(NEW.name, NEW.kind, NEW.rule);
    -- Abbreviations and POSIX strings are known to PostgreSQL too; the leader refuses those.
    BEGIN
        PERFORM clock_timestamp() AT TIME ZONE NEW.time_zone;
    EXCEPTION WHEN OTHERS THEN
        RAISE EXCEPTION 'schedule "%": unknown time zone %', NEW.name, quote_literal(NEW.time_zone)
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Write an IANA name such as Europe/Berlin or UTC.';
    END;
    IF NEW.kind = 'interval' AND NEW.anchor IS NULL THEN
        NEW.anchor := date_trunc('second', clock_timestamp());
    END IF;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION reports.check_schedule() IS 'Trigger on schedule: refuses what cannot work and what is not there yet.';
CREATE TRIGGER check_schedule BEFORE INSERT OR UPDATE ON reports.schedule
    FOR EACH ROW EXECUTE FUNCTION reports.check_schedule();

-- Each edit appends a version and a change row and tells the leader. Two editors of one schedule
-- are ordered by the row they both change; a re-insert after a delete by the primary key.
CREATE FUNCTION reports.record_version() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    s reports.schedule;
    next_version integer;
BEGIN
    -- By image, not by equality: parameters {"x": 1.0} and {"x": 1} are equal and print differently.
    IF TG_OP = 'UPDATE' AND NEW *= OLD THEN
        RETURN NULL;
    END IF;
    s := CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
    SELECT coalesce(max(v.version), 0) + 1 INTO next_version
      FROM reports.schedule_version v WHERE v.schedule = s.name;
    INSERT INTO reports.schedule_version
        (schedule, version, scope, effective_from, ended, report, description, kind, rule, time_zone,
         anchor, starts_at, ends_at, paused, dst_gap, dst_overlap, calendar, nonbusiness,
         business_date, misfire, misfire_max, misfire_age, misfire_grace, overlap, queue, priority,
         jitter_s, max_attempts, retry_base, retry_cap, timeout, parameters, owner)
    VALUES
        (s.name, next_version, s.scope, clock_timestamp(), TG_OP = 'DELETE', s.report, s.description,
         s.kind, s.rule, s.time_zone, s.anchor, s.starts_at, s.ends_at, s.paused, s.dst_gap,
         s.dst_overlap, s.calendar, s.nonbusiness, s.business_date, s.misfire, s.misfire_max,
         s.misfire_age, s.misfire_grace, s.overlap, s.queue, s.priority, s.jitter_s, s.max_attempts,
         s.retry_base, s.retry_cap, s.timeout, s.parameters, s.owner);
    INSERT INTO reports.schedule_change (scope, schedule, version) VALUES (s.scope, s.name, next_version);
    PERFORM pg_notify('report_change', s.scope);
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION reports.record_version() IS 'Trigger on schedule: appends the version and the change row, notifies the leader.';
CREATE TRIGGER record_version AFTER INSERT OR UPDATE OR DELETE ON reports.schedule
    FOR EACH ROW EXECUTE FUNCTION reports.record_version();

RESET ROLE;
