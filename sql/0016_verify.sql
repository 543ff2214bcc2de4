-- What `reportctl verify` and `why` read: the ledger in chunks, each one statement and so one snapshot. The rules are
-- recomputed by the client, with the code that plans; what needs no rule is judged here.
--
-- A chunk finds the firings of its schedules by their keys, which order like the times they name: a local time
-- is less than a day from UTC. SECURITY DEFINER: a reader may read all of this, and the settings of the plans are
-- kept in one place.

SET ROLE report_owner;

CREATE FUNCTION reports.key_floor(p_at timestamptz) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT to_char(p_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')
$$;
COMMENT ON FUNCTION reports.key_floor(timestamptz) IS 'What no key of a firing on an instant''s UTC date comes before.';

-- A roll, and each day of an offset, passes over at most 366 days that are no business days (CALENDAR_CLOSED_MAX).
-- Such rules fire at most once a date, so that even years of keys are few.
CREATE FUNCTION reports.key_reach(p_calendar text, p_nonbusiness text, p_business_day_offset integer) RETURNS interval
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN p_calendar IS NULL OR (p_nonbusiness IN ('run', 'skip') AND p_business_day_offset = 0) THEN interval '0'
                ELSE make_interval(days => 367 * (1 + abs(p_business_day_offset))) END
$$;
COMMENT ON FUNCTION reports.key_reach(text, text, integer) IS 'How far a calendar may move a firing from the date that its key names.';

CREATE FUNCTION reports.verify_page(p_after text, p_only text, p_limit integer, p_from timestamptz, p_to timestamptz, p_most integer)
RETURNS TABLE (schedule text, firings bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
    SELECT v.schedule::text,
           (SELECT count(*) FROM (SELECT FROM reports.occurrence o
                                   WHERE o.schedule = v.schedule::text
                                     AND o.occurrence_key >= reports.key_floor(p_from - interval '2 days')
                                     AND o.occurrence_key < reports.key_floor(p_to + interval '3 days') LIMIT p_most) x)
      FROM reports.schedule_version v
     WHERE v.version = 1 AND v.schedule > p_after AND (p_only IS NULL OR v.schedule = p_only)
     ORDER BY v.schedule LIMIT p_limit
$$;
COMMENT ON FUNCTION reports.verify_page(text, text, integer, timestamptz, timestamptz, integer) IS 'Schedules there have ever been, by name, with how many firings of a span the ledger has (counting stops at p_most): how much of it makes a chunk.';

-- Four kinds of rows (part) in one answer: progress, version, gap, occurrence. n: the schedule's place in p_schedules.
CREATE FUNCTION reports.verify_ledger(p_schedules text[], p_from timestamptz, p_to timestamptz, p_most integer)
RETURNS TABLE (part text, n integer, version integer, at timestamptz, key text, to_at timestamptz, to_key text, word text, number bigint,
               nominal timestamp, offset_s integer, yes boolean, also boolean, rule text, time_zone text, anchor timestamptz,
               starts_at timestamptz, ends_at timestamptz, dialect text, exdates timestamp[], rdates timestamp[],
               calendar text, calendar_version bigint, nonbusiness text, business_day_offset integer, roll_collision text, business_date text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
BEGIN
    RETURN QUERY
    WITH subject AS MATERIALIZED (
        SELECT t.*, reports.key_floor(t.since - interval '2 days' - t.reach) AS low,
               reports.key_floor(p_to + interval '3 days' + t.reach) AS high FROM (
        -- Around an edit four days more are read, further than two zones' dates are apart: where its version begins
        -- depends on what was planned before.
        SELECT s.name, s.n::integer AS n, coalesce(f.version, 1) AS first_version,
               -- And one behind the span: what was withheld before it is in a gap by then.
               coalesce(l.version, 2147483647) AS last_version, r.version AS first_to_run,
               coalesce(k.key_form NOT IN ('date', 'minute', 'second'), false) AS of_periods,
               -- Whether an edit comes back to a period is told by all that an edit may come back to.
               CASE WHEN k.key_form NOT IN ('date', 'minute', 'second') THEN p_from - interval '800 days'
                    WHEN EXISTS (SELECT FROM reports.schedule_version e
                                  WHERE e.schedule = s.name AND e.version > coalesce(f.version, 0) AND e.effective_from < p_to + interval '1 day')
                    THEN p_from - interval '4 days' ELSE p_from END AS since,
               (SELECT coalesce(max(reports.key_reach(v.calendar, v.nonbusiness, v.business_day_offset)), interval '0')
                  FROM reports.schedule_version v WHERE v.schedule = s.name) AS reach
          FROM unnest(p_schedules) WITH ORDINALITY AS s (name, n)
          LEFT JOIN LATERAL (SELECT v.version FROM reports.schedule_version v
                              WHERE v.schedule = s.name AND v.effective_from <= p_from - interval '4 days'
                              ORDER BY v.version DESC LIMIT 1) f ON true
          LEFT JOIN LATERAL (SELECT v.version FROM reports.schedule_version v
                              WHERE v.schedule = s.name AND v.effective_from >= p_to + interval '1 day'
                              ORDER BY v.version LIMIT 1) l ON true
          LEFT JOIN LATERAL (SELECT v.version FROM reports.schedule_version v
                              WHERE v.schedule = s.name AND NOT v.paused AND NOT v.ended
                              ORDER BY v.version LIMIT 1) r ON true
          LEFT JOIN LATERAL (SELECT q.key_form FROM reports.schedule_progress q WHERE q.schedule = s.name) k ON true
        ) t
    )
    SELECT 'progress', s.n, p.version, p.switched_at, NULL::text, p.next_fire_at, NULL::text, p.key_form, NULL::bigint, NULL::timestamp,
           NULL::integer, p.problem IS NOT NULL, reports.is_held(p.scope), NULL::text, NULL::text, p.last_fire_at, NULL::timestamptz, NULL::timestamptz,
           NULL::text, NULL::timestamp[], NULL::timestamp[], NULL::text, NULL::bigint, NULL::text, NULL::integer, NULL::text, NULL::text
      FROM subject s
     CROSS JOIN LATERAL (SELECT * FROM reports.schedule_progress q WHERE q.schedule = s.name OFFSET 0) p
    UNION ALL
    -- number: has a version before it fixed the form of keys? key and to_key: dst_gap and dst_overlap; nominal: start_local;
    -- offset_s: jitter_s.
    SELECT 'version', s.n, v.version, v.effective_from, v.dst_gap, NULL, v.dst_overlap, v.kind, (v.version > s.first_to_run)::integer::bigint,
           v.start_local, v.jitter_s, v.paused, v.ended, v.rule, v.time_zone, v.anchor, v.starts_at, v.ends_at, v.dialect, v.exdates, v.rdates,
           v.calendar, v.calendar_version, v.nonbusiness, v.business_day_offset, v.roll_collision, v.business_date
      FROM subject s
     CROSS JOIN LATERAL (SELECT * FROM reports.schedule_version w
                          WHERE w.schedule = s.name AND w.version BETWEEN s.first_version AND s.last_version OFFSET 0) v
    UNION ALL
    SELECT 'gap', s.n, g.version, g.from_fire_at, g.from_key, g.to_fire_at, g.to_key, g.reason, g.firings, NULL, NULL, NULL, NULL, NULL, NULL,
           NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
      FROM subject s
     CROSS JOIN LATERAL (SELECT * FROM reports.schedule_gap y
                          WHERE y.schedule = s.name AND y.to_fire_at >= s.since AND y.from_fire_at < p_to OFFSET 0) g
    UNION ALL
    -- Of those that somebody asked for only the key counts.
    (SELECT 'occurrence', s.n, o.version, o.scheduled_for, o.occurrence_key, o.planned_at, o.business_date::text, o.cause, NULL,
            o.nominal_local, o.offset_s, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
       FROM subject s
      CROSS JOIN LATERAL (SELECT * FROM reports.occurrence x
                           WHERE x.schedule = s.name AND NOT s.of_periods
                             AND x.occurrence_key >= s.low AND x.occurrence_key < s.high
                             AND (x.cause IN ('manual', 'backfill') OR (x.scheduled_for >= s.since AND x.scheduled_for < p_to)) OFFSET 0) o
      LIMIT p_most)
    UNION ALL
    -- Names of periods do not sort among dates, and there are few of them.
    (SELECT 'occurrence', s.n, o.version, o.scheduled_for, o.occurrence_key, o.planned_at, o.business_date::text, o.cause, NULL,
            o.nominal_local, o.offset_s, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
       FROM subject s
      CROSS JOIN LATERAL (SELECT * FROM reports.occurrence x
                           WHERE x.schedule = s.name AND s.of_periods
                             AND (x.cause IN ('manual', 'backfill') OR (x.scheduled_for >= s.since AND x.scheduled_for < p_to)) OFFSET 0) o
      LIMIT p_most);
END
$$;
COMMENT ON FUNCTION reports.verify_ledger(text[], timestamptz, timestamptz, integer) IS 'A chunk of the ledger: progress, versions, gaps and at most p_most occurrences of the schedules in a span, in one snapshot.';

-- Firings that were not found at their time: does an occurrence have the key all the same, and was an older version
-- still planning then (p_near: its edit was made shortly before)?
CREATE FUNCTION reports.verify_keys(p_schedules text[], p_keys text[], p_versions integer[], p_at timestamptz[], p_near boolean[])
RETURNS TABLE (n integer, found boolean, version integer, cause text, at timestamptz, older_goes_on boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
    WITH asked AS MATERIALIZED (
        SELECT * FROM unnest(p_schedules, p_keys, p_versions, p_at, p_near) WITH ORDINALITY AS k (schedule, key, version, at, near, n)
    ), older AS MATERIALIZED (
        -- Once for each version, however many of its firings are asked about.
        SELECT v.schedule, v.version, greatest(o.at, g.at) AS last_at
          FROM (SELECT a.schedule, a.version, min(a.at) AS since, max(a.at) AS until, min(a.key) !~ '^\d{4}-\d\d-\d\d' AS of_periods,
                       (SELECT coalesce(max(reports.key_reach(w.calendar, w.nonbusiness, w.business_day_offset)), interval '0')
                          FROM reports.schedule_version w WHERE w.schedule = a.schedule) AS reach
                  FROM asked a WHERE a.near GROUP BY a.schedule, a.version) v
         CROSS JOIN LATERAL (SELECT max(x.scheduled_for) AS at FROM reports.occurrence x
                              WHERE x.schedule = v.schedule
                                AND x.occurrence_key >= CASE WHEN v.of_periods THEN '' ELSE reports.key_floor(v.since - interval '2 days' - v.reach) END
                                -- The last character there is: names of periods do not sort among dates.
                                AND x.occurrence_key < CASE WHEN v.of_periods THEN U&'\+10FFFF' ELSE reports.key_floor(v.until + interval '4 days' + v.reach) END
                                AND x.version < v.version AND x.cause NOT IN ('manual', 'backfill')
                                AND x.scheduled_for >= v.since AND x.scheduled_for < v.until + interval '1 day') o
         CROSS JOIN LATERAL (SELECT max(y.to_fire_at) AS at FROM reports.schedule_gap y
                              WHERE y.schedule = v.schedule AND y.to_fire_at >= v.since AND y.version < v.version) g
    )
    SELECT k.n::integer, o.schedule IS NOT NULL, o.version, o.cause, o.scheduled_for, coalesce(w.last_at >= k.at, false)
      FROM asked k
      LEFT JOIN LATERAL (SELECT * FROM reports.occurrence y
                          WHERE y.schedule = k.schedule AND y.occurrence_key = k.key OFFSET 0) o ON true
      LEFT JOIN older w ON k.near AND w.schedule = k.schedule AND w.version = k.version
$$;
COMMENT ON FUNCTION reports.verify_keys(text[], text[], integer[], timestamptz[], boolean[]) IS 'Which keys an occurrence has, and whether an older version went on planning at or after their time.';

-- What the chunks cannot meet: firings of schedules or versions that there never were, or whose key lies days from
-- their time. The ledger's block ranges find the span.
CREATE FUNCTION reports.verify_strays(p_from timestamptz, p_to timestamptz, p_schedule text, p_limit integer)
RETURNS TABLE (schedule text, key text, at timestamptz, version integer, what text, detail text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
    SELECT o.schedule, o.occurrence_key, o.scheduled_for, o.version,
           CASE WHEN v.schedule IS NULL THEN 'unnamed' ELSE 'key' END,
           CASE WHEN v.schedule IS NULL THEN format('the schedule has no version %s', o.version)
                ELSE format('its key is not that of a firing at this time; planned at %s', to_char(o.planned_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) END
      FROM reports.occurrence o
      LEFT JOIN reports.schedule_version v ON v.schedule = o.schedule AND v.version = o.version
     WHERE o.scheduled_for >= p_from AND o.scheduled_for < p_to AND (p_schedule IS NULL OR o.schedule = p_schedule)
       AND o.cause NOT IN ('manual', 'backfill')
       -- As key_floor has it, which would cost more than all the rest.
       AND (v.business_date ~ '^(previous|current|fiscal)_') IS NOT TRUE -- names of periods lie anywhere
       AND (v.schedule IS NULL OR o.occurrence_key < to_char((o.scheduled_for - interval '2 days') AT TIME ZONE 'UTC', 'YYYY-MM-DD')
            OR o.occurrence_key >= to_char((o.scheduled_for + interval '3 days') AT TIME ZONE 'UTC', 'YYYY-MM-DD'))
       -- Few come so far: where a calendar has moved it, the chunk has met it and judged its key.
       AND (v.schedule IS NULL
            OR o.occurrence_key < reports.key_floor(o.scheduled_for - interval '2 days' - reports.key_reach(v.calendar, v.nonbusiness, v.business_day_offset))
            OR o.occurrence_key >= reports.key_floor(o.scheduled_for + interval '3 days' + reports.key_reach(v.calendar, v.nonbusiness, v.business_day_offset)))
     LIMIT p_limit
$$;
COMMENT ON FUNCTION reports.verify_strays(timestamptz, timestamptz, text, integer) IS 'Occurrences of a span that no version can have named, whatever its rule.';

-- Each firing has its job, each job what its state says. What retention may have forgotten is not missed.
CREATE FUNCTION reports.verify_jobs(p_from timestamptz, p_to timestamptz, p_schedule text, p_limit integer)
RETURNS TABLE (schedule text, key text, at timestamptz, version integer, what text, detail text)
-- By key from firing to job to attempt, in proportion to the span and not to the tables, whatever the statistics say.
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    i reports.installation;
    attempts_since timestamptz;
    artifacts_since timestamptz;
BEGIN
    SELECT * INTO i FROM reports.installation;
    -- A round of retention may have begun before this statement: a minute is left to it.
    attempts_since := coalesce(statement_timestamp() - i.keep_attempts + interval '1 minute', '-infinity');
    artifacts_since := coalesce(statement_timestamp() - i.keep_artifacts + interval '1 minute', '-infinity');
    RETURN QUERY
    SELECT x.schedule, x.occurrence_key, x.scheduled_for, x.version, w.what, w.detail
      FROM (SELECT o.schedule, o.occurrence_key, o.scheduled_for, o.version, o.job_id, o.scope AS its_scope, j.*
              FROM reports.occurrence o
              LEFT JOIN LATERAL (SELECT q.id, q.schedule AS of_schedule, q.occurrence_key AS of_key, q.scope AS of_scope, q.state, q.attempt, q.revision,
                                        q.report, q.claimed_at, q.finished_at
                                   FROM reports.job q WHERE q.id = o.job_id) j ON true
             WHERE o.scheduled_for >= p_from AND o.scheduled_for < p_to AND (p_schedule IS NULL OR o.schedule = p_schedule)) x
      -- Nearly all have one attempt, whose outcome is the job's.
      LEFT JOIN LATERAL (SELECT count(*) AS ended, count(*) FILTER (WHERE a.attempt BETWEEN 1 AND x.attempt) AS numbered,
                                count(*) FILTER (WHERE a.outcome = 'succeeded') AS succeeded,
                                max(a.outcome) FILTER (WHERE a.attempt = x.attempt) AS last_outcome
                           FROM reports.job_attempt a WHERE a.job_id = x.id) t ON x.id IS NOT NULL
      LEFT JOIN LATERAL (SELECT count(*) AS files, count(*) FILTER (WHERE f.attempt = x.attempt) AS of_last
                           FROM reports.artifact f WHERE f.job_id = x.id) f ON x.id IS NOT NULL
     CROSS JOIN LATERAL (
           SELECT 'job' AS what, 'it has no job ' || x.job_id AS detail WHERE x.id IS NULL
           UNION ALL
           SELECT 'job', format('its job %s is that of %s:%s in scope %s', x.id, x.of_schedule, x.of_key, x.of_scope)
            WHERE (x.of_schedule, x.of_key, x.of_scope) <> (x.schedule, x.occurrence_key, x.its_scope)
           UNION ALL
           SELECT 'attempt', format('its job is %s after %s attempt(s), and %s are recorded', x.state, x.attempt, t.ended)
            WHERE (t.ended <> x.attempt - (x.state = 'running')::integer OR t.numbered <> t.ended)
              AND (x.finished_at IS NULL OR x.finished_at >= attempts_since)
           UNION ALL
           SELECT 'attempt', format('its job is %s, and its last attempt %s', x.state, t.last_outcome)
            WHERE (x.state = 'succeeded' AND t.last_outcome <> 'succeeded')
               OR (x.state = 'failed' AND t.last_outcome NOT IN ('failed', 'timeout', 'lost'))
               OR (x.state IN ('queued', 'waiting', 'retry_wait') AND t.last_outcome = 'succeeded' AND t.succeeded >= x.revision)
           UNION ALL
           SELECT 'attempt', format('its job is %s, and no attempt was ever begun', x.state) WHERE x.state IN ('succeeded', 'failed') AND x.attempt = 0
           UNION ALL
           SELECT 'artifact', format('its job has %s file(s) and is %s', f.files, x.state) WHERE f.files > x.revision - (x.state <> 'succeeded')::integer
           UNION ALL
           -- Only a report of kind noop makes none; what it was before its last edit nobody knows.
           SELECT 'artifact', 'its job has succeeded, and its file is not recorded'
             FROM reports.report r
            WHERE x.state = 'succeeded' AND f.of_last = 0 AND x.finished_at >= artifacts_since
              AND r.name = x.report AND r.kind <> 'noop' AND r.updated_at < x.claimed_at) w
     LIMIT p_limit;
END
$$;
COMMENT ON FUNCTION reports.verify_jobs(timestamptz, timestamptz, text, integer) IS 'Occurrences of a span whose job, attempts or artifact are not what the job''s state says.';

CREATE FUNCTION reports.verify_orphans(p_from timestamptz, p_to timestamptz, p_schedule text, p_limit integer)
RETURNS TABLE (schedule text, key text, at timestamptz, version integer, what text, detail text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off AS $$
    -- Somebody deleted its occurrence, and its key was asked for again: what was to be done about it is done.
    SELECT j.schedule, j.occurrence_key, j.created_at, NULL::integer, CASE WHEN again.job_id IS NULL THEN 'job' ELSE 'left' END,
           format('job %s has no occurrence', j.id) || coalesce('; its key was run again by hand, as job ' || again.job_id, '')
      FROM reports.job j
      LEFT JOIN LATERAL (SELECT o.job_id FROM reports.occurrence o
                          WHERE o.schedule = j.schedule AND o.occurrence_key = j.occurrence_key AND o.cause = 'manual' OFFSET 0) again ON true
     WHERE j.id >= reports.job_id_floor(p_from) AND j.id < reports.job_id_floor(p_to) AND (p_schedule IS NULL OR j.schedule = p_schedule)
       AND NOT EXISTS (SELECT FROM reports.occurrence o
                        WHERE o.schedule = j.schedule AND o.occurrence_key = j.occurrence_key AND o.job_id = j.id OFFSET 0)
     LIMIT p_limit
$$;
COMMENT ON FUNCTION reports.verify_orphans(timestamptz, timestamptz, text, integer) IS 'Jobs made in a span that no occurrence names; left: its key was run again by hand.';

-- By the ledger's block ranges and the jobs' ids: an empty span costs next to nothing, however large the tables are.
CREATE FUNCTION reports.verify_any(p_from timestamptz, p_to timestamptz) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
    SELECT EXISTS (SELECT FROM reports.occurrence o WHERE o.scheduled_for >= p_from AND o.scheduled_for < p_to)
        OR EXISTS (SELECT FROM reports.job j WHERE j.id >= reports.job_id_floor(p_from) AND j.id < reports.job_id_floor(p_to))
$$;
COMMENT ON FUNCTION reports.verify_any(timestamptz, timestamptz) IS 'Is there any occurrence due or job made in a span?';

-- reportctl why ----------------------------------------------------------------------------------

-- What led from one occurrence to its file, in order; `place` where times are equal.
CREATE FUNCTION reports.why_chain(p_schedule text, p_key text) RETURNS TABLE (place integer, step text, at timestamptz, what text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
    WITH o AS MATERIALIZED (
        SELECT x.*, j.id, j.state, j.attempt, j.claimed_at, j.finished_at, j.run_after, j.lease_until, j.cancel_requested,
               j.worker
          FROM reports.occurrence x LEFT JOIN reports.job j ON j.id = x.job_id
         WHERE x.schedule = p_schedule AND x.occurrence_key = p_key
    )
    SELECT 1, 'asked', r.requested_at, format('%s asked for it%s', r.requested_by, CASE WHEN r.argument IS NOT NULL THEN ' under this key' ELSE '' END)
      FROM o JOIN reports.request r ON r.id = o.request_id
    UNION ALL
    SELECT 1, CASE r.kind WHEN 'retry' THEN 'asked again' ELSE 'cancel' END, r.requested_at,
           format(CASE r.kind WHEN 'retry' THEN '%s asked to run it again' ELSE '%s asked to cancel it' END, r.requested_by)
           || CASE WHEN r.state <> 'done' THEN concat(' (', concat_ws(': ', r.state, r.answer), ')') ELSE '' END
      FROM o JOIN reports.request r ON r.requested_at >= o.planned_at AND r.kind IN ('retry', 'cancel') AND r.job_id = o.id
    UNION ALL
    SELECT 3, 'planned', o.planned_at,
           format('occurrence and job, cause %s, by leader %s, generation %s of incarnation %s', o.cause,
                  coalesce((SELECT e.member FROM reports.leadership_event e
                             WHERE e.scope = o.scope AND e.event = 'established' AND e.incarnation = o.incarnation AND e.generation = o.generation
                             ORDER BY e.id DESC LIMIT 1), '(its diary is forgotten)'), o.generation, o.incarnation)
      FROM o
    UNION ALL
    SELECT 4, 'message', m.at, m.what
      FROM o
     CROSS JOIN LATERAL (
           SELECT x.created_at AS at, 'it waits in the outbox for Kafka; workers pull the job without it' AS what
             FROM (SELECT * FROM reports.outbox y WHERE y.scope = o.scope LIMIT 10000) x WHERE x.job_id = o.id
           UNION ALL
           SELECT d.buried_at, 'it could not be published: ' || d.reason FROM reports.outbox_dead d WHERE d.scope = o.scope AND d.job_id = o.id) m
    UNION ALL
    SELECT 5, 'claimed', a.started_at, format('attempt %s, by worker %s', a.attempt, coalesce(w.name, a.worker::text))
      FROM o JOIN reports.job_attempt a ON a.job_id = o.id LEFT JOIN reports.worker w ON w.id = a.worker
    UNION ALL
    SELECT 6, a.outcome, a.ended_at, concat_ws(': ', format('attempt %s', a.attempt) || CASE WHEN a.exit_code <> 0 THEN ', exit code ' || a.exit_code ELSE '' END, a.error)
      FROM o JOIN reports.job_attempt a ON a.job_id = o.id
    UNION ALL
    SELECT 5, 'claimed', o.claimed_at, format('attempt %s, by worker %s, whose claim holds until %s', o.attempt, coalesce(w.name, o.worker::text),
                                              to_char(o.lease_until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
      FROM o LEFT JOIN reports.worker w ON w.id = o.worker WHERE o.state = 'running'
    UNION ALL
    SELECT 7, 'artifact', f.created_at, format('%s bytes%s in store %s; reportctl job has its path', f.size_bytes, ', ' || f.row_count || ' rows,', f.store)
           || CASE WHEN EXISTS (SELECT FROM reports.artifact l WHERE l.job_id = f.job_id AND l.attempt > f.attempt) THEN '; superseded' ELSE '' END
      FROM o JOIN reports.artifact f ON f.job_id = o.id
    UNION ALL
    SELECT 8, 'delivery', coalesce(d.finished_at, d.created_at), concat_ws(': ', format('%s to %s by %s', d.state, d.recipient, d.channel), d.error)
      FROM o JOIN reports.delivery d ON d.job_id = o.id
    UNION ALL
    -- What one statement wrote has times a little apart: the end is behind all of it.
    SELECT 9, 'job',
           CASE WHEN o.state IN ('succeeded', 'failed', 'cancelled')
                THEN greatest(o.finished_at, (SELECT max(a.ended_at) FROM reports.job_attempt a WHERE a.job_id = o.id),
                              (SELECT max(f.created_at) FROM reports.artifact f WHERE f.job_id = o.id))
                WHEN o.state IN ('retry_wait', 'queued', 'waiting') THEN o.run_after END,
           CASE WHEN o.id IS NULL THEN 'there is none, which must never be: reportctl verify'
                WHEN o.state IN ('succeeded', 'failed', 'cancelled') THEN format('%s, after %s attempt(s)', o.state, o.attempt)
                WHEN o.state = 'retry_wait' THEN format('from then on attempt %s may begin', o.attempt + 1)
                WHEN o.state = 'queued' THEN 'queued: from then on a worker may claim it'
                ELSE o.state::text || CASE WHEN o.cancel_requested THEN ', and is to be cancelled' ELSE '' END END
      FROM o
     ORDER BY 3 NULLS LAST, 1
$$;
COMMENT ON FUNCTION reports.why_chain(text, text) IS 'From an occurrence to its file: each step with its time.';

-- Leaders and holds of a scope while something was due and not planned.
CREATE FUNCTION reports.why_around(p_scope text, p_from timestamptz, p_to timestamptz) RETURNS TABLE (place integer, step text, at timestamptz, what text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT 2, 'leader', e.at, format('%s: %s', coalesce(e.member, 'an operator'), concat_ws(', ', replace(e.event, '_', ' '), e.reason, e.detail))
      FROM ((SELECT * FROM reports.leadership_event x
              WHERE x.scope = p_scope AND x.at < p_from AND x.event IN ('established', 'activated', 'released', 'stepped_down')
              ORDER BY x.id DESC LIMIT 1)
            UNION ALL
            (SELECT * FROM reports.leadership_event x
              WHERE x.scope = p_scope AND x.at >= p_from AND x.at <= p_to AND x.event IN ('established', 'activated', 'released', 'stepped_down')
              ORDER BY x.id LIMIT 20)) e
    UNION ALL
    SELECT 2, 'hold', t.at, t.what
      FROM reports.hold h
     CROSS JOIN LATERAL (
           SELECT h.since AS at, format('the %s was held by %s: %s', CASE WHEN h.scope IS NULL THEN 'installation' ELSE 'scope' END, h.raised_by, h.reason) AS what
           UNION ALL SELECT h.lifted_at, format('the hold was lifted by %s', h.lifted_by) WHERE h.lifted_at <= p_to) t
     WHERE h.queue IS NULL AND (h.scope IS NULL OR h.scope = p_scope) AND h.since <= p_to AND coalesce(h.lifted_at, 'infinity') >= p_from
     ORDER BY 3, 1
$$;
COMMENT ON FUNCTION reports.why_around(text, timestamptz, timestamptz) IS 'Who led a scope and what held it between two instants, with the last event before.';

GRANT EXECUTE ON FUNCTION
    reports.why_chain(text, text),
    reports.why_around(text, timestamptz, timestamptz),
    reports.verify_page(text, text, integer, timestamptz, timestamptz, integer),
    reports.verify_ledger(text[], timestamptz, timestamptz, integer),
    reports.verify_keys(text[], text[], integer[], timestamptz[], boolean[]),
    reports.verify_strays(timestamptz, timestamptz, text, integer),
    reports.verify_jobs(timestamptz, timestamptz, text, integer),
    reports.verify_orphans(timestamptz, timestamptz, text, integer),
    reports.verify_any(timestamptz, timestamptz)
TO report_reader;

RESET ROLE;
