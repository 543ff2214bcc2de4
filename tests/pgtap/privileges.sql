-- Who may do what, tried out as each role, and what the catalog must say of every object. A table,
-- view or function that is not listed here fails the test: say who may use it.
BEGIN;
\ir fixture.psql
SELECT no_plan();

CREATE TEMP TABLE role AS SELECT unnest('{report_scheduler,report_worker,report_operator,report_author,report_reader}'::text[]) AS name;

-- Tables ----------------------------------------------------------------------------------------

CREATE TEMP TABLE relation (name text PRIMARY KEY, readers text[] NOT NULL, writers text[] NOT NULL);
INSERT INTO relation
SELECT name, '{report_scheduler,report_worker,report_operator,report_author,report_reader}', '{report_author}'
  FROM unnest('{scope,queue,calendar,calendar_day,calendar_weekend,calendar_part,fiscal_period,report,schedule}'::text[]) name;
-- Written through functions only.
INSERT INTO relation
SELECT name, '{report_scheduler,report_worker,report_operator,report_author,report_reader}', '{}'
  FROM unnest('{installation,schedule_version,schedule_change,ensemble,ensemble_refused,v_moved_scope,v_lease_clock,fence,fence_pulse,leadership_event,fence_rejection,backend,hold,v_hold,v_hold_history,
                schedule_progress,zone_state,occurrence,schedule_gap,job,job_attempt,artifact,delivery,member_clock,outbox,outbox_dead,queue_load,catch_up_release,worker,request,candidate,handoff}'::text[]) name;
-- The ledger of `reportctl migrate`, where that made the schema.
INSERT INTO relation
SELECT 'migration', '{report_scheduler,report_worker,report_operator,report_author,report_reader}', '{}' WHERE to_regclass('reports.migration') IS NOT NULL;
-- For people, and for the replicas to know who leads.
INSERT INTO relation VALUES ('v_leader', '{report_scheduler,report_operator,report_author,report_reader}', '{}');
-- For people.
INSERT INTO relation
SELECT name, '{report_operator,report_author,report_reader}', '{}'
  FROM unnest('{v_member_clock,v_zone,v_zone_state,v_fence,v_request,v_queue,v_scope,v_leadership_event,v_fence_rejection,v_schedule,v_schedule_version,v_gap,v_occurrence,v_job,v_attempt,
                v_artifact,v_job_state,v_last_hour,v_worker,v_outbox,v_outbox_dead,v_outbox_load,v_unserved_scope,v_problem,backfill_firing,catch_up_discard,v_catch_up,v_catch_up_scope,v_catch_up_queue,v_catch_up_discard,v_calendar,v_calendar_day,v_calendar_finding,calendar_behind,fiscal_behind,circuit_outcome,circuit_event,v_circuit_event}'::text[]) name;
SELECT set_eq($$SELECT relname::text FROM pg_class WHERE relnamespace = 'reports'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')$$,
              'SELECT name FROM relation', 'every table and view is listed here');

-- Does the role get past the permission check? Any other error is not what is asked here.
CREATE FUNCTION pg_temp.permitted(p_role text, p_sql text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    permitted boolean := true;
BEGIN
    BEGIN
        EXECUTE format('SET LOCAL ROLE %I', p_role);
        EXECUTE p_sql;
        RAISE EXCEPTION 'undo' USING ERRCODE = 'TAP00';
    EXCEPTION WHEN insufficient_privilege THEN
        permitted := false;
    WHEN OTHERS THEN
        NULL;
    END;
    RETURN permitted;
END
$$;
CREATE FUNCTION pg_temp.first_column(p_relation text) RETURNS text LANGUAGE sql AS $$
    SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = ('reports.' || p_relation)::regclass AND attnum > 0 ORDER BY attnum LIMIT 1
$$;
-- All that each role may do with a relation, in one line, as tried and as it should be.
CREATE FUNCTION pg_temp.tried(p_relation text) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(role.name || ': ' || t.verbs, '; ' ORDER BY role.name)
      FROM role, LATERAL (
           SELECT string_agg(v.verb, ' ' ORDER BY v.n) AS verbs
             FROM (VALUES (1, 'SELECT', 'SELECT * FROM reports.%I LIMIT 0'), (2, 'INSERT', 'INSERT INTO reports.%I DEFAULT VALUES'),
                          (3, 'UPDATE', 'UPDATE reports.%I SET %s = DEFAULT WHERE false'), (4, 'DELETE', 'DELETE FROM reports.%I WHERE false'),
                          (5, 'TRUNCATE', NULL), (6, 'REFERENCES', NULL), (7, 'TRIGGER', NULL)) AS v (n, verb, sql)
            WHERE CASE WHEN v.sql IS NULL OR (p_relation LIKE 'v\_%' AND v.verb <> 'SELECT') THEN has_table_privilege(role.name, 'reports.' || p_relation, v.verb)
                       ELSE pg_temp.permitted(role.name, format(v.sql, p_relation, pg_temp.first_column(p_relation))) END) t
     WHERE t.verbs IS NOT NULL
$$;
SELECT is(pg_temp.tried(r.name),
          (SELECT string_agg(role.name || ': SELECT' || CASE WHEN role.name = ANY (r.writers) THEN ' INSERT UPDATE DELETE' ELSE '' END, '; ' ORDER BY role.name)
             FROM role WHERE role.name = ANY (r.readers)),
          format('%s: who may do what', r.name))
  FROM relation r ORDER BY r.name;
SELECT is_empty($$SELECT c.relname FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a
                   WHERE c.relnamespace = 'reports'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND a.grantee = 0$$, 'PUBLIC has nothing on tables, views and sequences');
SELECT is_empty($$SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'reports'::regnamespace AND pg_get_userbyid(c.relowner) <> 'report_owner'$$, 'report_owner owns every table, view, index and sequence');
SELECT ok(NOT pg_temp.permitted(name, 'CREATE TABLE reports.x ()'), format('%s may not create anything in the schema', name)) FROM role;

-- Functions -------------------------------------------------------------------------------------

CREATE TEMP TABLE function (name text PRIMARY KEY, callers text[] NOT NULL);
INSERT INTO function SELECT name, '{report_scheduler}'
  FROM unnest('{ensemble_meet,root_refused,prove_regressed,note_clock,zones_in_use,of_zone,note_zones,rezone,prune,establish,terminate_backends,register_backend,activated,release,note_leadership,fence_read,authority_check,due,progress_of,versions_of,keys_taken,next_due,changes,take_in,
                plan_batch,mark_problem,resume_paused,tend,outbox_ack,outbox_bury,outbox_trim,pending_requests,answer_request,refuse_request,follow,rehearse,scope_figures,problem_list}'::text[]) name;
INSERT INTO function SELECT name, '{report_worker}'
  FROM unnest('{worker_register,worker_leave,unreferenced_files,claims_of,claim_ids,claim_ready,heartbeat,record_outcomes,release_claims,claim_deliveries,delivery_sending,delivery_outcome}'::text[]) name;
INSERT INTO function SELECT name, '{report_operator}' FROM unnest('{raise_hold,lift_hold,rebase,rebase_target}'::text[]) name;
INSERT INTO function VALUES ('ask', '{report_operator,report_scheduler}'), ('ask_backfill', '{report_operator,report_scheduler}'), ('calendar_import', '{report_author}'), ('calendar_parts', '{report_scheduler,report_operator,report_author,report_reader}'), ('fiscal_periods', '{report_scheduler,report_operator,report_author,report_reader}');
-- What CHECKs call: they belong to whoever writes the row, and only raise.
INSERT INTO function SELECT name, '{report_scheduler,report_worker,report_operator,report_author,report_reader}' FROM unnest('{refuse,refuse_value,refuse_name}'::text[]) name;
INSERT INTO function SELECT name, '{report_operator,report_author,report_reader}' FROM unnest('{job_id_floor,offset_text,instant_text,time_of_job,candidate_silence,tzdata_is_newer,fence_audit,verify_page,verify_ledger,verify_keys,verify_strays,verify_jobs,verify_orphans,verify_any,why_chain,why_around,calendar_users,calendars_ending,handoff_progress,missed_waiting}'::text[]) name;
-- Parts of the others, and triggers.
INSERT INTO function SELECT name, '{}'
  FROM unnest('{business_day_before,fiscal_periods_begin,check_business_date,key_form_of_periods,business_about,period_of_key,check_fiscal_periods,renew_schedule,fiscal_catch_up,period_key_fault,is_business_day,manual_about,keep_used_period,business_date_parse,key_floor,key_reach,check_report,check_rule,check_rule_columns,check_dates,replace_announced,version_before_announced,append_pause,check_paused_until,append_version,check_cron_numbers,check_cron_steps,check_recurrence,zone_as_listed,check_repeat,check_schedule,check_parameters,check_report_parameters,check_references,keep_used,calendar_touch,check_calendar,keep_used_calendar,calendar_changed,calendar_follow,calendar_catch_up,tell_calendar,check_calendar_row,check_calendar_part,calendar_rows_changed,record_version,make_fence,keep_scope,keep_fence,scope_lock_key,fence_holds,is_held,timeline,job_not_known,raise_guard,clock_step,clock_words,judge_step,raise_clock_hold,clock_is_confirmed,lift_clock_hold,note_server,holders_of,
                register_self,beat,retry_delay,attempts_used_up,state_when_lost,make_deliveries,reap_deliveries,release_deliveries,state_when_unknown,prune_of_jobs,prune_head,progress_taken,prune_requests,prune_workers,
                prune_dead_messages,claim,claimed_jobs,claimable_worker,claims_are_held,scopes_not_to_claim,queues_not_to_claim,date_of_key,check_key,
                has_active_job,open_jobs,may_replace,replace_jobs,jobs_to_adopt,adopt_blocked,adopt_overlap,give_turns,fill_room,release_waiting,count_queues,key_to_come,key_fault,interval_keys,local_keys,local_instants,time_of_day,only_value,clock_fields,clock_goes_back,find_job,check_request,check_until,note_outcome,settle_circuit,settle_circuits,note_probes,carry_out_breaker_close,
                carry_out_trigger,carry_out_pause,carry_out_cancel,carry_out_held,carry_out_retry,request_before,why_expired,handoff_patience,why_not_ready,led_until,find_successor,check_handoff,close_handoff,carry_out_handoff,
                backfill_to_cancel,check_backfill,cancel_backfill,carry_out_backfill,is_backfilled,prune_backfills,job_id_make,catch_up_used,catch_up_forget,discard_meant,check_discard,carry_out_discard}'::text[]) name;
SELECT set_eq($$SELECT proname::text FROM pg_proc WHERE pronamespace = 'reports'::regnamespace$$, 'SELECT name FROM function', 'every function is listed here');
SELECT is((SELECT coalesce(string_agg(role.name, ', ' ORDER BY role.name), 'nobody') FROM role WHERE has_function_privilege(role.name, p.oid, 'EXECUTE')),
          (SELECT coalesce(string_agg(role.name, ', ' ORDER BY role.name), 'nobody') FROM role WHERE role.name = ANY (f.callers)),
          format('%s: who may call it', f.name))
  FROM function f JOIN pg_proc p ON p.proname = f.name AND p.pronamespace = 'reports'::regnamespace ORDER BY f.name;
SELECT is_empty($$SELECT p.proname FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
                   WHERE p.pronamespace = 'reports'::regnamespace AND a.grantee = 0$$, 'PUBLIC may call nothing');
SELECT is_empty($$SELECT p.proname FROM pg_proc p WHERE p.pronamespace = 'reports'::regnamespace AND pg_get_userbyid(p.proowner) <> 'report_owner'$$, 'report_owner owns every function');
SELECT is_empty($$SELECT p.proname FROM pg_proc p WHERE p.pronamespace = 'reports'::regnamespace
                   AND NOT coalesce(p.proconfig @> ARRAY['search_path=pg_catalog, pg_temp'], false)$$, 'every function pins its search_path, temporary tables last');
SELECT is_empty($$SELECT p.proname FROM pg_proc p WHERE p.pronamespace = 'reports'::regnamespace AND p.proargnames @> '{p_scope,p_incarnation,p_generation,p_owner}'
                   AND (p.provolatile <> 'v' OR NOT p.prosecdef)$$, 'every protected function is VOLATILE and SECURITY DEFINER');

-- What it amounts to, in use ---------------------------------------------------------------------

-- An author's edit goes through triggers that write what the author may not.
SET LOCAL ROLE report_author;
SELECT lives_ok($$INSERT INTO reports.report (name, kind) VALUES ('mine', 'noop')$$, 'an author makes a report');
SELECT lives_ok($$INSERT INTO reports.schedule (name, scope, report, kind, rule) VALUES ('mine', 'tap', 'mine', 'interval', '15 min')$$, 'and a schedule');
SELECT lives_ok($$UPDATE reports.schedule SET priority = 1 WHERE name = 'mine'$$, 'edits it');
SELECT is((SELECT count(*) FROM reports.schedule_version WHERE schedule = 'mine'), 2::bigint, 'sees its versions');
SELECT is((SELECT owner FROM reports.schedule WHERE name = 'mine'), 'report_author', 'is its owner');
SELECT is((SELECT recorded_by FROM reports.schedule_version WHERE schedule = 'mine' AND version = 1), session_user::text, 'while the version names the login');
SELECT lives_ok($$DELETE FROM reports.schedule WHERE name = 'mine'$$, 'and deletes it');
SELECT lives_ok($$INSERT INTO reports.scope (name) VALUES ('mine')$$, 'an author makes a scope');
SELECT ok(EXISTS (SELECT FROM reports.fence WHERE scope = 'mine'), 'which has its fence');
SELECT lives_ok($$INSERT INTO reports.calendar (name) VALUES ('mine')$$, 'and a calendar');
RESET ROLE;

INSERT INTO reports.schedule (name, scope, report, kind, rule) VALUES ('asked', 'tap', 'nothing', 'cron', '@daily');
SET LOCAL ROLE report_operator;
SELECT is((SELECT state FROM reports.ask('00000000-0000-4000-8000-000000000001', 'trigger', 'asked', NULL, '1 min')), 'pending', 'an operator asks');
SELECT is((SELECT state FROM reports.request WHERE id = '00000000-0000-4000-8000-000000000001'), 'pending', 'and reads how it stands');
CREATE TEMP TABLE raised AS SELECT reports.raise_hold(NULL, 'fast', 'rebuild') AS id;
SELECT results_eq('SELECT h.queue::text, h.reason, h.raised_by FROM reports.hold h JOIN raised USING (id)', $$VALUES ('fast', 'rebuild', session_user::text COLLATE "default")$$, 'raises a hold');
SELECT lives_ok('SELECT reports.lift_hold(id) FROM raised', 'and lifts it');
RESET ROLE;

SET LOCAL ROLE report_scheduler;
SELECT is((SELECT verdict FROM reports.answer_request('tap', 1, 100, '00000000-0000-4000-8000-000000000100', '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-0000000000a1')), 'ok', 'the scheduler answers through its function');
SELECT is((SELECT verdict FROM reports.tend('tap', 1, 100, '00000000-0000-4000-8000-000000000100', 10)), 'ok', 'and tends');
SELECT is(reports.register_backend('tap', 1, 100, '00000000-0000-4000-8000-000000000100', 'relay'), 'ok', 'and registers');
SELECT is(reports.terminate_backends('tap', 1, 100), 0, 'and ends backends, of which there are none');
SELECT throws_ok($$UPDATE reports.fence SET generation = 101 WHERE scope = 'tap'$$, '42501', NULL, 'but not by writing the tables');
RESET ROLE;

SET LOCAL ROLE report_worker;
SELECT lives_ok($$SELECT reports.worker_register('00000000-0000-4000-8000-0000000000b1', 'h', 1, '1', '{default}', 1)$$, 'a worker registers');
CREATE TEMP TABLE claimed AS SELECT * FROM reports.claim_ready('00000000-0000-4000-8000-0000000000b1', '{default}', 10);
SELECT is((SELECT count(*) FROM claimed), 1::bigint, 'claims');
SELECT is((SELECT count(*) FROM claimed, reports.heartbeat('00000000-0000-4000-8000-0000000000b1', ARRAY[claimed.job_id], ARRAY[claimed.token])), 1::bigint, 'renews');
SELECT is((SELECT r.verdict FROM claimed, reports.record_outcomes(ARRAY[claimed.job_id], ARRAY[claimed.token], '{succeeded}', '{f}', '{NULL}', '{0}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}') r), 'done', 'and reports');
RESET ROLE;

-- Roles -----------------------------------------------------------------------------------------

SELECT results_eq($$SELECT rolname::text, rolcanlogin, rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls FROM pg_roles
                     WHERE rolname IN (SELECT name FROM role UNION SELECT 'report_owner') ORDER BY rolname$$,
                  $$VALUES ('report_author' COLLATE "C", false, false), ('report_operator', false, false), ('report_owner', false, false), ('report_reader', false, false), ('report_scheduler', true, false), ('report_worker', true, false)$$,
                  'only the daemons'' roles log in, and none has a power over the cluster');
SELECT ok(pg_has_role('report_owner', 'report_scheduler', 'USAGE') AND pg_has_role('report_owner', 'report_worker', 'USAGE'), 'the owner of the functions may look at and end the daemons'' sessions');
SELECT ok(NOT pg_has_role(name, 'report_owner', 'MEMBER'), format('%s is no owner', name)) FROM role;
SELECT set_eq($$SELECT a.name AS member, b.name AS of FROM role a, role b WHERE a.name <> b.name AND pg_has_role(a.name, b.name, 'MEMBER')$$,
              $$VALUES ('report_operator', 'report_reader'), ('report_author', 'report_reader')$$, 'operators and authors are readers, and nobody else is anything else');
SELECT set_eq(format($$SELECT unnest(setconfig) FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = s.setrole
                        WHERE r.rolname = %L AND s.setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())$$, name),
              $$SELECT unnest('{statement_timeout=3s,lock_timeout=2s,idle_in_transaction_session_timeout=2s,tcp_user_timeout=5s,tcp_keepalives_idle=5,
                                tcp_keepalives_interval=2,tcp_keepalives_count=3,default_transaction_isolation=read committed,TimeZone=UTC,jit=off,"search_path=reports, pg_catalog"}'::text[])$$,
              format('a paused session of %s is bounded by the role''s settings in this database', name))
  FROM unnest('{report_scheduler,report_worker}'::text[]) name;

-- Every object says what it is for ---------------------------------------------------------------

SELECT is_empty($$SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'reports'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm') AND c.relname <> 'migration'
                   AND obj_description(c.oid, 'pg_class') IS NULL$$, 'every table and view has a comment');
SELECT is_empty($$SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
                   WHERE c.relnamespace = 'reports'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname <> 'migration'
                     AND coalesce(col_description(c.oid, a.attnum), '') = ''$$, 'every column of a table has a comment');
SELECT is_empty($$SELECT p.oid::regprocedure FROM pg_proc p WHERE p.pronamespace = 'reports'::regnamespace AND obj_description(p.oid, 'pg_proc') IS NULL$$, 'every function has a comment');
SELECT is_empty($$SELECT t.typname FROM pg_type t LEFT JOIN pg_class c ON c.oid = t.typrelid WHERE t.typnamespace = 'reports'::regnamespace AND t.typtype IN ('d', 'e', 'c')
                   AND coalesce(c.relkind, 'c') = 'c' AND obj_description(t.oid, 'pg_type') IS NULL$$, 'every type has a comment');

-- No foreign key from what the daemons write to what users write: an open psql stops no firing (I12).
SELECT set_eq($$SELECT DISTINCT conrelid::regclass::text FROM pg_constraint WHERE contype = 'f' AND connamespace = 'reports'::regnamespace$$,
              $$SELECT unnest('{reports.calendar_day,reports.calendar_part,reports.calendar_weekend,reports.schedule}'::text[])$$, 'only definitions have foreign keys');

-- What a later migration makes ----------------------------------------------------------------------

SET LOCAL ROLE report_owner;
CREATE TABLE reports.of_a_later_migration (x integer);
CREATE VIEW reports.v_of_a_later_migration AS SELECT x FROM reports.of_a_later_migration;
RESET ROLE;
SELECT is(pg_temp.tried('of_a_later_migration'), 'report_author: SELECT; report_operator: SELECT; report_reader: SELECT', 'people read the tables of later migrations; daemons need a grant');
SELECT is(pg_temp.tried('v_of_a_later_migration'), 'report_author: SELECT; report_operator: SELECT; report_reader: SELECT', 'and the views');

SELECT * FROM finish();
ROLLBACK;
