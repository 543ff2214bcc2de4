-- Requests: what operators ask and the leader carries out and answers in the same fenced transaction.

SET ROLE report_owner;

CREATE FUNCTION reports.pending_requests(p_scope text, p_limit integer)
RETURNS TABLE (id uuid, kind text, schedule text, argument text, expired boolean, database_now timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT r.id, r.kind, r.schedule, r.argument, r.deadline < clock_timestamp(), clock_timestamp()
      FROM reports.request r WHERE r.scope = p_scope AND r.state = 'pending'
     ORDER BY r.requested_at LIMIT p_limit
$$;
COMMENT ON FUNCTION reports.pending_requests(text, integer) IS 'Requests the leader has not answered, oldest first.';

CREATE FUNCTION reports.expire_request(p_scope text, p_incarnation bigint, p_generation bigint, p_owner uuid, p_request uuid)
RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT reports.fence_holds(p_scope, p_incarnation, p_generation, p_owner, 'expire_request') THEN
        RETURN 'fenced';
    END IF;
    UPDATE reports.request
       SET state = 'expired', answer = 'no leader carried it out before its deadline', answered_at = clock_timestamp(),
           generation = p_generation
     WHERE id = p_request AND scope = p_scope AND state = 'pending' AND deadline < clock_timestamp();
    RETURN 'ok';
END
$$;
COMMENT ON FUNCTION reports.expire_request(text, bigint, bigint, uuid, uuid) IS 'Closes a request whose deadline has passed.';

-- A manual firing. The occurrence, its job, the message and the answer commit together; a key that
-- exists already is answered with the job that is there (I3).
CREATE FUNCTION reports.answer_trigger(p_scope text, p_incarnation bigint, p_generation bigint, p_owner uuid, p_request uuid,
                                       p_job uuid, OUT verdict text, OUT answer text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    r reports.request;
    v reports.schedule_version;
    key text;
    existing uuid;
    fired_at timestamptz := clock_timestamp();
BEGIN
    IF NOT reports.fence_holds(p_scope, p_incarnation, p_generation, p_owner, 'answer_trigger') THEN
        verdict := 'fenced';
        RETURN;
    END IF;
    IF reports.is_held(p_scope) THEN
        verdict := 'held';
        RETURN;
    END IF;
    verdict := 'ok';
    SELECT * INTO r FROM reports.request WHERE id = p_request AND scope = p_scope AND state = 'pending' FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        verdict := 'skipped';
        RETURN;
    END IF;
    IF r.deadline < clock_timestamp() THEN
        PERFORM reports.expire_request(p_scope, p_incarnation, p_generation, p_owner, p_request);
        verdict := 'skipped';
        RETURN;
    END IF;
    SELECT * INTO v FROM reports.schedule_version WHERE schedule = r.schedule ORDER BY version DESC LIMIT 1;
    IF NOT FOUND OR v.ended THEN
        answer := format('schedule "%s" does not exist', r.schedule);
        UPDATE reports.request SET state = 'refused', answer = answer_trigger.answer, answered_at = clock_timestamp(),
               generation = p_generation WHERE id = r.id;
        RETURN;
    END IF;
    key := coalesce(r.argument, r.id::text);
    -- The business date is the key's own when it names one, otherwise today in the schedule's zone.
    INSERT INTO reports.occurrence
        (schedule, occurrence_key, scope, job_id, scheduled_for, nominal_local, business_date, window_end, cause,
         version, incarnation, generation, request_id)
    VALUES (r.schedule, key, p_scope, p_job, fired_at, fired_at AT TIME ZONE v.time_zone,
            reports.date_of_key(key, (fired_at AT TIME ZONE v.time_zone)::date), fired_at,
            'manual', v.version, p_incarnation, p_generation, r.id)
    ON CONFLICT (schedule, occurrence_key) DO NOTHING
    RETURNING job_id INTO existing;
    IF existing IS NULL THEN
        SELECT o.job_id INTO existing FROM reports.occurrence o WHERE o.schedule = r.schedule AND o.occurrence_key = key;
        answer := format('occurrence %s:%s was there already', r.schedule, key);
    ELSE
        INSERT INTO reports.job
            (id, schedule, occurrence_key, scope, report, queue, priority, state, run_after, max_attempts, retry_base,
             retry_cap, timeout)
        VALUES (p_job, r.schedule, key, p_scope, v.report, v.queue, v.priority, 'queued', fired_at, v.max_attempts,
                v.retry_base, v.retry_cap, v.timeout);
        INSERT INTO reports.outbox (scope, job_id, dispatch_number, schedule, occurrence_key, queue, scheduled_for, generation)
        VALUES (p_scope, p_job, 1, r.schedule, key, v.queue, fired_at, p_generation);
        answer := format('occurrence %s:%s made', r.schedule, key);
    END IF;
    UPDATE reports.request SET state = 'done', answer = answer_trigger.answer, job_id = existing,
           answered_at = clock_timestamp(), generation = p_generation WHERE id = r.id;
END
$$;
COMMENT ON FUNCTION reports.answer_trigger(text, bigint, bigint, uuid, uuid, uuid) IS 'Carries out a trigger request and answers it.';

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

-- A mistyped key would make a second report of a date, under a name that blocks nothing.
CREATE FUNCTION reports.check_key(p_schedule text, p_key text) RETURNS void
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    form text;
    tail text := '(Z|[+-]\d\d:\d\d)?$';
BEGIN
    IF p_key !~ '^[A-Za-z0-9][A-Za-z0-9_.:+-]{0,126}$' THEN
        RAISE EXCEPTION 'key % has characters that cannot stand in one, or is too long', quote_literal(p_key)
            USING ERRCODE = 'check_violation', HINT = 'A key is 1 to 127 of letters, digits, _ . : + -';
    END IF;
    IF p_key !~ '^\d{4}-\d' THEN
        RETURN;
    END IF;
    SELECT p.key_form INTO form FROM reports.schedule_progress p WHERE p.schedule = p_schedule;
    IF NOT coalesce(CASE form WHEN 'date' THEN p_key ~ ('^\d{4}-\d\d-\d\d' || tail)
                              WHEN 'minute' THEN p_key ~ ('^\d{4}-\d\d-\d\dT\d\d:\d\d' || tail)
                              WHEN 'second' THEN p_key ~ ('^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d' || tail) END,
                    p_key ~ ('^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?)?' || tail)) THEN
        RAISE EXCEPTION 'key % begins like a date but is not the key of a firing of "%"', quote_literal(p_key), p_schedule
            USING ERRCODE = 'invalid_parameter_value',
                  HINT = CASE form WHEN 'minute' THEN 'Its keys look like 2030-04-12T06:00'
                                   WHEN 'second' THEN 'Its keys look like 2030-04-12T06:00:30'
                                   ELSE 'Its keys look like 2030-04-12' END
                         || '; a key of your own must not begin with a date.';
    END IF;
    BEGIN
        PERFORM substring(p_key FROM '^[0-9T:-]{10,19}')::timestamp;
    EXCEPTION WHEN OTHERS THEN
        RAISE EXCEPTION 'key % names a date or time that does not exist', quote_literal(p_key)
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Correct the date.';
    END;
END
$$;
COMMENT ON FUNCTION reports.check_key(text, text) IS 'Refuses a manual key that cannot be one, or that is nearly but not quite a key of the schedule''s own.';

-- Asked by operators. Repeating a request id returns the first request.
CREATE FUNCTION reports.request_trigger(p_request uuid, p_schedule text, p_key text, p_timeout interval,
                                        OUT state text, OUT answer text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    its_scope text;
    r reports.request;
BEGIN
    SELECT * INTO r FROM reports.request WHERE id = p_request;
    IF NOT FOUND THEN
        SELECT s.scope INTO its_scope FROM reports.schedule s WHERE s.name = p_schedule;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'schedule "%" does not exist', p_schedule
                USING ERRCODE = 'no_data_found', HINT = 'reportctl schedules lists them.';
        END IF;
        PERFORM reports.check_key(p_schedule, p_key);
        -- The same id may be on its way twice at once: the second waits here and answers like the first.
        INSERT INTO reports.request (id, kind, scope, schedule, argument, deadline)
        VALUES (p_request, 'trigger', its_scope, p_schedule, p_key, clock_timestamp() + p_timeout)
        ON CONFLICT (id) DO NOTHING;
        IF FOUND THEN
            PERFORM pg_notify('report_request', its_scope);
            state := 'pending';
            RETURN;
        END IF;
        SELECT * INTO r FROM reports.request WHERE id = p_request;
    END IF;
    IF r.kind <> 'trigger' OR r.schedule IS DISTINCT FROM p_schedule OR r.argument IS DISTINCT FROM p_key THEN
        RAISE EXCEPTION 'request id % was used for something else', p_request
            USING ERRCODE = 'unique_violation', HINT = 'Choose a fresh request id.';
    END IF;
    state := r.state;
    answer := r.answer;
END
$$;
COMMENT ON FUNCTION reports.request_trigger(uuid, text, text, interval) IS 'Asks the leader for a manual firing; NULL key: the request id becomes the key.';

GRANT EXECUTE ON FUNCTION
    reports.pending_requests(text, integer),
    reports.expire_request(text, bigint, bigint, uuid, uuid),
    reports.answer_trigger(text, bigint, bigint, uuid, uuid, uuid)
TO report_scheduler;
GRANT EXECUTE ON FUNCTION reports.request_trigger(uuid, text, text, interval) TO report_operator;

RESET ROLE;
