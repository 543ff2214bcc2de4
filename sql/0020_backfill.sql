-- Backfill: firings of a past span that never had an occurrence are run, by key, because somebody asks. Which
-- firings a rule names only the code that plans can tell, so that reportctl enumerates them, by the version in
-- force and with its own time zone data, and they come with the request; what becomes of each is decided in the
-- one protected write that answers it. A key that is taken makes nothing (I3). Gaps stay as they were recorded.

SET ROLE report_owner;

CREATE TABLE reports.backfill_firing (
    request uuid NOT NULL,
    occurrence_key text NOT NULL CHECK (octet_length(occurrence_key) BETWEEN 1 AND 127),
    version integer NOT NULL,
    scheduled_for timestamptz NOT NULL,
    nominal_local timestamp NOT NULL,
    offset_s integer NOT NULL,
    business_date date NOT NULL,
    window_start timestamptz,
    window_end timestamptz NOT NULL,
    became text CHECK (became IN ('made', 'there', 'to_come')),
    job_id uuid,
    PRIMARY KEY (request, occurrence_key)
);
COMMENT ON TABLE reports.backfill_firing IS 'A firing that a request of the kind backfill asks for; goes with the request.';
COMMENT ON COLUMN reports.backfill_firing.request IS 'The request.';
COMMENT ON COLUMN reports.backfill_firing.occurrence_key IS 'Its key, in the form of the schedule''s keys.';
COMMENT ON COLUMN reports.backfill_firing.version IS 'The version of the schedule whose rule names it: the one in force when it was asked for.';
COMMENT ON COLUMN reports.backfill_firing.scheduled_for IS 'When it was due by that rule.';
COMMENT ON COLUMN reports.backfill_firing.nominal_local IS 'The nominal local time.';
COMMENT ON COLUMN reports.backfill_firing.offset_s IS 'Offset from UTC at that time, in seconds.';
COMMENT ON COLUMN reports.backfill_firing.business_date IS 'The date the report is about.';
COMMENT ON COLUMN reports.backfill_firing.window_start IS 'Start of the data interval: the firing before; NULL: there is none.';
COMMENT ON COLUMN reports.backfill_firing.window_end IS 'End (exclusive) of the data interval.';
COMMENT ON COLUMN reports.backfill_firing.became IS 'made; there: an occurrence had the key; to_come: it is the leader''s to plan. NULL: not answered, or refused.';
COMMENT ON COLUMN reports.backfill_firing.job_id IS 'The job that was made, or that was there.';

-- As the leader makes ids (uuid_time_ordered in common/base/ident.c): its one id is not enough for many jobs.
CREATE FUNCTION reports.job_id_make(p_at timestamptz) RETURNS uuid
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
    SELECT (lpad(to_hex(floor(extract(epoch FROM p_at) * 1000)::bigint), 12, '0') || '7'
            || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid
$$;
COMMENT ON FUNCTION reports.job_id_make(timestamptz) IS 'A time-ordered id (UUIDv7) for a job.';

-- NULL: firings are asked for.
CREATE FUNCTION reports.backfill_to_cancel(p_argument text) RETURNS uuid
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN p_argument ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN p_argument::uuid END
$$;
COMMENT ON FUNCTION reports.backfill_to_cancel(text) IS 'The backfill whose open jobs a request of the kind backfill is to cancel; NULL: it asks for firings.';

-- Called by check_request through ask, in the transaction that has written the firings.
CREATE FUNCTION reports.check_backfill(p_request uuid, p_subject text, p_argument text) RETURNS void
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    meant uuid := reports.backfill_to_cancel(p_argument);
BEGIN
    IF meant IS NOT NULL THEN
        IF NOT EXISTS (SELECT FROM reports.request r WHERE r.id = meant AND r.kind = 'backfill' AND r.subject = p_subject
                          AND reports.backfill_to_cancel(r.argument) IS NULL) THEN
            RAISE EXCEPTION 'request % is no backfill of schedule "%"', meant, p_subject
                USING ERRCODE = 'invalid_parameter_value', HINT = 'reportctl requests lists them.';
        END IF;
    ELSIF NOT EXISTS (SELECT FROM reports.backfill_firing f WHERE f.request = p_request) THEN
        RAISE EXCEPTION 'a backfill is asked for with its firings, which only the code that plans can tell'
            USING ERRCODE = 'feature_not_supported', HINT = 'Use reportctl backfill.';
    END IF;
END
$$;
COMMENT ON FUNCTION reports.check_backfill(uuid, text, text) IS 'Refuses a backfill that comes without firings, or that is to cancel what is none.';

-- p_firings: [[key, scheduled_for, nominal_local, offset_s, business_date, window_start, window_end], ...]
CREATE FUNCTION reports.ask_backfill(p_request uuid, p_schedule text, p_argument text, p_timeout interval, p_version integer,
                                     p_beside boolean, p_firings jsonb,
                                     OUT state text, OUT answer text, OUT its_scope text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
    v reports.schedule_version;
    form text;
    wrong text;
BEGIN
    -- The same id may be on its way twice: only the first of them brings the firings.
    PERFORM pg_advisory_xact_lock(hashtextextended('reports.backfill:' || p_request, 0));
    IF reports.backfill_to_cancel(p_argument) IS NULL AND NOT EXISTS (SELECT FROM reports.request r WHERE r.id = p_request) THEN
        IF jsonb_array_length(p_firings) NOT BETWEEN 1 AND 1000 THEN
            RAISE EXCEPTION 'a backfill has 1 to 1000 firings, not %', jsonb_array_length(p_firings)
                USING ERRCODE = 'invalid_parameter_value', HINT = 'Ask for a longer span in parts.';
        END IF;
        SELECT * INTO v FROM reports.schedule_version w WHERE w.schedule = p_schedule AND w.version = p_version;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'schedule "%" has no version %', p_schedule, coalesce(p_version::text, 'NULL')
                USING ERRCODE = 'no_data_found', HINT = 'reportctl schedules lists them.';
        END IF;
        form := (SELECT p.key_form FROM reports.schedule_progress p WHERE p.schedule = p_schedule);
        IF form IS NULL THEN
            RAISE EXCEPTION 'no leader has taken schedule "%" in, so that the form of its keys is not fixed', p_schedule
                USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Ask again when reportctl schedule shows its next firing.';
        END IF;
        IF v.overlap <> 'allow' AND p_beside IS NOT TRUE THEN
            RAISE EXCEPTION 'schedule "%" has overlap %, and jobs of a backfill run beside each other and beside its own', p_schedule, quote_literal(v.overlap)
                USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'If its report bears that, say --beside (p_beside).';
        END IF;
        INSERT INTO reports.backfill_firing
            (request, occurrence_key, version, scheduled_for, nominal_local, offset_s, business_date, window_start, window_end)
        SELECT p_request, f ->> 0, p_version, (f ->> 1)::timestamptz, (f ->> 2)::timestamp, (f ->> 3)::integer, (f ->> 4)::date,
               (f ->> 5)::timestamptz, (f ->> 6)::timestamptz
          FROM jsonb_array_elements(p_firings) AS f;
        -- Under a misspelt key a firing would come twice (I3).
        SELECT f.occurrence_key INTO wrong FROM reports.backfill_firing f
         WHERE f.request = p_request
           AND f.occurrence_key <> ALL (CASE WHEN v.kind = 'interval'
                                             THEN reports.interval_keys(v, form, f.scheduled_for - make_interval(secs => v.jitter_s))
                                             ELSE coalesce(reports.local_keys(v, form, f.nominal_local),
                                                           reports.local_keys(v, form, f.nominal_local, true)) END)
         ORDER BY f.occurrence_key LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'key % is not that of a firing of version % of "%" at its time', quote_literal(wrong), p_version, p_schedule
                USING ERRCODE = 'invalid_parameter_value', HINT = 'Use reportctl backfill, of the same release as the database.';
        END IF;
    END IF;
    SELECT a.state, a.answer, a.its_scope INTO state, answer, its_scope
      FROM reports.ask(p_request, 'backfill', p_schedule, p_argument, p_timeout) a;
END
$$;
COMMENT ON FUNCTION reports.ask_backfill(uuid, text, text, interval, integer, boolean, jsonb) IS 'Asks for firings of a past span, as reportctl backfill enumerates them: at most 1000. Repeating a request id returns how the first request stands. p_beside: its jobs may run beside those of a schedule that does not allow overlap.';

-- All of its jobs, or none of them now: NULL while another session holds one.
CREATE FUNCTION reports.cancel_backfill(p_asked reports.request, p_generation bigint, OUT new_state text, OUT its_answer text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
    meant uuid := reports.backfill_to_cancel(p_asked.argument);
    wanted uuid[];
    locked uuid[];
    ended integer;
    told integer;
BEGIN
    -- One that nobody has answered yet is not carried out any more.
    UPDATE reports.request r
       SET state = 'refused', answer = 'cancelled by ' || p_asked.requested_by, answered_at = clock_timestamp(), generation = p_generation
     WHERE r.id = ANY (ARRAY(SELECT q.id FROM reports.request q WHERE q.id = meant AND q.state = 'pending' FOR UPDATE SKIP LOCKED));
    IF EXISTS (SELECT FROM reports.request r WHERE r.id = meant AND r.state = 'pending') THEN
        RETURN;
    END IF;
    wanted := ARRAY(SELECT j.id FROM reports.backfill_firing f JOIN reports.job j ON j.id = f.job_id
                     WHERE f.request = meant AND f.became = 'made' AND j.finished_at IS NULL);
    locked := ARRAY(SELECT j.id FROM reports.job j WHERE j.id = ANY (wanted) ORDER BY j.id FOR UPDATE SKIP LOCKED);
    IF cardinality(locked) < cardinality(wanted) THEN
        RETURN;
    END IF;
    -- Whatever ended between the two statements stays as it ended.
    WITH told AS (
        UPDATE reports.job j
           SET cancel_requested = true, error = concat('backfill cancelled by ', p_asked.requested_by)
         WHERE j.id = ANY (locked) AND j.state::text = 'running' RETURNING j.id
    ), ended AS (
        UPDATE reports.job j
           SET state = 'cancelled', waits_for = NULL, finished_at = clock_timestamp(),
               error = concat('backfill cancelled by ', p_asked.requested_by)
         WHERE j.id = ANY (locked) AND j.state::text <> 'running' AND j.finished_at IS NULL RETURNING j.id
    )
    SELECT (SELECT count(*) FROM told), (SELECT count(*) FROM ended) INTO told, ended;
    new_state := 'done';
    its_answer := format('backfill %s of "%s": %s job(s) cancelled, %s running told to stop', meant, p_asked.subject, ended, told);
END
$$;
COMMENT ON FUNCTION reports.cancel_backfill(reports.request, bigint) IS 'Cancels the open jobs that a backfill made.';

-- Jobs of a backfill come after all others: of the lowest priority, and in the catch-up budget of the scope. The
-- overlap policy is for the schedule's own firings: by it a backfill would suppress, replace or delay them.
CREATE FUNCTION reports.carry_out_backfill(p_asked reports.request, p_incarnation bigint, p_generation bigint,
                                           OUT new_state text, OUT its_answer text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
    v reports.schedule_version;
    named integer;
    its_now timestamptz := clock_timestamp();
    planned_to timestamptz;
    counts record;
BEGIN
    IF reports.backfill_to_cancel(p_asked.argument) IS NOT NULL THEN
        SELECT c.new_state, c.its_answer INTO new_state, its_answer FROM reports.cancel_backfill(p_asked, p_generation) c;
        RETURN;
    END IF;
    -- The progress row orders this and plan_batch: no key is both the leader's to plan and made here.
    IF NOT reports.progress_taken(p_asked.subject) THEN
        RETURN;
    END IF;
    SELECT * INTO v FROM reports.schedule_version w
     WHERE w.schedule = p_asked.subject AND w.effective_from <= its_now ORDER BY w.version DESC LIMIT 1;
    named := (SELECT min(f.version) FROM reports.backfill_firing f WHERE f.request = p_asked.id);
    new_state := 'refused';
    IF v.version IS NULL OR v.ended THEN
        its_answer := format('schedule "%s" does not exist', p_asked.subject);
        RETURN;
    ELSIF v.version <> named THEN
        its_answer := format('schedule "%s" was edited: its version %s is in force, and the firings are those of version %s; ask again with a fresh request id',
                             v.schedule, v.version, named);
        RETURN;
    ELSIF NOT EXISTS (SELECT FROM reports.queue q WHERE q.name = v.queue) THEN
        its_answer := format('queue "%s" of schedule "%s" does not exist any more: insert it again, and have a worker serve it', v.queue, v.schedule);
        RETURN;
    END IF;
    planned_to := least((SELECT p.next_fire_at FROM reports.schedule_progress p WHERE p.schedule = v.schedule), its_now);
    WITH firing AS MATERIALIZED (
        SELECT f.*, reports.job_id_make(its_now) AS new_job,
               -- The oldest first, and yet nothing that has waited for years.
               its_now - row_number() OVER (ORDER BY f.scheduled_for DESC) * interval '1 microsecond' AS run_after
          FROM reports.backfill_firing f WHERE f.request = p_asked.id
    ), made AS (
        INSERT INTO reports.occurrence
            (schedule, occurrence_key, scope, job_id, scheduled_for, nominal_local, offset_s, business_date,
             window_start, window_end, cause, version, incarnation, generation, request_id)
        SELECT v.schedule, f.occurrence_key, v.scope, f.new_job, f.scheduled_for, f.nominal_local, f.offset_s, f.business_date,
               f.window_start, f.window_end, 'backfill', v.version, p_incarnation, p_generation, p_asked.id
          FROM firing f WHERE f.scheduled_for < planned_to ORDER BY f.scheduled_for
        ON CONFLICT (schedule, occurrence_key) DO NOTHING
        RETURNING occurrence_key, job_id
    ), job AS (
        INSERT INTO reports.job
            (id, schedule, occurrence_key, scope, report, queue, priority, state, waits_for, overlap, catch_up, run_after,
             dispatch_number, max_attempts, retry_base, retry_cap, timeout)
        SELECT f.new_job, v.schedule, f.occurrence_key, v.scope, v.report, v.queue, -1000, 'waiting', 'capacity', 'allow', true,
               f.run_after, 0, v.max_attempts, v.retry_base, v.retry_cap, v.timeout
          FROM firing f WHERE (f.new_job IN (SELECT m.job_id FROM made m)) IS TRUE
    ), marked AS (
        UPDATE reports.backfill_firing f
           SET became = CASE WHEN g.new_job IN (SELECT m.job_id FROM made m) THEN 'made'
                             WHEN g.scheduled_for < planned_to OR o.job_id IS NOT NULL THEN 'there' ELSE 'to_come' END,
               job_id = CASE WHEN g.new_job IN (SELECT m.job_id FROM made m) THEN g.new_job ELSE o.job_id END
          FROM firing g
          LEFT JOIN LATERAL (SELECT x.job_id FROM reports.occurrence x
                              WHERE x.schedule = v.schedule AND x.occurrence_key = g.occurrence_key OFFSET 0) o ON true
         WHERE f.request = p_asked.id AND f.occurrence_key = g.occurrence_key
        RETURNING f.occurrence_key, f.became
    )
    SELECT count(*) FILTER (WHERE m.became = 'made') AS made, count(*) FILTER (WHERE m.became = 'there') AS there,
           count(*) FILTER (WHERE m.became = 'to_come') AS to_come,
           (array_agg(m.occurrence_key ORDER BY m.occurrence_key) FILTER (WHERE m.became = 'there'))[1:10] AS kept
      INTO counts FROM marked m;
    PERFORM reports.release_waiting(v.scope, p_generation, 1000);
    new_state := 'done';
    its_answer := format('backfill of "%s": %s made', v.schedule, counts.made)
        || CASE WHEN counts.there > 0 THEN format(', %s there already (%s%s)', counts.there, array_to_string(counts.kept, ' '),
                                                  CASE WHEN counts.there > 10 THEN ' ...' END) ELSE '' END
        || CASE WHEN counts.to_come > 0 THEN format(', %s left to the leader, which has not planned so far', counts.to_come) ELSE '' END;
END
$$;
COMMENT ON FUNCTION reports.carry_out_backfill(reports.request, bigint, bigint) IS 'Makes the occurrences and jobs of a backfill whose keys are free, or cancels those of an earlier one.';

-- Rows of requests that are about to be forgotten: they go first, some in each round.
CREATE FUNCTION reports.prune_backfills(p_keep interval, p_limit integer) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
    DELETE FROM reports.backfill_firing f
     WHERE f.ctid = ANY (ARRAY(
           SELECT x.place
             FROM (SELECT r.id FROM reports.request r
                    WHERE r.state <> 'pending' AND r.answered_at < (SELECT clock_timestamp() - p_keep)
                    ORDER BY r.answered_at LIMIT p_limit) r
            CROSS JOIN LATERAL (SELECT b.ctid AS place FROM reports.backfill_firing b WHERE b.request = r.id LIMIT p_limit) x
            LIMIT p_limit))
$$;
COMMENT ON FUNCTION reports.prune_backfills(interval, integer) IS 'Forgets firings of backfills whose requests are the next to be forgotten.';

GRANT EXECUTE ON FUNCTION reports.ask_backfill(uuid, text, text, interval, integer, boolean, jsonb) TO report_operator, report_scheduler;

RESET ROLE;
