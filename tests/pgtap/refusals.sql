-- Every CHECK of the tables that people write, and every domain, says what is wrong with the row and what to
-- write instead. A constraint that has no statement here fails the test: give it one, and a hint.
BEGIN;
\ir fixture.psql
SELECT no_plan();

CREATE TEMP TABLE violation (name text NOT NULL, statement text NOT NULL);
-- An author's row that is right but for some columns.
CREATE FUNCTION pg_temp.schedule(p_constraint text, p_columns text, p_values text) RETURNS void LANGUAGE sql AS $$
    INSERT INTO violation VALUES (p_constraint, format('INSERT INTO reports.schedule (name, scope, report, %s) VALUES (''s'', ''tap'', ''nothing'', %s)', p_columns, p_values))
$$;
SELECT pg_temp.schedule(format('schedule_%s_check', col), format('kind, rule, %I', col), format('''cron'', ''0 6 * * *'', %L', value))
  FROM (VALUES ('dst_gap', 'first'), ('dst_overlap', 'skip'), ('dialect', 'vixie'), ('jitter_s', '3601'), ('effective_from', 'infinity'), ('misfire', 'never'), ('misfire_max', '0'), ('misfire_age', '1 s'), ('misfire_age', '20000 days'), ('misfire_grace', '0'), ('overlap', 'skip'),
               ('priority', '1001'), ('breaker_failures', '0'), ('breaker_probe', '8 days'), ('max_attempts', '0'), ('retry_base', '-1 s'), ('retry_cap', '8 days'), ('timeout', '-1 s'), ('timeout', '00:00:00.5')) AS t (col, value);
SELECT pg_temp.schedule('schedule_kind_check', 'kind, rule', '''weekly'', ''monday'''),
       pg_temp.schedule('schedule_rule_check', 'kind, rule', '''cron'', ''0 6 * * 1'' || repeat('',1'', 300)'),
       -- A zone longer than any, and parameters that are no object: triggers say it before.
       pg_temp.schedule('schedule_time_zone_check', 'kind, rule, time_zone', '''cron'', ''@daily'', ''A'' || repeat(''B'', 70) || ''3'''),
       pg_temp.schedule('schedule_parameters_check', 'kind, rule, parameters', '''cron'', ''@daily'', ''[]'''),
       pg_temp.schedule('schedule_paused_until_check', 'kind, rule, paused, paused_until', '''cron'', ''@daily'', true, ''infinity'''),
       pg_temp.schedule('paused_until_needs_paused', 'kind, rule, paused_until', '''cron'', ''@daily'', ''2199-01-01'''),
       pg_temp.schedule('starts_before_end', 'kind, rule, starts_at, ends_at', '''cron'', ''@daily'', ''2030-01-02'', ''2030-01-01'''),
       pg_temp.schedule('misfire_age_covers_grace', 'kind, rule, misfire_age, misfire_grace', '''cron'', ''@daily'', ''5 min'', ''10 min''');
INSERT INTO reports.calendar (name) VALUES ('fixed');
INSERT INTO violation VALUES
    ('report_kind_check', $$INSERT INTO reports.report (name, kind) VALUES ('r', 'magic')$$),
    ('report_query_check', $$INSERT INTO reports.report (name, kind, data_source, query) VALUES ('r', 'sql', 'w', repeat('x', 262145))$$),
    ('report_format_check', $$INSERT INTO reports.report (name, kind, format) VALUES ('r', 'noop', '../x')$$),
    ('report_parameters_check', $$INSERT INTO reports.report (name, kind, parameters) VALUES ('r', 'noop', '1')$$),
    ('sql_needs_query', $$INSERT INTO reports.report (name, kind) VALUES ('r', 'sql')$$),
    ('sql_needs_query', $$INSERT INTO reports.report (name, kind, data_source) VALUES ('r', 'sql', 'w')$$),
    ('program_needs_program', $$INSERT INTO reports.report (name, kind) VALUES ('r', 'program')$$),
    ('delivery_is_not_supported_yet', $$INSERT INTO reports.report (name, kind, deliver) VALUES ('r', 'noop', '[{"channel": "mail"}]')$$),
    ('scope_catch_up_max_check', $$UPDATE reports.scope SET catch_up_max = 0$$),
    ('scope_catch_up_per_minute_check', $$UPDATE reports.scope SET catch_up_per_minute = 0$$),
    ('scope_catch_up_order_check', $$UPDATE reports.scope SET catch_up_order = 'random'$$),
    ('queue_catch_up_per_minute_check', $$UPDATE reports.queue SET catch_up_per_minute = 0$$),
    ('queue_catch_up_order_check', $$UPDATE reports.queue SET catch_up_order = 'random'$$),
    ('queue_max_outstanding_check', $$UPDATE reports.queue SET max_outstanding = 0$$),
    ('calendar_weekend_days_check', $$INSERT INTO reports.calendar (name, weekend_days) VALUES ('c', '{0}')$$),
    ('calendar_description_check', $$INSERT INTO reports.calendar (name, description) VALUES ('c', repeat('x', 512))$$),
    ('calendar_source_check', $$INSERT INTO reports.calendar (name, source) VALUES ('c', repeat('x', 1024))$$),
    ('calendar_valid_from_check', $$INSERT INTO reports.calendar (name, valid_from) VALUES ('c', '-infinity')$$),
    ('calendar_valid_through_check', $$INSERT INTO reports.calendar (name, valid_through) VALUES ('c', '2300-01-01')$$),
    ('schedule_nonbusiness_check', $$INSERT INTO reports.schedule (name, scope, report, kind, rule, calendar, nonbusiness) VALUES ('s', 'tap', 'nothing', 'cron', '@daily', 'fixed', 'later')$$),
    ('schedule_business_day_offset_check', $$INSERT INTO reports.schedule (name, scope, report, kind, rule, calendar, business_day_offset) VALUES ('s', 'tap', 'nothing', 'cron', '@daily', 'fixed', 367)$$),
    ('schedule_roll_collision_check', $$INSERT INTO reports.schedule (name, scope, report, kind, rule, calendar, roll_collision) VALUES ('s', 'tap', 'nothing', 'cron', '@daily', 'fixed', 'all')$$),
    ('calendar_beyond_check', $$INSERT INTO reports.calendar (name, beyond) VALUES ('c', 'guess')$$),
    ('calendar_combine_check', $$INSERT INTO reports.calendar (name, combine) VALUES ('c', 'sum')$$),
    ('combination_has_validity_of_parts', $$INSERT INTO reports.calendar (name, combine, valid_through) VALUES ('c', 'union', '2030-12-31')$$),
    ('calendar_is_valid_some_time', $$INSERT INTO reports.calendar (name, valid_from, valid_through) VALUES ('c', '2031-01-01', '2030-12-31')$$),
    ('calendar_weekend_from_date_check', $$INSERT INTO reports.calendar_weekend VALUES ('fixed', '1899-12-31', '{7}')$$),
    ('calendar_weekend_weekend_days_check', $$INSERT INTO reports.calendar_weekend VALUES ('fixed', '2030-01-01', '{1,2,3,4,5,6,7}')$$),
    ('calendar_day_day_check', $$INSERT INTO reports.calendar_day (calendar, day) VALUES ('fixed', 'infinity')$$),
    ('calendar_day_kind_check', $$INSERT INTO reports.calendar_day (calendar, day, kind) VALUES ('fixed', '2030-01-01', 'half')$$),
    ('calendar_day_description_check', $$INSERT INTO reports.calendar_day (calendar, day, description) VALUES ('fixed', '2030-01-01', repeat('x', 512))$$),
    ('calendar_day_source_check', $$INSERT INTO reports.calendar_day (calendar, day, source) VALUES ('fixed', '2030-01-01', repeat('x', 512))$$),
    ('fiscal_period_label_check', $$INSERT INTO reports.fiscal_period VALUES ('f', 'P 1', '2030-01-01', '2030-01-31')$$),
    ('fiscal_period_first_day_check', $$INSERT INTO reports.fiscal_period VALUES ('f', 'P1', '1899-12-31', '1900-01-31')$$),
    ('fiscal_period_last_day_check', $$INSERT INTO reports.fiscal_period VALUES ('f', 'P1', '2299-12-31', '2300-01-01')$$),
    ('fiscal_period_has_days', $$INSERT INTO reports.fiscal_period VALUES ('f', 'P1', '2030-01-02', '2030-01-01')$$),
    ('installation_only_row_check', $$INSERT INTO reports.installation (only_row) VALUES (false)$$),
    ('installation_claim_lease_check', $$UPDATE reports.installation SET claim_lease = '1 s'$$),
    ('installation_reap_grace_check', $$UPDATE reports.installation SET reap_grace = '0'$$);
INSERT INTO violation SELECT 'name_shape', format('INSERT INTO reports.queue (name) VALUES (%L)', n) FROM unnest(ARRAY['', 'Sales Daily', 'größe', 'a:b', '-', repeat('a', 64)]) n;
INSERT INTO violation SELECT 'occurrence_key_shape', $$SELECT 'a b'::reports.occurrence_key$$;
INSERT INTO violation SELECT format('installation_%s_check', attname), format('UPDATE reports.installation SET %I = %L', attname, v)
  FROM pg_attribute, unnest('{3 minutes,2000 years}'::text[]) v WHERE attrelid = 'reports.installation'::regclass AND attname LIKE 'keep\_%' AND NOT attisdropped;

SELECT set_eq($$SELECT conname::text FROM pg_constraint c WHERE contype = 'c' AND connamespace = 'reports'::regnamespace
                   AND (contypid <> 0 OR conrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'reports'::regnamespace
                                                        AND relname IN ('installation', 'scope', 'queue', 'calendar', 'calendar_day', 'calendar_weekend', 'calendar_part', 'fiscal_period', 'report', 'schedule')))$$,
              'SELECT name FROM violation', 'every CHECK that people can meet is tried here');
SELECT matches(pg_temp.refusal(statement), '^(23514|22023) (schedule|report|scope|queue|(fiscal )?calendar|an? |installation|name |occurrence key ).* \(.+\)$', format('%s: %s', name, left(statement, 150)))
  FROM violation ORDER BY name, statement;
-- The same, said by the constraint itself, where a trigger speaks first.
SET LOCAL session_replication_role = replica;
SELECT matches(pg_temp.refusal(statement), '^23514 .* \(.+\)$', format('%s itself: %s', name, left(statement, 150))) FROM violation ORDER BY name, statement;
SET LOCAL session_replication_role = origin;
SELECT doesnt_match(pg_temp.refusal(statement), 'violates', format('%s is not called by its name', name)) FROM violation;

-- Whoever may write the row reads the hint.
SELECT is(pg_temp.refusal('SET LOCAL ROLE report_author; ' || statement), said, said)
  FROM (VALUES ($$INSERT INTO reports.queue (name) VALUES ('Sales Daily')$$, '23514 name ''Sales Daily'' cannot be one (A name is 1 to 63 of a-z, 0-9, _ . - and begins with a letter or digit: write ''sales-daily''.)'),
               ($$INSERT INTO reports.queue (name) VALUES ('?')$$, '23514 name ''?'' cannot be one (A name is 1 to 63 of a-z, 0-9, _ . - and begins with a letter or digit.)'),
               ($$INSERT INTO reports.report (name, kind) VALUES ('r', 'sql')$$, '23514 report "r": kind ''sql'' needs a data_source and a query (Write data_source (a name that worker.conf knows) and query (one SELECT).)'),
               ($$INSERT INTO reports.schedule (name, scope, report, kind, rule, timeout) VALUES ('s', 'tap', 'nothing', 'cron', '@daily', '-1 s')$$, '23514 schedule "s": timeout cannot be ''-00:00:01'' (Write an interval from 1 second to 7 days.)')) AS t (statement, said);
SELECT is(pg_temp.refusal(format('UPDATE reports.installation SET %I = NULL', attname)), 'not refused', format('%s may be for ever', attname))
  FROM pg_attribute WHERE attrelid = 'reports.installation'::regclass AND attname LIKE 'keep\_%';
SELECT is(pg_temp.refusal('UPDATE reports.queue SET max_outstanding = NULL'), 'not refused', 'a queue may have no bound');
SELECT is(pg_temp.refusal('UPDATE reports.scope SET catch_up_max = NULL'), 'not refused', 'a scope may have no budget');
SELECT is(pg_temp.refusal($$INSERT INTO reports.schedule (name, scope, report, kind, rule, misfire) VALUES ('s', 'tap', 'nothing', 'cron', '@daily', NULL)$$), 'not refused', 'misfire may be the default');

SELECT * FROM finish();
ROLLBACK;
