-- What workers do: register, claim, renew, report outcomes. Every change of a running job is one
-- statement guarded by (job, attempt token, state) and judged by its row count (I6).

SET ROLE report_owner;

CREATE FUNCTION reports.worker_register(p_worker uuid, p_name text, p_pid integer, p_version text, p_queues text[],
                                        p_slots integer, OUT installation uuid, OUT lease_us bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    q text;
BEGIN
    FOREACH q IN ARRAY p_queues LOOP
        IF NOT EXISTS (SELECT FROM reports.queue u WHERE u.name = q) THEN
            RAISE EXCEPTION 'queue "%" does not exist', q
                USING ERRCODE = 'RS006', HINT = 'Insert it into reports.queue, or correct queues in worker.conf.';
        END IF;
    END LOOP;
    -- Repeatable after a lost answer; an id that has ended is never used again.
    INSERT INTO reports.worker AS w (id, name, pid, version, queues, slots, claim_lease)
    SELECT p_worker, p_name, p_pid, p_version, p_queues, p_slots, i.claim_lease FROM reports.installation i
    ON CONFLICT (id) DO UPDATE SET heartbeat_at = clock_timestamp() WHERE w.state = 'alive';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'worker incarnation % has ended', p_worker USING ERRCODE = 'RS005';
    END IF;
    SELECT i.id, (extract(epoch FROM w.claim_lease) * 1000000)::bigint
      INTO installation, lease_us FROM reports.installation i, reports.worker w WHERE w.id = p_worker;
END
$$;
COMMENT ON FUNCTION reports.worker_register(uuid, text, integer, text, text[], integer) IS 'A worker process begins its life; returns what both sides must agree on.';

CREATE FUNCTION reports.worker_leave(p_worker uuid, p_state text) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF p_state NOT IN ('draining', 'stopped') THEN
        RAISE EXCEPTION 'state % is not for this function', p_state USING ERRCODE = 'invalid_parameter_value';
    END IF;
    UPDATE reports.worker
       SET state = p_state, stopped_at = CASE WHEN p_state = 'stopped' THEN clock_timestamp() END
     WHERE id = p_worker AND state IN ('alive', 'draining');
END
$$;
COMMENT ON FUNCTION reports.worker_leave(uuid, text) IS 'A worker stops claiming (draining) or has ended in order (stopped).';

CREATE TYPE reports.claimed_job AS (
    job_id uuid, token uuid, attempt integer, scope text, schedule text, occurrence_key text, revision integer,
    scheduled_for timestamptz, business_date date, window_start timestamptz, window_end timestamptz, cause text,
    timeout_ms bigint, report text, kind text, data_source text, query text, format text, program text,
    parameters jsonb, late_us bigint, waited_us bigint);
COMMENT ON TYPE reports.claimed_job IS 'All a worker needs to run an attempt. kind is NULL when the report row is gone. late_us, waited_us: at the claim, since scheduled_for and since the job could be claimed.';

-- Jobs just claimed, or still held, with all that is needed to run them. The rows themselves are given: a claim has
-- just written them, and to look for them again through job_running would pass all its dead entries. One look-up for
-- each (LATERAL, OFFSET 0), in a plan that is made once.
CREATE FUNCTION reports.claimed_jobs(p_jobs reports.job[]) RETURNS SETOF reports.claimed_job
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
BEGIN
    RETURN QUERY
        SELECT j.id, j.attempt_token, j.attempt, j.scope, j.schedule, j.occurrence_key, j.revision, o.scheduled_for,
               o.business_date, o.window_start, o.window_end, o.cause,
               (extract(epoch FROM j.timeout) * 1000)::bigint, j.report, r.kind, r.data_source::text, r.query, r.format,
               r.program::text, coalesce(r.parameters, '{}') || coalesce(v.parameters, '{}'),
               greatest(extract(epoch FROM j.claimed_at - o.scheduled_for) * 1000000, 0)::bigint,
               greatest(extract(epoch FROM j.claimed_at - j.run_after) * 1000000, 0)::bigint
          FROM unnest(p_jobs) j
         CROSS JOIN LATERAL (SELECT * FROM reports.occurrence x
                              WHERE x.schedule = j.schedule AND x.occurrence_key = j.occurrence_key OFFSET 0) o
          LEFT JOIN LATERAL (SELECT x.parameters FROM reports.schedule_version x
                              WHERE x.schedule = o.schedule AND x.version = o.version OFFSET 0) v ON true
          LEFT JOIN LATERAL (SELECT * FROM reports.report x WHERE x.name = j.report OFFSET 0) r ON true
         ORDER BY j.id;
END
$$;
COMMENT ON FUNCTION reports.claimed_jobs(reports.job[]) IS 'The given rows of running jobs, with all a worker needs to run them.';

-- What is not claimed, for all that give claims out. Arrays, which a claim asks for once, and not a function of the job.
-- In plpgsql, which keeps its plans: as SQL functions the three would cost each claim 0.3 ms.
CREATE FUNCTION reports.claims_are_held() RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN EXISTS (SELECT FROM reports.v_hold h WHERE h.scope IS NULL AND h.queue IS NULL);
END
$$;
COMMENT ON FUNCTION reports.claims_are_held() IS 'Does a hold stand on the whole installation?';

CREATE FUNCTION reports.scopes_not_to_claim() RETURNS text[]
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN ARRAY(SELECT h.scope::text FROM reports.v_hold h WHERE h.scope IS NOT NULL
                 UNION ALL
                 SELECT m.scope::text FROM reports.v_moved_scope m);
END
$$;
COMMENT ON FUNCTION reports.scopes_not_to_claim() IS 'Scopes of which nothing is claimed: a hold stands on them, or no leader has looked at this server yet.';

CREATE FUNCTION reports.queues_not_to_claim() RETURNS text[]
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN ARRAY(SELECT h.queue::text FROM reports.v_hold h WHERE h.queue IS NOT NULL);
END
$$;
COMMENT ON FUNCTION reports.queues_not_to_claim() IS 'Queues of which nothing is claimed: a hold stands on them.';

-- What a worker incarnation holds now. After a claim whose answer was lost it adopts those it never began. Not
-- under a hold, as no claim is made then: its token is withheld, and without it nothing can be done with it.
CREATE FUNCTION reports.claims_of(p_worker uuid) RETURNS SETOF reports.claimed_job
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
    all_held boolean := reports.claims_are_held();
    held text[] := reports.scopes_not_to_claim();
    closed_queues text[] := reports.queues_not_to_claim();
    its reports.job;
    jobs reports.job[];
BEGIN
    FOR its IN SELECT * FROM reports.job j WHERE j.worker = p_worker AND j.state = 'running' LOOP
        IF all_held OR its.scope = ANY (held) OR its.queue = ANY (closed_queues) THEN
            its.attempt_token := NULL;
        END IF;
        jobs := jobs || its;
    END LOOP;
    RETURN QUERY SELECT * FROM reports.claimed_jobs(jobs);
END
$$;
COMMENT ON FUNCTION reports.claims_of(uuid) IS 'Running jobs of a worker incarnation, with all it needs to run them; without its token, one that a hold stands on.';

-- Shared by both claims: counts the attempt, so that a job that kills its worker is counted too,
-- and gives it a fresh token. `state::text` keeps the planner from walking the (dead-entry-full)
-- partial ready index for a claim by primary key: measured 7 to 24 ms against 3 ms.
CREATE FUNCTION reports.claim(p_worker uuid, p_ids uuid[]) RETURNS SETOF reports.claimed_job
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
    lease interval := (SELECT w.claim_lease FROM reports.worker w WHERE w.id = p_worker);
    claimed reports.job[];
BEGIN
    WITH written AS (
        UPDATE reports.job j
           SET state = 'running', attempt = j.attempt + 1, attempt_token = gen_random_uuid(), worker = p_worker,
               claimed_at = clock_timestamp(),
               lease_until = lease + (SELECT c.at FROM reports.v_lease_clock c WHERE c.scope = j.scope)
         WHERE j.id = ANY (p_ids) AND j.state::text = 'queued'
        RETURNING j AS job
    )
    SELECT array_agg(w.job) INTO claimed FROM written w;
    RETURN QUERY SELECT * FROM reports.claimed_jobs(claimed);
END
$$;
COMMENT ON FUNCTION reports.claim(uuid, uuid[]) IS 'Turns locked queued jobs into running ones of the worker.';

CREATE FUNCTION reports.claimable_worker(p_worker uuid) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    its_state text;
BEGIN
    -- FOR SHARE: who marks the incarnation dead waits for this claim, and this claim sees the mark.
    SELECT w.state INTO its_state FROM reports.worker w WHERE w.id = p_worker FOR SHARE;
    IF its_state IS DISTINCT FROM 'alive' THEN
        IF its_state = 'draining' THEN
            RETURN false;
        END IF;
        RAISE EXCEPTION 'worker incarnation % has ended', p_worker
            USING ERRCODE = 'RS005', HINT = 'Register a new incarnation.';
    END IF;
    RETURN NOT reports.claims_are_held();
END
$$;
COMMENT ON FUNCTION reports.claimable_worker(uuid) IS 'May this incarnation claim now? Ended ones are refused.';

CREATE FUNCTION reports.claim_ids(p_worker uuid, p_queues text[], p_ids uuid[]) RETURNS SETOF reports.claimed_job
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    picked uuid[];
    held text[];
    closed_queues text[];
BEGIN
    IF NOT reports.claimable_worker(p_worker) THEN
        RETURN;
    END IF;
    held := reports.scopes_not_to_claim();
    closed_queues := reports.queues_not_to_claim();
    picked := ARRAY(SELECT j.id FROM reports.job j
                     WHERE j.id = ANY (p_ids) AND j.state::text = 'queued' AND j.run_after <= clock_timestamp()
                       AND j.queue = ANY (p_queues) AND j.scope <> ALL (held) AND j.queue <> ALL (closed_queues)
                     ORDER BY j.id FOR UPDATE SKIP LOCKED);
    RETURN QUERY SELECT * FROM reports.claim(p_worker, picked);
END
$$;
COMMENT ON FUNCTION reports.claim_ids(uuid, text[], uuid[]) IS 'Claims the listed jobs that are queued and due; the others are simply not returned.';

CREATE FUNCTION reports.claim_ready(p_worker uuid, p_queues text[], p_limit integer) RETURNS SETOF reports.claimed_job
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    picked uuid[] := '{}';
    held text[];
    closed_queues text[];
    q text;
BEGIN
    IF NOT reports.claimable_worker(p_worker) THEN
        RETURN;
    END IF;
    held := reports.scopes_not_to_claim();
    closed_queues := reports.queues_not_to_claim();
    FOREACH q IN ARRAY p_queues LOOP
        EXIT WHEN cardinality(picked) >= p_limit;
        CONTINUE WHEN q = ANY (closed_queues);
        picked := picked || ARRAY(SELECT j.id FROM reports.job j
                                   WHERE j.state = 'queued' AND j.queue = q AND j.run_after <= clock_timestamp()
                                     AND j.scope <> ALL (held)
                                   -- Missed firings are older than live work, and behind it.
                                   ORDER BY j.catch_up, j.priority DESC, j.run_after, j.id
                                   LIMIT p_limit - cardinality(picked) FOR UPDATE SKIP LOCKED);
    END LOOP;
    IF cardinality(picked) = 0 THEN
        RETURN;
    END IF;
    RETURN QUERY SELECT * FROM reports.claim(p_worker, picked);
END
$$;
COMMENT ON FUNCTION reports.claim_ready(uuid, text[], integer) IS 'The pull path: claims ready jobs by queue order, live work before missed firings, then by priority, then age.';

-- Renews the listed (job, token) pairs and no others; a pair that is not returned is lost. One whose row another
-- session holds is not waited for, or the worker's others would not be renewed in time either (I12): it is
-- returned as not renewed. The same goes for the worker's own row.
CREATE FUNCTION reports.heartbeat(p_worker uuid, p_ids uuid[], p_tokens uuid[])
RETURNS TABLE (job_id uuid, cancel_requested boolean, renewed boolean)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    lives boolean;
    renewed_ids uuid[];
    cancels boolean[];
BEGIN
    BEGIN
        -- Longer than a claim of this worker shares its row.
        PERFORM set_config('lock_timeout', '300ms', true);
        UPDATE reports.worker w SET heartbeat_at = clock_timestamp() WHERE w.id = p_worker AND w.state IN ('alive', 'draining');
        lives := FOUND;
    EXCEPTION WHEN lock_not_available THEN
        lives := EXISTS (SELECT FROM reports.worker w WHERE w.id = p_worker AND w.state IN ('alive', 'draining'));
    END;
    IF NOT lives THEN
        RAISE EXCEPTION 'worker incarnation % has ended', p_worker
            USING ERRCODE = 'RS005', HINT = 'Register a new incarnation.';
    END IF;
    -- Locks in id order, as record_outcomes does; LATERAL makes it one look-up for each pair.
    WITH given AS MATERIALIZED (
        SELECT DISTINCT g.id, g.token FROM unnest(p_ids, p_tokens) AS g (id, token) ORDER BY g.id
    ), mine AS MATERIALIZED (
        SELECT j.id
          FROM given g
         CROSS JOIN LATERAL (
               SELECT q.id FROM reports.job q
                WHERE q.id = g.id AND q.attempt_token = g.token AND q.state::text = 'running' AND q.worker = p_worker
                  FOR UPDATE SKIP LOCKED) j
    ), beaten AS (
        UPDATE reports.job j SET lease_until = w.claim_lease + (SELECT c.at FROM reports.v_lease_clock c WHERE c.scope = j.scope)
          FROM reports.worker w
         WHERE w.id = p_worker AND j.id = ANY (ARRAY(SELECT m.id FROM mine m))
        RETURNING j.id, j.cancel_requested
    )
    SELECT coalesce(array_agg(b.id), '{}'), coalesce(array_agg(b.cancel_requested), '{}') INTO renewed_ids, cancels FROM beaten b;
    RETURN QUERY SELECT b.id, b.cancel, true FROM unnest(renewed_ids, cancels) AS b (id, cancel);
    IF cardinality(renewed_ids) < cardinality(p_ids) THEN
        -- A statement of its own: who held the row may have changed it meanwhile.
        RETURN QUERY
            SELECT j.id, j.cancel_requested, false
              FROM (SELECT DISTINCT g.id, g.token FROM unnest(p_ids, p_tokens) AS g (id, token)) g
             CROSS JOIN LATERAL (
                   SELECT q.id, q.cancel_requested FROM reports.job q
                    WHERE q.id = g.id AND q.attempt_token = g.token AND q.state::text = 'running' AND q.worker = p_worker
                   OFFSET 0) j
             WHERE j.id <> ALL (renewed_ids);
    END IF;
END
$$;
COMMENT ON FUNCTION reports.heartbeat(uuid, uuid[], uuid[]) IS 'Renews claims by (job, token) pairs; brings cancellations back. Not renewed: still the worker''s, but another session holds the row.';

-- Outcomes of a batch. verdict: done; already (an outcome of this token is recorded: a repeat after a lost
-- answer); lost (the claim moved on: nothing was changed and the artifact stays invisible, I7); locked (another
-- session holds the row: it is not waited for, or the others of the batch would not be recorded either, I12).
-- Everything goes by (id, token): a batch may hold a late outcome beside that of the job's live claim.
CREATE FUNCTION reports.record_outcomes(
    p_ids uuid[], p_tokens uuid[], p_outcomes text[], p_retryable boolean[], p_errors text[], p_exit_codes integer[],
    p_stores text[], p_paths text[], p_media_types text[], p_sizes bigint[], p_rows bigint[], p_sha256 bytea[])
RETURNS TABLE (job_id uuid, verdict text, state text)
-- enable_seqscan: every table is reached by key here, and must be when its statistics are wrong, too.
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
    done_ids uuid[];
    done_tokens uuid[];
    done_states text[];
    scopes text[];
    retrying text[];
    turns text[];
    its_scope text;
BEGIN
    IF EXISTS (SELECT FROM unnest(p_outcomes) o
                WHERE o IS NULL OR o NOT IN ('succeeded', 'failed', 'timeout', 'cancelled', 'handed_back')) THEN
        RAISE EXCEPTION 'an outcome is succeeded, failed, timeout, cancelled or handed_back'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    WITH given AS MATERIALIZED (
        SELECT DISTINCT ON (g.id, g.token) g.*
          FROM unnest(p_ids, p_tokens, p_outcomes, p_retryable, p_errors, p_exit_codes, p_stores, p_paths,
                      p_media_types, p_sizes, p_rows, p_sha256)
               AS g (id, token, outcome, retryable, error, exit_code, store, path, media_type, size_bytes, row_count,
                     sha256)
         ORDER BY g.id, g.token
    ), mine AS MATERIALIZED (
        SELECT j.id, j.attempt, j.attempt_token, j.worker, j.claimed_at, j.cancel_requested,
               j.handed_back, j.max_attempts, g.outcome, g.retryable, left(g.error, 2000) AS error,
               g.exit_code, g.store, g.path, g.media_type, g.size_bytes, g.row_count, g.sha256
          FROM given g -- in id order, which is the order of locking
         CROSS JOIN LATERAL (
               SELECT * FROM reports.job q
                WHERE q.id = g.id AND q.attempt_token = g.token AND q.state::text = 'running'
                  FOR UPDATE SKIP LOCKED) j
    ), verdict AS MATERIALIZED (
        SELECT m.*,
               CASE WHEN m.cancel_requested OR m.outcome = 'cancelled' THEN 'cancelled'
                    WHEN m.outcome = 'succeeded' THEN 'succeeded'
                    WHEN m.outcome = 'handed_back' THEN 'retry_wait'
                    WHEN m.retryable AND NOT reports.attempts_used_up(m.attempt, m.handed_back, m.max_attempts) THEN 'retry_wait'
                    ELSE 'failed' END::reports.job_state AS new_state,
               CASE WHEN m.cancel_requested THEN 'cancelled' ELSE m.outcome END AS recorded
          FROM mine m
    ), closed AS (
        UPDATE reports.job j
           SET state = v.new_state, attempt_token = NULL, worker = NULL, lease_until = NULL,
               handed_back = j.handed_back + (v.recorded = 'handed_back')::integer,
               finished_at = CASE WHEN v.new_state IN ('succeeded', 'failed', 'cancelled') THEN clock_timestamp() END,
               run_after = CASE WHEN v.new_state = 'retry_wait' AND v.outcome <> 'handed_back'
                                THEN clock_timestamp() + reports.retry_delay(j.retry_base, j.retry_cap, j.attempt - j.handed_back)
                                ELSE j.run_after END,
               error = CASE WHEN v.outcome IN ('failed', 'timeout') THEN v.error ELSE j.error END
          FROM verdict v
         WHERE j.id = v.id
        RETURNING j.id, v.attempt_token AS token, j.state, j.scope, j.schedule, j.overlap
    ), attempt AS (
        INSERT INTO reports.job_attempt (job_id, attempt, token, worker, outcome, started_at, error, exit_code)
        SELECT v.id, v.attempt, v.attempt_token, v.worker, v.recorded, v.claimed_at, v.error, v.exit_code
          FROM verdict v
    ), file AS (
        INSERT INTO reports.artifact (job_id, attempt, store, path, media_type, size_bytes, row_count, sha256)
        SELECT v.id, v.attempt, v.store, v.path, v.media_type, v.size_bytes, v.row_count, v.sha256
          FROM verdict v
         WHERE v.recorded = 'succeeded' AND v.store IS NOT NULL
    )
    SELECT array_agg(c.id), array_agg(c.token), array_agg(c.state::text), array_agg(DISTINCT c.scope),
           array_agg(DISTINCT c.scope) FILTER (WHERE c.state = 'retry_wait'),
           array_agg(DISTINCT c.schedule) FILTER (WHERE c.overlap <> 'allow')
      INTO done_ids, done_tokens, done_states, scopes, retrying, turns
      FROM closed c;
    -- The look first: it costs an empty index while no report delivers.
    IF EXISTS (SELECT FROM reports.report r WHERE r.deliver <> '[]') THEN
        PERFORM reports.make_deliveries(ARRAY(SELECT d.id FROM unnest(done_ids, done_states) AS d (id, state)
                                               WHERE d.state = 'succeeded'));
    END IF;
    -- Only when something waits that may now go on: NOTIFY in every outcome would serialise all workers'
    -- commits. The looks are at partial indexes, empty where overlap is allowed and queues have no bound.
    FOREACH its_scope IN ARRAY coalesce(scopes, '{}') LOOP
        IF its_scope = ANY (retrying)
           OR EXISTS (SELECT FROM reports.job j WHERE j.scope = its_scope AND j.state = 'waiting' AND j.waits_for = 'capacity')
           OR turns IS NOT NULL AND EXISTS (
                SELECT FROM reports.job j WHERE j.scope = its_scope AND j.state = 'waiting' AND j.waits_for = 'overlap'
                   AND j.schedule = ANY (turns)) THEN
            PERFORM pg_notify('report_work', its_scope);
        END IF;
    END LOOP;
    -- A statement of its own: when the first sending of the same outcome committed while this call ran, only
    -- a new snapshot sees what that recorded. `lost` would delete the file.
    -- Not joined: of two lists whose length it does not know the server compares each with each, a third of
    -- the time of this call.
    RETURN QUERY
        WITH told AS (
            SELECT x.id, x.token, x.position, max(x.state) OVER (PARTITION BY x.id, x.token) AS state
              FROM (SELECT g.id, g.token, g.position, NULL::text AS state
                      FROM unnest(p_ids, p_tokens) WITH ORDINALITY AS g (id, token, position)
                    UNION ALL
                    SELECT d.id, d.token, NULL, d.state
                      FROM unnest(done_ids, done_tokens, done_states) AS d (id, token, state)) x
        )
        SELECT t.id,
               CASE WHEN t.state IS NOT NULL THEN 'done'
                    WHEN EXISTS (SELECT FROM reports.job_attempt a WHERE a.job_id = t.id AND a.token = t.token
                                    AND a.outcome <> 'lost') THEN 'already'
                    WHEN EXISTS (SELECT FROM reports.job q WHERE q.id = t.id AND q.attempt_token = t.token
                                    AND q.state::text = 'running') THEN 'locked'
                    ELSE 'lost' END,
               t.state
          FROM told t
         WHERE t.position IS NOT NULL
         ORDER BY t.position;
END
$$;
COMMENT ON FUNCTION reports.record_outcomes(uuid[], uuid[], text[], boolean[], text[], integer[], text[], text[], text[], bigint[], bigint[], bytea[]) IS 'Records what attempts came to, each guarded by its token; artifacts become visible here and nowhere else.';

-- What the sweep of the workers' files may remove (I7). A token is closed when its job has moved on from it; attempts may
-- have been forgotten by retention. An artifact that retention forgot leaves its file to this. A copy of the database
-- removes no files of its original, and what a rewound one has forgotten stays until somebody has looked.
CREATE FUNCTION reports.unreferenced_files(p_ids uuid[], p_tokens uuid[], p_paths text[]) RETURNS SETOF boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
BEGIN
    RETURN QUERY
        SELECT EXISTS (SELECT FROM reports.job j WHERE j.id = g.id AND j.attempt_token IS DISTINCT FROM g.token)
               AND NOT EXISTS (SELECT FROM reports.artifact f WHERE f.job_id = g.id AND f.path = g.path)
               AND NOT EXISTS (SELECT FROM reports.v_moved_scope)
               AND NOT EXISTS (SELECT FROM reports.v_hold h WHERE h.cause = 'database_rewound')
          FROM unnest(p_ids, p_tokens, p_paths) WITH ORDINALITY AS g (id, token, path, n)
         ORDER BY g.n;
END
$$;
COMMENT ON FUNCTION reports.unreferenced_files(uuid[], uuid[], text[]) IS 'Of each file, named by its attempt''s job and token and its path: may it be removed?';

GRANT EXECUTE ON FUNCTION
    reports.unreferenced_files(uuid[], uuid[], text[]),
    reports.worker_register(uuid, text, integer, text, text[], integer),
    reports.worker_leave(uuid, text),
    reports.claims_of(uuid),
    reports.claim_ids(uuid, text[], uuid[]),
    reports.claim_ready(uuid, text[], integer),
    reports.heartbeat(uuid, uuid[], uuid[]),
    reports.record_outcomes(uuid[], uuid[], text[], boolean[], text[], integer[], text[], text[], text[], bigint[], bigint[], bytea[])
TO report_worker;

RESET ROLE;
