-- What the leader does with jobs that are held back or abandoned: release and reap. Each call is one
-- protected write.

SET ROLE report_owner;

-- Wait before the next attempt: doubles from base to cap, then anything from 75 to 125 per cent of it, but
-- never more than the cap, so that jobs which failed together do not come back together. Spread below
-- the cap, not cut off at it: cut off, half of them would wait for exactly the cap.
CREATE FUNCTION reports.retry_delay(p_base interval, p_cap interval, p_attempt integer) RETURNS interval
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
    -- In seconds, since an interval of days times 2^30 is out of range.
    SELECT make_interval(secs => 0.75 * w.wait_s + (least(1.25 * w.wait_s, w.cap_s) - 0.75 * w.wait_s) * random())
      FROM (SELECT least(c.base_s * power(2, least(greatest(p_attempt - 1, 0), 30)), c.cap_s) AS wait_s, c.cap_s
              FROM (SELECT extract(epoch FROM p_base)::float8 AS base_s, extract(epoch FROM p_cap)::float8 AS cap_s) c) w
$$;
COMMENT ON FUNCTION reports.retry_delay(interval, interval, integer) IS 'Backoff with jitter after the given attempt, never longer than the cap.';

-- One round of care for jobs: sign of life; retries whose wait is over are queued and dispatched;
-- claims that lapsed longer than the grace ago are closed as lost. Rows another session holds are
-- skipped, and the next round sees them again (I12).
CREATE FUNCTION reports.tend(p_scope text, p_incarnation bigint, p_generation bigint, p_owner uuid, p_limit integer,
                             OUT verdict text, OUT released integer, OUT reaped integer, OUT held_back bigint,
                             OUT running bigint, OUT next_release timestamptz, OUT database_now timestamptz)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    grace interval;
    may_reap boolean;
BEGIN
    database_now := clock_timestamp();
    IF NOT reports.fence_holds(p_scope, p_incarnation, p_generation, p_owner, 'tend') THEN
        verdict := 'fenced';
        RETURN;
    END IF;
    PERFORM reports.beat(p_scope);
    verdict := 'ok';
    released := 0;
    reaped := 0;
    IF NOT reports.is_held(p_scope) THEN
        WITH ready AS MATERIALIZED (
            SELECT id FROM reports.job
             WHERE scope = p_scope AND state = 'retry_wait' AND run_after <= (SELECT clock_timestamp())
             ORDER BY run_after LIMIT p_limit FOR UPDATE SKIP LOCKED
        ), queued AS (
            -- By ANY (ARRAY (...)): joined, a planner without statistics reads the whole table.
            UPDATE reports.job j SET state = 'queued', dispatch_number = j.dispatch_number + 1
             WHERE j.id = ANY (ARRAY(SELECT r.id FROM ready r)) AND j.state::text = 'retry_wait'
            RETURNING j.id, j.dispatch_number, j.schedule, j.occurrence_key, j.queue
        ), message AS (
            INSERT INTO reports.outbox (scope, job_id, dispatch_number, schedule, occurrence_key, queue, scheduled_for, generation)
            SELECT p_scope, q.id, q.dispatch_number, q.schedule, q.occurrence_key, q.queue, o.scheduled_for, p_generation
              FROM queued q JOIN reports.occurrence o ON o.schedule = q.schedule AND o.occurrence_key = q.occurrence_key
        )
        SELECT count(*) INTO released FROM queued;
    END IF;
    SELECT i.reap_grace, clock_timestamp() >= p.reap_not_before INTO grace, may_reap
      FROM reports.installation i, reports.fence_pulse p WHERE p.scope = p_scope;
    IF may_reap THEN
        WITH lapsed AS MATERIALIZED (
            SELECT id, attempt, attempt_token, worker, claimed_at FROM reports.job
             WHERE state = 'running' AND scope = p_scope AND lease_until + grace < clock_timestamp()
             ORDER BY id LIMIT p_limit FOR UPDATE SKIP LOCKED
        ), closed AS (
            UPDATE reports.job j
               SET state = CASE WHEN j.cancel_requested THEN 'cancelled'
                                WHEN j.attempt - j.handed_back >= j.max_attempts THEN 'failed'
                                ELSE 'retry_wait' END::reports.job_state,
                   finished_at = CASE WHEN j.cancel_requested OR j.attempt - j.handed_back >= j.max_attempts
                                      THEN clock_timestamp() END,
                   run_after = clock_timestamp() + reports.retry_delay(j.retry_base, j.retry_cap, j.attempt - j.handed_back),
                   attempt_token = NULL, worker = NULL, lease_until = NULL,
                   error = 'the worker''s claim lapsed: it died, hung, or lost the database'
             WHERE j.id = ANY (ARRAY(SELECT l.id FROM lapsed l)) AND j.state::text = 'running'
            RETURNING j.id
        ), written AS (
            INSERT INTO reports.job_attempt (job_id, attempt, token, worker, outcome, started_at, error)
            SELECT l.id, l.attempt, l.attempt_token, l.worker, 'lost', l.claimed_at,
                   'the worker''s claim lapsed: it died, hung, or lost the database'
              FROM lapsed l JOIN closed c USING (id)
        )
        SELECT count(*) INTO reaped FROM closed;
        -- SKIP LOCKED: a heartbeat locks its worker row first and job rows then, the other way round.
        UPDATE reports.worker w SET state = 'dead', stopped_at = clock_timestamp()
         WHERE w.id = ANY (ARRAY(
                SELECT u.id FROM reports.worker u, reports.installation i
                 WHERE u.state IN ('alive', 'draining')
                   AND u.heartbeat_at + i.claim_lease + i.reap_grace < clock_timestamp()
                   FOR UPDATE OF u SKIP LOCKED));
    END IF;
    SELECT count(*), min(j.run_after) INTO held_back, next_release
      FROM (SELECT run_after FROM reports.job WHERE scope = p_scope AND state IN ('waiting', 'retry_wait')
             ORDER BY run_after LIMIT 1000) j;
    SELECT count(*) INTO running FROM reports.job WHERE state = 'running' AND scope = p_scope;
    database_now := clock_timestamp();
END
$$;
COMMENT ON FUNCTION reports.tend(text, bigint, bigint, uuid, integer) IS 'Sign of life, release of retries, reaping of lapsed claims; says how much is held back.';

GRANT EXECUTE ON FUNCTION
    reports.tend(text, bigint, bigint, uuid, integer)
TO report_scheduler;

RESET ROLE;
