-- What is read, and how: by counters of scans, so it is the plan that was really used that is judged,
-- inside the functions too. The tables have no statistics here, or wrong ones, which is when a planner
-- goes wrong (a queue was just created, just drained, or grew overnight).

-- Without the dead rows that other files have left by rolling back.
VACUUM reports.job, reports.occurrence, reports.outbox, reports.schedule_progress, reports.schedule_version, reports.schedule_change, reports.job_attempt;
BEGIN;
\ir fixture.psql
SELECT no_plan();

-- 20 000 schedules of which 20 are due; 20 000 jobs that are done, 300 that may be claimed, 100 that run.
CREATE TEMP TABLE w AS SELECT pg_temp.add_worker() AS id;
INSERT INTO reports.schedule_version
    (schedule, version, scope, effective_from, recorded_at, recorded_by, ended, report, description, kind, rule, time_zone, anchor, starts_at, ends_at, paused, dst_gap,
     dst_overlap, calendar, nonbusiness, business_date, misfire, misfire_max, misfire_age, misfire_grace, overlap, queue, priority, jitter_s, max_attempts, retry_base,
     retry_cap, timeout, parameters, owner)
SELECT 's' || n, 1, 'tap', now(), now(), 'x', false, 'nothing', '', 'cron', '@daily', 'UTC', NULL, NULL, NULL, false, 'auto', 'auto', NULL, 'run', 'run_date',
       NULL, 31, '7 days', '1 min', 'allow', 'default', 0, 0, 3, '10 s', '10 min', '1 h', '{}', 'x' FROM generate_series(1, 20000) n;
INSERT INTO reports.schedule_progress (schedule, scope, version, next_fire_at, next_nominal, next_offset_s, switched_at, key_form)
SELECT 's' || n, 'tap', 1, now() + CASE WHEN n <= 20 THEN interval '-1 s' ELSE n * interval '1 s' + interval '1 h' END, now(), 0, now(), 'date' FROM generate_series(1, 20000) n;
INSERT INTO reports.schedule_change (scope, schedule, version) SELECT 'tap', 's' || n, 1 FROM generate_series(1, 20000) n;
INSERT INTO reports.job (id, schedule, occurrence_key, scope, report, queue, priority, state, run_after, attempt, max_attempts, retry_base, retry_cap, timeout,
                         attempt_token, worker, claimed_at, lease_until, finished_at)
SELECT gen_random_uuid(), 's' || n, 'k', 'tap', 'nothing', 'default', 0, s.state, now() + CASE WHEN n > 20050 THEN interval '9 min' ELSE '0' END, 1, 3, '10 s', '10 min', '1 h',
       CASE s.state WHEN 'running' THEN gen_random_uuid() END, CASE s.state WHEN 'running' THEN w.id END, CASE s.state WHEN 'running' THEN now() END,
       CASE s.state WHEN 'running' THEN now() + CASE WHEN n < 20610 THEN interval '-10 min' ELSE interval '1 min' END END, CASE s.state WHEN 'succeeded' THEN now() END
  FROM w, generate_series(1, 20700) n,
       LATERAL (SELECT (CASE WHEN n <= 20000 THEN 'succeeded' WHEN n <= 20300 THEN 'retry_wait' WHEN n <= 20600 THEN 'queued' ELSE 'running' END)::reports.job_state AS state) s;
UPDATE reports.job SET run_after = now() WHERE state = 'queued';
-- Some of them are missed firings.
UPDATE reports.job SET catch_up = true WHERE state = 'retry_wait' AND schedule <= 's20020';
UPDATE reports.scope SET catch_up_per_minute = 1000 WHERE name = 'tap';
INSERT INTO reports.occurrence (schedule, occurrence_key, scope, job_id, scheduled_for, cause, version, incarnation, generation)
SELECT schedule, occurrence_key, scope, id, now(), 'schedule', 1, 1, 100 FROM reports.job;
INSERT INTO reports.outbox (scope, job_id, dispatch_number, schedule, occurrence_key, queue, scheduled_for, generation) SELECT 'tap', id, 1, schedule, occurrence_key, queue, now(), 100 FROM reports.job;
UPDATE reports.fence_pulse SET reap_not_before = '-infinity' WHERE scope = 'tap';

CREATE TEMP TABLE arg AS
SELECT ARRAY(SELECT id FROM reports.job WHERE state = 'queued' ORDER BY id LIMIT 100) AS queued,
       ARRAY(SELECT id FROM reports.job WHERE state = 'running' AND lease_until > now() ORDER BY id LIMIT 80) AS running,
       ARRAY(SELECT attempt_token FROM reports.job WHERE state = 'running' AND lease_until > now() ORDER BY id LIMIT 80) AS tokens,
       ARRAY(SELECT id FROM reports.outbox ORDER BY id LIMIT 100) AS messages,
       ARRAY(SELECT 's' || n FROM generate_series(1, 20) n) AS due,
       ARRAY(SELECT id FROM reports.schedule_change ORDER BY id LIMIT 100) AS changes,
       ARRAY(SELECT 's' || n FROM generate_series(1, 100) n) AS changed;

-- Runs a statement and undoes it. Returns the big tables it read from end to end, and the indexes of
-- job it used.
CREATE FUNCTION pg_temp.scans(p_sql text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    before jsonb;
    seq text;
    idx text;
BEGIN
    SELECT jsonb_object_agg(oid::regclass::text, pg_stat_get_xact_numscans(oid)) INTO before FROM pg_class WHERE relnamespace = 'reports'::regnamespace AND relkind IN ('r', 'i');
    BEGIN
        EXECUTE p_sql;
        SELECT string_agg(oid::regclass::text, ' ' ORDER BY relname) INTO seq FROM pg_class
         WHERE relnamespace = 'reports'::regnamespace AND relkind = 'r' AND pg_stat_get_xact_numscans(oid) > (before ->> oid::regclass::text)::bigint
           AND relname IN ('job', 'occurrence', 'outbox', 'schedule_progress', 'schedule_version', 'schedule_change', 'job_attempt');
        SELECT string_agg(relname, ' ' ORDER BY relname) INTO idx FROM pg_class
         WHERE relnamespace = 'reports'::regnamespace AND relkind = 'i' AND relname LIKE 'job\_%' AND relname NOT LIKE 'job_attempt%' AND pg_stat_get_xact_numscans(oid) > (before ->> oid::regclass::text)::bigint;
        RAISE EXCEPTION 'undo' USING ERRCODE = 'TAP00';
    EXCEPTION WHEN SQLSTATE 'TAP00' THEN
        NULL;
    END;
    RETURN format('read whole: %s; job by: %s', coalesce(seq, 'none'), coalesce(idx, 'none'));
END
$$;
SELECT is(pg_temp.scans('SELECT count(*) FROM reports.job WHERE error IS NOT NULL'), 'read whole: reports.job; job by: none', 'a scan of the whole table is seen by this test');

-- Only what is due is read: the time is a bound of the index scan, not a filter over all schedules.
CREATE FUNCTION pg_temp.entries(p_index regclass, p_sql text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    before bigint := pg_stat_get_xact_tuples_returned(p_index);
BEGIN
    EXECUTE p_sql;
    RETURN pg_stat_get_xact_tuples_returned(p_index) - before;
END
$$;
SELECT is(pg_temp.entries('reports.schedule_progress_due', $$SELECT count(*) FROM reports.due('tap', 1000)$$), 20::bigint, 'due reads as many index entries as schedules are due');
SELECT cmp_ok(pg_temp.entries('reports.schedule_progress_due', $$SELECT reports.next_due('tap')$$), '<=', 1::bigint, 'next_due reads one');
SELECT cmp_ok(pg_temp.entries('reports.schedule_paused_until', $$SELECT reports.next_due('tap')$$), '<=', 2::bigint, 'and of the pauses with an end the next one');

CREATE TEMP TABLE statement (name text, sql text, jobs text);
INSERT INTO statement VALUES
    ('due', $$SELECT count(*) FROM reports.due('tap', 1000)$$, 'none'),
    ('next_due', $$SELECT reports.next_due('tap')$$, 'none'),
    ('changes', $$SELECT count(*) FROM reports.changes('tap', 100)$$, 'none'),
    ('progress_of', $$SELECT count(*) FROM arg, reports.progress_of('tap', changed)$$, 'none'),
    ('take_in', $$SELECT f.* FROM arg, reports.take_in('tap', 1, 100, pg_temp.leader(), changed, changes, array_fill(1, '{100}'), array_fill(1::bigint, '{100}'), array_fill(now(), '{100}'),
                  array_fill(now(), '{100}'), array_fill(now()::timestamp, '{100}'), array_fill(0, '{100}'), array_fill('date'::text, '{100}'), array_fill(NULL::text, '{100}'), array_fill('x'::text, '{100}')) f$$, 'none'),
    ('plan_batch', $$SELECT f.* FROM arg, reports.plan_batch('tap', 1, 100, pg_temp.leader(), due, array_fill(1, '{20}'), array_fill(1::bigint, '{20}'), array_fill(now(), '{20}'), array_fill(now()::timestamp, '{20}'),
                     array_fill(0, '{20}'), array_fill(now(), '{20}'), array_fill(now()::timestamp, '{20}'), array_fill(0, '{20}'), 'x', due, array_fill('new'::text, '{20}'), ARRAY(SELECT gen_random_uuid() FROM unnest(due)),
                     array_fill(now(), '{20}'), array_fill(now()::timestamp, '{20}'), array_fill(0, '{20}'), array_fill(NULL::date, '{20}'), array_fill(now(), '{20}'), array_fill('schedule'::text, '{20}'),
                     '{}', '{}', '{}', '{}', '{}', '{}', '{}') f$$, 'none'),
    ('mark_problem', $$SELECT reports.mark_problem('tap', 1, 100, pg_temp.leader(), 's1', 1, 'x')$$, 'none'),
    ('zones_in_use', $$SELECT count(*) FROM reports.zones_in_use('tap')$$, 'none'),
    ('of_zone', $$SELECT f.* FROM reports.of_zone('tap', 'UTC', 'x', '', 100) f$$, 'none'),
    ('rezone', $$SELECT f.* FROM arg, reports.rezone('tap', 1, 100, pg_temp.leader(), 'x', due, array_fill(1::bigint, '{20}'), array_fill(now(), '{20}'), array_fill(now()::timestamp, '{20}'),
                 array_fill(0, '{20}'), array_fill(NULL::timestamptz, '{20}'), array_fill('x'::text, '{20}')) f$$, 'none'),
    -- What is done is neither read nor passed over.
    ('tend', $$SELECT f.* FROM reports.tend('tap', 1, 100, pg_temp.leader(), 100) f$$, 'job_catch_up_waiting job_catching_up job_pkey job_retry_wait job_running job_waiting( job_waits_its_turn)?'),
    ('outbox_ack', $$SELECT f.* FROM arg, reports.outbox_ack('tap', 1, 100, pg_temp.leader(), messages) f$$, 'none'),
    ('outbox_bury', $$SELECT f.* FROM arg, reports.outbox_bury('tap', 1, 100, pg_temp.leader(), messages, array_fill('x'::text, '{100}')) f$$, 'none'),
    ('outbox_trim', $$SELECT f.* FROM reports.outbox_trim('tap', 1, 100, pg_temp.leader(), 20000) f$$, 'none'),
    ('scope_figures', $$SELECT count(*) FROM reports.scope_figures('tap')$$, 'job_catch_up_waiting job_ready job_retry_wait job_running job_waiting( job_waits_its_turn)?'),
    -- By primary key, and never through the ready or running index, which are full of dead entries when it matters.
    ('claim_ids', $$SELECT count(*) FROM arg, w, reports.claim_ids(w.id, '{default}', queued)$$, 'job_pkey'),
    ('claim_ready', $$SELECT count(*) FROM w, reports.claim_ready(w.id, '{default}', 50)$$, 'job_pkey job_ready'),
    ('claims_of', $$SELECT count(*) FROM w, reports.claims_of(w.id)$$, 'job_running'),
    ('heartbeat', $$SELECT count(*) FROM arg, w, reports.heartbeat(w.id, running, tokens)$$, 'job_pkey'),
    ('record_outcomes', $$SELECT count(*) FROM arg, reports.record_outcomes(running, tokens, array_fill('failed'::text, '{80}'), array_fill(true, '{80}'), array_fill('x'::text, '{80}'), array_fill(1, '{80}'),
                          array_fill(NULL::text, '{80}'), array_fill(NULL::text, '{80}'), array_fill(NULL::text, '{80}'), array_fill(NULL::bigint, '{80}'), array_fill(NULL::bigint, '{80}'), array_fill(NULL::bytea, '{80}'))$$, 'job_pkey');

CREATE FUNCTION pg_temp.pretend(p_tuples real, p_pages integer) RETURNS void LANGUAGE sql AS $$
    DELETE FROM pg_statistic WHERE starelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'reports'::regnamespace);
    UPDATE pg_class SET reltuples = p_tuples, relpages = p_pages WHERE relnamespace = 'reports'::regnamespace AND relkind IN ('r', 'i');
$$;
-- Seven times, since the sixth may be planned without knowing the values.
CREATE FUNCTION pg_temp.all_scans(p_sql text) RETURNS text LANGUAGE sql
AS $$ SELECT string_agg(DISTINCT s.scans, ' | ') FROM (SELECT pg_temp.scans(p_sql) AS scans FROM generate_series(1, 7)) s $$;

SELECT pg_temp.pretend(-1, 0);
SELECT matches(pg_temp.all_scans(sql), format('^read whole: none; job by: %s$', jobs), name || ' without statistics') FROM statement;
SELECT pg_temp.pretend(0, 0);
SELECT matches(pg_temp.all_scans(sql), format('^read whole: none; job by: %s$', jobs), name || ' with the statistics of empty tables') FROM statement;
SELECT pg_temp.pretend(1, 1);
SELECT matches(pg_temp.all_scans(sql), format('^read whole: none; job by: %s$', jobs), name || ' with the statistics of tables with a row') FROM statement;
SELECT cmp_ok(pg_temp.entries('reports.schedule_change_pkey', (SELECT sql FROM statement WHERE name = 'take_in')), '<=', 300::bigint, 'take_in reads as many change rows as it is given, however many wait');
SELECT cmp_ok(pg_temp.entries('reports.outbox_pkey', (SELECT sql FROM statement WHERE name = 'outbox_ack')), '<=', 200::bigint, 'outbox_ack as many messages as are acknowledged');
SELECT cmp_ok(pg_temp.entries('reports.outbox_pkey', (SELECT sql FROM statement WHERE name = 'outbox_bury')), '<=', 300::bigint, 'outbox_bury as many as are buried');
SELECT cmp_ok(pg_temp.entries('reports.schedule_version_zone', (SELECT sql FROM statement WHERE name = 'of_zone')), '<=', 110::bigint, 'of_zone reads a page of the zone''s schedules');
SELECT cmp_ok(pg_temp.entries('reports.schedule_version_zone', (SELECT sql FROM statement WHERE name = 'zones_in_use')), '<=', 10::bigint, 'zones_in_use goes from zone to zone');
ANALYZE reports.job, reports.occurrence, reports.outbox, reports.schedule_progress, reports.schedule_version, reports.schedule_change, reports.job_attempt;
SELECT matches(pg_temp.all_scans(sql), format('^read whole: none; job by: %s$', jobs), name || ' with true statistics') FROM statement;

-- A heartbeat rewrites no index entry, so that it stays cheap (HOT).
SELECT is_empty($$SELECT i.indexrelid::regclass FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
                   WHERE i.indrelid = 'reports.job'::regclass AND a.attname IN ('lease_until', 'attempt_token', 'claimed_at')$$, 'no index of job has a column that a heartbeat writes');

SELECT * FROM finish();
ROLLBACK;
