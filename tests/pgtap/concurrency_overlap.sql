-- Overlap and capacity with several sessions: plan, trigger, outcome, cancel, retry and a takeover at once.
-- What the policies promise holds in every snapshot, and nobody waits for a row that somebody else has.
\ir sessions.psql
SELECT no_plan();
SET jit = off; -- as the daemons' roles have it

INSERT INTO reports.ensemble (id, incarnation, adopted_by) VALUES ('conc', 1, 'conc');
INSERT INTO reports.queue (name, max_outstanding) VALUES ('conc', NULL), ('conc-narrow', 3);
CREATE TEMP TABLE pid AS
SELECT name, pg_temp.open(name, CASE WHEN name IN ('leader', 'again', 'next') THEN 'report_scheduler' WHEN length(name) = 1 THEN 'report_worker' ELSE current_user END) AS pid
  FROM unnest('{leader,again,next,a,b,c,eye,user}'::text[]) name;
CREATE FUNCTION pg_temp.pid(p_name text) RETURNS integer LANGUAGE sql AS $$ SELECT pid FROM pid WHERE name = p_name $$;
CREATE FUNCTION pg_temp.w(p_name text) RETURNS uuid LANGUAGE sql AS $$ SELECT format('0000000%s-0000-4000-8000-000000000000', p_name)::uuid $$;
SELECT isnt(pg_temp.run(name, format($$SELECT installation FROM reports.worker_register(%L, 'conc', 1, '1', '{conc,conc-narrow}', 4)$$, pg_temp.w(name))), NULL, format('(%s registers)', name)) FROM pid WHERE length(name) = 1;
-- Generation n is owned by ...00n.
CREATE FUNCTION pg_temp.authority(p_generation integer) RETURNS text LANGUAGE sql AS $$ SELECT format('''conc'', 1, %s, ''00000000-0000-4000-8000-%s''::uuid', p_generation, lpad(p_generation::text, 12, '0')) $$;
CREATE FUNCTION pg_temp.establish(p_generation integer) RETURNS text LANGUAGE sql AS $$ SELECT format('SELECT verdict FROM reports.establish(%s, ''m'')', pg_temp.authority(p_generation)) $$;
SELECT is(pg_temp.run('leader', pg_temp.establish(1)), 'established', '(there is a leader)');
SELECT is(pg_temp.run(name, 'SET lock_timeout = ''300ms'''), 'done', format('(%s is impatient)', name)) FROM pid WHERE name IN ('leader', 'again', 'next');

-- One schedule of each policy, taken in.
INSERT INTO reports.schedule (name, scope, report, kind, rule, overlap, queue) SELECT 'conc-' || o, 'conc', 'conc', 'cron', '* * * * *', o, 'conc' FROM unnest('{allow,forbid,queue,replace}'::text[]) o;
SELECT is(pg_temp.run('leader', format($$SELECT cardinality(taken) FROM reports.take_in(%s, %L, %L, '{1,1,1,1}', '{NULL,NULL,NULL,NULL}', array_fill(clock_timestamp(), '{4}'), array_fill(clock_timestamp(), '{4}'), array_fill(NULL::timestamp, '{4}'),
              '{0,0,0,0}', array_fill('minute'::text, '{4}'), array_fill(NULL::text, '{4}'), array_fill('x'::text, '{4}'))$$, pg_temp.authority(1), array_agg(schedule ORDER BY id), array_agg(id ORDER BY id))), '4', '(and there are schedules)')
  FROM reports.schedule_change WHERE scope = 'conc';
-- A batch of one firing of each of the schedules.
CREATE FUNCTION pg_temp.plan(p_schedules text, p_key text, p_generation integer DEFAULT 1) RETURNS text LANGUAGE sql AS $$
    SELECT format('SELECT verdict || (SELECT coalesce(string_agg('' '' || substr(x, 6), '''' ORDER BY x), '''') FROM unnest(advanced) x) || '' '' || planned FROM reports.plan_batch(%1$s, %2$L, %3$L, %4$L, %5$L, %6$L, %7$L, %5$L, %6$L, %7$L, ''x'',
                   %2$L, %8$L, %9$L, %5$L, %6$L, %7$L, %10$L, %5$L, %11$L, ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'')',
                  pg_temp.authority(p_generation), array_agg(p.schedule), array_agg(p.version), array_agg(p.step), array_agg(now()), array_agg(now()::timestamp), array_agg(0), array_agg(p_key), array_agg(gen_random_uuid()), array_agg(NULL::date), array_agg('schedule'::text))
      FROM reports.schedule_progress p WHERE p.schedule = ANY (SELECT 'conc-' || s FROM unnest(string_to_array(p_schedules, ' ')) s)
$$;
CREATE FUNCTION pg_temp.jobs(p_schedule text) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(format('%s %s%s%s', o.occurrence_key, j.state, ' for ' || j.waits_for, CASE WHEN j.cancel_requested AND j.state = 'running' THEN ' to cancel' END), ', ' ORDER BY o.planned_at)
      FROM reports.occurrence o JOIN reports.job j ON j.id = o.job_id WHERE o.schedule = 'conc-' || p_schedule
$$;
CREATE FUNCTION pg_temp.id_of(p_schedule text, p_key text) RETURNS uuid LANGUAGE sql AS $$ SELECT job_id FROM reports.occurrence WHERE schedule = 'conc-' || p_schedule AND occurrence_key = p_key $$;
CREATE FUNCTION pg_temp.claim(p_worker text, p_schedule text, p_key text) RETURNS text LANGUAGE sql AS $$
    SELECT format('SELECT count(*) FROM reports.claim_ids(%L, ''{conc,conc-narrow}'', ARRAY[%L::uuid])', pg_temp.w(p_worker), pg_temp.id_of(p_schedule, p_key))
$$;
CREATE FUNCTION pg_temp.outcome(p_schedule text, p_key text, p_outcome text DEFAULT 'succeeded') RETURNS text LANGUAGE sql AS $$
    SELECT format('SELECT state FROM reports.record_outcomes(ARRAY[%L::uuid], ARRAY[%L::uuid], ARRAY[%L], ''{t}'', ''{NULL}'', ''{0}'', ''{NULL}'', ''{NULL}'', ''{NULL}'', ''{NULL}'', ''{NULL}'', ''{NULL}'')', j.id, j.attempt_token, p_outcome)
      FROM reports.job j WHERE j.id = pg_temp.id_of(p_schedule, p_key)
$$;
CREATE FUNCTION pg_temp.tend(p_generation integer DEFAULT 1) RETURNS text LANGUAGE sql AS $$ SELECT format('SELECT verdict || '' '' || coalesce(released, 0) FROM reports.tend(%s, 100)', pg_temp.authority(p_generation)) $$;
CREATE FUNCTION pg_temp.id(p_n integer) RETURNS uuid LANGUAGE sql AS $$ SELECT format('c1000000-0000-4000-8000-%s', lpad(p_n::text, 12, '0'))::uuid $$;
CREATE FUNCTION pg_temp.ask(p_n integer, p_kind text, p_subject text, p_argument text DEFAULT NULL) RETURNS text LANGUAGE sql AS $$ SELECT state FROM reports.ask(pg_temp.id(p_n), p_kind, p_subject, p_argument, '1 min') $$;
CREATE FUNCTION pg_temp.answer(p_n integer, p_generation integer DEFAULT 1) RETURNS text LANGUAGE sql AS $$
    SELECT format('SELECT verdict || coalesce('' '' || answer, '''') FROM reports.answer_request(%s, %L, gen_random_uuid())', pg_temp.authority(p_generation), pg_temp.id(p_n))
$$;

-- An outcome on its way: its job is still open, and nobody waits for it.
SELECT is(pg_temp.run('leader', pg_temp.plan('allow forbid queue replace', '1')), 'ok allow forbid queue replace 4', '(a firing of each)');
SELECT is(pg_temp.run('a', pg_temp.claim('a', s, '1')), '1', format('(the job of %s runs)', s)) FROM unnest('{forbid,queue,replace}'::text[]) s;
SELECT is(pg_temp.run('a', 'BEGIN'), 'done', '(a begins)');
SELECT is(pg_temp.run('a', pg_temp.outcome(s, '1')), 'succeeded', format('(%s ends, and is not committed yet)', s)) FROM unnest('{forbid,replace}'::text[]) s;
SELECT is(pg_temp.run('leader', pg_temp.plan('allow forbid queue replace', '2')), 'ok allow forbid queue 2', 'whose open job is held by another session, and would be replaced, is left for the next round; the others go on');
SELECT is(pg_temp.jobs('forbid') || '; ' || pg_temp.jobs('queue'), '1 running; 1 running, 2 waiting for overlap', 'to the others it is open until that commits');
SELECT is((SELECT firings FROM reports.schedule_gap WHERE schedule = 'conc-forbid' AND reason = 'overlap_forbid'), 1::bigint, 'a firing that is forbidden lies in a gap');
SELECT is(pg_temp.run('leader', 'LISTEN report_work'), 'done', '(the leader listens)');
SELECT is(pg_temp.run('a', pg_temp.outcome('queue', '1')), 'succeeded', '(queue ends, while another waits for it)');
SELECT is(pg_temp.run('a', 'COMMIT'), 'done', '(a commits)');
SELECT is(pg_temp.told('leader'), 'report_work conc', 'the leader is woken, since something waits for it');
SELECT is(pg_temp.run('leader', pg_temp.tend()), 'ok 1', 'and lets it go');
SELECT is(pg_temp.run('leader', pg_temp.plan('forbid replace', '3')), 'ok forbid replace 2', 'what was left is planned');
SELECT is(pg_temp.run('a', pg_temp.claim('a', 'forbid', '3')) || pg_temp.run('a', pg_temp.outcome('forbid', '3')), '1succeeded', '(a job that nothing waits for ends)');
SELECT is(pg_temp.told('leader', false), NULL, 'of which the leader is not told');

-- A claim on its way of the job that is to be replaced.
SELECT is(pg_temp.run('a', 'BEGIN'), 'done', '(a begins)');
SELECT is(pg_temp.run('a', pg_temp.claim('a', 'replace', '3')), '1', '(and claims)');
SELECT is(pg_temp.run('leader', pg_temp.plan('replace', '4')), 'ok 0', 'it is not waited for');
SELECT is(pg_temp.run('a', 'COMMIT'), 'done', '(a commits)');
SELECT is(pg_temp.run('leader', pg_temp.plan('replace', '4')), 'ok replace 1', '(the next round)');
SELECT is(pg_temp.jobs('replace'), '1 succeeded, 3 running to cancel, 4 waiting for overlap', 'then it is told to stop');
SELECT is(pg_temp.run('a', 'BEGIN'), 'done', '(a begins)');
SELECT is(pg_temp.run('a', pg_temp.outcome('replace', '3')), 'cancelled', '(its late success is on its way)');
SELECT is(pg_temp.run('leader', pg_temp.tend()), 'ok 0', 'the new one waits until that is committed');
SELECT is(pg_temp.run('a', 'COMMIT'), 'done', '(a commits)');
SELECT is(pg_temp.run('leader', pg_temp.tend()) || ' ' || pg_temp.jobs('replace'), 'ok 1 1 succeeded, 3 cancelled, 4 queued', 'and goes then');

-- A trigger and the schedule's own firing under forbid.
SELECT is(pg_temp.ask(1, 'trigger', 'conc-forbid', 'hand'), 'pending', '(a firing is asked for)');
SELECT is(pg_temp.run('leader', 'BEGIN'), 'done', '(the leader begins)');
SELECT is(pg_temp.run('leader', pg_temp.answer(1)), 'ok occurrence conc-forbid:hand made', 'it is made, and not committed yet');
SELECT is(pg_temp.run('again', pg_temp.plan('forbid', '5')), 'ok 0', 'another connection of the leader plans nothing of that schedule meanwhile');
SELECT is(pg_temp.run('leader', 'COMMIT'), 'done', '(the leader commits)');
SELECT is(pg_temp.run('again', pg_temp.plan('forbid', '5')), 'ok forbid 0', 'and afterwards knows of it');
-- The other way round.
SELECT is(pg_temp.run('a', pg_temp.claim('a', 'forbid', 'hand')) || pg_temp.run('a', pg_temp.outcome('forbid', 'hand')), '1succeeded', '(it ends)');
SELECT is(pg_temp.ask(2, 'trigger', 'conc-forbid', 'hand2'), 'pending', '(another is asked for)');
SELECT is(pg_temp.run('again', 'BEGIN'), 'done', '(the other connection begins)');
SELECT is(pg_temp.run('again', pg_temp.plan('forbid', '6')), 'ok forbid 1', 'the schedule fires, and it is not committed yet');
SELECT is(pg_temp.run('leader', pg_temp.answer(2)), 'skipped', 'the request is passed over');
SELECT is(pg_temp.run('again', 'COMMIT'), 'done', '(it commits)');
SELECT is(pg_temp.run('leader', pg_temp.answer(2)), 'ok schedule "conc-forbid" forbids overlap, and its job conc-forbid:6 is queued: wait for it to end, or cancel it', 'and answered afterwards');

-- Rows that others hold: requests are passed over, and asked again.
SELECT is(pg_temp.ask(3, 'cancel', 'conc-forbid:6') || pg_temp.ask(4, 'pause', 'conc-forbid') || pg_temp.ask(5, 'retry', 'conc-replace:3'), 'pendingpendingpending', '(requests)');
SELECT is(pg_temp.run('user', 'BEGIN'), 'done', '(somebody begins)');
SELECT is(pg_temp.run('user', format('SELECT count(*) FROM (SELECT FROM reports.job WHERE id IN (%L, %L) FOR UPDATE) x', pg_temp.id_of('forbid', '6'), pg_temp.id_of('replace', '3'))), '2', '(holds two jobs)');
SELECT is(pg_temp.run('user', $$UPDATE reports.schedule SET description = 'x' WHERE name = 'conc-forbid'$$), 'done', '(and edits a schedule)');
SELECT is(pg_temp.run('leader', pg_temp.answer(n)), 'skipped', format('%s is passed over', kind)) FROM (VALUES (3, 'cancel'), (4, 'pause'), (5, 'retry')) t (n, kind);
UPDATE reports.request SET deadline = clock_timestamp() - interval '1 s' WHERE id = pg_temp.id(4);
SELECT is(pg_temp.run('leader', pg_temp.answer(4)), format('ok not carried out before its deadline: the row of schedule "conc-forbid" is held by the session with pid %s; let it commit, or end it, and ask again with a fresh request id', pg_temp.pid('user')),
          'a pause that expires says who held the row');
-- What was asked later of the same schedule or job comes after it.
SELECT is(pg_temp.ask(7, 'retry', pg_temp.id_of('forbid', '6')::text) || pg_temp.ask(8, 'pause', 'conc-queue') || pg_temp.ask(9, 'resume', 'conc-queue'), 'pendingpendingpending', '(requests behind others)');
SELECT is(pg_temp.run('leader', pg_temp.answer(7)), 'skipped', 'a retry is not answered before the cancel of the same job, however that is named');
SELECT is(pg_temp.run('leader', pg_temp.answer(9)), 'skipped', 'nor a resume before the pause');
SELECT is(pg_temp.run('leader', pg_temp.answer(8)), 'ok schedule "conc-queue" is paused', 'the pause, of which nothing is held, is');
SELECT is(pg_temp.run('leader', pg_temp.answer(9)), 'ok schedule "conc-queue" is resumed', 'and then the resume');
DELETE FROM reports.schedule_change WHERE schedule = 'conc-queue';
-- Who holds the row is named when a request expires.
UPDATE reports.request SET deadline = clock_timestamp() - interval '1 s' WHERE id = pg_temp.id(7);
SELECT is(pg_temp.run('leader', pg_temp.answer(7)), format('ok not carried out before its deadline: request %s, asked earlier of the same job, is not answered yet; wait for that, and ask again with a fresh request id', pg_temp.id(3)), 'one that expires behind another says so');
SELECT is(pg_temp.ask(10, 'cancel', 'conc-replace:3') || pg_temp.ask(11, 'trigger', 'conc-replace', 'late') || pg_temp.ask(12, 'trigger', 'conc-queue', 'late'), 'pendingpendingpending', '(more requests)');
UPDATE reports.request SET deadline = clock_timestamp() - interval '1 s' WHERE id IN (pg_temp.id(5), pg_temp.id(10), pg_temp.id(11), pg_temp.id(12));
SELECT is(pg_temp.run('leader', pg_temp.answer(10)), format('ok not carried out before its deadline: the row of job conc-replace:3 is held by the session with pid %s; let it commit, or end it, and ask again with a fresh request id', pg_temp.pid('user')), 'a cancel says who holds the job');
SELECT is(pg_temp.run('user', $$SELECT count(*) FROM (SELECT FROM reports.schedule_progress WHERE schedule = 'conc-replace' FOR UPDATE) x$$), '1', '(the progress is held, too)');
SELECT is(pg_temp.run('leader', pg_temp.answer(11)), format('ok not carried out before its deadline: the progress of schedule "conc-replace" is held by the session with pid %s; let it commit, or end it, and ask again with a fresh request id', pg_temp.pid('user')), 'a trigger who holds the progress');
SELECT is(pg_temp.run('leader', pg_temp.answer(12)), 'ok no leader carried it out before its deadline; ask again with a fresh request id', 'that nobody led is said where nobody did');
UPDATE reports.fence SET activated_at = clock_timestamp() - interval '1 hour' WHERE scope = 'conc';
UPDATE reports.request SET state = 'pending', answered_at = NULL WHERE id = pg_temp.id(12);
SELECT matches(pg_temp.run('leader', pg_temp.answer(12)), '^ok not carried out before its deadline, although there was a leader: a row that it needs was held', 'and not where somebody did');
UPDATE reports.request SET deadline = clock_timestamp() + interval '1 min' WHERE id = pg_temp.id(5);
SELECT is(pg_temp.run('user', 'ROLLBACK'), 'done', '(the user is back)');
SELECT is(pg_temp.run('leader', pg_temp.answer(3)), 'ok job conc-forbid:6 was queued and is cancelled', 'then the others are carried out');
SELECT is(pg_temp.run('leader', pg_temp.answer(5)), 'ok job conc-replace:3 is waiting for overlap again, with 3 more attempts', 'each of them');

-- An open psql on what users write blocks nothing.
SELECT is(pg_temp.run('user', 'BEGIN'), 'done', '(a user begins)');
SELECT is(pg_temp.run('user', $$UPDATE reports.queue SET max_outstanding = 1 WHERE name LIKE 'conc%'$$), 'done', '(edits the bounds of queues)');
SELECT is(pg_temp.run('user', $$UPDATE reports.scope SET catch_up_max = 1 WHERE name = 'conc'$$), 'done', '(and the budget, and goes for lunch)');
SELECT is(pg_temp.run('leader', pg_temp.plan('allow forbid queue replace', '7')), 'ok allow forbid queue replace 4', 'planning goes on');
SELECT is(pg_temp.run('leader', pg_temp.tend()), 'ok 0', 'and tending');
SELECT is(pg_temp.run('user', 'ROLLBACK'), 'done', '(the user is back)');

-- An edit of the policy is left for later while an open job is held: passed over, that would be overlapped.
CREATE FUNCTION pg_temp.take_in(p_schedule text) RETURNS text LANGUAGE sql AS $$
    SELECT format('SELECT verdict || taken::text FROM reports.take_in(%s, %L, %L, %L, %L, ARRAY[clock_timestamp()], ARRAY[clock_timestamp()], ''{NULL}'', ''{0}'', ''{minute}'', ''{NULL}'', ''{x}'')',
                  pg_temp.authority(1), ARRAY[p_schedule], ARRAY[c.id], ARRAY[c.version], ARRAY[p.step])
      FROM reports.schedule_change c JOIN reports.schedule_progress p USING (schedule) WHERE c.schedule = p_schedule
$$;
UPDATE reports.schedule SET overlap = 'queue' WHERE name = 'conc-allow';
SELECT is(pg_temp.run('user', 'BEGIN'), 'done', '(somebody begins)');
SELECT is(pg_temp.run('user', format('SELECT count(*) FROM (SELECT FROM reports.job WHERE id = %L FOR UPDATE) x', pg_temp.id_of('allow', '7'))), '1', '(holds one of the jobs)');
SELECT is(pg_temp.run('leader', pg_temp.take_in('conc-allow')), 'ok{}', 'then the edit is passed over at once, so that it holds up no other');
SELECT is(pg_temp.run('leader', pg_temp.plan('allow forbid queue replace', '7b')), 'ok allow forbid queue replace 3', 'planning goes on, under the policy that is in force');
SELECT is(pg_temp.run('user', 'ROLLBACK'), 'done', '(the lock is gone)');
SELECT is(pg_temp.run('leader', pg_temp.take_in('conc-allow')), 'ok{conc-allow}', 'then it is taken in');
SELECT is((SELECT string_agg(DISTINCT overlap, ' ') FROM reports.job WHERE schedule = 'conc-allow' AND state = 'queued'), 'queue', 'and all its open jobs follow');
UPDATE reports.schedule SET overlap = 'allow' WHERE name = 'conc-allow';
SELECT is(pg_temp.run('leader', pg_temp.take_in('conc-allow')), 'ok{conc-allow}', '(and back)');

-- A takeover while a batch is on its way: the next leader waits for it, and goes on from what it made.
SELECT is(pg_temp.run('a', pg_temp.claim('a', 'queue', '2')) || pg_temp.run('a', pg_temp.claim('a', 'replace', '7b')), '11', '(two jobs run)');
SELECT is(pg_temp.run('leader', 'BEGIN'), 'done', '(the leader begins)');
SELECT is(pg_temp.run('leader', pg_temp.plan('queue replace', '8')), 'ok queue replace 2', '(and plans)');
SELECT is(pg_temp.run('next', 'SET lock_timeout = ''10s'''), 'done', '(the next has patience)');
DO $$ BEGIN PERFORM pg_temp.send('next', replace(pg_temp.establish(2), 'verdict', 'verdict')); END $$;
SELECT ok(pg_temp.waits(pg_temp.pid('next')), 'the next leader waits');
SELECT is(pg_temp.run('leader', 'COMMIT'), 'done', '(the batch is committed)');
SELECT is(pg_temp.receive('next'), 'established', 'then it leads');
SELECT is(pg_temp.run('leader', pg_temp.plan('forbid', '9')), 'fenced 0', 'the former plans nothing');
SELECT is(pg_temp.run('leader', pg_temp.tend()), 'fenced 0', 'lets nothing go');
SELECT is(pg_temp.ask(6, 'cancel', 'conc-queue:2') || ' ' || pg_temp.run('leader', pg_temp.answer(6)), 'pending fenced', 'and answers nothing');
SELECT is(pg_temp.run('a', pg_temp.outcome('queue', '2')) || ' ' || pg_temp.run('a', pg_temp.outcome('replace', '7b')), 'succeeded cancelled', 'workers are not concerned: what is to be replaced is cancelled');
SELECT is(pg_temp.run('next', pg_temp.tend(2)), 'ok 2', 'the next leader lets go what waited for them');
SELECT matches(pg_temp.jobs('queue') || '; ' || pg_temp.jobs('replace'), '^1 succeeded, 2 succeeded, 7 queued, 7b waiting for overlap, 8 waiting for overlap; .*7b cancelled, 8 queued$', 'one of each schedule');
SELECT is(pg_temp.run('next', pg_temp.answer(6, 2)), 'ok job conc-queue:2 is succeeded since ' || date_trunc('second', finished_at) || ': only an open job can be cancelled', 'and answers what the former left') FROM reports.job WHERE id = pg_temp.id_of('queue', '2');

-- A storm. Two connections plan and tend for the leader (one of them as after a lost answer), requests
-- trigger, cancel and retry, three workers claim, finish and fail, and a takeover comes in between.
UPDATE reports.job SET state = 'cancelled', finished_at = clock_timestamp(), waits_for = NULL WHERE scope = 'conc' AND state IN ('waiting', 'queued', 'retry_wait');
UPDATE reports.schedule SET queue = 'conc-narrow', retry_base = '0' WHERE scope = 'conc';
UPDATE reports.schedule_version SET queue = 'conc-narrow', retry_base = '0' WHERE scope = 'conc';
UPDATE reports.scope SET description = 'storm', catch_up_max = 2 WHERE name = 'conc';
CREATE FUNCTION pg_temp.leader_storm(p_generation integer, p_rounds integer) RETURNS text LANGUAGE sql AS $$
    SELECT format($q$DO $do$
    DECLARE
        p record;
        r record;
        answer text;
        request uuid;
        verdict text := 'ok';
    BEGIN
        FOR round IN 1 .. %2$s LOOP
            SELECT array_agg(x.schedule) AS s, array_agg(x.version) AS v, array_agg(x.step) AS t, count(*)::integer AS n INTO p FROM reports.schedule_progress x WHERE x.scope = 'conc';
            COMMIT;
            SELECT b.verdict INTO verdict FROM reports.plan_batch(%1$s, p.s, p.v, p.t, array_fill(now(), ARRAY[p.n]), array_fill(now()::timestamp, ARRAY[p.n]), array_fill(0, ARRAY[p.n]), array_fill(now(), ARRAY[p.n]), array_fill(now()::timestamp, ARRAY[p.n]),
                   array_fill(0, ARRAY[p.n]), 'x', p.s, array_fill(gen_random_uuid()::text, ARRAY[p.n]), ARRAY(SELECT gen_random_uuid() FROM unnest(p.s)), array_fill(now(), ARRAY[p.n]), array_fill(now()::timestamp, ARRAY[p.n]), array_fill(0, ARRAY[p.n]),
                   array_fill(NULL::date, ARRAY[p.n]), array_fill(now(), ARRAY[p.n]), array_fill(CASE WHEN round %% 3 = 0 THEN 'misfire' ELSE 'schedule' END, ARRAY[p.n]), '{}', '{}', '{}', '{}', '{}', '{}', '{}') b;
            COMMIT;
            EXIT WHEN verdict = 'fenced';
            request := gen_random_uuid();
            BEGIN
                CASE round %% 4
                WHEN 0 THEN PERFORM reports.ask(request, 'trigger', p.s[1 + round %% p.n], NULL, '1 min');
                WHEN 1 THEN PERFORM reports.ask(request, 'cancel', (SELECT j.id::text FROM reports.job j WHERE j.scope = 'conc' AND j.state IN ('waiting', 'queued', 'running', 'retry_wait') ORDER BY random() LIMIT 1), NULL, '1 min');
                ELSE PERFORM reports.ask(request, 'retry', (SELECT j.id::text FROM reports.job j WHERE j.scope = 'conc' AND j.state IN ('failed', 'cancelled') ORDER BY random() LIMIT 1), NULL, '1 min');
                END CASE;
            EXCEPTION WHEN no_data_found THEN
                NULL; -- there was none
            END;
            COMMIT;
            SELECT a.verdict INTO verdict FROM reports.answer_request(%1$s, request, gen_random_uuid()) a;
            COMMIT;
            EXIT WHEN verdict = 'fenced';
            SELECT t.verdict INTO verdict FROM reports.tend(%1$s, 100) t;
            COMMIT;
            EXIT WHEN verdict = 'fenced';
        END LOOP;
    END $do$ $q$, pg_temp.authority(p_generation), p_rounds)
$$;
CREATE FUNCTION pg_temp.worker_storm(p_worker text) RETURNS text LANGUAGE sql AS $$
    SELECT format($q$DO $do$
    DECLARE
        me uuid := %L;
        ids uuid[];
        tokens uuid[];
    BEGIN
        FOR round IN 1 .. 1000000 LOOP
            EXIT WHEN (SELECT description FROM reports.scope WHERE name = 'conc') = 'over';
            COMMIT;
            PERFORM reports.claim_ready(me, '{conc-narrow,conc}', 2);
            COMMIT;
            SELECT array_agg(j.id), array_agg(j.attempt_token) INTO ids, tokens FROM reports.job j WHERE j.worker = me AND j.state = 'running';
            COMMIT;
            IF ids IS NULL THEN
                PERFORM pg_sleep(0.002);
                CONTINUE;
            END IF;
            PERFORM reports.heartbeat(me, ids, tokens);
            COMMIT;
            PERFORM reports.record_outcomes(ids, tokens, ARRAY(SELECT (ARRAY['succeeded', 'succeeded', 'failed', 'handed_back'])[1 + floor(random() * 4)] FROM unnest(ids)), array_fill(round %% 5 > 0, ARRAY[cardinality(ids)]), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
            COMMIT;
        END LOOP;
    END $do$ $q$, pg_temp.w(p_worker))
$$;
-- The worst that any snapshot shows: outstanding in the queue, catching up, active of a schedule that does not allow overlap.
CREATE FUNCTION pg_temp.eye() RETURNS text LANGUAGE sql AS $$
    SELECT $q$DO $do$
    DECLARE
        seen record;
        worst integer[] := '{0,0,0,0}';
    BEGIN
        FOR round IN 1 .. 1000000 LOOP
            EXIT WHEN (SELECT description FROM reports.scope WHERE name = 'conc') = 'over';
            COMMIT;
            SELECT count(*) FILTER (WHERE j.state IN ('queued', 'running')) AS outstanding, count(*) FILTER (WHERE j.state IN ('queued', 'running') AND j.catch_up) AS catching_up,
                   (SELECT coalesce(max(a.n), 0) FROM (SELECT count(*) AS n FROM reports.job o WHERE o.scope = 'conc' AND o.overlap <> 'allow' AND o.state IN ('waiting', 'queued', 'running', 'retry_wait') AND o.waits_for IS DISTINCT FROM 'overlap'
                                                       GROUP BY o.schedule) a) AS active
              INTO seen FROM reports.job j WHERE j.scope = 'conc' AND j.queue = 'conc-narrow';
            COMMIT;
            worst := ARRAY[greatest(worst[1], seen.outstanding), greatest(worst[2], seen.catching_up), greatest(worst[3], seen.active), round];
            PERFORM pg_sleep(0.002);
        END LOOP;
        UPDATE reports.queue SET description = array_to_string(worst, ' ') WHERE name = 'conc-narrow';
    END $do$ $q$::text
$$;
SELECT is(pg_temp.run('eye', 'SET jit = off'), 'done', '(an onlooker)');
SELECT is(pg_temp.run(name, 'SET lock_timeout = ''10s'''), 'done', format('(%s has patience)', name)) FROM pid WHERE name IN ('leader', 'again', 'next');
DO $$ BEGIN PERFORM pg_temp.send('eye', pg_temp.eye()), pg_temp.send('next', pg_temp.leader_storm(2, 40)), pg_temp.send('again', pg_temp.leader_storm(2, 100000)); PERFORM pg_temp.send(name, pg_temp.worker_storm(name)) FROM unnest('{a,b,c}'::text[]) name; END $$;
SELECT is(pg_temp.receive('next'), 'DO', 'the leader comes through its rounds without an error');
SELECT is(pg_temp.run('leader', pg_temp.establish(3)), 'established', 'another takes over in the middle of it');
SELECT is(pg_temp.receive('again'), 'DO', 'whereupon the other connection of the former ends, fenced');
DO $$ BEGIN PERFORM pg_temp.send('leader', pg_temp.leader_storm(3, 40)); END $$;
SELECT is(pg_temp.receive('leader'), 'DO', 'the new leader comes through its rounds');
UPDATE reports.scope SET description = 'over' WHERE name = 'conc';
SELECT is(pg_temp.receive(name), 'DO', format('%s comes through without a deadlock', name)) FROM unnest('{a,b,c,eye}'::text[]) name;
CREATE TEMP TABLE worst AS SELECT string_to_array(description, ' ')::integer[] AS n FROM reports.queue WHERE name = 'conc-narrow';
SELECT is(n[1], 3, 'never were more than max_outstanding jobs queued and running, and all the room was used') FROM worst;
SELECT cmp_ok(n[2], '<=', 2, 'never more than the budget catching up') FROM worst;
SELECT is(n[3], 1, 'never two jobs of a schedule that does not allow overlap active') FROM worst;
SELECT cmp_ok(n[4], '>', 50, 'as was looked at often enough') FROM worst;
SELECT cmp_ok((SELECT count(*) FROM reports.job WHERE scope = 'conc' AND queue = 'conc-narrow' AND state = 'succeeded'), '>', 50::bigint, 'work was done');
-- Nothing is lost: let all that is open run to its end.
DO $$
DECLARE
    worker uuid := pg_temp.w('a');
BEGIN
    UPDATE reports.job SET run_after = clock_timestamp() WHERE scope = 'conc' AND state = 'retry_wait';
    FOR round IN 1 .. 3000 LOOP
        EXIT WHEN NOT EXISTS (SELECT FROM reports.job WHERE scope = 'conc' AND state IN ('waiting', 'queued', 'running', 'retry_wait'));
        PERFORM pg_temp.run('leader', pg_temp.tend(3));
        PERFORM reports.claim_ready(worker, '{conc-narrow,conc}', 10);
        PERFORM reports.record_outcomes(ARRAY[j.id], ARRAY[j.attempt_token], '{succeeded}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) FROM reports.job j WHERE j.scope = 'conc' AND j.state = 'running';
        COMMIT;
    END LOOP;
END
$$;
SELECT is_empty($$SELECT FROM reports.job WHERE scope = 'conc' AND state NOT IN ('succeeded', 'failed', 'cancelled')$$, 'what waits comes to its turn, to the last');
SELECT is_empty($$SELECT FROM reports.occurrence o FULL JOIN reports.job j ON j.id = o.job_id WHERE coalesce(o.scope, j.scope) = 'conc' AND (o.job_id IS NULL OR j.id IS NULL)$$, 'each occurrence has its one job');
SELECT cmp_ok((SELECT count(*) FROM reports.outbox m WHERE m.scope = 'conc'), '>=', (SELECT count(*) FROM reports.job WHERE scope = 'conc' AND attempt > 0), 'and each that ran its message');

SELECT * FROM finish();
SELECT dblink_disconnect(name) FROM pid WHERE name = ANY (dblink_get_connections());
CALL pg_temp.sweep();
