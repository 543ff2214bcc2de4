-- What is forgotten after a while, in bounded batches. Occurrences, their jobs, gaps, schedule versions, the
-- fence and the ensembles stay for ever: exactly once is proved by them (I3).

SET ROLE report_owner;

-- Not more than 1000 years: before that lies no time, and one such row would stop the whole round.
ALTER TABLE reports.installation
    ADD COLUMN keep_attempts interval DEFAULT '400 days' CHECK ((keep_attempts BETWEEN interval '1 day' AND interval '1000 years') IS NOT FALSE
        OR reports.refuse_value('installation', 'keep_attempts', keep_attempts::text, 'Write an interval from 1 day to 1000 years, or NULL to keep for ever.')),
    ADD COLUMN keep_artifacts interval CHECK ((keep_artifacts BETWEEN interval '1 day' AND interval '1000 years') IS NOT FALSE
        OR reports.refuse_value('installation', 'keep_artifacts', keep_artifacts::text, 'Write an interval from 1 day to 1000 years, or NULL to keep for ever.')),
    ADD COLUMN keep_deliveries interval CHECK ((keep_deliveries BETWEEN interval '1 day' AND interval '1000 years') IS NOT FALSE
        OR reports.refuse_value('installation', 'keep_deliveries', keep_deliveries::text, 'Write an interval from 1 day to 1000 years, or NULL to keep for ever.')),
    ADD COLUMN keep_requests interval DEFAULT '90 days' CHECK ((keep_requests BETWEEN interval '1 day' AND interval '1000 years') IS NOT FALSE
        OR reports.refuse_value('installation', 'keep_requests', keep_requests::text, 'Write an interval from 1 day to 1000 years, or NULL to keep for ever.')),
    ADD COLUMN keep_leadership_events interval DEFAULT '400 days' CHECK ((keep_leadership_events BETWEEN interval '1 day' AND interval '1000 years') IS NOT FALSE
        OR reports.refuse_value('installation', 'keep_leadership_events', keep_leadership_events::text, 'Write an interval from 1 day to 1000 years, or NULL to keep for ever.')),
    ADD COLUMN keep_fence_rejections interval DEFAULT '90 days' CHECK ((keep_fence_rejections BETWEEN interval '1 day' AND interval '1000 years') IS NOT FALSE
        OR reports.refuse_value('installation', 'keep_fence_rejections', keep_fence_rejections::text, 'Write an interval from 1 day to 1000 years, or NULL to keep for ever.')),
    ADD COLUMN keep_workers interval DEFAULT '30 days' CHECK ((keep_workers BETWEEN interval '1 day' AND interval '1000 years') IS NOT FALSE
        OR reports.refuse_value('installation', 'keep_workers', keep_workers::text, 'Write an interval from 1 day to 1000 years, or NULL to keep for ever.')),
    ADD COLUMN keep_dead_messages interval DEFAULT '90 days' CHECK ((keep_dead_messages BETWEEN interval '1 day' AND interval '1000 years') IS NOT FALSE
        OR reports.refuse_value('installation', 'keep_dead_messages', keep_dead_messages::text, 'Write an interval from 1 day to 1000 years, or NULL to keep for ever.')),
    ADD COLUMN keep_member_clocks interval DEFAULT '1 day' CHECK ((keep_member_clocks BETWEEN interval '1 hour' AND interval '1000 years') IS NOT FALSE
        OR reports.refuse_value('installation', 'keep_member_clocks', keep_member_clocks::text, 'Write an interval from 1 hour to 1000 years, or NULL to keep for ever.'));
COMMENT ON COLUMN reports.installation.keep_attempts IS 'How long the attempts of final jobs are kept; NULL: for ever.';
COMMENT ON COLUMN reports.installation.keep_artifacts IS 'How long report files are kept: afterwards the row goes, and a worker''s sweep removes the file; NULL: for ever.';
COMMENT ON COLUMN reports.installation.keep_deliveries IS 'How long final deliveries are kept; NULL: for ever.';
COMMENT ON COLUMN reports.installation.keep_requests IS 'How long answered requests are kept; a request id that is repeated later is a new request. NULL: for ever.';
COMMENT ON COLUMN reports.installation.keep_leadership_events IS 'How long the diaries of leadership and of circuit breakers are kept; NULL: for ever.';
COMMENT ON COLUMN reports.installation.keep_fence_rejections IS 'How long refused stale writes are kept; NULL: for ever.';
COMMENT ON COLUMN reports.installation.keep_workers IS 'How long ended worker incarnations are kept; NULL: for ever.';
COMMENT ON COLUMN reports.installation.keep_dead_messages IS 'How long messages that could not be published are kept; NULL: for ever.';
COMMENT ON COLUMN reports.installation.keep_member_clocks IS 'How long clock samples are kept; NULL: for ever.';

CREATE INDEX request_answered ON reports.request (answered_at) WHERE state <> 'pending';

-- One table's round: at most p_limit rows, found by an index from the oldest end, rows that another session
-- holds skipped. Job ids are ordered by time, so the oldest job's rows come first.
CREATE FUNCTION reports.prune_of_jobs(p_table text, p_keep interval, p_limit integer, p_only text DEFAULT 'true') RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
    pruned integer;
    floor uuid := reports.job_id_floor(clock_timestamp() - p_keep);
BEGIN
    IF p_keep IS NULL THEN
        RETURN 0;
    END IF;
    -- An old job that was retried lately keeps all of its rows until it has been final for that long.
    EXECUTE format($q$
        WITH doomed AS MATERIALIZED (
            SELECT t.ctid AS place
              FROM reports.%1$I t
             CROSS JOIN LATERAL (SELECT j.finished_at FROM reports.job j WHERE j.id = t.job_id OFFSET 0) j
             WHERE t.job_id < $1 AND j.finished_at < clock_timestamp() - $2 AND %2$s
             ORDER BY t.job_id LIMIT $3 FOR UPDATE OF t SKIP LOCKED)
        DELETE FROM reports.%1$I t WHERE t.ctid = ANY (ARRAY(SELECT d.place FROM doomed d))$q$, p_table, p_only)
    USING floor, p_keep, p_limit;
    GET DIAGNOSTICS pruned = ROW_COUNT;
    RETURN pruned;
END
$$;
COMMENT ON FUNCTION reports.prune_of_jobs(text, interval, integer, text) IS 'Forgets the oldest rows of a table that belong to jobs which have long been final.';

CREATE FUNCTION reports.prune_head(p_table text, p_when text, p_keep interval, p_limit integer) RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    pruned integer;
BEGIN
    IF p_keep IS NULL THEN
        RETURN 0;
    END IF;
    -- The oldest by number first, and only then the time: nothing to forget costs one look at the head.
    EXECUTE format($q$
        WITH head AS MATERIALIZED (
            SELECT t.id, t.%2$I AS at FROM reports.%1$I t ORDER BY t.id LIMIT $2
        )
        DELETE FROM reports.%1$I t
         WHERE t.id = ANY (ARRAY(SELECT h.id FROM head h WHERE h.at < clock_timestamp() - $1))$q$, p_table, p_when)
    USING p_keep, p_limit;
    GET DIAGNOSTICS pruned = ROW_COUNT;
    RETURN pruned;
END
$$;
COMMENT ON FUNCTION reports.prune_head(text, text, interval, integer) IS 'Forgets the oldest rows of a diary.';

-- One round over all tables: a row a table, `pruned` = p_limit where there is more. The verdict is that of
-- any protected write. What is not of one scope is pruned by whichever leader comes first.
CREATE FUNCTION reports.prune(p_scope text, p_incarnation bigint, p_generation bigint, p_owner uuid, p_limit integer)
RETURNS TABLE (verdict text, pruned_table text, pruned integer)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    i reports.installation;
    n integer := greatest(1, least(p_limit, 1000));
BEGIN
    IF NOT reports.fence_holds(p_scope, p_incarnation, p_generation, p_owner, 'prune') THEN
        RETURN QUERY SELECT 'fenced', NULL::text, 0;
        RETURN;
    END IF;
    -- Losing this commit only prunes again.
    PERFORM set_config('synchronous_commit', 'off', true);
    SELECT * INTO i FROM reports.installation;
    RETURN QUERY SELECT 'ok', 'job_attempt', reports.prune_of_jobs('job_attempt', i.keep_attempts, n);
    -- The file itself goes when a worker's sweep finds that no row names it any more (I7). One that is still
    -- to be delivered stays.
    RETURN QUERY SELECT 'ok', 'artifact', reports.prune_of_jobs('artifact', i.keep_artifacts, n,
        $p$NOT EXISTS (SELECT FROM reports.delivery d WHERE d.job_id = t.job_id AND d.state NOT IN ('sent', 'failed'))$p$);
    RETURN QUERY SELECT 'ok', 'delivery', reports.prune_of_jobs('delivery', i.keep_deliveries, n, $p$t.state IN ('sent', 'failed')$p$);
    RETURN QUERY SELECT 'ok', 'leadership_event', reports.prune_head('leadership_event', 'at', i.keep_leadership_events, n);
    RETURN QUERY SELECT 'ok', 'circuit_event', reports.prune_head('circuit_event', 'at', i.keep_leadership_events, n);
    RETURN QUERY SELECT 'ok', 'fence_rejection', reports.prune_head('fence_rejection', 'at', i.keep_fence_rejections, n);
    RETURN QUERY SELECT 'ok', 'member_clock', reports.prune_head('member_clock', 'at', i.keep_member_clocks, n);
    RETURN QUERY SELECT 'ok', 'request', reports.prune_requests(i.keep_requests, n);
    RETURN QUERY SELECT 'ok', 'worker', reports.prune_workers(i.keep_workers, n);
    RETURN QUERY SELECT 'ok', 'outbox_dead', reports.prune_dead_messages(p_scope, i.keep_dead_messages, n);
END
$$;
COMMENT ON FUNCTION reports.prune(text, bigint, bigint, uuid, integer) IS 'One bounded round of retention over all tables, as installation.keep_* says.';

CREATE FUNCTION reports.prune_requests(p_keep interval, p_limit integer) RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    pruned integer;
BEGIN
    PERFORM reports.prune_backfills(p_keep, p_limit);
    DELETE FROM reports.request r
     WHERE r.id = ANY (ARRAY(SELECT q.id FROM reports.request q
                              WHERE q.state <> 'pending' AND q.answered_at < (SELECT clock_timestamp() - p_keep)
                                AND NOT EXISTS (SELECT FROM reports.backfill_firing f WHERE f.request = q.id OFFSET 0)
                              ORDER BY q.answered_at LIMIT p_limit FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS pruned = ROW_COUNT;
    DELETE FROM reports.handoff h WHERE pruned > 0 AND NOT EXISTS (SELECT FROM reports.request r WHERE r.id = h.request);
    RETURN pruned;
END
$$;
COMMENT ON FUNCTION reports.prune_requests(interval, integer) IS 'Forgets the oldest answered requests.';

CREATE FUNCTION reports.prune_workers(p_keep interval, p_limit integer) RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    pruned integer;
BEGIN
    -- A worker that was killed never said that it ended: its silence counts from its last heartbeat.
    DELETE FROM reports.worker w
     WHERE w.id = ANY (ARRAY(SELECT q.id FROM reports.worker q
                              WHERE greatest(q.heartbeat_at, q.stopped_at) < clock_timestamp() - p_keep
                                AND NOT EXISTS (SELECT FROM reports.job j WHERE j.state = 'running' AND j.worker = q.id)
                              ORDER BY q.heartbeat_at LIMIT p_limit FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS pruned = ROW_COUNT;
    RETURN pruned;
END
$$;
COMMENT ON FUNCTION reports.prune_workers(interval, integer) IS 'Forgets worker incarnations that have long ended.';

CREATE FUNCTION reports.prune_dead_messages(p_scope text, p_keep interval, p_limit integer) RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    pruned integer;
BEGIN
    WITH head AS MATERIALIZED (
        SELECT o.id, o.buried_at FROM reports.outbox_dead o WHERE o.scope = p_scope ORDER BY o.id LIMIT p_limit
    )
    DELETE FROM reports.outbox_dead o
     WHERE o.scope = p_scope AND o.id = ANY (ARRAY(SELECT h.id FROM head h WHERE h.buried_at < clock_timestamp() - p_keep));
    GET DIAGNOSTICS pruned = ROW_COUNT;
    RETURN pruned;
END
$$;
COMMENT ON FUNCTION reports.prune_dead_messages(text, interval, integer) IS 'Forgets the oldest messages that could not be published.';

GRANT EXECUTE ON FUNCTION reports.prune(text, bigint, bigint, uuid, integer) TO report_scheduler;

RESET ROLE;
