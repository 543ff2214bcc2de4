-- Guards: what holds a restored ensemble, a database that forgot, and a copy of it; and the way out.
BEGIN;
\ir fixture.psql
SELECT no_plan();

-- What tests of several sessions have left: this one counts incarnations.
SET LOCAL session_replication_role = replica;
DELETE FROM reports.ensemble;
INSERT INTO reports.ensemble (id, incarnation, adopted_by) VALUES ('tap', 1, 'tap');
DELETE FROM reports.ensemble_refused;
DELETE FROM reports.leadership_event WHERE scope <> 'tap';
DELETE FROM reports.fence WHERE scope NOT IN ('tap', 'main');
DELETE FROM reports.scope WHERE name NOT IN ('tap', 'main');
UPDATE reports.fence SET incarnation = 0, generation = 0, owner = NULL WHERE scope = 'main';
SET LOCAL session_replication_role = origin;

-- Job ids as the leader makes them, one later than the other.
CREATE FUNCTION pg_temp.id(p_n integer) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$ SELECT format('01890000-%s-7000-8000-000000000000', lpad(p_n::text, 4, '0'))::uuid $$;
-- One that is planned an hour and more after this test.
CREATE FUNCTION pg_temp.later(p_n integer) RETURNS uuid LANGUAGE sql STABLE AS $$
    SELECT (left(x.ms, 8) || '-' || right(x.ms, 4) || '-7000-8000-000000000000')::uuid
      FROM (SELECT lpad(to_hex((extract(epoch FROM now() + p_n * interval '1 hour') * 1000)::bigint), 12, '0') AS ms) x
$$;
CREATE FUNCTION pg_temp.know(p_n integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    made uuid := pg_temp.add_job('k' || p_n, 'succeeded');
BEGIN
    UPDATE reports.job SET id = pg_temp.id(p_n) WHERE id = made;
END
$$;
CREATE FUNCTION pg_temp.establish(p_generation bigint, p_marks uuid[], p_scope text DEFAULT 'tap') RETURNS text LANGUAGE sql AS $$
    SELECT verdict FROM reports.establish(p_scope, 1, p_generation, md5(p_generation::text)::uuid, 'm' || p_generation, NULL, p_marks)
$$;
CREATE FUNCTION pg_temp.holds() RETURNS text LANGUAGE sql AS $$
    SELECT coalesce(string_agg(coalesce(scope::text, 'all') || ' ' || cause, ', ' ORDER BY id), 'none') FROM reports.hold WHERE lifted_at IS NULL
$$;

SELECT is(reports.time_of_job('01890000-0000-7000-8000-000000000000'), '2023-06-28 03:15:47.328+00'::timestamptz, 'a job''s id says when it was planned');
SELECT is(reports.timeline(), (SELECT timeline_id FROM pg_control_checkpoint()), 'the timeline is the server''s');

-- A database that forgot: establish is told which jobs there must be.
SELECT pg_temp.know(1);
SELECT pg_temp.know(2);
SELECT is(pg_temp.establish(101, ARRAY[pg_temp.id(2), NULL]), 'established', 'a mark that is known stops nobody');
SELECT is(mark, pg_temp.id(2), 'and stands in the fence row') FROM reports.fence WHERE scope = 'tap';
SELECT is(pg_temp.establish(102, '{}'), 'established', 'nor does none');
SELECT is(pg_temp.establish(103, ARRAY[pg_temp.id(5), pg_temp.id(2)]), 'held', 'one that is not known holds the scope');
SELECT is(pg_temp.holds(), 'tap database_rewound', 'by a hold');
SELECT results_eq($$SELECT h.mark, h.raised_by FROM reports.hold h WHERE h.cause = 'database_rewound'$$, $$VALUES (pg_temp.id(5), 'm103')$$, 'with the job and who found it');
SELECT matches(reason, '^this database does not know job 01890000-0005-.*, planned at 2023-06-28T03:', 'in words too') FROM reports.hold WHERE cause = 'database_rewound';
SELECT is(generation, 102::bigint, 'nobody is established') FROM reports.fence WHERE scope = 'tap';
SELECT is(pg_temp.establish(104, ARRAY[pg_temp.id(5)]) || ' ' || pg_temp.holds(), 'held tap database_rewound', 'the next one finds the same hold and raises no second');
SELECT is(pg_temp.establish(104, '{}', 'main'), 'established', 'other scopes are not concerned');
SELECT matches(hold, '^database_rewound, hold \d+: this database does not know', 'who asks is told why') FROM reports.fence_read('tap');
SELECT is((SELECT verdict FROM reports.plan_batch('tap', 1, 102, md5('102')::uuid, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', 'x', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}')),
          'held', 'a leader that was established before plans nothing either');
DO $$ BEGIN PERFORM reports.lift_hold(id) FROM reports.hold WHERE cause = 'database_rewound'; END $$;
-- Below a leader that goes on, it is asked for with each batch.
CREATE FUNCTION pg_temp.plan_knowing(p_known uuid) RETURNS text LANGUAGE sql AS $$
SELECT b.verdict FROM reports.plan_batch('tap', 1, 102, md5('102')::uuid, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', 'x', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', p_known) b $$;
SELECT is(pg_temp.plan_knowing(NULL) || ' ' || pg_temp.plan_knowing(pg_temp.id(2)), 'ok ok', 'a batch is written where nothing is asked for, or what is asked for is there');
SELECT is(pg_temp.plan_knowing(pg_temp.id(5)), 'ok', 'or was forgiven');
SELECT is(pg_temp.plan_knowing(pg_temp.later(6)) || ' ' || pg_temp.holds(), 'moved none', 'but not where it is forgotten; the hold is raised by who establishes then');
CREATE FUNCTION pg_temp.tend_knowing(p_known uuid) RETURNS text LANGUAGE sql AS $$
SELECT format('%s reaped %s beaten %s', t.verdict, t.reaped, t.beaten) FROM reports.tend('tap', 1, 102, md5('102')::uuid, 10, NULL, NULL, p_known) t $$;
SELECT is(pg_temp.tend_knowing(NULL) || ', ' || pg_temp.tend_knowing(pg_temp.id(5)), 'ok reaped 0 beaten t, ok reaped 0 beaten t', 'the same with each round of tending');
SELECT is(pg_temp.tend_knowing(pg_temp.later(6)), 'moved reaped  beaten ', 'which does nothing where it is forgotten');
SELECT is(pg_temp.establish(105, ARRAY[pg_temp.id(5)]), 'established', 'once lifted, the mark is not asked for again');
SELECT is(pg_temp.establish(106, ARRAY[pg_temp.id(4)]), 'established', 'nor are older ones, which another replica may remember');
SELECT is(pg_temp.establish(107, ARRAY[pg_temp.id(9)]), 'established', 'nor what was planned before the hold, which a third one may');
SELECT is(pg_temp.establish(108, ARRAY[pg_temp.later(6)]), 'held', 'what was planned after it is');
SELECT is((SELECT count(*) FROM reports.leadership_event WHERE scope = 'tap' AND event = 'hold_raised' AND reason = 'database_rewound'), 2::bigint, 'each stands in the diary');
DO $$ BEGIN PERFORM reports.lift_hold(id) FROM reports.hold WHERE lifted_at IS NULL; END $$;
SELECT matches(pg_temp.refusal($$INSERT INTO reports.hold (scope, cause, reason) VALUES ('tap', 'database_rewound', 'x')$$), '^23514 .*mark_of_rewound', 'such a hold names its mark');
INSERT INTO reports.hold (scope, reason) VALUES ('tap', 'drill');
SELECT is(pg_temp.establish(109, '{}'), 'held', 'any hold keeps a leader from being established');
UPDATE reports.hold SET lifted_at = now(), lifted_by = 'tap' WHERE lifted_at IS NULL;

-- A connection that comes later.
SELECT is(pg_temp.establish(110, ARRAY[pg_temp.id(2)]), 'established', '(a leader)');
CREATE FUNCTION pg_temp.register(p_mark uuid) RETURNS text LANGUAGE sql AS $$ SELECT reports.register_backend('tap', 1, 110, md5('110')::uuid, 'scope', p_mark) $$;
SELECT is(pg_temp.register(NULL) || ' ' || pg_temp.register(pg_temp.id(2)), 'ok ok', 'the same server, which knows the job');
SELECT is(pg_temp.register(pg_temp.later(7)), 'moved', 'one that does not is another');
SELECT is(reports.register_backend('tap', 1, 109, md5('109')::uuid, 'scope', pg_temp.later(7)), 'fenced', 'a stale generation is refused before that');

-- A copy, or a server that was restarted: nothing is claimed or sent before a leader has looked at it.
CREATE TEMP TABLE w AS SELECT pg_temp.add_worker() AS id;
SELECT pg_temp.add_job('one');
CREATE FUNCTION pg_temp.claim() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    keys text;
BEGIN
    SELECT string_agg(occurrence_key, ' ' ORDER BY occurrence_key) INTO keys
      FROM (SELECT occurrence_key FROM reports.claim_ready((SELECT id FROM w), '{default}', 10)
            UNION ALL SELECT occurrence_key FROM reports.claim_ids((SELECT id FROM w), '{default}', ARRAY(SELECT id FROM reports.job WHERE state = 'queued'))) x;
    UPDATE reports.job SET state = 'queued', attempt_token = NULL, worker = NULL, lease_until = NULL WHERE state = 'running';
    RETURN coalesce(keys, 'nothing');
END
$$;
SELECT results_eq($$SELECT server_id, timeline, server_started_at, database FROM reports.fence WHERE scope = 'tap'$$,
                  $$SELECT (SELECT system_identifier::text FROM pg_control_system()), reports.timeline(), pg_postmaster_start_time(), (SELECT oid FROM pg_database WHERE datname = current_database())$$,
                  'establish records the server');
SELECT is(pg_temp.claim(), 'one', 'on it jobs are claimed');
UPDATE reports.fence SET server_started_at = server_started_at - interval '1 day' WHERE scope = 'tap';
SELECT is(pg_temp.claim(), 'nothing', 'after a restart none is');
SELECT is(pg_temp.register(NULL), 'moved', 'the leader''s new connection says so');
SELECT set_eq('SELECT scope::text FROM reports.v_moved_scope', ARRAY['tap'], 'the scope is shown');
SELECT ok(moved, 'by fence show too') FROM reports.v_fence WHERE scope = 'tap';
SELECT is(value, 1::float8, 'and counted') FROM reports.scope_figures('tap') WHERE figure = 'moved';
SELECT is(pg_temp.establish(110, ARRAY[pg_temp.id(2)]), 'established', 'the same leader establishes again');
SELECT is(pg_temp.claim() || ' ' || pg_temp.register(NULL), 'one ok', 'then all goes on');
SELECT is((SELECT count(*) FROM reports.leadership_event WHERE scope = 'tap' AND event = 'moved' AND detail LIKE 'the server is another since the last leader established: started at %'), 1::bigint, 'which the diary says');
SELECT is((SELECT count(*) FROM reports.leadership_event WHERE scope = 'tap' AND event = 'established' AND generation = 110), 1::bigint, 'and no second establishing');
UPDATE reports.fence SET database = 1 WHERE scope = 'tap';
SELECT is(pg_temp.claim(), 'nothing', 'nor in a copy within the cluster');
ALTER TABLE reports.report DROP CONSTRAINT delivery_is_not_supported_yet;
UPDATE reports.report SET deliver = '[{"channel": "mail", "recipient": "a@example.org"}]' WHERE name = 'nothing';
SELECT pg_temp.add_job('sent', 'running', (SELECT id FROM w), p_attempt => 1) AS job \gset
SELECT is((SELECT verdict FROM reports.record_outcomes(ARRAY[:'job'::uuid], ARRAY[(SELECT attempt_token FROM reports.job WHERE id = :'job')], '{succeeded}', '{true}', '{NULL}', '{0}', '{main}', '{p}', '{text/csv}', '{1}', '{1}', ARRAY[sha256('p')])),
          'done', 'what runs may end there');
SELECT is_empty($$SELECT * FROM reports.claim_deliveries((SELECT id FROM w), '{mail}', 10)$$, 'but no delivery is claimed');
UPDATE reports.fence SET database = (SELECT oid FROM pg_database WHERE datname = current_database()) WHERE scope = 'tap';
SELECT token FROM reports.claim_deliveries((SELECT id FROM w), '{mail}', 10) \gset
UPDATE reports.fence SET database = 1 WHERE scope = 'tap';
SELECT is(reports.delivery_sending(:'job', 1, 'mail', 'a@example.org', :'token'), false, 'nor sent that was claimed before');
UPDATE reports.fence SET database = (SELECT oid FROM pg_database WHERE datname = current_database()) WHERE scope = 'tap';
SELECT is(reports.delivery_sending(:'job', 1, 'mail', 'a@example.org', :'token'), true, '(as it is otherwise)');

-- A restored ensemble: proved only by a number read first and a lower one given after, in one incarnation.
CREATE FUNCTION pg_temp.prove(p_incarnation bigint, p_generation bigint, p_read bigint) RETURNS text LANGUAGE sql AS $$
    SELECT reports.prove_regressed('tap', p_incarnation, p_generation, p_read, 'm') || ' ' || pg_temp.holds()
$$;
SELECT is(pg_temp.prove(1, 111, 110), 'false none', 'a higher number is none');
SELECT is(pg_temp.prove(2, 50, 110), 'false none', 'nor is one of another incarnation');
SELECT is(pg_temp.prove(1, 50, 111), 'false none', 'nor what cannot have been read');
SELECT is(pg_temp.prove(1, 50, NULL), 'false none', 'nor nothing');
SELECT is(pg_temp.prove(1, 110, 110), 'true tap zxid_regressed', 'the same number again is one');
SELECT is(pg_temp.prove(1, 50, 110), 'true tap zxid_regressed', 'and is held once');
SELECT matches(pg_temp.refusal($$SELECT reports.lift_hold(id) FROM reports.hold WHERE cause = 'zxid_regressed'$$), '^55000 hold \d+ stands because .*\(reportctl fence rebase lifts it\.\)$', 'lifting it is refused');
SELECT is(remedy, 'nothing is planned or claimed; when the ensemble is the one to go on with: reportctl fence rebase', 'the remedy says how') FROM reports.v_problem WHERE kind = 'hold' AND subject = 'tap';
SELECT is(pg_temp.establish(120, '{}'), 'held', 'a higher number does not help any more');

-- Rebase.
CREATE FUNCTION pg_temp.rebase(p_ensemble text DEFAULT NULL, p_force boolean DEFAULT false) RETURNS text LANGUAGE sql
AS $$ SELECT format('%s is incarnation %s of %s', ensemble, incarnation, scopes > 1) FROM reports.rebase(p_ensemble, 'zk3 lost its disk', p_force) $$;
SELECT matches(pg_temp.refusal('SELECT pg_temp.rebase()'), '^55000 scope "(main|tap)" is led by member m\d+ of the ensemble in force, which gave a sign of life \d+ s ago', 'a leader that lives is not fenced by accident');
UPDATE reports.fence_pulse SET beat_at = clock_timestamp() - interval '1 hour';
SELECT matches(pg_temp.refusal($$SELECT reports.rebase(NULL, ' ', false)$$), '^22023 a rebase needs a reason', 'it needs a reason');
SELECT is(pg_temp.rebase(), 'tap is incarnation 2 of t', 'a restored ensemble gets another incarnation');
SELECT is(pg_temp.holds(), 'none', 'and the hold is gone');
SELECT results_eq($$SELECT DISTINCT incarnation, generation, owner IS NULL, release_reason FROM reports.fence$$, $$VALUES (2::bigint, 0::bigint, true, 'rebased')$$, 'every scope has moved on');
SELECT ok(NOT reports.fence_holds('tap', 1, 110, md5('110')::uuid, 'test'), 'whoever led is refused');
SELECT is((SELECT verdict FROM reports.establish('tap', 1, 200, md5('x')::uuid, 'm')), 'superseded', 'the old incarnation is over');
SELECT results_eq($$SELECT state FROM reports.v_leader WHERE scope = 'tap'$$, $$VALUES ('no leader')$$, 'there is no leader, which is not the same as never having had one');
SELECT results_eq($$SELECT reason, detail FROM reports.leadership_event WHERE event = 'ensemble_adopted' AND scope = 'tap'$$, format($$VALUES ('zk3 lost its disk', 'tap, by %s' COLLATE "default")$$, session_user), 'the diary says who and why');
SELECT is((SELECT verdict FROM reports.establish('tap', 2, 3, md5('3')::uuid, 'm3')), 'established', 'low numbers of the new incarnation are good');
SELECT matches(pg_temp.refusal('SELECT pg_temp.rebase()'), '^55000 no scheduler is refused for its ensemble, so there is nothing to adopt', 'without a reason in sight there is nothing to rebase');
-- A root of another installation is nothing to rebase to.
SELECT reports.root_refused('t', 'a', 'another');
SELECT is(problem, format('HELD, root_taken: zookeeper_root of a belongs to installation another, and this is installation %s: nobody leads by it', (SELECT id FROM reports.installation)), 'status shows another installation''s root') FROM reports.v_problem WHERE kind = 'ensemble';
SELECT is(remedy, 'set zookeeper_root in scheduler.conf, another one for each installation', 'with the remedy') FROM reports.v_problem WHERE kind = 'ensemble';
SELECT is(value, 1::float8, 'and the metric counts it') FROM reports.scope_figures('tap') WHERE figure = 'ensembles_refused';
SELECT matches(pg_temp.refusal('SELECT pg_temp.rebase()'), '^55000 no scheduler is refused for its ensemble', 'and no rebase adopts it');
DELETE FROM reports.ensemble_refused;
-- A rebuilt one.
SELECT results_eq($$SELECT * FROM reports.ensemble_meet('rebuilt', 'a')$$, $$VALUES ('unknown', NULL::bigint)$$, '(it is met)');
SELECT is(problem, 'HELD, ensemble_unknown: a sees a ZooKeeper ensemble that this database does not know, and may not lead', 'status shows it') FROM reports.v_problem WHERE kind = 'ensemble';
SELECT matches(remedy, '^are zookeeper and zookeeper_root right in scheduler.conf. if the ensemble was rebuilt: reportctl fence rebase$', 'with the remedy') FROM reports.v_problem WHERE kind = 'ensemble';
UPDATE reports.fence SET activated_at = clock_timestamp() WHERE scope = 'tap';
SELECT matches(remedy, '^member m3 leads by the ensemble in force, so that was not rebuilt: correct zookeeper or zookeeper_root .*; no rebase$', 'while a leader of the old one lives, nobody is sent to a rebase') FROM reports.v_problem WHERE kind = 'ensemble';
SELECT is(value, 1::float8, 'and a metric') FROM reports.scope_figures('tap') WHERE figure = 'ensembles_refused';
SELECT matches(pg_temp.refusal('SELECT pg_temp.rebase()'), '^55000 scope "tap" is led by member m3 of the ensemble in force', 'while the old one leads it is refused');
SELECT matches(pg_temp.refusal($$SELECT pg_temp.rebase('typo')$$), '^55000 no scheduler that is running is refused for ensemble "typo"', 'a name that nobody sees too');
SELECT results_eq($$SELECT verdict FROM reports.ensemble_meet('third', 'b')$$, $$VALUES ('unknown')$$, '(another is met)');
SELECT matches(pg_temp.refusal('SELECT pg_temp.rebase()'), '^55000 schedulers see 2 ensembles: rebuilt, third', 'which of two must be said');
SELECT is(pg_temp.rebase('rebuilt', true), 'rebuilt is incarnation 3 of t', 'named, and by force');
SELECT ok(NOT reports.fence_holds('tap', 2, 3, md5('3')::uuid, 'test'), 'the living leader is fenced at once');
SELECT results_eq($$SELECT * FROM reports.ensemble_meet('rebuilt', 'a')$$, $$VALUES ('known', 3::bigint)$$, 'the new one is known');
SELECT results_eq($$SELECT * FROM reports.ensemble_meet('tap', 'm3')$$, $$VALUES ('retired', NULL::bigint)$$, 'the old one is retired');
SELECT set_eq('SELECT id, member FROM reports.ensemble_refused', $$VALUES ('third', 'b'), ('tap', 'm3')$$, 'and refused from now on');
SELECT is(pg_temp.rebase('tap', true), 'tap is incarnation 4 of t', 'one can go back, with another incarnation');
UPDATE reports.ensemble_refused SET last_at = now() - interval '2 days';
SELECT verdict FROM reports.ensemble_meet('third', 'c');
SELECT set_eq('SELECT member FROM reports.ensemble_refused', ARRAY['c'], 'what was met days ago is forgotten');

-- Audit.
CREATE FUNCTION pg_temp.audit() RETURNS TABLE (line text) LANGUAGE sql AS $$ SELECT format('%s: %s %s %s', verdict, finding, scope, times) FROM reports.fence_audit('1 hour') WHERE scope IS NULL OR scope <> 'main' $$;
DELETE FROM reports.fence_rejection;
DELETE FROM reports.backend;
DELETE FROM reports.ensemble_refused;
SELECT is_empty('SELECT * FROM pg_temp.audit()', 'nothing is found where all is well');
SELECT is((SELECT verdict FROM reports.establish('tap', 4, 7, md5('7')::uuid, 'm7')), 'established', '(a leader)');
SELECT is((SELECT verdict FROM reports.establish('tap', 4, 9, md5('9')::uuid, 'm9')), 'established', '(and its successor)');
SELECT reports.activated('tap', 4, 7, md5('7')::uuid, 1), reports.activated('tap', 4, 7, md5('7')::uuid, 1), reports.activated('tap', 4, 6, md5('6')::uuid, 1);
UPDATE reports.backend SET generation = 7 WHERE scope = 'tap';
SELECT set_eq($$SELECT line FROM pg_temp.audit() WHERE line LIKE '%refused%'$$, ARRAY['look: writes of former leaders were refused tap 2', 'look: writes of former leaders were refused tap 1'], 'refused writes are counted by operation and member');
SELECT is((SELECT split_part(detail, ', last', 1) FROM reports.fence_audit('1 hour') WHERE finding LIKE 'writes%' AND times = 2), 'activated, by m7', 'by the name in the diary');
SELECT matches((SELECT detail FROM reports.fence_audit('1 hour') WHERE finding LIKE 'writes%' AND times = 1), '^activated, by [^m]', 'or by the connection');
DELETE FROM reports.fence_rejection;
INSERT INTO reports.leadership_event (scope, event, incarnation, generation, member) VALUES ('tap', 'established', 4, 9, 'twice');
SELECT is((SELECT verdict || ' ' || scope FROM reports.fence_audit('1 hour') WHERE finding LIKE 'a generation was%'), 'wrong tap', 'a generation that was established twice is wrong');
DELETE FROM reports.leadership_event WHERE member = 'twice';
INSERT INTO reports.leadership_event (scope, event, incarnation, generation, member) VALUES ('tap', 'established', 5, 1, 'above');
SELECT set_eq($$SELECT verdict || ' ' || scope || ' ' || finding FROM reports.fence_audit('1 hour') WHERE verdict = 'wrong'$$,
              $$VALUES ('wrong tap the fence row is below what the diary says was established')$$, 'and so is a fence row below the diary');

SELECT * FROM finish();
ROLLBACK;
