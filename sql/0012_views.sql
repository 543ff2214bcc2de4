-- Readable views: what `reportctl` shows, for psql and dashboards too.
--
-- Each is cheap on big tables: a list that is ordered by its key and limited reads that many index
-- entries; a count of something that may be large stops at a bound and says so (`capped`). The
-- ledger of occurrences is kept for ever, so nothing here reads all of it. Views run with the rights
-- of their owner: readers need no right on the tables below. People may read them by the default
-- privileges of 0008. They say statement_timestamp(), never clock_timestamp(): a volatile function
-- would keep the planner from looking into a view, and a limited list would read everything.

SET ROLE report_owner;

-- Nearly free to write: failures are few. Lists of them and the night's overview read it.
CREATE INDEX job_ended_badly ON reports.job (id) WHERE state IN ('failed', 'cancelled', 'quarantined');
-- The ledger is written in the order of time, so block ranges find a time span; a B-tree would cost
-- every firing, this costs one small entry a few hundred kilobytes.
CREATE INDEX occurrence_scheduled_for ON reports.occurrence
    USING brin (scheduled_for) WITH (pages_per_range = 32, autosummarize = on);

CREATE FUNCTION reports.job_id_floor(p_at timestamptz) RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    -- None is older than 1970, and the digits of a negative number would be those of the latest.
    SELECT (lpad(to_hex(greatest(floor(extract(epoch FROM p_at) * 1000)::bigint, 0)), 12, '0') || '70008000000000000000')::uuid
$$;
COMMENT ON FUNCTION reports.job_id_floor(timestamptz) IS
    'The smallest job id made at or after an instant: ids are time-ordered (UUIDv7), so the primary key finds recent jobs.';

-- Scopes and their leaders --------------------------------------------------------------------

CREATE VIEW reports.v_leader AS
SELECT f.scope,
       CASE WHEN f.generation = 0 AND f.incarnation = 0 THEN 'never led' -- 0 of a later one: rebased
            WHEN f.released_at IS NOT NULL THEN 'no leader'
            WHEN f.activated_at IS NULL THEN 'preparing'
            -- Four beats of an idle leader, which beats every 5 seconds, a busy one every second: TEND_IDLE_MS and
            -- TEND_MS in scheduler/planning/planning.c. The comment on the column says the same number.
            WHEN p.beat_at < statement_timestamp() - interval '20 seconds' THEN 'silent'
            ELSE 'active' END AS state,
       CASE WHEN f.released_at IS NULL THEN f.member END AS leader,
       f.incarnation, f.generation,
       coalesce(f.released_at, f.activated_at, f.established_at) AS since_at,
       CASE WHEN p.beat_at > '-infinity' THEN p.beat_at END AS beat_at,
       f.established_at, f.activated_at, f.released_at, f.release_reason,
       EXISTS (SELECT FROM reports.v_hold h WHERE h.queue IS NULL AND (h.scope IS NULL OR h.scope = f.scope)) AS held
  FROM reports.fence f
  LEFT JOIN reports.fence_pulse p ON p.scope = f.scope;
COMMENT ON VIEW reports.v_leader IS 'Who leads each scope: state, accepted generation, since when, last sign of life.';
COMMENT ON COLUMN reports.v_leader.state IS 'active; preparing; silent (no sign of life for 20 s, four beats of an idle leader); no leader (released); never led.';
COMMENT ON COLUMN reports.v_leader.since_at IS 'Since when the state is what it is (silent: since when it had been active).';
-- The replicas ask it where a request over HTTP has to go.
GRANT SELECT ON reports.v_leader TO report_scheduler;

CREATE VIEW reports.v_fence AS
SELECT f.scope, l.state, f.incarnation, f.generation, f.owner, f.member, f.url, f.established_at, f.activated_at, f.released_at,
       f.release_reason, l.beat_at, f.mark, reports.time_of_job(f.mark) AS mark_at, f.server_id, f.timeline, f.server_started_at,
       EXISTS (SELECT FROM reports.v_moved_scope m WHERE m.scope = f.scope) AS moved,
       (SELECT string_agg(h.id || CASE WHEN h.cause <> 'operator' THEN ' ' || h.cause ELSE '' END, ', ' ORDER BY h.id) FROM reports.v_hold h
         WHERE h.queue IS NULL AND (h.scope IS NULL OR h.scope = f.scope)) AS holds
  FROM reports.fence f JOIN reports.v_leader l ON l.scope = f.scope;
COMMENT ON VIEW reports.v_fence IS 'The fence rows as they stand: who is accepted, on which server, and what forbids the work.';
COMMENT ON COLUMN reports.v_fence.moved IS 'No leader has looked at this server yet: nothing of the scope is claimed or sent.';

-- What reportctl fence audit prints. SECURITY DEFINER: the start of another role's session is its owner's to see.
CREATE FUNCTION reports.fence_audit(p_since interval) RETURNS TABLE (verdict text, finding text, scope text, times bigint, detail text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY
    SELECT 'wrong', 'a generation was established that is not above the one before', e.scope::text, 1::bigint,
           format('%s of incarnation %s by member %s at %s, after %s of %s', e.generation, e.incarnation, e.member,
                  to_char(e.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), e.generation_before, e.incarnation_before)
      FROM (SELECT x.*, lag(x.incarnation) OVER w AS incarnation_before, lag(x.generation) OVER w AS generation_before
              FROM reports.leadership_event x WHERE x.event = 'established' WINDOW w AS (PARTITION BY x.scope ORDER BY x.id)) e
     WHERE (e.incarnation, e.generation) <= (e.incarnation_before, e.generation_before)
    UNION ALL
    SELECT 'wrong', 'the fence row is below what the diary says was established', f.scope::text, 1::bigint,
           format('%s of incarnation %s, while %s of %s was established', f.generation, f.incarnation, e.generation, e.incarnation)
      FROM reports.fence f
     CROSS JOIN LATERAL (SELECT x.incarnation, x.generation FROM reports.leadership_event x
                          WHERE x.scope = f.scope AND x.event = 'established' ORDER BY x.incarnation DESC, x.generation DESC LIMIT 1) e
     WHERE (f.incarnation, f.generation) < (e.incarnation, e.generation)
    UNION ALL
    SELECT 'wrong', 'the scope has no fence row', s.name::text, 1::bigint, 'nothing can be written for it'
      FROM reports.scope s WHERE NOT EXISTS (SELECT FROM reports.fence f WHERE f.scope = s.name)
    UNION ALL
    SELECT 'wrong', 'the fence row is of an incarnation that no ensemble has', f.scope::text, 1::bigint, format('incarnation %s', f.incarnation)
      FROM reports.fence f WHERE f.incarnation > coalesce((SELECT max(e.incarnation) FROM reports.ensemble e), 0)
    UNION ALL
    SELECT 'look', 'sessions of former leaders are still connected; what they write is refused', b.scope::text, count(*),
           string_agg(format('pid %s (%s, generation %s)', b.pid, b.purpose, b.generation), ', ' ORDER BY b.pid)
      FROM reports.backend b
      JOIN pg_stat_activity a ON a.pid = b.pid AND a.backend_start = b.backend_start
      JOIN reports.fence f ON f.scope = b.scope
     WHERE (b.incarnation, b.generation) < (f.incarnation, f.generation)
     GROUP BY b.scope
    UNION ALL
    SELECT 'look', 'writes of former leaders were refused', r.scope::text, count(*),
           format('%s, by %s, last at %s', r.operation, coalesce(r.member, r.application_name),
                  to_char(max(r.at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
      FROM (SELECT x.scope, x.operation, x.application_name, x.at,
                   (SELECT e.member FROM reports.leadership_event e
                     WHERE e.scope = x.scope AND e.event = 'established' AND e.incarnation = x.incarnation AND e.generation = x.generation
                     ORDER BY e.id DESC LIMIT 1) AS member
              FROM (SELECT * FROM reports.fence_rejection y ORDER BY y.id DESC LIMIT 10000) x
             WHERE x.at > clock_timestamp() - p_since) r
     GROUP BY r.scope, r.operation, coalesce(r.member, r.application_name)
    UNION ALL
    SELECT 'look', 'a guard holds the scope', h.scope::text, 1::bigint, format('hold %s, %s: %s', h.id, h.cause, h.reason)
      FROM reports.v_hold h WHERE h.cause <> 'operator'
    UNION ALL
    SELECT 'look', 'no leader has looked at this server', m.scope::text, 1::bigint, 'nothing of the scope is claimed or sent'
      FROM reports.v_moved_scope m
    UNION ALL
    SELECT 'look', CASE WHEN r.installation IS NULL THEN 'a ZooKeeper ensemble was refused' ELSE 'a zookeeper_root of another installation was refused' END,
           NULL, count(*), format('%s, met by %s', coalesce('installation ' || r.installation, r.id), string_agg(r.member, ', ' ORDER BY r.member))
      FROM reports.ensemble_refused r WHERE r.last_at > clock_timestamp() - p_since
     GROUP BY r.id, r.installation;
END
$$;
COMMENT ON FUNCTION reports.fence_audit(interval) IS 'What is wrong with authority (verdict wrong: must never be) or worth a look; refused writes of the last p_since, of the last 10 000.';

CREATE VIEW reports.v_scope AS
SELECT l.*,
       due.next_fire_at,
       greatest(extract(epoch FROM statement_timestamp() - due.next_fire_at), 0)::numeric(20, 3) AS due_lag_s,
       (SELECT count(*) FROM (SELECT FROM reports.schedule_progress p
                               WHERE p.scope = l.scope AND p.next_fire_at IS NOT NULL LIMIT 100000) x) AS schedules,
       (SELECT count(*) FROM (SELECT FROM reports.schedule_progress p
                               WHERE p.scope = l.scope AND p.problem IS NOT NULL LIMIT 1000) x) AS problems,
       (SELECT count(*) FROM (SELECT FROM reports.schedule s WHERE s.scope = l.scope AND s.paused LIMIT 1000) x) AS paused,
       (SELECT count(*) FROM (SELECT FROM reports.schedule_change c
                               WHERE c.scope = l.scope AND (NOT c.announced OR c.made_at <= statement_timestamp()) LIMIT 1000) x) AS changes_waiting,
       (SELECT count(*) FROM (SELECT FROM reports.request r
                               WHERE r.scope = l.scope AND r.state = 'pending' AND r.deadline >= statement_timestamp()
                               LIMIT 1000) x) AS requests_waiting,
       (SELECT count(*) FROM (SELECT r.at FROM reports.fence_rejection r
                               WHERE r.scope = l.scope ORDER BY r.id DESC LIMIT 1000) x
         WHERE x.at > statement_timestamp() - interval '1 day') AS refused_writes
  FROM reports.v_leader l
  LEFT JOIN LATERAL (SELECT p.next_fire_at FROM reports.schedule_progress p
                      WHERE p.scope = l.scope AND p.next_fire_at IS NOT NULL
                      ORDER BY p.next_fire_at LIMIT 1) due ON true;
COMMENT ON VIEW reports.v_scope IS 'v_leader and what waits in each scope.';
COMMENT ON COLUMN reports.v_scope.due_lag_s IS 'How long the oldest due firing has waited to be planned; 0: nothing is late.';
COMMENT ON COLUMN reports.v_scope.schedules IS 'Schedules with a next firing; counting stops at 100 000.';
COMMENT ON COLUMN reports.v_scope.paused IS 'Paused schedules; counting stops at 1000.';
COMMENT ON COLUMN reports.v_scope.changes_waiting IS 'Edits the leader has not taken in; counting stops at 1000.';
COMMENT ON COLUMN reports.v_scope.requests_waiting IS 'Requests that may still be carried out; counting stops at 1000.';
COMMENT ON COLUMN reports.v_scope.refused_writes IS 'Writes of former leaders refused within a day, of the last 1000.';

-- Only the replicas that serve a scope observe it: of one that no replica serves those of the others tell.
CREATE VIEW reports.v_unserved_scope AS
SELECT l.scope, l.state, CASE l.state WHEN 'never led' THEN edit.made_at ELSE l.leaderless_at END AS since_at
  FROM (SELECT v.scope, v.state, v.held, greatest(v.beat_at, v.since_at) AS leaderless_at FROM reports.v_leader v) l
  LEFT JOIN LATERAL (SELECT c.made_at FROM reports.schedule_change c
                      WHERE c.scope = l.scope AND (NOT c.announced OR c.made_at <= statement_timestamp()) ORDER BY c.id LIMIT 1) edit ON true
 WHERE l.state <> 'active' AND NOT l.held
   AND CASE WHEN l.state = 'never led' THEN edit.made_at < statement_timestamp() - interval '1 minute'
            -- A takeover is over long before.
            ELSE l.leaderless_at < statement_timestamp() - interval '5 minutes'
                 AND (edit.made_at < statement_timestamp() - interval '5 minutes'
                      OR EXISTS (SELECT FROM reports.schedule_progress p
                                  WHERE p.scope = l.scope AND p.next_fire_at < statement_timestamp() - interval '5 minutes')) END;
COMMENT ON VIEW reports.v_unserved_scope IS 'Scopes that have something to do, schedules to take in or firings that are due, and that nobody has led for minutes, as when no scheduler.conf names them.';
COMMENT ON COLUMN reports.v_unserved_scope.since_at IS 'Since when nobody has led it; never led: since its oldest edit.';

CREATE VIEW reports.v_leadership_event AS
SELECT e.id, e.at, e.scope, e.event, e.member, e.reason, e.detail, e.incarnation, e.generation
  FROM reports.leadership_event e;
COMMENT ON VIEW reports.v_leadership_event IS 'Diary of leadership; order by id.';

CREATE VIEW reports.v_fence_rejection AS
SELECT r.id, r.at, r.scope, r.operation, r.generation, r.stored_generation, r.incarnation, r.stored_incarnation,
       r.application_name
  FROM reports.fence_rejection r;
COMMENT ON VIEW reports.v_fence_rejection IS 'Refused writes of former leaders; order by id.';

-- Schedules -----------------------------------------------------------------------------------

-- Is there a schedule that names the queue?
CREATE INDEX schedule_queue ON reports.schedule (queue) WHERE NOT paused;
-- Among a million schedules the paused ones are few.
CREATE INDEX schedule_paused ON reports.schedule (name) WHERE paused;

CREATE VIEW reports.v_schedule AS
SELECT s.name, s.scope, s.report, s.description, s.kind, s.rule, s.time_zone, s.queue, s.priority, s.owner,
       s.paused, pause.effective_from AS paused_since_at, pause.change_reason AS pause_reason, s.paused_until, p.version, p.next_fire_at,
       s.breaker_failures, s.breaker_probe,
       CASE WHEN p.circuit_opened_at IS NULL OR s.breaker_failures IS NULL THEN NULL
            WHEN p.circuit_probe_job IS NOT NULL THEN 'probing' ELSE 'open' END AS circuit,
       p.circuit_opened_at AS circuit_opened_at, p.circuit_probe_at AS circuit_probe_at, p.circuit_probe_job, p.circuit_failures,
       CASE WHEN p.next_fire_at IS NOT NULL THEN p.next_nominal END AS next_nominal, p.last_fire_at, p.last_nominal,
       last.occurrence_key AS last_key, last.state AS last_state,
       CASE WHEN p.problem IS NOT NULL THEN p.problem
            WHEN p.schedule IS NULL AND change.made_at < statement_timestamp() - interval '5 seconds'
                 THEN 'unchecked: no leader has taken it in yet'
            WHEN change.made_at < statement_timestamp() - interval '5 seconds'
                 THEN 'its last edit is unchecked: no leader has taken it in yet' END AS problem,
       CASE WHEN p.problem IS NOT NULL THEN p.problem_since
            WHEN change.made_at < statement_timestamp() - interval '5 seconds' THEN change.made_at END AS problem_since_at
  FROM reports.schedule s
  LEFT JOIN reports.schedule_progress p ON p.schedule = s.name
  LEFT JOIN LATERAL (SELECT min(c.made_at) AS made_at FROM reports.schedule_change c
                      WHERE c.scope = s.scope AND c.schedule = s.name) change ON true
  -- The first of the paused versions it has had since it last ran.
  LEFT JOIN LATERAL (
        SELECT v.effective_from, v.change_reason FROM reports.schedule_version v
         WHERE s.paused AND v.schedule = s.name AND v.paused
           AND v.version > (SELECT coalesce(max(w.version), 0) FROM reports.schedule_version w
                             WHERE w.schedule = s.name AND (w.ended OR NOT w.paused))
         ORDER BY v.version LIMIT 1) pause ON true
  -- The key of the last firing in each form it may have, so that the ledger is read by its key.
  LEFT JOIN LATERAL (
        SELECT o.occurrence_key, j.state
          FROM reports.occurrence o LEFT JOIN reports.job j ON j.id = o.job_id
         WHERE o.schedule = p.schedule
           AND o.occurrence_key = ANY (ARRAY[
                 to_char(p.last_nominal, 'YYYY-MM-DD'),
                 to_char(p.last_nominal, 'YYYY-MM-DD') || reports.offset_text(p.last_offset_s),
                 to_char(p.last_nominal, 'YYYY-MM-DD"T"HH24:MI'),
                 to_char(p.last_nominal, 'YYYY-MM-DD"T"HH24:MI:SS'),
                 to_char(p.last_nominal, 'YYYY-MM-DD"T"HH24:MI') || reports.offset_text(p.last_offset_s),
                 to_char(p.last_nominal, 'YYYY-MM-DD"T"HH24:MI:SS') || reports.offset_text(p.last_offset_s),
                 to_char(p.last_nominal - make_interval(secs => p.last_offset_s), 'YYYY-MM-DD"T"HH24:MI"Z"'),
                 to_char(p.last_nominal - make_interval(secs => p.last_offset_s), 'YYYY-MM-DD"T"HH24:MI:SS"Z"')])
           AND o.scheduled_for = p.last_fire_at
         LIMIT 1) last ON true;
COMMENT ON VIEW reports.v_schedule IS 'Each schedule with its next and last firing and what is wrong with it.';
COMMENT ON COLUMN reports.v_schedule.paused_since_at IS 'The instant from which nothing of it fires; NULL: it is not paused.';
COMMENT ON COLUMN reports.v_schedule.paused_until IS 'When it goes on by itself; NULL: when somebody lets it.';
COMMENT ON COLUMN reports.v_schedule.circuit IS 'open: its firings are not run; probing: nor are they, but for one that runs now; NULL: they are.';
COMMENT ON COLUMN reports.v_schedule.next_nominal IS 'Local time of the next firing in the schedule''s zone.';
COMMENT ON COLUMN reports.v_schedule.last_state IS 'State of the last firing''s job; NULL: it lies in a gap, or nothing has fired.';

CREATE VIEW reports.v_schedule_version AS
SELECT v.schedule, v.version, v.effective_from, v.recorded_at, v.recorded_by, v.ended, v.kind, v.rule, v.time_zone,
       v.report, v.queue, v.priority, v.overlap, v.max_attempts, v.timeout, v.parameters,
       p.version IS NOT NULL AS in_force, v.paused, v.change_reason, v.dialect, p.rule_std, v.paused_until
  FROM reports.schedule_version v
  LEFT JOIN reports.schedule_progress p ON p.schedule = v.schedule AND p.version = v.version;
COMMENT ON VIEW reports.v_schedule_version IS 'All definitions a schedule has had; in_force: the one that is being planned.';

CREATE VIEW reports.v_gap AS
SELECT g.id, g.schedule, g.scope, g.from_fire_at, g.to_fire_at, g.from_key, g.to_key, g.firings, g.reason, g.version,
       g.recorded_at
  FROM reports.schedule_gap g;
COMMENT ON VIEW reports.v_gap IS 'Due firings that were not run, as ranges, with the reason.';

-- Occurrences and jobs ------------------------------------------------------------------------

CREATE VIEW reports.v_occurrence AS
SELECT o.schedule, o.occurrence_key, o.scope, o.scheduled_for, o.nominal_local, o.offset_s, o.business_date, o.cause,
       o.version, o.generation, o.planned_at, o.request_id, o.job_id,
       extract(epoch FROM o.planned_at - o.scheduled_for)::numeric(20, 3) AS planned_after_s,
       j.state, j.attempt, j.finished_at, j.error
  FROM reports.occurrence o
  LEFT JOIN reports.job j ON j.id = o.job_id;
COMMENT ON VIEW reports.v_occurrence IS 'Each firing with what became of it.';
COMMENT ON COLUMN reports.v_occurrence.planned_after_s IS 'Seconds from due to durable.';

CREATE VIEW reports.v_job AS
SELECT j.id, j.schedule, j.occurrence_key, j.scope, j.revision, j.report, j.queue, j.priority, j.state, j.waits_for,
       j.overlap, j.catch_up, j.run_after,
       j.attempt, j.handed_back, j.max_attempts, j.created_at, j.claimed_at, j.finished_at, j.lease_until,
       j.cancel_requested, j.dispatch_number, j.error, j.worker AS worker_id, w.name AS worker, j.timeout,
       j.retry_base, j.retry_cap,
       o.scheduled_for, o.nominal_local, o.offset_s, o.business_date, o.window_start, o.window_end, o.cause, o.version,
       o.incarnation, o.generation, o.planned_at,
       CASE WHEN j.waits_for IS NULL THEN NULL
            WHEN EXISTS (SELECT FROM reports.v_hold h WHERE h.kind = 'installation' OR h.scope = j.scope)
                 THEN 'the end of a hold: reportctl holds'
            WHEN j.waits_for = 'overlap' THEN coalesce(
                 -- As reports.give_turns has it: the one that is active, otherwise those before it.
                 (SELECT format('job %s:%s, which is %s', k.schedule, k.occurrence_key, k.state) FROM reports.job k
                   WHERE k.schedule = j.schedule AND k.overlap <> 'allow' AND k.waits_for IS DISTINCT FROM 'overlap'
                     AND k.state IN ('waiting', 'queued', 'running', 'retry_wait', 'quarantined')
                   ORDER BY k.id LIMIT 1),
                 (SELECT format('job %s:%s, which is %s', k.schedule, k.occurrence_key, k.state) FROM reports.job k
                   WHERE k.scope = j.scope AND k.schedule = j.schedule AND k.state = 'waiting' AND k.waits_for = 'overlap'
                     AND (k.run_after, k.id) < (j.run_after, j.id)
                   ORDER BY k.run_after, k.id LIMIT 1),
                 'its turn')
            ELSE format('room in queue "%s"', j.queue)
                 || coalesce((SELECT ' (' || nullif(concat_ws(', ', 'max_outstanding ' || q.max_outstanding,
                                                           CASE WHEN j.catch_up THEN 'catch_up_per_minute ' || q.catch_up_per_minute END), '') || ')'
                                FROM reports.queue q WHERE q.name = j.queue), '')
                 || coalesce((SELECT format(', or in scope "%s" among missed firings (', s.name)
                                     || nullif(concat_ws(', ', 'catch_up_max ' || s.catch_up_max, 'catch_up_per_minute ' || s.catch_up_per_minute), '') || ')'
                                FROM reports.scope s WHERE j.catch_up AND s.name = j.scope), '')
       END AS waits_on,
       extract(epoch FROM CASE WHEN j.state = 'running' THEN statement_timestamp()
                               ELSE j.finished_at END - j.claimed_at)::numeric(20, 3) AS ran_s
  FROM reports.job j
  -- Outer, so that the planner knows that each job gives a row and walks the key for a LIMIT.
  LEFT JOIN reports.occurrence o ON o.schedule = j.schedule AND o.occurrence_key = j.occurrence_key
  LEFT JOIN reports.worker w ON w.id = j.worker;
COMMENT ON VIEW reports.v_job IS 'Each job with its occurrence and who runs it; ORDER BY id DESC is newest first, by index; the jobs of one schedule are found through v_occurrence.job_id.';
COMMENT ON COLUMN reports.v_job.waits_on IS 'waiting: the job, the room or the hold that it waits for, in words; to be read for a few jobs.';
COMMENT ON COLUMN reports.v_job.ran_s IS 'Seconds since the claim (running) or of the last attempt (finished).';

CREATE VIEW reports.v_attempt AS
SELECT a.job_id, a.attempt, a.outcome, a.started_at, a.ended_at,
       extract(epoch FROM a.ended_at - a.started_at)::numeric(20, 3) AS ran_s, w.name AS worker, a.worker AS worker_id,
       a.exit_code, a.error
  FROM reports.job_attempt a
  LEFT JOIN reports.worker w ON w.id = a.worker;
COMMENT ON VIEW reports.v_attempt IS 'What became of each finished attempt.';

CREATE VIEW reports.v_artifact AS
SELECT f.job_id, f.attempt, f.store, f.path, f.media_type, f.size_bytes, f.row_count, encode(f.sha256, 'hex') AS sha256,
       f.created_at,
       EXISTS (SELECT FROM reports.artifact later WHERE later.job_id = f.job_id AND later.attempt > f.attempt) AS superseded
  FROM reports.artifact f;
COMMENT ON VIEW reports.v_artifact IS 'Files that attempts produced; sha256 in hexadecimal.';
COMMENT ON COLUMN reports.v_artifact.superseded IS 'A later revision of its job has made another one.';

CREATE VIEW reports.v_job_state AS
WITH sample AS (
    (SELECT state, run_after, lease_until FROM reports.job WHERE state = 'waiting' LIMIT 100000)
    UNION ALL (SELECT state, run_after, lease_until FROM reports.job WHERE state = 'queued' LIMIT 100000)
    UNION ALL (SELECT state, claimed_at, lease_until FROM reports.job WHERE state = 'running' LIMIT 100000)
    UNION ALL (SELECT state, run_after, lease_until FROM reports.job WHERE state = 'retry_wait' LIMIT 100000)
)
SELECT s.state, count(x.state) AS jobs, count(x.state) = 100000 AS capped, min(x.run_after) AS oldest_at,
       CASE s.state WHEN 'running' THEN count(*) FILTER (WHERE x.lease_until < statement_timestamp()) END AS lapsed
  FROM unnest(ARRAY['waiting', 'queued', 'running', 'retry_wait']::reports.job_state[]) WITH ORDINALITY AS s (state, place)
  LEFT JOIN sample x ON x.state = s.state
 GROUP BY s.state, s.place
 ORDER BY s.place;
COMMENT ON VIEW reports.v_job_state IS 'Unfinished jobs by state. Counting stops at 100 000 a state; oldest_at is then of those counted.';
COMMENT ON COLUMN reports.v_job_state.lapsed IS 'running: those whose worker''s claim is over; a leader gives them to others.';
COMMENT ON COLUMN reports.v_job_state.oldest_at IS 'running: oldest claim; otherwise oldest instant from which a job could have run (retry_wait: will).';

CREATE VIEW reports.v_last_hour AS
SELECT count(*) AS planned,
       count(*) FILTER (WHERE x.state = 'succeeded') AS succeeded,
       count(*) FILTER (WHERE x.state IN ('failed', 'quarantined')) AS failed,
       count(*) FILTER (WHERE x.state = 'cancelled') AS cancelled,
       count(*) FILTER (WHERE x.state IN ('waiting', 'queued', 'running', 'retry_wait')) AS open,
       count(*) = 100000 AS capped
  FROM (SELECT j.state FROM reports.job j
         WHERE j.id >= reports.job_id_floor(statement_timestamp() - interval '1 hour')
         ORDER BY j.id DESC LIMIT 100000) x;
COMMENT ON VIEW reports.v_last_hour IS 'What became of the jobs of the last hour, of the newest 100 000.';

-- Requests and queues ----------------------------------------------------------------------------

CREATE INDEX request_requested ON reports.request (requested_at);

CREATE VIEW reports.v_request AS
SELECT r.id, r.kind, r.scope, r.subject, r.argument, r.requested_by, r.requested_at, r.deadline, r.state, r.answer,
       r.job_id, r.answered_at, r.generation, r.until, r.state = 'pending' AND r.deadline < statement_timestamp() AS lapsed
  FROM reports.request r;
COMMENT ON VIEW reports.v_request IS 'What was asked of the leaders, with the answers; order by requested_at.';
COMMENT ON COLUMN reports.v_request.lapsed IS 'Pending beyond its deadline: nobody will carry it out, and the next leader closes it as expired.';

CREATE VIEW reports.v_queue AS
WITH running AS (
    SELECT j.queue, count(*) AS jobs FROM reports.job j WHERE j.state = 'running' GROUP BY j.queue
), waiting AS (
    SELECT x.queue, count(*) AS jobs, sum(count(*)) OVER () >= 100000 AS capped, min(x.run_after) AS oldest_at
      FROM ((SELECT j.queue, j.run_after FROM reports.job j WHERE j.state = 'waiting' LIMIT 100000)
            -- A retry waits for its time and not for a worker.
            UNION ALL (SELECT j.queue, NULL FROM reports.job j WHERE j.state = 'retry_wait' LIMIT 100000)) x
     GROUP BY x.queue
), serving AS (
    SELECT s.queue, count(*) AS workers, sum(w.slots) AS slots
      FROM reports.worker w
     CROSS JOIN LATERAL unnest(w.queues) AS s (queue)
     WHERE w.state = 'alive' AND w.heartbeat_at >= statement_timestamp() - w.claim_lease / 2
     GROUP BY s.queue
)
SELECT q.name AS queue, q.description, q.max_outstanding, queued.jobs AS queued, coalesce(r.jobs, 0) AS running,
       coalesce(w.jobs, 0) AS waiting, queued.jobs = 100000 OR coalesce(w.capped, false) AS capped,
       least(queued.oldest_at, w.oldest_at) AS oldest_at,
       h.reason IS NOT NULL AS held, h.reason AS hold_reason, h.since_at AS held_since_at,
       coalesce(s.workers, 0) AS workers, coalesce(s.slots, 0) AS slots
  FROM reports.queue q
 CROSS JOIN LATERAL (
        SELECT count(*) AS jobs, min(x.run_after) AS oldest_at
          FROM (SELECT j.run_after FROM reports.job j WHERE j.state = 'queued' AND j.queue = q.name LIMIT 100000) x) queued
  LEFT JOIN running r ON r.queue = q.name
  LEFT JOIN waiting w ON w.queue = q.name
  LEFT JOIN serving s ON s.queue = q.name
  LEFT JOIN LATERAL (
        SELECT o.reason, o.since_at FROM reports.v_hold o WHERE o.queue = q.name ORDER BY o.id LIMIT 1) h ON true;
COMMENT ON VIEW reports.v_queue IS 'Each queue with what is in it, over all scopes, and who serves it; counting stops at 100 000 (capped).';
COMMENT ON COLUMN reports.v_queue.max_outstanding IS 'Most jobs queued and running at once in one scope; NULL: no bound.';
COMMENT ON COLUMN reports.v_queue.waiting IS 'Jobs held back: for room, for another job of their schedule, or for a retry.';
COMMENT ON COLUMN reports.v_queue.oldest_at IS 'Oldest instant from which a queued job, or one that waits for room or for another job, could have run.';
COMMENT ON COLUMN reports.v_queue.workers IS 'Living workers that serve it.';
COMMENT ON COLUMN reports.v_queue.slots IS 'How many jobs they run at once, of all queues they serve.';

-- Workers and the outbox ----------------------------------------------------------------------

CREATE VIEW reports.v_worker AS
SELECT w.id, w.name, w.pid, w.version, w.queues, w.slots,
       (SELECT count(*) FROM reports.job j WHERE j.state = 'running' AND j.worker = w.id) AS running,
       CASE WHEN w.state IN ('alive', 'draining') AND w.heartbeat_at < statement_timestamp() - w.claim_lease / 2
            THEN 'silent' ELSE w.state END AS state,
       w.started_at, w.heartbeat_at, w.stopped_at
  FROM reports.worker w;
COMMENT ON VIEW reports.v_worker IS 'Worker processes and how many jobs each runs.';
COMMENT ON COLUMN reports.v_worker.state IS 'alive, draining, stopped, dead as recorded; silent: no heartbeat for half a claim lease.';

CREATE VIEW reports.v_outbox AS
SELECT o.scope, o.id, o.schedule, o.occurrence_key, o.queue, o.dispatch_number, o.scheduled_for, o.created_at,
       o.generation, o.job_id
  FROM reports.outbox o;
COMMENT ON VIEW reports.v_outbox IS 'Messages not yet acknowledged by Kafka; order by scope, id.';

CREATE VIEW reports.v_outbox_dead AS
SELECT d.scope, d.id, d.schedule, d.occurrence_key, d.reason, d.buried_at, d.job_id
  FROM reports.outbox_dead d;
COMMENT ON VIEW reports.v_outbox_dead IS 'Messages that could not be published; their jobs run through the pull path.';

CREATE VIEW reports.v_outbox_load AS
SELECT f.scope,
       (SELECT count(*) FROM (SELECT FROM reports.outbox o WHERE o.scope = f.scope LIMIT 100000) x) AS messages,
       (SELECT o.created_at FROM reports.outbox o WHERE o.scope = f.scope ORDER BY o.id LIMIT 1) AS oldest_at,
       (SELECT count(*) FROM (SELECT FROM reports.outbox_dead d WHERE d.scope = f.scope LIMIT 1000) x) AS dead
  FROM reports.fence f;
COMMENT ON VIEW reports.v_outbox_load IS 'How full the outbox is; counting stops at 100 000 messages and 1000 dead ones.';

-- What an operator should look at ---------------------------------------------------------------

-- Calendars whose known days end within 60 days, where a schedule needs later ones; of many schedules the first that are found.
-- A function, so that the few rows it has are known to whoever plans a statement with it.
CREATE FUNCTION reports.calendars_ending()
RETURNS TABLE (calendar text, scope text, valid_through date, days_left integer, beyond text, schedules text[])
LANGUAGE sql STABLE ROWS 5 SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
    WITH RECURSIVE ending AS (
        SELECT c.name::text AS name, c.valid_through, c.beyond, c.valid_through - (statement_timestamp() AT TIME ZONE 'UTC')::date AS days_left
          FROM reports.calendar c
         WHERE c.combine IS NULL AND c.valid_through <= (statement_timestamp() AT TIME ZONE 'UTC')::date + 60
    ), used (ending, name) AS (
        SELECT e.name, e.name FROM ending e
        UNION
        SELECT u.ending, p.calendar::text FROM used u JOIN reports.calendar_part p ON p.part = u.name
    )
    SELECT e.name, s.name::text, e.valid_through, e.days_left, e.beyond::text, x.schedules
      FROM ending e CROSS JOIN reports.scope s
     CROSS JOIN LATERAL (
            SELECT array_agg(y.name ORDER BY y.name) AS schedules
              FROM (SELECT z.name::text FROM used u JOIN reports.schedule z ON z.calendar = u.name AND z.scope = s.name
                     WHERE u.ending = e.name AND (z.ends_at <= (e.valid_through + 1)::timestamp AT TIME ZONE 'UTC') IS NOT TRUE LIMIT 100) y) x
     WHERE x.schedules IS NOT NULL
$$;
COMMENT ON FUNCTION reports.calendars_ending() IS 'Calendars in use, also by way of combinations, whose known days end within 60 days, by scope: the days left, and at most 100 schedules that need later ones.';

CREATE VIEW reports.v_problem AS
SELECT 1 AS place, 'hold' AS kind, h.subject, h.since_at,
       -- A guard's hold has a page of its own in docs/operations.md, by this name.
       CASE WHEN h.cause = 'operator' THEN format('%s held by %s: %s', h.kind, h.raised_by, h.reason)
            ELSE format('HELD, %s: %s', h.cause, h.reason) END AS problem,
       CASE WHEN h.cause = 'zxid_regressed'
            THEN 'nothing is planned or claimed; when the ensemble is the one to go on with: reportctl fence rebase'
            WHEN h.cause = 'clock_hold'
            THEN format('nothing is planned or claimed; set the clock of PostgreSQL''s machine right, and it is lifted within half a minute. reportctl clocks; if the clock is right: reportctl release-hold %s', h.id)
            WHEN h.cause = 'database_rewound'
            THEN format('nothing is planned or claimed. Look first, and hold the queues whose reports must not be made twice: docs/operations.md, HELD: database_rewound; then reportctl release-hold %s', h.id)
            ELSE format('%s; to lift it: reportctl release-hold %s',
                        CASE h.kind WHEN 'queue' THEN 'no job of the queue is claimed' ELSE 'nothing is planned or claimed' END, h.id) END AS remedy
  FROM reports.v_hold h
UNION ALL
SELECT 1, 'ensemble', r.id, min(r.first_at),
       format('HELD, ensemble_unknown: %s see%s a ZooKeeper ensemble that this database does not know, and may not lead',
              string_agg(r.member, ', ' ORDER BY r.member), CASE WHEN count(*) = 1 THEN 's' ELSE '' END),
       CASE WHEN EXISTS (SELECT FROM reports.v_leader l WHERE l.state = 'active')
            THEN format('member %s leads by the ensemble in force, so that was not rebuilt: correct zookeeper or zookeeper_root in scheduler.conf of the first, another root is another ensemble; no rebase',
                        (SELECT min(l.leader) FROM reports.v_leader l WHERE l.state = 'active'))
            ELSE 'are zookeeper and zookeeper_root right in scheduler.conf? if the ensemble was rebuilt: reportctl fence rebase' END
  FROM reports.ensemble_refused r
 WHERE r.last_at > statement_timestamp() - interval '30 seconds' AND r.installation IS NULL
 GROUP BY r.id
UNION ALL
SELECT 1, 'ensemble', r.id, min(r.first_at),
       format('HELD, root_taken: zookeeper_root of %s belongs to installation %s, and this is installation %s: nobody leads by it',
              string_agg(r.member, ', ' ORDER BY r.member), r.installation, i.id),
       'set zookeeper_root in scheduler.conf, another one for each installation'
  FROM reports.ensemble_refused r, reports.installation i
 WHERE r.last_at > statement_timestamp() - interval '30 seconds' AND r.installation IS NOT NULL
 GROUP BY r.id, r.installation, i.id
UNION ALL
SELECT 1, 'server', m.scope, m.server_started_at,
       'no leader has looked at this server since it started: nothing of the scope is claimed or sent',
       'a leader looks at it within seconds; without one, start a report-scheduler. If this is a copy of the database, leave it as it is'
  FROM reports.v_moved_scope m
 WHERE (m.server_started_at < statement_timestamp() - interval '10 seconds' OR m.server_started_at = m.established_on_at)
   -- Under a hold no leader may; it stands above.
   AND NOT EXISTS (SELECT FROM reports.v_hold h WHERE h.queue IS NULL AND (h.scope IS NULL OR h.scope = m.scope))
UNION ALL
SELECT 5, 'clock', c.member, c.at,
       format('its wall clock is %s s %s that of PostgreSQL', trim_scale(round(abs(c.offset_us) / 1000000.0, 1)),
              CASE WHEN c.offset_us > 0 THEN 'ahead of' ELSE 'behind' END),
       'nothing is early or late by it, but one of the two is wrong: look after the time service on both machines. reportctl clocks'
  FROM (SELECT DISTINCT ON (x.member) x.* FROM (SELECT * FROM reports.member_clock ORDER BY id DESC LIMIT 200) x ORDER BY x.member, x.id DESC) c
 WHERE abs(c.offset_us) - c.round_trip_us / 2 > 1000000 AND c.at > statement_timestamp() - interval '1 minute'
UNION ALL
SELECT 4, 'address', m.url, min(m.at), format('members %s all advertise it', string_agg(DISTINCT m.member, ', ' ORDER BY m.member)),
       'a request may be sent on to the wrong one: give each its own advertised_url in its scheduler.conf'
  FROM (SELECT f.member, f.url, p.beat_at AS at FROM reports.fence f JOIN reports.fence_pulse p USING (scope)
         WHERE f.released_at IS NULL AND p.beat_at > statement_timestamp() - reports.candidate_silence()
        UNION ALL
        SELECT c.member, c.url, c.seen_at FROM reports.candidate c WHERE c.seen_at > statement_timestamp() - reports.candidate_silence()) m
 WHERE m.url IS NOT NULL
 GROUP BY m.url HAVING count(DISTINCT m.member) > 1
UNION ALL
-- Also when nothing is due for hours: who looks in the evening is to see that the morning's reports will not come.
-- Ten seconds are longer than any handoff or restart takes.
SELECT 2, 'leader', s.scope, CASE s.state WHEN 'silent' THEN s.beat_at ELSE s.since_at END,
       CASE WHEN s.state = 'silent' THEN format('leader %s shows no sign of life', s.leader)
            WHEN s.state = 'preparing' THEN format('member %s took the lead and does not get to work', s.leader)
            WHEN s.due_lag_s > 30 THEN 'no leader, and firings are due'
            ELSE 'no leader: nothing is planned when the next firing is due' END,
       'is report-scheduler running, with the scope in scopes of its scheduler.conf, and connected to ZooKeeper? reportctl events'
  FROM reports.v_scope s
 WHERE (s.state = 'silent' OR (s.state IN ('no leader', 'never led') AND s.due_lag_s > 30)
        OR s.state = 'no leader' AND s.since_at < statement_timestamp() - interval '10 seconds'
           AND (s.next_fire_at IS NOT NULL OR s.changes_waiting > 0)
        OR s.state = 'preparing' AND s.since_at < statement_timestamp() - interval '1 minute')
   -- Under a hold nobody is to lead it; that stands above, with its remedy.
   AND NOT s.held
UNION ALL
SELECT 2, 'scope', l.scope, edit.made_at, 'it has schedules, and no scheduler leads it: its reports are not made',
       'name it in scopes of scheduler.conf, and restart the report-schedulers; one that does has its reason in its log'
  FROM reports.v_leader l
  JOIN LATERAL (SELECT c.made_at FROM reports.schedule_change c
                 WHERE c.scope = l.scope AND (NOT c.announced OR c.made_at <= statement_timestamp()) ORDER BY c.id LIMIT 1) edit
    ON edit.made_at < statement_timestamp() - interval '10 seconds'
 WHERE l.state = 'never led' AND NOT l.held
UNION ALL
SELECT 3, 'planning', s.scope, s.next_fire_at, 'firings are due but not planned',
       'look into the log of the leader'
  FROM reports.v_scope s
 WHERE s.state IN ('active', 'preparing') AND s.due_lag_s > 30 AND NOT s.held
UNION ALL
SELECT 3, 'time zones', z.scope, min(z.changed_at),
       format('the leader computes %s by tzdata %s, older than %s that another leader had', min(z.time_zone) ||
              CASE count(*) WHEN 1 THEN '' ELSE format(' and %s more', count(*) - 1) END, min(z.tzdata), max(z.newest_tzdata)),
       'install the newer tzdata on the leader''s machine: it is taken in within a minute. What is stored from the newer stands meanwhile. reportctl tz status'
  FROM reports.zone_state z
 WHERE reports.tzdata_is_newer(z.newest_tzdata, z.tzdata) AND z.newest_digest <> z.digest
 GROUP BY z.scope
UNION ALL
SELECT 4, 'queue', q.name, coalesce(w.since_at, seen.last_at),
       CASE WHEN w.since_at IS NULL THEN 'schedules name the queue and no living worker serves it: their jobs will wait'
            ELSE 'jobs are waiting and no living worker serves the queue' END,
       'start a report-worker with this queue in worker.conf'
  FROM reports.queue q
 CROSS JOIN LATERAL (SELECT max(greatest(v.heartbeat_at, v.stopped_at)) AS last_at FROM reports.v_worker v WHERE q.name = ANY (v.queues)) seen
  LEFT JOIN LATERAL (SELECT min(x.run_after) AS since_at FROM (
                  SELECT j.run_after FROM reports.job j WHERE j.state = 'queued' AND j.queue = q.name
                   LIMIT 1000) x) w ON w.since_at < statement_timestamp() - interval '10 seconds'
 WHERE NOT EXISTS (SELECT FROM reports.v_worker v WHERE v.state = 'alive' AND q.name = ANY (v.queues))
   AND (w.since_at IS NOT NULL
        -- A worker is restarted within ten seconds.
        OR coalesce(seen.last_at < statement_timestamp() - interval '10 seconds', true)
           AND EXISTS (SELECT FROM reports.schedule s WHERE s.queue = q.name AND NOT s.paused))
UNION ALL
-- A queue that was deleted while jobs of it came back, or were planned under a version that names it.
SELECT 4, 'queue', g.queue, w.since_at, 'jobs are queued in a queue that does not exist any more',
       'insert it again into reports.queue, and start a report-worker with it in worker.conf'
  FROM (WITH RECURSIVE its (queue) AS (
            (SELECT j.queue FROM reports.job j WHERE j.state = 'queued' ORDER BY j.queue LIMIT 1)
            UNION ALL
            SELECT (SELECT j.queue FROM reports.job j WHERE j.state = 'queued' AND j.queue > i.queue ORDER BY j.queue LIMIT 1)
              FROM its i WHERE i.queue IS NOT NULL)
        SELECT i.queue FROM its i
         WHERE i.queue IS NOT NULL AND NOT EXISTS (SELECT FROM reports.queue q WHERE q.name = i.queue)) g
  JOIN LATERAL (SELECT min(x.run_after) AS since_at FROM (
                  SELECT j.run_after FROM reports.job j WHERE j.state = 'queued' AND j.queue = g.queue LIMIT 1000) x) w ON true
UNION ALL
SELECT 4, 'worker', v.name, v.heartbeat_at, format('no sign of life; jobs running: %s', v.running),
       'they are run by another worker when their claims have lapsed; is its host up, does it reach the database?'
  FROM reports.v_worker v
 WHERE v.state = 'silent'
UNION ALL
SELECT 4, 'artifacts', a.store, min(a.tried_at), format('files of jobs refused by the artifact store: %s; %s', count(*), max(a.error)),
       'mend the directory of artifact_stores in worker.conf on the workers'' hosts; jobs are tried again until max_attempts'
  FROM (SELECT substring(x.error FROM '^artifact store "([^"]*)"') AS store, x.tried_at, x.error
          FROM ((SELECT j.error, j.claimed_at AS tried_at FROM reports.job j WHERE j.state = 'retry_wait' LIMIT 1000)
                UNION ALL
                (SELECT j.error, j.finished_at FROM reports.job j
                  WHERE j.state IN ('failed', 'quarantined') AND j.id >= reports.job_id_floor(statement_timestamp() - interval '1 day')
                  ORDER BY j.id DESC LIMIT 1000)) x
         WHERE x.tried_at > statement_timestamp() - interval '15 minutes') a
 WHERE a.store IS NOT NULL
 GROUP BY a.store
UNION ALL
SELECT 5, 'relay', o.scope, o.oldest_at, format('messages waiting for Kafka: %s', o.messages),
       'jobs still run through the pull path; is Kafka reachable, does the topic exist?'
  FROM reports.v_outbox_load o
 WHERE o.oldest_at < statement_timestamp() - interval '1 minute'
UNION ALL
SELECT 6, 'schedule', p.schedule, p.problem_since, p.problem, 'mend the row in reports.schedule'
  FROM reports.schedule_progress p
 WHERE p.problem IS NOT NULL
UNION ALL
SELECT CASE WHEN c.days_left < 0 THEN 6 ELSE 8 END, 'calendar', c.calendar, (c.valid_through + CASE WHEN c.days_left < 0 THEN 1 ELSE -60 END)::timestamp AT TIME ZONE 'UTC',
       format('its days are known through %s only, %s; beyond, %s; used by schedule %s', c.valid_through,
              CASE WHEN c.days_left < 0 THEN 'and that is past' ELSE format('%s days from now', c.days_left) END,
              CASE c.beyond WHEN 'hold' THEN 'schedules wait with a problem' ELSE 'only weekends count and holidays are missed' END,
              concat_ws(', ', c.schedules[1], c.schedules[2], c.schedules[3]) || CASE WHEN cardinality(c.schedules) > 3 THEN ' and more' ELSE '' END),
       format('import newer data: reportctl calendar import %s FILE --replace; or, where no holidays are to come, write a later valid_through', c.calendar)
  FROM (SELECT e.calendar, e.valid_through, e.days_left, e.beyond, array_agg(z.name ORDER BY z.name) AS schedules
          FROM reports.calendars_ending() e, unnest(e.schedules) z (name)
         GROUP BY e.calendar, e.valid_through, e.days_left, e.beyond) c
UNION ALL
SELECT 6, 'circuit', p.schedule, p.circuit_opened_at,
       format('its circuit is open after %s failed jobs in a row: firings are not run, but for %s', p.circuit_failures,
              CASE WHEN p.circuit_probe_job IS NOT NULL THEN 'a probe that is under way'
                   ELSE format('a probe from %s on', reports.instant_text(p.circuit_probe_at)) END),
       format('reportctl jobs --schedule %s --state failed says why; when it is mended: reportctl breaker close %s, or wait for the probe', p.schedule, p.schedule)
  FROM reports.schedule_progress p
 WHERE p.circuit_opened_at IS NOT NULL
UNION ALL
SELECT 7, 'edits', c.scope, c.since_at, format('edits of schedules not taken in: %s', c.edits),
       'a leader takes them in within a second; SCOPES below says whether there is one'
  FROM (SELECT f.scope, count(x.made_at) AS edits, min(x.made_at) AS since_at
          FROM reports.fence f
          JOIN LATERAL (SELECT y.made_at FROM reports.schedule_change y
                         WHERE y.scope = f.scope AND (NOT y.announced OR y.made_at <= statement_timestamp())
                         ORDER BY y.id LIMIT 1000) x ON true
         GROUP BY f.scope) c
 WHERE c.since_at < statement_timestamp() - interval '30 seconds'
   AND NOT EXISTS (SELECT FROM reports.v_leader l WHERE l.scope = c.scope AND l.state = 'never led' AND NOT l.held)
UNION ALL
SELECT 7, 'requests', r.scope, min(r.requested_at), format('requests not answered: %s', count(*)),
       'a leader answers within a second or two; reportctl requests --state pending'
  FROM (SELECT q.scope, q.requested_at FROM reports.request q WHERE q.state = 'pending'
           AND q.requested_at < statement_timestamp() - interval '10 seconds' AND q.deadline >= statement_timestamp()
         LIMIT 1000) r
 GROUP BY r.scope
UNION ALL
SELECT 8, 'jobs', x.scope, min(x.finished_at), format('jobs failed within a day: %s', count(*)),
       'reportctl jobs --state failed'
  FROM (SELECT j.scope, j.finished_at FROM reports.job j
         -- These states are among those of the partial index job_ended_badly, so that it is read and not
         -- every job of the day.
         WHERE j.state IN ('failed', 'quarantined')
           AND j.id >= reports.job_id_floor(statement_timestamp() - interval '1 day')
         ORDER BY j.id DESC LIMIT 1000) x
 GROUP BY x.scope
UNION ALL
SELECT 9, 'outbox', d.scope, d.buried_at, 'a message could not be published: ' || d.reason,
       'its job ran through the pull path; reportctl outbox --dead'
  FROM (SELECT f.scope, y.buried_at, y.reason
          FROM reports.fence f
          JOIN LATERAL (SELECT z.buried_at, z.reason FROM reports.outbox_dead z WHERE z.scope = f.scope
                         ORDER BY z.id DESC LIMIT 1) y ON true) d
 WHERE d.buried_at > statement_timestamp() - interval '1 day';
COMMENT ON VIEW reports.v_problem IS 'What somebody should look at, most urgent first (place), each with what to do.';

-- What reportctl status and the page of each replica show first. SECURITY DEFINER: the view is people's.
CREATE FUNCTION reports.problem_list(p_limit integer)
RETURNS TABLE (kind text, subject text, since_at timestamptz, problem text, remedy text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
    SELECT p.kind, p.subject::text, p.since_at, p.problem, p.remedy FROM reports.v_problem p ORDER BY p.place, p.since_at LIMIT p_limit
$$;
COMMENT ON FUNCTION reports.problem_list(integer) IS 'The most urgent of v_problem, at most p_limit.';
GRANT EXECUTE ON FUNCTION reports.problem_list(integer) TO report_scheduler;

-- Figures for monitoring ------------------------------------------------------------------------

-- What each replica's observer reads every few seconds (metrics report_scheduler_<figure>). All of it
-- stops at a bound: it must stay in the milliseconds with millions of schedules and jobs. SECURITY
-- DEFINER like every function that a daemon calls: it reads a view of people's.
CREATE FUNCTION reports.scope_figures(p_scope text) RETURNS TABLE (figure text, label text, value double precision)
-- enable_seqscan: the bounded samples go by index whatever the statistics say; a scan for a few queued jobs
-- among millions of finished ones would end at no bound. jit: compiling costs more than all of it.
-- plpgsql: the plan is kept; planning takes half of the time.
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
AS $$
BEGIN
    RETURN QUERY
    WITH leader AS MATERIALIZED (
        SELECT l.*, s.created_at,
               CASE l.state WHEN 'active' THEN NULL
                            WHEN 'no leader' THEN l.released_at
                            WHEN 'never led' THEN s.created_at
                            -- preparing, silent: since the last sign of life of whoever led
                            ELSE coalesce(l.beat_at, l.established_at) END AS leaderless_since
          FROM reports.v_leader l JOIN reports.scope s ON s.name = l.scope
         WHERE l.scope = p_scope
    ), edit AS MATERIALIZED (
        SELECT c.made_at FROM reports.schedule_change c WHERE c.scope = p_scope AND (NOT c.announced OR c.made_at <= statement_timestamp()) ORDER BY c.id LIMIT 1000
    ), request AS MATERIALIZED (
        SELECT r.requested_at FROM reports.request r
         WHERE r.scope = p_scope AND r.state = 'pending' AND r.deadline >= statement_timestamp()
         ORDER BY r.requested_at LIMIT 1000
    ), hold AS MATERIALIZED (
        SELECT h.since_at FROM reports.v_hold h
         WHERE h.queue IS NULL AND (h.scope IS NULL OR h.scope = p_scope)
    ), some_queue AS MATERIALIZED (
        SELECT q.name FROM reports.queue q ORDER BY q.name LIMIT 100
    )
    SELECT 'leaderless_seconds', NULL::text,
           coalesce(greatest(extract(epoch FROM statement_timestamp() - leaderless_since), 0), 0)::float8 FROM leader
    UNION ALL
    SELECT 'beat_age_seconds', NULL, greatest(extract(epoch FROM statement_timestamp() - beat_at), 0)::float8 FROM leader
     WHERE beat_at IS NOT NULL
    UNION ALL
    SELECT 'fence_incarnation', NULL, incarnation::float8 FROM leader
    UNION ALL
    SELECT 'fence_generation', NULL, generation::float8 FROM leader
    UNION ALL
    SELECT 'due_lag_seconds', NULL,
           coalesce((SELECT greatest(extract(epoch FROM statement_timestamp() - p.next_fire_at), 0)
                       FROM reports.schedule_progress p
                      WHERE p.scope = p_scope AND p.next_fire_at IS NOT NULL
                      ORDER BY p.next_fire_at LIMIT 1), 0)::float8 FROM leader
    UNION ALL
    SELECT 'recent_gap_firings', g.reason, sum(g.firings)::float8
      FROM (SELECT x.scope, x.reason, x.firings, x.to_fire_at FROM reports.schedule_gap x ORDER BY x.id DESC LIMIT 1000) g
     WHERE g.scope = p_scope AND g.to_fire_at > statement_timestamp() - interval '1 hour'
     GROUP BY g.reason
    UNION ALL
    SELECT 'outbox_messages', NULL,
           (SELECT count(*) FROM (SELECT FROM reports.outbox o WHERE o.scope = p_scope LIMIT 10000) x)::float8 FROM leader
    UNION ALL
    SELECT 'outbox_oldest_seconds', NULL,
           coalesce((SELECT greatest(extract(epoch FROM statement_timestamp() - o.created_at), 0)
                       FROM reports.outbox o WHERE o.scope = p_scope ORDER BY o.id LIMIT 1), 0)::float8 FROM leader
    UNION ALL
    SELECT 'outbox_dead', NULL,
           (SELECT count(*) FROM (SELECT FROM reports.outbox_dead d WHERE d.scope = p_scope LIMIT 1000) x)::float8 FROM leader
    UNION ALL
    SELECT 'refused_writes', NULL,
           (SELECT count(*) FROM (SELECT r.at FROM reports.fence_rejection r WHERE r.scope = p_scope
                                   ORDER BY r.id DESC LIMIT 1000) x
             WHERE x.at > statement_timestamp() - interval '15 minutes')::float8 FROM leader
    UNION ALL
    -- waiting and retry_wait have an index by scope; of the others a sample over all scopes is cut first.
    SELECT 'jobs', 'waiting',
           (SELECT count(*) FROM (SELECT FROM reports.job j WHERE j.scope = p_scope AND j.state = 'waiting' LIMIT 5000) x)::float8
      FROM leader
    UNION ALL
    SELECT 'jobs', 'retry_wait',
           (SELECT count(*) FROM (SELECT FROM reports.job j WHERE j.scope = p_scope AND j.state = 'retry_wait' LIMIT 5000) x)::float8
      FROM leader
    UNION ALL
    SELECT 'catch_up_waiting', NULL,
           (SELECT count(*) FROM (SELECT FROM reports.job j WHERE j.scope = p_scope AND j.state = 'waiting' AND j.catch_up LIMIT 5000) x)::float8
      FROM leader
    UNION ALL
    SELECT 'jobs', 'queued',
           (SELECT count(*) FROM (SELECT j.scope FROM reports.job j WHERE j.state = 'queued' ORDER BY j.queue LIMIT 5000) x
             WHERE x.scope = p_scope)::float8 FROM leader
    UNION ALL
    SELECT 'jobs', 'running',
           (SELECT count(*) FROM (SELECT j.scope FROM reports.job j WHERE j.state = 'running' ORDER BY j.worker LIMIT 5000) x
             WHERE x.scope = p_scope)::float8 FROM leader
    UNION ALL
    -- The ready index is ordered by age within a queue, live or missed, and priority only: one probe for each.
    SELECT 'oldest_queued_seconds', q.name,
           greatest(extract(epoch FROM statement_timestamp() - oldest.run_after), 0)::float8
      FROM some_queue q
     CROSS JOIN LATERAL (
           SELECT c.run_after, c.scope
             FROM unnest('{false,true}'::boolean[]) AS kind (catch_up)
            CROSS JOIN LATERAL (
                  WITH RECURSIVE head AS (
                      (SELECT j.priority, j.run_after, j.scope FROM reports.job j
                        WHERE j.state = 'queued' AND j.queue = q.name AND j.catch_up = kind.catch_up
                        ORDER BY j.priority DESC, j.run_after LIMIT 1)
                      UNION ALL
                      SELECT n.* FROM head h CROSS JOIN LATERAL (
                             SELECT j.priority, j.run_after, j.scope FROM reports.job j
                              WHERE j.state = 'queued' AND j.queue = q.name AND j.catch_up = kind.catch_up AND j.priority < h.priority
                              ORDER BY j.priority DESC, j.run_after LIMIT 1) n
                  )
                  SELECT * FROM head LIMIT 100) c
            ORDER BY c.run_after LIMIT 1) oldest
     WHERE oldest.scope = p_scope
    UNION ALL
    SELECT 'workers', q.name,
           (SELECT count(*) FROM reports.worker w
             WHERE w.state = 'alive' AND w.heartbeat_at >= statement_timestamp() - w.claim_lease / 2
               AND q.name = ANY (w.queues))::float8
      FROM some_queue q CROSS JOIN leader
    UNION ALL
    SELECT 'problem_schedules', NULL,
           (SELECT count(*) FROM (SELECT FROM reports.schedule_progress p
                                   WHERE p.scope = p_scope AND p.problem IS NOT NULL LIMIT 1000) x)::float8 FROM leader
    UNION ALL
    SELECT 'circuits_open', NULL,
           (SELECT count(*) FROM (SELECT FROM reports.schedule_progress p
                                   WHERE p.scope = p_scope AND p.circuit_opened_at IS NOT NULL LIMIT 1000) x)::float8 FROM leader
    UNION ALL
    SELECT 'time_zones_outdated', NULL,
           (SELECT count(*) FROM reports.zone_state z
             WHERE z.scope = p_scope AND reports.tzdata_is_newer(z.newest_tzdata, z.tzdata) AND z.newest_digest <> z.digest)::float8 FROM leader
    UNION ALL
    SELECT 'calendar_days_left', e.calendar, e.days_left::float8
      FROM (SELECT x.calendar, x.days_left FROM reports.calendars_ending() x WHERE x.scope = p_scope ORDER BY x.days_left, x.calendar LIMIT 20) e
    UNION ALL
    SELECT 'edits_waiting', NULL, (SELECT count(*) FROM edit)::float8 FROM leader
    UNION ALL
    SELECT 'edit_oldest_seconds', NULL,
           coalesce((SELECT greatest(extract(epoch FROM statement_timestamp() - min(e.made_at)), 0) FROM edit e), 0)::float8
      FROM leader
    UNION ALL
    SELECT 'requests_waiting', NULL, (SELECT count(*) FROM request)::float8 FROM leader
    UNION ALL
    SELECT 'request_oldest_seconds', NULL,
           coalesce((SELECT greatest(extract(epoch FROM statement_timestamp() - min(r.requested_at)), 0) FROM request r), 0)::float8
      FROM leader
    UNION ALL
    -- The replicas of any scope tell of those that no replica serves.
    SELECT 'unserved_scopes', NULL, (SELECT count(*) FROM (SELECT FROM reports.v_unserved_scope LIMIT 1000) x)::float8 FROM leader
    UNION ALL
    SELECT 'holds', NULL, (SELECT count(*) FROM hold)::float8 FROM leader
    UNION ALL
    SELECT 'hold_seconds', NULL,
           coalesce((SELECT greatest(extract(epoch FROM statement_timestamp() - min(h.since_at)), 0) FROM hold h), 0)::float8
      FROM leader
    UNION ALL
    SELECT 'queue_hold_seconds', h.queue, greatest(extract(epoch FROM statement_timestamp() - min(h.since_at)), 0)::float8
      FROM reports.v_hold h CROSS JOIN leader
     WHERE h.queue IS NOT NULL
     GROUP BY h.queue
    UNION ALL
    SELECT 'guard_holds', x.cause, (SELECT count(*) FROM reports.v_hold h WHERE h.cause = x.cause
                                       AND (h.scope IS NULL OR h.scope = p_scope))::float8
      FROM unnest('{zxid_regressed,database_rewound,clock_hold}'::text[]) AS x (cause) CROSS JOIN leader
    UNION ALL
    SELECT 'ensembles_refused', NULL, (SELECT count(DISTINCT r.id) FROM reports.ensemble_refused r
                                        WHERE r.last_at > statement_timestamp() - interval '30 seconds')::float8 FROM leader
    UNION ALL
    SELECT 'moved', NULL, (SELECT count(*) FROM reports.v_moved_scope m WHERE m.scope = p_scope)::float8 FROM leader;
END
$$;
COMMENT ON FUNCTION reports.scope_figures(text) IS 'Facts about a scope for the metrics, each at most a few milliseconds; none for a scope that does not exist. Counts stop at a bound.';
GRANT EXECUTE ON FUNCTION reports.scope_figures(text) TO report_scheduler;

-- Whoever reads a view calls the functions in it.
GRANT EXECUTE ON FUNCTION reports.job_id_floor(timestamptz), reports.offset_text(integer), reports.calendars_ending(), reports.instant_text(timestamptz) TO report_reader, report_operator;
GRANT EXECUTE ON FUNCTION reports.time_of_job(uuid), reports.candidate_silence(), reports.tzdata_is_newer(text, text), reports.fence_audit(interval) TO report_reader;

RESET ROLE;
