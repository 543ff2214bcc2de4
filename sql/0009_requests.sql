-- Requests: what operators ask of the leader. ask writes them down; the leader carries each out and answers
-- it in one protected write, so that repeating a request, to this leader or the next, gets the first answer.

SET ROLE report_owner;

CREATE FUNCTION reports.date_of_key(p_key text, p_otherwise date) RETURNS date
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF p_key ~ '^\d{4}-\d\d-\d\d' THEN
        RETURN left(p_key, 10)::date;
    END IF;
    RETURN p_otherwise;
EXCEPTION WHEN OTHERS THEN
    RETURN p_otherwise;
END
$$;
COMMENT ON FUNCTION reports.date_of_key(text, date) IS 'The date a key begins with, otherwise the given one.';

CREATE FUNCTION reports.offset_text(p_seconds integer) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN p_seconds < 0 THEN '-' ELSE '+' END || to_char(make_interval(secs => abs(p_seconds)), 'HH24:MI')
$$;
COMMENT ON FUNCTION reports.offset_text(integer) IS 'An offset from UTC as it stands in occurrence keys: +02:00.';

-- The instants at which the clock of a zone shows a local time, earliest first: none in a gap, two in an overlap.
CREATE FUNCTION reports.local_instants(p_local timestamp, p_zone text) RETURNS timestamptz[]
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(array_agg(DISTINCT c.at ORDER BY c.at), '{}')
      FROM unnest(ARRAY[interval '-24 hours', interval '24 hours']) AS away (by)
     CROSS JOIN LATERAL (SELECT (p_local AT TIME ZONE 'UTC') + away.by AS at) near
     CROSS JOIN LATERAL (SELECT ((p_local - (near.at AT TIME ZONE p_zone)) + (near.at AT TIME ZONE 'UTC')) AT TIME ZONE 'UTC' AS at) c
     WHERE c.at AT TIME ZONE p_zone = p_local
$$;
COMMENT ON FUNCTION reports.local_instants(timestamp, text) IS 'When a zone''s clock shows a local time: none, one or two instants.';

-- The value of a field of numbers that has but one: "7", "7-7", "0,0", "*/60" and, as Quartz writes it, "50/20" and "50-10/30".
CREATE FUNCTION reports.only_value(p_field text, p_most integer) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN count(DISTINCT n.value) = 1 AND count(*) = count(i.part) THEN min(n.value) END
      FROM (SELECT regexp_match(t.item, '^(?:\*|(?=/)|(\d{1,2})(?:-(\d{1,2}))?)(/(\d{1,8}))?$') AS part FROM regexp_split_to_table(p_field, ',') AS t (item)) i
      LEFT JOIN LATERAL (SELECT coalesce(i.part[1]::integer, 0) AS low,
                                coalesce(i.part[2], CASE WHEN i.part[3] IS NULL THEN i.part[1] END, p_most::text)::integer AS high) r ON true
      LEFT JOIN LATERAL (SELECT v % (p_most + 1) AS value
                           FROM generate_series(r.low, r.high + CASE WHEN r.high < r.low THEN p_most + 1 ELSE 0 END, nullif(coalesce(i.part[4]::integer, 1), 0)) AS v) n ON true
$$;
COMMENT ON FUNCTION reports.only_value(text, integer) IS 'The one value of a field, of 0 to p_most, of a cron or recurrence rule; NULL: it has several.';

-- The three fields of a cron rule, in either dialect, that say the time of day.
CREATE FUNCTION reports.clock_fields(p_rule text) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN w.fields[1] = '@hourly' THEN '{0,0,*}' WHEN w.fields[1] ~ '^@' THEN '{0,0,0}'
                WHEN cardinality(w.fields) > 5 THEN w.fields[1:3] ELSE '0'::text || w.fields[1:2] END
      FROM regexp_split_to_array(btrim(p_rule), '\s+') AS w (fields)
$$;
COMMENT ON FUNCTION reports.clock_fields(text) IS 'Second, minute and hour of a cron rule.';

-- The time of day of a rule that has but one, whose keys are dates. What BYSETPOS picks, what steps of hours or
-- minutes come to and what rdates of another time add only the leader's parser could say.
CREATE FUNCTION reports.time_of_day(p_version reports.schedule_version) RETURNS interval
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE p_version.kind
           WHEN 'once' THEN substring(p_version.rule FROM '^.{10}[T ](\d\d:\d\d(:\d\d)?)')::interval
           WHEN 'cron' THEN (SELECT make_interval(hours => reports.only_value(f.clock[3], 23), mins => reports.only_value(f.clock[2], 59),
                                                  secs => reports.only_value(f.clock[1], 59))
                               FROM reports.clock_fields(p_version.rule) AS f (clock))
           WHEN 'rrule' THEN
               (SELECT t.clock
                  FROM (SELECT make_interval(
                            hours => reports.only_value(coalesce(substring(w.rule FROM 'BYHOUR=([^;]*)'), extract(hour FROM p_version.start_local)::text), 23),
                            mins => reports.only_value(coalesce(substring(w.rule FROM 'BYMINUTE=([^;]*)'), extract(minute FROM p_version.start_local)::text), 59),
                            secs => reports.only_value(coalesce(substring(w.rule FROM 'BYSECOND=([^;]*)'), extract(second FROM p_version.start_local)::integer::text), 59))
                               AS clock
                          FROM (SELECT upper(p_version.rule) AS rule) w
                         WHERE w.rule ~ 'FREQ=(DAILY|WEEKLY|MONTHLY|YEARLY)' AND w.rule !~ 'BYSETPOS=') t
                 WHERE (SELECT bool_and(d.at::time = t.clock::time) FROM unnest(p_version.rdates) AS d (at)) IS NOT FALSE) END
$$;
COMMENT ON FUNCTION reports.time_of_day(reports.schedule_version) IS 'The time of day at which a version fires; NULL: it has several, is an interval, or only the leader can tell.';

CREATE FUNCTION reports.clock_goes_back(p_date date, p_zone text) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM generate_series(p_date - interval '15 hours', p_date + interval '37 hours', interval '1 hour') AS h (utc)
                    CROSS JOIN LATERAL (SELECT h.utc AT TIME ZONE 'UTC' AT TIME ZONE p_zone AS before,
                                               (h.utc + interval '1 hour') AT TIME ZONE 'UTC' AT TIME ZONE p_zone AS after) c
                    -- The times shown twice lie between these two.
                    WHERE c.after < c.before + interval '1 hour' AND c.after - interval '1 hour' < p_date + 1 AND c.before + interval '1 hour' > p_date)
$$;
COMMENT ON FUNCTION reports.clock_goes_back(date, text) IS 'May a zone''s clock show some time of a date twice?';

-- How the firing at or before an instant is known, as key_format in common/rule/key.c writes it.
CREATE FUNCTION reports.interval_keys(p_version reports.schedule_version, p_form text, p_at timestamptz) RETURNS text[]
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    length bigint := extract(epoch FROM p_version.rule::interval);
    anchor bigint := floor(extract(epoch FROM p_version.anchor)); -- a fraction of it is cut in keys
    fired bigint := anchor + div(floor(extract(epoch FROM p_at))::bigint - anchor, length) * length;
    minutes boolean := CASE p_form WHEN 'minute' THEN true WHEN 'second' THEN false WHEN 'date' THEN fired % 60 = 0
                                   ELSE length % 60 = 0 AND extract(epoch FROM p_version.anchor)::numeric % 60 = 0 END;
BEGIN
    RETURN CASE WHEN extract(epoch FROM p_at) < anchor THEN '{}'
                ELSE ARRAY[to_char(to_timestamp(fired) AT TIME ZONE 'UTC',
                                   CASE WHEN minutes THEN 'YYYY-MM-DD"T"HH24:MI"Z"' ELSE 'YYYY-MM-DD"T"HH24:MI:SS"Z"' END)] END;
END
$$;
COMMENT ON FUNCTION reports.interval_keys(reports.schedule_version, text, timestamptz) IS 'The key of an interval''s firing at or before an instant; empty before its anchor.';

-- The forms of keys are those of common/rule/key.h, with the overlaps of common/time/nominal.c: change both sides.
-- The same for a local time of the other kinds: two where both passes of an overlap run. Whether the rule names
-- that time only the leader's parser could say; a time that it does not name is no firing that could come twice.
CREATE FUNCTION reports.local_keys(p_version reports.schedule_version, p_form text, p_local timestamp, p_exact boolean DEFAULT false) RETURNS text[]
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    key text := to_char(p_local, CASE p_form WHEN 'date' THEN 'YYYY-MM-DD' WHEN 'minute' THEN 'YYYY-MM-DD"T"HH24:MI' ELSE 'YYYY-MM-DD"T"HH24:MI:SS' END);
    -- A step from the first value may lack its * in Quartz.
    follows_clock boolean := p_version.kind = 'cron' AND array_to_string(reports.clock_fields(p_version.rule), ' ') ~ '(^| )[*/]';
    twice boolean := CASE p_version.dst_overlap WHEN 'auto' THEN follows_clock ELSE p_version.dst_overlap = 'both' END;
    at_local timestamp := CASE WHEN p_form = 'date' AND NOT p_exact THEN p_local::date + reports.time_of_day(p_version) ELSE p_local END;
    passes timestamptz[];
    -- Its instant, and so whether there are two, is that of the day to which the calendar moves it.
    moves boolean := p_version.calendar IS NOT NULL AND (p_version.nonbusiness NOT IN ('run', 'skip') OR p_version.business_day_offset <> 0);
BEGIN
    IF p_form NOT IN ('date', 'minute', 'second') THEN
        RETURN ARRAY[(reports.business_about(p_version, p_local)).label];
    END IF;
    IF twice AND moves AND NOT p_exact THEN
        RETURN NULL;
    END IF;
    twice := twice AND NOT moves; -- the planner lets dates that move fire once (moving_check in common/rule/rule_calendar.c)
    IF twice AND at_local IS NULL AND reports.clock_goes_back(p_local::date, p_version.time_zone) THEN
        RETURN NULL;
    END IF;
    passes := CASE WHEN twice THEN reports.local_instants(at_local, p_version.time_zone) END;
    IF cardinality(passes) = 2 THEN
        RETURN ARRAY(SELECT key || reports.offset_text(extract(epoch FROM (at AT TIME ZONE p_version.time_zone) - (at AT TIME ZONE 'UTC'))::integer)
                       FROM unnest(passes) AS at ORDER BY at);
    END IF;
    RETURN ARRAY[key];
END
$$;
COMMENT ON FUNCTION reports.local_keys(reports.schedule_version, text, timestamp, boolean) IS 'The keys that a firing of a local time has; NULL: a date of which only the leader can tell whether there are two. p_exact: the time is that of a firing, not any of its date, and so it can be told.';

-- A key that begins like a date is a firing's own to the byte, or none: with another spelling of it a firing would
-- come twice, and with that of a firing still to come this one would be missing (I3). One that exists is no fault.
CREATE FUNCTION reports.key_fault(p_schedule text, p_key text, OUT fault text, OUT hint text, OUT to_come boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
    part text[] := regexp_match(p_key, '^(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d)(:\d\d)?)?(Z|[+-]\d\d:\d\d)?$');
    form text := (SELECT p.key_form FROM reports.schedule_progress p WHERE p.schedule = p_schedule);
    v reports.schedule_version;
    clock timestamp;
    at timestamptz;
    keys text[];
BEGIN
    to_come := false;
    SELECT * INTO v FROM reports.schedule_version w WHERE w.schedule = p_schedule ORDER BY w.version DESC LIMIT 1;
    IF NOT FOUND OR p_key IS NULL
       OR EXISTS (SELECT FROM reports.occurrence o WHERE o.schedule = p_schedule AND o.occurrence_key = p_key) THEN
        RETURN;
    END IF;
    -- As a key of one's own it would be a report of today under another day's name.
    IF p_key ~ '^(\d{1,2}[.-]\d{1,2}[.-](\d\d|\d{4})|\d{4}\.\d{1,2}\.\d{1,2})$' THEN
        fault := format('key %L looks like a date in another form than keys have', p_key);
        hint := 'Write a date as 2030-04-12; a key of your own must not look like a date.';
        RETURN;
    END IF;
    IF coalesce(form, reports.key_form_of_periods(v.business_date), 'date') NOT IN ('date', 'minute', 'second') THEN
        SELECT * INTO fault, hint, to_come FROM reports.period_key_fault(v, p_key);
        RETURN;
    END IF;
    IF p_key !~ '^\d{4}-\d' THEN
        RETURN;
    END IF;
    BEGIN
        clock := concat(part[1], ' ', coalesce(part[2], '00:00'), coalesce(part[3], ':00'))::timestamp;
        IF part[4] IS NULL THEN
            at := CASE WHEN v.kind = 'interval' THEN clock AT TIME ZONE 'UTC'
                       ELSE coalesce((reports.local_instants(clock, v.time_zone))[1], clock AT TIME ZONE v.time_zone) END;
        ELSE
            at := (clock - replace(part[4], 'Z', '+00:00')::interval) AT TIME ZONE 'UTC';
        END IF;
        IF to_char(clock, 'YYYY-MM-DD HH24:MI') <> concat(part[1], ' ', coalesce(part[2], '00:00')) THEN
            RAISE EXCEPTION 'hour 24, second 60';
        END IF;
    EXCEPTION WHEN OTHERS THEN
        IF part IS NOT NULL THEN
            fault := format('key %L names a date or time that does not exist', p_key);
            hint := 'Correct the date.';
            RETURN;
        END IF;
    END;
    -- Whose firing it was: each version plans what is due while it is in force.
    SELECT * INTO v FROM reports.schedule_version w WHERE w.schedule = p_schedule
     ORDER BY w.effective_from <= at DESC, CASE WHEN w.effective_from <= at THEN -w.version ELSE w.version END LIMIT 1;
    IF form IS NULL AND v.kind = 'rrule' THEN
        fault := format('key %L begins like a date, and the leader has not said yet what keys "%s" has', p_key, p_schedule);
        hint := 'Ask again when reportctl schedules shows its next firing, or choose a key of your own, which must not begin with a date.';
        RETURN;
    END IF;
    form := coalesce(form, CASE WHEN v.kind = 'interval' THEN NULL WHEN reports.time_of_day(v) IS NOT NULL THEN 'date'
                                WHEN reports.only_value((reports.clock_fields(v.rule))[1], 59) = 0 THEN 'minute' ELSE 'second' END);
    IF part IS NOT NULL AND (part[2] IS NOT NULL OR (form = 'date' AND v.kind <> 'interval')) THEN
        keys := CASE WHEN v.kind = 'interval' THEN CASE WHEN isfinite(v.anchor) THEN reports.interval_keys(v, form, at) END
                     ELSE reports.local_keys(v, form, CASE WHEN part[4] IS NULL OR p_key ~ '^\d{4}-\d\d-\d\d[+-]' THEN clock ELSE at AT TIME ZONE v.time_zone END) END;
    END IF;
    IF keys IS NULL AND v.kind <> 'interval' AND (form = 'date' OR part[2] IS NOT NULL) AND part IS NOT NULL THEN
        fault := format(CASE WHEN v.calendar IS NULL THEN 'key %L names a date on which the clock of %s is turned back, and only the leader knows whether "%s" fires twice on it'
                             ELSE 'key %L may be moved to a day on which the clock of %s is turned back, and only the leader knows whether "%s" fires twice then' END, p_key, v.time_zone, p_schedule);
        hint := 'Choose a key of your own, which must not begin with a date.';
        RETURN;
    END IF;
    IF p_key = ANY (keys) THEN
        -- A calendar moves firings: those from the next one's date on are to come, whatever day it is.
        to_come := CASE WHEN v.calendar IS NOT NULL AND form = 'date' AND v.kind <> 'interval'
                             THEN clock::date >= coalesce((SELECT p.next_nominal::date FROM reports.schedule_progress p WHERE p.schedule = p_schedule),
                                                          (clock_timestamp() AT TIME ZONE v.time_zone)::date + 1)
                        WHEN form = 'date' AND v.kind <> 'interval' THEN clock::date > (clock_timestamp() AT TIME ZONE v.time_zone)::date
                        ELSE at + make_interval(secs => v.jitter_s) > clock_timestamp() END;
        IF to_come THEN
            fault := format('key %L names a time that is still to come', p_key);
            hint := 'Wait for that firing, or choose a key of your own.';
        END IF;
        RETURN;
    END IF;
    fault := format('key %L begins like a date but is not the key of a firing of "%s"', p_key, p_schedule);
    hint := CASE WHEN keys = '{}' THEN format('Its first firing is at %s', to_char(v.anchor AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
                 WHEN keys IS NOT NULL AND v.kind = 'interval' THEN format('The firing then or before has the key %s', keys[1])
                 WHEN keys IS NOT NULL THEN 'Write ' || array_to_string(keys, ' or ')
                 ELSE 'Its keys look like ' || CASE WHEN v.kind = 'interval' AND form = 'minute' THEN '2030-04-12T06:00Z' WHEN v.kind = 'interval' THEN '2030-04-12T06:00:30Z'
                                                    WHEN form = 'date' THEN '2030-04-12' WHEN form = 'minute' THEN '2030-04-12T06:00' ELSE '2030-04-12T06:00:30' END END
            || '; a key of your own must not begin with a date.';
END
$$;
COMMENT ON FUNCTION reports.key_fault(text, text) IS 'What is wrong with a manual key that begins like a date, and what to write; fault NULL: nothing.';

-- The key of the next firing, in each form it may have: a manual firing would take it away from it.
CREATE FUNCTION reports.key_to_come(p_schedule text, p_key text) RETURNS timestamptz
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT p.next_fire_at FROM reports.schedule_progress p
     WHERE p.schedule = p_schedule AND p.next_fire_at > clock_timestamp()
       AND p_key = ANY (CASE
               WHEN p.key_form NOT IN ('date', 'minute', 'second')
                    THEN ARRAY[(SELECT (reports.business_about(w, p.next_nominal)).label FROM reports.schedule_version w
                                 WHERE w.schedule = p.schedule AND w.version = p.version)]
               WHEN p.key_form = 'date' THEN ARRAY[to_char(p.next_nominal, 'YYYY-MM-DD'),
                                      to_char(p.next_nominal, 'YYYY-MM-DD') || reports.offset_text(p.next_offset_s)]
               WHEN p.key_form = 'minute' THEN ARRAY[to_char(p.next_nominal, 'YYYY-MM-DD"T"HH24:MI'),
                                        to_char(p.next_nominal, 'YYYY-MM-DD"T"HH24:MI') || reports.offset_text(p.next_offset_s),
                                        to_char(p.next_nominal - make_interval(secs => p.next_offset_s), 'YYYY-MM-DD"T"HH24:MI"Z"')]
               ELSE ARRAY[to_char(p.next_nominal, 'YYYY-MM-DD"T"HH24:MI:SS'),
                          to_char(p.next_nominal, 'YYYY-MM-DD"T"HH24:MI:SS') || reports.offset_text(p.next_offset_s),
                          to_char(p.next_nominal - make_interval(secs => p.next_offset_s), 'YYYY-MM-DD"T"HH24:MI:SS"Z"')] END));
END
$$;
COMMENT ON FUNCTION reports.key_to_come(text, text) IS 'When the schedule itself will fire with this key, if that is its next firing; NULL: not known to.';

CREATE FUNCTION reports.check_key(p_schedule text, p_key text) RETURNS void
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    due_at timestamptz := reports.key_to_come(p_schedule, p_key);
    wrong record;
BEGIN
    IF p_key !~ '^[A-Za-z0-9][A-Za-z0-9_.:+-]{0,126}$' THEN
        RAISE EXCEPTION 'key % has characters that cannot stand in one, or is too long', quote_literal(p_key)
            USING ERRCODE = 'check_violation', HINT = 'A key is 1 to 127 of letters, digits, _ . : + -';
    END IF;
    SELECT * INTO wrong FROM reports.key_fault(p_schedule, p_key);
    IF wrong.fault IS NOT NULL AND NOT wrong.to_come THEN
        RAISE EXCEPTION '%', wrong.fault USING ERRCODE = 'invalid_parameter_value', HINT = wrong.hint;
    ELSIF due_at IS NOT NULL THEN
        RAISE EXCEPTION 'key % is that of the firing due at %', quote_literal(p_key), due_at
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Wait for that firing, or choose a key of your own.';
    ELSIF wrong.fault IS NOT NULL THEN
        RAISE EXCEPTION '%', wrong.fault USING ERRCODE = 'object_not_in_prerequisite_state', HINT = wrong.hint;
    END IF;
END
$$;
COMMENT ON FUNCTION reports.check_key(text, text) IS 'Refuses a manual key that cannot be one, is nearly but not quite that of a firing, or that of one still to come.';

-- SCHEDULE:KEY or the job's id. Names of schedules have no colon, keys may.
CREATE FUNCTION reports.find_job(p_subject text) RETURNS uuid
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
    colon integer := strpos(p_subject, ':');
BEGIN
    IF p_subject ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN
        RETURN (SELECT j.id FROM reports.job j WHERE j.id = p_subject::uuid);
    END IF;
    RETURN (SELECT j.id FROM reports.occurrence o JOIN reports.job j ON j.id = o.job_id
             WHERE o.schedule = left(p_subject, colon - 1) AND o.occurrence_key = substr(p_subject, colon + 1) AND colon > 1);
END
$$;
COMMENT ON FUNCTION reports.find_job(text) IS 'The job that SCHEDULE:KEY or an id names; NULL: there is none.';

-- Refuses at once what can be told without the leader. Returns the scope whose leader is asked.
CREATE FUNCTION reports.check_request(p_kind text, p_subject text, p_argument text, OUT its_scope text, OUT its_job uuid)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF p_kind = 'handoff' THEN
        its_scope := reports.check_handoff(p_subject, p_argument);
    ELSIF p_kind = 'discard' THEN
        its_scope := reports.check_discard(p_subject, p_argument);
    ELSIF p_kind IN ('cancel', 'retry') THEN
        its_job := reports.find_job(p_subject);
        SELECT j.scope INTO its_scope FROM reports.job j WHERE j.id = its_job;
        IF its_job IS NULL THEN
            RAISE EXCEPTION 'job % does not exist', coalesce(quote_literal(p_subject), 'NULL')
                USING ERRCODE = 'no_data_found', HINT = 'Write SCHEDULE:KEY or the job''s id; reportctl jobs lists them.';
        END IF;
    ELSIF p_kind IN ('trigger', 'pause', 'resume', 'backfill', 'breaker_close') THEN
        SELECT s.scope INTO its_scope FROM reports.schedule s WHERE s.name = p_subject;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'schedule "%" does not exist', p_subject
                USING ERRCODE = 'no_data_found', HINT = 'reportctl schedules lists them.';
        END IF;
    ELSE
        RAISE EXCEPTION 'there is no request of the kind %', coalesce(quote_literal(p_kind), 'NULL')
            USING ERRCODE = 'invalid_parameter_value', HINT = 'There are trigger, pause, resume, cancel, retry, backfill, discard, breaker_close and handoff.';
    END IF;
    IF p_kind = 'trigger' THEN
        PERFORM reports.check_key(p_subject, p_argument);
    ELSIF p_kind = 'retry' AND p_argument <> 'again' THEN
        RAISE EXCEPTION 'retry takes no argument but ''again''' USING ERRCODE = 'invalid_parameter_value', HINT = 'Leave it out; again runs a job that succeeded once more.';
    ELSIF octet_length(p_argument) > 500 THEN
        RAISE EXCEPTION 'the reason is longer than 500 bytes'
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Say it shorter.';
    END IF;
END
$$;
COMMENT ON FUNCTION reports.check_request(text, text, text) IS 'Refuses a request that cannot be carried out, with the remedy.';

CREATE FUNCTION reports.check_until(p_kind text, p_subject text, p_until timestamptz) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF p_until IS NOT NULL AND p_kind IS DISTINCT FROM 'pause' THEN
        RAISE EXCEPTION 'a % has no end', p_kind USING ERRCODE = 'invalid_parameter_value', HINT = 'Only a pause has one: leave p_until out.';
    ELSIF p_until <= clock_timestamp() OR p_until >= '10000-01-01' THEN
        RAISE EXCEPTION 'schedule "%" cannot be paused until %, which is not to come', p_subject, p_until
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Write a later instant, or none for a pause without end.';
    END IF;
END
$$;
COMMENT ON FUNCTION reports.check_until(text, text, timestamptz) IS 'Refuses an end that a request cannot have.';

-- Asked by operators. Repeating a request id returns how the first request stands.
CREATE FUNCTION reports.ask(p_request uuid, p_kind text, p_subject text, p_argument text, p_timeout interval,
                            p_until timestamptz DEFAULT NULL, OUT state text, OUT answer text, OUT its_scope text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    r reports.request;
    checked record;
BEGIN
    IF p_request IS NULL THEN
        RAISE EXCEPTION 'a request needs an id'
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Choose one, such as gen_random_uuid(), and repeat the request with the same.';
    END IF;
    SELECT * INTO r FROM reports.request WHERE id = p_request;
    IF NOT FOUND THEN
        SELECT * INTO checked FROM reports.check_request(p_kind, p_subject, p_argument);
        IF p_kind = 'backfill' THEN
            PERFORM reports.check_backfill(p_request, p_subject, p_argument);
        END IF;
        PERFORM reports.check_until(p_kind, p_subject, p_until);
        IF p_timeout IS NULL OR p_timeout <= interval '0' THEN
            RAISE EXCEPTION 'a request needs a time in which it is to be carried out, and % is none', coalesce(quote_literal(p_timeout), 'NULL')
                USING ERRCODE = 'invalid_parameter_value', HINT = 'Say how long it may wait, such as ''1 minute''.';
        ELSIF p_timeout > interval '1 day' THEN
            RAISE EXCEPTION 'a request cannot wait for longer than a day'
                USING ERRCODE = 'invalid_parameter_value', HINT = 'Ask again then, with a fresh request id.';
        END IF;
        -- The same id may be on its way twice at once: the second waits here and answers like the first.
        INSERT INTO reports.request (id, kind, scope, subject, argument, deadline, job_id, until)
        VALUES (p_request, p_kind, checked.its_scope, p_subject, p_argument, clock_timestamp() + p_timeout, checked.its_job, p_until)
        ON CONFLICT (id) DO NOTHING;
        IF FOUND THEN
            PERFORM pg_notify('report_request', checked.its_scope);
            -- A handoff names the generation to leave: repeated to the next leader, it asks nothing of that.
            INSERT INTO reports.handoff (request, scope, incarnation, generation, member)
            SELECT p_request, f.scope, f.incarnation, f.generation, f.member FROM reports.fence f
             WHERE f.scope = checked.its_scope AND p_kind = 'handoff';
        END IF;
        SELECT * INTO r FROM reports.request WHERE id = p_request;
    END IF;
    IF (r.kind, r.subject) IS DISTINCT FROM (p_kind, p_subject) OR r.argument IS DISTINCT FROM p_argument OR r.until IS DISTINCT FROM p_until THEN
        RAISE EXCEPTION 'request id % was used for something else', p_request
            USING ERRCODE = 'unique_violation', HINT = 'Choose a fresh request id.';
    END IF;
    IF r.state = 'pending' AND reports.is_held(r.scope) THEN
        PERFORM reports.carry_out_held(r.id);
        SELECT * INTO r FROM reports.request WHERE id = p_request;
    END IF;
    state := r.state;
    answer := r.answer;
    its_scope := r.scope;
END
$$;
COMMENT ON FUNCTION reports.ask(uuid, text, text, text, interval, timestamptz) IS 'Asks the leader for something: trigger (argument: key), pause (why; p_until: it ends then by itself), resume (why) of a schedule; cancel (why), retry of a job (again: also of one that succeeded); handoff (member that is to lead) of a scope; backfill (id of an earlier one, whose open jobs are cancelled) of a schedule, otherwise see ask_backfill; discard ("all: " or "before INSTANT: ", and why) of the missed firings that wait, of a schedule or of queue:QUEUE@SCOPE; breaker_close (why) of a schedule. While a hold stands, and so nobody leads, pause, resume and cancel are carried out by the call itself.';

CREATE FUNCTION reports.pending_requests(p_scope text, p_limit integer)
RETURNS TABLE (id uuid, kind text, subject text, argument text, expired boolean, database_now timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT r.id, r.kind, r.subject, r.argument, r.deadline < clock_timestamp(), clock_timestamp()
      FROM reports.request r WHERE r.scope = p_scope AND r.state = 'pending'
     ORDER BY r.requested_at, r.id LIMIT p_limit
$$;
COMMENT ON FUNCTION reports.pending_requests(text, integer) IS 'Requests the leader has not answered, oldest first.';

-- The functions carry_out_* do what one kind of request asks. new_state done or refused; NULL: a row that it
-- needs is locked by another session, so that it is asked again in the next round, until it expires.

-- The progress row is what orders a request and plan_batch. A schedule that has none yet has nothing to order.
CREATE FUNCTION reports.progress_taken(p_schedule text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
BEGIN
    PERFORM FROM reports.schedule_progress p WHERE p.schedule = p_schedule FOR UPDATE SKIP LOCKED;
    RETURN FOUND OR NOT EXISTS (SELECT FROM reports.schedule_progress p WHERE p.schedule = p_schedule);
END
$$;
COMMENT ON FUNCTION reports.progress_taken(text) IS 'Locks the progress row of a schedule; false when another session holds it.';

-- A manual firing. A key that exists already is answered with the job that is there (I3).
CREATE FUNCTION reports.carry_out_trigger(p_asked reports.request, p_incarnation bigint, p_generation bigint, p_job uuid,
                                          OUT new_state text, OUT its_answer text, OUT its_job uuid)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
    v reports.schedule_version;
    its_key text := coalesce(p_asked.argument, p_asked.id::text);
    subject text := format('%s:%s', p_asked.subject, coalesce(p_asked.argument, p_asked.id::text));
    fired_at timestamptz := clock_timestamp();
    waits text;
    open uuid[];
    about record;
BEGIN
    SELECT * INTO v FROM reports.schedule_version w WHERE w.schedule = p_asked.subject ORDER BY w.version DESC LIMIT 1;
    IF NOT FOUND OR v.ended THEN
        new_state := 'refused';
        its_answer := format('schedule "%s" does not exist', p_asked.subject);
        RETURN;
    END IF;
    -- The progress row orders this and plan_batch, where the policy depends on what is open.
    IF NOT reports.progress_taken(v.schedule) THEN
        RETURN;
    END IF;
    SELECT o.job_id INTO its_job FROM reports.occurrence o WHERE o.schedule = v.schedule AND o.occurrence_key = its_key;
    IF FOUND THEN
        new_state := 'done';
        its_answer := format('occurrence %s was there already', subject);
        RETURN;
    END IF;
    IF reports.key_to_come(v.schedule, its_key) IS NOT NULL THEN
        new_state := 'refused';
        its_answer := format('key %s is that of the firing due at %s: wait for that, or choose a key of your own',
                             its_key, reports.key_to_come(v.schedule, its_key));
        RETURN;
    END IF;
    -- Asked before the leader had taken the schedule in, or before an edit of it.
    SELECT 'refused', concat_ws('. ', k.fault, k.hint) INTO new_state, its_answer FROM reports.key_fault(v.schedule, its_key) k WHERE k.fault IS NOT NULL;
    IF FOUND THEN
        RETURN;
    END IF;
    IF v.overlap = 'forbid' THEN
        open := reports.open_jobs(v.scope, v.schedule);
        IF cardinality(open) > 0 THEN
            new_state := 'refused';
            SELECT format('schedule "%s" forbids overlap, and its job %s:%s is %s: wait for it to end, or cancel it',
                          v.schedule, j.schedule, j.occurrence_key, j.state)
              INTO its_answer FROM reports.job j WHERE j.id = open[1];
            RETURN;
        END IF;
    ELSIF v.overlap = 'replace' AND NOT reports.may_replace(v.scope, v.schedule) THEN
        RETURN;
    END IF;
    SELECT * INTO about FROM reports.manual_about(v, its_key, fired_at);
    IF about.business_date IS NULL THEN
        new_state := 'refused';
        its_answer := format('what %s is about cannot be told: business_date is %s, and its calendar does not know the days or has no such period',
                             subject, v.business_date);
        RETURN;
    END IF;
    INSERT INTO reports.occurrence
        (schedule, occurrence_key, scope, job_id, scheduled_for, nominal_local, business_date, window_start, window_end, cause,
         version, incarnation, generation, request_id)
    VALUES (v.schedule, its_key, v.scope, p_job, fired_at, fired_at AT TIME ZONE v.time_zone, about.business_date, about.window_start, about.window_end,
            'manual', v.version, p_incarnation, p_generation, p_asked.id);
    waits := CASE WHEN v.overlap IN ('queue', 'replace') THEN 'overlap' ELSE 'capacity' END;
    INSERT INTO reports.job
        (id, schedule, occurrence_key, scope, report, queue, priority, state, waits_for, overlap, run_after,
         dispatch_number, max_attempts, retry_base, retry_cap, timeout, breaker)
    VALUES (p_job, v.schedule, its_key, v.scope, v.report, v.queue, v.priority, 'waiting', waits, v.overlap, fired_at,
            0, v.max_attempts, v.retry_base, v.retry_cap, v.timeout, v.breaker_failures IS NOT NULL);
    IF v.overlap = 'replace' THEN
        PERFORM reports.replace_jobs(v.scope, ARRAY[p_job]);
    END IF;
    PERFORM reports.release_waiting(v.scope, p_generation, 1000);
    new_state := 'done';
    its_job := p_job;
    SELECT format('occurrence %s made%s', subject, '; its job waits for ' || j.waits_for)
      INTO its_answer FROM reports.job j WHERE j.id = p_job;
END
$$;
COMMENT ON FUNCTION reports.carry_out_trigger(reports.request, bigint, bigint, uuid) IS 'Makes a manual firing: occurrence, job and, when it may go, its message.';

CREATE FUNCTION reports.instant_text(p_at timestamptz) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT to_char(p_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
$$;
COMMENT ON FUNCTION reports.instant_text(timestamptz) IS 'An instant as answers write it, in whole seconds.';

-- The edit is stamped with the instant it was asked for, and says who asked and why: record_version reads
-- the settings reports.asked_at and change_reason of this transaction.
CREATE FUNCTION reports.carry_out_pause(p_asked reports.request, OUT new_state text, OUT its_answer text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    wanted boolean := p_asked.kind = 'pause';
    was reports.schedule;
    announced timestamptz;
    in_force boolean;
    same boolean;
BEGIN
    SELECT s.* INTO was FROM reports.schedule s WHERE s.name = p_asked.subject FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        IF NOT EXISTS (SELECT FROM reports.schedule s WHERE s.name = p_asked.subject) THEN
            new_state := 'refused';
            its_answer := format('schedule "%s" does not exist', p_asked.subject);
        END IF;
        RETURN;
    END IF;
    announced := CASE WHEN was.effective_from > clock_timestamp() THEN was.effective_from END;
    -- The row is what is to come; until then the version before it counts.
    in_force := CASE WHEN announced IS NULL THEN was.paused ELSE coalesce((reports.version_before_announced(was.scope, was.name)).paused, was.paused) END;
    IF NOT wanted AND was.paused AND NOT in_force THEN
        new_state := 'refused';
        its_answer := format('schedule "%s" is not paused, and is written to be paused from %s; to take that back, set paused = false',
                             p_asked.subject, reports.instant_text(announced));
        RETURN;
    END IF;
    new_state := 'done';
    same := was.paused = wanted AND (NOT wanted OR was.paused_until IS NOT DISTINCT FROM p_asked.until);
    IF same AND in_force = wanted THEN
        its_answer := format(CASE WHEN was.paused THEN 'schedule "%s" is paused already' ELSE 'schedule "%s" is not paused' END, p_asked.subject)
                      || coalesce(', until ' || reports.instant_text(was.paused_until), '');
        RETURN;
    END IF;
    PERFORM set_config('reports.asked_at', p_asked.requested_at::text, true),
            set_config('reports.change_reason', concat_ws(': ', 'asked by ' || p_asked.requested_by, p_asked.argument), true);
    BEGIN
        IF wanted AND p_asked.until <= clock_timestamp() THEN
            -- Nobody led until it was over. What was due meanwhile is not run all the same.
            UPDATE reports.schedule SET paused = true, paused_until = NULL WHERE name = p_asked.subject;
            PERFORM set_config('reports.asked_at', p_asked.until::text, true);
            UPDATE reports.schedule SET paused = false WHERE name = p_asked.subject;
            its_answer := format('schedule "%s" was paused until %s', p_asked.subject, reports.instant_text(p_asked.until));
        ELSE
            IF same THEN
                -- Only the version in force differs: an edit of the row that changes nothing makes no version.
                UPDATE reports.schedule SET paused = NOT wanted, paused_until = NULL WHERE name = p_asked.subject;
            END IF;
            UPDATE reports.schedule SET paused = wanted, paused_until = CASE WHEN wanted THEN p_asked.until END WHERE name = p_asked.subject;
            its_answer := format('schedule "%s" is %s', p_asked.subject, CASE WHEN wanted THEN 'paused' ELSE 'resumed' END)
                          || CASE WHEN p_asked.until IS NOT NULL THEN ' until ' || reports.instant_text(p_asked.until)
                                  WHEN wanted AND was.paused_until IS NOT NULL THEN ', and no longer only until ' || reports.instant_text(was.paused_until) ELSE '' END;
        END IF;
        its_answer := its_answer || coalesce('; what is announced for ' || reports.instant_text(announced) || ' begins then', '');
    EXCEPTION WHEN raise_exception OR feature_not_supported OR data_exception OR integrity_constraint_violation THEN
        -- The row was made before a check that refuses it now.
        new_state := 'refused';
        its_answer := SQLERRM;
    END;
    PERFORM set_config('reports.asked_at', '', true), set_config('reports.change_reason', '', true);
END
$$;
COMMENT ON FUNCTION reports.carry_out_pause(reports.request) IS 'Pauses or resumes a schedule.';

CREATE FUNCTION reports.carry_out_cancel(p_asked reports.request, p_generation bigint, OUT new_state text, OUT its_answer text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
    j reports.job;
    subject text;
BEGIN
    SELECT * INTO j FROM reports.job q WHERE q.id = p_asked.job_id FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        IF NOT EXISTS (SELECT FROM reports.job q WHERE q.id = p_asked.job_id) THEN
            new_state := 'refused';
            its_answer := format('job %s does not exist any more', p_asked.subject);
        END IF;
        RETURN;
    END IF;
    subject := format('job %s:%s', j.schedule, j.occurrence_key);
    new_state := 'done';
    CASE
    WHEN j.state IN ('succeeded', 'failed', 'cancelled') THEN
        new_state := 'refused';
        its_answer := format('%s is %s since %s: only an open job can be cancelled', subject, j.state, date_trunc('second', j.finished_at));
    WHEN j.state = 'running' THEN
        SELECT format(CASE WHEN j.cancel_requested THEN '%s is being cancelled already: attempt %s on worker %s has been told'
                           ELSE '%s runs in attempt %s on worker %s, which is told to stop; whatever it comes to, the job is cancelled' END,
                      subject, j.attempt, coalesce((SELECT w.name FROM reports.worker w WHERE w.id = j.worker), j.worker::text))
          INTO its_answer;
        UPDATE reports.job q
           SET cancel_requested = true,
               error = CASE WHEN j.cancel_requested THEN q.error
                            ELSE concat_ws(': ', 'cancelled by ' || p_asked.requested_by, p_asked.argument) END
         WHERE q.id = j.id;
    ELSE
        its_answer := format('%s was %s and is cancelled', subject, j.state);
        UPDATE reports.job q
           SET state = 'cancelled', waits_for = NULL, finished_at = clock_timestamp(),
               error = concat_ws(': ', 'cancelled by ' || p_asked.requested_by, p_asked.argument)
         WHERE q.id = j.id;
        IF p_generation IS NOT NULL AND NOT reports.is_held(j.scope) THEN
            PERFORM reports.release_waiting(j.scope, p_generation, 1000);
        END IF;
    END CASE;
END
$$;
COMMENT ON FUNCTION reports.carry_out_cancel(reports.request, bigint) IS 'Cancels a job: one that does not run at once, one that runs through its worker. Generation NULL: nobody leads, and nothing is released.';

CREATE FUNCTION reports.carry_out_retry(p_asked reports.request, p_generation bigint, OUT new_state text, OUT its_answer text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
    j reports.job;
    v reports.schedule_version;
    subject text;
BEGIN
    SELECT * INTO j FROM reports.job q WHERE q.id = p_asked.job_id;
    IF NOT FOUND THEN
        new_state := 'refused';
        its_answer := format('job %s does not exist any more', p_asked.subject);
        RETURN;
    END IF;
    -- The progress row first, as plan_batch has it: what is open decides under some policies.
    IF NOT reports.progress_taken(j.schedule) THEN
        RETURN;
    END IF;
    SELECT * INTO j FROM reports.job q WHERE q.id = p_asked.job_id FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    subject := format('job %s:%s', j.schedule, j.occurrence_key);
    IF j.state NOT IN ('failed', 'cancelled') AND (j.state <> 'succeeded' OR p_asked.argument IS NULL) THEN
        new_state := 'refused';
        its_answer := format(CASE j.state WHEN 'succeeded' THEN '%s is %s: to make its report once more, and send it once more, ask with --again'
                                          ELSE '%s is %s: only a failed or cancelled job can be retried' END, subject, j.state);
        RETURN;
    END IF;
    -- As the schedule is now, which may have been mended; of one that was deleted, as it was last. Report and
    -- parameters stay those of the firing.
    SELECT * INTO v FROM reports.schedule_version w WHERE w.schedule = j.schedule ORDER BY w.version DESC LIMIT 1;
    IF reports.is_backfilled(j.schedule, j.occurrence_key) THEN
        v.overlap := 'allow';
        v.priority := j.priority;
        v.breaker_failures := NULL;
    END IF;
    IF NOT EXISTS (SELECT FROM reports.queue q WHERE q.name = coalesce(v.queue, j.queue)) THEN
        new_state := 'refused';
        its_answer := format('queue "%s" of %s does not exist any more: insert it again, and have a worker serve it',
                             coalesce(v.queue, j.queue), subject);
        RETURN;
    END IF;
    UPDATE reports.job q
       SET state = 'waiting', overlap = coalesce(v.overlap, q.overlap),
           waits_for = CASE WHEN coalesce(v.overlap, q.overlap) = 'allow' THEN 'capacity' ELSE 'overlap' END,
           -- A re-run under the same key: the file that is there stays, and is superseded when another one is made.
           revision = q.revision + (q.state = 'succeeded')::integer,
           catch_up = false, cancel_requested = false, finished_at = NULL, run_after = clock_timestamp(),
           error = CASE WHEN q.state = 'cancelled' THEN NULL ELSE q.error END, -- it said who had cancelled it
           queue = coalesce(v.queue, q.queue), priority = coalesce(v.priority, q.priority),
           breaker = v.breaker_failures IS NOT NULL, timeout = coalesce(v.timeout, q.timeout), retry_base = coalesce(v.retry_base, q.retry_base),
           retry_cap = coalesce(v.retry_cap, q.retry_cap),
           max_attempts = q.attempt - q.handed_back + coalesce(v.max_attempts, q.max_attempts)
     WHERE q.id = j.id;
    PERFORM reports.release_waiting(j.scope, p_generation, 1000);
    new_state := 'done';
    SELECT format('%s is %s again, with %s more attempts', subject,
                  CASE q.state WHEN 'waiting' THEN 'waiting for ' || q.waits_for ELSE q.state::text END,
                  q.max_attempts - q.attempt + q.handed_back) || CASE WHEN j.state = 'succeeded' THEN format(', as revision %s', q.revision) ELSE '' END
      INTO its_answer FROM reports.job q WHERE q.id = j.id;
END
$$;
COMMENT ON FUNCTION reports.carry_out_retry(reports.request, bigint) IS 'Gives a failed or cancelled job a fresh set of attempts, and where that is asked for one that succeeded, as its next revision.';

-- Pause and resume of a schedule, cancel and retry of a job come to the opposite in the other order. So what
-- was asked first is carried out first, also when a row that it needs is locked for a while.
CREATE FUNCTION reports.request_before(p_asked reports.request) RETURNS uuid
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
    SELECT q.id FROM reports.request q
     WHERE q.scope = p_asked.scope AND q.state = 'pending' AND q.deadline >= clock_timestamp()
       AND q.requested_at <= p_asked.requested_at AND (q.requested_at, q.id) < (p_asked.requested_at, p_asked.id)
       AND CASE WHEN p_asked.kind IN ('pause', 'resume') THEN q.kind IN ('pause', 'resume') AND q.subject = p_asked.subject
                WHEN p_asked.kind IN ('cancel', 'retry') THEN q.kind IN ('cancel', 'retry') AND q.job_id = p_asked.job_id
                ELSE false END
     ORDER BY q.requested_at, q.id LIMIT 1
$$;
COMMENT ON FUNCTION reports.request_before(reports.request) IS 'The oldest request that is to be carried out before this one; NULL: there is none.';

CREATE FUNCTION reports.why_expired(p_asked reports.request) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
    held record;
    earlier uuid := reports.request_before(p_asked);
    its_schedule text := CASE WHEN p_asked.job_id IS NULL THEN p_asked.subject
                              ELSE (SELECT j.schedule FROM reports.job j WHERE j.id = p_asked.job_id) END;
BEGIN
    IF earlier IS NOT NULL THEN
        RETURN format('not carried out before its deadline: request %s, asked earlier of the same %s, is not answered yet; wait for that, and ask again with a fresh request id',
                      earlier, CASE WHEN p_asked.job_id IS NULL THEN 'schedule' ELSE 'job' END);
    END IF;
    -- The rows that the functions above need. Whoever holds one is known by its transaction while that runs.
    SELECT h.what, l.pid INTO held
      FROM (SELECT s.xmax AS by, format('the row of schedule "%s"', s.name) AS what FROM reports.schedule s
             WHERE p_asked.kind IN ('pause', 'resume') AND s.name = its_schedule
             UNION ALL
            SELECT p.xmax, format('the progress of schedule "%s"', p.schedule) FROM reports.schedule_progress p
             WHERE p_asked.kind IN ('trigger', 'retry', 'backfill', 'breaker_close') AND p.schedule = its_schedule
             UNION ALL
            SELECT j.xmax, format('the row of job %s:%s', j.schedule, j.occurrence_key) FROM reports.job j
             WHERE j.id = CASE WHEN p_asked.kind IN ('cancel', 'retry') THEN p_asked.job_id END
                OR j.id = ANY (CASE WHEN p_asked.kind = 'trigger' THEN reports.open_jobs(p_asked.scope, its_schedule) END)) h
      JOIN pg_locks l ON l.locktype = 'transactionid' AND l.granted AND l.transactionid = h.by
     LIMIT 1;
    IF FOUND THEN
        RETURN format('not carried out before its deadline: %s is held by the session with pid %s; let it commit, or end it, and ask again with a fresh request id',
                      held.what, held.pid);
    ELSIF (SELECT f.activated_at <= p_asked.requested_at FROM reports.fence f WHERE f.scope = p_asked.scope) THEN
        RETURN 'not carried out before its deadline, although there was a leader: a row that it needs was held by another session, or there was too much to do; ask again with a fresh request id';
    END IF;
    SELECT h.id, h.cause, h.reason INTO held FROM reports.hold h
     WHERE h.queue IS NULL AND (h.scope IS NULL OR h.scope = p_asked.scope)
       AND h.since <= p_asked.deadline AND coalesce(h.lifted_at, 'infinity') >= p_asked.requested_at
     ORDER BY h.id DESC LIMIT 1;
    IF FOUND THEN
        RETURN format('not carried out before its deadline: hold %s stood (%s); ask again with a fresh request id',
                      held.id, CASE held.cause WHEN 'operator' THEN held.reason ELSE held.cause END);
    END IF;
    RETURN 'no leader carried it out before its deadline; ask again with a fresh request id';
END
$$;
COMMENT ON FUNCTION reports.why_expired(reports.request) IS 'What to tell of a request whose deadline has passed.';

-- Under a hold nobody leads, and the emergency that it was raised for is when work must be ended. So whoever
-- asks does that himself. It is no leader's write: a cancellation makes nothing outstanding and moves a job
-- under its row lock, as it might beside any leader; pause and resume are edits, which anybody may make.
-- Afterwards nothing is asked of the leader any more.
CREATE FUNCTION reports.carry_out_held(p_request uuid) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    r reports.request;
    answered record;
BEGIN
    SELECT * INTO r FROM reports.request q
     WHERE q.id = p_request AND q.state = 'pending' AND q.deadline >= clock_timestamp() FOR UPDATE SKIP LOCKED;
    IF NOT FOUND OR r.kind NOT IN ('pause', 'resume', 'cancel') OR reports.request_before(r) IS NOT NULL THEN
        RETURN;
    END IF;
    IF r.kind = 'cancel' THEN
        SELECT t.new_state, t.its_answer INTO answered FROM reports.carry_out_cancel(r, NULL) t;
    ELSE
        SELECT t.new_state, t.its_answer INTO answered FROM reports.carry_out_pause(r) t;
    END IF;
    UPDATE reports.request q SET state = answered.new_state, answer = answered.its_answer, answered_at = clock_timestamp()
     WHERE q.id = r.id AND answered.new_state IS NOT NULL;
END
$$;
COMMENT ON FUNCTION reports.carry_out_held(uuid) IS 'Carries out and answers a request that starts no work, while a hold stands; one that needs a locked row stays pending.';

CREATE FUNCTION reports.answer_request(p_scope text, p_incarnation bigint, p_generation bigint, p_owner uuid, p_request uuid,
                                       p_job uuid, OUT verdict text, OUT answer text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    r reports.request;
    new_state text;
    its_answer text;
    its_job uuid;
BEGIN
    IF NOT reports.fence_holds(p_scope, p_incarnation, p_generation, p_owner, 'answer_request') THEN
        verdict := 'fenced';
        RETURN;
    END IF;
    SELECT * INTO r FROM reports.request q WHERE q.id = p_request AND q.scope = p_scope AND q.state = 'pending' FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        verdict := 'skipped';
        RETURN;
    END IF;
    its_job := r.job_id;
    IF r.kind = 'handoff' THEN
        SELECT t.its_verdict, t.new_state, t.its_answer INTO verdict, new_state, its_answer
          FROM reports.carry_out_handoff(r, p_incarnation, p_generation) t;
        IF verdict IS NOT NULL THEN
            RETURN;
        END IF;
    ELSIF r.deadline < clock_timestamp() THEN
        new_state := 'expired';
        its_answer := reports.why_expired(r);
    ELSIF reports.request_before(r) IS NOT NULL THEN
        verdict := 'skipped';
        RETURN;
    ELSIF (r.kind IN ('trigger', 'retry') OR r.kind = 'backfill' AND reports.backfill_to_cancel(r.argument) IS NULL)
          AND reports.is_held(p_scope) THEN
        -- A hold stops what would start work, not what ends it.
        verdict := 'held';
        RETURN;
    ELSIF r.kind = 'trigger' THEN
        SELECT t.new_state, t.its_answer, t.its_job INTO new_state, its_answer, its_job
          FROM reports.carry_out_trigger(r, p_incarnation, p_generation, p_job) t;
    ELSIF r.kind IN ('pause', 'resume') THEN
        SELECT t.new_state, t.its_answer INTO new_state, its_answer FROM reports.carry_out_pause(r) t;
    ELSIF r.kind = 'breaker_close' THEN
        SELECT t.new_state, t.its_answer INTO new_state, its_answer FROM reports.carry_out_breaker_close(r) t;
    ELSIF r.kind = 'cancel' THEN
        SELECT t.new_state, t.its_answer INTO new_state, its_answer FROM reports.carry_out_cancel(r, p_generation) t;
    ELSIF r.kind = 'discard' THEN
        SELECT t.new_state, t.its_answer INTO new_state, its_answer
          FROM reports.carry_out_discard(r, p_incarnation, p_generation) t;
    ELSIF r.kind = 'backfill' THEN
        SELECT t.new_state, t.its_answer INTO new_state, its_answer
          FROM reports.carry_out_backfill(r, p_incarnation, p_generation) t;
    ELSE
        SELECT t.new_state, t.its_answer INTO new_state, its_answer FROM reports.carry_out_retry(r, p_generation) t;
    END IF;
    IF new_state IS NULL THEN
        verdict := 'skipped';
        RETURN;
    END IF;
    UPDATE reports.request q
       SET state = new_state, answer = its_answer, job_id = its_job, answered_at = clock_timestamp(), generation = p_generation
     WHERE q.id = r.id;
    verdict := 'ok';
    answer := its_answer;
END
$$;
COMMENT ON FUNCTION reports.answer_request(text, bigint, bigint, uuid, uuid, uuid) IS 'Carries out a request and answers it: ok (done, refused or expired), fenced, held, wait (a handoff that is going on), leave (drain and release: the successor is ready), or skipped (answered meanwhile, a row it needs is locked, or an older request comes first).';

-- What makes answer_request fail says so in its answer: "nobody carried it out" would hide the reason.
CREATE FUNCTION reports.refuse_request(p_scope text, p_incarnation bigint, p_generation bigint, p_owner uuid, p_request uuid,
                                       p_why text) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT reports.fence_holds(p_scope, p_incarnation, p_generation, p_owner, 'refuse_request') THEN
        RETURN 'fenced';
    END IF;
    -- One that somebody holds is tried again.
    UPDATE reports.request q
       SET state = 'refused', answer = left(p_why, 1000), answered_at = clock_timestamp(), generation = p_generation
     WHERE q.id = ANY (ARRAY(SELECT r.id FROM reports.request r
                              WHERE r.id = p_request AND r.scope = p_scope AND r.state = 'pending' FOR UPDATE SKIP LOCKED));
    RETURN 'ok';
END
$$;
COMMENT ON FUNCTION reports.refuse_request(text, bigint, bigint, uuid, uuid, text) IS 'Refuses a request that cannot be carried out because the attempt itself fails.';

GRANT EXECUTE ON FUNCTION
    reports.refuse_request(text, bigint, bigint, uuid, uuid, text),
    reports.pending_requests(text, integer),
    reports.answer_request(text, bigint, bigint, uuid, uuid, uuid)
TO report_scheduler;
GRANT EXECUTE ON FUNCTION reports.ask(uuid, text, text, text, interval, timestamptz) TO report_operator, report_scheduler;

RESET ROLE;
