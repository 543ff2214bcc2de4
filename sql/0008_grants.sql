-- Who may read and write what. Daemons write protected tables through functions only (DESIGN
-- section 6); authors write definitions; readers read.

SET ROLE report_owner;

GRANT SELECT ON ALL TABLES IN SCHEMA reports TO report_scheduler, report_worker, report_reader;
GRANT INSERT, UPDATE, DELETE ON reports.report, reports.schedule, reports.queue, reports.calendar, reports.calendar_day
    TO report_author;
GRANT INSERT, UPDATE, DELETE ON reports.scope TO report_author;

RESET ROLE;

-- Every table and column says what it is for; a migration that forgets one is refused here.
DO $$
DECLARE
    missing text;
BEGIN
    SELECT string_agg(format('%s.%s', c.relname, coalesce(a.attname, '(table)')), ', ') INTO missing
      FROM pg_class c
      LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
     WHERE c.relnamespace = 'reports'::regnamespace AND c.relkind = 'r' AND c.relname <> 'migration'
       AND (col_description(c.oid, a.attnum) IS NULL OR obj_description(c.oid, 'pg_class') IS NULL);
    IF missing IS NOT NULL THEN
        RAISE EXCEPTION 'no comment on %', missing;
    END IF;
END
$$;
