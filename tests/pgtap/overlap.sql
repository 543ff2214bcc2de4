-- Overlap: what becomes of a firing while a job of its schedule is open, under each policy, by the rule
-- and by hand. A job is open until it is succeeded, failed or cancelled.
BEGIN;
\ir fixture.psql
SELECT no_plan();
SET timezone = 'UTC';

CREATE TEMP TABLE w AS SELECT pg_temp.add_worker() AS id;
CREATE FUNCTION pg_temp.schedule(p_name text, p_overlap text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO reports.schedule (name, scope, report, kind, rule, overlap) VALUES (p_name, 'tap', 'nothing', 'cron', '* * * * *', p_overlap);
    PERFORM reports.take_in('tap', 1, 100, pg_temp.leader(), ARRAY[p_name], ARRAY(SELECT c.id FROM reports.schedule_change c WHERE c.schedule = p_name),
                            '{1}', '{NULL}', ARRAY[clock_timestamp()], '{2030-01-01}', '{NULL}', '{0}', '{minute}', '{NULL}', '{test}');
END
$$;
-- Plan firings of one schedule, minute by minute from p_first on; their keys are p_keys. Of each batch the last
-- firing is what progress remembers.
CREATE FUNCTION pg_temp.plan(p_schedule text, p_first integer, p_keys text[], p_cause text DEFAULT 'schedule', p_gaps boolean DEFAULT false) RETURNS text LANGUAGE sql AS $$
    SELECT format('%s %s %s', r.verdict, r.advanced, r.planned)
      FROM reports.schedule_progress p,
           LATERAL (SELECT timestamptz '2026-01-01' + p_first * interval '1 min' AS first_at, cardinality(p_keys) AS n) t,
           reports.plan_batch('tap', 1, 100, pg_temp.leader(), ARRAY[p_schedule], ARRAY[p.version], ARRAY[p.step], '{2030-01-01}', '{2030-01-01}', '{0}',
               ARRAY[t.first_at + (t.n - 1) * interval '1 min'], '{2026-01-01}', '{0}', 'x', array_fill(p_schedule, ARRAY[t.n]), p_keys, ARRAY(SELECT gen_random_uuid() FROM unnest(p_keys)),
               ARRAY(SELECT t.first_at + i * interval '1 min' FROM generate_series(0, t.n - 1) i), array_fill(timestamp '2026-01-01', ARRAY[t.n]), array_fill(0, ARRAY[t.n]),
               array_fill(date '2026-01-01', ARRAY[t.n]), array_fill(timestamptz '2026-01-01', ARRAY[t.n]), array_fill(p_cause, ARRAY[t.n]),
               CASE WHEN p_gaps THEN ARRAY[p_schedule] ELSE '{}' END, CASE WHEN p_gaps THEN ARRAY[t.first_at - interval '1 min'] ELSE '{}' END, CASE WHEN p_gaps THEN ARRAY[t.first_at - interval '1 min'] ELSE '{}' END,
               CASE WHEN p_gaps THEN '{g}'::text[] ELSE '{}' END, CASE WHEN p_gaps THEN '{g}'::text[] ELSE '{}' END, CASE WHEN p_gaps THEN '{1}'::bigint[] ELSE '{}' END, CASE WHEN p_gaps THEN '{misfire_age}'::text[] ELSE '{}' END) r
     WHERE p.schedule = p_schedule
$$;
-- The schedule's jobs in the order of their firings.
CREATE FUNCTION pg_temp.jobs(p_schedule text) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(format('%s %s%s%s', o.occurrence_key, j.state, ' for ' || j.waits_for, CASE WHEN j.cancel_requested AND j.state = 'running' THEN ' to cancel' END), ', ' ORDER BY o.scheduled_for, o.occurrence_key)
      FROM reports.occurrence o JOIN reports.job j ON j.id = o.job_id WHERE o.schedule = p_schedule
$$;
CREATE FUNCTION pg_temp.gaps(p_schedule text) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(format('%s-%s %s %s', from_key, to_key, firings, reason), ', ' ORDER BY from_fire_at) FROM reports.schedule_gap WHERE schedule = p_schedule
$$;
CREATE FUNCTION pg_temp.id_of(p_schedule text, p_key text) RETURNS uuid LANGUAGE sql AS $$ SELECT job_id FROM reports.occurrence WHERE schedule = p_schedule AND occurrence_key = p_key $$;
CREATE FUNCTION pg_temp.run(p_schedule text, p_key text) RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM reports.claim_ids((SELECT id FROM w), '{default}', ARRAY[pg_temp.id_of(p_schedule, p_key)]) $$;
CREATE FUNCTION pg_temp.outcome(p_schedule text, p_key text, p_outcome text DEFAULT 'succeeded', p_retryable boolean DEFAULT false) RETURNS text LANGUAGE sql AS $$
    SELECT r.state FROM reports.job j, reports.record_outcomes(ARRAY[j.id], ARRAY[j.attempt_token], ARRAY[p_outcome], ARRAY[p_retryable], '{NULL}', '{0}', '{main}', ARRAY[p_schedule || p_key], '{text/csv}', '{1}', '{1}', ARRAY[sha256('x')]) r
     WHERE j.id = pg_temp.id_of(p_schedule, p_key)
$$;
CREATE FUNCTION pg_temp.tend() RETURNS integer LANGUAGE sql AS $$ SELECT released FROM reports.tend('tap', 1, 100, pg_temp.leader(), 100) $$;
CREATE FUNCTION pg_temp.messages(p_schedule text) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(occurrence_key || ':' || dispatch_number, ' ' ORDER BY id) FROM reports.outbox WHERE schedule = p_schedule
$$;
CREATE FUNCTION pg_temp.request(p_kind text, p_subject text, p_argument text DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    request uuid := gen_random_uuid();
BEGIN
    PERFORM reports.ask(request, p_kind, p_subject, p_argument, '1 min');
    RETURN (SELECT a.verdict || ' ' || a.answer FROM reports.answer_request('tap', 1, 100, pg_temp.leader(), request, gen_random_uuid()) a);
END
$$;

-- allow.
SELECT pg_temp.schedule('a', 'allow');
SELECT is(pg_temp.plan('a', 1, '{1,2}') || pg_temp.plan('a', 3, '{3}'), 'ok {a} 2ok {a} 1', 'allow: every firing has its job');
SELECT is(pg_temp.jobs('a'), '1 queued, 2 queued, 3 queued', 'all of which may run');
SELECT is(pg_temp.messages('a'), '1:1 2:1 3:1', 'with one message each');

-- forbid.
SELECT pg_temp.schedule('f', 'forbid');
SELECT is(pg_temp.plan('f', 1, '{1,2,3}'), 'ok {f} 1', 'forbid: of three firings in one batch the first has a job');
SELECT is(pg_temp.jobs('f'), '1 queued', 'which may run at once');
SELECT is(pg_temp.messages('f'), '1:1', 'with its message');
SELECT is(pg_temp.gaps('f'), '2-3 2 overlap_forbid', 'and the others lie in a gap');
SELECT is(pg_temp.plan('f', 4, '{4}'), 'ok {f} 0', 'while the job is open further firings have none');
SELECT is(pg_temp.gaps('f'), '2-4 3 overlap_forbid', 'and extend that gap');
SELECT results_eq($$SELECT from_fire_at, to_fire_at, version, generation FROM reports.schedule_gap WHERE schedule = 'f'$$,
                  $$VALUES (timestamptz '2026-01-01 00:02', timestamptz '2026-01-01 00:04', 1, 100::bigint)$$, 'which says from when to when');
SELECT is(pg_temp.run('f', '1'), 1::bigint, '(the job runs)');
SELECT is(pg_temp.plan('f', 5, '{5,6}') || ' ' || pg_temp.gaps('f'), 'ok {f} 0 2-6 5 overlap_forbid', 'running it is open');
SELECT is(pg_temp.outcome('f', '1', 'failed', true), 'retry_wait', '(it fails and waits for its retry)');
SELECT is(pg_temp.plan('f', 7, '{7}') || ' ' || pg_temp.gaps('f'), 'ok {f} 0 2-7 6 overlap_forbid', 'waiting for its retry too');
UPDATE reports.job SET state = 'quarantined' WHERE id = pg_temp.id_of('f', '1');
SELECT is(pg_temp.plan('f', 8, '{8}'), 'ok {f} 0', 'quarantined too');
UPDATE reports.job SET state = 'succeeded', finished_at = clock_timestamp() WHERE id = pg_temp.id_of('f', '1');
SELECT is(pg_temp.plan('f', 9, '{9,10}') || ' ' || pg_temp.gaps('f'), 'ok {f} 1 2-8 7 overlap_forbid, 10-10 1 overlap_forbid', 'when it has ended the next firing has a job, and what follows is another gap');
SELECT is(pg_temp.plan('f', 12, '{12}', p_gaps => true) || ' ' || pg_temp.gaps('f'), 'ok {f} 0 2-8 7 overlap_forbid, 10-10 1 overlap_forbid, g-g 1 misfire_age, 12-12 1 overlap_forbid', 'after firings that were not run for another reason it is another gap, too');
SELECT is(pg_temp.request('cancel', 'f:9'), 'ok job f:9 was queued and is cancelled', '(the job is cancelled)');
SELECT is(pg_temp.plan('f', 13, '{9,13,14}'), 'ok {f} 1', 'a key that is taken is not the one job of a batch');
SELECT is(pg_temp.jobs('f'), '1 succeeded, 9 cancelled, 13 queued', 'the next is');
SELECT matches(pg_temp.gaps('f'), ', 9-9 1 key_taken, 14-14 1 overlap_forbid$', 'and each of the others has its reason');

-- Take in an edit of a schedule.
CREATE FUNCTION pg_temp.edit(p_schedule text, p_column text, p_value text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    EXECUTE format('UPDATE reports.schedule SET %I = %L WHERE name = %L', p_column, p_value, p_schedule);
    SELECT t.verdict || ' ' || t.taken::text INTO answer
      FROM reports.schedule_change c JOIN reports.schedule_progress p USING (schedule),
           reports.take_in('tap', 1, 100, pg_temp.leader(), ARRAY[p_schedule], ARRAY[c.id], ARRAY[c.version], ARRAY[p.step], ARRAY[clock_timestamp()],
                           '{2030-01-01}', '{2030-01-01}', '{0}', '{minute}', '{NULL}', '{x}') t
     WHERE c.schedule = p_schedule;
    RETURN answer;
END
$$;
SELECT is(pg_temp.edit('f', 'priority', '3'), 'ok {f}', '(an edit)');
SELECT is(pg_temp.plan('f', 16, '{16}'), 'ok {f} 0', '(a firing under the new version)');
SELECT is((SELECT string_agg(from_key || ' v' || version, ', ' ORDER BY from_fire_at) FROM (SELECT * FROM reports.schedule_gap WHERE schedule = 'f' ORDER BY from_fire_at DESC LIMIT 2) x), '14 v1, 16 v2', 'a gap is of one version');
-- By hand.
SELECT is(pg_temp.request('trigger', 'f', 'hand'), 'ok schedule "f" forbids overlap, and its job f:13 is queued: wait for it to end, or cancel it', 'a manual firing is refused and told why');
SELECT is(pg_temp.request('trigger', 'f', '13'), 'ok occurrence f:13 was there already', 'one that is there is answered with that');
SELECT is(pg_temp.run('f', '13') || ' ' || pg_temp.outcome('f', '13'), '1 succeeded', '(the job ends)');
SELECT is(pg_temp.request('trigger', 'f', 'hand'), 'ok occurrence f:hand made', 'then it is made');
SELECT is(pg_temp.plan('f', 17, '{17}'), 'ok {f} 0', 'and the schedule''s own firings know of it');
SELECT is(pg_temp.request('retry', 'f:9'), 'ok job f:9 is waiting for overlap again, with 3 more attempts', 'a retry waits for the open job');
SELECT is(pg_temp.run('f', 'hand') || ' ' || pg_temp.outcome('f', 'hand') || ' ' || pg_temp.tend(), '1 succeeded 1', '(that ends, and the leader goes round)');
SELECT is(pg_temp.jobs('f'), '1 succeeded, 9 queued, 13 succeeded, hand succeeded', 'and then may run');

-- queue.
SELECT pg_temp.schedule('q', 'queue');
SELECT is(pg_temp.plan('q', 1, '{1,2,3}'), 'ok {q} 3', 'queue: every firing has its job');
SELECT is(pg_temp.jobs('q'), '1 queued, 2 waiting for overlap, 3 waiting for overlap', 'the first may run, at once; the others wait, in the order of firings');
SELECT is(pg_temp.messages('q'), '1:1', 'only what may run has a message');
SELECT is(pg_temp.plan('q', 4, '{4}'), 'ok {q} 1', '(another firing)');
SELECT is(pg_temp.tend(), 0, 'while the first is open no other goes');
SELECT is(pg_temp.run('q', '1') || ' ' || pg_temp.outcome('q', '1', 'failed', true) || ' ' || pg_temp.tend(), '1 retry_wait 0', 'nor while it waits for its retry');
SELECT is(pg_temp.jobs('q'), '1 retry_wait, 2 waiting for overlap, 3 waiting for overlap, 4 waiting for overlap', 'which keeps its turn');
UPDATE reports.job SET run_after = clock_timestamp() WHERE id = pg_temp.id_of('q', '1');
SELECT is(pg_temp.tend() || ' ' || pg_temp.jobs('q'), '1 1 queued, 2 waiting for overlap, 3 waiting for overlap, 4 waiting for overlap', 'it is retried first');
SELECT is(pg_temp.run('q', '1') || ' ' || pg_temp.outcome('q', '1') || ' ' || pg_temp.tend(), '1 succeeded 1', 'when it has ended one goes');
SELECT is(pg_temp.jobs('q'), '1 succeeded, 2 queued, 3 waiting for overlap, 4 waiting for overlap', 'the oldest');
SELECT is(pg_temp.messages('q'), '1:1 1:2 2:1', 'with its message');
SELECT is(pg_temp.request('trigger', 'q', 'hand'), 'ok occurrence q:hand made; its job waits for overlap', 'a manual firing waits as well');
SELECT is(pg_temp.request('cancel', 'q:2'), 'ok job q:2 was queued and is cancelled', 'when the one that may run is cancelled');
SELECT is(pg_temp.jobs('q'), '1 succeeded, 2 cancelled, 3 queued, 4 waiting for overlap, hand waiting for overlap', 'the next goes at once');
SELECT is(pg_temp.request('cancel', 'q:4') || '; ' || pg_temp.request('retry', 'q:2'), 'ok job q:4 was waiting and is cancelled; ok job q:2 is waiting for overlap again, with 3 more attempts', '(one that waits is cancelled, one that was cancelled retried)');
SELECT is(pg_temp.run('q', '3') || ' ' || pg_temp.outcome('q', '3') || ' ' || pg_temp.tend() || ' ' || pg_temp.jobs('q'), '1 succeeded 1 1 succeeded, 2 waiting for overlap, 3 succeeded, 4 cancelled, hand queued', 'what is retried takes its place behind those that wait, and never runs beside another');
SELECT is(pg_temp.run('q', 'hand') || ' ' || pg_temp.outcome('q', 'hand') || ' ' || pg_temp.tend() || ' ' || pg_temp.jobs('q'), '1 succeeded 1 1 succeeded, 2 queued, 3 succeeded, 4 cancelled, hand succeeded', 'then it is its turn');
-- A claim that lapsed.
UPDATE reports.fence_pulse SET beat_at = clock_timestamp(), reap_not_before = '-infinity' WHERE scope = 'tap';
SELECT is(pg_temp.plan('q', 5, '{5}') || ' ' || pg_temp.run('q', '2'), 'ok {q} 1 1', '(one runs, one waits)');
UPDATE reports.job SET lease_until = clock_timestamp() - interval '1 h', max_attempts = attempt WHERE id = pg_temp.id_of('q', '2');
SELECT is(pg_temp.tend(), 1, 'the round that closes a lapsed claim lets the next go');
SELECT matches(pg_temp.jobs('q'), '2 failed, .*5 queued', 'which was waiting for it');

-- replace.
SELECT pg_temp.schedule('r', 'replace');
SELECT is(pg_temp.plan('r', 1, '{1,2,3}'), 'ok {r} 3', 'replace: every firing has its job');
SELECT is(pg_temp.jobs('r'), '1 cancelled, 2 cancelled, 3 queued', 'of several in one batch the newest may run');
SELECT is((SELECT string_agg(DISTINCT error, ', ') FROM reports.job WHERE schedule = 'r'), 'replaced by r:3', 'and the others say by what they were replaced');
SELECT is(pg_temp.plan('r', 4, '{4}') || ' ' || pg_temp.jobs('r'), 'ok {r} 1 1 cancelled, 2 cancelled, 3 cancelled, 4 queued', 'one that does not run yet is closed at once');
SELECT is(pg_temp.run('r', '4') || ' ' || pg_temp.plan('r', 5, '{5}'), '1 ok {r} 1', '(it runs, and the next firing is due)');
SELECT is(pg_temp.jobs('r'), '1 cancelled, 2 cancelled, 3 cancelled, 4 running to cancel, 5 waiting for overlap', 'one that runs is told to stop, and the new one waits for that');
SELECT results_eq($$SELECT h.cancel_requested FROM reports.job j, reports.heartbeat(j.worker, ARRAY[j.id], ARRAY[j.attempt_token]) h WHERE j.id = pg_temp.id_of('r', '4')$$, 'VALUES (true)', 'its worker hears of it with the next heartbeat');
SELECT is(pg_temp.plan('r', 6, '{6}') || ' ' || pg_temp.jobs('r'), 'ok {r} 1 1 cancelled, 2 cancelled, 3 cancelled, 4 running to cancel, 5 cancelled, 6 waiting for overlap', 'of those that wait the newest is left');
SELECT is(pg_temp.tend(), 0, 'as long as the old one runs');
SELECT is(pg_temp.outcome('r', '4'), 'cancelled', 'its late success is refused');
SELECT is((SELECT count(*) FROM reports.artifact WHERE job_id = pg_temp.id_of('r', '4')), 0::bigint, 'and its file is not visible');
SELECT is(pg_temp.tend() || ' ' || pg_temp.jobs('r'), '1 1 cancelled, 2 cancelled, 3 cancelled, 4 cancelled, 5 cancelled, 6 queued', 'then the new one runs');
SELECT is(pg_temp.run('r', '6') || ' ' || pg_temp.outcome('r', '6', 'failed', true) || ' ' || pg_temp.plan('r', 7, '{7}'), '1 retry_wait ok {r} 1', '(it fails, and while it waits for its retry the next firing is due)');
SELECT matches(pg_temp.jobs('r'), '6 cancelled, 7 queued$', 'one that waits for its retry is replaced, too');
SELECT is(pg_temp.request('trigger', 'r', 'hand'), 'ok occurrence r:hand made', 'a manual firing');
SELECT matches(pg_temp.jobs('r'), '7 cancelled, hand queued$', 'replaces as well');
SELECT is(pg_temp.request('retry', 'r:7'), 'ok job r:7 is waiting for overlap again, with 3 more attempts', 'a retry waits: it is not newer');
SELECT is(pg_temp.plan('r', 9, '{9}', p_cause => 'misfire') || pg_temp.tend(), 'ok {r} 10', '(a missed firing)');
SELECT matches(pg_temp.jobs('r'), '7 cancelled, 9 queued, hand cancelled$', 'replaces all of them');

-- A policy that is edited while jobs are open.
SELECT pg_temp.schedule('e', 'allow');
SELECT is(pg_temp.plan('e', 1, '{1,2}') || ' ' || pg_temp.run('e', '1'), 'ok {e} 2 1', '(two jobs are open)');
SELECT is(pg_temp.edit('e', 'overlap', 'queue'), 'ok {e}', '(the policy is edited)');
SELECT is((SELECT string_agg(overlap, ' ') FROM reports.job WHERE schedule = 'e'), 'queue queue', 'open jobs follow the policy');
SELECT is((SELECT count(*) FROM reports.job WHERE schedule = 'a' AND overlap <> 'allow'), 0::bigint, 'those of other schedules do not');
SELECT is(pg_temp.plan('e', 3, '{3}') || ' ' || pg_temp.jobs('e'), 'ok {e} 1 1 running, 2 waiting for overlap, 3 waiting for overlap', 'so that what does not run yet waits for its turn, as what comes does');
SELECT is(pg_temp.outcome('e', '1') || ' ' || pg_temp.tend() || ' ' || pg_temp.jobs('e'), 'succeeded 1 1 succeeded, 2 queued, 3 waiting for overlap', 'one by one');
SELECT is(pg_temp.messages('e'), '1:1 2:1 2:2', 'with a message of its own: the first finds it waiting');
SELECT is(pg_temp.edit('e', 'overlap', 'allow'), 'ok {e}', '(the policy is edited back)');
SELECT is(pg_temp.jobs('e'), '1 succeeded, 2 queued, 3 queued', 'what waited for its turn goes at once');
SELECT is_empty($$SELECT FROM reports.job WHERE schedule = 'e' AND state IN ('queued', 'running') AND overlap <> 'allow'$$, 'and those that are open follow');

-- A job that has ended is not open, and does not follow; retried, it comes under the policy that is now.
SELECT is(pg_temp.plan('e', 4, '{4}') || ' ' || pg_temp.request('cancel', 'e:4') || ' ' || pg_temp.edit('e', 'overlap', 'queue'), 'ok {e} 1 ok job e:4 was queued and is cancelled ok {e}', '(one is cancelled, then the policy edited)');
SELECT is(pg_temp.request('retry', 'e:4'), 'ok job e:4 is waiting for overlap again, with 3 more attempts', 'a retry waits for those that are open');
SELECT is((SELECT overlap FROM reports.job WHERE id = pg_temp.id_of('e', '4')), 'queue', 'and is one of them');
-- Jobs that wait for capacity when overlap is no longer allowed wait for their turn, too.
INSERT INTO reports.queue (name, max_outstanding) VALUES ('narrow', 1);
SELECT pg_temp.schedule('n', 'allow');
UPDATE reports.schedule_version SET queue = 'narrow' WHERE schedule = 'n';
UPDATE reports.schedule SET queue = 'narrow' WHERE name = 'n';
DELETE FROM reports.schedule_change WHERE schedule = 'n';
SELECT is(pg_temp.plan('n', 1, '{1,2,3,4}') || ' ' || pg_temp.jobs('n'), 'ok {n} 4 1 queued, 2 waiting for capacity, 3 waiting for capacity, 4 waiting for capacity', '(a backlog in a narrow queue)');
SELECT is(pg_temp.edit('n', 'overlap', 'forbid') || ' ' || pg_temp.jobs('n'), 'ok {n} 1 queued, 2 waiting for overlap, 3 waiting for overlap, 4 waiting for overlap', 'no two of them may run');
UPDATE reports.queue SET max_outstanding = 10 WHERE name = 'narrow';
SELECT is(pg_temp.tend() || ' ' || pg_temp.jobs('n'), '0 1 queued, 2 waiting for overlap, 3 waiting for overlap, 4 waiting for overlap', 'however much room there is');
UPDATE reports.job SET state = 'cancelled', waits_for = NULL, finished_at = clock_timestamp() WHERE schedule = 'n';
-- Nor two that were being retried.
SELECT is(pg_temp.edit('n', 'overlap', 'allow'), 'ok {n}', '(the policy is edited back)');
SELECT pg_temp.add_job('retry' || n, 'retry_wait', p_schedule => 'n', p_attempt => 1, p_run_after => clock_timestamp() + interval '9 min') FROM generate_series(1, 3) n;
SELECT is(pg_temp.edit('n', 'overlap', 'queue'), 'ok {n}', '(and again, while three wait for their retries)');
UPDATE reports.job SET run_after = clock_timestamp() - right(occurrence_key, 1)::integer * interval '1 s' WHERE occurrence_key IN ('retry1', 'retry2');
SELECT is(pg_temp.tend(), 1, '(two of them are due)');
CREATE FUNCTION pg_temp.retries() RETURNS text LANGUAGE sql AS $$ SELECT string_agg(occurrence_key || ' ' || state || coalesce(' for ' || waits_for, ''), ', ' ORDER BY occurrence_key) FROM reports.job WHERE occurrence_key LIKE 'retry_' $$;
SELECT is(pg_temp.retries(), 'retry1 waiting for overlap, retry2 queued, retry3 retry_wait', 'of those whose wait is over the oldest goes, and waits for none that is not due');
UPDATE reports.job SET run_after = clock_timestamp() WHERE occurrence_key = 'retry3';
SELECT is(pg_temp.tend() || ' ' || pg_temp.retries(), '0 retry1 waiting for overlap, retry2 queued, retry3 waiting for overlap', 'one that becomes due waits as well');
SELECT is(pg_temp.run('n', 'retry2') || ' ' || pg_temp.outcome('n', 'retry2') || ' ' || pg_temp.tend() || ' ' || pg_temp.retries(), '1 succeeded 1 retry1 queued, retry2 succeeded, retry3 waiting for overlap', 'and then they run one by one');
DELETE FROM reports.job WHERE schedule = 'n';
DELETE FROM reports.occurrence WHERE schedule = 'n';
-- One that only waits for its turn is open, too.
SELECT pg_temp.schedule('g', 'forbid'), pg_temp.add_job('old', 'waiting', p_schedule => 'g', p_overlap => 'forbid', p_waits_for => 'overlap');
SELECT is(pg_temp.plan('g', 1, '{1}') || ' ' || pg_temp.gaps('g'), 'ok {g} 0 1-1 1 overlap_forbid', 'a job that waits for its turn is open');
DELETE FROM reports.job WHERE schedule IN ('e', 'g');
DELETE FROM reports.occurrence WHERE schedule IN ('e', 'g');

-- Blocked jobs hide none that may go, whatever the limit is.
SELECT pg_temp.add_job(format('%s-%s', s, n), CASE n WHEN 1 THEN 'running' ELSE 'waiting' END::reports.job_state, (SELECT id FROM w), p_attempt => 1, p_schedule => 'b' || s, p_overlap => 'queue', p_waits_for => 'overlap')
  FROM generate_series(10, 30) s, generate_series(1, 3) n;
SELECT pg_temp.add_job('z', 'waiting', p_schedule => 'z', p_overlap => 'queue', p_waits_for => 'overlap');
SELECT is((SELECT released FROM reports.tend('tap', 1, 100, pg_temp.leader(), 1)), 1, 'behind 21 schedules that are blocked the one that is not goes, with a limit of one');
SELECT is((SELECT state::text FROM reports.job WHERE occurrence_key = 'z'), 'queued', 'that one');

-- Every firing has an occurrence or lies in a gap (I3), and every occurrence has its one job (I4).
SELECT is_empty($$SELECT FROM reports.occurrence o FULL JOIN reports.job j ON j.id = o.job_id WHERE o.job_id IS NULL OR j.id IS NULL$$, 'no occurrence is without its job, no job without its occurrence');
SELECT is_empty($$SELECT j.schedule FROM reports.job j WHERE j.overlap <> 'allow' AND j.state IN ('queued', 'running') GROUP BY j.schedule HAVING count(*) > 1$$, 'of no schedule that does not allow it two jobs may run');

SELECT * FROM finish();
ROLLBACK;
