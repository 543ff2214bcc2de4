-- Who may read and write what. Daemons write protected tables through functions only ("A protected
-- write" in docs/architecture.md); authors write definitions; readers read. tests/pgtap/privileges.sql
-- tries out all of it, and refuses a table, column, view, function or type without a comment.

SET ROLE report_owner;

GRANT SELECT ON ALL TABLES IN SCHEMA reports TO report_scheduler, report_worker, report_reader;
GRANT INSERT, UPDATE, DELETE ON reports.report, reports.schedule, reports.queue, reports.calendar, reports.calendar_day,
    reports.calendar_weekend, reports.calendar_part
    TO report_author;
GRANT INSERT, UPDATE, DELETE ON reports.scope TO report_author;
-- Tables and views of later migrations: people read them. What a daemon reads outside a function is
-- granted by the migration that makes it.
ALTER DEFAULT PRIVILEGES FOR ROLE report_owner IN SCHEMA reports GRANT SELECT ON TABLES TO report_reader;

RESET ROLE;
