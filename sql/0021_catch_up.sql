-- Catching up, for people: what of the missed firings waits and how long it will take by the budget (which
-- release_waiting in 0006_tending.sql keeps), and the request that gives up what waits. A firing given up has
-- its occurrence and keeps it, so that it lies in no gap (I3): its job is cancelled, and what was given up, by
-- whom and why stands in a record that is never forgotten.

SET ROLE report_owner;

CREATE TABLE reports.catch_up_discard (
    request uuid NOT NULL,
    schedule reports.name NOT NULL,
    scope reports.name NOT NULL,
    from_fire_at timestamptz NOT NULL,
    to_fire_at timestamptz NOT NULL,
    from_key text NOT NULL,
    to_key text NOT NULL,
    firings bigint NOT NULL CHECK (firings > 0),
    reason text NOT NULL DEFAULT 'catchup_discarded',
    discarded_by text NOT NULL,
    why text NOT NULL,
    incarnation bigint NOT NULL,
    generation bigint NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (schedule, request)
);
COMMENT ON TABLE reports.catch_up_discard IS 'Missed firings of a schedule that waited to be caught up with and were given up by request. Kept for ever.';
COMMENT ON COLUMN reports.catch_up_discard.request IS 'The request.';
COMMENT ON COLUMN reports.catch_up_discard.schedule IS 'The schedule.';
COMMENT ON COLUMN reports.catch_up_discard.scope IS 'Its scope.';
COMMENT ON COLUMN reports.catch_up_discard.from_fire_at IS 'The first of them; others between the first and the last may have run.';
COMMENT ON COLUMN reports.catch_up_discard.to_fire_at IS 'The last.';
COMMENT ON COLUMN reports.catch_up_discard.from_key IS 'Key of the first.';
COMMENT ON COLUMN reports.catch_up_discard.to_key IS 'Key of the last.';
COMMENT ON COLUMN reports.catch_up_discard.firings IS 'How many.';
COMMENT ON COLUMN reports.catch_up_discard.reason IS 'catchup_discarded, as in the error of the jobs.';
COMMENT ON COLUMN reports.catch_up_discard.discarded_by IS 'Login role that asked.';
COMMENT ON COLUMN reports.catch_up_discard.why IS 'What it said.';
COMMENT ON COLUMN reports.catch_up_discard.incarnation IS 'Of the leader that wrote it.';
COMMENT ON COLUMN reports.catch_up_discard.generation IS 'Of the leader that wrote it.';
COMMENT ON COLUMN reports.catch_up_discard.recorded_at IS 'When.';

-- What of the missed firings waits. Jobs of a backfill wait with them, and were asked for by name.
CREATE FUNCTION reports.missed_waiting(p_scope text, p_schedule text, p_queue text, p_before timestamptz, p_limit integer)
RETURNS TABLE (id uuid, schedule text, queue text, occurrence_key text, scheduled_for timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
    SELECT j.id, j.schedule, j.queue, j.occurrence_key, o.scheduled_for
      FROM reports.job j
     CROSS JOIN LATERAL (SELECT x.scheduled_for, x.cause FROM reports.occurrence x
                          WHERE x.schedule = j.schedule AND x.occurrence_key = j.occurrence_key OFFSET 0) o
     WHERE j.scope = p_scope AND j.state = 'waiting' AND j.catch_up AND o.cause = 'misfire'
       AND (p_schedule IS NULL OR j.schedule = p_schedule) AND (p_queue IS NULL OR j.queue = p_queue)
       AND (p_before IS NULL OR o.scheduled_for < p_before)
     LIMIT p_limit
$$;
COMMENT ON FUNCTION reports.missed_waiting(text, text, text, timestamptz, integer) IS 'Jobs of missed firings that wait, of a schedule or in a queue (NULL: of all), due before an instant (NULL: all); in no order.';

-- SCHEDULE, or queue:QUEUE@SCOPE; "all: WHY" or "before INSTANT: WHY".
CREATE FUNCTION reports.discard_meant(p_subject text, p_argument text, OUT its_schedule text, OUT its_queue text, OUT its_scope text,
                                      OUT its_before timestamptz, OUT why text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    place text[] := regexp_match(p_subject, '^queue:([^@]+)@(.+)$');
    words text[] := regexp_match(p_argument, '^(?:all|before (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d))): (.*\S.*)$');
BEGIN
    its_queue := place[1];
    its_scope := place[2];
    IF place IS NULL THEN
        its_schedule := p_subject;
        its_scope := (SELECT s.scope FROM reports.schedule s WHERE s.name = p_subject);
        -- Of a deleted one what was missed may wait all the same.
        its_scope := coalesce(its_scope, (SELECT p.scope FROM reports.schedule_progress p WHERE p.schedule = p_subject));
    END IF;
    why := words[2];
    its_before := words[1]::timestamptz;
EXCEPTION WHEN data_exception THEN
    why := NULL;
END
$$;
COMMENT ON FUNCTION reports.discard_meant(text, text) IS 'What a request of the kind discard means; why NULL: its argument is none.';

CREATE FUNCTION reports.check_discard(p_subject text, p_argument text) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    meant record;
BEGIN
    SELECT * INTO meant FROM reports.discard_meant(p_subject, p_argument);
    IF meant.its_schedule IS NOT NULL AND meant.its_scope IS NULL THEN
        RAISE EXCEPTION 'schedule "%" does not exist', p_subject
            USING ERRCODE = 'no_data_found', HINT = 'reportctl schedules lists them.';
    ELSIF NOT EXISTS (SELECT FROM reports.fence f WHERE f.scope = meant.its_scope) THEN
        RAISE EXCEPTION 'scope "%" does not exist', meant.its_scope
            USING ERRCODE = 'no_data_found', HINT = 'reportctl status lists the scopes.';
    ELSIF meant.why IS NULL THEN
        RAISE EXCEPTION 'a discard says what is meant and why, and % does not', coalesce(quote_literal(p_argument), 'NULL')
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Write "all: why" or "before 2030-04-12T06:00:00Z: why", or use reportctl catchup discard.';
    END IF;
    RETURN meant.its_scope;
END
$$;
COMMENT ON FUNCTION reports.check_discard(text, text) IS 'Refuses a discard that cannot be carried out, with the remedy; returns the scope.';

-- At most 5000 in one transaction. A job that another session holds stays.
CREATE FUNCTION reports.carry_out_discard(p_asked reports.request, p_incarnation bigint, p_generation bigint,
                                          OUT new_state text, OUT its_answer text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
    meant record;
    locked uuid[];
    counts record;
    some_remain boolean;
BEGIN
    SELECT * INTO meant FROM reports.discard_meant(p_asked.subject, p_asked.argument);
    locked := ARRAY(SELECT j.id FROM reports.job j
                     WHERE j.id = ANY (ARRAY(SELECT w.id FROM reports.missed_waiting(p_asked.scope, meant.its_schedule, meant.its_queue, meant.its_before, 5000) w))
                       AND j.state::text = 'waiting'
                     ORDER BY j.id FOR UPDATE SKIP LOCKED);
    WITH ended AS (
        UPDATE reports.job j
           SET state = 'cancelled', waits_for = NULL, finished_at = clock_timestamp(),
               error = format('catchup_discarded by %s: %s', p_asked.requested_by, meant.why)
         WHERE j.id = ANY (locked) AND j.state::text = 'waiting'
        RETURNING j.schedule, j.occurrence_key
    ), firing AS MATERIALIZED (
        SELECT e.schedule, e.occurrence_key, o.scheduled_for
          FROM ended e
         CROSS JOIN LATERAL (SELECT x.scheduled_for FROM reports.occurrence x
                              WHERE x.schedule = e.schedule AND x.occurrence_key = e.occurrence_key OFFSET 0) o
    ), written AS (
        INSERT INTO reports.catch_up_discard
            (request, schedule, scope, from_fire_at, to_fire_at, from_key, to_key, firings, discarded_by, why, incarnation, generation)
        SELECT p_asked.id, f.schedule, p_asked.scope, min(f.scheduled_for), max(f.scheduled_for),
               (array_agg(f.occurrence_key ORDER BY f.scheduled_for, f.occurrence_key))[1],
               (array_agg(f.occurrence_key ORDER BY f.scheduled_for DESC, f.occurrence_key DESC))[1], count(*),
               p_asked.requested_by, meant.why, p_incarnation, p_generation
          FROM firing f GROUP BY f.schedule
        RETURNING firings
    )
    SELECT coalesce(sum(w.firings), 0) AS firings, count(*) AS schedules INTO counts FROM written w;
    some_remain := EXISTS (SELECT FROM reports.missed_waiting(p_asked.scope, meant.its_schedule, meant.its_queue, meant.its_before, 1));
    new_state := 'done';
    its_answer := CASE WHEN counts.firings = 0 AND NOT some_remain THEN 'no such missed firing waits'
                       ELSE format('%s missed firing(s) of %s schedule(s) discarded', counts.firings, counts.schedules) END
        || CASE WHEN some_remain THEN '; more of them wait: ask again, with a fresh request id' ELSE '' END;
    -- What waited behind them may go on.
    IF counts.firings > 0 AND NOT reports.is_held(p_asked.scope) THEN
        PERFORM reports.release_waiting(p_asked.scope, p_generation, 1000);
    END IF;
END
$$;
COMMENT ON FUNCTION reports.carry_out_discard(reports.request, bigint, bigint) IS 'Cancels the jobs of missed firings that wait, and records that they were given up.';

-- For people ----------------------------------------------------------------------------------

CREATE VIEW reports.v_catch_up AS
SELECT x.scope, x.schedule, x.queue, count(*) AS waiting, count(*) FILTER (WHERE o.cause = 'backfill') AS backfill,
       min(o.scheduled_for) AS oldest_at, max(o.scheduled_for) AS newest_at, sum(count(*)) OVER () >= 100000 AS capped
  FROM (SELECT j.scope, j.schedule, j.queue, j.occurrence_key FROM reports.job j
         WHERE j.state = 'waiting' AND j.catch_up LIMIT 100000) x
 CROSS JOIN LATERAL (SELECT y.scheduled_for, y.cause FROM reports.occurrence y
                      WHERE y.schedule = x.schedule AND y.occurrence_key = x.occurrence_key OFFSET 0) o
 GROUP BY x.scope, x.schedule, x.queue;
COMMENT ON VIEW reports.v_catch_up IS 'Missed firings and firings of backfills that wait to be caught up with, by schedule and queue; counting stops at 100 000 (capped).';
COMMENT ON COLUMN reports.v_catch_up.backfill IS 'How many of those that wait are of backfills.';

CREATE VIEW reports.v_catch_up_scope AS
SELECT s.name AS scope, waiting.jobs AS waiting, waiting.jobs = 100000 AS capped, going.jobs AS outstanding, s.catch_up_max,
       s.catch_up_per_minute, s.catch_up_order, used.jobs AS released_last_minute, held.now AS held,
       statement_timestamp() + rate.part * interval '1 minute' AS expected_end_at
  FROM reports.scope s
 CROSS JOIN LATERAL (SELECT count(*) AS jobs FROM (SELECT FROM reports.job j
                                                    WHERE j.scope = s.name AND j.state = 'waiting' AND j.catch_up LIMIT 100000) x) waiting
 CROSS JOIN LATERAL (SELECT count(*) AS jobs FROM (SELECT FROM reports.job j
                                                    WHERE j.scope = s.name AND j.catch_up AND j.state IN ('queued', 'running') LIMIT 100000) x) going
 CROSS JOIN LATERAL (SELECT coalesce(sum(r.jobs), 0) AS jobs FROM reports.catch_up_release r
                      WHERE r.scope = s.name AND r.second > statement_timestamp() - interval '61 seconds') used
 CROSS JOIN LATERAL (SELECT EXISTS (SELECT FROM reports.v_hold h WHERE h.kind = 'installation' OR h.scope = s.name) AS now) held
 CROSS JOIN LATERAL (SELECT CASE WHEN waiting.jobs > 0 AND NOT held.now
                                 THEN waiting.jobs::float8 / least(s.catch_up_per_minute, coalesce(nullif(used.jobs, 0), s.catch_up_per_minute)) END AS part) rate;
COMMENT ON VIEW reports.v_catch_up_scope IS 'How each scope catches up: what waits, its budget, and when it will be done. Counting stops at 100 000 (capped).';
COMMENT ON COLUMN reports.v_catch_up_scope.outstanding IS 'Those that were released and are not done, which catch_up_max bounds.';
COMMENT ON COLUMN reports.v_catch_up_scope.held IS 'A hold stands: nothing is released.';
COMMENT ON COLUMN reports.v_catch_up_scope.expected_end_at IS 'When the last of what waits is released at the rate of the last minute, or, when that had none, of catch_up_per_minute; NULL: that cannot be said.';

CREATE VIEW reports.v_catch_up_queue AS
SELECT w.scope, w.queue, w.waiting, w.capped, q.max_outstanding, q.catch_up_per_minute, coalesce(q.catch_up_order, s.catch_up_order) AS catch_up_order,
       used.jobs AS released_last_minute, w.oldest_at,
       CASE WHEN NOT s.held
            THEN greatest(s.expected_end_at,
                          statement_timestamp() + w.waiting::float8 / least(q.catch_up_per_minute, coalesce(nullif(used.jobs, 0), q.catch_up_per_minute))
                                                  * interval '1 minute') END AS expected_end_at
  FROM (SELECT c.scope, c.queue, sum(c.waiting) AS waiting, bool_or(c.capped) AS capped, min(c.oldest_at) AS oldest_at
          FROM reports.v_catch_up c GROUP BY c.scope, c.queue) w
  JOIN reports.v_catch_up_scope s ON s.scope = w.scope
  LEFT JOIN reports.queue q ON q.name = w.queue
 CROSS JOIN LATERAL (SELECT coalesce(sum(r.jobs), 0) AS jobs FROM reports.catch_up_release r
                      WHERE r.scope = w.scope AND r.queue = w.queue AND r.second > statement_timestamp() - interval '61 seconds') used;
COMMENT ON VIEW reports.v_catch_up_queue IS 'The same by queue, for those in which something waits.';
COMMENT ON COLUMN reports.v_catch_up_queue.catch_up_order IS 'What goes first, by the queue or else by its scope.';
COMMENT ON COLUMN reports.v_catch_up_queue.expected_end_at IS 'At the latest: by the rate of the queue, and by that of the scope.';

CREATE VIEW reports.v_catch_up_discard AS
SELECT d.schedule, d.scope, d.from_fire_at, d.to_fire_at, d.from_key, d.to_key, d.firings, d.reason, d.discarded_by, d.why, d.recorded_at, d.request
  FROM reports.catch_up_discard d;
COMMENT ON VIEW reports.v_catch_up_discard IS 'Missed firings that were given up by request, as ranges; each has its occurrence, whose job is cancelled.';

GRANT EXECUTE ON FUNCTION reports.missed_waiting(text, text, text, timestamptz, integer) TO report_reader;

RESET ROLE;
