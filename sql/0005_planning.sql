-- What the leader does with schedules: take in edits, plan. due, progress_of, versions_of, keys_taken,
-- next_due and changes read; every other function it calls here is one protected write: one call, autocommit, small answer
-- ("A protected write" in docs/architecture.md).

SET ROLE report_owner;

-- Reads. No locks: what is read here is checked again by compare-and-set when it is written.

CREATE FUNCTION reports.due(p_scope text, p_limit integer, p_offset integer DEFAULT 0, p_until timestamptz DEFAULT NULL)
RETURNS TABLE (schedule text, version integer, step bigint, next_fire_at timestamptz, last_fire_at timestamptz,
               switched_at timestamptz, key_form text, kind text, rule text, time_zone text, anchor timestamptz,
               starts_at timestamptz, ends_at timestamptz, misfire text, misfire_max integer, misfire_age_us bigint,
               misfire_grace_us bigint, database_now timestamptz, effective_from timestamptz, paused boolean,
               ended boolean, edited boolean,
               dialect text, dst_gap text, dst_overlap text, jitter_s integer, start_local timestamp, exdates timestamp[],
               rdates timestamp[], calendar text, calendar_version bigint, nonbusiness text, business_day_offset integer, roll_collision text, business_date text,
               next_nominal timestamp, next_offset_s integer, tzdata text, zone_digest text)
-- enable_seqscan: schedule_change is empty as a rule and long after an import; its plan must not tell.
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
    SELECT p.schedule, p.version, p.step, p.next_fire_at, p.last_fire_at, p.switched_at, p.key_form, v.kind,
           coalesce(p.rule_std, v.rule), v.time_zone, v.anchor, v.starts_at, v.ends_at, v.misfire, v.misfire_max,
           (extract(epoch FROM v.misfire_age) * 1000000)::bigint,
           (extract(epoch FROM v.misfire_grace) * 1000000)::bigint, clock_timestamp(), v.effective_from, v.paused,
           v.ended, EXISTS (SELECT FROM reports.schedule_change c WHERE c.scope = p_scope AND c.schedule = p.schedule
                                 AND (NOT c.announced OR c.made_at <= clock_timestamp())),
           CASE WHEN p.rule_std IS NULL THEN v.dialect ELSE 'std' END, v.dst_gap, v.dst_overlap, v.jitter_s, v.start_local, v.exdates, v.rdates,
           v.calendar, v.calendar_version, v.nonbusiness, v.business_day_offset, v.roll_collision, v.business_date,
           p.next_nominal, p.next_offset_s, p.tzdata, p.zone_digest
      -- The sub-select makes the time a bound of the index scan; a bare volatile call would be a
      -- filter over every schedule of the scope.
      FROM (SELECT * FROM reports.schedule_progress q
             WHERE q.scope = p_scope AND q.next_fire_at <= (SELECT coalesce(p_until, clock_timestamp()))
             ORDER BY q.next_fire_at LIMIT p_limit OFFSET p_offset) p
      -- OFFSET 0 keeps it a look-up for each row: the planner cannot know the limit, and would hash
      -- every version there is.
     CROSS JOIN LATERAL (SELECT * FROM reports.schedule_version w
                          WHERE w.schedule = p.schedule AND w.version = p.version OFFSET 0) v
     ORDER BY p.next_fire_at
$$;
COMMENT ON FUNCTION reports.due(text, integer, integer, timestamptz) IS 'Schedules with something due, or due by p_until, oldest first (p_offset: behind those that cannot be planned now), with the version that is in force; edited: that may be over, its edit comes first.';

-- The same row for named schedules, due or not: before an edit is taken in, the version in force
-- plans what was due under it. Ended ones are left out.
CREATE FUNCTION reports.progress_of(p_scope text, p_schedules text[])
RETURNS TABLE (schedule text, version integer, step bigint, next_fire_at timestamptz, last_fire_at timestamptz,
               switched_at timestamptz, key_form text, kind text, rule text, time_zone text, anchor timestamptz,
               starts_at timestamptz, ends_at timestamptz, misfire text, misfire_max integer, misfire_age_us bigint,
               misfire_grace_us bigint, database_now timestamptz, effective_from timestamptz, paused boolean,
               ended boolean, edited boolean,
               dialect text, dst_gap text, dst_overlap text, jitter_s integer, start_local timestamp, exdates timestamp[],
               rdates timestamp[], calendar text, calendar_version bigint, nonbusiness text, business_day_offset integer, roll_collision text, business_date text,
               next_nominal timestamp, next_offset_s integer, tzdata text, zone_digest text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT p.schedule, p.version, p.step, p.next_fire_at, p.last_fire_at, p.switched_at, p.key_form, v.kind,
           coalesce(p.rule_std, v.rule), v.time_zone, v.anchor, v.starts_at, v.ends_at, v.misfire, v.misfire_max,
           (extract(epoch FROM v.misfire_age) * 1000000)::bigint,
           (extract(epoch FROM v.misfire_grace) * 1000000)::bigint, clock_timestamp(), v.effective_from, v.paused,
           v.ended, false, CASE WHEN p.rule_std IS NULL THEN v.dialect ELSE 'std' END,
           v.dst_gap, v.dst_overlap, v.jitter_s, v.start_local, v.exdates, v.rdates,
           v.calendar, v.calendar_version, v.nonbusiness, v.business_day_offset, v.roll_collision, v.business_date,
           p.next_nominal, p.next_offset_s, p.tzdata, p.zone_digest
      FROM reports.schedule_progress p
      JOIN reports.schedule_version v ON v.schedule = p.schedule AND v.version = p.version
     WHERE p.scope = p_scope AND p.schedule = ANY (p_schedules) AND NOT v.ended
$$;
COMMENT ON FUNCTION reports.progress_of(text, text[]) IS 'Progress of the named schedules with the version that is in force.';

-- Other versions than the one in force, newest first within a schedule: those still to be taken in, which
-- say what runs after an edit, or those before it, which can name the firings that a broken one cannot.
CREATE FUNCTION reports.versions_of(p_scope text, p_schedules text[], p_ahead boolean, p_limit integer)
RETURNS TABLE (schedule text, version integer, step bigint, next_fire_at timestamptz, last_fire_at timestamptz,
               switched_at timestamptz, key_form text, kind text, rule text, time_zone text, anchor timestamptz,
               starts_at timestamptz, ends_at timestamptz, misfire text, misfire_max integer, misfire_age_us bigint,
               misfire_grace_us bigint, database_now timestamptz, effective_from timestamptz, paused boolean,
               ended boolean, edited boolean,
               dialect text, dst_gap text, dst_overlap text, jitter_s integer, start_local timestamp, exdates timestamp[],
               rdates timestamp[], calendar text, calendar_version bigint, nonbusiness text, business_day_offset integer, roll_collision text, business_date text,
               next_nominal timestamp, next_offset_s integer, tzdata text, zone_digest text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT p.schedule, v.version, p.step, NULL::timestamptz, p.last_fire_at, v.effective_from, p.key_form, v.kind,
           v.rule, v.time_zone, v.anchor, v.starts_at, v.ends_at, v.misfire, v.misfire_max,
           (extract(epoch FROM v.misfire_age) * 1000000)::bigint,
           (extract(epoch FROM v.misfire_grace) * 1000000)::bigint, clock_timestamp(), v.effective_from, v.paused,
           v.ended, false, v.dialect, v.dst_gap, v.dst_overlap, v.jitter_s, v.start_local, v.exdates, v.rdates,
           v.calendar, v.calendar_version, v.nonbusiness, v.business_day_offset, v.roll_collision, v.business_date,
           NULL::timestamp, NULL::integer, p.tzdata, p.zone_digest
      FROM reports.schedule_progress p
     CROSS JOIN LATERAL (SELECT * FROM reports.schedule_version w
                          WHERE w.schedule = p.schedule
                            AND CASE WHEN p_ahead THEN w.version > p.version ELSE w.version < p.version END
                          ORDER BY w.version DESC LIMIT p_limit) v
     WHERE p.scope = p_scope AND p.schedule = ANY (p_schedules)
     ORDER BY p.schedule, v.version DESC
$$;
COMMENT ON FUNCTION reports.versions_of(text, text[], boolean, integer) IS 'Versions of the named schedules ahead of the one in force or before it, newest first.';

CREATE FUNCTION reports.keys_taken(p_schedule text, p_keys text[]) RETURNS TABLE (number bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT k.number FROM unnest(p_keys) WITH ORDINALITY AS k (key, number)
     WHERE EXISTS (SELECT FROM reports.occurrence o WHERE o.schedule = p_schedule AND o.occurrence_key = k.key)
$$;
COMMENT ON FUNCTION reports.keys_taken(text, text[]) IS 'Which of the keys an occurrence of the schedule has, by position from 1.';

CREATE FUNCTION reports.next_due(p_scope text, OUT next_fire_at timestamptz, OUT database_now timestamptz, OUT edited boolean, OUT resumes boolean)
-- enable_seqscan: see due.
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
    SELECT least((SELECT q.next_fire_at FROM reports.schedule_progress q
                   WHERE q.scope = p_scope AND q.next_fire_at IS NOT NULL ORDER BY q.next_fire_at LIMIT 1),
                 (SELECT c.made_at FROM reports.schedule_change c
                   WHERE c.scope = p_scope AND c.announced AND c.made_at > clock_timestamp() ORDER BY c.made_at LIMIT 1),
                 (SELECT s.paused_until FROM reports.schedule s
                   WHERE s.scope = p_scope AND s.paused_until > (SELECT clock_timestamp()) ORDER BY s.paused_until LIMIT 1)),
           clock_timestamp(),
           EXISTS (SELECT FROM reports.schedule_change c
                    WHERE c.scope = p_scope AND (NOT c.announced OR c.made_at <= clock_timestamp())),
           EXISTS (SELECT FROM reports.schedule s WHERE s.scope = p_scope AND s.paused_until <= (SELECT clock_timestamp()))
$$;
COMMENT ON FUNCTION reports.next_due(text) IS 'When the scope''s next firing is due, its next announced edit begins or its next pause ends, the time now, whether an edit is not taken in, and whether a pause is over.';

-- One row a schedule with edits not taken in: the oldest of them with its version, and the progress that
-- is (NULLs: none yet). The leader goes one version at a time: it plans what was due before the edit
-- under the version in force, takes the edit in, and sees the next edit in its next pass.
CREATE FUNCTION reports.changes(p_scope text, p_limit integer, p_after text DEFAULT '')
RETURNS TABLE (schedule text, change_id bigint, new_version integer, effective_from timestamptz, ended boolean,
               kind text, rule text, time_zone text, anchor timestamptz, starts_at timestamptz, ends_at timestamptz,
               step bigint, next_fire_at timestamptz, last_fire_at timestamptz, key_form text, problem text,
               switched_at timestamptz, database_now timestamptz, paused boolean, was_paused boolean,
               next_nominal_s bigint, highest_key text, last_nominal_s bigint, dialect text, dst_gap text, dst_overlap text,
               jitter_s integer, start_local timestamp, exdates timestamp[], rdates timestamp[], calendar text, calendar_version bigint,
               nonbusiness text, business_day_offset integer, roll_collision text, business_date text, was_jitter_s integer)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
    -- From schedule to schedule by the index: one with thousands of edits hides no other.
    WITH RECURSIVE edited (schedule, n) AS (
        (SELECT x.schedule, 1 FROM reports.schedule_change x
          WHERE x.scope = p_scope AND x.schedule > p_after AND (NOT x.announced OR x.made_at <= clock_timestamp())
          ORDER BY x.schedule LIMIT 1)
        UNION ALL
        SELECT (SELECT x.schedule FROM reports.schedule_change x
                 WHERE x.scope = p_scope AND x.schedule > e.schedule AND (NOT x.announced OR x.made_at <= clock_timestamp())
                 ORDER BY x.schedule LIMIT 1), e.n + 1
          FROM edited e WHERE e.schedule IS NOT NULL AND e.n < p_limit
    )
    SELECT c.schedule, c.id, v.version, v.effective_from, v.ended, v.kind, v.rule, v.time_zone, v.anchor, v.starts_at,
           v.ends_at, p.step, p.next_fire_at, p.last_fire_at, p.key_form, p.problem, p.switched_at, clock_timestamp(),
           v.paused, u.paused AND NOT u.ended, extract(epoch FROM p.next_nominal)::bigint, h.occurrence_key,
           extract(epoch FROM p.last_nominal)::bigint, v.dialect, v.dst_gap, v.dst_overlap, v.jitter_s, v.start_local, v.exdates, v.rdates,
           v.calendar, v.calendar_version, v.nonbusiness, v.business_day_offset, v.roll_collision, v.business_date, u.jitter_s
      FROM edited e
     CROSS JOIN LATERAL (SELECT x.schedule, x.id, x.version FROM reports.schedule_change x
                          WHERE x.scope = p_scope AND x.schedule = e.schedule AND (NOT x.announced OR x.made_at <= clock_timestamp())
                          ORDER BY x.version LIMIT 1) c
      -- OFFSET 0: see due.
     CROSS JOIN LATERAL (SELECT * FROM reports.schedule_version w
                          WHERE w.schedule = c.schedule AND w.version = c.version OFFSET 0) v
      LEFT JOIN LATERAL (SELECT * FROM reports.schedule_progress q WHERE q.schedule = c.schedule OFFSET 0) p ON true
      LEFT JOIN LATERAL (SELECT w.paused, w.ended, w.jitter_s FROM reports.schedule_version w
                          WHERE w.schedule = p.schedule AND w.version = p.version OFFSET 0) u ON true
      -- Keys order like the times they name. Manual ones do not count: their keys need not be dates.
      LEFT JOIN LATERAL (SELECT o.occurrence_key FROM reports.occurrence o
                          WHERE o.schedule = p.schedule AND o.cause <> 'manual'
                          ORDER BY o.occurrence_key DESC LIMIT 1) h ON true
     ORDER BY c.id
$$;
COMMENT ON FUNCTION reports.changes(text, integer, text) IS 'The oldest edit of each schedule that the leader has not taken in, of schedules whose names come after p_after.';

-- Take in edits: each is one version further. `p_step` is what was read (NULL: no progress row was
-- there). Edits whose progress row has changed meanwhile, or one of whose rows is locked (of a new overlap
-- policy also those of the open jobs, which follow it), stay in schedule_change and are not in `taken`:
-- nothing here waits for a row (I12).
CREATE FUNCTION reports.take_in(
    p_scope text, p_incarnation bigint, p_generation bigint, p_owner uuid,
    p_schedule text[], p_change bigint[], p_version integer[], p_step bigint[], p_switched_at timestamptz[],
    p_next_fire_at timestamptz[], p_next_nominal timestamp[], p_next_offset_s integer[], p_key_form text[],
    p_problem text[], p_tzdata text[], p_rule_std text[] DEFAULT NULL, p_last_fire_at timestamptz[] DEFAULT NULL,
    p_zone_digest text[] DEFAULT NULL,
    OUT verdict text, OUT taken text[])
-- enable_seqscan: every table is reached by key here, and must be when its statistics are wrong, too.
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
    adopting text[];
    policies text[];
BEGIN
    taken := '{}';
    IF NOT reports.fence_holds(p_scope, p_incarnation, p_generation, p_owner, 'take_in') THEN
        verdict := 'fenced';
        RETURN;
    END IF;
    -- Who begins anew (see `anew`) does so behind what has ended before.
    IF EXISTS (SELECT FROM reports.circuit_outcome o WHERE o.scope = p_scope) THEN
        PERFORM reports.settle_circuits(p_scope, 1000);
    END IF;
    WITH given AS MATERIALIZED (
        SELECT g.*, v.ended, v.paused, v.overlap, v.breaker_failures
          FROM unnest(p_schedule, p_change, p_version, p_step, p_switched_at, p_next_fire_at, p_next_nominal,
                      p_next_offset_s, p_key_form, p_problem, p_tzdata, p_rule_std, p_last_fire_at, p_zone_digest)
               AS g (schedule, change, version, step, switched_at, next_fire_at, next_nominal, next_offset_s,
                     key_form, problem, tzdata, rule_std, last_fire_at, zone_digest)
         -- LATERAL and OFFSET 0 make each a look-up by key: many edits at once, before there are
         -- statistics of them, were joined each with each.
         CROSS JOIN LATERAL (SELECT w.ended, w.paused, w.overlap, w.breaker_failures FROM reports.schedule_version w
                              WHERE w.schedule = g.schedule AND w.version = g.version AND w.scope = p_scope OFFSET 0) v
         CROSS JOIN LATERAL (SELECT FROM reports.schedule_change d
                              WHERE d.scope = p_scope AND d.id = g.change AND d.schedule = g.schedule
                                FOR UPDATE SKIP LOCKED) c
         ORDER BY g.schedule
    ), present AS MATERIALIZED (
        SELECT g.*, CASE WHEN w.overlap <> g.overlap THEN g.overlap END AS new_overlap, p.circuit_opened_at,
               -- Why its circuit breaker begins anew.
               CASE WHEN g.ended THEN 'deleted' WHEN g.breaker_failures IS NULL THEN 'breaker_failures was taken away'
                    WHEN w.paused AND NOT g.paused THEN 'resumed' END AS anew
          FROM given g
         CROSS JOIN LATERAL (SELECT q.version AS old_version, q.circuit_opened_at FROM reports.schedule_progress q
                              WHERE q.schedule = g.schedule AND q.scope = p_scope AND q.step = g.step AND q.version < g.version
                                FOR UPDATE SKIP LOCKED) p
         CROSS JOIN LATERAL (SELECT x.overlap, x.paused FROM reports.schedule_version x
                              WHERE x.schedule = g.schedule AND x.version = p.old_version OFFSET 0) w
    ), blocked AS MATERIALIZED (
        SELECT reports.adopt_blocked(p_scope, array_agg(g.schedule), array_agg(g.new_overlap)) AS schedules
          FROM present g WHERE g.new_overlap IS NOT NULL
    ), updated AS (
        UPDATE reports.schedule_progress p
           SET version = g.version, step = p.step + 1,
               -- From one problem to the next nothing was planned: the gap still begins where the first began.
               switched_at = CASE WHEN p.problem IS NOT NULL AND g.problem IS NOT NULL THEN p.switched_at
                                  ELSE g.switched_at END,
               next_fire_at = CASE WHEN g.problem IS NULL AND NOT g.ended AND NOT g.paused THEN g.next_fire_at END,
               -- A version that names no firings does not make the next one forget what was to come; one that
               -- would pass dates over says behind which of them the next one goes on.
               next_nominal = CASE WHEN g.problem IS NULL THEN g.next_nominal ELSE coalesce(g.next_nominal, p.next_nominal) END,
               next_offset_s = CASE WHEN g.problem IS NULL THEN g.next_offset_s ELSE coalesce(g.next_offset_s, p.next_offset_s) END,
               key_form = coalesce(p.key_form, g.key_form), rule_std = g.rule_std,
               -- Given: the version's jitter is another, and the last firing is when it would have been by that.
               last_fire_at = coalesce(g.last_fire_at, p.last_fire_at), problem = g.problem,
               problem_since = CASE WHEN g.problem IS NULL THEN NULL
                                    ELSE coalesce(p.problem_since, clock_timestamp()) END,
               circuit_failures = CASE WHEN g.anew IS NULL THEN p.circuit_failures ELSE 0 END,
               circuit_opened_at = CASE WHEN g.anew IS NULL THEN p.circuit_opened_at END,
               circuit_probe_at = CASE WHEN g.anew IS NULL THEN p.circuit_probe_at END,
               circuit_probe_job = CASE WHEN g.anew IS NULL THEN p.circuit_probe_job END,
               tzdata = g.tzdata, zone_digest = coalesce(g.zone_digest, ''), updated_at = clock_timestamp()
          FROM present g
         WHERE p.schedule = g.schedule AND p.step = g.step AND p.version < g.version
           AND (g.new_overlap IS NULL OR g.schedule <> ALL ((SELECT b.schedules FROM blocked b)::text[]))
        RETURNING p.schedule, g.new_overlap, CASE WHEN g.circuit_opened_at IS NOT NULL THEN g.anew END AS closed
    ), closed AS (
        INSERT INTO reports.circuit_event (scope, schedule, event, detail)
        SELECT p_scope, u.schedule, 'closed', u.closed FROM updated u WHERE u.closed IS NOT NULL
    ), inserted AS (
        INSERT INTO reports.schedule_progress
            (schedule, scope, version, switched_at, next_fire_at, next_nominal, next_offset_s, key_form, rule_std,
             problem, problem_since, tzdata, zone_digest)
        SELECT g.schedule, p_scope, g.version, g.switched_at,
               CASE WHEN g.problem IS NULL AND NOT g.ended AND NOT g.paused THEN g.next_fire_at END, g.next_nominal,
               g.next_offset_s,
               g.key_form, g.rule_std, g.problem, CASE WHEN g.problem IS NOT NULL THEN clock_timestamp() END, g.tzdata,
               coalesce(g.zone_digest, '')
          FROM given g WHERE g.step IS NULL
        ON CONFLICT (schedule) DO NOTHING
        RETURNING schedule
    ), done AS MATERIALIZED (
        SELECT u.schedule, u.new_overlap FROM updated u
        UNION ALL
        SELECT schedule, NULL FROM inserted
    ), swept AS (
        -- The range bounds what is read, whatever the statistics say; IS TRUE keeps the sub-select a hash
        -- table, where a join may compare each with each.
        DELETE FROM reports.schedule_change c
         WHERE c.scope = p_scope
           AND c.id BETWEEN (SELECT min(g.change) FROM given g) AND (SELECT max(g.change) FROM given g)
           AND c.id = ANY (ARRAY(SELECT g.change FROM given g WHERE (g.schedule IN (SELECT d.schedule FROM done d)) IS TRUE))
    )
    SELECT coalesce(array_agg(schedule), '{}'), array_agg(schedule) FILTER (WHERE new_overlap IS NOT NULL),
           array_agg(new_overlap) FILTER (WHERE new_overlap IS NOT NULL)
      INTO taken, adopting, policies FROM done;
    IF adopting IS NOT NULL THEN
        PERFORM reports.adopt_overlap(p_scope, adopting, policies);
        IF NOT reports.is_held(p_scope) THEN
            PERFORM reports.release_waiting(p_scope, p_generation, 1000);
        END IF;
    END IF;
    verdict := 'ok';
END
$$;
COMMENT ON FUNCTION reports.take_in(text, bigint, bigint, uuid, text[], bigint[], integer[], bigint[], timestamptz[], timestamptz[], timestamp[], integer[], text[], text[], text[], text[], timestamptz[], text[]) IS 'Takes in edits by compare-and-set and deletes their change rows in the same transaction.';

-- The heart: occurrences, jobs, outbox rows, gaps and progress of one batch, together or not at
-- all (I4). A schedule whose progress is not what the planner read, or whose row is locked, is left
-- out whole and is not in `advanced`; so is one whose open jobs are to be replaced and are locked.
--
-- What need not wait is queued with its message at once. Jobs of a queue with a bound, of schedules that
-- queue or replace, and of missed firings are made waiting; release_waiting, in the same transaction, lets
-- go those that may.
CREATE FUNCTION reports.plan_batch(
    p_scope text, p_incarnation bigint, p_generation bigint, p_owner uuid,
    p_schedule text[], p_version integer[], p_step bigint[], p_next_fire_at timestamptz[], p_next_nominal timestamp[],
    p_next_offset_s integer[], p_last_fire_at timestamptz[], p_last_nominal timestamp[], p_last_offset_s integer[],
    p_tzdata text,
    f_schedule text[], f_key text[], f_job uuid[], f_fire_at timestamptz[], f_nominal timestamp[], f_offset_s integer[],
    f_business_date date[], f_window_start timestamptz[], f_cause text[],
    g_schedule text[], g_from timestamptz[], g_to timestamptz[], g_from_key text[], g_to_key text[], g_firings bigint[],
    g_reason text[],
    p_known uuid DEFAULT NULL, f_window_end timestamptz[] DEFAULT NULL,
    p_zone_digest text[] DEFAULT NULL,
    OUT verdict text, OUT advanced text[], OUT planned integer, OUT newest_job uuid)
-- enable_seqscan: see take_in. plan_cache_mode: for short arrays the statement was planned anew in each call,
-- which took longer than its work.
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    bounded_queues text[];
    metered_queues text[];
    budgeted boolean;
    newest uuid[];
    probes uuid[];
    some_wait boolean;
BEGIN
    advanced := '{}';
    planned := 0;
    IF NOT reports.fence_holds(p_scope, p_incarnation, p_generation, p_owner, 'plan_batch') THEN
        verdict := 'fenced';
        RETURN;
    END IF;
    IF reports.is_held(p_scope) THEN
        verdict := 'held';
        RETURN;
    END IF;
    -- A dump restored below a connected leader changes neither its connection nor the fence row.
    IF p_known IS NOT NULL AND NOT EXISTS (SELECT FROM reports.job j WHERE j.id = p_known)
       AND reports.job_not_known(p_scope, ARRAY[p_known]) IS NOT NULL THEN
        verdict := 'moved';
        RETURN;
    END IF;
    -- I9: the database clock decides what is due, whatever the planner believed.
    IF EXISTS (SELECT FROM unnest(f_fire_at) t WHERE t > clock_timestamp()) THEN
        RAISE EXCEPTION 'a firing in the batch is not due yet' USING ERRCODE = 'RS004';
    END IF;
    IF EXISTS (SELECT FROM reports.circuit_outcome o WHERE o.scope = p_scope) THEN
        PERFORM reports.settle_circuits(p_scope, 1000);
    END IF;
    -- Without locks: an open psql session on these tables stops no firing (I12).
    bounded_queues := ARRAY(SELECT q.name::text FROM reports.queue q WHERE q.max_outstanding IS NOT NULL);
    metered_queues := ARRAY(SELECT q.name::text FROM reports.queue q WHERE q.catch_up_per_minute IS NOT NULL);
    budgeted := (SELECT s.catch_up_max IS NOT NULL OR s.catch_up_per_minute IS NOT NULL FROM reports.scope s WHERE s.name = p_scope);
    WITH given AS MATERIALIZED (
        SELECT * FROM unnest(p_schedule, p_version, p_step, p_next_fire_at, p_next_nominal, p_next_offset_s,
                             p_last_fire_at, p_last_nominal, p_last_offset_s, p_zone_digest)
            AS g (schedule, version, step, next_fire_at, next_nominal, next_offset_s, last_fire_at, last_nominal,
                  last_offset_s, zone_digest)
         ORDER BY g.schedule
    ), present AS MATERIALIZED (
        -- blocked, forbid: a job is open; replace: an open job is locked.
        SELECT g.*, p.last_fire_at AS was_fire_at, v.*,
               CASE WHEN p.circuit_opened_at IS NULL OR v.breaker_failures IS NULL THEN NULL
                    -- Further ahead than a probe is put: the circuit was opened while the clock was ahead.
                    WHEN p.circuit_probe_job IS NULL AND (p.circuit_probe_at <= clock_timestamp()
                         OR p.circuit_probe_at > clock_timestamp() + v.breaker_probe + interval '1 minute') THEN 'probe'
                    ELSE 'open' END AS circuit,
               CASE v.overlap WHEN 'forbid' THEN cardinality(reports.open_jobs(p_scope, g.schedule)) > 0
                              WHEN 'replace' THEN NOT reports.may_replace(p_scope, g.schedule)
                              ELSE false END AS blocked
          FROM given g
         CROSS JOIN LATERAL (SELECT q.last_fire_at, q.circuit_opened_at, q.circuit_probe_at, q.circuit_probe_job FROM reports.schedule_progress q
                              WHERE q.schedule = g.schedule AND q.scope = p_scope AND q.version = g.version AND q.step = g.step
                                FOR UPDATE SKIP LOCKED) p
         CROSS JOIN LATERAL (SELECT w.overlap, w.report, w.queue, w.priority, w.max_attempts, w.retry_base, w.retry_cap, w.timeout, w.breaker_failures, w.breaker_probe
                               FROM reports.schedule_version w
                              WHERE w.schedule = g.schedule AND w.version = g.version OFFSET 0) v
    ), moved AS (
        UPDATE reports.schedule_progress p
           SET step = p.step + 1, next_fire_at = g.next_fire_at, next_nominal = g.next_nominal,
               next_offset_s = g.next_offset_s,
               -- NULL: nothing was dealt with (a tzdata update moved the firing into the future).
               last_fire_at = coalesce(g.last_fire_at, p.last_fire_at),
               last_nominal = CASE WHEN g.last_fire_at IS NULL THEN p.last_nominal ELSE g.last_nominal END,
               last_offset_s = CASE WHEN g.last_fire_at IS NULL THEN p.last_offset_s ELSE g.last_offset_s END,
               tzdata = p_tzdata, zone_digest = coalesce(g.zone_digest, ''), updated_at = clock_timestamp()
          FROM present g
         WHERE p.schedule = g.schedule AND p.step = g.step AND p.version = g.version
           AND NOT (g.overlap = 'replace' AND g.blocked)
           -- What newer time zone data computed is planned as it stands or not at all (0018_zones.sql).
           AND (p.zone_digest <> g.zone_digest AND reports.tzdata_is_newer(p.tzdata, p_tzdata)
                AND (g.last_nominal IS NULL OR g.last_nominal < p.next_nominal)) IS NOT TRUE
        RETURNING p.schedule, p.version, g.was_fire_at, g.overlap, g.blocked, g.report, g.queue, g.priority, g.max_attempts,
                  g.retry_base, g.retry_cap, g.timeout, g.circuit, g.breaker_failures IS NOT NULL AS breaker
    ), firing AS MATERIALIZED (
        SELECT f.*, m.version, m.overlap, m.blocked, m.was_fire_at, m.report, m.queue, m.priority, m.max_attempts,
               m.retry_base, m.retry_cap, m.timeout, m.circuit, m.breaker
          FROM unnest(f_schedule, f_key, f_job, f_fire_at, f_nominal, f_offset_s, f_business_date, f_window_start,
                      f_cause, f_window_end) WITH ORDINALITY
               AS f (schedule, occurrence_key, job, fire_at, nominal, offset_s, business_date, window_start, cause, window_end, n)
          JOIN moved m USING (schedule)
    ), circuit AS MATERIALIZED (
        -- As forbid.
        SELECT f.* FROM firing f
         WHERE f.circuit IS NOT NULL
           AND NOT EXISTS (SELECT FROM reports.occurrence o
                            WHERE o.schedule = f.schedule AND o.occurrence_key = f.occurrence_key OFFSET 0)
    ), broken AS MATERIALIZED (
        -- Of what is due at once the latest is the probe: the others lie in a gap before it.
        SELECT c.* FROM circuit c
         WHERE c.n NOT IN (SELECT max(d.n) FROM circuit d WHERE d.circuit = 'probe' GROUP BY d.schedule)
    ), forbid AS MATERIALIZED (
        -- OFFSET 0: a look-up for each of the few there are. A key that is taken makes no job, whatever the policy.
        SELECT f.* FROM firing f
         WHERE f.overlap = 'forbid' AND f.n NOT IN (SELECT b.n FROM broken b)
           AND NOT EXISTS (SELECT FROM reports.occurrence o
                            WHERE o.schedule = f.schedule AND o.occurrence_key = f.occurrence_key OFFSET 0)
    ), forbidden AS MATERIALIZED (
        -- All but the first of a schedule that has no open job: after it there is one.
        SELECT f.* FROM forbid f
         WHERE f.n NOT IN (SELECT DISTINCT ON (g.schedule) g.n FROM forbid g WHERE NOT g.blocked ORDER BY g.schedule, g.n)
    ), suppressed AS MATERIALIZED (
        SELECT x.n, x.schedule, x.version, x.fire_at, x.occurrence_key, x.was_fire_at, 'overlap_forbid' AS reason,
               x.blocked AND x.circuit IS NULL AS follows -- what was suppressed before, and nothing lies between
          FROM forbidden x
        UNION ALL
        SELECT b.n, b.schedule, b.version, b.fire_at, b.occurrence_key, b.was_fire_at, 'circuit_open', true FROM broken b
    ), made AS (
        INSERT INTO reports.occurrence
            (schedule, occurrence_key, scope, job_id, scheduled_for, nominal_local, offset_s, business_date,
             window_start, window_end, cause, version, incarnation, generation)
        SELECT f.schedule, f.occurrence_key, p_scope, f.job, f.fire_at, f.nominal, f.offset_s, f.business_date,
               -- Windows are the rule's: jitter moves when a job runs, not what it is about.
               f.window_start, coalesce(f.window_end, f.fire_at), f.cause, f.version, p_incarnation, p_generation
          FROM firing f
         WHERE f.n NOT IN (SELECT x.n FROM suppressed x)
        ON CONFLICT (schedule, occurrence_key) DO NOTHING
        RETURNING schedule, occurrence_key, job_id
    ), job AS (
        INSERT INTO reports.job
            (id, schedule, occurrence_key, scope, report, queue, priority, state, waits_for, overlap, catch_up, run_after,
             dispatch_number, max_attempts, retry_base, retry_cap, timeout, breaker)
        SELECT f.job, f.schedule, f.occurrence_key, p_scope, f.report, f.queue, f.priority,
               CASE WHEN w.waits_for IS NULL THEN 'queued' ELSE 'waiting' END::reports.job_state, w.waits_for, f.overlap,
               f.cause = 'misfire', f.fire_at, (w.waits_for IS NULL)::integer, f.max_attempts, f.retry_base, f.retry_cap,
               f.timeout, f.breaker
          FROM firing f
         CROSS JOIN LATERAL (SELECT CASE WHEN f.overlap IN ('queue', 'replace') THEN 'overlap'
                                         WHEN f.queue = ANY (bounded_queues)
                                              OR (f.cause = 'misfire' AND (budgeted OR f.queue = ANY (metered_queues)))
                                              THEN 'capacity' END AS waits_for) w
         -- IS TRUE keeps the sub-select a hash table: joined, each firing is compared with each.
         WHERE (f.job IN (SELECT o.job_id FROM made o)) IS TRUE
        RETURNING id, schedule, occurrence_key, queue, run_after, waits_for, overlap
    ), message AS (
        INSERT INTO reports.outbox (scope, job_id, dispatch_number, schedule, occurrence_key, queue, scheduled_for, generation)
        SELECT p_scope, j.id, 1, j.schedule, j.occurrence_key, j.queue, j.run_after, p_generation FROM job j
         WHERE j.waits_for IS NULL
    ), gap AS (
        INSERT INTO reports.schedule_gap
            (schedule, scope, from_fire_at, to_fire_at, from_key, to_key, firings, reason, version, incarnation, generation)
        SELECT g.schedule, p_scope, g.from_at, g.to_at, g.from_key, g.to_key, g.firings, g.reason, m.version,
               p_incarnation, p_generation
          FROM unnest(g_schedule, g_from, g_to, g_from_key, g_to_key, g_firings, g_reason)
               AS g (schedule, from_at, to_at, from_key, to_key, firings, reason)
          JOIN moved m USING (schedule)
    ), range AS MATERIALIZED (
        SELECT x.schedule, x.version, x.reason, min(x.fire_at) AS from_at, max(x.fire_at) AS to_at, count(*) AS firings,
               (array_agg(x.occurrence_key ORDER BY x.n))[1] AS from_key,
               (array_agg(x.occurrence_key ORDER BY x.n DESC))[1] AS to_key,
               -- Firings that follow one another without a job between them are one gap, however many.
               -- One that somebody holds is not extended: a gap of their own serves as well.
               (SELECT y.id FROM reports.schedule_gap y
                 WHERE y.schedule = x.schedule AND y.to_fire_at = x.was_fire_at AND y.reason = x.reason
                   AND y.version = x.version AND x.follows AND x.schedule <> ALL (g_schedule)
                 ORDER BY y.id DESC LIMIT 1 FOR UPDATE SKIP LOCKED) AS extends
          FROM suppressed x GROUP BY x.schedule, x.version, x.reason, x.was_fire_at, x.follows
    ), extended AS (
        UPDATE reports.schedule_gap y
           SET to_fire_at = r.to_at, to_key = r.to_key, firings = y.firings + r.firings, generation = p_generation,
               incarnation = p_incarnation, recorded_at = clock_timestamp()
          FROM range r WHERE y.id = r.extends
    ), recorded AS (
        INSERT INTO reports.schedule_gap
            (schedule, scope, from_fire_at, to_fire_at, from_key, to_key, firings, reason, version, incarnation, generation)
        SELECT r.schedule, p_scope, r.from_at, r.to_at, r.from_key, r.to_key, r.firings, r.reason, r.version,
               p_incarnation, p_generation
          FROM range r WHERE r.extends IS NULL
    ), repeated AS (
        -- I3: a firing whose key is taken (by a manual one, or before an edit) makes no second
        -- occurrence, and is not just dropped either.
        INSERT INTO reports.schedule_gap
            (schedule, scope, from_fire_at, to_fire_at, from_key, to_key, firings, reason, version, incarnation, generation)
        SELECT f.schedule, p_scope, f.fire_at, f.fire_at, f.occurrence_key, f.occurrence_key, 1, 'key_taken', f.version,
               p_incarnation, p_generation
          FROM firing f
         -- IS NOT TRUE: see job; as a join it compared each firing with each, half the time of the call.
         WHERE (f.job IN (SELECT m.job_id FROM made m)) IS NOT TRUE
           AND f.n NOT IN (SELECT x.n FROM suppressed x)
    )
    SELECT (SELECT coalesce(array_agg(schedule), '{}') FROM moved), (SELECT count(*) FROM made),
           (SELECT coalesce(bool_or(j.waits_for IS NOT NULL), false) FROM job j),
           (SELECT m.job_id FROM made m ORDER BY m.job_id DESC LIMIT 1),
           ARRAY(SELECT DISTINCT ON (j.schedule) j.id FROM job j WHERE j.overlap = 'replace'
                  ORDER BY j.schedule, j.run_after DESC, j.id DESC),
           ARRAY(SELECT f.job FROM firing f WHERE f.circuit = 'probe' AND (f.job IN (SELECT m.job_id FROM made m)) IS TRUE)
      INTO advanced, planned, some_wait, newest_job, newest, probes;
    IF cardinality(probes) > 0 THEN
        PERFORM reports.note_probes(p_scope, probes);
    END IF;
    IF cardinality(newest) > 0 THEN
        PERFORM reports.replace_jobs(p_scope, newest);
    END IF;
    IF some_wait THEN
        PERFORM reports.release_waiting(p_scope, p_generation, 1000);
    END IF;
    verdict := 'ok';
END
$$;
COMMENT ON FUNCTION reports.plan_batch(text, bigint, bigint, uuid, text[], integer[], bigint[], timestamptz[], timestamp[], integer[], timestamptz[], timestamp[], integer[], text, text[], text[], uuid[], timestamptz[], timestamp[], integer[], date[], timestamptz[], text[], text[], timestamptz[], timestamptz[], text[], text[], bigint[], text[], uuid, timestamptz[], text[]) IS 'Writes one planned batch; ok, fenced, held, or moved: the database has forgotten job p_known, which the leader knows to be committed, so nothing is written. newest_job: the newest it made, for the high-water mark.';

-- A schedule that cannot be planned: nothing of it fires until its owner mends it.
CREATE FUNCTION reports.mark_problem(p_scope text, p_incarnation bigint, p_generation bigint, p_owner uuid,
                                     p_schedule text, p_step bigint, p_problem text)
RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT reports.fence_holds(p_scope, p_incarnation, p_generation, p_owner, 'mark_problem') THEN
        RETURN 'fenced';
    END IF;
    -- Waits for no row: while a schedule cannot be marked the others are planned (I12).
    PERFORM FROM reports.schedule_progress WHERE schedule = p_schedule AND scope = p_scope AND step = p_step FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 'changed';
    END IF;
    UPDATE reports.schedule_progress
       SET problem = p_problem, problem_since = coalesce(problem_since, clock_timestamp()), next_fire_at = NULL,
           step = step + 1, updated_at = clock_timestamp()
     WHERE schedule = p_schedule AND scope = p_scope AND step = p_step;
    RETURN 'ok';
END
$$;
COMMENT ON FUNCTION reports.mark_problem(text, bigint, bigint, uuid, text, bigint, text) IS 'Takes a schedule out of planning with a readable reason; changed: it moved on, or its row is locked.';

GRANT EXECUTE ON FUNCTION
    reports.due(text, integer, integer, timestamptz),
    reports.progress_of(text, text[]),
    reports.versions_of(text, text[], boolean, integer),
    reports.keys_taken(text, text[]),
    reports.next_due(text),
    reports.changes(text, integer, text),
    reports.take_in(text, bigint, bigint, uuid, text[], bigint[], integer[], bigint[], timestamptz[], timestamptz[], timestamp[], integer[], text[], text[], text[], text[], timestamptz[], text[]),
    reports.plan_batch(text, bigint, bigint, uuid, text[], integer[], bigint[], timestamptz[], timestamp[], integer[], timestamptz[], timestamp[], integer[], text, text[], text[], uuid[], timestamptz[], timestamp[], integer[], date[], timestamptz[], text[], text[], timestamptz[], timestamptz[], text[], text[], bigint[], text[], uuid, timestamptz[], text[]),
    reports.mark_problem(text, bigint, bigint, uuid, text, bigint, text)
TO report_scheduler;

RESET ROLE;
