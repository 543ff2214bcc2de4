-- The fence: generations only grow, one owner each, and what is not the accepted generation is
-- refused and recorded (I1, I2).
BEGIN;
\ir fixture.psql
SELECT no_plan();

INSERT INTO reports.scope (name) VALUES ('f');
SELECT results_eq($$SELECT incarnation, generation, owner, released_at IS NULL FROM reports.fence WHERE scope = 'f'$$,
                  $$VALUES (0::bigint, 0::bigint, NULL::uuid, true)$$, 'a fence row is made with its scope, accepting nobody');
SELECT ok(EXISTS (SELECT FROM reports.fence_pulse WHERE scope = 'f'), 'and its pulse');
SELECT results_eq($$SELECT * FROM reports.fence_read('f')$$, $$VALUES (0::bigint, 0::bigint, NULL::uuid, false, false, NULL::text)$$, 'fence_read shows it');
SELECT ok(NOT reports.fence_holds('f', 0, 0, NULL, 'test'), 'generation 0 without an owner is nobody''s');

CREATE FUNCTION pg_temp.establish(p_incarnation bigint, p_generation bigint, p_owner text DEFAULT 'a', p_member text DEFAULT 'm') RETURNS text LANGUAGE sql AS $$
    SELECT format('%s %s.%s', verdict, stored_incarnation, stored_generation)
      FROM reports.establish('f', p_incarnation, p_generation, md5(p_owner)::uuid, p_member)
$$;
CREATE FUNCTION pg_temp.fence() RETURNS text LANGUAGE sql AS $$
    SELECT format('%s.%s %s %s%s%s', incarnation, generation, CASE owner WHEN md5('a')::uuid THEN 'a' WHEN md5('b')::uuid THEN 'b' END, member,
                  CASE WHEN activated_at IS NOT NULL THEN ' active' END, ' released: ' || release_reason)
      FROM reports.fence WHERE scope = 'f'
$$;
INSERT INTO reports.ensemble (id, incarnation, adopted_by) VALUES ('tap2', 2, 'tap');

-- Establish.
SELECT is(pg_temp.establish(1, 10), 'established 1.10', 'the first generation is established');
SELECT is(pg_temp.fence(), '1.10 a m', 'and stored with owner and member');
SELECT is(pg_temp.establish(1, 10), 'established 1.10', 'repeating it with the same owner is harmless');
SELECT is((SELECT count(*) FROM reports.leadership_event WHERE scope = 'f' AND event = 'established'), 1::bigint, 'and makes no second diary entry');
SELECT is(pg_temp.establish(1, 10, 'b'), 'superseded 1.10', 'the same generation with another owner is refused');
SELECT is(pg_temp.establish(1, 10, NULL), 'superseded 1.10', 'or without one');
SELECT is(pg_temp.establish(1, 9, 'b'), 'superseded 1.10', 'a lower generation is superseded');
SELECT is(pg_temp.fence(), '1.10 a m', 'none of them changed anything');
SELECT is(pg_temp.establish(1, 11, 'b', 'n'), 'established 1.11', 'a higher generation is established');
SELECT is(pg_temp.establish(1, 10, 'a'), 'superseded 1.11', 'and its predecessor superseded, whose row it was');
SELECT is(pg_temp.establish(2, 1, 'a'), 'established 2.1', 'a higher incarnation wins over any generation');
SELECT is(pg_temp.establish(1, 12, 'b'), 'superseded 2.1', 'and a lower incarnation loses with any');
SELECT is(pg_temp.refusal($$SELECT * FROM reports.establish('f', 3, 1, gen_random_uuid(), 'm')$$),
          'RS003 incarnation 3 is not that of a known ensemble', 'an incarnation nobody adopted is refused');
SELECT matches(pg_temp.refusal($$SELECT * FROM reports.establish('f', 2, 5, NULL, 'm')$$), '^23514 .*"owner_with_generation"', 'a generation without an owner is refused');
SELECT is(pg_temp.fence(), '2.1 a m', 'and the fence stands');

-- Activate, release.
SELECT is(reports.activated('f', 2, 1, md5('a')::uuid, 12), 'ok', 'the accepted generation activates');
SELECT is(pg_temp.fence(), '2.1 a m active', 'which the fence row shows');
SELECT is(reports.release('f', 2, 1, md5('b')::uuid, 'stopped'), 'fenced', 'a stranger cannot release it');
SELECT is(reports.release('f', 2, 1, md5('a')::uuid, 'stopped'), 'released', 'its owner can');
SELECT is(pg_temp.fence(), '2.1 a m active released: stopped', 'with the reason');
SELECT is(reports.release('f', 2, 1, md5('a')::uuid, 'again'), 'released', 'releasing twice is harmless');
SELECT is(pg_temp.fence(), '2.1 a m active released: stopped', 'and keeps the first reason');
SELECT ok(NOT reports.fence_holds('f', 2, 1, md5('a')::uuid, 'test'), 'a released generation writes nothing more');
SELECT is(pg_temp.establish(2, 1, 'a'), 'superseded 2.1', 'and cannot be established again, not even by its owner');
SELECT is(pg_temp.establish(2, 2, 'b'), 'established 2.2', 'the next one is established');
SELECT is(pg_temp.fence(), '2.2 b m', 'without a trace of the release');
SELECT is((SELECT string_agg(event || ':' || generation, ' ' ORDER BY id) FROM reports.leadership_event WHERE scope = 'f'),
          'established:10 established:11 established:1 activated:1 released:1 established:2', 'the diary tells it in order');

-- The last line of I2: the table itself.
SELECT is(pg_temp.refusal($$DELETE FROM reports.fence WHERE scope = 'f'$$), '55006 the fence row of scope "f" is never deleted', 'a fence row is never deleted');
SELECT is(pg_temp.refusal('TRUNCATE reports.fence'), '55006 fence rows are never deleted', 'nor truncated');
SELECT is(pg_temp.refusal($$UPDATE reports.fence SET scope = 'g' WHERE scope = 'f'$$), '55006 the fence row of scope "f" is never renamed', 'nor renamed');
SELECT is(pg_temp.refusal($$UPDATE reports.fence SET generation = 1 WHERE scope = 'f'$$), '23514 the fence of scope "f" only grows: (2,1) would follow (2,2)', 'a generation never shrinks');
SELECT is(pg_temp.refusal($$UPDATE reports.fence SET incarnation = 1, generation = 99 WHERE scope = 'f'$$), '23514 the fence of scope "f" only grows: (1,99) would follow (2,2)', 'nor an incarnation');
SELECT is(pg_temp.refusal($$UPDATE reports.fence SET owner = gen_random_uuid() WHERE scope = 'f'$$), '23514 the fence of scope "f": generation (2,2) has one owner and is released once', 'a generation never changes hands');
SELECT is(reports.release('f', 2, 2, md5('b')::uuid, 'x'), 'released', 'released');
SELECT is(pg_temp.refusal($$UPDATE reports.fence SET released_at = NULL WHERE scope = 'f'$$), '23514 the fence of scope "f": generation (2,2) has one owner and is released once', 'a release is never taken back');

-- A missing fence row is an error, never "no lock".
SELECT is(pg_temp.refusal(call), 'RS001 scope "nowhere" has no fence row (Insert the scope into reports.scope, or remove it from scopes in scheduler.conf.)', call || ' of a scope without a fence')
  FROM unnest(ARRAY[$$SELECT * FROM reports.fence_read('nowhere')$$,
                    $$SELECT reports.fence_holds('nowhere', 1, 1, gen_random_uuid(), 'x')$$,
                    $$SELECT * FROM reports.establish('nowhere', 1, 1, gen_random_uuid(), 'm')$$,
                    $$SELECT reports.release('nowhere', 1, 1, gen_random_uuid(), 'x')$$]) AS call;

-- Diary of who may not write.
SELECT lives_ok($$SELECT reports.note_leadership('f', 1, 5, 'm', 'stepped_down', 'suspended')$$, 'a member that lost may say so');
SELECT is(pg_temp.refusal($$SELECT reports.note_leadership('f', 1, 5, 'm', 'established', 'x')$$), '22023 event established is not for this function', 'but not claim to have won');

-- Where others find the leader.
INSERT INTO reports.scope (name) VALUES ('found');
SELECT is((SELECT verdict FROM reports.establish('found', 1, 1, md5('a')::uuid, 'm', 'http://one.example:9410')), 'established', 'a leader tells its URL');
SELECT is(url, 'http://one.example:9410', 'and the fence row names it') FROM reports.fence WHERE scope = 'found';
SELECT is((SELECT verdict FROM reports.establish('found', 1, 1, md5('b')::uuid, 'n', 'http://two.example:9410')), 'superseded', '(a stranger is refused)');
SELECT is(url, 'http://one.example:9410', 'whoever is refused changes nothing') FROM reports.fence WHERE scope = 'found';
SELECT is((SELECT verdict FROM reports.establish('found', 1, 2, md5('c')::uuid, 'o', '')), 'established', '(the next has none)');
SELECT ok(url IS NULL, 'the URL of the one before does not stay') FROM reports.fence WHERE scope = 'found';

-- Ensembles.
SELECT results_eq($$SELECT * FROM reports.ensemble_meet('tap2', 'm')$$, $$VALUES ('known', 2::bigint)$$, 'a known ensemble has its incarnation');
SELECT results_eq($$SELECT * FROM reports.ensemble_meet('rebuilt', 'm')$$, $$VALUES ('unknown', NULL::bigint)$$, 'an unknown one is not adopted when another is known');
SELECT is((SELECT count(*) FROM reports.ensemble), 2::bigint, 'nor recorded');
DELETE FROM reports.ensemble;
SELECT results_eq($$SELECT * FROM reports.ensemble_meet('first', 'm')$$, $$VALUES ('adopted', 1::bigint)$$, 'a database that knows none adopts the first');
SELECT results_eq($$SELECT * FROM reports.ensemble_meet('first', 'n')$$, $$VALUES ('known', 1::bigint)$$, 'and knows it then');
SELECT ok((SELECT count(*) FROM reports.leadership_event WHERE event = 'ensemble_adopted' AND detail LIKE '%first') = (SELECT count(*) FROM reports.scope), 'which stands in the diary of every scope');
SELECT matches(pg_temp.refusal($$SELECT reports.ensemble_meet('', 'm')$$), 'not refused|23514', 'an empty id is no ensemble');

-- Holds.
SELECT ok(NOT reports.is_held('f'), 'nothing is held at first');
INSERT INTO reports.hold (scope, reason) VALUES ('f', 'test');
SELECT ok(reports.is_held('f') AND NOT reports.is_held('main'), 'a hold stands on its scope only');
SELECT ok(held, 'and fence_read shows it') FROM reports.fence_read('f');
UPDATE reports.hold SET lifted_at = clock_timestamp(), lifted_by = 'x';
SELECT ok(NOT reports.is_held('f'), 'until it is lifted');
INSERT INTO reports.hold (reason) VALUES ('all');
SELECT ok(reports.is_held('f') AND reports.is_held('main'), 'a hold without a scope stands on all');
DO $$ BEGIN PERFORM reports.lift_hold((SELECT substring(remedy FROM 'reportctl release-hold (\d+)$')::bigint FROM reports.v_problem WHERE kind = 'hold')); END $$;
SELECT ok(NOT reports.is_held('f') AND NOT reports.is_held('main'), 'the remedy that v_problem names lifts it');
SELECT is(lifted_by, session_user::text, 'and says by whom') FROM reports.hold WHERE reason = 'all';
INSERT INTO reports.hold (reason) VALUES ('all');

-- The pulse: only a long silence and a step of the clock postpone reaping. A lease of 60 s, a grace of 5 s.
CREATE FUNCTION pg_temp.beat_after(p_silence interval, p_stepped boolean DEFAULT false) RETURNS interval LANGUAGE plpgsql AS $$
BEGIN
    UPDATE reports.fence_pulse SET beat_at = clock_timestamp() - p_silence, reap_not_before = '2000-01-01' WHERE scope = 'f';
    PERFORM reports.beat('f', p_stepped);
    RETURN (SELECT greatest(reap_not_before - clock_timestamp(), '0') FROM reports.fence_pulse WHERE scope = 'f');
END
$$;
SELECT is(pg_temp.beat_after('19 s'), '0', 'a beat after less than a quarter of a lease and the grace postpones nothing');
SELECT ok(pg_temp.beat_after('21 s') BETWEEN '59 s' AND '60 s', 'a beat after more gives workers one lease');
SELECT ok(pg_temp.beat_after('2 s', true) BETWEEN '59 s' AND '60 s', 'and so does one that finds the clock stepped');
SELECT is(pg_temp.beat_after('9 s', NULL), '0', 'where that is not known, a beat after less than half of it postpones nothing');
SELECT ok(pg_temp.beat_after('11 s', NULL) BETWEEN '59 s' AND '60 s', 'but one after more: the silence may be a step, and a new leader beats so twice');
UPDATE reports.fence_pulse SET beat_at = '-infinity', reap_not_before = '-infinity' WHERE scope = 'f';
SELECT lives_ok($$SELECT reports.beat('f')$$, 'the very first beat is none after for ever');
UPDATE reports.fence_pulse SET beat_at = clock_timestamp() + interval '1 hour', reap_not_before = '2000-01-01' WHERE scope = 'f';
SELECT lives_ok($$SELECT reports.beat('f')$$, 'a clock that was set back is a step');
SELECT ok(reap_not_before - clock_timestamp() BETWEEN '59 s' AND '60 s' AND beat_at <= clock_timestamp(), 'and the beat follows the clock') FROM reports.fence_pulse WHERE scope = 'f';

SELECT * FROM finish();
ROLLBACK;
