-- Time zone data: which of them count, and what moves stored firings.
BEGIN;
\ir fixture.psql
SELECT no_plan();


CREATE FUNCTION pg_temp.schedule(p_name text, p_zone text, p_tzdata text, p_digest text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO reports.schedule (name, scope, report, kind, rule, time_zone) VALUES (p_name, 'tap', 'nothing', 'cron', '0 6 * * *', p_zone);
    PERFORM reports.take_in('tap', 1, 100, pg_temp.leader(), ARRAY[p_name], ARRAY(SELECT c.id FROM reports.schedule_change c WHERE c.schedule = p_name), '{1}', '{NULL}',
                            '{2030-01-01 00:00+00}', '{2030-01-01 14:00+00}', '{2030-01-01 06:00}', '{-28800}', '{date}', '{NULL}', ARRAY[p_tzdata],
                            p_zone_digest => ARRAY[p_digest]);
END
$$;
SELECT pg_temp.schedule('old', 'America/Vancouver', '2025b', 'aaaa');
SELECT pg_temp.schedule('new', 'America/Vancouver', '2026f', 'bbbb');
SELECT pg_temp.schedule('utc', 'UTC', '2025b', 'cccc');

SELECT results_eq($$SELECT time_zone, tzdata, digest, settled FROM reports.zones_in_use('tap')$$,
                  $$VALUES ('America/Vancouver', '', '', false), ('UTC', '', '', false)$$, 'the zones that schedules name, before a leader has said by which data it computes');
SELECT is(reports.note_zones('tap', 1, 100, pg_temp.leader(), '2025b', '{America/Vancouver,UTC}', '{aaaa,cccc}', '{false,true}'), 'ok', 'the leader says so');
SELECT is(reports.note_zones('tap', 1, 100, pg_temp.leader(), '2026f', '{America/Vancouver}', '{bbbb}', '{true}'), 'ok', 'and later of newer data');
SELECT is(reports.note_zones('tap', 1, 100, pg_temp.leader(), '2026a', '{America/Vancouver}', '{dddd}', '{false}'), 'ok', 'and then of older ones');
SELECT results_eq($$SELECT * FROM reports.zones_in_use('tap')$$,
                  $$VALUES ('America/Vancouver', '2026a', 'dddd', false, '2026f', 'bbbb'), ('UTC', '2025b', 'cccc', true, '2025b', 'cccc')$$, 'the newest there were are remembered');
SELECT results_eq($$SELECT time_zone, outdated FROM reports.v_zone_state WHERE scope = 'tap' ORDER BY 1$$, $$VALUES ('America/Vancouver', true), ('UTC', false)$$, 'and the leader is seen to be behind');
SELECT is((SELECT problem FROM reports.v_problem WHERE kind = 'time zones'), 'the leader computes America/Vancouver by tzdata 2026a, older than 2026f that another leader had', 'which is a problem');

SELECT results_eq($$SELECT * FROM reports.of_zone('tap', 'America/Vancouver', 'bbbb', '', 10)$$, $$VALUES ('old', '{old}'::text[])$$, 'stored firings that other data computed');
SELECT results_eq($$SELECT * FROM reports.of_zone('tap', 'America/Vancouver', 'dddd', '', 1)$$, $$VALUES ('new', '{new}'::text[])$$, 'a page of them');
SELECT results_eq($$SELECT * FROM reports.of_zone('tap', 'America/Vancouver', 'dddd', 'old', 1)$$, $$VALUES (NULL::text, NULL::text[])$$, 'behind the last there is none');

CREATE FUNCTION pg_temp.rezone(p_tzdata text, p_digest text, p_schedules text[], p_steps bigint[], p_at timestamptz) RETURNS text LANGUAGE sql AS $$
    SELECT verdict || ' ' || (SELECT coalesce(string_agg(m, ' ' ORDER BY m), 'none') FROM unnest(moved) m)
      FROM reports.rezone('tap', 1, 100, pg_temp.leader(), p_tzdata, p_schedules, p_steps, array_fill(p_at, ARRAY[cardinality(p_schedules)]),
                          array_fill('2030-01-01 06:00'::timestamp, ARRAY[cardinality(p_schedules)]), array_fill(-25200, ARRAY[cardinality(p_schedules)]),
                          array_fill(NULL::timestamptz, ARRAY[cardinality(p_schedules)]), array_fill(p_digest, ARRAY[cardinality(p_schedules)]))
$$;
SELECT is(pg_temp.rezone('2026a', 'dddd', '{old,new}', '{1,1}', '2030-01-01 13:00+00'), 'ok old', 'what newer data computed is not overwritten by older ones');
SELECT results_eq($$SELECT next_fire_at, next_nominal, next_offset_s, step, tzdata, zone_digest FROM reports.schedule_progress WHERE schedule = 'old'$$,
                  $$VALUES ('2030-01-01 13:00+00'::timestamptz, '2030-01-01 06:00'::timestamp, -25200, 2::bigint, '2026a', 'dddd')$$, 'the instant moves, the nominal time stays');
SELECT is(pg_temp.rezone('2026f', 'bbbb', '{old,new}', '{1,1}', '2030-01-01 13:00+00'), 'ok new', 'a row that has moved on is left, and equal data may write');
SELECT is(pg_temp.rezone('2026f', 'eeee', '{new}', '{2}', '2030-01-01 13:00+00'), 'ok new', 'data of one version with another digest are equals');
SELECT is(pg_temp.rezone('2026z', 'eeee', '{utc}', '{9}', '2030-01-01 13:00+00'), 'ok none', 'nothing from another step');

-- What the planner writes obeys the same rule.
CREATE FUNCTION pg_temp.plan(p_tzdata text, p_digest text, p_last timestamp) RETURNS text LANGUAGE sql AS $$
    SELECT verdict || ' ' || advanced::text
      FROM reports.plan_batch('tap', 1, 100, pg_temp.leader(), '{new}', '{1}', ARRAY[(SELECT p.step FROM reports.schedule_progress p WHERE p.schedule = 'new')], '{2030-01-02 14:00+00}',
                              '{2030-01-02 06:00}', '{-28800}', ARRAY[CASE WHEN p_last IS NOT NULL THEN '2030-01-01 14:00+00'::timestamptz END], ARRAY[p_last], '{-28800}', p_tzdata,
                              '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', p_zone_digest => ARRAY[p_digest])
$$;
SELECT is(pg_temp.plan('2026a', 'dddd', NULL), 'ok {}', 'older data may not put off what newer ones computed');
SELECT is(pg_temp.plan('2026a', 'dddd', '2029-12-31 06:00'), 'ok {}', 'nor deal with another firing in its place');
SELECT is(pg_temp.plan('2026a', 'dddd', '2030-01-01 06:00'), 'ok {new}', 'they may go on behind it');
SELECT is((SELECT tzdata || ' ' || zone_digest FROM reports.schedule_progress WHERE schedule = 'new'), '2026a dddd', 'under their own name');
SELECT is(pg_temp.plan('2026f', 'bbbb', NULL), 'ok {new}', 'and newer ones may put that off again');
UPDATE reports.schedule_progress SET last_fire_at = '2030-01-02 14:00+00' WHERE schedule = 'new';
SELECT is(pg_temp.rezone('2026f', 'ffff', '{new}', (SELECT ARRAY[step] FROM reports.schedule_progress WHERE schedule = 'new'), '2030-01-02 13:00+00'), 'ok new', '(moved before the latest firing)');
SELECT is((SELECT last_fire_at FROM reports.schedule_progress WHERE schedule = 'new'), '2030-01-02 12:59:59.999999+00'::timestamptz, 'a firing moved before the latest one is still to come');

SELECT results_eq($$SELECT time_zone, tzdata, zone_digest, schedules FROM reports.v_zone WHERE scope = 'tap' ORDER BY 1, 2$$,
                  $$VALUES ('America/Vancouver', '2026a', 'dddd', 1::bigint), ('America/Vancouver', '2026f', 'ffff', 1), ('UTC', '2025b', 'cccc', 1)$$, 'by which data the schedules of a zone are computed');

SELECT * FROM finish();
ROLLBACK;
