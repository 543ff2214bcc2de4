-- What a firing is about: business dates and periods. Firings are planned by common/rule/business_date.c; here are the
-- words that a schedule may say, the table of fiscal periods, and the same for firings that people ask for. Change both
-- sides: test_sql_and_c_agree_on_business_dates compares them.

SET ROLE report_owner;

-- word NULL: the text is none of what common/rule/business_date.h lists.
CREATE FUNCTION reports.business_date_parse(p_text text, OUT word text, OUT back integer, OUT fiscal text, OUT cutoff interval)
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN m.part[2] IS NOT NULL THEN 't_minus' WHEN m.part[3] IS NOT NULL THEN 'fiscal_period' ELSE m.part[1] END,
           m.part[2]::integer, m.part[3], m.part[4]::interval
      FROM regexp_match(p_text, '^(?:(run_date|(?:previous|current)_(?:week|month|quarter))|t_minus\(([1-9]|[12][0-9]|3[01])\)'
                                '|fiscal_period\(([a-z0-9][a-z0-9_.-]{0,62})\))(?: cutoff ((?!00:00)(?:[01][0-9]|2[0-3]):[0-5][0-9]))?$') AS m (part)
$$;
COMMENT ON FUNCTION reports.business_date_parse(text) IS 'The parts of schedule.business_date; word NULL: it is not known.';

CREATE FUNCTION reports.key_form_of_periods(p_business_date text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT substring((reports.business_date_parse(p_business_date)).word FROM '(?:_|^)(week|month|quarter|fiscal)(?:_|$)')
$$;
COMMENT ON FUNCTION reports.key_form_of_periods(text) IS 'The form of keys that a business_date about periods needs; NULL: it is about dates.';

CREATE TABLE reports.fiscal_period (
    calendar reports.name NOT NULL,
    label text NOT NULL
        CONSTRAINT fiscal_period_label_check CHECK (label ~ '^[A-Za-z0-9][A-Za-z0-9_.:+-]{0,30}$'
            OR reports.refuse_value(format('fiscal calendar "%s"', calendar), 'label', label, 'Write 1 to 31 of letters, digits, _ . : + - such as FY2030-P07: it is the key of the report.')),
    first_day date NOT NULL
        CONSTRAINT fiscal_period_first_day_check CHECK (first_day BETWEEN '1900-01-01' AND '2299-12-31'
            OR reports.refuse_value(format('fiscal calendar "%s", period "%s"', calendar, label), 'first_day', first_day::text, 'Write a date within the years 1900 to 2299.')),
    last_day date NOT NULL
        CONSTRAINT fiscal_period_last_day_check CHECK (last_day BETWEEN '1900-01-01' AND '2299-12-31'
            OR reports.refuse_value(format('fiscal calendar "%s", period "%s"', calendar, label), 'last_day', last_day::text, 'Write a date within the years 1900 to 2299.')),
    PRIMARY KEY (calendar, label),
    CONSTRAINT fiscal_period_has_days CHECK (last_day - first_day BETWEEN 0 AND 399
            OR reports.refuse(format('fiscal calendar "%s", period "%s": from %s to %s', calendar, label, first_day, last_day), 'Write a last_day from first_day on, at most 399 days later.'))
);
COMMENT ON TABLE reports.fiscal_period IS 'Periods that business_date = ''fiscal_period(NAME)'' is about. Users fill it, ahead of time: a period is reported when the one behind it is there and has begun.';
COMMENT ON COLUMN reports.fiscal_period.calendar IS 'Name of the fiscal calendar.';
COMMENT ON COLUMN reports.fiscal_period.label IS 'The key of the period''s report, such as FY2030-P07. Labels sort as their days do.';
COMMENT ON COLUMN reports.fiscal_period.first_day IS 'Its first local date.';
COMMENT ON COLUMN reports.fiscal_period.last_day IS 'Its last local date, which is the business date.';
GRANT SELECT ON reports.fiscal_period TO report_scheduler, report_worker, report_reader;
GRANT INSERT, UPDATE, DELETE ON reports.fiscal_period TO report_author;

CREATE FUNCTION reports.fiscal_periods(p_calendar text) RETURNS TABLE (first_day date, last_day date, label text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT p.first_day, p.last_day, p.label FROM reports.fiscal_period p WHERE p.calendar = p_calendar ORDER BY p.first_day LIMIT 4000
$$;
COMMENT ON FUNCTION reports.fiscal_periods(text) IS 'The periods of a fiscal calendar, for who plans or foretells.';
GRANT EXECUTE ON FUNCTION reports.fiscal_periods(text) TO report_scheduler, report_reader;

-- What has been reported under a label stays explainable: an occurrence never gets other days.
CREATE FUNCTION reports.keep_used_period() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    its_user text;
BEGIN
    IF TG_OP = 'UPDATE' AND NEW IS NOT DISTINCT FROM OLD THEN
        RETURN NEW;
    END IF;
    SELECT v.schedule INTO its_user FROM reports.schedule_version v JOIN reports.occurrence o ON o.schedule = v.schedule AND o.occurrence_key = OLD.label
     WHERE (reports.business_date_parse(v.business_date)).fiscal = OLD.calendar LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'fiscal calendar "%": period "%" is the key of a report of schedule "%"', OLD.calendar, OLD.label, its_user
            USING ERRCODE = 'foreign_key_violation', HINT = 'Leave it as it is; insert other periods under labels of their own.';
    END IF;
    RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END
$$;
COMMENT ON FUNCTION reports.keep_used_period() IS 'Trigger on fiscal_period: refuses to change what an occurrence is about.';
CREATE TRIGGER keep_used BEFORE UPDATE OR DELETE ON reports.fiscal_period
    FOR EACH ROW EXECUTE FUNCTION reports.keep_used_period();

-- One editor at a time, and the second sees the rows of the first.
CREATE FUNCTION reports.fiscal_periods_begin() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('reports.fiscal_period', 0));
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION reports.fiscal_periods_begin() IS 'Trigger on fiscal_period: lets one transaction at a time write it.';
CREATE TRIGGER fiscal_periods_begin BEFORE INSERT OR UPDATE ON reports.fiscal_period
    FOR EACH STATEMENT EXECUTE FUNCTION reports.fiscal_periods_begin();

-- Which schedules are to be looked at again, since their fiscal calendar has got periods. The leader does it, which
-- waits for no row that a session holds (I12), and sees the line after the periods are committed: also the schedule that
-- missed them while they were not.
CREATE TABLE reports.fiscal_behind (
    schedule reports.name PRIMARY KEY,
    scope reports.name NOT NULL,
    since timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE reports.fiscal_behind IS 'A schedule whose fiscal calendar has got periods since the leader last looked.';
COMMENT ON COLUMN reports.fiscal_behind.schedule IS 'The schedule.';
COMMENT ON COLUMN reports.fiscal_behind.scope IS 'Whose leader looks.';
COMMENT ON COLUMN reports.fiscal_behind.since IS 'When the periods were inserted.';

-- A version like the one in force: the leader takes it in, and so looks again at what had a problem. The caller holds
-- the schedule's row. What is announced comes behind it.
CREATE FUNCTION reports.renew_schedule(p_schedule text, p_why text) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    v reports.schedule_version;
    ahead integer[];
    n integer;
BEGIN
    ahead := ARRAY(SELECT c.version FROM reports.schedule_change c JOIN reports.schedule s ON s.name = c.schedule AND s.scope = c.scope
                    WHERE c.schedule = p_schedule AND c.announced AND c.made_at > clock_timestamp() ORDER BY c.version DESC);
    SELECT * INTO v FROM reports.schedule_version w WHERE w.schedule = p_schedule AND w.version <> ALL (ahead) ORDER BY w.version DESC LIMIT 1;
    -- One that is not taken in yet will look at it.
    IF NOT FOUND OR v.ended OR EXISTS (SELECT FROM reports.schedule_change c WHERE c.scope = v.scope AND c.schedule = p_schedule AND c.version <> ALL (ahead)) THEN
        RETURN;
    END IF;
    FOREACH n IN ARRAY ahead LOOP
        UPDATE reports.schedule_version w SET version = n + 1 WHERE w.schedule = p_schedule AND w.version = n;
        UPDATE reports.schedule_change c SET version = n + 1 WHERE c.scope = v.scope AND c.schedule = p_schedule AND c.version = n;
    END LOOP;
    v.version := v.version + 1;
    v.effective_from := greatest(clock_timestamp(), v.effective_from);
    v.recorded_at := clock_timestamp();
    v.recorded_by := session_user;
    v.change_reason := p_why;
    INSERT INTO reports.schedule_version VALUES (v.*);
    INSERT INTO reports.schedule_change (scope, schedule, version, made_at, announced) VALUES (v.scope, v.schedule, v.version, clock_timestamp(), false);
    PERFORM pg_notify('report_change', v.scope);
END
$$;
COMMENT ON FUNCTION reports.renew_schedule(text, text) IS 'Gives a schedule a version like the one in force, with a reason.';

-- Part of tend. Waits for no row: what is held now is tried again in the next round.
CREATE FUNCTION reports.fiscal_catch_up(p_scope text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    b record;
BEGIN
    IF NOT EXISTS (SELECT FROM reports.fiscal_behind x WHERE x.scope = p_scope) THEN
        RETURN false;
    END IF;
    -- What has no problem saw the periods, or will.
    DELETE FROM reports.fiscal_behind d WHERE d.schedule = ANY (ARRAY(
        SELECT x.schedule FROM reports.fiscal_behind x
         WHERE x.scope = p_scope
           AND NOT EXISTS (SELECT FROM reports.schedule s JOIN reports.schedule_progress q ON q.schedule = s.name
                            WHERE s.name = x.schedule AND q.problem IS NOT NULL)
           FOR UPDATE SKIP LOCKED));
    FOR b IN SELECT s.name FROM reports.fiscal_behind x JOIN reports.schedule s ON s.name = x.schedule
              WHERE x.scope = p_scope ORDER BY x.schedule LIMIT 100
                FOR UPDATE OF x SKIP LOCKED FOR NO KEY UPDATE OF s SKIP LOCKED LOOP
        PERFORM reports.renew_schedule(b.name, 'fiscal calendar has changed');
        DELETE FROM reports.fiscal_behind x WHERE x.schedule = b.name;
    END LOOP;
    RETURN EXISTS (SELECT FROM reports.fiscal_behind x WHERE x.scope = p_scope);
END
$$;
COMMENT ON FUNCTION reports.fiscal_catch_up(text) IS 'Has schedules with a problem looked at again whose fiscal calendar has got periods; true: the rows of some are held.';

CREATE INDEX schedule_fiscal ON reports.schedule (name) WHERE business_date LIKE 'fiscal_period(%';

CREATE FUNCTION reports.check_fiscal_periods() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    wrong record;
    scopes text[];
    named text[] := ARRAY(SELECT DISTINCT n.calendar::text FROM new_rows n);
BEGIN
    SELECT * INTO wrong
      FROM (SELECT p.calendar, p.label, p.first_day, p.last_day, lag(p.label) OVER w AS before, lag(p.last_day) OVER w AS ended, count(*) OVER (PARTITION BY p.calendar) AS n
              FROM reports.fiscal_period p WHERE p.calendar = ANY (named)
            WINDOW w AS (PARTITION BY p.calendar ORDER BY p.first_day, p.last_day)) x
     WHERE x.first_day <= x.ended OR x.label <= x.before COLLATE "C" OR x.n > 4000
     ORDER BY x.calendar, x.first_day LIMIT 1;
    IF wrong.n > 4000 THEN
        RAISE EXCEPTION 'fiscal calendar "%": more than 4000 periods', wrong.calendar
            USING ERRCODE = 'check_violation', HINT = 'Leave out years long gone.';
    ELSIF wrong.first_day <= wrong.ended THEN
        RAISE EXCEPTION 'fiscal calendar "%": period "%" begins on %, and "%" before it ends on %', wrong.calendar, wrong.label, wrong.first_day, wrong.before, wrong.ended
            USING ERRCODE = 'check_violation', HINT = 'A day lies in one period: correct one of them.';
    ELSIF wrong.label IS NOT NULL THEN
        RAISE EXCEPTION 'fiscal calendar "%": period "%" comes after "%", and its label sorts before it', wrong.calendar, wrong.label, wrong.before
            USING ERRCODE = 'check_violation', HINT = 'Keys sort as the times they name: write labels such as FY2030-P07, with the year first and numbers of one length.';
    END IF;
    -- DO UPDATE, which holds the line until the periods are committed: the leader must not settle it before.
    WITH noted AS (
        INSERT INTO reports.fiscal_behind AS b (schedule, scope)
        SELECT s.name, s.scope FROM reports.schedule s
         WHERE s.business_date LIKE 'fiscal_period(%' AND (reports.business_date_parse(s.business_date)).fiscal = ANY (named)
         ORDER BY s.name
        ON CONFLICT (schedule) DO UPDATE SET since = clock_timestamp()
        RETURNING b.scope
    )
    SELECT array_agg(DISTINCT n.scope::text) INTO scopes FROM noted n;
    PERFORM pg_notify('report_change', x) FROM unnest(scopes) x;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION reports.check_fiscal_periods() IS 'Trigger on fiscal_period: refuses periods that overlap or whose labels do not sort, and has the leader look at schedules with a problem again.';
CREATE TRIGGER check_fiscal_periods_added AFTER INSERT ON reports.fiscal_period REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION reports.check_fiscal_periods();
CREATE TRIGGER check_fiscal_periods_changed AFTER UPDATE ON reports.fiscal_period REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION reports.check_fiscal_periods();

-- Called by check_schedule. What only the rule can tell, the leader finds.
CREATE FUNCTION reports.check_business_date(s reports.schedule, p_was text) RETURNS void
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    b record;
    form text := reports.key_form_of_periods(s.business_date);
    fixed text;
BEGIN
    SELECT * INTO b FROM reports.business_date_parse(s.business_date);
    IF b.word IS NULL THEN
        RAISE EXCEPTION 'schedule "%": business_date cannot be %', s.name, coalesce(quote_literal(s.business_date), 'NULL')
            USING ERRCODE = 'check_violation',
                  HINT = 'Write run_date, t_minus(1) to t_minus(31), previous_week, current_week, previous_month, current_month, previous_quarter, current_quarter or fiscal_period(NAME), and if you want " cutoff 06:00" behind it.';
    END IF;
    IF form IS NOT NULL AND s.kind = 'interval' THEN
        RAISE EXCEPTION 'schedule "%": an interval is elapsed time and cannot keep to periods', s.name
            USING ERRCODE = 'check_violation', HINT = 'Write kind = ''cron'' with a rule such as 0 6 1 * *, or business_date = ''run_date''.';
    END IF;
    IF form IS NOT NULL AND s.dst_overlap = 'both' THEN
        RAISE EXCEPTION 'schedule "%": a period is reported once, and dst_overlap is ''both''', s.name
            USING ERRCODE = 'check_violation', HINT = 'Write dst_overlap = ''first'' or ''second''.';
    END IF;
    -- A row that is there may still be paused or mended when its periods are gone.
    IF b.fiscal IS NOT NULL AND s.business_date IS DISTINCT FROM p_was AND NOT EXISTS (SELECT FROM reports.fiscal_period p WHERE p.calendar = b.fiscal) THEN
        RAISE EXCEPTION 'schedule "%": fiscal calendar "%" has no periods', s.name, b.fiscal
            USING ERRCODE = 'foreign_key_violation', HINT = 'Insert them into reports.fiscal_period first, or correct the name.';
    END IF;
    SELECT p.key_form INTO fixed FROM reports.schedule_progress p WHERE p.schedule = s.name;
    IF fixed IS NOT NULL AND (form IS NOT NULL OR fixed NOT IN ('date', 'minute', 'second')) AND fixed IS DISTINCT FROM form THEN
        RAISE EXCEPTION 'schedule "%": its firings are known by their %, and with business_date = % they would not be', s.name,
            CASE fixed WHEN 'fiscal' THEN 'fiscal period' ELSE fixed END, quote_literal(s.business_date)
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Insert a new schedule for it and delete this one.';
    END IF;
END
$$;
COMMENT ON FUNCTION reports.check_business_date(reports.schedule, text) IS 'Refuses a business_date that is not known or cannot go with the row.';

-- Firings that people ask for -------------------------------------------------------------------

CREATE FUNCTION reports.is_business_day(p_calendar text, p_day date) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    its_kind text := (SELECT d.kind FROM reports.v_calendar_day d WHERE d.calendar = p_calendar AND d.day = p_day);
    c reports.calendar;
BEGIN
    IF its_kind IS NOT NULL THEN
        RETURN its_kind = 'working';
    END IF;
    SELECT * INTO c FROM reports.calendar x WHERE x.name = p_calendar;
    IF c.combine IS NOT NULL THEN
        RETURN (SELECT CASE c.combine WHEN 'union' THEN bool_and(reports.is_business_day(p.part, p_day)) ELSE bool_or(reports.is_business_day(p.part, p_day)) END
                  FROM reports.calendar_part p WHERE p.calendar = p_calendar);
    END IF;
    RETURN extract(isodow FROM p_day)::integer <> ALL (coalesce((SELECT w.weekend_days FROM reports.calendar_weekend w
                                                                  WHERE w.calendar = p_calendar AND w.from_date <= p_day
                                                                  ORDER BY w.from_date DESC LIMIT 1), c.weekend_days));
END
$$;
COMMENT ON FUNCTION reports.is_business_day(text, date) IS 'By the days and weekends there are, whether the calendar vouches for the date or not; NULL: a combination of nothing.';

CREATE FUNCTION reports.business_day_before(p_calendar text, p_day date, p_days integer) RETURNS date
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    its_day date := p_day;
    closed integer := 0;
    still integer := p_days;
BEGIN
    WHILE still > 0 LOOP
        its_day := its_day - 1;
        IF reports.is_business_day(p_calendar, its_day) THEN
            still := still - 1;
            closed := 0;
        ELSIF closed = 366 THEN
            RETURN NULL;
        ELSE
            closed := closed + 1;
        END IF;
    END LOOP;
    -- A part that holds there has no answer.
    IF EXISTS (SELECT FROM reports.calendar_parts(p_calendar) p
                WHERE p.what = 'calendar' AND p.word = 'hold' AND (p.until < p_day - 1 OR p.day > its_day)) THEN
        RETURN NULL;
    END IF;
    RETURN its_day;
END
$$;
COMMENT ON FUNCTION reports.business_day_before(text, date, integer) IS 'The n-th business day before a date; NULL: the calendar does not know it.';

CREATE FUNCTION reports.business_about(p_version reports.schedule_version, p_local timestamp, OUT first_day date, OUT last_day date, OUT label text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    b record;
    day date;
    unit text;
BEGIN
    SELECT * INTO b FROM reports.business_date_parse(p_version.business_date);
    day := p_local::date - (p_local::time < coalesce(b.cutoff, '0')::time)::integer;
    IF b.word = 'run_date' THEN
        first_day := day;
    ELSIF b.word = 't_minus' THEN
        first_day := CASE WHEN p_version.calendar IS NULL THEN day - b.back ELSE reports.business_day_before(p_version.calendar, day, b.back) END;
    ELSIF b.word = 'fiscal_period' THEN
        SELECT p.first_day, p.last_day, p.label INTO first_day, last_day, label
          FROM reports.fiscal_period q JOIN reports.fiscal_period p ON p.calendar = q.calendar AND p.last_day = q.first_day - 1
         WHERE q.calendar = b.fiscal AND day BETWEEN q.first_day AND q.last_day;
        RETURN;
    ELSE
        unit := split_part(b.word, '_', 2);
        first_day := date_trunc(unit, day::timestamp)::date;
        IF b.word ~ '^previous' THEN
            first_day := date_trunc(unit, (first_day - 1)::timestamp)::date;
        END IF;
        last_day := (first_day::timestamp + CASE unit WHEN 'week' THEN interval '1 week' WHEN 'month' THEN interval '1 month' ELSE interval '3 months' END)::date - 1;
        label := to_char(first_day, CASE unit WHEN 'week' THEN 'IYYY"-W"IW' WHEN 'month' THEN 'YYYY-MM' ELSE 'YYYY"-Q"Q' END);
        RETURN;
    END IF;
    last_day := first_day;
END
$$;
COMMENT ON FUNCTION reports.business_about(reports.schedule_version, timestamp) IS 'The days that a firing with a nominal local time is about, and the name of the period if it is one; NULLs: it is not known.';

-- Of a version about periods. NULLs: the key names none.
CREATE FUNCTION reports.period_of_key(p_version reports.schedule_version, p_key text, OUT first_day date, OUT last_day date)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    b record;
BEGIN
    SELECT * INTO b FROM reports.business_date_parse(p_version.business_date);
    IF b.word = 'fiscal_period' THEN
        SELECT p.first_day, p.last_day INTO first_day, last_day FROM reports.fiscal_period p WHERE p.calendar = b.fiscal AND p.label = p_key;
    ELSIF b.word ~ 'week$' AND p_key ~ '^[0-9]{4}-W[0-5][0-9]$' THEN
        first_day := to_date(p_key, 'IYYY"-W"IW');
        last_day := first_day + 6;
        IF to_char(first_day, 'IYYY"-W"IW') <> p_key THEN
            first_day := NULL;
            last_day := NULL;
        END IF;
    ELSIF b.word ~ 'month$' AND p_key ~ '^[0-9]{4}-(0[1-9]|1[0-2])$' AND p_key > '0001' THEN
        first_day := (p_key || '-01')::date;
        last_day := (first_day + interval '1 month')::date - 1;
    ELSIF b.word ~ 'quarter$' AND p_key ~ '^[0-9]{4}-Q[1-4]$' AND p_key > '0001' THEN
        first_day := make_date(left(p_key, 4)::integer, right(p_key, 1)::integer * 3 - 2, 1);
        last_day := (first_day + interval '3 months')::date - 1;
    END IF;
END
$$;
COMMENT ON FUNCTION reports.period_of_key(reports.schedule_version, text) IS 'The days of the period that a key names.';

-- As key_fault, of a version about periods.
CREATE FUNCTION reports.period_key_fault(p_version reports.schedule_version, p_key text, OUT fault text, OUT hint text, OUT to_come boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    form text := reports.key_form_of_periods(p_version.business_date);
    next_nominal timestamp := (SELECT p.next_nominal FROM reports.schedule_progress p WHERE p.schedule = p_version.schedule);
    today timestamp := clock_timestamp() AT TIME ZONE p_version.time_zone;
    its record;
    next record;
BEGIN
    to_come := false;
    SELECT * INTO its FROM reports.period_of_key(p_version, p_key);
    IF its.first_day IS NULL THEN
        IF p_key ~ '^\d{4}-' OR (form = 'fiscal' AND p_key ~ '^FY\d') THEN
            fault := format('key %L begins like a %s but is not the key of a firing of "%s"', p_key, CASE form WHEN 'fiscal' THEN 'fiscal period' ELSE form END, p_version.schedule);
            hint := CASE form WHEN 'week' THEN 'Its keys look like 2030-W15' WHEN 'month' THEN 'Its keys look like 2030-03' WHEN 'quarter' THEN 'Its keys look like 2030-Q1'
                              ELSE 'Its keys are labels of reports.fiscal_period' END || '; a key of your own must not begin like one.';
        END IF;
        RETURN;
    END IF;
    SELECT * INTO next FROM reports.business_about(p_version, coalesce(next_nominal, today));
    to_come := CASE WHEN next.first_day IS NULL THEN its.last_day >= today::date
                    WHEN next_nominal IS NULL THEN its.first_day > next.first_day ELSE its.first_day >= next.first_day END;
    IF to_come THEN
        fault := format('key %L names a period that is still to come', p_key);
        hint := 'Wait for that firing, or choose a key of your own.';
    END IF;
END
$$;
COMMENT ON FUNCTION reports.period_key_fault(reports.schedule_version, text) IS 'What is wrong with a manual key of a schedule about periods, and what to write; fault NULL: nothing.';

-- The business date is the key's own when it names a firing, otherwise that of a firing now.
CREATE FUNCTION reports.manual_about(p_version reports.schedule_version, p_key text, p_at timestamptz,
                                     OUT business_date date, OUT window_start timestamptz, OUT window_end timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    today timestamp := p_at AT TIME ZONE p_version.time_zone;
    periods boolean := reports.key_form_of_periods(p_version.business_date) IS NOT NULL;
    about record;
    at_local timestamp := today;
BEGIN
    window_end := p_at;
    IF periods THEN
        SELECT k.first_day, k.last_day INTO about FROM reports.period_of_key(p_version, p_key) k;
        IF about.first_day IS NULL THEN
            SELECT k.first_day, k.last_day INTO about FROM reports.business_about(p_version, today) k;
        END IF;
        window_start := about.first_day::timestamp AT TIME ZONE p_version.time_zone;
        window_end := (about.last_day + 1)::timestamp AT TIME ZONE p_version.time_zone;
        business_date := about.last_day;
        RETURN;
    END IF;
    IF p_key ~ '^\d{4}-\d\d-\d\dT.*Z$' THEN -- an interval's
        at_local := p_key::timestamptz AT TIME ZONE p_version.time_zone;
    ELSIF p_key ~ '^\d{4}-\d\d-\d\dT\d\d:\d\d' THEN
        at_local := (substring(p_key FROM '^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?'))::timestamp;
    ELSIF p_key ~ '^\d{4}-\d\d-\d\d' THEN
        at_local := reports.date_of_key(p_key, today::date) + coalesce(reports.time_of_day(p_version), interval '23:59');
    END IF;
    business_date := (reports.business_about(p_version, at_local)).last_day;
END
$$;
COMMENT ON FUNCTION reports.manual_about(reports.schedule_version, text, timestamptz) IS 'What a firing that somebody asks for is about; business_date NULL: it is not known.';

RESET ROLE;
