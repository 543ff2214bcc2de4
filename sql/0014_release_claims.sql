-- Crash-fast release of a killed worker's claims (docs/operations.md, "A process died").

SET ROLE report_owner;

-- For `report-worker --release-claims`, which has proved that the process and all programs it started are gone
-- (I11), and for the next worker that finds what it left. The mark comes first: a claim holds the incarnation FOR
-- SHARE, so one that still runs in the server is waited for and then seen, and one that comes later is refused.
-- The same goes for what the dead process had sent: an outcome that gets its row first counts, one that comes later
-- is lost. Rows that another session holds are not waited for (I12): left says how many, call again; in the end the
-- leader reaps them.
--
-- The attempt counts and is `lost`, as if the claim had lapsed. What differs is the wait: claims of a worker that
-- was killed run again at once, queued as before, by NOTIFY to the workers, since neither overlap nor capacity changes
-- between running and queued. A job that has lost a worker before may be what kills them: it waits its backoff.
-- Of jobs that ran beside one another when their schedule began to forbid overlap the leader releases one by one.
CREATE FUNCTION reports.release_claims(p_worker uuid, OUT verdict text, OUT released integer, OUT remaining integer)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
    why constant text := 'the worker was killed, or crashed';
    scopes text[];
    its_scope text;
    again boolean;
BEGIN
    UPDATE reports.worker w SET state = 'dead', stopped_at = clock_timestamp()
     WHERE w.id = p_worker AND w.state IN ('alive', 'draining');
    verdict := CASE WHEN FOUND THEN 'released'
                    WHEN EXISTS (SELECT FROM reports.worker w WHERE w.id = p_worker) THEN 'ended'
                    ELSE 'unknown' END;
    WITH found AS MATERIALIZED (
        SELECT j.id, j.attempt, j.attempt_token, j.claimed_at,
               EXISTS (SELECT FROM reports.job_attempt a WHERE a.job_id = j.id AND a.outcome = 'lost') AS was_lost,
               j.overlap <> 'allow' AND EXISTS (
                   SELECT FROM reports.job o
                    WHERE o.schedule = j.schedule AND o.overlap <> 'allow' AND o.id <> j.id AND o.waits_for IS DISTINCT FROM 'overlap'
                      AND o.state IN ('waiting', 'queued', 'running', 'retry_wait', 'quarantined')) AS in_turn
          FROM reports.job j
         WHERE j.worker = p_worker AND j.state = 'running'
         ORDER BY j.id FOR UPDATE OF j SKIP LOCKED
    ), held AS (
        SELECT f.*, CASE WHEN f.was_lost OR f.in_turn THEN 'retry_wait' ELSE 'queued' END::reports.job_state AS again FROM found f
    ), closed AS (
        UPDATE reports.job j
           SET state = reports.state_when_lost(j, h.again),
               finished_at = CASE WHEN reports.state_when_lost(j, h.again) <> h.again THEN clock_timestamp() END,
               run_after = clock_timestamp() + CASE WHEN h.was_lost
                                                    THEN reports.retry_delay(j.retry_base, j.retry_cap, j.attempt - j.handed_back)
                                                    ELSE interval '0' END,
               attempt_token = NULL, worker = NULL, lease_until = NULL, error = why
          FROM held h
         WHERE j.id = h.id AND j.state::text = 'running'
        RETURNING j.id, j.state, j.scope
    ), written AS (
        INSERT INTO reports.job_attempt (job_id, attempt, token, worker, outcome, started_at, error)
        SELECT h.id, h.attempt, h.attempt_token, p_worker, 'lost', h.claimed_at, why FROM held h JOIN closed c USING (id)
    )
    SELECT count(*), array_agg(DISTINCT c.scope), coalesce(bool_or(c.state = 'queued'), false)
      INTO released, scopes, again FROM closed c;
    PERFORM reports.release_deliveries(p_worker);
    SELECT count(*) INTO remaining FROM reports.job j WHERE j.worker = p_worker AND j.state = 'running';
    IF again THEN
        NOTIFY report_released;
    END IF;
    -- The leader: what waited for these, or for their place, may go on.
    FOREACH its_scope IN ARRAY coalesce(scopes, '{}') LOOP
        PERFORM pg_notify('report_work', its_scope);
    END LOOP;
END
$$;
COMMENT ON FUNCTION reports.release_claims(uuid) IS 'A worker process is proved dead: marks its incarnation, returns its jobs. verdict: released; ended (it was marked before; what it still held is returned all the same); unknown. remaining: rows others hold locked.';

-- As reap_deliveries: what was not begun is pending again, what was being sent may or may not have been (I6).
CREATE FUNCTION reports.release_deliveries(p_worker uuid) RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
    freed integer;
BEGIN
    WITH held AS MATERIALIZED (
        SELECT d.job_id, d.revision, d.channel, d.recipient FROM reports.delivery d
         WHERE d.worker = p_worker AND d.state IN ('claimed', 'sending')
         ORDER BY d.job_id, d.revision, d.channel, d.recipient FOR UPDATE SKIP LOCKED
    )
    UPDATE reports.delivery d
       SET state = CASE WHEN d.state = 'sending' THEN reports.state_when_unknown(d.on_unknown, d.tries, d.max_tries)
                        WHEN d.tries >= d.max_tries THEN 'failed' ELSE 'pending' END,
           finished_at = CASE WHEN d.state = 'claimed' AND d.tries >= d.max_tries THEN clock_timestamp() END,
           run_after = clock_timestamp() + reports.retry_delay('10 seconds', '10 minutes', d.tries),
           error = CASE WHEN d.state = 'sending' THEN 'the worker was killed while sending' ELSE 'the worker was killed before sending' END,
           token = NULL, worker = NULL, lease_until = NULL
      FROM held h
     WHERE d.job_id = h.job_id AND d.revision = h.revision AND d.channel = h.channel AND d.recipient = h.recipient;
    GET DIAGNOSTICS freed = ROW_COUNT;
    RETURN freed;
END
$$;
COMMENT ON FUNCTION reports.release_deliveries(uuid) IS 'Part of release_claims: the deliveries of the dead incarnation.';

GRANT EXECUTE ON FUNCTION reports.release_claims(uuid) TO report_worker;

RESET ROLE;
