-- What replicas' observers read: facts about a scope that do not depend on who leads.
BEGIN;
\ir fixture.psql
SELECT no_plan();

CREATE FUNCTION pg_temp.figure(p_figure text, p_label text DEFAULT NULL) RETURNS numeric LANGUAGE sql AS $$
    SELECT round(f.value::numeric) FROM reports.scope_figures('tap') f
     WHERE f.figure = p_figure AND f.label IS NOT DISTINCT FROM p_label
$$;

SELECT is_empty($$SELECT * FROM reports.scope_figures('no such scope')$$, 'a scope that does not exist has no figures');
SELECT is_empty($$SELECT figure, label FROM reports.scope_figures('tap') GROUP BY figure, label HAVING count(*) > 1$$, 'each figure is told once');
SELECT is_empty($$SELECT figure FROM reports.scope_figures('tap') WHERE value < 0$$, 'no figure is negative');

-- Leaders
SELECT is(pg_temp.figure('fence_generation'), 100::numeric, 'the accepted generation');
SELECT is(pg_temp.figure('fence_incarnation'), 1::numeric, 'and incarnation');
DELETE FROM reports.fence_pulse WHERE scope = 'tap';
INSERT INTO reports.fence_pulse (scope) VALUES ('tap');
SELECT is(pg_temp.figure('beat_age_seconds'), NULL, 'there is no sign of life before the first');
UPDATE reports.fence SET established_at = statement_timestamp() - interval '40 s' WHERE scope = 'tap';
SELECT is(pg_temp.figure('leaderless_seconds'), 40::numeric, 'a leader that prepares leads nobody yet');
UPDATE reports.fence SET activated_at = statement_timestamp() - interval '30 s' WHERE scope = 'tap';
UPDATE reports.fence_pulse SET beat_at = statement_timestamp() - interval '10 s' WHERE scope = 'tap';
SELECT is(pg_temp.figure('leaderless_seconds'), 0::numeric, 'an active one does');
SELECT is(pg_temp.figure('beat_age_seconds'), 10::numeric, 'its sign of life has an age');
UPDATE reports.fence_pulse SET beat_at = statement_timestamp() - interval '70 s' WHERE scope = 'tap';
SELECT is(pg_temp.figure('leaderless_seconds'), 70::numeric, 'a silent one counts from its last sign of life');
UPDATE reports.fence SET released_at = statement_timestamp() - interval '50 s' WHERE scope = 'tap';
SELECT is(pg_temp.figure('leaderless_seconds'), 50::numeric, 'one that gave up from then on');
INSERT INTO reports.scope (name, created_at) VALUES ('unborn', statement_timestamp() - interval '90 s');
SELECT is((SELECT round(value::numeric) FROM reports.scope_figures('unborn') WHERE figure = 'leaderless_seconds'), 90::numeric, 'a scope nobody ever led from its making');

-- Planning
SELECT is(pg_temp.figure('due_lag_seconds'), 0::numeric, 'nothing is due');
INSERT INTO reports.schedule_progress (schedule, scope, version, next_fire_at, switched_at)
SELECT 's' || n, 'tap', 1, statement_timestamp() + make_interval(secs => n), now() FROM unnest('{-300,-20,600}'::integer[]) n;
SELECT is(pg_temp.figure('due_lag_seconds'), 300::numeric, 'the oldest due firing counts');
UPDATE reports.schedule_progress SET problem = 'broken', next_fire_at = NULL WHERE scope = 'tap' AND schedule <> 's600';
SELECT is(pg_temp.figure('due_lag_seconds'), 0::numeric, 'schedules with a problem are not due');
SELECT is(pg_temp.figure('problem_schedules'), 2::numeric, 'they are counted');
INSERT INTO reports.schedule (name, scope, report, kind, rule) VALUES ('edited', 'tap', 'nothing', 'cron', '* * * * *');
UPDATE reports.schedule_change SET made_at = statement_timestamp() - interval '33 s' WHERE scope = 'tap';
SELECT is(pg_temp.figure('edits_waiting'), 1::numeric, 'an edit waits for the leader');
SELECT is(pg_temp.figure('edit_oldest_seconds'), 33::numeric, 'for so long');
SELECT is(pg_temp.figure('time_zones_outdated'), 0::numeric, 'no time zone data are known to be older than others');
INSERT INTO reports.zone_state (scope, time_zone, tzdata, digest, newest_tzdata, newest_digest)
VALUES ('tap', 'UTC', '2030a', 'a', '2030b', 'a'), ('tap', 'Europe/Berlin', '2030a', 'a', '2030b', 'b'), ('tap', 'Asia/Tokyo', '2030b', 'a', '2030b', 'b');
SELECT is(pg_temp.figure('time_zones_outdated'), 1::numeric, 'those of another file and a newer version are');
SELECT is(pg_temp.figure('requests_waiting'), 0::numeric, 'no request does');
INSERT INTO reports.request (id, kind, scope, subject, requested_at, deadline)
VALUES (gen_random_uuid(), 'trigger', 'tap', 'edited', statement_timestamp() - interval '12 s', now() + interval '1 h');
SELECT is(pg_temp.figure('request_oldest_seconds'), 12::numeric, 'now one does');

SELECT is_empty($$SELECT * FROM reports.scope_figures('tap') WHERE figure = 'recent_gap_firings'$$, 'there is no gap');
INSERT INTO reports.schedule_gap (schedule, scope, from_fire_at, to_fire_at, from_key, to_key, firings, reason, version, incarnation, generation)
SELECT 'x', s, now() - interval '1 day', now() - t, 'a', 'b', n, r, 1, 1, 100
  FROM (VALUES ('tap', interval '10 min', 7, 'key_taken'), ('tap', '50 min', 3, 'key_taken'), ('tap', '20 min', 1, 'misfire_skip'), ('tap', '2 h', 90, 'misfire_skip'), ('main', '1 min', 5, 'key_taken')) AS v (s, t, n, r);
SELECT results_eq($$SELECT label, value::integer FROM reports.scope_figures('tap') WHERE figure = 'recent_gap_firings' ORDER BY 1$$,
                  $$VALUES ('key_taken', 10), ('misfire_skip', 1)$$, 'firings in recent gaps by reason');

-- Writes refused, and the outbox
INSERT INTO reports.fence_rejection (at, scope, operation, incarnation, generation, stored_incarnation, stored_generation, application_name)
SELECT statement_timestamp() - make_interval(mins => n), 'tap', 'tend', 1, 99, 1, 100, 'x' FROM unnest('{60,16,14,1}'::integer[]) n;
SELECT is(pg_temp.figure('refused_writes'), 2::numeric, 'refused writes of the last quarter of an hour');
SELECT is(pg_temp.figure('outbox_oldest_seconds'), 0::numeric, 'an empty outbox has no age');
INSERT INTO reports.outbox (scope, job_id, dispatch_number, schedule, occurrence_key, queue, scheduled_for, generation, created_at)
SELECT 'tap', gen_random_uuid(), 1, 's', 'k' || n, 'default', now(), 100, statement_timestamp() - make_interval(secs => 100 - n) FROM generate_series(1, 3) n;
SELECT is(pg_temp.figure('outbox_messages'), 3::numeric, 'messages wait');
SELECT is(pg_temp.figure('outbox_oldest_seconds'), 99::numeric, 'the oldest for so long');

-- Jobs and workers
CREATE TEMP TABLE me AS SELECT pg_temp.add_worker('{default}') AS id;
DO $$ BEGIN
    PERFORM pg_temp.add_job('q1', 'queued', NULL, 'default', 5, 3, 0, statement_timestamp() - interval '5 s');
    PERFORM pg_temp.add_job('q2', 'queued', NULL, 'default', 0, 3, 0, statement_timestamp() - interval '80 s');
    PERFORM pg_temp.add_job('q3', 'queued', NULL, 'fast', 0, 3, 0, statement_timestamp() - interval '7 s');
    PERFORM pg_temp.add_job('r1', 'running', (SELECT id FROM me));
    PERFORM pg_temp.add_job('w1', 'retry_wait');
    PERFORM pg_temp.add_job('s1', 'succeeded');
END $$;
SELECT results_eq($$SELECT label, value::integer FROM reports.scope_figures('tap') WHERE figure = 'jobs' ORDER BY label$$,
                  $$VALUES ('queued', 3), ('retry_wait', 1), ('running', 1), ('waiting', 0)$$, 'unfinished jobs by state');
SELECT is(pg_temp.figure('oldest_queued_seconds', 'default'), 80::numeric, 'the oldest of a queue, whatever its priority');
SELECT is(pg_temp.figure('oldest_queued_seconds', 'fast'), 7::numeric, 'of each queue');
SELECT is_empty($$SELECT * FROM reports.scope_figures('main') WHERE figure = 'oldest_queued_seconds'$$, 'told by the scope whose job it is');
SELECT is(pg_temp.figure('workers', 'default'), 1::numeric, 'a worker serves the queue');
SELECT is(pg_temp.figure('workers', 'fast'), 0::numeric, 'nobody serves the other');
UPDATE reports.worker SET heartbeat_at = statement_timestamp() - interval '1 h' WHERE id = (SELECT id FROM me);
SELECT is(pg_temp.figure('workers', 'default'), 0::numeric, 'a silent worker is none');

-- Holds
SELECT is(pg_temp.figure('holds'), 0::numeric, 'no hold stands');
INSERT INTO reports.hold (scope, queue, reason, since) VALUES (NULL, 'fast', 'x', statement_timestamp() - interval '8 s');
SELECT is(pg_temp.figure('holds'), 0::numeric, 'a hold on a queue is none on the scope');
SELECT is(pg_temp.figure('queue_hold_seconds', 'fast'), 8::numeric, 'it is told by queue');
INSERT INTO reports.hold (scope, reason, since) VALUES (NULL, 'x', statement_timestamp() - interval '9 s'), ('tap', 'y', now()), ('main', 'z', now() - interval '1 h');
SELECT is(pg_temp.figure('holds'), 2::numeric, 'those of the installation and the scope');
SELECT is(pg_temp.figure('hold_seconds'), 9::numeric, 'the oldest of them');

SELECT * FROM finish();
ROLLBACK;
