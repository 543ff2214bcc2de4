-- Planned handoff: whom a leader may hand over to, who stands aside, when it goes, and who tells what became of it.
BEGIN;
\ir fixture.psql
SELECT no_plan();

CREATE FUNCTION pg_temp.id(p_n integer) RETURNS uuid LANGUAGE sql STRICT AS $$ SELECT format('00000000-0000-4000-8000-%s', lpad(p_n::text, 12, '0'))::uuid $$;
CREATE FUNCTION pg_temp.ask(p_n integer, p_to text DEFAULT NULL, p_scope text DEFAULT 'tap', p_timeout interval DEFAULT '1 min') RETURNS text LANGUAGE sql
AS $$ SELECT format('%s %s', state, answer) FROM reports.ask(pg_temp.id(p_n), 'handoff', p_scope, p_to, p_timeout) $$;
CREATE FUNCTION pg_temp.step(p_n integer, p_generation bigint DEFAULT 100) RETURNS text LANGUAGE sql
AS $$ SELECT format('%s %s', verdict, answer) FROM reports.answer_request('tap', 1, p_generation, pg_temp.leader(), pg_temp.id(p_n), gen_random_uuid()) $$;
CREATE FUNCTION pg_temp.follow(p_member text, p_generation bigint, p_ahead integer, p_confirmed boolean DEFAULT false, p_state text DEFAULT 'ready', p_why text DEFAULT NULL) RETURNS text LANGUAGE sql
AS $$ SELECT reports.follow('tap', 1, p_generation, p_member, p_state, p_ahead, p_why, p_confirmed) $$;
CREATE FUNCTION pg_temp.request(p_n integer) RETURNS text LANGUAGE sql
AS $$ SELECT format('%s: %s', state, answer) FROM reports.request WHERE id = pg_temp.id(p_n) $$;
CREATE FUNCTION pg_temp.refused(p_to text, p_scope text DEFAULT 'tap') RETURNS text LANGUAGE sql
AS $$ SELECT pg_temp.refusal(format('SELECT pg_temp.ask(99, %L, %L)', p_to, p_scope)) $$;

-- A moment after a handoff. Who led says nothing of itself meanwhile, and needs a moment to be in line again.
SELECT matches(pg_temp.refused(NULL), '^55000 scope "tap" has no other candidate that is ready yet .Member "member" leads only since [0-9.]+ s, and a replica that led or has just started is ready some seconds later: ask again..$', 'right after an election nobody is told to start another replica');
INSERT INTO reports.candidate (scope, member, incarnation, generation, ahead, state, seen_at) VALUES ('tap', 'led', 1, 90, 1, 'ready', clock_timestamp() - interval '38 s');
SELECT matches(pg_temp.refused('led'), '^55000 member "led" has given no sign of life for 38 s: it is dead', '(one that is silent)');
INSERT INTO reports.leadership_event (scope, event, member, at) VALUES ('tap', 'released', 'led', clock_timestamp() - interval '0.5 s');
SELECT matches(pg_temp.refused('led'), '^55000 member "led" led until 0.[5-9] s ago, and is not ready yet to take over again .Member "member" leads only since', 'who led half a second ago is not called dead');
SELECT is(pg_temp.follow('led', 90, 1), 'none', '(it follows, but its new node is not there yet)');
SELECT matches(pg_temp.refused('led'), '^55000 member "led" is not in line for scope "tap" yet ', 'nor told to be out of line for good');
DELETE FROM reports.candidate;
UPDATE reports.fence SET established_at = clock_timestamp() - interval '1 min' WHERE scope = 'tap';

-- Whom not.
SELECT is(pg_temp.refused(NULL), '55000 scope "tap" has no other candidate (No other candidate of the scope is ready: start another report-scheduler.)', 'without a follower there is nobody');
SELECT is(pg_temp.refused('b'), '55000 member "b" is not known (No other candidate of the scope is ready: start another report-scheduler.)', 'nor is one known');
SELECT is(pg_temp.follow('b', 110, 1), 'none', 'a follower says how it stands, and nothing is asked of it');
SELECT is(pg_temp.follow('c', 120, 2), 'none', 'another one, too');
SELECT is(pg_temp.follow('d', 0, NULL, p_state => 'held', p_why => 'ensemble_unknown: x'), 'none', 'and one that is held');
SELECT is(pg_temp.follow('e', 130, 3, p_state => 'suspended'), 'none', 'and one without ZooKeeper');
INSERT INTO reports.candidate (scope, member, incarnation, generation, ahead, state, seen_at) VALUES ('tap', 'f', 1, 105, 1, 'ready', clock_timestamp() - interval '20 s'), ('main', 'g', 1, 500, 1, 'ready', clock_timestamp());
SELECT is(pg_temp.refused('nobody'), '55000 member "nobody" is not known (Ready are "b", "c".)', 'an unknown member is refused, with those that could');
SELECT is(pg_temp.refused('member'), '55000 member "member" leads scope "tap" already (Name another one, or leave --to out.)', 'so is the leader');
SELECT is(pg_temp.refused('d'), '55000 member "d" is held: ensemble_unknown: x (Ready are "b", "c".)', 'one that is held');
SELECT is(pg_temp.refused('e'), '55000 member "e" is suspended: ZooKeeper does not answer it (Ready are "b", "c".)', 'one that is suspended');
SELECT matches(pg_temp.refused('f'), '^55000 member "f" has given no sign of life for 20 s: it is dead, or has no database .Ready are "b", "c".', 'one that is silent');
SELECT is(pg_temp.refused('g'), '55000 member "g" is no candidate of scope "tap" (Ready are "b", "c".)', 'one of another scope');
SELECT is(pg_temp.refused('b', 'nowhere'), 'P0002 scope "nowhere" does not exist (reportctl status lists the scopes.)', 'an unknown scope');
INSERT INTO reports.scope (name) VALUES ('unled');
SELECT is(pg_temp.refused(NULL, 'unled'), '55000 scope "unled" has no leader that could hand over (reportctl leaders shows what became of it.)', 'a scope without a leader');
INSERT INTO reports.hold (scope, reason) VALUES ('tap', 'test');
SELECT is(pg_temp.refused('b'), '55000 a hold stands on scope "tap", so nobody leads it (reportctl holds shows it.)', 'a scope under a hold');
UPDATE reports.hold SET lifted_at = clock_timestamp();
SELECT is_empty($$SELECT FROM reports.request$$, 'nothing of that was asked');

-- To the last in line.
SELECT is(pg_temp.ask(1, 'c'), 'pending ', 'a handoff is asked for');
SELECT results_eq($$SELECT generation, member, successor FROM reports.handoff$$, $$VALUES (100::bigint, 'member', NULL::text)$$, 'it names the generation to leave');
SELECT is(pg_temp.follow('b', 110, 1), 'none', 'before the leader has taken it up nobody moves');
SELECT is(pg_temp.step(1), 'wait ', 'the leader takes it up and waits');
SELECT is(pg_temp.follow('b', 110, 1), 'aside', 'who is ahead of the successor is to stand aside');
SELECT is(pg_temp.follow('e', 115, 2, p_state => 'suspended'), 'none', 'but not without ZooKeeper: its node cannot be deleted');
SELECT is(pg_temp.follow('c', 120, 2, true), 'successor', 'the successor is not ready while somebody is ahead of it');
SELECT is(pg_temp.follow('b', 140, 3), 'none', 'who has enrolled again, behind it, stays');
SELECT is(pg_temp.follow('c', 120, 1, false), 'successor', 'nor before a quorum write was answered');
SELECT is(pg_temp.step(1), 'wait ', 'the leader leads on');
SELECT is(pg_temp.follow('c', 120, 1, true), 'ready', 'then it is ready');
SELECT is(pg_temp.follow('c', 120, 1, false), 'ready', 'and stays so');
SELECT is(pg_temp.ask(2, 'b'), 'pending ', '(a second handoff at the same time)');
SELECT is(pg_temp.step(2), 'ok a handoff to member "c" is going on (request 00000000-0000-4000-8000-000000000001): wait for that', 'a second one is refused');
SELECT is(pg_temp.step(1), 'leave ', 'the leader is told to go');
SELECT is(pg_temp.step(1), 'leave ', 'also when it asks again');
DO $$ BEGIN PERFORM reports.release('tap', 1, 100, pg_temp.leader(), 'handoff'), reports.establish('tap', 1, 120, pg_temp.leader(), 'c'), reports.activated('tap', 1, 120, pg_temp.leader(), 1); END $$;
SELECT matches(pg_temp.step(1, 120), '^ok member "c" leads scope "tap" with generation 120; [0-9.]+ ms without a leader since member "member" released$', 'the next leader tells the gap');
SELECT results_eq($$SELECT leader, activated_at > released_at FROM reports.handoff WHERE request = pg_temp.id(1)$$, $$VALUES ('c', true)$$, 'which is written down');
SELECT matches(pg_temp.ask(1, 'c'), '^done member "c" leads', 'repeated, it gets that answer');
SELECT is(pg_temp.step(1, 120), 'skipped ', 'and does nothing again');
SELECT is(pg_temp.refusal('SELECT pg_temp.ask(1, ''b'')'), '23505 request id 00000000-0000-4000-8000-000000000001 was used for something else (Choose a fresh request id.)', 'for another member it is another request');

-- Asked of a generation that is gone.
SELECT is(pg_temp.ask(3, 'b'), 'pending ', '(asked of generation 120)');
SELECT is(pg_temp.ask(4), 'pending ', '(asked of generation 120, to whom ever)');
SELECT is(pg_temp.ask(5, 'b', p_timeout => '10 ms'), 'pending ', '(asked too late)');
DO $$ BEGIN PERFORM reports.establish('tap', 1, 130, pg_temp.leader(), 'e'), reports.activated('tap', 1, 130, pg_temp.leader(), 1), pg_sleep(0.02); END $$;
SELECT is(pg_temp.step(3, 130), 'ok member "b" did not take over; member "e" leads scope "tap" with generation 130; generation 120 had ended by itself; member "c" did not release generation 120: it was killed, or lost its session', 'the next leader hands nothing over for another generation');
SELECT is(pg_temp.request(3), 'refused: member "b" did not take over; member "e" leads scope "tap" with generation 130; generation 120 had ended by itself; member "c" did not release generation 120: it was killed, or lost its session', 'and says so');
SELECT matches(pg_temp.step(4, 130), '^ok member "e" leads scope "tap" with generation 130; generation 120 had ended by itself', 'who wanted just another leader has one');
SELECT matches(pg_temp.request(4), '^done: ', 'and that is done');
SELECT is(pg_temp.step(5, 130), 'ok no leader carried it out before its deadline; ask again with a fresh request id', 'one that is late is expired');
SELECT matches(pg_temp.request(5), '^expired: ', 'whoever leads');

-- A successor that does not answer, or is kept from being next.
SELECT is(pg_temp.follow('b', 140, 1), 'none', '(b is next)');
SELECT is(pg_temp.follow('c', 150, 2), 'none', '(then c)');
SELECT is(pg_temp.ask(6), 'pending ', '(asked, without a name)');
SELECT is(pg_temp.step(6, 130), 'wait ', '(taken up)');
SELECT is((SELECT successor FROM reports.handoff WHERE request = pg_temp.id(6)), 'b', 'the next in line is meant');
UPDATE reports.handoff SET begun_at = begun_at - interval '3 s' WHERE request = pg_temp.id(6);
SELECT is(pg_temp.follow('b', 140, 1, true), 'none', 'after 3 seconds nothing is asked any more');
SELECT is(pg_temp.step(6, 130), 'ok member "b" did not confirm within 3 s that it can take over: it is dead, stopped, or cut off; member "e" leads on with generation 130: ask again with a fresh request id', 'and the leader stays');
SELECT is(pg_temp.ask(7, 'c'), 'pending ', '(asked)');
SELECT is(pg_temp.step(7, 130), 'wait ', '(taken up)');
UPDATE reports.handoff SET begun_at = begun_at - interval '3 s' WHERE request = pg_temp.id(7);
SELECT is(pg_temp.step(7, 130), 'ok member "b", which is before "c" in line, did not stand aside; member "e" leads on with generation 130: ask again with a fresh request id', 'who is in the way is named');
SELECT is(pg_temp.ask(8, 'b'), 'pending ', '(asked)');
SELECT is(pg_temp.step(8, 130), 'wait ', '(taken up)');
SELECT is(pg_temp.follow('b', 140, 1, true), 'ready', '(ready)');
UPDATE reports.handoff SET ready_at = ready_at - interval '2 s' WHERE request = pg_temp.id(8);
SELECT is(pg_temp.step(8, 130), 'ok member "e" was busy when its successor was ready; member "e" leads on with generation 130: ask again with a fresh request id', 'a confirmation that is old counts for nothing');
SELECT is(pg_temp.ask(9, 'b', p_timeout => '20 ms'), 'pending ', '(asked)');
SELECT is(pg_temp.step(9, 130), 'wait ', '(taken up)');
DO $$ BEGIN PERFORM pg_sleep(0.03); END $$;
SELECT is(pg_temp.follow('b', 140, 1, true), 'none', 'after its deadline nothing is asked');
SELECT matches(pg_temp.step(9, 130), '^ok not carried out before its deadline', 'and the leader stays');

-- The rehearsal.
CREATE FUNCTION pg_temp.content() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    t regclass;
    digest text;
    content text := '';
BEGIN
    FOR t IN SELECT oid FROM pg_class WHERE relnamespace = 'reports'::regnamespace AND relkind = 'r' ORDER BY oid LOOP
        EXECUTE format('SELECT md5(string_agg(t::text, chr(10) ORDER BY t::text)) FROM %s t', t) INTO digest;
        content := concat_ws(' ', content, t, digest);
    END LOOP;
    RETURN content;
END
$$;
CREATE TEMP TABLE before AS SELECT pg_temp.content() AS content;
SELECT lives_ok($$SELECT reports.rehearse(1, 'b')$$, 'a successor rehearses');
SELECT is(pg_temp.content(), (SELECT content FROM before), 'and nothing of that is left');

-- What is kept.
UPDATE reports.candidate SET seen_at = clock_timestamp() - interval '25 h' WHERE member = 'f';
SELECT is(pg_temp.follow('c', 150, 2), 'none', '(c says how it stands)');
SELECT is_empty($$SELECT FROM reports.candidate WHERE member = 'f'$$, 'who has been silent for a day is forgotten');
UPDATE reports.request SET answered_at = clock_timestamp() - interval '1 year' WHERE id = pg_temp.id(1);
SELECT is(reports.prune_requests('90 days', 100), 1, '(a request is pruned)');
SELECT results_eq($$SELECT count(*) FILTER (WHERE request = pg_temp.id(1)), count(*) > 1 FROM reports.handoff$$, $$VALUES (0::bigint, true)$$, 'a handoff goes with its request, others stay');

SELECT * FROM finish();
ROLLBACK;
