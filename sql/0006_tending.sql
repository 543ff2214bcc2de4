-- What the leader does with jobs that are held back or abandoned: release and reap. tend is one protected
-- write; the others are parts of it, of plan_batch and of answer_request, which hold the fence.
--
-- Only the leader makes work outstanding, in fenced calls; workers and cancellations only lessen it. So
-- room is counted from the job rows inside the call that fills it: the count may be too high for a moment
-- and never too low. No counter row is kept, on which every worker's outcome would have to wait.
--
-- A job is open until it is succeeded, failed or cancelled. An open job is active unless it waits for
-- its schedule's overlap policy. Of a schedule that does not allow overlap one job at most becomes active.

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

-- An attempt that ended by itself is judged by record_outcomes (0008), by the same count.
CREATE FUNCTION reports.attempts_used_up(p_attempt integer, p_handed_back integer, p_max_attempts integer) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$ SELECT p_attempt - p_handed_back >= p_max_attempts $$;
COMMENT ON FUNCTION reports.attempts_used_up(integer, integer, integer) IS 'Was this attempt the job''s last?';

-- For tend, which reaps it, and for release_claims (0014), which knows that its worker is dead.
CREATE FUNCTION reports.state_when_lost(p_job reports.job, p_again reports.job_state) RETURNS reports.job_state
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN p_job.cancel_requested THEN 'cancelled'
                WHEN reports.attempts_used_up(p_job.attempt, p_job.handed_back, p_job.max_attempts) THEN 'failed'
                ELSE p_again END
$$;
COMMENT ON FUNCTION reports.state_when_lost(reports.job, reports.job_state) IS 'What becomes of a running job whose attempt is gone; p_again: if it is to be tried again.';

CREATE FUNCTION reports.has_active_job(p_schedule text) RETURNS boolean
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM reports.job j
                    WHERE j.schedule = p_schedule AND j.overlap <> 'allow' AND j.waits_for IS DISTINCT FROM 'overlap'
                      AND j.state IN ('waiting', 'queued', 'running', 'retry_wait', 'quarantined'))
$$;
COMMENT ON FUNCTION reports.has_active_job(text) IS 'Has a schedule that does not allow overlap a job that is open and not just waiting for its turn?';

-- VOLATILE, so that it sees what was committed while its caller waited for the progress row.
CREATE FUNCTION reports.open_jobs(p_scope text, p_schedule text) RETURNS uuid[]
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
    SELECT ARRAY(
        SELECT j.id FROM reports.job j
         WHERE j.schedule = p_schedule AND j.overlap <> 'allow' AND j.waits_for IS DISTINCT FROM 'overlap'
           AND j.state IN ('waiting', 'queued', 'running', 'retry_wait', 'quarantined')
        UNION ALL
        SELECT j.id FROM reports.job j
         WHERE j.scope = p_scope AND j.schedule = p_schedule AND j.state = 'waiting' AND j.waits_for = 'overlap'
        ORDER BY 1)
$$;
COMMENT ON FUNCTION reports.open_jobs(text, text) IS 'The open jobs of a schedule that does not allow overlap.';

-- Never waits: who reports an outcome may hold a row, and no firing waits for one row (I12).
CREATE FUNCTION reports.may_replace(p_scope text, p_schedule text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
    ids uuid[] := reports.open_jobs(p_scope, p_schedule);
BEGIN
    RETURN cardinality(ids) = (
        SELECT count(*) FROM (SELECT FROM reports.job j WHERE j.id = ANY (ids) ORDER BY j.id FOR UPDATE SKIP LOCKED) x);
END
$$;
COMMENT ON FUNCTION reports.may_replace(text, text) IS 'Locks the open jobs of a schedule, in the order of ids; false: another session holds one of them.';

-- The policy `replace`. The jobs have been locked by may_replace; those that the same call has made
-- need no lock. A running one is closed by its worker, and a late success of it as cancelled too.
CREATE FUNCTION reports.replace_jobs(p_scope text, p_newest uuid[]) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
    n record;
    older uuid[];
BEGIN
    FOR n IN SELECT j.id, j.schedule, j.occurrence_key FROM reports.job j WHERE j.id = ANY (p_newest) ORDER BY j.id LOOP
        older := array_remove(reports.open_jobs(p_scope, n.schedule), n.id);
        UPDATE reports.job j
           SET state = CASE j.state WHEN 'running' THEN j.state ELSE 'cancelled' END,
               cancel_requested = j.cancel_requested OR j.state = 'running',
               finished_at = CASE WHEN j.state <> 'running' THEN clock_timestamp() END,
               waits_for = NULL, error = format('replaced by %s:%s', n.schedule, n.occurrence_key)
         WHERE j.id = ANY (older);
    END LOOP;
END
$$;
COMMENT ON FUNCTION reports.replace_jobs(text, uuid[]) IS 'Ends the older open jobs of these jobs'' schedules: those that do not run at once.';

-- A backfill's jobs keep apart from the overlap policy also when the schedule is edited, or they are retried.
CREATE FUNCTION reports.is_backfilled(p_schedule text, p_key text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
    SELECT EXISTS (SELECT FROM reports.occurrence o
                    WHERE o.schedule = p_schedule AND o.occurrence_key = p_key AND o.cause = 'backfill')
$$;
COMMENT ON FUNCTION reports.is_backfilled(text, text) IS 'Is this occurrence one of a backfill?';

-- The jobs of a schedule that was edited follow its new policy while they are open. Nothing indexes the
-- jobs of a schedule that allows overlap, so all that are open are looked at: rare, and for all edits at once.
CREATE FUNCTION reports.jobs_to_adopt(p_scope text, p_schedules text[], p_overlaps text[])
RETURNS TABLE (id uuid, schedule text, overlap text)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
    WITH candidate AS MATERIALIZED (
        SELECT j.id, j.schedule, j.occurrence_key, j.overlap FROM reports.job j WHERE j.scope = p_scope AND j.state = 'waiting'
        UNION ALL
        SELECT j.id, j.schedule, j.occurrence_key, j.overlap FROM reports.job j WHERE j.scope = p_scope AND j.state = 'queued'
        UNION ALL
        SELECT j.id, j.schedule, j.occurrence_key, j.overlap FROM reports.job j WHERE j.scope = p_scope AND j.state = 'running'
        UNION ALL
        SELECT j.id, j.schedule, j.occurrence_key, j.overlap FROM reports.job j WHERE j.scope = p_scope AND j.state = 'retry_wait'
        UNION ALL
        SELECT j.id, j.schedule, j.occurrence_key, j.overlap FROM reports.job j WHERE j.scope = p_scope AND j.state = 'quarantined'
    )
    SELECT c.id, c.schedule, e.overlap
      FROM candidate c JOIN unnest(p_schedules, p_overlaps) AS e (schedule, overlap) USING (schedule)
     WHERE c.overlap <> e.overlap AND NOT reports.is_backfilled(c.schedule, c.occurrence_key)
$$;
COMMENT ON FUNCTION reports.jobs_to_adopt(text, text[], text[]) IS 'The open jobs of these schedules that have another overlap policy.';

-- Passed over, a job that another session holds would be overlapped; waited for, it would hold up the other
-- edits. So its schedule keeps the policy it has for now.
CREATE FUNCTION reports.adopt_blocked(p_scope text, p_schedules text[], p_overlaps text[]) RETURNS text[]
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
BEGIN
    RETURN ARRAY(
        SELECT DISTINCT w.schedule
          FROM reports.jobs_to_adopt(p_scope, p_schedules, p_overlaps) w
          LEFT JOIN LATERAL (SELECT q.id FROM reports.job q WHERE q.id = w.id FOR UPDATE SKIP LOCKED) q ON true
         WHERE q.id IS NULL);
END
$$;
COMMENT ON FUNCTION reports.adopt_blocked(text, text[], text[]) IS 'Locks the open jobs that adopt_overlap would change; returns the schedules of which another session holds one.';

-- The jobs have been locked by adopt_blocked; who makes a new one needs the progress row, which is locked, too.
CREATE FUNCTION reports.adopt_overlap(p_scope text, p_schedules text[], p_overlaps text[]) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
BEGIN
    UPDATE reports.job j
       SET overlap = a.overlap,
           -- What did not run yet waits for its turn. A message that is on its way finds nothing to claim.
           state = CASE WHEN j.overlap = 'allow' AND j.state = 'queued' THEN 'waiting' ELSE j.state END,
           waits_for = CASE WHEN j.overlap = 'allow' AND j.state IN ('waiting', 'queued') THEN 'overlap'
                            WHEN a.overlap = 'allow' AND j.state = 'waiting' THEN 'capacity' ELSE j.waits_for END
      FROM reports.jobs_to_adopt(p_scope, p_schedules, p_overlaps) a
     WHERE j.id = a.id AND j.state IN ('waiting', 'queued', 'running', 'retry_wait', 'quarantined');
END
$$;
COMMENT ON FUNCTION reports.adopt_overlap(text, text[], text[]) IS 'Gives the open jobs of schedules whose overlap policy was edited the new one.';

-- Jobs whose turn it is in their schedule go on to wait for room. From schedule to schedule by the index,
-- however many jobs wait in each: those that are blocked hide none of the others.
CREATE FUNCTION reports.give_turns(p_scope text, p_limit integer) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
    WITH RECURSIVE its (schedule) AS (
        (SELECT j.schedule FROM reports.job j
          WHERE j.scope = p_scope AND j.state = 'waiting' AND j.waits_for = 'overlap' ORDER BY j.schedule LIMIT 1)
        UNION ALL
        SELECT (SELECT j.schedule FROM reports.job j
                 WHERE j.scope = p_scope AND j.state = 'waiting' AND j.waits_for = 'overlap' AND j.schedule > i.schedule
                 ORDER BY j.schedule LIMIT 1)
          FROM its i WHERE i.schedule IS NOT NULL
    ), free AS MATERIALIZED (
        SELECT i.schedule FROM its i WHERE i.schedule IS NOT NULL AND NOT reports.has_active_job(i.schedule) LIMIT p_limit
    ), turn AS MATERIALIZED (
        SELECT t.id
          FROM free f
         CROSS JOIN LATERAL (
               SELECT j.id FROM reports.job j
                WHERE j.scope = p_scope AND j.schedule = f.schedule AND j.state = 'waiting' AND j.waits_for = 'overlap'
                ORDER BY j.run_after, j.id LIMIT 1 FOR UPDATE SKIP LOCKED) t
    )
    UPDATE reports.job j SET waits_for = 'capacity'
     WHERE j.id = ANY (ARRAY(SELECT t.id FROM turn t)) AND j.state::text = 'waiting';
END
$$;
COMMENT ON FUNCTION reports.give_turns(text, integer) IS 'Lets the oldest waiting job of each schedule go on that has no active one.';

-- How many missed firings were released within a minute is counted from rows, by the second. A second is
-- counted until it is a whole minute ago, so that no 60 seconds have more than catch_up_per_minute.
CREATE FUNCTION reports.catch_up_used(p_scope text, p_queue text DEFAULT NULL) RETURNS bigint
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
    SELECT coalesce(sum(r.jobs), 0)::bigint FROM reports.catch_up_release r
     WHERE r.scope = p_scope AND (p_queue IS NULL OR r.queue = p_queue) AND r.second > clock_timestamp() - interval '61 s'
$$;
COMMENT ON FUNCTION reports.catch_up_used(text, text) IS 'Jobs of missed firings that were released within a minute, in a queue or (NULL) in all.';

-- What a clock that was set back has left in the future counts from now: the budget is never exceeded by
-- that, and no scope waits longer than a minute for it.
CREATE FUNCTION reports.catch_up_forget(p_scope text) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
    WITH moment AS MATERIALIZED (
        SELECT date_trunc('second', clock_timestamp()) AS now
    ), gone AS (
        DELETE FROM reports.catch_up_release r USING moment m
         WHERE r.scope = p_scope AND (r.second <= m.now - interval '62 s' OR r.second > m.now + interval '1 s')
        RETURNING r.queue, r.jobs, r.second > m.now AS ahead, m.now
    )
    INSERT INTO reports.catch_up_release AS r (scope, queue, second, jobs)
    SELECT p_scope, g.queue, g.now, least(sum(g.jobs), 2000000) FROM gone g WHERE g.ahead GROUP BY g.queue, g.now
    ON CONFLICT (scope, queue, second) DO UPDATE SET jobs = r.jobs + excluded.jobs
$$;
COMMENT ON FUNCTION reports.catch_up_forget(text) IS 'Forgets releases of missed firings that are older than a minute.';

-- The one place where a waiting job becomes outstanding, with its message (I4). Picks by priority and age
-- over all queues, so that no queue starves another; reading `queue` takes no lock. Of missed firings the
-- newest go first where catch_up_order says so.
CREATE FUNCTION reports.fill_room(p_scope text, p_generation bigint, p_catch_up boolean, p_limit integer) RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    filled integer;
    newest_first boolean := (SELECT p_catch_up AND s.catch_up_order = 'newest' FROM reports.scope s WHERE s.name = p_scope);
BEGIN
    WITH RECURSIVE wanted (queue) AS (
        (SELECT j.queue FROM reports.job j
          WHERE j.scope = p_scope AND j.state = 'waiting' AND j.waits_for = 'capacity' ORDER BY j.queue LIMIT 1)
        UNION ALL
        SELECT (SELECT j.queue FROM reports.job j
                 WHERE j.scope = p_scope AND j.state = 'waiting' AND j.waits_for = 'capacity' AND j.queue > w.queue
                 ORDER BY j.queue LIMIT 1)
          FROM wanted w WHERE w.queue IS NOT NULL
    ), running AS MATERIALIZED (
        SELECT j.queue, count(*) AS jobs FROM reports.job j WHERE j.scope = p_scope AND j.state = 'running' GROUP BY j.queue
    ), room AS MATERIALIZED (
        -- One statement, one snapshot: a job that is being claimed is counted once.
        SELECT w.queue,
               least(CASE WHEN q.max_outstanding IS NULL THEN p_limit
                          ELSE least(greatest(q.max_outstanding - ready.jobs - coalesce(r.jobs, 0), 0), p_limit) END,
                     CASE WHEN p_catch_up AND q.catch_up_per_minute IS NOT NULL
                          THEN greatest(q.catch_up_per_minute - reports.catch_up_used(p_scope, w.queue), 0) END) AS jobs,
               CASE WHEN p_catch_up AND q.catch_up_order IS NOT NULL THEN q.catch_up_order = 'newest' ELSE newest_first END AS newest
          FROM wanted w
          LEFT JOIN reports.queue q ON q.name = w.queue
          LEFT JOIN running r ON r.queue = w.queue
         CROSS JOIN LATERAL (
               SELECT count(*) AS jobs
                 FROM (SELECT FROM reports.job j WHERE j.state = 'queued' AND j.queue = w.queue AND j.scope = p_scope
                        LIMIT coalesce(q.max_outstanding, 0)) x) ready
         WHERE w.queue IS NOT NULL
    ), picked AS MATERIALIZED (
        SELECT c.id
          FROM room r
         CROSS JOIN LATERAL (
               SELECT o.id, o.priority, extract(epoch FROM o.run_after) AS place
                 FROM (SELECT j.id, j.priority, j.run_after FROM reports.job j
                        WHERE j.scope = p_scope AND j.state = 'waiting' AND j.waits_for = 'capacity' AND j.queue = r.queue
                          AND j.catch_up = p_catch_up
                        ORDER BY j.priority DESC, j.run_after, j.id
                        LIMIT CASE WHEN r.newest THEN 0 ELSE r.jobs END FOR UPDATE SKIP LOCKED) o
                UNION ALL
               SELECT n.id, n.priority, -extract(epoch FROM n.run_after)
                 FROM (SELECT j.id, j.priority, j.run_after FROM reports.job j
                        WHERE j.scope = p_scope AND j.state = 'waiting' AND j.waits_for = 'capacity' AND j.queue = r.queue
                          AND j.catch_up
                        ORDER BY j.priority DESC, j.run_after DESC, j.id DESC
                        LIMIT CASE WHEN r.newest THEN r.jobs ELSE 0 END FOR UPDATE SKIP LOCKED) n) c
         ORDER BY c.priority DESC, c.place, c.id LIMIT p_limit
    ), queued AS (
        -- By ANY (ARRAY (...)): joined, a planner without statistics reads the whole table.
        UPDATE reports.job j SET state = 'queued', waits_for = NULL, dispatch_number = j.dispatch_number + 1
         WHERE j.id = ANY (ARRAY(SELECT p.id FROM picked p)) AND j.state::text = 'waiting'
        RETURNING j.id, j.dispatch_number, j.schedule, j.occurrence_key, j.queue, j.priority, j.run_after
    ), message AS (
        INSERT INTO reports.outbox (scope, job_id, dispatch_number, schedule, occurrence_key, queue, scheduled_for, generation)
        SELECT p_scope, q.id, q.dispatch_number, q.schedule, q.occurrence_key, q.queue, o.scheduled_for, p_generation
          FROM queued q
          JOIN room r ON r.queue = q.queue
          JOIN reports.occurrence o ON o.schedule = q.schedule AND o.occurrence_key = q.occurrence_key
         ORDER BY q.priority DESC, extract(epoch FROM q.run_after) * CASE WHEN r.newest THEN -1 ELSE 1 END, q.id
    ), counted AS (
        INSERT INTO reports.catch_up_release AS r (scope, queue, second, jobs)
        SELECT p_scope, q.queue, date_trunc('second', clock_timestamp()), count(*) FROM queued q WHERE p_catch_up GROUP BY q.queue, 3
        ON CONFLICT (scope, queue, second) DO UPDATE SET jobs = r.jobs + excluded.jobs
    )
    SELECT count(*) INTO filled FROM queued;
    RETURN filled;
END
$$;
COMMENT ON FUNCTION reports.fill_room(text, bigint, boolean, integer) IS 'Queues and dispatches jobs that wait for room, as many as their queues have (of missed firings also as many as the queues'' catch_up_per_minute leaves); returns how many.';

CREATE FUNCTION reports.release_waiting(p_scope text, p_generation bigint, p_limit integer) RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    bound integer := least(p_limit, 1000);
    released integer := 0;
    budget integer;
BEGIN
    -- A call that was given up by its client may still run beside its repetition: one counts after the other.
    PERFORM pg_advisory_xact_lock(hashtextextended('reports.release:' || p_scope, 0));
    WITH ready AS MATERIALIZED (
        SELECT j.id FROM reports.job j
         WHERE j.scope = p_scope AND j.state = 'retry_wait' AND j.run_after <= (SELECT clock_timestamp())
         ORDER BY j.run_after LIMIT bound FOR UPDATE SKIP LOCKED
    )
    UPDATE reports.job j
       SET state = CASE WHEN j.cancel_requested THEN 'cancelled' ELSE 'waiting' END::reports.job_state,
           -- Of jobs that were open when their schedule began to forbid overlap several may be retried: one by one.
           waits_for = CASE WHEN j.cancel_requested THEN NULL
                            WHEN j.overlap = 'allow' THEN 'capacity'
                            WHEN EXISTS (SELECT FROM reports.job o
                                          WHERE o.schedule = j.schedule AND o.overlap <> 'allow' AND o.id <> j.id
                                            AND o.waits_for IS DISTINCT FROM 'overlap'
                                            AND o.state IN ('waiting', 'queued', 'running', 'retry_wait', 'quarantined')
                                            AND (o.state <> 'retry_wait' OR (o.run_after, o.id) < (j.run_after, j.id)
                                                 AND o.id = ANY (ARRAY(SELECT r.id FROM ready r))))
                                 THEN 'overlap'
                            ELSE 'capacity' END,
           finished_at = CASE WHEN j.cancel_requested THEN clock_timestamp() END
     WHERE j.id = ANY (ARRAY(SELECT r.id FROM ready r)) AND j.state::text = 'retry_wait';
    IF EXISTS (SELECT FROM reports.job j WHERE j.scope = p_scope AND j.state = 'waiting' AND j.waits_for = 'overlap') THEN
        PERFORM reports.give_turns(p_scope, bound);
    END IF;
    IF NOT EXISTS (SELECT FROM reports.job j WHERE j.scope = p_scope AND j.state = 'waiting' AND j.waits_for = 'capacity') THEN
        RETURN 0;
    END IF;
    -- Live work first; what is left of the room goes to missed firings, within their budget.
    released := reports.fill_room(p_scope, p_generation, false, bound);
    IF NOT EXISTS (SELECT FROM reports.job j WHERE j.scope = p_scope AND j.state = 'waiting' AND j.waits_for = 'capacity' AND j.catch_up) THEN
        RETURN released;
    END IF;
    PERFORM reports.catch_up_forget(p_scope);
    SELECT least(bound - released, s.catch_up_max - (
               SELECT count(*) FROM (SELECT FROM reports.job j WHERE j.scope = p_scope AND j.catch_up
                                        AND j.state IN ('queued', 'running') LIMIT s.catch_up_max) x),
               CASE WHEN s.catch_up_per_minute IS NOT NULL THEN s.catch_up_per_minute - reports.catch_up_used(p_scope) END)
      INTO budget FROM reports.scope s WHERE s.name = p_scope;
    IF budget > 0 THEN
        released := released + reports.fill_room(p_scope, p_generation, true, budget);
    END IF;
    RETURN released;
END
$$;
COMMENT ON FUNCTION reports.release_waiting(text, bigint, integer) IS 'Queues what may go on: retries whose wait is over, jobs whose turn it is, as far as there is room; at most 1000. Returns how many.';

-- For people: what fill_room decides by is counted afresh.
CREATE FUNCTION reports.count_queues(p_scope text) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    free text[];
BEGIN
    -- A row that somebody holds keeps what it says: jobs are tended all the same (I12).
    free := ARRAY(SELECT l.queue FROM reports.queue_load l WHERE l.scope = p_scope FOR UPDATE SKIP LOCKED);
    DELETE FROM reports.queue_load l
     WHERE l.scope = p_scope AND l.queue = ANY (free)
       AND NOT EXISTS (SELECT FROM reports.queue q WHERE q.name = l.queue AND q.max_outstanding IS NOT NULL);
    WITH bounded AS MATERIALIZED (
        SELECT q.name::text AS queue, q.max_outstanding FROM reports.queue q
         WHERE q.max_outstanding IS NOT NULL
           AND (q.name = ANY (free) OR NOT EXISTS (SELECT FROM reports.queue_load l WHERE l.scope = p_scope AND l.queue = q.name))
    )
    INSERT INTO reports.queue_load AS l (scope, queue, outstanding, waiting)
    SELECT p_scope, b.queue, ready.jobs + running.jobs, waiting.jobs
      FROM bounded b
     CROSS JOIN LATERAL (SELECT count(*) AS jobs FROM (SELECT FROM reports.job j WHERE j.state = 'queued' AND j.queue = b.queue
                                                          AND j.scope = p_scope LIMIT b.max_outstanding) x) ready
     CROSS JOIN LATERAL (SELECT count(*) AS jobs FROM reports.job j WHERE j.state = 'running' AND j.scope = p_scope
                            AND j.queue = b.queue) running
     CROSS JOIN LATERAL (SELECT count(*) AS jobs FROM (SELECT FROM reports.job j WHERE j.scope = p_scope AND j.state = 'waiting'
                                                          AND j.waits_for = 'capacity' AND j.queue = b.queue LIMIT 10000) x) waiting
        ON CONFLICT (scope, queue) DO UPDATE
       SET outstanding = excluded.outstanding, waiting = excluded.waiting, counted_at = clock_timestamp()
     WHERE (l.outstanding, l.waiting) <> (excluded.outstanding, excluded.waiting)
        OR l.counted_at < clock_timestamp() - interval '10 seconds';
END
$$;
COMMENT ON FUNCTION reports.count_queues(text) IS 'Writes how full the queues with a bound are.';

-- One round of care for jobs: sign of life; claims that lapsed longer than the grace ago are closed as
-- lost; what may go on is queued and dispatched. Rows another session holds are skipped, and the next
-- round sees them again (I12).
--
-- p_clock_*: between what this clock must show by the leader's own clock, which is never stepped, since the last
-- round that has beaten; NULL: it does not know. A step stops reaping until workers have had a lease to renew.
-- The clock is read once: what it showed then was compared, is written down, decides, and is what the next
-- round is compared with. A lease that lies further ahead than a renewal puts it began while the clock was ahead:
-- its worker may live, so it gets a lease from now like any other.
CREATE FUNCTION reports.tend(p_scope text, p_incarnation bigint, p_generation bigint, p_owner uuid, p_limit integer,
                             p_clock_from timestamptz DEFAULT NULL, p_clock_to timestamptz DEFAULT NULL, p_known uuid DEFAULT NULL,
                             OUT verdict text, OUT released integer, OUT reaped integer, OUT held_back bigint,
                             OUT running bigint, OUT next_release timestamptz, OUT database_now timestamptz, OUT stepped boolean, OUT beaten boolean)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    grace interval;
    longest interval;
    may_reap boolean;
    some_behind boolean;
BEGIN
    IF NOT reports.fence_holds(p_scope, p_incarnation, p_generation, p_owner, 'tend') THEN
        verdict := 'fenced';
        RETURN;
    END IF;
    -- A dump may be restored below a leader that has nothing to plan for hours.
    IF p_known IS NOT NULL AND reports.job_not_known(p_scope, ARRAY[p_known]) IS NOT NULL THEN
        verdict := 'moved';
        RETURN;
    END IF;
    database_now := clock_timestamp();
    -- A second beyond the bounds is no step: no lease is shorter than three.
    stepped := database_now NOT BETWEEN p_clock_from - interval '1 second' AND p_clock_to + interval '1 second';
    beaten := reports.beat(p_scope, stepped, database_now);
    verdict := 'ok';
    released := 0;
    reaped := 0;
    IF stepped IS NOT FALSE THEN
        -- A backoff that began while the clock was ahead: none is longer than its cap. Those are the furthest.
        UPDATE reports.job j SET run_after = clock_timestamp()
         WHERE j.state::text = 'retry_wait' AND j.id = ANY (ARRAY(
                SELECT y.id FROM reports.job y
                 WHERE y.state::text = 'retry_wait' AND y.id = ANY (ARRAY(
                        SELECT x.id FROM (SELECT q.id, q.run_after, q.retry_cap FROM reports.job q
                                           WHERE q.scope = p_scope AND q.state = 'retry_wait' ORDER BY q.run_after DESC LIMIT 1000) x
                         WHERE x.run_after > clock_timestamp() + x.retry_cap + interval '1 minute'))
                   FOR UPDATE SKIP LOCKED));
    END IF;
    SELECT i.reap_grace, database_now >= p.reap_not_before AND stepped IS NOT TRUE AND beaten,
           greatest(i.claim_lease, (SELECT max(w.claim_lease) FROM reports.worker w WHERE w.state IN ('alive', 'draining')))
      INTO grace, may_reap, longest
      FROM reports.installation i, reports.fence_pulse p WHERE p.scope = p_scope;
    UPDATE reports.job j SET lease_until = database_now + longest
     WHERE j.state::text = 'running' AND j.id = ANY (ARRAY(
            SELECT x.id FROM reports.job x
             WHERE x.state = 'running' AND x.scope = p_scope AND x.lease_until > database_now + longest + grace + interval '10 seconds'
             ORDER BY x.id LIMIT p_limit FOR UPDATE SKIP LOCKED));
    IF may_reap THEN
        WITH lapsed AS MATERIALIZED (
            SELECT id, attempt, attempt_token, worker, claimed_at FROM reports.job
             WHERE state = 'running' AND scope = p_scope
               AND lease_until + grace < database_now
             ORDER BY id LIMIT p_limit FOR UPDATE SKIP LOCKED
        ), closed AS (
            UPDATE reports.job j
               SET state = reports.state_when_lost(j, 'retry_wait'),
                   finished_at = CASE WHEN reports.state_when_lost(j, 'retry_wait') <> 'retry_wait' THEN clock_timestamp() END,
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
        PERFORM reports.reap_deliveries(p_scope, p_limit, database_now);
        -- SKIP LOCKED: a heartbeat locks its worker row first and job rows then, the other way round.
        UPDATE reports.worker w SET state = 'dead', stopped_at = clock_timestamp()
         WHERE w.id = ANY (ARRAY(
                SELECT u.id FROM reports.worker u, reports.installation i
                 WHERE u.state IN ('alive', 'draining')
                   AND (u.heartbeat_at + u.claim_lease + i.reap_grace < database_now
                        OR u.heartbeat_at > database_now + interval '10 seconds')
                   -- One that renews claims lives: somebody may hold its row. One without any begins a new
                   -- incarnation at its next heartbeat if the clock has made it look dead.
                   AND NOT EXISTS (SELECT FROM reports.job j WHERE j.worker = u.id AND j.state = 'running'
                                      AND j.lease_until + i.reap_grace >= database_now)
                   FOR UPDATE OF u SKIP LOCKED));
    END IF;
    IF EXISTS (SELECT FROM reports.circuit_outcome o WHERE o.scope = p_scope) THEN
        PERFORM reports.settle_circuits(p_scope, 1000);
    END IF;
    -- After reaping, which makes room.
    IF NOT reports.is_held(p_scope) THEN
        released := reports.release_waiting(p_scope, p_generation, p_limit);
    END IF;
    PERFORM reports.count_queues(p_scope);
    SELECT count(*), min(j.run_after) INTO held_back, next_release
      FROM (SELECT run_after FROM reports.job WHERE scope = p_scope AND state = 'retry_wait'
             ORDER BY run_after LIMIT 1000) j;
    held_back := held_back + (SELECT count(*) FROM (SELECT FROM reports.job WHERE scope = p_scope AND state = 'waiting' LIMIT 1000) j);
    SELECT count(*) INTO running FROM reports.job WHERE state = 'running' AND scope = p_scope;
    some_behind := reports.calendar_catch_up(p_scope);
    some_behind := reports.fiscal_catch_up(p_scope) OR some_behind;
    IF some_behind THEN
        next_release := least(next_release, database_now + interval '1 second'); -- so that the leader looks again then
    END IF;
END
$$;
COMMENT ON FUNCTION reports.tend(text, bigint, bigint, uuid, integer, timestamptz, timestamptz, uuid) IS 'Sign of life, reaping of lapsed claims, release of what waits; says how much is held back. moved: the database does not know job p_known, and nothing was done.';

GRANT EXECUTE ON FUNCTION
    reports.tend(text, bigint, bigint, uuid, integer, timestamptz, timestamptz, uuid)
TO report_scheduler;

RESET ROLE;
