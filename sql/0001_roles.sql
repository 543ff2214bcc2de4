-- Roles, schema and the names everything else uses.
--
-- Run by `reportctl migrate` as a superuser or as a role with CREATEROLE that may create schemas.
-- Roles are cluster-wide and may exist already (another database of the same cluster), so they are
-- created idempotently; their settings are bound to this database.

-- Databases of one cluster may be migrated at the same moment: losing that race is as good as
-- finding the role. The daemons' login roles have no password until the administrator gives one.
DO $$
DECLARE
    role record;
BEGIN
    FOR role IN
        SELECT * FROM (VALUES ('report_owner', 'NOLOGIN'), ('report_operator', 'NOLOGIN'), ('report_author', 'NOLOGIN'),
                              ('report_reader', 'NOLOGIN'), ('report_scheduler', 'LOGIN'), ('report_worker', 'LOGIN'))
                        AS wanted (name, may_log_in)
         WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted.name)
    LOOP
        BEGIN
            EXECUTE format('CREATE ROLE %I %s', role.name, role.may_log_in);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;
        END;
    END LOOP;
END
$$;

-- pg_terminate_backend and pg_stat_activity.backend_start inside SECURITY DEFINER functions use
-- the owner's rights: the owner must be a member of the roles whose backends it looks at.
DO $$
DECLARE
    membership record;
BEGIN
    FOR membership IN
        SELECT * FROM (VALUES ('report_scheduler', 'report_owner'), ('report_worker', 'report_owner'),
                              ('report_reader', 'report_operator'), ('report_reader', 'report_author'))
                        AS wanted (role, member)
         WHERE NOT pg_has_role(wanted.member, wanted.role, 'MEMBER')
    LOOP
        BEGIN
            EXECUTE format('GRANT %I TO %I', membership.role, membership.member);
        EXCEPTION WHEN unique_violation THEN
            NULL;
        END;
    END LOOP;
END
$$;

-- Bounds on a paused owner (a SIGSTOPped client keeps its socket open and its kernel still ACKs).
-- tcp_user_timeout ends a backend that is stuck sending to such a client; statement_timeout does
-- not. Settings are not inherited by members of a role, so every connect verifies them.
DO $$
DECLARE
    r text;
    s text;
BEGIN
    FOREACH r IN ARRAY ARRAY['report_scheduler', 'report_worker'] LOOP
        FOREACH s IN ARRAY ARRAY['statement_timeout = ''3s''',
                                 'lock_timeout = ''2s''',
                                 'idle_in_transaction_session_timeout = ''2s''',
                                 'tcp_user_timeout = ''5s''',
                                 'tcp_keepalives_idle = 5',
                                 'tcp_keepalives_interval = 2',
                                 'tcp_keepalives_count = 3',
                                 'default_transaction_isolation = ''read committed''',
                                 'timezone = ''UTC''',
                                 'jit = off', -- compiling takes longer than any of these statements
                                 'search_path = reports, pg_catalog'] LOOP
            EXECUTE format('ALTER ROLE %I IN DATABASE %I SET %s', r, current_database(), s);
        END LOOP;
    END LOOP;
    -- Who is not a superuser can give the schema away and SET ROLE only as a member of the owner.
    IF NOT pg_has_role(current_user, 'report_owner', 'MEMBER') THEN
        EXECUTE format('GRANT report_owner TO %I', current_user);
    END IF;
END
$$;

-- `reportctl migrate` has created the schema to keep its own ledger in it.
CREATE SCHEMA IF NOT EXISTS reports;
ALTER SCHEMA reports OWNER TO report_owner;
-- The grants of a later migration are made by the owner, on all tables of the schema.
ALTER TABLE IF EXISTS reports.migration OWNER TO report_owner;
COMMENT ON SCHEMA reports IS 'Report scheduler: definitions, authority, occurrences, jobs, outbox.';
GRANT USAGE ON SCHEMA reports
    TO report_scheduler, report_worker, report_operator, report_author, report_reader;
-- Functions are executable by PUBLIC unless said otherwise; here nothing is.
ALTER DEFAULT PRIVILEGES IN SCHEMA reports REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
ALTER DEFAULT PRIVILEGES FOR ROLE report_owner REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;

SET ROLE report_owner;

-- The second half of a CHECK: says what is wrong and what to write, where PostgreSQL would print the constraint's
-- name and the row. Never returns. VOLATILE, or the planner would call it beforehand, and of no rights of its own.
CREATE FUNCTION reports.refuse(p_message text, p_hint text) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION '%', p_message USING ERRCODE = 'check_violation', HINT = p_hint;
END
$$;
COMMENT ON FUNCTION reports.refuse(text, text) IS 'Refuses a row: CHECK (what must hold OR reports.refuse(...)).';

CREATE FUNCTION reports.refuse_value(p_row text, p_column text, p_value text, p_hint text) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION '%: % cannot be %', p_row, p_column,
        quote_literal(left(p_value, 80)) || CASE WHEN length(p_value) > 80 THEN ' ...' ELSE '' END
        USING ERRCODE = 'check_violation', HINT = p_hint;
END
$$;
COMMENT ON FUNCTION reports.refuse_value(text, text, text, text) IS 'Refuses the value of a column: CHECK (what must hold OR reports.refuse_value(...)).';

CREATE FUNCTION reports.refuse_name(p_name text) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    nearest text := left(ltrim(regexp_replace(lower(p_name), '[^a-z0-9_.-]+', '-', 'g'), '_.-'), 63);
BEGIN
    RAISE EXCEPTION 'name % cannot be one', quote_literal(left(p_name, 80)) || CASE WHEN length(p_name) > 80 THEN ' ...' ELSE '' END
        USING ERRCODE = 'check_violation',
              HINT = 'A name is 1 to 63 of a-z, 0-9, _ . - and begins with a letter or digit'
                     || CASE WHEN nearest <> '' THEN format(': write ''%s''.', nearest) ELSE '.' END;
END
$$;
COMMENT ON FUNCTION reports.refuse_name(text) IS 'Refuses what is not of the domain name.';
-- Whoever writes a row calls what its CHECKs call.
GRANT EXECUTE ON FUNCTION reports.refuse(text, text), reports.refuse_value(text, text, text, text), reports.refuse_name(text)
    TO report_scheduler, report_worker, report_operator, report_author, report_reader;

CREATE DOMAIN reports.name AS text
    CONSTRAINT name_shape CHECK ((VALUE ~ '^[a-z0-9][a-z0-9_.-]{0,62}$') IS NOT FALSE OR reports.refuse_name(VALUE));
COMMENT ON DOMAIN reports.name IS
    'Name of a scope, queue, report, schedule: 1 to 63 of a-z 0-9 _ . - and starting with a letter or digit.';

CREATE DOMAIN reports.occurrence_key AS text
    CONSTRAINT occurrence_key_shape CHECK ((VALUE ~ '^[A-Za-z0-9][A-Za-z0-9_.:+-]{0,126}$') IS NOT FALSE
        OR reports.refuse(format('occurrence key %L cannot be one', left(VALUE, 200)), 'A key is 1 to 127 of letters, digits, _ . : + - and begins with a letter or digit.'));
COMMENT ON DOMAIN reports.occurrence_key IS
    'Key of one firing within its schedule, e.g. 2030-04-12: 1 to 127 of letters, digits, _ . : + -';

CREATE TYPE reports.job_state AS ENUM
    ('waiting', 'queued', 'running', 'retry_wait', 'succeeded', 'failed', 'cancelled', 'quarantined');
COMMENT ON TYPE reports.job_state IS
    'waiting: for another job of its schedule to end, or for room (job.waits_for); queued: may be claimed; running: has a live claim; retry_wait: backing off; succeeded, failed, cancelled: final; quarantined: set aside (not yet: nothing sets it).';

RESET ROLE;
