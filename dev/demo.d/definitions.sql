-- The demo's reports and schedules: about fifty schedules over cron in three zones, intervals and
-- one firing; sql to csv, sql to json, programs.

INSERT INTO reports.report (name, description, kind, data_source, query, format, parameters) VALUES
    ('packages-by-section', 'How many packages each section holds', 'sql', 'warehouse',
     $$SELECT :'business_date'::date AS business_date, section, count(*) AS packages,
              sum(installed_size_kb) AS installed_kb
         FROM package GROUP BY section ORDER BY packages DESC, section$$, 'csv', '{}'),
    ('section-list', 'The packages of one section', 'sql', 'warehouse',
     $$SELECT name, version, installed_size_kb, maintainer, description
         FROM package WHERE section = :'section' ORDER BY name$$, 'csv', '{"section": "admin"}'),
    ('biggest', 'The biggest packages of one section', 'sql', 'warehouse',
     $$SELECT name, version, size_bytes, homepage
         FROM package WHERE section = :'section' ORDER BY size_bytes DESC, name LIMIT 100$$, 'json', '{"section": "libs"}'),
    ('maintainers', 'Who maintains how much', 'sql', 'warehouse',
     $$SELECT maintainer, count(*) AS packages FROM package
        GROUP BY maintainer ORDER BY packages DESC, maintainer LIMIT 500$$, 'json', '{}');

INSERT INTO reports.report (name, description, kind, program, format, parameters) VALUES
    ('host-facts', 'A child process: its standard output is the artifact', 'program', 'host-facts', 'txt', '{}'),
    ('context-echo', 'A child process that returns the JSON context it was given', 'program', 'context-echo', 'json', '{"note": "from the demo"}');

-- Fifteen sections every few seconds: an interval counts elapsed time from its anchor.
INSERT INTO reports.schedule (name, report, kind, rule, anchor, parameters)
SELECT 'section-' || replace(s.section, '/', '-'), 'section-list', 'interval', s.every,
       date_trunc('minute', clock_timestamp()), jsonb_build_object('section', s.section)
  FROM unnest(ARRAY['admin','net','utils','devel','libs','doc','python','perl','web','mail','editors','games','sound','math','science'],
              ARRAY['2 seconds','3 seconds','4 seconds','5 seconds','6 seconds','2 seconds','3 seconds','4 seconds','5 seconds','6 seconds','7 seconds','8 seconds','9 seconds','10 seconds','15 seconds'])
       AS s (section, every);

INSERT INTO reports.schedule (name, report, kind, rule, anchor, parameters)
SELECT 'biggest-' || s, 'biggest', 'interval', '5 seconds', date_trunc('minute', clock_timestamp()),
       jsonb_build_object('section', s)
  FROM unnest(ARRAY['libs','libdevel','kernel','fonts','x11','gnome','kde','java','ruby','rust']) AS s;

INSERT INTO reports.schedule (name, report, kind, rule, anchor) VALUES
    ('totals', 'packages-by-section', 'interval', '3 seconds', date_trunc('minute', clock_timestamp())),
    ('maintainers', 'maintainers', 'interval', '10 seconds', date_trunc('minute', clock_timestamp())),
    ('host-facts', 'host-facts', 'interval', '4 seconds', date_trunc('minute', clock_timestamp())),
    ('context-echo', 'context-echo', 'interval', '6 seconds', date_trunc('minute', clock_timestamp()));

-- Cron in three zones: some fire each minute, most are what people really write.
INSERT INTO reports.schedule (name, report, kind, rule, time_zone)
SELECT 'minute-' || z.short, 'packages-by-section', 'cron', '* * * * *', z.zone
  FROM (VALUES ('berlin', 'Europe/Berlin'), ('new-york', 'America/New_York'), ('tokyo', 'Asia/Tokyo')) AS z (short, zone);

INSERT INTO reports.schedule (name, report, kind, rule, time_zone, description)
SELECT c.short || '-' || z.short, c.report, 'cron', c.rule, z.zone, c.description
  FROM (VALUES ('berlin', 'Europe/Berlin'), ('new-york', 'America/New_York'), ('tokyo', 'Asia/Tokyo')) AS z (short, zone),
       (VALUES ('daily', 'packages-by-section', '30 6 * * *', 'each day at 06:30'),
               ('weekdays', 'maintainers', '0 7 * * 1-5', 'Monday to Friday at 07:00'),
               ('monthly', 'packages-by-section', '0 5 1 * *', 'the first of each month'),
               ('half-hourly', 'maintainers', '*/30 * * * *', 'each half hour'),
               ('gap', 'packages-by-section', '30 2 * * *', 'a time that a clock change skips or repeats')) AS c (short, report, rule, description);

INSERT INTO reports.schedule (name, report, kind, rule, time_zone) VALUES
    ('every-second-minute', 'biggest', 'cron', '*/2 * * * *', 'UTC'),
    ('once-soon', 'packages-by-section', 'once',
     to_char((clock_timestamp() + interval '15 seconds') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS'), 'UTC'),
    ('once-later', 'packages-by-section', 'once', '2035-01-01T09:00', 'Europe/Berlin');
