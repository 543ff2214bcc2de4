-- Business calendars: what their tables refuse, how a change is told, how files are imported ("Calendars" in
-- docs/calendars.md). What a day is, is decided in C (common/calendar/calendar.h); SQL keeps the rows consistent.
--
-- A change of a calendar, of its rows or of a part gives it, and every combination it is in, a new version in the same
-- transaction, and NOTIFY report_calendar with its name. Versions are microseconds of the clock, at least one more than
-- before, so that a calendar that was deleted and made again does not look like the old one.

SET ROLE report_owner;

-- The calendars and all combinations that they are in, directly or by way of others.
CREATE FUNCTION reports.calendar_users(p_calendars text[]) RETURNS SETOF text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE used (name) AS (
        SELECT unnest(p_calendars)
        UNION
        SELECT p.calendar::text FROM used u JOIN reports.calendar_part p ON p.part = u.name
    )
    SELECT u.name FROM used u
$$;
COMMENT ON FUNCTION reports.calendar_users(text[]) IS 'The calendars and all combinations that they are in.';

CREATE FUNCTION reports.calendar_touch(p_calendars text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- In one order, so that two editors wait for each other and do not deadlock.
    PERFORM FROM reports.calendar c WHERE c.name IN (SELECT reports.calendar_users(p_calendars)) ORDER BY c.name FOR NO KEY UPDATE;
    UPDATE reports.calendar c SET updated_at = clock_timestamp() WHERE c.name IN (SELECT reports.calendar_users(p_calendars));
END
$$;
COMMENT ON FUNCTION reports.calendar_touch(text[]) IS 'Gives calendars, and the combinations they are in, a new version.';

CREATE FUNCTION reports.check_calendar() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.name <> OLD.name THEN
        RAISE EXCEPTION 'calendar "%": its name never changes', OLD.name
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Insert a new calendar under another name, let the schedules use it, and delete this one.';
    END IF;
    IF NEW.combine IS NULL AND TG_OP = 'UPDATE' AND EXISTS (SELECT FROM reports.calendar_part p WHERE p.calendar = NEW.name) THEN
        RAISE EXCEPTION 'calendar "%": it has parts, so combine cannot be NULL', NEW.name
            USING ERRCODE = 'check_violation', HINT = 'Delete its rows of reports.calendar_part first.';
    END IF;
    IF NEW.combine IS NOT NULL AND TG_OP = 'UPDATE' AND EXISTS (SELECT FROM reports.calendar_weekend w WHERE w.calendar = NEW.name) THEN
        RAISE EXCEPTION 'calendar "%": its weekend changes, and a combination has the weekends of its parts', NEW.name
            USING ERRCODE = 'check_violation', HINT = 'Delete its rows of reports.calendar_weekend first.';
    END IF;
    NEW.updated_at := clock_timestamp();
    NEW.version := greatest(CASE WHEN TG_OP = 'UPDATE' THEN OLD.version + 1 ELSE 1 END,
                            (extract(epoch FROM NEW.updated_at) * 1000000)::bigint);
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION reports.check_calendar() IS 'Trigger on calendar: keeps the name, counts the version.';
CREATE TRIGGER check_calendar BEFORE INSERT OR UPDATE ON reports.calendar
    FOR EACH ROW EXECUTE FUNCTION reports.check_calendar();

CREATE FUNCTION reports.keep_used_calendar() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    users text;
BEGIN
    SELECT string_agg(u.text, ', ' ORDER BY u.text) INTO users
      FROM ((SELECT format('schedule "%s"', s.name) AS text FROM reports.schedule s WHERE s.calendar = OLD.name ORDER BY s.name LIMIT 3)
            UNION ALL
            (SELECT format('calendar "%s"', p.calendar) FROM reports.calendar_part p WHERE p.part = OLD.name AND p.calendar <> OLD.name
              ORDER BY p.calendar LIMIT 3)) u;
    IF users IS NOT NULL THEN
        RAISE EXCEPTION 'calendar "%" is in use by %', OLD.name, users
            USING ERRCODE = 'foreign_key_violation', HINT = 'Give them another calendar first; reportctl calendar check shows who uses it.';
    END IF;
    RETURN OLD;
END
$$;
COMMENT ON FUNCTION reports.keep_used_calendar() IS 'Trigger on calendar: refuses to delete what is in use, names who uses it.';
CREATE TRIGGER keep_used BEFORE DELETE ON reports.calendar
    FOR EACH ROW EXECUTE FUNCTION reports.keep_used_calendar();

-- Only columns that people set: what calendar_touch writes has told everybody already.
CREATE FUNCTION reports.calendar_changed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM reports.calendar_part p WHERE p.part = NEW.name) THEN
        PERFORM reports.calendar_touch(ARRAY(SELECT p.calendar::text FROM reports.calendar_part p WHERE p.part = NEW.name));
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION reports.calendar_changed() IS 'Trigger on calendar: gives the combinations it is in a new version.';
CREATE TRIGGER calendar_changed AFTER INSERT OR UPDATE OF weekend_days, valid_from, valid_through, beyond, combine ON reports.calendar
    FOR EACH ROW EXECUTE FUNCTION reports.calendar_changed();

CREATE FUNCTION reports.tell_calendar() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_notify('report_calendar', CASE WHEN TG_OP = 'DELETE' THEN OLD.name ELSE NEW.name END);
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION reports.tell_calendar() IS 'Trigger on calendar: tells leaders that its version is new.';
CREATE TRIGGER tell_calendar AFTER INSERT OR UPDATE OR DELETE ON reports.calendar
    FOR EACH ROW EXECUTE FUNCTION reports.tell_calendar();

-- Names are judged before the foreign keys, to say which row is meant and the way out.
CREATE FUNCTION reports.check_calendar_row() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM reports.calendar c WHERE c.name = NEW.calendar) THEN
        RAISE EXCEPTION '%: calendar "%" does not exist', TG_TABLE_NAME, NEW.calendar
            USING ERRCODE = 'foreign_key_violation', HINT = 'Insert it into reports.calendar first, or correct the name.';
    END IF;
    IF TG_TABLE_NAME = 'calendar_day' THEN
        NEW.recorded_at := clock_timestamp();
        NEW.recorded_by := session_user;
    ELSIF EXISTS (SELECT FROM reports.calendar c WHERE c.name = NEW.calendar AND c.combine IS NOT NULL) THEN
        RAISE EXCEPTION 'calendar "%": a combination has the weekends of its parts', NEW.calendar
            USING ERRCODE = 'check_violation', HINT = 'Insert the row for the part that it is about.';
    END IF;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION reports.check_calendar_row() IS 'Trigger on the rows of a calendar: refuses a calendar that is not there, notes who wrote a day.';
CREATE TRIGGER check_calendar_row BEFORE INSERT OR UPDATE ON reports.calendar_day
    FOR EACH ROW EXECUTE FUNCTION reports.check_calendar_row();
CREATE TRIGGER check_calendar_row BEFORE INSERT OR UPDATE OF calendar ON reports.calendar_weekend
    FOR EACH ROW EXECUTE FUNCTION reports.check_calendar_row();

-- Two editors who each add one half of a circle must not miss each other: one at a time, and the second sees
-- the first's rows.
CREATE FUNCTION reports.check_calendar_part() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    how text;
    deepest integer;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('reports.calendar_part', 0));
    SELECT coalesce(c.combine, '') INTO how FROM reports.calendar c WHERE c.name = NEW.calendar;
    IF NOT FOUND OR NOT EXISTS (SELECT FROM reports.calendar c WHERE c.name = NEW.part) THEN
        RAISE EXCEPTION 'calendar_part: calendar "%" does not exist', CASE WHEN how IS NULL THEN NEW.calendar ELSE NEW.part END
            USING ERRCODE = 'foreign_key_violation', HINT = 'Insert it into reports.calendar first, or correct the name.';
    END IF;
    IF how = '' THEN
        RAISE EXCEPTION 'calendar "%": only a combination has parts', NEW.calendar
            USING ERRCODE = 'check_violation', HINT = format('UPDATE reports.calendar SET combine = ''union'' WHERE name = %L; or ''intersection''.', NEW.calendar);
    END IF;
    IF NEW.part IN (SELECT reports.calendar_users(ARRAY[NEW.calendar])) THEN
        RAISE EXCEPTION 'calendar "%": with part "%" it would be a part of itself', NEW.calendar, NEW.part
            USING ERRCODE = 'check_violation', HINT = 'Combine calendars that are not made of this one.';
    END IF;
    IF (SELECT count(*) FROM reports.calendar_part p WHERE p.calendar = NEW.calendar AND p.part <> NEW.part) >= 16 THEN
        RAISE EXCEPTION 'calendar "%": it has 16 parts already', NEW.calendar
            USING ERRCODE = 'check_violation', HINT = 'Combine some of them into one, and that with the others.';
    END IF;
    WITH RECURSIVE below (name, depth) AS (
        SELECT NEW.part::text, 1
        UNION ALL
        SELECT p.part::text, b.depth + 1 FROM below b JOIN reports.calendar_part p ON p.calendar = b.name WHERE b.depth < 10
    ), above (name, depth) AS (
        SELECT NEW.calendar::text, 1
        UNION ALL
        SELECT p.calendar::text, a.depth + 1 FROM above a JOIN reports.calendar_part p ON p.part = a.name WHERE a.depth < 10
    )
    SELECT (SELECT max(b.depth) FROM below b) + (SELECT max(a.depth) FROM above a) INTO deepest;
    IF deepest > 5 THEN
        RAISE EXCEPTION 'calendar "%": with part "%" combinations would lie more than 5 deep', NEW.calendar, NEW.part
            USING ERRCODE = 'check_violation', HINT = 'Combine the calendars at the bottom directly.';
    END IF;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION reports.check_calendar_part() IS 'Trigger on calendar_part: refuses circles, names that are not there and more than can be combined.';
CREATE TRIGGER check_calendar_part BEFORE INSERT OR UPDATE ON reports.calendar_part
    FOR EACH ROW EXECUTE FUNCTION reports.check_calendar_part();

-- A statement that imports thousands of days makes one new version.
CREATE FUNCTION reports.calendar_rows_changed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    its_names text[];
    full_one text;
BEGIN
    IF TG_OP = 'INSERT' THEN
        SELECT array_agg(DISTINCT n.calendar::text) INTO its_names FROM new_rows n;
    ELSIF TG_OP = 'DELETE' THEN
        SELECT array_agg(DISTINCT o.calendar::text) INTO its_names FROM old_rows o;
    ELSE
        SELECT array_agg(DISTINCT u.calendar::text) INTO its_names
          FROM (SELECT n.calendar FROM new_rows n UNION SELECT o.calendar FROM old_rows o) u;
    END IF;
    IF its_names IS NULL THEN
        RETURN NULL;
    END IF;
    IF TG_TABLE_NAME = 'calendar_day' AND TG_OP <> 'DELETE' THEN
        SELECT d.calendar INTO full_one FROM reports.calendar_day d WHERE d.calendar = ANY (its_names)
         GROUP BY d.calendar HAVING count(*) > 20000 LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'calendar "%": more than 20000 days', full_one
                USING ERRCODE = 'check_violation', HINT = 'Leave out years long gone.';
        END IF;
    END IF;
    IF TG_TABLE_NAME = 'calendar_weekend' AND TG_OP <> 'DELETE' THEN
        SELECT w.calendar INTO full_one FROM reports.calendar_weekend w WHERE w.calendar = ANY (its_names)
         GROUP BY w.calendar HAVING count(*) > 31 LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'calendar "%": its weekend changes more than 31 times', full_one
                USING ERRCODE = 'check_violation', HINT = 'Leave out changes long gone.';
        END IF;
    END IF;
    PERFORM reports.calendar_touch(its_names);
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION reports.calendar_rows_changed() IS 'Trigger on the rows of calendars: gives these a new version, refuses more rows than a calendar may have.';
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY '{calendar_day,calendar_weekend,calendar_part}'::text[] LOOP
        EXECUTE format('CREATE TRIGGER calendar_rows_added AFTER INSERT ON reports.%I REFERENCING NEW TABLE AS new_rows'
                       ' FOR EACH STATEMENT EXECUTE FUNCTION reports.calendar_rows_changed()', t);
        EXECUTE format('CREATE TRIGGER calendar_rows_changed AFTER UPDATE ON reports.%I REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows'
                       ' FOR EACH STATEMENT EXECUTE FUNCTION reports.calendar_rows_changed()', t);
        EXECUTE format('CREATE TRIGGER calendar_rows_deleted AFTER DELETE ON reports.%I REFERENCING OLD TABLE AS old_rows'
                       ' FOR EACH STATEMENT EXECUTE FUNCTION reports.calendar_rows_changed()', t);
    END LOOP;
END
$$;

-- One file into one calendar, in one statement. Not SECURITY DEFINER: it writes what its caller may write.
--
-- Imported days replace imported days; what somebody entered by hand (override) stays. Counts are of days; `changed`
-- are those whose kind or description is new.
CREATE FUNCTION reports.calendar_import(p_calendar text, p_description text, p_source text, p_weekend_days integer[],
    p_valid_from date, p_valid_through date, p_beyond text, p_weekend_from date[], p_weekends text[],
    p_days date[], p_kinds text[], p_descriptions text[], p_replace boolean, p_dry_run boolean)
RETURNS TABLE (verdict text, added integer, removed integer, changed integer, unchanged integer, overrides integer)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    c reports.calendar;
    is_there boolean;
BEGIN
    SELECT * INTO c FROM reports.calendar x WHERE x.name = p_calendar FOR UPDATE;
    is_there := FOUND;
    verdict := CASE WHEN NOT is_there THEN 'created' WHEN c.combine IS NOT NULL THEN 'combination'
                    WHEN NOT p_replace THEN 'exists' ELSE 'replaced' END;
    SELECT count(*) FILTER (WHERE o.day IS NULL), count(*) FILTER (WHERE n.day IS NULL),
           count(*) FILTER (WHERE (o.kind, o.description) IS DISTINCT FROM (n.kind, n.description) AND o.day = n.day),
           count(*) FILTER (WHERE (o.kind, o.description) = (n.kind, n.description))
      INTO added, removed, changed, unchanged
      FROM unnest(p_days, p_kinds, p_descriptions) AS n (day, kind, description)
      FULL JOIN (SELECT d.day, d.kind, d.description FROM reports.calendar_day d WHERE d.calendar = p_calendar AND NOT d.override) o
        ON o.day = n.day;
    SELECT count(*) INTO overrides FROM reports.calendar_day d WHERE d.calendar = p_calendar AND d.override;
    RETURN NEXT;
    IF p_dry_run OR verdict IN ('exists', 'combination') THEN
        RETURN;
    END IF;
    IF is_there THEN
        UPDATE reports.calendar x
           SET description = p_description, source = p_source, weekend_days = p_weekend_days, valid_from = p_valid_from,
               valid_through = p_valid_through, beyond = p_beyond
         WHERE x.name = p_calendar;
        DELETE FROM reports.calendar_weekend w WHERE w.calendar = p_calendar;
        DELETE FROM reports.calendar_day d WHERE d.calendar = p_calendar AND NOT d.override;
    ELSE
        INSERT INTO reports.calendar (name, description, source, weekend_days, valid_from, valid_through, beyond)
        VALUES (p_calendar, p_description, p_source, p_weekend_days, p_valid_from, p_valid_through, p_beyond);
    END IF;
    INSERT INTO reports.calendar_weekend (calendar, from_date, weekend_days)
    SELECT p_calendar, w.from_date, w.days::integer[] FROM unnest(p_weekend_from, p_weekends) AS w (from_date, days);
    INSERT INTO reports.calendar_day (calendar, day, kind, override, description)
    SELECT p_calendar, n.day, n.kind, false, n.description FROM unnest(p_days, p_kinds, p_descriptions) AS n (day, kind, description);
END
$$;
COMMENT ON FUNCTION reports.calendar_import(text, text, text, integer[], date, date, text, date[], text[], date[], text[], text[], boolean, boolean) IS 'Makes or replaces a calendar from what a file says; says what changes, and with p_dry_run changes nothing.';
GRANT EXECUTE ON FUNCTION reports.calendar_import(text, text, text, integer[], date, date, text, date[], text[], date[], text[], text[], boolean, boolean)
    TO report_author;

-- What holds of each day, overrides before imported rows. For people and for who compiles calendars.
CREATE VIEW reports.v_calendar_day AS
SELECT DISTINCT ON (d.calendar, d.day) d.calendar, d.day, d.kind, d.override, d.description, d.source, d.recorded_at, d.recorded_by
  FROM reports.calendar_day d
 ORDER BY d.calendar, d.day, d.override DESC;
COMMENT ON VIEW reports.v_calendar_day IS 'The entry of a calendar that holds for a day: of two, the override.';

CREATE VIEW reports.v_calendar AS
SELECT c.name, c.description, c.combine,
       (SELECT string_agg(p.part, ', ' ORDER BY p.part) FROM reports.calendar_part p WHERE p.calendar = c.name) AS parts,
       c.weekend_days, (SELECT count(*) FROM reports.calendar_weekend w WHERE w.calendar = c.name) AS weekend_changes,
       (SELECT count(*) FROM reports.calendar_day d WHERE d.calendar = c.name AND NOT d.override) AS imported_days,
       (SELECT count(*) FROM reports.calendar_day d WHERE d.calendar = c.name AND d.override) AS overrides,
       c.valid_from, c.valid_through, c.beyond,
       (SELECT count(*) FROM reports.schedule s WHERE s.calendar IN (SELECT reports.calendar_users(ARRAY[c.name::text]))) AS schedules,
       c.version, c.updated_at, c.source
  FROM reports.calendar c;
COMMENT ON VIEW reports.v_calendar IS 'Each calendar with what it has and how many schedules use it, also by way of combinations.';
GRANT EXECUTE ON FUNCTION reports.calendar_users(text[]) TO report_reader;

-- Schedules follow: each gets a version with the calendar as it is now, and the leader takes that in like any edit, so
-- what has an occurrence stays, and everything else is where the calendar puts it. Deferred: once for a transaction,
-- whatever it does to a calendar. A schedule whose edit is announced follows with that edit. One whose row a session
-- holds keeps nobody waiting (I12): it is written down, and the leader lets it follow once the row is free.
CREATE TABLE reports.calendar_behind (
    schedule reports.name PRIMARY KEY,
    scope reports.name NOT NULL,
    since timestamptz NOT NULL DEFAULT clock_timestamp(),
    tried_at timestamptz,
    why text
);
COMMENT ON TABLE reports.calendar_behind IS 'A schedule that still follows its calendar as it was, since its row was held when that changed.';
COMMENT ON COLUMN reports.calendar_behind.schedule IS 'The schedule.';
COMMENT ON COLUMN reports.calendar_behind.scope IS 'Whose leader lets it follow.';
COMMENT ON COLUMN reports.calendar_behind.since IS 'When its calendar changed last.';
COMMENT ON COLUMN reports.calendar_behind.tried_at IS 'When it was refused last; it is tried again a minute later.';
COMMENT ON COLUMN reports.calendar_behind.why IS 'How it was refused; NULL: it was not.';

CREATE FUNCTION reports.calendar_follow() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    behind text;
BEGIN
    PERFORM set_config('reports.asked_at', '', true);
    PERFORM set_config('reports.change_reason', format('calendar %s has changed', NEW.name), true);
    UPDATE reports.schedule s SET calendar_version = c.version
      FROM reports.calendar c
     WHERE c.name = NEW.name AND s.name = ANY (ARRAY(
            SELECT x.name FROM reports.schedule x JOIN reports.calendar k ON k.name = x.calendar
             WHERE x.calendar = NEW.name AND x.calendar_version IS DISTINCT FROM k.version
               AND (x.effective_from <= clock_timestamp()) IS NOT FALSE
               FOR NO KEY UPDATE OF x SKIP LOCKED));
    PERFORM set_config('reports.change_reason', '', true);
    -- DO UPDATE, which holds the row until this change is committed: the leader must not settle it before.
    WITH noted AS (
        INSERT INTO reports.calendar_behind AS b (schedule, scope)
        SELECT s.name, s.scope FROM reports.schedule s JOIN reports.calendar c ON c.name = s.calendar
         WHERE c.name = NEW.name AND s.calendar_version IS DISTINCT FROM c.version AND (s.effective_from <= clock_timestamp()) IS NOT FALSE
         ORDER BY s.name
        ON CONFLICT (schedule) DO UPDATE SET since = clock_timestamp(), tried_at = NULL, why = NULL
        RETURNING b.schedule
    )
    SELECT concat(min(n.schedule::text COLLATE "C"), CASE WHEN count(*) > 1 THEN format(' and %s more', count(*) - 1) END) INTO behind FROM noted n;
    IF behind <> '' THEN
        RAISE WARNING 'calendar "%" has changed; schedule % is held by another session and follows later', NEW.name, behind
            USING HINT = 'Let that session commit, or end it; the leader does the rest. reportctl calendar check shows who is behind.';
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION reports.calendar_follow() IS 'Trigger on calendar: gives the schedules that use it a new version, once for a transaction.';
CREATE CONSTRAINT TRIGGER calendar_follow AFTER UPDATE ON reports.calendar DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION reports.calendar_follow();

-- Part of tend. Waits for no row: what is held now is tried again in the next round.
CREATE FUNCTION reports.calendar_catch_up(p_scope text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    b record;
BEGIN
    IF NOT EXISTS (SELECT FROM reports.calendar_behind x WHERE x.scope = p_scope) THEN
        RETURN false;
    END IF;
    DELETE FROM reports.calendar_behind d WHERE d.schedule = ANY (ARRAY(
        SELECT x.schedule FROM reports.calendar_behind x
         WHERE x.scope = p_scope AND NOT EXISTS (SELECT FROM reports.schedule s WHERE s.name = x.schedule)
           FOR UPDATE SKIP LOCKED));
    PERFORM set_config('reports.asked_at', '', true);
    FOR b IN SELECT s.name, s.calendar FROM reports.calendar_behind x JOIN reports.schedule s ON s.name = x.schedule
              WHERE x.scope = p_scope AND (x.tried_at >= clock_timestamp() - interval '1 minute') IS NOT TRUE
              ORDER BY x.tried_at NULLS FIRST, x.schedule LIMIT 100
                FOR UPDATE OF x SKIP LOCKED FOR NO KEY UPDATE OF s SKIP LOCKED LOOP
        BEGIN
            PERFORM set_config('reports.change_reason', format('calendar %s has changed', b.calendar), true);
            UPDATE reports.schedule s SET calendar_version = c.version
              FROM reports.calendar c
             WHERE s.name = b.name AND c.name = s.calendar AND s.calendar_version IS DISTINCT FROM c.version
               AND (s.effective_from <= clock_timestamp()) IS NOT FALSE;
            DELETE FROM reports.calendar_behind x WHERE x.schedule = b.name;
        EXCEPTION WHEN OTHERS THEN
            UPDATE reports.calendar_behind x SET tried_at = clock_timestamp(), why = left(SQLERRM, 500) WHERE x.schedule = b.name;
        END;
    END LOOP;
    PERFORM set_config('reports.change_reason', '', true);
    RETURN EXISTS (SELECT FROM reports.calendar_behind x WHERE x.scope = p_scope);
END
$$;
COMMENT ON FUNCTION reports.calendar_catch_up(text) IS 'Lets schedules follow their calendar whose rows were held when it changed; true: some are still behind.';

-- What a calendar is made of, itself and all parts below it, in one snapshot. what: calendar (day: valid_from; until:
-- valid_through; word: beyond or, of a combination, combine), weekend, day (word: its kind), part (word: its name).
CREATE FUNCTION reports.calendar_parts(p_calendar text)
RETURNS TABLE (calendar text, what text, day date, until date, word text, weekend_days integer, version bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE below (name) AS (
        SELECT p_calendar
        UNION
        SELECT p.part::text FROM below b JOIN reports.calendar_part p ON p.calendar = b.name
    ), parts (n, calendar, what, day, until, word, days, version) AS (
        SELECT 1, c.name::text, 'calendar', c.valid_from, c.valid_through, coalesce(c.combine, c.beyond),
               CASE WHEN c.combine IS NULL THEN c.weekend_days ELSE '{}' END, c.version
          FROM below b JOIN reports.calendar c ON c.name = b.name
        UNION ALL
        SELECT 2, w.calendar, 'weekend', w.from_date, NULL, NULL, w.weekend_days, NULL
          FROM below b JOIN reports.calendar_weekend w ON w.calendar = b.name
        UNION ALL
        SELECT 3, d.calendar, 'day', d.day, NULL, d.kind, '{}', NULL
          FROM below b JOIN reports.v_calendar_day d ON d.calendar = b.name
        UNION ALL
        SELECT 4, p.calendar, 'part', NULL, NULL, p.part, '{}', NULL
          FROM below b JOIN reports.calendar_part p ON p.calendar = b.name
    )
    -- Bit n for weekday n, Sunday 0.
    SELECT r.calendar, r.what, r.day, r.until, r.word, (SELECT coalesce(bit_or(1 << (d % 7)), 0) FROM unnest(r.days) d), r.version
      FROM parts r ORDER BY r.calendar, r.n, r.day, r.word
$$;
COMMENT ON FUNCTION reports.calendar_parts(text) IS 'A calendar and all it is made of, for who compiles it.';
GRANT EXECUTE ON FUNCTION reports.calendar_parts(text) TO report_scheduler, report_reader;

-- Findings, each with the remedy: 'wrong' is what makes the calendar unusable or soon will, 'look' is worth a look.
CREATE VIEW reports.v_calendar_finding AS
WITH finding (calendar, verdict, finding, detail, remedy) AS (
    SELECT c.name::text, CASE WHEN c.valid_through < current_date THEN 'wrong' ELSE 'look' END,
           CASE WHEN c.valid_through < current_date THEN 'expired' ELSE 'expires' END,
           format('its days are known through %s only; beyond, %s', c.valid_through,
                  CASE c.beyond WHEN 'hold' THEN 'what needs it waits' ELSE 'only weekends count' END),
           format('import newer data: reportctl calendar import %s FILE --replace', c.name)
      FROM reports.calendar c
     WHERE c.valid_through < current_date + 60 AND c.combine IS NULL
    UNION ALL
    SELECT c.name, 'wrong', 'no_parts', format('it is a combination (%s) of nothing', c.combine),
           'insert its parts into reports.calendar_part, or set combine = NULL'
      FROM reports.calendar c
     WHERE c.combine IS NOT NULL AND NOT EXISTS (SELECT FROM reports.calendar_part p WHERE p.calendar = c.name)
    UNION ALL
    SELECT o.calendar, 'look', CASE WHEN i.kind = o.kind THEN 'override_agrees' ELSE 'override_differs' END,
           CASE WHEN i.kind = o.kind THEN 'overrides that say what the imported row of the day says: '
                ELSE 'overrides against the imported row of the day: ' END || count(*) || ', first ' || min(o.day),
           CASE WHEN i.kind = o.kind THEN 'delete them, or keep them against a later import' ELSE 'none when that is meant' END
      FROM reports.calendar_day o JOIN reports.calendar_day i ON i.calendar = o.calendar AND i.day = o.day AND NOT i.override
     WHERE o.override
     GROUP BY o.calendar, i.kind = o.kind
    UNION ALL
    SELECT d.calendar, 'look', CASE d.kind WHEN 'holiday' THEN 'on_weekend' ELSE 'works_anyway' END,
           CASE d.kind WHEN 'holiday' THEN 'holidays on weekend days, which change nothing: '
                ELSE 'working days that are business days anyway: ' END || count(*) || ', first ' || min(d.day),
           'none when that is meant'
      FROM reports.v_calendar_day d JOIN reports.calendar c ON c.name = d.calendar AND c.combine IS NULL
     CROSS JOIN LATERAL (SELECT coalesce((SELECT w.weekend_days FROM reports.calendar_weekend w
                                           WHERE w.calendar = d.calendar AND w.from_date <= d.day
                                           ORDER BY w.from_date DESC LIMIT 1), c.weekend_days) AS days) w
     WHERE (extract(isodow FROM d.day)::integer = ANY (w.days)) = (d.kind = 'holiday')
       -- A file lists a holiday of each year, and some years it is on a weekend.
       AND (d.override OR d.kind = 'working')
       -- A working day that overrules an imported holiday does change something.
       AND NOT EXISTS (SELECT FROM reports.calendar_day i
                        WHERE d.override AND i.calendar = d.calendar AND i.day = d.day AND NOT i.override AND i.kind <> d.kind)
     GROUP BY d.calendar, d.kind
    UNION ALL
    SELECT d.calendar, 'look', 'beyond_validity',
           'days outside valid_from to valid_through, which count nevertheless: ' || count(*) || ', first ' || min(d.day),
           'move valid_from or valid_through when all days between are known'
      FROM reports.v_calendar_day d JOIN reports.calendar c ON c.name = d.calendar
     WHERE d.day < c.valid_from OR d.day > c.valid_through
     GROUP BY d.calendar
    UNION ALL
    SELECT s.calendar, CASE WHEN b.why IS NULL THEN 'look' ELSE 'wrong' END, 'not_followed',
           format('schedule "%s" still follows it as it was before %s: %s', s.name, date_trunc('second', b.since),
                  coalesce(b.why, 'its row was held by another session')),
           CASE WHEN b.why IS NULL THEN 'let that session commit, or end it; the leader then lets the schedule follow'
                ELSE 'correct the schedule' END
      FROM reports.calendar_behind b JOIN reports.schedule s ON s.name = b.schedule
     WHERE s.calendar IS NOT NULL
)
SELECT f.calendar, f.verdict, f.finding, f.detail, f.remedy,
       (SELECT string_agg(CASE WHEN u.n <= 3 THEN u.name ELSE 'more' END, ', ' ORDER BY u.n)
          FROM (SELECT s.name::text, row_number() OVER (ORDER BY s.name) AS n FROM reports.schedule s
                 WHERE s.calendar IN (SELECT reports.calendar_users(ARRAY[f.calendar])) ORDER BY s.name LIMIT 4) u) AS used_by
  FROM finding f;
COMMENT ON VIEW reports.v_calendar_finding IS 'What reportctl calendar check finds: verdict wrong or look, the remedy, and the schedules that use the calendar, also by way of combinations.';

RESET ROLE;
