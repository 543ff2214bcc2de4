-- A pause with an end: what a row may say, what an edit leaves of it, what a request makes, and who ends it.
BEGIN;
\ir fixture.psql
SELECT no_plan();

CREATE FUNCTION pg_temp.versions(p_schedule text) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(concat_ws(' ', version, CASE WHEN paused THEN 'paused' END, CASE WHEN paused_until IS NOT NULL THEN 'until ' || round(extract(epoch FROM paused_until - now()) / 60) END,
                                CASE WHEN ended THEN 'ended' END, 'from ' || round(extract(epoch FROM effective_from - now()) / 60)), ', ' ORDER BY version)
      FROM reports.schedule_version WHERE schedule = p_schedule
$$;
CREATE FUNCTION pg_temp.row_of(p_schedule text) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', CASE WHEN paused THEN 'paused' ELSE 'runs' END, 'until ' || round(extract(epoch FROM paused_until - now()) / 60)) FROM reports.schedule WHERE name = p_schedule
$$;
-- As if time had gone by.
CREATE FUNCTION pg_temp.age(p_schedule text, p_by interval) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL session_replication_role = replica;
    UPDATE reports.schedule SET paused_until = paused_until - p_by WHERE name = p_schedule;
    UPDATE reports.schedule_version SET paused_until = paused_until - p_by, effective_from = effective_from - p_by WHERE schedule = p_schedule;
    SET LOCAL session_replication_role = DEFAULT;
END
$$;
CREATE FUNCTION pg_temp.resume() RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', r.verdict, r.resumed, r.locked, r.fault) FROM reports.resume_paused('tap', 1, 100, pg_temp.leader(), 10) r
$$;
CREATE FUNCTION pg_temp.ask(p_id int, p_kind text, p_until timestamptz DEFAULT NULL, p_reason text DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    its_id uuid := lpad(p_id::text, 32, '0')::uuid;
BEGIN
    PERFORM reports.ask(its_id, p_kind, 's', p_reason, '1 min', p_until);
    RETURN (SELECT a.answer FROM reports.answer_request('tap', 1, 100, pg_temp.leader(), its_id, gen_random_uuid()) a);
END
$$;
SELECT pg_temp.add_schedule('s');

-- What is refused, with the way out.
SELECT is(pg_temp.refusal($$UPDATE reports.schedule SET paused_until = now() + interval '1 h' WHERE name = 's'$$),
          format('23514 schedule "s": paused_until is %s, and it is not paused (Write paused = true too, or paused_until = NULL.)', now() + interval '1 h'), 'an end without a pause');
SELECT matches(pg_temp.refusal($$UPDATE reports.schedule SET paused = true, paused_until = '2020-01-01Z' WHERE name = 's'$$),
               '^22023 schedule "s": paused_until, 2020-01-01 00:00:00\+00, is not after now, .* \(Write an instant that is to come, or NULL for a pause without end.\)$', 'an end that is past');
SELECT matches(pg_temp.refusal($$UPDATE reports.schedule SET paused = true, paused_until = '-infinity' WHERE name = 's'$$), 'is not after now', 'one before all time');
SELECT is(pg_temp.refusal($$UPDATE reports.schedule SET paused = true, paused_until = 'infinity' WHERE name = 's'$$),
          '23514 schedule "s": paused_until cannot be ''infinity'' (Write the instant at which it goes on, or NULL for a pause without end.)', 'one that never comes');
SELECT matches(pg_temp.refusal($$UPDATE reports.schedule SET paused = true, paused_until = now() + interval '1 h', effective_from = now() + interval '2 h' WHERE name = 's'$$),
               'paused_until, .*, is not after effective_from, ', 'one before the row counts');
SELECT is(pg_temp.versions('s'), '1 from 0', 'nothing of it left a version');

-- By hand in SQL.
UPDATE reports.schedule SET paused = true, paused_until = now() + interval '60 min' WHERE name = 's';
SELECT is(pg_temp.versions('s'), '1 from 0, 2 paused until 60 from 0', 'a pause with its end is a version');
SELECT ok(extract(epoch FROM next_fire_at - now()) / 60 < 60 AND NOT resumes, 'nothing is over yet') FROM reports.next_due('tap');
SELECT is(pg_temp.resume(), 'ok 0', 'and the leader ends nothing');
UPDATE reports.schedule SET priority = 1 WHERE name = 's';
SELECT is(pg_temp.row_of('s'), 'paused until 60', 'an edit leaves the end as it is');
UPDATE reports.schedule SET paused = false WHERE name = 's';
SELECT is(pg_temp.row_of('s'), 'runs', 'with the pause its end is gone');
UPDATE reports.schedule SET paused = true, paused_until = now() + interval '60 min' WHERE name = 's';
UPDATE reports.schedule SET paused_until = NULL WHERE name = 's';
SELECT is(pg_temp.row_of('s'), 'paused', 'an end can be taken away');
UPDATE reports.schedule SET paused_until = now() + interval '60 min' WHERE name = 's';
SELECT is(pg_temp.row_of('s'), 'paused until 60', 'and given later');
DO $$ BEGIN DELETE FROM reports.schedule_progress WHERE schedule = 's'; DELETE FROM reports.schedule_change; END $$;
SELECT is((SELECT next_fire_at FROM reports.next_due('tap')), now() + interval '60 min', 'the leader is told when to wake');

-- The leader ends it, dated back to its end.
SELECT pg_temp.age('s', '90 min');
SELECT ok(resumes AND next_fire_at IS NULL, 'and that it is over') FROM reports.next_due('tap');
SELECT is(pg_temp.resume(), 'ok 1', 'it goes on');
SELECT matches(pg_temp.versions('s'), ', 8 from -30$', 'from then on, and once');
SELECT is(change_reason, 'paused_until had come', 'with the reason') FROM reports.schedule_version WHERE schedule = 's' AND version = 8;
SELECT is((SELECT count(*) FROM reports.schedule_change WHERE schedule = 's'), 1::bigint, 'as an edit to be taken in');
SELECT is(pg_temp.row_of('s'), 'runs', 'and the row says so');
SELECT is(pg_temp.resume(), 'ok 0', 'that was all');

-- An edit after the end, and nobody led: it is one of a schedule that goes on.
CREATE FUNCTION pg_temp.overdue() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM reports.schedule WHERE name = 's';
    DELETE FROM reports.schedule_version WHERE schedule = 's';
    INSERT INTO reports.schedule (name, scope, report, kind, rule, paused, paused_until) VALUES ('s', 'tap', 'nothing', 'cron', '@daily', true, now() + interval '60 min');
    PERFORM pg_temp.age('s', '90 min');
END
$$;
SELECT pg_temp.overdue();
UPDATE reports.schedule SET priority = 2 WHERE name = 's';
SELECT is(pg_temp.versions('s') || '; ' || pg_temp.row_of('s'), '1 paused until -30 from -90, 2 from -30, 3 from 0; runs', 'any edit');
SELECT pg_temp.overdue();
UPDATE reports.schedule SET paused = false WHERE name = 's';
SELECT is(pg_temp.versions('s') || '; ' || pg_temp.row_of('s'), '1 paused until -30 from -90, 2 from -30; runs', 'one that lets it go on');
SELECT pg_temp.overdue();
UPDATE reports.schedule SET paused_until = NULL WHERE name = 's';
SELECT is(pg_temp.versions('s') || '; ' || pg_temp.row_of('s'), '1 paused until -30 from -90, 2 from -30, 3 paused from 0; paused', 'one that pauses it once more');
SELECT pg_temp.overdue();
UPDATE reports.schedule SET paused_until = now() + interval '10 min' WHERE name = 's';
SELECT is(pg_temp.versions('s') || '; ' || pg_temp.row_of('s'), '1 paused until -30 from -90, 2 from -30, 3 paused until 10 from 0; paused until 10', 'for a while');
SELECT pg_temp.overdue();
DELETE FROM reports.schedule WHERE name = 's';
SELECT is(pg_temp.versions('s'), '1 paused until -30 from -90, 2 from -30, 3 paused until -30 ended from 0', 'its deletion');

-- A row that a check of today refuses is told, and keeps none of the others.
SELECT pg_temp.overdue();
INSERT INTO reports.schedule (name, scope, report, kind, rule, paused, paused_until) VALUES ('t', 'tap', 'nothing', 'cron', '@daily', true, now() + interval '60 min');
SELECT pg_temp.age('t', '80 min');
SET LOCAL session_replication_role = replica;
UPDATE reports.schedule SET time_zone = 'Nowhere/Land' WHERE name = 's';
SET LOCAL session_replication_role = DEFAULT;
SELECT is(pg_temp.resume(), 'ok 1 schedule "s": unknown time zone ''Nowhere/Land''', 'one goes on, and of the other it is said why not');
SELECT is(pg_temp.row_of('t') || ', ' || pg_temp.row_of('s'), 'runs, paused until -30', 'which stays as it is');

-- However many they are, and however early they were to go on.
CREATE FUNCTION pg_temp.resume_of(p_limit integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    r record;
BEGIN
    FOR n IN 1 .. 100 LOOP
        SELECT * INTO r FROM reports.resume_paused('tap', 1, 100, pg_temp.leader(), p_limit);
        EXIT WHEN r.resumed > 0;
    END LOOP;
    RETURN concat_ws(' ', r.verdict, r.resumed, CASE WHEN r.fault IS NOT NULL THEN 'and one not' END);
END
$$;
INSERT INTO reports.schedule (name, scope, report, kind, rule, paused, paused_until) SELECT 'h' || n, 'tap', 'nothing', 'cron', '@daily', true, now() + interval '60 min' FROM generate_series(1, 5) n;
SELECT pg_temp.age('h' || n, '90 min') FROM generate_series(1, 5) n;
UPDATE reports.schedule SET paused = true, paused_until = now() + interval '60 min' WHERE name = 't';
SELECT pg_temp.age('t', '61 min');
SET LOCAL session_replication_role = replica;
UPDATE reports.schedule SET time_zone = 'Nowhere/Land' WHERE name LIKE 'h%';
SET LOCAL session_replication_role = DEFAULT;
SELECT is(pg_temp.resume_of(2), 'ok 1 and one not', 'they hide none behind them');
SELECT is(pg_temp.row_of('t'), 'runs', 'which goes on');
DELETE FROM reports.schedule WHERE name LIKE 'h%';

-- Asked for.
SELECT pg_temp.overdue();
UPDATE reports.schedule SET paused = false WHERE name = 's';
DELETE FROM reports.schedule_version WHERE schedule = 's' AND version > 1;
SELECT is(pg_temp.ask(1, 'pause', now() + interval '60 min', 'audit'), format('schedule "s" is paused until %s', reports.instant_text(now() + interval '60 min')), 'a pause until then');
SELECT is(pg_temp.row_of('s'), 'paused until 60', 'stands in the row');
SELECT is(pg_temp.ask(2, 'pause', now() + interval '60 min'), format('schedule "s" is paused already, until %s', reports.instant_text(now() + interval '60 min')), 'the same once more');
SELECT is(pg_temp.ask(3, 'pause', now() + interval '20 min'), format('schedule "s" is paused until %s', reports.instant_text(now() + interval '20 min')), 'the last one counts');
SELECT is(pg_temp.row_of('s'), 'paused until 20', 'in the row too');
SELECT is(pg_temp.ask(4, 'pause'), format('schedule "s" is paused, and no longer only until %s', reports.instant_text(now() + interval '20 min')), 'also without an end');
SELECT is(pg_temp.row_of('s'), 'paused', 'in the row too');
SELECT is(pg_temp.ask(5, 'pause'), 'schedule "s" is paused already', 'once more');
SELECT is(pg_temp.ask(6, 'resume'), 'schedule "s" is resumed', 'and it goes on');
SELECT is((SELECT change_reason FROM reports.v_schedule_version WHERE schedule = 's' AND paused_until IS NOT NULL AND version > 1 ORDER BY version LIMIT 1), format('asked by %s: audit', session_user), 'its version says who asked and why');
SELECT matches(pg_temp.refusal($$SELECT reports.ask(gen_random_uuid(), 'pause', 's', NULL, '1 min', now() - interval '1 min')$$), '^22023 schedule "s" cannot be paused until .*, which is not to come \(Write a later instant', 'no end in the past');
SELECT is(pg_temp.refusal($$SELECT reports.ask(gen_random_uuid(), 'resume', 's', NULL, '1 min', now() + interval '1 min')$$), '22023 a resume has no end (Only a pause has one: leave p_until out.)', 'nor of something else');
SELECT matches(pg_temp.refusal($$SELECT reports.ask('00000000-0000-0000-0000-000000000001', 'pause', 's', 'audit', '1 min', now() + interval '61 min')$$), 'was used for something else', 'a request id with another end is another request');
SELECT is((SELECT state FROM reports.ask('00000000-0000-0000-0000-000000000001', 'pause', 's', 'audit', '1 min', now() + interval '60 min')), 'done', 'with the same it is the first one');

-- Asked for while nobody led, and over before somebody did.
SELECT pg_temp.overdue();
UPDATE reports.schedule SET paused = false WHERE name = 's';
SELECT is((SELECT state FROM reports.ask('00000000-0000-0000-0000-000000000007', 'pause', 's', NULL, '1 h', now() + interval '30 min')), 'pending', 'a pause');
UPDATE reports.request SET requested_at = requested_at - interval '25 min', until = until - interval '40 min' WHERE state = 'pending';
SELECT is((SELECT answer FROM reports.answer_request('tap', 1, 100, pg_temp.leader(), '00000000-0000-0000-0000-000000000007', gen_random_uuid())),
          format('schedule "s" was paused until %s', reports.instant_text(now() - interval '10 min')), 'is carried out as it was meant');
SELECT is(pg_temp.versions('s') || '; ' || pg_temp.row_of('s'), '1 paused until -30 from -90, 2 from -30, 3 paused from -25, 4 from -10; runs', 'from when it was asked until its end');

-- An announced edit keeps its date, and until then the rule in force stays what it was.
CREATE FUNCTION pg_temp.story() RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(format('%s:%s%s %s%s', v.version, v.priority, CASE WHEN v.paused THEN ' paused' END,
                             CASE WHEN v.effective_from < now() + interval '1 min' THEN 'now' ELSE to_char(v.effective_from AT TIME ZONE 'UTC', 'YYYY') END,
                             (SELECT CASE WHEN c.announced THEN ' announced' ELSE ' edit' END FROM reports.schedule_change c WHERE c.schedule = v.schedule AND c.version = v.version)),
                      ', ' ORDER BY v.version) FROM reports.schedule_version v WHERE v.schedule = 's'
$$;
CREATE FUNCTION pg_temp.announce(p_set text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM reports.schedule WHERE name = 's';
    DELETE FROM reports.schedule_version WHERE schedule = 's';
    DELETE FROM reports.schedule_change WHERE schedule = 's';
    INSERT INTO reports.schedule (name, scope, report, kind, rule, priority, exdates, start_local, parameters, retry_base, starts_at)
    VALUES ('s', 'tap', 'nothing', 'rrule', 'FREQ=DAILY', 1, '{2199-02-03T06:00:00}', '2020-01-01 06:00', '{"x": 1.0}', '90 s', '2001-02-03Z');
    EXECUTE format('UPDATE reports.schedule SET priority = 2, effective_from = ''2199-01-01Z'', %s WHERE name = ''s''', p_set);
    DELETE FROM reports.schedule_change WHERE schedule = 's' AND NOT announced;
END
$$;
SELECT pg_temp.announce($$rule = 'FREQ=WEEKLY'$$);
SELECT is(pg_temp.ask(20, 'pause'), 'schedule "s" is paused; what is announced for 2199-01-01T00:00:00Z begins then', 'a pause leaves the date of an announced edit');
SELECT is(pg_temp.story(), '1:1 now, 2:2 now, 3:1 paused now edit, 4:2 paused 2199 announced', 'and pauses the rule in force, and what is to come');
SELECT is(pg_temp.ask(21, 'pause'), 'schedule "s" is paused already', 'once');
SELECT is(pg_temp.ask(22, 'resume'), 'schedule "s" is resumed; what is announced for 2199-01-01T00:00:00Z begins then', 'it goes on');
SELECT is(pg_temp.story(), '1:1 now, 2:2 now, 3:1 paused now edit, 4:2 paused now, 5:1 now edit, 6:2 2199 announced', 'by the rule that was in force, until what is announced');
SELECT is(to_jsonb(v) - '{version,effective_from,recorded_at,change_reason}'::text[], to_jsonb(w) - '{version,effective_from,recorded_at,change_reason}'::text[], 'as it was in all its parts')
  FROM reports.schedule_version v, reports.schedule_version w WHERE v.schedule = 's' AND w.schedule = 's' AND v.version = 5 AND w.version = 1;
SELECT is(pg_temp.ask(23, 'resume'), 'schedule "s" is not paused', 'once');
SELECT is(pg_temp.ask(24, 'pause', '2199-06-01Z'), 'schedule "s" is paused until 2199-06-01T00:00:00Z; what is announced for 2199-01-01T00:00:00Z begins then', 'also until an instant behind it');
SELECT matches(pg_temp.story(), ', 7:1 paused now edit, 8:2 paused 2199 announced$', 'as before');
SELECT pg_temp.announce('paused = true');
SELECT is(pg_temp.ask(25, 'resume'), 'schedule "s" is not paused, and is written to be paused from 2199-01-01T00:00:00Z; to take that back, set paused = false', 'an announced pause is no pause');
SELECT is(pg_temp.ask(26, 'pause'), 'schedule "s" is paused; what is announced for 2199-01-01T00:00:00Z begins then', 'it can be had at once');
SELECT matches(pg_temp.story(), '5:1 paused now edit, 6:2 paused 2199 announced$', 'of both');
UPDATE reports.schedule SET paused = false WHERE name = 's';
SELECT is(pg_temp.ask(27, 'resume'), 'schedule "s" is resumed; what is announced for 2199-01-01T00:00:00Z begins then', 'a pause that only an announced edit ends can be ended before');
SELECT matches(pg_temp.story(), ':1 now edit, [0-9]+:2 2199 announced$', 'by the rule in force');
DELETE FROM reports.schedule WHERE name = 's';
INSERT INTO reports.schedule (name, scope, report, kind, rule, effective_from) VALUES ('s', 'tap', 'nothing', 'cron', '@daily', '2199-01-01Z');
SELECT is(pg_temp.ask(28, 'pause'), 'schedule "s" is paused; what is announced for 2199-01-01T00:00:00Z begins then', 'one that begins later');
SELECT matches(pg_temp.story(), ':0 2199 announced, [0-9]+:0 paused 2199 announced$', 'begins no earlier for it');
SELECT is(pg_temp.ask(29, 'resume'), 'schedule "s" is resumed; what is announced for 2199-01-01T00:00:00Z begins then', 'nor for going on');

SELECT * FROM finish();
ROLLBACK;
