-- One round of care for jobs: retries are released, lapsed claims are closed, and nothing else is touched.
BEGIN;
\ir fixture.psql
SELECT no_plan();

CREATE FUNCTION pg_temp.tend(p_limit integer DEFAULT 100) RETURNS text LANGUAGE sql AS $$
    SELECT format('%s released %s reaped %s held back %s running %s', verdict, released, reaped, held_back, running)
      FROM reports.tend('tap', 1, 100, pg_temp.leader(), p_limit)
$$;
CREATE FUNCTION pg_temp.may_reap() RETURNS void LANGUAGE sql
AS $$ UPDATE reports.fence_pulse SET beat_at = clock_timestamp(), reap_not_before = '-infinity' WHERE scope = 'tap' $$;
CREATE FUNCTION pg_temp.state(p_key text) RETURNS text LANGUAGE sql AS $$ SELECT state::text FROM reports.job WHERE occurrence_key = p_key $$;
CREATE TEMP TABLE w AS SELECT pg_temp.add_worker() AS id;

SELECT is(pg_temp.tend(), 'ok released 0 reaped 0 held back 0 running 0', 'with nothing to do nothing is done');

-- Release.
SELECT pg_temp.add_job('r1', 'retry_wait', p_attempt => 1, p_run_after => clock_timestamp() - interval '2 s');
SELECT pg_temp.add_job('r2', 'retry_wait', p_attempt => 1, p_run_after => clock_timestamp() - interval '1 s');
SELECT pg_temp.add_job('r3', 'retry_wait', p_attempt => 1, p_run_after => clock_timestamp() + interval '9 min');
SELECT is(pg_temp.tend(1), 'ok released 1 reaped 0 held back 2 running 0', 'retries are released within the limit');
SELECT is(pg_temp.state('r1') || ' ' || pg_temp.state('r2'), 'queued retry_wait', 'the longest due first');
SELECT is(pg_temp.tend(), 'ok released 1 reaped 0 held back 1 running 0', 'the next round releases the next');
SELECT is(pg_temp.state('r3'), 'retry_wait', 'what is still waiting out its backoff stays');
SELECT results_eq($$SELECT j.dispatch_number, m.dispatch_number, m.job_id = j.id, m.occurrence_key::text, m.scheduled_for = o.scheduled_for, m.generation
                      FROM reports.outbox m JOIN reports.job j ON j.id = m.job_id JOIN reports.occurrence o ON o.job_id = j.id ORDER BY m.id$$,
                  $$VALUES (2, 2, true, 'r1', true, 100::bigint), (2, 2, true, 'r2', true, 100)$$, 'each released job has a message with the next dispatch number');
SELECT is((SELECT next_release FROM reports.tend('tap', 1, 100, pg_temp.leader(), 10)), (SELECT run_after FROM reports.job WHERE occurrence_key = 'r3'), 'and the leader is told when to look again');
SELECT pg_temp.add_job('o1', 'running', (SELECT id FROM w), p_schedule => 'one', p_overlap => 'queue', p_attempt => 1);
SELECT pg_temp.add_job('w1', 'waiting', p_run_after => clock_timestamp() - interval '2 s', p_schedule => 'one', p_overlap => 'queue', p_waits_for => 'overlap');
SELECT is(pg_temp.tend(), 'ok released 0 reaped 0 held back 2 running 1', 'a job that waits for another to end is not released');
DELETE FROM reports.job WHERE occurrence_key IN ('o1', 'w1');

-- Reap: only beyond lease and grace.
SELECT pg_temp.add_job('live', 'running', (SELECT id FROM w), p_attempt => 1, p_lease_until => clock_timestamp() + interval '60 s');
SELECT pg_temp.add_job('late', 'running', (SELECT id FROM w), p_attempt => 1, p_lease_until => clock_timestamp());
SELECT pg_temp.add_job('lapsed', 'running', (SELECT id FROM w), p_attempt => 1, p_lease_until => clock_timestamp() - interval '6 s');
SELECT pg_temp.add_job('last', 'running', (SELECT id FROM w), p_attempt => 3, p_lease_until => clock_timestamp() - interval '6 s');
SELECT pg_temp.add_job('returned', 'running', (SELECT id FROM w), p_attempt => 3, p_lease_until => clock_timestamp() - interval '6 s');
UPDATE reports.job SET handed_back = 1 WHERE occurrence_key = 'returned';
SELECT pg_temp.add_job('cancelled', 'running', (SELECT id FROM w), p_attempt => 1, p_lease_until => clock_timestamp() - interval '6 s');
UPDATE reports.job SET cancel_requested = true WHERE occurrence_key = 'cancelled';
CREATE TEMP TABLE before AS SELECT * FROM reports.job WHERE state = 'running';

UPDATE reports.fence_pulse SET beat_at = clock_timestamp(), reap_not_before = clock_timestamp() + interval '1 min' WHERE scope = 'tap';
SELECT is(pg_temp.tend(), 'ok released 0 reaped 0 held back 1 running 6', 'nothing is reaped before reap_not_before');
UPDATE reports.fence_pulse SET beat_at = clock_timestamp() - interval '2 min', reap_not_before = '-infinity' WHERE scope = 'tap';
SELECT is(pg_temp.tend(), 'ok released 0 reaped 0 held back 1 running 6', 'nor in the first round after a silence longer than a lease');
SELECT ok(reap_not_before - clock_timestamp() BETWEEN '55 s' AND '60 s', 'which gives every worker a lease to renew') FROM reports.fence_pulse WHERE scope = 'tap';

SELECT pg_temp.may_reap();
UPDATE reports.job SET lease_until = clock_timestamp() WHERE occurrence_key = 'late';
SELECT is(pg_temp.tend(), 'ok released 0 reaped 4 held back 3 running 2', 'then claims that lapsed longer than the grace ago are closed');
SELECT is(pg_temp.state('live'), 'running', 'a live claim stays');
SELECT is(pg_temp.state('late'), 'running', 'so does one within the grace');
SELECT is(pg_temp.state('lapsed'), 'retry_wait', 'one with attempts left is tried again');
SELECT ok(j.run_after - a.ended_at BETWEEN '7 s' AND '13 s' AND j.attempt_token IS NULL AND j.worker IS NULL AND j.lease_until IS NULL AND j.finished_at IS NULL,
          'after its backoff, without a claim') FROM reports.job j JOIN reports.job_attempt a ON a.job_id = j.id WHERE j.occurrence_key = 'lapsed';
SELECT is(pg_temp.state('last'), 'failed', 'one that used its attempts up has failed');
SELECT ok(finished_at IS NOT NULL AND error = 'the worker''s claim lapsed: it died, hung, or lost the database', 'finally, and says why') FROM reports.job WHERE occurrence_key = 'last';
SELECT is(pg_temp.state('returned'), 'retry_wait', 'attempts that were handed back are not used up');
SELECT is(pg_temp.state('cancelled'), 'cancelled', 'one that was to be cancelled is cancelled');
SELECT results_eq($$SELECT a.job_id, a.attempt, a.token, a.worker, a.outcome, a.started_at FROM reports.job_attempt a ORDER BY job_id$$,
                  $$SELECT id, attempt, attempt_token, worker, 'lost', claimed_at FROM before WHERE occurrence_key NOT IN ('live', 'late') ORDER BY id$$,
                  'each lost attempt is written down with its token, worker and start');
UPDATE reports.job SET lease_until = clock_timestamp() + interval '60 s' WHERE occurrence_key IN ('live', 'late'); -- however slow this machine is
SELECT pg_temp.may_reap();
SELECT is(pg_temp.tend(), 'ok released 0 reaped 0 held back 3 running 2', 'none is closed twice');

SELECT pg_temp.add_job('l' || n, 'running', (SELECT id FROM w), p_attempt => 1, p_lease_until => clock_timestamp() - interval '6 s') FROM generate_series(1, 5) n;
SELECT matches(pg_temp.tend(2), 'reaped 2', 'reaping keeps within the limit');
SELECT matches(pg_temp.tend(), 'reaped 3', 'and goes on where it stopped');

INSERT INTO reports.scope (name) VALUES ('elsewhere');
SELECT pg_temp.add_job('foreign', 'running', (SELECT id FROM w), p_attempt => 1, p_lease_until => clock_timestamp() - interval '6 s');
UPDATE reports.job SET scope = 'elsewhere' WHERE occurrence_key = 'foreign';
SELECT matches(pg_temp.tend(), 'reaped 0', 'jobs of another scope are its own leader''s');

-- A step of this clock: the leader's own says what it should show. A worker renews each third of a lease.
CREATE FUNCTION pg_temp.clock_shows(p_ahead interval) RETURNS text LANGUAGE sql AS $$
    SELECT format('reaped %s stepped %s', reaped, stepped)
      FROM reports.tend('tap', 1, 100, pg_temp.leader(), 100, clock_timestamp() - p_ahead, clock_timestamp() - p_ahead)
$$;
SELECT pg_temp.add_job('renewed', 'running', (SELECT id FROM w), p_attempt => 1, p_lease_until => clock_timestamp() + interval '45 s' - interval '51 s');
UPDATE reports.fence_pulse SET beat_at = clock_timestamp() - interval '52 s', reap_not_before = '-infinity' WHERE scope = 'tap';
SELECT is(pg_temp.clock_shows('51 s'), 'reaped 0 stepped t', 'when the clock was set forward by less than a lease no claim is reaped that was renewed in time');
SELECT ok(reap_not_before - clock_timestamp() BETWEEN '55 s' AND '60 s', 'for one lease') FROM reports.fence_pulse WHERE scope = 'tap';
SELECT is(pg_temp.clock_shows('0 s'), 'reaped 0 stepped f', 'the rounds in it neither step nor reap');
UPDATE reports.fence_pulse SET reap_not_before = '-infinity' WHERE scope = 'tap';
SELECT is(pg_temp.clock_shows('0.9 s'), 'reaped 1 stepped f', 'then what was not renewed is');
SELECT pg_temp.add_job('ahead', 'running', (SELECT id FROM w), p_attempt => 1, p_lease_until => clock_timestamp() + interval '60 s' + interval '1 h');
SELECT pg_temp.add_job('renewed2', 'running', (SELECT id FROM w), p_attempt => 1, p_lease_until => clock_timestamp() + interval '60 s');
SELECT is(pg_temp.clock_shows('-1 h'), 'reaped 0 stepped t', 'set back it stops reaping, too');
SELECT ok(lease_until - clock_timestamp() BETWEEN '55 s' AND '60 s', 'and a claim that nobody renewed since has a lease from now, not an hour') FROM reports.job WHERE occurrence_key = 'ahead';

-- There and back between two rounds: the leader sees no step.
UPDATE reports.fence_pulse SET beat_at = clock_timestamp() - interval '1 s', reap_not_before = '-infinity' WHERE scope = 'tap';
UPDATE reports.job SET lease_until = clock_timestamp() + interval '60 s' + interval '76 s' WHERE occurrence_key = 'ahead';
UPDATE reports.job SET lease_until = clock_timestamp() + interval '60 s' + interval '74 s' WHERE occurrence_key = 'renewed2';
SELECT is(pg_temp.clock_shows('0 s') || ' ' || pg_temp.state('ahead') || ' ' || pg_temp.state('renewed2'), 'reaped 0 stepped f running running',
          'a claim that was renewed while the clock was ahead is not reaped');
SELECT ok(lease_until - clock_timestamp() BETWEEN '55 s' AND '60 s', 'and lapses a lease from now if nobody renews it') FROM reports.job WHERE occurrence_key = 'ahead';
DELETE FROM reports.job WHERE occurrence_key IN ('ahead', 'renewed2');

-- A hold stops what would start work, not what closes it.
INSERT INTO reports.hold (scope, reason) VALUES ('tap', 'test');
SELECT pg_temp.add_job('h1', 'retry_wait', p_attempt => 1, p_run_after => clock_timestamp() - interval '1 s');
SELECT pg_temp.add_job('h2', 'running', (SELECT id FROM w), p_attempt => 1, p_lease_until => clock_timestamp() - interval '6 s');
SELECT matches(pg_temp.tend(), 'released 0 reaped 1', 'a hold stops releases, and reaping goes on');
UPDATE reports.hold SET lifted_at = clock_timestamp();
UPDATE reports.job SET run_after = clock_timestamp() + interval '9 min' WHERE state = 'retry_wait' AND occurrence_key <> 'h1'; -- however slow this machine is
SELECT matches(pg_temp.tend(), 'released 1 reaped 0', 'until it is lifted');

-- No job can stop the round for the others, whatever its numbers are.
SELECT pg_temp.add_job('poison', 'running', (SELECT id FROM w), p_attempt => 60, p_max_attempts => 100, p_lease_until => clock_timestamp() - interval '6 s');
UPDATE reports.job SET retry_base = '24:00:00', retry_cap = '7 days' WHERE occurrence_key = 'poison';
SELECT matches(pg_temp.tend(), 'reaped 1', 'the sixtieth attempt with a base of a day is no overflow');
SELECT ok(run_after - clock_timestamp() BETWEEN '5 days' AND '9 days', 'its backoff is the cap, with jitter') FROM reports.job WHERE occurrence_key = 'poison';

-- Backoff.
SELECT ok(bool_and(reports.retry_delay('10 s', '10 min', 1) BETWEEN '7.5 s' AND '12.5 s'), 'the first wait is the base, 25 per cent up or down') FROM generate_series(1, 200);
SELECT ok(bool_and(reports.retry_delay('10 s', '10 min', 4) BETWEEN '60 s' AND '100 s'), 'each further one twice as long') FROM generate_series(1, 200);
SELECT ok(bool_and(reports.retry_delay('10 s', '10 min', 50) BETWEEN '7.5 min' AND '10 min'), 'never longer than the cap') FROM generate_series(1, 200);
SELECT ok(bool_and(reports.retry_delay('9 min', '10 min', 1) BETWEEN '6.75 min' AND '10 min'), 'nor just below it') FROM generate_series(1, 200);
SELECT ok(count(DISTINCT reports.retry_delay('10 s', '10 min', 50)) > 150, 'and at the cap no two are alike either') FROM generate_series(1, 200);
SELECT ok(count(DISTINCT reports.retry_delay('10 s', '10 min', 1)) > 150, 'no two alike') FROM generate_series(1, 200);
SELECT is(reports.retry_delay('0', '10 min', 5), '0', 'a base of nothing waits for nothing');

-- A backoff that began while the clock was ahead.
SELECT pg_temp.add_job('long_wait', 'retry_wait', p_attempt => 1, p_run_after => clock_timestamp() + interval '3 hours');
SELECT pg_temp.add_job('far', 'retry_wait', p_attempt => 1, p_run_after => clock_timestamp() + interval '3 hours');
UPDATE reports.job SET retry_cap = '2 hours' WHERE occurrence_key = 'long_wait';
UPDATE reports.job SET retry_cap = '4 hours' WHERE occurrence_key = 'far';
CREATE FUNCTION pg_temp.tend_knowing() RETURNS void LANGUAGE sql AS $$
    SELECT FROM reports.tend('tap', 1, 100, pg_temp.leader(), 100, clock_timestamp(), clock_timestamp()) $$;
DO $$ BEGIN PERFORM pg_temp.tend_knowing(); END $$;
SELECT is(pg_temp.state('long_wait'), 'retry_wait', 'a round whose leader knows the clock to be where it was looks for none');
DO $$ BEGIN PERFORM pg_temp.tend(); END $$;
SELECT is(pg_temp.state('long_wait') || ' ' || pg_temp.state('far'), 'queued retry_wait', 'the first round of a leader lets a job go that waits longer than any backoff of its own may be');
DELETE FROM reports.job WHERE occurrence_key IN ('long_wait', 'far');

-- Workers that went silent.
CREATE TEMP TABLE silent AS SELECT pg_temp.add_worker() AS id, n FROM generate_series(1, 5) n;
UPDATE reports.worker SET heartbeat_at = clock_timestamp() + interval '1 h' WHERE id IN (SELECT id FROM silent WHERE n = 5);
UPDATE reports.worker SET heartbeat_at = clock_timestamp() - interval '66 s' WHERE id IN (SELECT id FROM silent WHERE n IN (1, 2, 4));
UPDATE reports.worker SET heartbeat_at = clock_timestamp() - interval '63 s' WHERE id IN (SELECT id FROM silent WHERE n = 3);
SELECT reports.worker_leave(id, CASE n WHEN 2 THEN 'draining' ELSE 'stopped' END) FROM silent WHERE n IN (2, 4);
SELECT pg_temp.may_reap();
DO $$ BEGIN PERFORM pg_temp.tend(); END $$;
SELECT results_eq('SELECT s.n, w.state FROM silent s JOIN reports.worker w USING (id) ORDER BY n', $$VALUES (1, 'dead'), (2, 'dead'), (3, 'alive'), (4, 'stopped'), (5, 'dead')$$,
                  'workers silent for longer than lease and grace, or since the clock was set back, are dead, alive or draining; one that stopped is not');
SELECT is(state, 'alive', 'the others live') FROM reports.worker JOIN w USING (id);

SELECT * FROM finish();
ROLLBACK;
