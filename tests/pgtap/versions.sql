-- Each edit of a schedule appends a version and a change row; what changes nothing appends nothing.
BEGIN;
\ir fixture.psql
SELECT no_plan();

CREATE FUNCTION pg_temp.versions(p_schedule text) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(format('%s:%s%s', version, rule, CASE WHEN ended THEN ':ended' END), ' ' ORDER BY version)
      FROM reports.schedule_version WHERE schedule = p_schedule
$$;
CREATE FUNCTION pg_temp.changes(p_schedule text) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(format('%s/%s', scope, version), ' ' ORDER BY id) FROM reports.schedule_change WHERE schedule = p_schedule
$$;

INSERT INTO reports.schedule (name, scope, report, kind, rule, parameters) VALUES ('s', 'tap', 'nothing', 'cron', '@daily', '{"n": 1.0}');
SELECT is(pg_temp.versions('s'), '1:@daily', 'an INSERT makes version 1');
SELECT is(pg_temp.changes('s'), 'tap/1', 'and its change row');
SELECT ok(effective_from BETWEEN now() AND clock_timestamp(), 'which is effective from now on') FROM reports.schedule_version WHERE schedule = 's';
SELECT is(recorded_by, session_user::text, 'and says who made it') FROM reports.schedule_version WHERE schedule = 's';

UPDATE reports.schedule SET rule = '@hourly' WHERE name = 's';
SELECT is(pg_temp.versions('s'), '1:@daily 2:@hourly', 'an UPDATE makes the next version and leaves the first as it was');
SELECT is(pg_temp.changes('s'), 'tap/1 tap/2', 'and its change row');

UPDATE reports.schedule SET rule = rule, priority = 0, description = '' WHERE name = 's';
SELECT is(pg_temp.versions('s'), '1:@daily 2:@hourly', 'an UPDATE that changes nothing makes no version');
SELECT is(pg_temp.changes('s'), 'tap/1 tap/2', 'and no change row');

UPDATE reports.schedule SET parameters = '{"n": 1}' WHERE name = 's';
SELECT is((SELECT parameters::text FROM reports.schedule_version WHERE schedule = 's' AND version = 3), '{"n": 1}',
          'a value that is equal but reads differently is a change');

DELETE FROM reports.schedule WHERE name = 's';
SELECT is(pg_temp.versions('s'), '1:@daily 2:@hourly 3:@hourly 4:@hourly:ended', 'a DELETE appends an ending version');
SELECT is(pg_temp.changes('s'), 'tap/1 tap/2 tap/3 tap/4', 'and its change row');

INSERT INTO reports.schedule (name, scope, report, kind, rule) VALUES ('s', 'tap', 'nothing', 'cron', '@weekly');
SELECT is(pg_temp.versions('s'), '1:@daily 2:@hourly 3:@hourly 4:@hourly:ended 5:@weekly', 'inserting the name again continues the same identity');
SELECT is(pg_temp.changes('s'), 'tap/1 tap/2 tap/3 tap/4 tap/5', 'and its change row');

-- Refused statements leave nothing behind.
SELECT isnt(pg_temp.refusal($$UPDATE reports.schedule SET nonbusiness = 'skip' WHERE name = 's'$$), 'not refused', 'a refused edit is refused');
SELECT is(pg_temp.changes('s'), 'tap/1 tap/2 tap/3 tap/4 tap/5', 'and makes no change row');

-- A version is a full copy: every column of schedule is in it, with its value.
SELECT set_eq($$SELECT column_name::text FROM information_schema.columns WHERE table_schema = 'reports' AND table_name = 'schedule' AND column_name NOT IN ('name', 'effective_from')$$,
              $$SELECT column_name::text FROM information_schema.columns WHERE table_schema = 'reports' AND table_name = 'schedule_version'
                 AND column_name NOT IN ('schedule', 'version', 'effective_from', 'recorded_at', 'recorded_by', 'change_reason', 'ended')$$,
              'a version has every column of a schedule');
INSERT INTO reports.schedule (name, scope, report, description, kind, rule, time_zone, anchor, starts_at, ends_at, misfire, misfire_max,
                              misfire_age, misfire_grace, queue, priority, max_attempts, retry_base, retry_cap, timeout, parameters, owner)
VALUES ('full', 'tap', 'nothing', 'd', 'interval', '15 min', 'Asia/Tokyo', '2030-01-01', '2030-01-02', '2030-01-03', 'skip', 7, '8 days',
        '9 s', 'fast', 11, 12, '13 s', '14 s', '15 s', '{"a": "b"}', 'somebody');
SELECT is(to_jsonb(v) - '{schedule,version,effective_from,recorded_at,recorded_by,change_reason,ended}'::text[], to_jsonb(s) - '{name,effective_from}'::text[], 'each with its value')
  FROM reports.schedule s JOIN reports.schedule_version v ON v.schedule = s.name WHERE s.name = 'full';
INSERT INTO reports.schedule (name, scope, report, kind, rule, start_local, exdates, rdates, dst_gap, dst_overlap, jitter_s)
VALUES ('full-rrule', 'tap', 'nothing', 'rrule', 'FREQ=DAILY', '2030-01-01 06:00', '{2030-01-02 06:00}', '{2030-01-02 07:00}', 'skip', 'both', 30);
SELECT is(to_jsonb(v) - '{schedule,version,effective_from,recorded_at,recorded_by,change_reason,ended}'::text[], to_jsonb(s) - '{name,effective_from}'::text[], 'also those of a recurrence rule')
  FROM reports.schedule s JOIN reports.schedule_version v ON v.schedule = s.name WHERE s.name = 'full-rrule';

-- When a version begins: at its edit, unless one of our own functions says when that was asked for. The
-- owner's rights stand for such a function here.
INSERT INTO reports.schedule (name, scope, report, kind, rule) VALUES ('asked', 'tap', 'nothing', 'cron', '@daily');
UPDATE reports.schedule_version SET effective_from = now() - interval '10 days' WHERE schedule = 'asked';
CREATE FUNCTION pg_temp.edit(p_role text, p_asked_at text, p_set text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v reports.schedule_version;
BEGIN
    PERFORM set_config('reports.asked_at', p_asked_at, true), set_config('reports.change_reason', 'quarter end', true);
    EXECUTE format('SET LOCAL ROLE %I', p_role);
    EXECUTE format('UPDATE reports.schedule SET %s WHERE name = ''asked''', p_set);
    RESET ROLE;
    SELECT * INTO v FROM reports.schedule_version w WHERE w.schedule = 'asked' ORDER BY w.version DESC LIMIT 1;
    RETURN format('%s %s', CASE WHEN v.effective_from > clock_timestamp() - interval '1 min' THEN 'now'
                                ELSE round(extract(epoch FROM now() - v.effective_from) / 86400) || ' days' END,
                  coalesce(v.change_reason, 'no reason'));
END
$$;
SELECT is(pg_temp.edit('report_author', (now() - interval '8 days')::text, 'paused = true'), 'now no reason', 'an author cannot back-date, nor speak for a request');
UPDATE reports.schedule_version SET effective_from = now() - interval '9 days' WHERE schedule = 'asked' AND version = 2;
SELECT is(pg_temp.edit('report_owner', (now() - interval '8 days')::text, 'paused = false'), '8 days quarter end', 'a request begins when it was asked, and says why');
SELECT is(pg_temp.edit('report_owner', (now() - interval '20 days')::text, 'paused = true'), '8 days quarter end', 'but never before the version in front of it');
SELECT is(pg_temp.edit('report_owner', (now() + interval '20 days')::text, 'paused = false'), 'now quarter end', 'nor in the future');
SELECT is(pg_temp.edit('report_owner', '', 'paused = true'), 'now quarter end', 'and now where it does not say');
UPDATE reports.schedule_version SET effective_from = now() + interval '1 hour' WHERE schedule = 'asked' AND version = 6;
UPDATE reports.schedule SET paused = false WHERE name = 'asked';
SELECT is(v.effective_from, now() + interval '1 hour', 'versions begin in the order of their numbers, also when the clock went back')
  FROM reports.schedule_version v WHERE v.schedule = 'asked' AND v.version = 7;
DELETE FROM reports.schedule WHERE name = 'asked';
SELECT is(version, 8, '(a deletion has its version there, too)') FROM reports.schedule_version WHERE schedule = 'asked' AND ended;

-- An edit that counts from later on.
CREATE FUNCTION pg_temp.begins(p_schedule text) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(format('%s:%s %s%s', v.version, v.priority,
                             CASE WHEN v.effective_from BETWEEN now() - interval '1 min' AND clock_timestamp() THEN 'now' ELSE to_char(v.effective_from AT TIME ZONE 'UTC', 'YYYY') END,
                             (SELECT CASE WHEN c.announced THEN ' announced' ELSE ' edit' END FROM reports.schedule_change c
                               WHERE c.schedule = v.schedule AND c.version = v.version)), ', ' ORDER BY v.version)
      FROM reports.schedule_version v WHERE v.schedule = p_schedule
$$;
INSERT INTO reports.schedule (name, scope, report, kind, rule) VALUES ('later', 'tap', 'nothing', 'cron', '@daily');
UPDATE reports.schedule SET priority = 1, effective_from = '2199-01-01Z' WHERE name = 'later';
SELECT is(pg_temp.begins('later'), '1:0 now edit, 2:1 2199 announced', 'it begins then');
SELECT is((SELECT string_agg(new_version::text, ' ') FROM reports.changes('tap', 100) WHERE schedule = 'later'), '1', 'the leader is not shown it before');
DELETE FROM reports.schedule_change WHERE schedule = 'later' AND NOT announced;
SELECT is((SELECT string_agg(new_version::text, ' ') FROM reports.changes('tap', 100) WHERE schedule = 'later'), NULL, 'nor its schedule');
SELECT is((SELECT problem FROM reports.v_schedule WHERE name = 'later'), NULL, 'and nobody is told that it waits');
UPDATE reports.schedule SET priority = 2 WHERE name = 'later';
SELECT is(pg_temp.begins('later'), '1:0 now, 2:1 2199 announced, 3:2 2199 announced', 'a further edit of the row counts from then too');
UPDATE reports.schedule SET priority = 3, effective_from = '2198-01-01Z' WHERE name = 'later';
SELECT is(pg_temp.begins('later'), '1:0 now, 2:1 2198 announced, 3:2 2198 announced, 4:3 2198 announced', 'one that counts from earlier takes the place of those before it');
UPDATE reports.schedule SET effective_from = NULL WHERE name = 'later';
SELECT is(pg_temp.begins('later'), '1:0 now, 2:1 now edit, 3:2 now edit, 4:3 now edit, 5:3 now edit', 'and so does one that counts from now');
SELECT is((SELECT string_agg(new_version::text, ' ') FROM reports.changes('tap', 100) WHERE schedule = 'later'), '2', 'the leader sees them all, one by one');
UPDATE reports.schedule SET priority = 4, effective_from = '2000-01-01Z' WHERE name = 'later';
SELECT is((SELECT v.effective_from > now() - interval '1 min' FROM reports.schedule_version v WHERE v.schedule = 'later' AND v.version = 6), true, 'nobody back-dates an edit with it');
UPDATE reports.schedule SET effective_from = '2199-01-01Z' WHERE name = 'later';
DELETE FROM reports.schedule WHERE name = 'later';
SELECT is((SELECT v.ended AND v.effective_from < clock_timestamp() FROM reports.schedule_version v WHERE v.schedule = 'later' AND v.version = 8), true, 'a deletion waits for none of them');
INSERT INTO reports.schedule (name, scope, report, kind, rule, effective_from) VALUES ('born-later', 'tap', 'nothing', 'cron', '@daily', '2199-01-01Z');
SELECT is(pg_temp.begins('born-later'), '1:0 2199 announced', 'a new schedule may begin later as well');
SELECT ok(edited IS NOT NULL AND next_fire_at <= '2199-01-01Z', 'the leader is told when to look') FROM reports.next_due('tap');
SELECT is(v.problem, NULL, 'which is no problem either') FROM reports.v_schedule v WHERE v.name = 'born-later';

-- Many rows in one statement.
INSERT INTO reports.schedule (name, scope, report, kind, rule)
SELECT 'many-' || n, 'tap', 'nothing', 'cron', '@daily' FROM generate_series(1, 50) n;
UPDATE reports.schedule SET priority = 5 WHERE name LIKE 'many-%';
SELECT is((SELECT count(*) FROM reports.schedule_version WHERE schedule LIKE 'many-%' AND version = 2 AND priority = 5), 50::bigint, 'a statement over many rows makes a version for each');

-- What the leader sees.
SELECT is((SELECT string_agg(format('%s@%s', schedule, new_version), ' ') FROM reports.changes('tap', 1000) WHERE schedule = 's'), 's@1',
          'the leader is shown the oldest edit of a schedule first');
SELECT is((SELECT count(*) || ' ' || count(DISTINCT schedule) FROM reports.changes('tap', 3)), '3 3', 'of as many schedules as it asks for, whatever the number of edits of each');
SELECT is_empty($$SELECT FROM reports.changes('main', 1000)$$, 'and none of another scope');

SELECT * FROM finish();
ROLLBACK;
