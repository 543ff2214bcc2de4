-- The circuit breaker: failed jobs in a row open it, firings are then suppressed with record, one probe at a time is
-- run, and what succeeds closes it.
BEGIN;
\ir fixture.psql
SELECT no_plan();
SET timezone = 'UTC';

CREATE TEMP TABLE w AS SELECT pg_temp.add_worker() AS id;
CREATE FUNCTION pg_temp.take_in(p_name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM reports.take_in('tap', 1, 100, pg_temp.leader(), ARRAY[p_name], ARRAY[c.id], ARRAY[c.version], ARRAY[(SELECT step FROM reports.schedule_progress WHERE schedule = p_name)],
                            ARRAY[clock_timestamp()], '{2030-01-01}', '{NULL}', '{0}', '{minute}', '{NULL}', '{test}')
       FROM reports.schedule_change c WHERE c.schedule = p_name ORDER BY c.id LIMIT 1;
END
$$;
CREATE FUNCTION pg_temp.schedule(p_name text, p_failures integer, p_overlap text DEFAULT 'allow') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO reports.schedule (name, scope, report, kind, rule, breaker_failures, overlap, max_attempts) VALUES (p_name, 'tap', 'nothing', 'cron', '* * * * *', p_failures, p_overlap, 2);
    PERFORM pg_temp.take_in(p_name);
END
$$;
-- Plan firings of one schedule, minute by minute from p_first on; their keys are p_keys.
CREATE FUNCTION pg_temp.plan(p_schedule text, p_first integer, p_keys text[]) RETURNS text LANGUAGE sql AS $$
    SELECT format('%s %s', r.verdict, r.planned)
      FROM reports.schedule_progress p,
           LATERAL (SELECT timestamptz '2026-01-01' + p_first * interval '1 min' AS first_at, cardinality(p_keys) AS n) t,
           reports.plan_batch('tap', 1, 100, pg_temp.leader(), ARRAY[p_schedule], ARRAY[p.version], ARRAY[p.step], '{2030-01-01}', '{2030-01-01}', '{0}',
               ARRAY[t.first_at + (t.n - 1) * interval '1 min'], '{2026-01-01}', '{0}', 'x', array_fill(p_schedule, ARRAY[t.n]), p_keys, ARRAY(SELECT gen_random_uuid() FROM unnest(p_keys)),
               ARRAY(SELECT t.first_at + i * interval '1 min' FROM generate_series(0, t.n - 1) i), array_fill(timestamp '2026-01-01', ARRAY[t.n]), array_fill(0, ARRAY[t.n]),
               array_fill(date '2026-01-01', ARRAY[t.n]), array_fill(timestamptz '2026-01-01', ARRAY[t.n]), array_fill('schedule'::text, ARRAY[t.n]), '{}', '{}', '{}', '{}', '{}', '{}', '{}') r
     WHERE p.schedule = p_schedule
$$;
CREATE FUNCTION pg_temp.gaps(p_schedule text) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(format('%s-%s %s %s', from_key, to_key, firings, reason), ', ' ORDER BY from_fire_at, id) FROM reports.schedule_gap WHERE schedule = p_schedule
$$;
CREATE FUNCTION pg_temp.events(p_schedule text) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(concat_ws(' ', event, occurrence_key), ', ' ORDER BY id) FROM reports.v_circuit_event WHERE schedule = p_schedule
$$;
CREATE FUNCTION pg_temp.id_of(p_schedule text, p_key text) RETURNS uuid LANGUAGE sql AS $$ SELECT job_id FROM reports.occurrence WHERE schedule = p_schedule AND occurrence_key = p_key $$;
-- The job of a firing is run to its end.
CREATE FUNCTION pg_temp.ends(p_schedule text, p_key text, p_outcome text, p_retryable boolean DEFAULT false) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM reports.claim_ids((SELECT id FROM w), '{default}', ARRAY[pg_temp.id_of(p_schedule, p_key)]);
    RETURN (SELECT r.state FROM reports.job j, reports.record_outcomes(ARRAY[j.id], ARRAY[j.attempt_token], ARRAY[p_outcome], ARRAY[p_retryable], '{no table}', '{0}', '{main}', ARRAY[p_schedule || p_key], '{text/csv}', '{1}', '{1}', ARRAY[sha256('x')]) r
             WHERE j.id = pg_temp.id_of(p_schedule, p_key));
END
$$;
CREATE FUNCTION pg_temp.fails(p_schedule text, p_key text) RETURNS text LANGUAGE sql AS $$ SELECT pg_temp.ends(p_schedule, p_key, 'failed') $$;
CREATE FUNCTION pg_temp.tend() RETURNS integer LANGUAGE sql AS $$ SELECT released FROM reports.tend('tap', 1, 100, pg_temp.leader(), 100) $$;
CREATE FUNCTION pg_temp.circuit(p_schedule text) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', coalesce(circuit, 'closed'), circuit_failures) FROM reports.v_schedule WHERE name = p_schedule
$$;
-- As if that much time had gone by.
CREATE FUNCTION pg_temp.wait(p_schedule text, p_for interval) RETURNS void LANGUAGE sql AS $$
    UPDATE reports.schedule_progress SET circuit_probe_at = circuit_probe_at - p_for, circuit_opened_at = circuit_opened_at - p_for WHERE schedule = p_schedule
$$;
CREATE FUNCTION pg_temp.request(p_kind text, p_subject text, p_argument text DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    request uuid := gen_random_uuid();
BEGIN
    PERFORM reports.ask(request, p_kind, p_subject, p_argument, '1 min');
    RETURN (SELECT a.verdict || ' ' || a.answer FROM reports.answer_request('tap', 1, 100, pg_temp.leader(), request, gen_random_uuid()) a);
END
$$;

CREATE FUNCTION pg_temp.quiet(p_answer text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN END $$;

-- What is refused.
SELECT is(pg_temp.refusal($$INSERT INTO reports.schedule (name, scope, report, kind, rule, breaker_failures) VALUES ('x', 'tap', 'nothing', 'cron', '@daily', 0)$$),
          '23514 schedule "x": breaker_failures cannot be ''0'' (Write a number from 1 to 1000, or NULL for no circuit breaker.)', 'a breaker that is always open');
SELECT is(pg_temp.refusal($$INSERT INTO reports.schedule (name, scope, report, kind, rule, breaker_probe) VALUES ('x', 'tap', 'nothing', 'cron', '@daily', '0 s')$$),
          '23514 schedule "x": breaker_probe cannot be ''00:00:00'' (Write an interval from 1 second to 7 days.)', 'probes without a pause');

-- Without one nothing is counted.
SELECT pg_temp.schedule('n', NULL);
SELECT pg_temp.quiet(pg_temp.plan('n', 1, '{1,2,3}'));
SELECT pg_temp.fails('n', '1'), pg_temp.fails('n', '2'), pg_temp.fails('n', '3');
SELECT is((SELECT count(*) FROM reports.circuit_outcome), 0::bigint, 'jobs of a schedule without a breaker leave no line');
SELECT is(pg_temp.plan('n', 4, '{4}') || ', ' || pg_temp.circuit('n'), 'ok 1, closed 0', 'and its firings are run');

-- Opening.
SELECT pg_temp.schedule('s', 3);
SELECT pg_temp.quiet(pg_temp.plan('s', 1, '{1,2,3,4}'));
SELECT is(pg_temp.ends('s', '1', 'failed', true), 'retry_wait', 'a job that is to be tried again');
SELECT pg_temp.tend();
SELECT is(pg_temp.circuit('s'), 'closed 0', 'has not failed yet');
SELECT pg_temp.fails('s', '2'), pg_temp.fails('s', '3'), pg_temp.ends('s', '4', 'succeeded');
SELECT pg_temp.tend();
SELECT is(pg_temp.circuit('s'), 'closed 0', 'one that succeeds begins the count anew');
SELECT is(pg_temp.plan('s', 5, '{5,6,7,8}'), 'ok 4', 'firings are run');
SELECT pg_temp.fails('s', '5'), pg_temp.fails('s', '6');
SELECT is(pg_temp.plan('s', 9, '{9}') || ', ' || pg_temp.circuit('s'), 'ok 1, closed 2', 'also after one failure less than it takes');
SELECT pg_temp.fails('s', '7');
SELECT is(pg_temp.plan('s', 10, '{10}'), 'ok 0', 'after the third nothing is run, without anything between');
SELECT is(pg_temp.circuit('s'), 'open 3', 'it is open');
SELECT is(pg_temp.gaps('s'), '10-10 1 circuit_open', 'which a gap records');
SELECT is(pg_temp.plan('s', 11, '{11,12}') || ', ' || pg_temp.gaps('s'), 'ok 0, 10-12 3 circuit_open', 'one that grows');
SELECT is(pg_temp.events('s'), 'opened 7', 'and the diary says by which job');
SELECT is((SELECT count(*) FROM reports.circuit_outcome), 0::bigint, 'no line is left');
SELECT is((SELECT value FROM reports.scope_figures('tap') WHERE figure = 'circuits_open'), 1::float8, 'the metric says so');
SELECT matches(problem || '; ' || remedy, '^its circuit is open after 3 failed jobs in a row: firings are not run, but for a probe from .* on; .*reportctl breaker close s', 'and status, with what to do') FROM reports.v_problem WHERE kind = 'circuit' AND subject = 's';
SELECT is(pg_temp.plan('n', 6, '{6}'), 'ok 1', 'others are run');

-- The probe.
SELECT pg_temp.wait('s', '14 min');
SELECT is(pg_temp.plan('s', 13, '{13}'), 'ok 0', 'until the time of the probe nothing is run');
SELECT pg_temp.wait('s', '2 min');
SELECT is(pg_temp.plan('s', 14, '{14,15,16}'), 'ok 1', 'then one firing is');
SELECT is(pg_temp.gaps('s') || ', ' || pg_temp.circuit('s'), '10-15 6 circuit_open, probing 3', 'the latest of those that are due, and the others extend the gap');
SELECT is(pg_temp.plan('s', 17, '{17}') || ', ' || pg_temp.gaps('s'), 'ok 0, 10-15 6 circuit_open, 17-17 1 circuit_open', 'while it runs nothing else is; behind it a gap begins');
SELECT matches(problem, 'but for a probe that is under way$', 'status says so') FROM reports.v_problem WHERE kind = 'circuit' AND subject = 's';
SELECT is(pg_temp.ends('s', '16', 'failed', true), 'retry_wait', 'its retries belong to it');
SELECT pg_temp.tend();
SELECT is(pg_temp.circuit('s'), 'probing 3', 'it goes on');
UPDATE reports.job SET run_after = clock_timestamp() WHERE state = 'retry_wait';
SELECT pg_temp.tend();
SELECT is(pg_temp.fails('s', '16'), 'failed', 'when it has failed for good');
SELECT is(pg_temp.plan('s', 18, '{18}') || ', ' || pg_temp.circuit('s'), 'ok 0, open 4', 'it is open again');
SELECT pg_temp.wait('s', '14 min');
SELECT is(pg_temp.plan('s', 19, '{19}'), 'ok 0', 'for as long as before');
SELECT pg_temp.wait('s', '2 min');
SELECT is(pg_temp.plan('s', 20, '{20}') || ', ' || pg_temp.gaps('s'), 'ok 1, 10-15 6 circuit_open, 17-19 3 circuit_open', 'the next probe');
SELECT pg_temp.ends('s', '20', 'cancelled');
SELECT is(pg_temp.plan('s', 21, '{21}') || ', ' || pg_temp.circuit('s'), 'ok 1, probing 4', 'one that is cancelled says nothing: the next firing is one');
SELECT pg_temp.ends('s', '21', 'succeeded');
SELECT is(pg_temp.plan('s', 22, '{22,23}') || ', ' || pg_temp.circuit('s'), 'ok 2, closed 0', 'one that succeeds closes it');
SELECT is(pg_temp.events('s'), 'opened 7, probe 16, probe_failed 16, probe 20, probe_cancelled 20, probe 21, closed 21', 'all of it is in the diary');
SELECT is((SELECT value FROM reports.scope_figures('tap') WHERE figure = 'circuits_open'), 0::float8, 'the metric is back');

-- A job that a manual firing made runs whatever stands, and may close it. So may one that was there before.
SELECT pg_temp.fails('s', '22'), pg_temp.fails('s', '23'), pg_temp.fails('s', '9'), pg_temp.tend();
SELECT is(pg_temp.circuit('s'), 'open 3', 'open');
SELECT matches(pg_temp.request('trigger', 's', 'by-hand'), '^ok occurrence s:by-hand made', 'a manual firing is made');
SELECT is((SELECT state::text FROM reports.job WHERE id = pg_temp.id_of('s', 'by-hand')), 'queued', 'and may run');
SELECT pg_temp.fails('s', 'by-hand'), pg_temp.tend();
SELECT is(pg_temp.circuit('s'), 'open 4', 'when it fails it stays open');
SELECT pg_temp.quiet(pg_temp.request('trigger', 's', 'again'));
SELECT pg_temp.ends('s', 'again', 'succeeded'), pg_temp.tend();
SELECT is(pg_temp.circuit('s'), 'closed 0', 'when it succeeds it closes');
SELECT matches(detail, '^a job succeeded$', 'and the diary says that it was no probe') FROM reports.circuit_event WHERE schedule = 's' ORDER BY id DESC LIMIT 1;
SELECT is(pg_temp.plan('s', 30, '{30,31,32}'), 'ok 3', 'firings are run');
SELECT pg_temp.fails('s', '30'), pg_temp.fails('s', '31'), pg_temp.fails('s', '32'), pg_temp.tend();
SELECT matches(pg_temp.request('retry', 's:30'), '^ok ', 'a failed job is run once more');
SELECT pg_temp.ends('s', '30', 'succeeded'), pg_temp.tend();
SELECT is(pg_temp.circuit('s'), 'closed 0', 'and closes it, too');

-- By hand.
SELECT pg_temp.quiet(pg_temp.plan('s', 33, '{33,34,35}'));
SELECT pg_temp.fails('s', '33'), pg_temp.fails('s', '34');
SELECT is(pg_temp.request('breaker_close', 's'), 'ok the circuit of schedule "s" is not open; counting begins anew after 2 failed job(s)', 'one that is not open');
SELECT pg_temp.fails('s', '35'), pg_temp.tend();
SELECT is(pg_temp.circuit('s'), 'closed 1', 'begins to count');
SELECT pg_temp.quiet(pg_temp.plan('s', 36, '{36,37}'));
SELECT pg_temp.fails('s', '36'), pg_temp.fails('s', '37');
SELECT matches(pg_temp.request('breaker_close', 's', 'mended'), '^ok the circuit of schedule "s", open since .*Z, is closed: its firings are run again$', 'one that is, also by failures that nobody had counted yet');
SELECT is(pg_temp.plan('s', 38, '{38}'), 'ok 1', 'is closed at once');
SELECT is((SELECT detail FROM reports.circuit_event WHERE schedule = 's' ORDER BY id DESC LIMIT 1), format('asked by %s: mended', session_user), 'the diary says by whom');
SELECT is(pg_temp.refusal($$SELECT reports.ask(gen_random_uuid(), 'breaker_close', 'nobody', NULL, '1 min')$$), 'P0002 schedule "nobody" does not exist (reportctl schedules lists them.)', 'of a schedule that there is');

-- An edit that takes it away, a pause that ends, a deletion.
CREATE FUNCTION pg_temp.broken(p_name text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_temp.schedule(p_name, 2);
    PERFORM pg_temp.plan(p_name, 1, '{1,2}');
    PERFORM pg_temp.fails(p_name, '1'), pg_temp.fails(p_name, '2'), pg_temp.tend();
    RETURN pg_temp.circuit(p_name);
END
$$;
SELECT is(pg_temp.broken('e'), 'open 2', 'open');
UPDATE reports.schedule SET priority = 1 WHERE name = 'e';
SELECT pg_temp.take_in('e');
SELECT is(pg_temp.circuit('e'), 'open 2', 'another edit does not close it');
UPDATE reports.schedule SET breaker_failures = NULL WHERE name = 'e';
SELECT pg_temp.take_in('e');
SELECT is(pg_temp.circuit('e') || ', ' || pg_temp.events('e') || ', ' || pg_temp.plan('e', 3, '{3}'), 'closed 0, opened 2, closed, ok 1', 'without a breaker nothing is open');
SELECT is(pg_temp.broken('p'), 'open 2', 'open');
UPDATE reports.schedule SET paused = true WHERE name = 'p';
SELECT pg_temp.take_in('p');
SELECT is(pg_temp.circuit('p'), 'open 2', 'a pause leaves it open');
UPDATE reports.schedule SET paused = false WHERE name = 'p';
SELECT pg_temp.take_in('p');
SELECT is(pg_temp.circuit('p') || ', ' || pg_temp.plan('p', 3, '{3}'), 'closed 0, ok 1', 'whoever lets it go on has seen to it');
SELECT is((SELECT detail FROM reports.circuit_event WHERE schedule = 'p' ORDER BY id DESC LIMIT 1), 'resumed', 'which the diary says');
SELECT is(pg_temp.broken('d'), 'open 2', 'open');
DELETE FROM reports.schedule WHERE name = 'd';
SELECT pg_temp.take_in('d');
SELECT is((SELECT count(*) FROM reports.v_problem WHERE kind = 'circuit' AND subject = 'd'), 0::bigint, 'of a schedule that was deleted nothing is open');

-- A claim that lapses for the last time is a failure as well, and so is one of a worker that is proved dead.
SELECT pg_temp.schedule('r', 1);
SELECT pg_temp.quiet(pg_temp.plan('r', 1, '{1,2}'));
UPDATE reports.job SET max_attempts = 1 WHERE schedule = 'r';
SELECT count(*) FROM reports.claim_ids((SELECT id FROM w), '{default}', ARRAY[pg_temp.id_of('r', '1')]);
UPDATE reports.job SET lease_until = clock_timestamp() - interval '1 day' WHERE id = pg_temp.id_of('r', '1');
UPDATE reports.fence_pulse SET reap_not_before = '-infinity';
SELECT pg_temp.tend();
SELECT is((SELECT state::text FROM reports.job WHERE id = pg_temp.id_of('r', '1')) || ', ' || pg_temp.circuit('r'), 'failed, open 1', 'a job that is reaped for good');
SELECT pg_temp.quiet(pg_temp.request('breaker_close', 'r'));
CREATE TEMP TABLE w2 AS SELECT pg_temp.add_worker() AS id;
SELECT count(*) FROM reports.claim_ids((SELECT id FROM w2), '{default}', ARRAY[pg_temp.id_of('r', '2')]);
SELECT (reports.release_claims((SELECT id FROM w2))).verdict, pg_temp.tend();
SELECT is((SELECT state::text FROM reports.job WHERE id = pg_temp.id_of('r', '2')) || ', ' || pg_temp.circuit('r'), 'failed, open 1', 'one whose worker is dead');

-- A key that is taken is no firing that could be suppressed; overlap keeps its word.
SELECT is(pg_temp.broken('k'), 'open 2', 'open');
SELECT pg_temp.quiet(pg_temp.request('trigger', 'k', '3'));
SELECT is(pg_temp.plan('k', 3, '{3,4}') || ', ' || pg_temp.gaps('k'), 'ok 0, 3-3 1 key_taken, 4-4 1 circuit_open', 'a key that is taken has its own reason');
SELECT pg_temp.schedule('f', 1, 'forbid');
SELECT pg_temp.quiet(pg_temp.plan('f', 1, '{1}'));
SELECT pg_temp.fails('f', '1'), pg_temp.tend();
SELECT pg_temp.quiet(pg_temp.request('trigger', 'f', 'busy'));
SELECT pg_temp.wait('f', '16 min');
SELECT is(pg_temp.plan('f', 2, '{2,3}') || ', ' || pg_temp.gaps('f') || ', ' || pg_temp.circuit('f'), 'ok 0, 2-2 1 circuit_open, 3-3 1 overlap_forbid, open 1', 'a probe that overlap forbids is none');
SELECT pg_temp.fails('f', 'busy');
SELECT is(pg_temp.plan('f', 4, '{4,5}') || ', ' || pg_temp.gaps('f'), 'ok 1, 2-2 1 circuit_open, 3-3 1 overlap_forbid, 4-4 1 circuit_open', 'the next one is');

SELECT is((SELECT count(*) FROM reports.job WHERE breaker AND schedule = 'n'), 0::bigint, 'a job without a breaker is none of its business');

-- Counting begins anew behind what has ended before, also when that was not counted yet.
SELECT pg_temp.schedule('anew', 1);
SELECT pg_temp.quiet(pg_temp.plan('anew', 1, '{1}'));
UPDATE reports.schedule SET paused = true WHERE name = 'anew';
SELECT pg_temp.take_in('anew');
SELECT pg_temp.fails('anew', '1');
UPDATE reports.schedule SET paused = false WHERE name = 'anew';
SELECT pg_temp.take_in('anew');
SELECT is(pg_temp.circuit('anew') || ', ' || pg_temp.plan('anew', 2, '{2}'), 'closed 0, ok 1', 'a job that failed before it was resumed opens nothing');

-- The clock was ahead when it was opened, and was set back.
SELECT pg_temp.schedule('ahead', 1);
SELECT pg_temp.quiet(pg_temp.plan('ahead', 1, '{1}'));
SELECT pg_temp.fails('ahead', '1');
SELECT is(pg_temp.plan('ahead', 2, '{2}') || ', ' || pg_temp.gaps('ahead'), 'ok 0, 2-2 1 circuit_open', '(it is open)');
SELECT pg_temp.wait('ahead', '-20 days');
SELECT is(pg_temp.plan('ahead', 3, '{3}'), 'ok 1', 'no probe is further ahead than a probe is put');
SELECT is(pg_temp.events('ahead'), 'opened 1, probe 3', 'and one is run');

SELECT * FROM finish();
ROLLBACK;
