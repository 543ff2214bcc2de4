-- Everything that cannot work, or is not there yet, is refused where it is written, and says what
-- to write instead (I12).
BEGIN;
\ir fixture.psql
SELECT no_plan();

-- A valid schedule but for one column.
CREATE FUNCTION pg_temp.with(p_column text, p_value text) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.refusal(format('INSERT INTO reports.schedule (name, scope, report, kind, rule, %I)
                                   VALUES (''s'', ''tap'', ''nothing'', ''cron'', ''0 6 * * *'', %L)', p_column, p_value))
$$;
CREATE FUNCTION pg_temp.rule(p_kind text, p_rule text) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.refusal(format('INSERT INTO reports.schedule (name, scope, report, kind, rule)
                                   VALUES (''s'', ''tap'', ''nothing'', %L, %L)', p_kind, p_rule))
$$;

-- Business days.
SELECT is(pg_temp.with(t.col, t.value), t.refusal, format('%s = %s without a calendar', t.col, t.value))
  FROM (VALUES ('calendar', 'target2', '23503 schedule "s": calendar "target2" does not exist (Make it first, or correct the name: reportctl calendar list; reportctl calendar import target2 makes a shipped one.)'),
               ('nonbusiness', 'skip', '23514 schedule "s": nonbusiness and business_day_offset need a calendar (Write the name of one of reports.calendar; reportctl calendar import nyse makes a shipped one.)'),
               ('business_day_offset', '-1', '23514 schedule "s": nonbusiness and business_day_offset need a calendar (Write the name of one of reports.calendar; reportctl calendar import nyse makes a shipped one.)'),
               ('business_day_offset', '367', '23514 schedule "s": nonbusiness and business_day_offset need a calendar (Write the name of one of reports.calendar; reportctl calendar import nyse makes a shipped one.)'),
               ('roll_collision', 'all', '23514 schedule "s": roll_collision cannot be ''all'' (Write ''coalesce'' or ''run_all''.)'),
               ('roll_collision', 'run_all', 'not refused')) AS t (col, value, refusal);
INSERT INTO reports.calendar (name) VALUES ('days');
SELECT is(pg_temp.refusal(format('INSERT INTO reports.schedule (name, scope, report, kind, rule, calendar, %I) VALUES (''s'', ''tap'', ''nothing'', %L, %L, ''days'', %L)', t.col, t.kind, t.rule, t.value)),
          t.refusal, format('%s = %s with a calendar', t.col, t.value))
  FROM (VALUES ('cron', '@daily', 'nonbusiness', 'half_month_modified_following', 'not refused'),
               ('cron', '@daily', 'nonbusiness', 'later', '23514 schedule "s": nonbusiness cannot be ''later'' (Write ''run'', ''skip'', ''following'', ''modified_following'', ''preceding'', ''modified_preceding'', ''half_month_modified_following'' or ''nearest''.)'),
               ('cron', '@daily', 'business_day_offset', '32', '23514 schedule "s": business_day_offset cannot be ''32'' (Write a number of business days from -31 to 31.)'),
               ('interval', '1 day', 'nonbusiness', 'run', '23514 schedule "s": an interval is elapsed time and takes no calendar (Write calendar = NULL, or kind = ''cron'' or ''rrule''.)')) AS t (kind, rule, col, value, refusal);
-- Policies that are.
SELECT is(pg_temp.with(t.col, t.value), 'not refused', format('%s = %s passes', t.col, t.value))
  FROM (VALUES ('dst_gap', 'auto'), ('dst_gap', 'after'), ('dst_gap', 'shift'), ('dst_gap', 'skip'), ('dst_overlap', 'auto'), ('dst_overlap', 'first'),
               ('dst_overlap', 'second'), ('dst_overlap', 'both'), ('jitter_s', '0'), ('jitter_s', '3600'), ('dialect', 'std')) AS t (col, value);
SELECT is(pg_temp.with(t.col, t.value), format('23514 schedule "s": %s cannot be %L (Write %s.)', t.col, t.value, t.write), format('%s = %s is refused', t.col, t.value))
  FROM (VALUES ('dst_gap', 'first', '''auto'', ''after'', ''shift'' or ''skip'''), ('dst_overlap', 'skip', '''auto'', ''first'', ''second'' or ''both'''),
               ('jitter_s', '-1', 'a number of seconds from 0 to 3600'), ('jitter_s', '3601', 'a number of seconds from 0 to 3600'),
               ('dialect', 'vixie', '''std'' or ''quartz''')) AS t (col, value, write);
SELECT is(pg_temp.refusal(format('INSERT INTO reports.schedule (name, scope, report, kind, rule, %I) VALUES (''s'', ''tap'', ''nothing'', ''interval'', ''1 day'', %L)', t.col, t.value)),
          format('23514 schedule "s": %s is for %s only, and its kind is ''interval'' (Write %s = %s.)', t.col, t.kinds, t.col, t.allowed),
          format('%s cannot belong to an interval', t.col))
  FROM (VALUES ('dst_gap', 'skip', 'cron and rrule', '''auto'''), ('dst_overlap', 'both', 'cron and rrule', '''auto'''), ('dialect', 'quartz', 'cron', '''std'''),
               ('start_local', '2030-01-01', 'rrule', 'NULL'), ('exdates', '{2030-01-01}', 'rrule', 'NULL'), ('rdates', '{}', 'rrule', 'NULL')) AS t (col, value, kinds, allowed);
-- Recurrence rules.
CREATE FUNCTION pg_temp.rrule(p_rule text, p_start text DEFAULT '2030-04-12 06:00', p_exdates text DEFAULT NULL, p_rdates text DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.refusal(format('INSERT INTO reports.schedule (name, scope, report, kind, rule, start_local, exdates, rdates)
                                   VALUES (''s'', ''tap'', ''nothing'', ''rrule'', %L, %L, %L, %L)', p_rule, p_start, p_exdates, p_rdates))
$$;
SELECT is(pg_temp.rrule('FREQ=WEEKLY;INTERVAL=2;BYDAY=MO'), 'not refused', 'a recurrence rule passes');
SELECT is(pg_temp.rrule('freq=daily;until=20301231T235959Z', '2030-04-12 06:00:30', '{2030-04-13 06:00:30}', '{2030-05-01 12:00,2030-05-02}'), 'not refused', 'with dates, in either case');
SELECT is(pg_temp.rrule(r), format('22023 schedule "s": %L is not a recurrence rule (Write it as in RFC 5545 without blanks, e.g. FREQ=WEEKLY;INTERVAL=2;BYDAY=MO.)', r), format('rrule %L is none', r))
  FROM unnest(ARRAY['every monday', 'INTERVAL=2', 'FREQ=DAILY; COUNT=2', '0 6 * * *']) r;
SELECT is(pg_temp.rrule('FREQ=DAILY', NULL), '23514 schedule "s": a recurrence rule needs start_local (Write the local time of its first firing, e.g. 2030-04-12T06:00:00.)', 'a start is needed');
SELECT is(pg_temp.rrule('FREQ=DAILY', '2030-04-12', d), format('23514 schedule "s": exdates has %s, which is not a local time in whole seconds (Write YYYY-MM-DDTHH:MM:SS, e.g. {2030-04-12T06:00:00}.)', w), 'exdates cannot have ' || w)
  FROM (VALUES ('{infinity}', '''infinity'''), ('{NULL}', 'NULL'), ('{2030-04-12 06:00:00.5}', '''2030-04-12 06:00:00.5'''), ('{"0044-03-15 00:00:00 BC"}', '''0044-03-15 00:00:00 BC''')) AS t (d, w);
SELECT is(pg_temp.rrule('FREQ=DAILY', '2030-04-12', NULL, (SELECT array_agg('2030-04-12'::timestamp + n * interval '1 day')::text FROM generate_series(0, 1000) n)),
          '23514 schedule "s": rdates has 1001 local times (Write a list of at most 1000.)', 'more than 1000 dates are refused');
SELECT matches(pg_temp.rrule('FREQ=DAILY', 'infinity'), '^23514 schedule "s": start_local has ''infinity''', 'a start must be a time');
SELECT is(pg_temp.with('overlap', o), 'not refused', format('overlap %s passes', o)) FROM unnest('{allow,forbid,queue,replace}'::text[]) o;
SELECT is(pg_temp.with('overlap', 'sometimes'), '23514 schedule "s": overlap cannot be ''sometimes'' (Write ''allow'', ''forbid'', ''queue'' or ''replace''.)', 'another overlap policy is refused');
SELECT is(pg_temp.refusal($$INSERT INTO reports.queue (name, max_outstanding) VALUES ('q', 5)$$), 'not refused', 'a queue may have a bound');
SELECT matches(pg_temp.refusal($$INSERT INTO reports.queue (name, max_outstanding) VALUES ('q', 0)$$), '^23514 queue "q": max_outstanding cannot be ''0'' \(Write ', 'a bound of nothing is refused');
SELECT is(pg_temp.refusal($$INSERT INTO reports.report (name, kind) VALUES ('r', 'http')$$),
          '0A000 report "r": kind ''http'' is not supported yet (Write kind = ''sql'', ''program'' or ''noop''.)',
          'kind http is refused as not yet');
SELECT is(pg_temp.refusal(format($$INSERT INTO reports.report (name, kind, data_source, query, format) VALUES ('r', 'sql', 'w', 'SELECT 1', %L)$$, f)),
          format('0A000 report "r": format %L is not supported yet for sql (Write format = ''csv'' or ''json''.)', f),
          format('format %s of sql is refused as not yet', f))
  FROM unnest('{xlsx,html,pdf}'::text[]) f;
SELECT is(pg_temp.refusal($$UPDATE reports.report SET kind = 'http' WHERE name = 'nothing'$$),
          '0A000 report "nothing": kind ''http'' is not supported yet (Write kind = ''sql'', ''program'' or ''noop''.)',
          'an UPDATE is judged like an INSERT: report');

-- Rules.
SELECT is(pg_temp.rule('cron', t.rule), t.refusal, format('cron rule %L: %s', t.rule, t.what))
  FROM (VALUES ('0 6 * *', 'four fields are refused',
                '22023 schedule "s": a cron rule has five fields (minute hour day month weekday), six with seconds first or seven with the year last, ''0 6 * *'' has 4 (Example: 30 6 * * 1-5 is 06:30 from Monday to Friday.)'),
               ('30 0 6 * * *', 'a seconds field passes', 'not refused'),
               ('30 0 6 * * * 2030-2035', 'a year passes', 'not refused'),
               ('0 0 6 * * * 2030 UTC', 'eight fields are refused',
                '22023 schedule "s": a cron rule has five fields (minute hour day month weekday), six with seconds first or seven with the year last, ''0 0 6 * * * 2030 UTC'' has 8 (Example: 30 6 * * 1-5 is 06:30 from Monday to Friday.)'),
               ('0 6 * * mon;drop', 'strange characters are refused',
                '22023 schedule "s": cron rule ''0 6 * * mon;drop'' has characters that cannot stand in one (Example: 30 6 * * 1-5 is 06:30 from Monday to Friday.)'),
               ('@reboot', 'an unknown nickname is refused',
                '22023 schedule "s": unknown cron nickname ''@reboot'' (Write @hourly, @daily, @weekly, @monthly or @yearly in lower case, or five fields.)'),
               ('@Daily', 'a nickname in capitals is refused',
                '22023 schedule "s": unknown cron nickname ''@Daily'' (Write @hourly, @daily, @weekly, @monthly or @yearly in lower case, or five fields.)'),
               ('*/15 0-6,22 1 jan-mar MON', 'lists, ranges, steps and names pass', 'not refused')) AS t (rule, what, refusal);
SELECT is(pg_temp.rule('cron', t.rule),
          format('22023 schedule "s": %s of cron rule %L is not within %s (The fields are [second] minute hour day month weekday [year]: 30 6 * * 1-5 is 06:30 from Monday to Friday.)', t.number, t.rule, t.bounds),
          format('cron rule %L names a %s that there is not', t.rule, t.number))
  FROM (VALUES ('61 * * * *', 'minute 61', '0 to 59'), ('0 24 * * *', 'hour 24', '0 to 23'), ('0 6 0 * *', 'day 0', '1 to 31'), ('0 6 1-32 * *', 'day 32', '1 to 31'),
               ('60 0 6 * * *', 'second 60', '0 to 59'), ('0 60 6 * * *', 'minute 60', '0 to 59'), ('0 0 6 * * 1,8', 'weekday 8', '0 to 7'),
               ('0 0 6 * * * 1969', 'year 1969', '1970 to 2199'), ('0 6 * 13 *', 'month 13', '1 to 12'), ('0 6 * * 1,8', 'weekday 8', '0 to 7'), ('99999999999999999999 * * * *', 'minute 99999999999999999999', '0 to 59')) AS t (rule, number, bounds);
SELECT is(pg_temp.rule('cron', r), 'not refused', format('cron rule %L is not refused for its numbers', r))
  FROM unnest('{0 0 1 1 0,59 23 31 12 7,*/15 8-18/2 1-31 JAN-DEC MON-FRI,0 6 * * 5#2,0 6 L-3 * *,0 6 15W * *}'::text[]) r;
SELECT is(pg_temp.rule('cron', '@' || n), 'not refused', format('@%s passes', n))
  FROM unnest('{yearly,annually,monthly,weekly,daily,midnight,hourly}'::text[]) n;
SELECT is(pg_temp.rule('interval', t.rule), t.refusal, format('interval %L: %s', t.rule, t.what))
  FROM (VALUES ('1 month', 'months are refused with the way out',
                '22023 schedule "s": an interval is elapsed time and cannot have months or years (Use kind = ''cron'' for calendar months, e.g. 0 6 1 * *.)'),
               ('2 years', 'years are refused',
                '22023 schedule "s": an interval is elapsed time and cannot have months or years (Use kind = ''cron'' for calendar months, e.g. 0 6 1 * *.)'),
               ('1 month -30 days', 'a month that is nearly nothing is refused too',
                '22023 schedule "s": an interval is elapsed time and cannot have months or years (Use kind = ''cron'' for calendar months, e.g. 0 6 1 * *.)'),
               ('often', 'words are refused',
                '22023 schedule "s": ''often'' is not an interval (Write elapsed time such as 15 minutes or 36 hours.)'),
               ('500 ms', 'less than a second is refused', '22023 schedule "s": an interval is at least 1 second (Write elapsed time such as 15 minutes or 36 hours.)'),
               ('-1 hour', 'a negative one is refused', '22023 schedule "s": an interval is at least 1 second (Write elapsed time such as 15 minutes or 36 hours.)'),
               ('15 minutes', 'minutes pass', 'not refused'),
               ('1 second', 'one second passes', 'not refused')) AS t (rule, what, refusal);
SELECT is(pg_temp.rule('once', t.rule), t.refusal, format('once %L: %s', t.rule, t.what))
  FROM (VALUES ('tomorrow', 'a word is refused',
                '22023 schedule "s": ''tomorrow'' is not a local time (Write YYYY-MM-DDTHH:MM, e.g. 2030-04-12T06:00.)'),
               ('2030-02-30T06:00', 'a day that does not exist is refused',
                '22023 schedule "s": ''2030-02-30T06:00'' names a day or time that does not exist (Write YYYY-MM-DDTHH:MM, e.g. 2030-04-12T06:00.)'),
               ('2030-04-12T25:00', 'an hour that does not exist is refused',
                '22023 schedule "s": ''2030-04-12T25:00'' names a day or time that does not exist (Write YYYY-MM-DDTHH:MM, e.g. 2030-04-12T06:00.)'),
               ('2030-04-12T06:00', 'a local time passes', 'not refused'),
               ('2030-04-12 06:00:30+02:00', 'seconds and an offset pass', 'not refused'),
               ('2030-04-12T06:00Z', 'Z passes', 'not refused')) AS t (rule, what, refusal);
SELECT is(pg_temp.rule('weekly', 'monday'),
          '23514 schedule "s": kind cannot be ''weekly'' (Write ''cron'', ''rrule'', ''interval'' or ''once''.)',
          'an unknown kind is refused as that, not as a bad time');
SELECT matches(pg_temp.rule(NULL, '0 6 * * *'), '^23502 null value in column "kind"', 'a missing kind is refused as that');
SELECT matches(pg_temp.rule('cron', NULL), '^23502 null value in column "rule"', 'a missing rule is refused as that');
SELECT matches(pg_temp.rule('cron', repeat('0,', 300) || '0 * * * *'), '^23514 schedule "s": rule cannot be .* \(A rule has 1 to 512 bytes; ', 'a rule longer than 512 bytes is refused');

-- The dialect of Quartz.
CREATE FUNCTION pg_temp.quartz(p_rule text) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.refusal(format('INSERT INTO reports.schedule (name, scope, report, kind, rule, dialect) VALUES (''s'', ''tap'', ''nothing'', ''cron'', %L, ''quartz'')', p_rule))
$$;
SELECT is(pg_temp.quartz(r), 'not refused', format('quartz rule %L passes', r)) FROM unnest('{0 30 6 ? * MON-FRI,0 0/5 8-17 ? * 2-6 2030,0 0 22-2 L * ?}'::text[]) r;
SELECT is(pg_temp.quartz('30 6 * * 1-5'),
          '22023 schedule "s": a quartz rule has six or seven fields (second minute hour day month weekday [year]), ''30 6 * * 1-5'' has 5 (Example: 0 30 6 ? * MON-FRI is 06:30 from Monday to Friday. With five fields write dialect = ''std''.)',
          'a rule of five fields is not of that dialect');

-- Time zones.
SELECT is(pg_temp.with('time_zone', z), format('22023 schedule "s": unknown time zone %L (Write an IANA name such as Europe/Berlin or UTC.)', z),
          format('zone %L is unknown', z))
  FROM unnest('{Europe/Atlantis,berlin time,../../etc/passwd}'::text[]) z;
SELECT is(pg_temp.with('time_zone', z), 'not refused', format('zone %s is known', z))
  FROM unnest('{UTC,Europe/Berlin,America/Argentina/Buenos_Aires,Asia/Kathmandu}'::text[]) z;

SELECT is(pg_temp.with('time_zone', 'europe/berlin'), '22023 schedule "s": unknown time zone ''europe/berlin'' (Write ''Europe/Berlin'': its letters count.)', 'a zone in other letters is refused');
SELECT is(pg_temp.with('time_zone', 'US/Eastern'), 'not refused', 'an older name of a zone is one');
SELECT is(current_setting('TimeZone'), (SELECT reset_val FROM pg_settings WHERE name = 'TimeZone'), 'and the session''s own zone stays');

-- Shapes that would otherwise be found by a leader only, and never where there is none.
SELECT is(pg_temp.rule('cron', t.rule), format('22023 schedule "s": cron %L: %s', t.rule, t.refusal), format('cron rule %L is refused', t.rule))
  FROM (VALUES ('*/90 * * * *', 'minute "*/90": the step is out of range (Write /1 to /60; every 90 minutes is no cron but kind = ''interval'', rule = ''90 minutes''.)'),
               ('5 0,1-9/25 * * *', 'hour "1-9/25": the step is out of range (Write /1 to /24; every 25 hours is no cron but kind = ''interval'', rule = ''25 hours''.)'),
               ('0/99 0 6 * * *', 'second "0/99": the step is out of range (Write /1 to /60; every 99 seconds is no cron but kind = ''interval'', rule = ''99 seconds''.)'),
               ('*/0 * * * *', 'minute "*/0": the step is out of range (Write /1 to /60.)'), ('0 6 */32 * *', 'day of month "*/32": the step is out of range (Write /1 to /31.)'),
               ('0 6 * * MON#6', 'day of week "MON#6": a month has no such weekday (Write one weekday and which in the month: 5#1 to 5#5, or 5L for the last.)')) AS t (rule, refusal);
SELECT is(pg_temp.rule('cron', r), 'not refused', format('cron rule %L passes', r))
  FROM unnest(ARRAY['*/60 */24 */31 */12 *', '*/60 0 0 1 1 */7 */230', '0 6 * * MON#5,FRI#L', '0 6 * * fri#l']) r;
SELECT is(pg_temp.rrule(t.rule), '22023 schedule "s": ' || t.refusal, format('rrule %L is refused', t.rule))
  FROM (VALUES ('RRULE:FREQ=DAILY', '''RRULE:FREQ=DAILY'' has "RRULE:" before the rule (Write only what follows it: FREQ=DAILY)'),
               ('INTERVAL=2;freq=DAYLY', 'FREQ "DAYLY" is unknown (Write MINUTELY, HOURLY, DAILY, WEEKLY, MONTHLY or YEARLY.)'),
               ('FREQ=SECONDLY', 'FREQ=SECONDLY is not taken (Write kind = ''interval'' with a rule such as 30 seconds, or FREQ=MINUTELY with BYSECOND.)'),
               ('FREQ=DAILY;INTERVAL=0', '''FREQ=DAILY;INTERVAL=0'' has no number from 1 on as INTERVAL (Write a number from 1 on: INTERVAL=2 is every second one.)')) AS t (rule, refusal);
SELECT is(pg_temp.rule('interval', '90'), '22023 schedule "s": interval ''90'': a unit is missing after 90 (Write it: 90 minutes, or 90 seconds, which PostgreSQL takes it for.)', 'a number without a unit is refused');
SELECT is(pg_temp.rule('interval', r), format('22023 schedule "s": interval %L is not made of whole numbers, each with its unit (Write seconds, minutes, hours, days or weeks in small letters, such as 1 hour 30 minutes.)', r), format('interval %L is refused', r))
  FROM unnest('{01:30:00,15 m,1.5 hours,15 Minutes,1 hour 30}'::text[]) r;
SELECT is(pg_temp.rule('interval', r), 'not refused', format('interval %L passes', r)) FROM unnest('{90s,2 h 30min,1 week 1 day,1d 2h 3min 4sec,36 hours}'::text[]) r;

-- Names and references.
SELECT matches(pg_temp.refusal(format('INSERT INTO reports.schedule (name, scope, report, kind, rule) VALUES (%L, ''tap'', ''nothing'', ''cron'', ''@daily'')', n)),
               '^23514 name .* cannot be one \(A name is 1 to 63 of a-z, 0-9, _ . - and begins with a letter or digit[.:]', format('name %s is refused', to_json(n)))
  FROM unnest(ARRAY['', 'Sales', 'a b', '-a', '_a', 'sales/daily', 'ä', repeat('a', 64), E'a\n']) n;
SELECT is(pg_temp.refusal(format('INSERT INTO reports.schedule (name, scope, report, kind, rule) VALUES (%L, ''tap'', ''nothing'', ''cron'', ''@daily'')', n)),
          'not refused', format('name %L passes', n))
  FROM unnest(ARRAY['a', '7', 'sales-daily_v1.2', repeat('a', 63)]) n;
SELECT is(pg_temp.with('queue', 'slow'),
          '23503 schedule "s": queue "slow" does not exist (Insert it into reports.queue first and let a worker serve it, or correct the name.)', 'a queue must exist');
SELECT is(pg_temp.refusal($$INSERT INTO reports.schedule (name, scope, report, kind, rule) VALUES ('t', 'nowhere', 'nothing', 'cron', '@daily')$$),
          '23503 schedule "t": scope "nowhere" does not exist (Insert it into reports.scope first and add it to scopes in scheduler.conf, or correct the name.)', 'a scope must exist');
SELECT is(pg_temp.refusal($$INSERT INTO reports.schedule (name, scope, report, kind, rule) VALUES ('t', 'tap', 'missing', 'cron', '@daily')$$),
          '23503 schedule "t": report "missing" does not exist (Insert it into reports.report first, or correct the name.)', 'a report must exist');

-- Bounds of the columns.
SELECT matches(pg_temp.with(t.col, t.value), format('^23514 schedule "s": %s (cannot be|00:00:01 is less than) .*\(Write ', t.col), format('%s = %L is out of bounds', t.col, t.value))
  FROM (VALUES ('misfire', 'sometimes'), ('misfire_max', '0'), ('misfire_max', '1001'), ('misfire_age', '1 second'), ('misfire_age', '20000 days'),
               ('misfire_grace', '0'), ('misfire_grace', '2 days'), ('priority', '-1001'), ('priority', '1001'), ('max_attempts', '0'), ('max_attempts', '101'),
               ('retry_base', '-1 s'), ('retry_base', '2 days'), ('retry_cap', '-1 s'), ('retry_cap', '8 days'), ('timeout', '0'), ('timeout', '8 days')) AS t (col, value);
-- Parameters.
CREATE FUNCTION pg_temp.parameters(p_kind text, p_parameters text) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.refusal(format('INSERT INTO reports.report (name, kind, data_source, query, program, parameters)
                                   VALUES (''r'', %L, ''w'', ''SELECT 1'', ''p'', %L)', p_kind, p_parameters))
$$;
SELECT is(pg_temp.with('parameters', p), '23514 schedule "s": parameters must be an object (Write {"name": "value"}, or {} for none.)', format('parameters %s are refused', p))
  FROM unnest(ARRAY['[1]', '"x"', 'null']) p;
SELECT is(pg_temp.with('parameters', p),
          '23514 schedule "s": parameters are larger than 65536 bytes or more than 1000 (Keep data in a table that the report reads, and give its key here.)', 'oversize parameters are refused')
  FROM (VALUES (json_build_object('x', repeat('a', 70000))::text), ((SELECT json_object_agg('k' || n, n)::text FROM generate_series(0, 1000) n))) AS t (p);
SELECT is(pg_temp.with('parameters', json_build_object(n, 1)::text), format('23514 schedule "s": parameter "%s" is built in and cannot be set (Give it another name.)', n), format('%s is built in', n))
  FROM unnest('{business_date,window_start,window_end,scheduled_for,schedule,attempt,occurrence_key}'::text[]) n;
SELECT is(pg_temp.parameters('sql', format('{"x": %s}', v)),
          '23514 report "r": parameter "x" is null, a list or an object (In a query only text, numbers and booleans can stand.)', format('sql refuses %s', v))
  FROM unnest(ARRAY['null', '[1]', '{"y": 1}']) v;
SELECT is(pg_temp.parameters('program', '{"x": {"y": [1, null]}}'), 'not refused', 'a program gets its parameters as JSON: they may be nested');
SELECT is(pg_temp.parameters('sql', '{"a": "text", "b": 1.50, "c": true}'), 'not refused', 'text, numbers and booleans pass');
SELECT matches(pg_temp.refusal($$INSERT INTO reports.schedule (name, scope, report, kind, rule, starts_at, ends_at)
                                 VALUES ('t', 'tap', 'nothing', 'cron', '@daily', '2030-01-02', '2030-01-01')$$),
               '^23514 schedule "t": it ends at .* which is not after its start at .* \(Write ', 'a schedule that ends before it starts is refused');
SELECT matches(pg_temp.refusal($$INSERT INTO reports.schedule (name, scope, report, kind, rule, misfire_age, misfire_grace)
                                 VALUES ('t', 'tap', 'nothing', 'cron', '@daily', '5 min', '10 min')$$),
               '^23514 schedule "t": misfire_age 00:05:00 is less than misfire_grace 00:10:00 \(Write ', 'a grace longer than the age is refused');

-- Reports.
SELECT matches(pg_temp.refusal($$INSERT INTO reports.report (name, kind, query) VALUES ('r', 'sql', 'SELECT 1')$$), '^23514 report "r": kind ''sql'' needs a data_source \(Write ', 'sql without a data source is refused');
SELECT matches(pg_temp.refusal($$INSERT INTO reports.report (name, kind, data_source) VALUES ('r', 'sql', 'w')$$), '^23514 report "r": kind ''sql'' needs a query \(Write ', 'sql without a query is refused');
SELECT matches(pg_temp.refusal($$INSERT INTO reports.report (name, kind) VALUES ('r', 'program')$$), '^23514 report "r": kind ''program'' needs a program \(Write ', 'program without a program is refused');
SELECT matches(pg_temp.refusal($$INSERT INTO reports.report (name, kind) VALUES ('r', 'magic')$$), '^23514 report "r": kind cannot be ''magic'' \(Write ''sql'', ', 'an unknown kind of report is refused');
SELECT is(pg_temp.parameters('noop', '[]'), '23514 report "r": parameters must be an object (Write {"name": "value"}, or {} for none.)', 'parameters that are no object are refused');
SELECT matches(pg_temp.refusal($$INSERT INTO reports.report (name, kind, format) VALUES ('r', 'noop', '../x')$$), '^23514 report "r": format cannot be ''../x'' \(Write ''csv'' ', 'a format that could leave its directory is refused');
SELECT matches(pg_temp.refusal($$INSERT INTO reports.report (name, kind, data_source, query) VALUES ('r', 'sql', 'w', repeat('x', 262145))$$), '^23514 report "r": its query has 262145 bytes \(A query may have 262144 bytes', 'a query larger than 256 KiB is refused');
UPDATE reports.report SET updated_at = '2000-01-01', description = 'x' WHERE name = 'nothing';
SELECT ok(updated_at > now() - interval '1 min', 'updated_at is the time of the change, whatever was written') FROM reports.report WHERE name = 'nothing';
INSERT INTO reports.schedule (name, scope, report, kind, rule) VALUES ('user', 'tap', 'nothing', 'cron', '@daily');
SELECT is(pg_temp.refusal(q), '23503 report "nothing" is in use by schedule "user" (Delete those schedules first, or give them another report.)', 'a report that a schedule uses stays: ' || q)
  FROM unnest(ARRAY[$$DELETE FROM reports.report WHERE name = 'nothing'$$, $$UPDATE reports.report SET name = 'other' WHERE name = 'nothing'$$]) q;
SELECT is(pg_temp.refusal(q), '23503 queue "default" is in use by schedule "user" (Delete those schedules first, or give them another queue.)', 'a queue that a schedule uses stays: ' || q)
  FROM unnest(ARRAY[$$DELETE FROM reports.queue WHERE name = 'default'$$, $$UPDATE reports.queue SET name = 'other' WHERE name = 'default'$$]) q;
SELECT is(pg_temp.refusal($$DELETE FROM reports.queue WHERE name = 'fast'$$), 'not refused', 'a queue that nobody uses can be deleted');
INSERT INTO reports.worker (id, name, pid, version, queues, slots) VALUES (gen_random_uuid(), 'w1', 1, 'tap', '{fast}', 1);
SELECT is(pg_temp.refusal($$DELETE FROM reports.queue WHERE name = 'fast'$$),
          '55006 queue "fast" is in use by worker "w1" (Let its jobs end, then take it out of queues in worker.conf and restart those workers.)', 'a queue that a worker serves stays');

-- Schedules: identity and anchor.
SELECT is(pg_temp.refusal($$UPDATE reports.schedule SET name = 'other' WHERE name = 'user'$$),
          '22023 schedule "user": name and scope never change (Insert a new schedule under another name and delete this one.)', 'a schedule cannot be renamed');
SELECT is(pg_temp.refusal($$UPDATE reports.schedule SET scope = 'main' WHERE name = 'user'$$),
          '22023 schedule "user": name and scope never change (Insert a new schedule under another name and delete this one.)', 'a schedule cannot move to another scope');
INSERT INTO reports.schedule (name, scope, report, kind, rule) VALUES ('gone', 'tap', 'nothing', 'cron', '@daily');
DELETE FROM reports.schedule WHERE name = 'gone';
SELECT is(pg_temp.refusal($$INSERT INTO reports.schedule (name, scope, report, kind, rule) VALUES ('gone', 'main', 'nothing', 'cron', '@daily')$$),
          '22023 schedule "gone": this name belongs to scope "tap" for ever, also after its deletion (Choose another name for a schedule in scope "main".)', 'nor by deleting and inserting it');
SELECT is(pg_temp.refusal($$INSERT INTO reports.schedule (name, scope, report, kind, rule) VALUES ('gone', 'tap', 'nothing', 'cron', '@daily')$$), 'not refused', 'in its scope the name goes on');
SELECT is(pg_temp.refusal($$UPDATE reports.schedule SET nonbusiness = 'skip' WHERE name = 'user'$$),
          '23514 schedule "user": nonbusiness and business_day_offset need a calendar (Write the name of one of reports.calendar; reportctl calendar import nyse makes a shipped one.)', 'an UPDATE is judged like an INSERT: schedule');
INSERT INTO reports.schedule (name, scope, report, kind, rule) VALUES ('every', 'tap', 'nothing', 'interval', '15 minutes');
SELECT ok(anchor BETWEEN now() - interval '1 min' AND clock_timestamp(), 'an interval counts from its creation unless told otherwise') FROM reports.schedule WHERE name = 'every';
SELECT is(extract(microsecond FROM anchor) % 1000000, 0::numeric, 'the anchor is a whole second') FROM reports.schedule WHERE name = 'every';
INSERT INTO reports.schedule (name, scope, report, kind, rule, anchor) VALUES ('every2', 'tap', 'nothing', 'interval', '15 minutes', '2030-01-01 00:00:00.5+00');
SELECT is(anchor, '2030-01-01 00:00:00.5+00', 'an anchor that is given stays') FROM reports.schedule WHERE name = 'every2';

-- Edits that would come back to used keys.
CREATE FUNCTION pg_temp.used(p_schedule text, p_form text, p_nominal timestamp, p_key text) RETURNS void LANGUAGE sql AS $$
    INSERT INTO reports.schedule_progress (schedule, scope, version, switched_at, key_form, last_nominal)
    VALUES (p_schedule, 'tap', 1, now(), p_form, p_nominal);
    INSERT INTO reports.occurrence (schedule, occurrence_key, scope, job_id, scheduled_for, cause, version, incarnation, generation)
    VALUES (p_schedule, p_key, 'tap', gen_random_uuid(), now(), 'schedule', 1, 1, 100)
$$;
SELECT is(pg_temp.with('paused', 'true'), 'not refused', 'a schedule may begin paused');
INSERT INTO reports.schedule (name, scope, report, kind, rule) VALUES ('one', 'tap', 'nothing', 'once', '2030-04-12T06:00');
SELECT pg_temp.used('one', 'date', '2030-04-12 06:00', '2030-04-12');
SELECT is(pg_temp.refusal(format('UPDATE reports.schedule SET rule = %L, time_zone = %L WHERE name = ''one''', t.rule, t.zone)),
          CASE t.used WHEN 'no' THEN 'not refused'
                      ELSE '23505 schedule "one": it has fired for 2030-04-12 already, and each date fires once (Insert a new schedule for the new time.)' END,
          format('once moved to %s in %s', t.rule, t.zone))
  FROM (VALUES ('2030-04-12T18:00', 'UTC', 'yes'), ('2030-04-13T06:00', 'UTC', 'no'), ('2030-04-11T20:00Z', 'Asia/Tokyo', 'yes'),
               ('2030-04-12T20:00Z', 'Asia/Tokyo', 'no')) AS t (rule, zone, used);
SELECT is(pg_temp.refusal($$UPDATE reports.schedule SET priority = 3 WHERE name = 'one'$$), 'not refused', 'what leaves the time alone is no move');
INSERT INTO reports.schedule (name, scope, report, kind, rule, time_zone)
SELECT n, 'tap', 'nothing', 'cron', CASE n WHEN 'dated' THEN '0 6 * * *' ELSE '0 * * * *' END, 'Asia/Tokyo' FROM unnest('{minutes,dated}'::text[]) n;
SELECT pg_temp.used('minutes', 'minute', t, to_char(t, 'YYYY-MM-DD"T"HH24:MI')), pg_temp.used('dated', 'date', t, to_char(t, 'YYYY-MM-DD'))
  FROM date_trunc('hour', now() AT TIME ZONE 'Asia/Tokyo') t;
SELECT matches(pg_temp.refusal($$UPDATE reports.schedule SET time_zone = 'America/New_York' WHERE name = 'minutes'$$),
               '^23505 schedule "minutes": in America/New_York it is [0-9T:-]{16} now, and it has fired for local times up to [0-9T:-]{16} already [(]Insert a new schedule for the new zone and delete this one.[)]$',
               'the same minutes west of here are refused with the way out');
SELECT is(pg_temp.refusal(format('UPDATE reports.schedule SET %s WHERE name = ''minutes''', e)), 'not refused', format('not certain, so not refused: %s', e))
  FROM unnest(ARRAY['time_zone = ''Pacific/Auckland''', 'time_zone = ''America/New_York'', rule = ''30 * * * *''', 'time_zone = ''America/New_York'', paused = true',
                    'time_zone = ''America/New_York'', ends_at = now()', 'time_zone = ''America/New_York'', starts_at = now() + interval ''2 days''']) e;
SELECT is(pg_temp.refusal($$UPDATE reports.schedule SET time_zone = 'America/New_York' WHERE name = 'dated'$$), 'not refused', 'dates go on with the first that is free');

-- Calendars.
INSERT INTO reports.calendar (name) VALUES ('de');
INSERT INTO reports.calendar_day (calendar, day) VALUES ('de', '2030-12-25');
SELECT matches(pg_temp.refusal(format('INSERT INTO reports.calendar (name, weekend_days) VALUES (''c'', %L)', d)), '^23514 calendar "c": weekend_days cannot be .* \(Write at most six ', format('weekend %s is refused', d))
  FROM unnest(ARRAY['{0}', '{8}', '{NULL}', '{1,2,3,4,5,6,7}']) d;
SELECT matches(pg_temp.refusal($$INSERT INTO reports.calendar_day (calendar, day, kind) VALUES ('de', '2030-12-25', 'working')$$), '^23505 ', 'a day is said once');
SELECT matches(pg_temp.refusal($$INSERT INTO reports.calendar_day (calendar, day) VALUES ('fr', '2030-12-25')$$), '^23503 ', 'a day needs its calendar');
DELETE FROM reports.calendar WHERE name = 'de';
SELECT is_empty($$SELECT FROM reports.calendar_day WHERE calendar = 'de'$$, 'a calendar takes its days with it');

-- Scopes outlive everything.
SELECT is(pg_temp.refusal($$DELETE FROM reports.scope WHERE name = 'main'$$),
          '55006 scope "main" cannot be deleted or renamed: its fence must outlive every leader (Delete its schedules instead; an empty scope costs nothing.)',
          'a scope cannot be deleted');
SELECT is(pg_temp.refusal($$UPDATE reports.scope SET name = 'minor' WHERE name = 'main'$$),
          '55006 scope "main" cannot be deleted or renamed: its fence must outlive every leader (Delete its schedules instead; an empty scope costs nothing.)',
          'a scope cannot be renamed');
SELECT is(pg_temp.refusal($$TRUNCATE reports.scope CASCADE$$),
          '55006 scopes cannot be deleted: their fences must outlive every leader (Delete their schedules instead; an empty scope costs nothing.)',
          'scopes cannot be truncated');
SELECT is(pg_temp.refusal($$UPDATE reports.scope SET description = 'x' WHERE name = 'main'$$), 'not refused', 'a scope can be described');

-- Installation.
SELECT is((SELECT count(*) FROM reports.installation), 1::bigint, 'there is one installation');
SELECT matches(pg_temp.refusal('INSERT INTO reports.installation DEFAULT VALUES'), '^23505 ', 'there is never a second installation');
SELECT matches(pg_temp.refusal('INSERT INTO reports.installation (only_row) VALUES (false)'), '^23514 ', 'not even under another key');
SELECT matches(pg_temp.refusal($$UPDATE reports.installation SET claim_lease = '1 s'$$), '^23514 ', 'a lease too short to renew is refused');
SELECT matches(pg_temp.refusal($$UPDATE reports.installation SET reap_grace = '0'$$), '^23514 ', 'no grace at all is refused');

SELECT * FROM finish();
ROLLBACK;
