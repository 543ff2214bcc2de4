-- The clock guard: which testimonies make a hold, who is believed, and what lifts it. This server's clock cannot be
-- stepped here, so that the samples before a step are written as it would have left them.
BEGIN;
\ir fixture.psql
SELECT no_plan();

DELETE FROM reports.member_clock;
UPDATE reports.hold SET lifted_at = clock_timestamp(), lifted_by = 'tap' WHERE lifted_at IS NULL;

-- A sample of member p_member on machine p_boot, p_ago seconds ago by this clock, when that of the machine showed p_boot_s.
CREATE FUNCTION pg_temp.was(p_member text, p_boot text, p_ago numeric, p_boot_s numeric) RETURNS void LANGUAGE sql AS $$
    INSERT INTO reports.member_clock (at, member, boot, boot_us, offset_us, round_trip_us)
    VALUES (clock_timestamp() - p_ago * interval '1 second', p_member, p_boot, p_boot_s * 1000000, 0, 500)
$$;
-- It brings one now, and gets its verdict.
CREATE FUNCTION pg_temp.brings(p_member text, p_boot text, p_boot_s numeric, p_offset_s numeric DEFAULT 0, p_synchronised boolean DEFAULT false) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', verdict, round(step_us / 1000000.0), CASE WHEN hold IS NOT NULL THEN 'held' END, CASE WHEN lifted THEN 'lifted' END)
      FROM reports.note_clock(p_member, p_boot, clock_timestamp(), p_boot_s::bigint * 1000000, (p_offset_s * 1000000)::bigint, 500, p_synchronised)
$$;
CREATE FUNCTION pg_temp.holds() RETURNS text LANGUAGE sql AS $$
    SELECT coalesce(string_agg(format('%s by %s: %s s', cause, raised_by, round(step_us / 1000000.0)), ', ' ORDER BY id), 'none') FROM reports.hold WHERE lifted_at IS NULL
$$;
-- All that was is longer ago.
CREATE FUNCTION pg_temp.pass(p_s numeric) RETURNS void LANGUAGE sql AS $$ UPDATE reports.member_clock SET at = at - p_s * interval '1 second' $$;
CREATE FUNCTION pg_temp.anew() RETURNS void LANGUAGE sql AS $$
    DELETE FROM reports.member_clock; DELETE FROM reports.hold
$$;

-- No step.
SELECT pg_temp.was('a', 'A', 15, 100);
SELECT is(pg_temp.brings('a', 'A', 115), 'noted', 'both clocks went equally far');
SELECT is(pg_temp.brings('a', 'A', 115), 'stale', 'one sample a second is enough');
SELECT is((SELECT verdict FROM reports.note_clock('a', 'A', clock_timestamp() - interval '6 seconds', 130000000, 0, 500, false)), 'stale', 'one that is not of now proves nothing');
SELECT is((SELECT count(*) FROM reports.member_clock), 2::bigint, 'neither is written');
SELECT is(pg_temp.brings('new', 'N', 5), 'noted', 'a first sample compares with nothing');
SELECT is(pg_temp.holds(), 'none', '(no hold)');
SELECT pg_temp.anew(), pg_temp.was('a', 'A', 3600, 100);
SELECT is(pg_temp.brings('a', 'A', 3701), 'noted', 'drift is none');
SELECT pg_temp.anew(), pg_temp.was('a', 'A', 15, 100);
SELECT is(pg_temp.brings('a', 'B', 5), 'noted', 'nor is a machine that was booted: its clock began anew');

-- Alone: believed at once.
SELECT pg_temp.anew(), pg_temp.was('a', 'A', 7215, 100);
SELECT is(pg_temp.brings('a', 'A', 115), 'raised 7200 held', 'a machine that is alone is believed');
SELECT is(pg_temp.holds(), 'clock_hold by a: 7200 s', 'the installation is held');
SELECT matches(hold, '^clock_hold, hold \d+: PostgreSQL''s clock was stepped 7200.* s forward, by the clock of member a', 'whoever asks is told') FROM reports.fence_read('tap');
SELECT is((SELECT verdict FROM reports.establish('tap', 1, 900, md5('900')::uuid, 'm')), 'held', 'nobody is established');
SELECT is((SELECT count(*) FROM reports.leadership_event WHERE event = 'hold_raised' AND reason = 'clock_hold' AND scope = 'tap'), 1::bigint, 'it stands in the diary of each scope');
SELECT pg_temp.anew(), pg_temp.was('a', 'A', -7200, 100);
SELECT is(pg_temp.brings('a', 'A', 115), 'raised -7215 held', 'the same for a step back');
-- Two replicas of one machine are one witness.
SELECT pg_temp.anew(), pg_temp.was('a', 'A', 75, 100), pg_temp.was('b', 'A', 75, 100);
SELECT is(pg_temp.brings('a', 'A', 115), 'raised 60 held', 'another replica of the same machine is no other witness');
SELECT is(pg_temp.brings('b', 'A', 115), 'known 60 held', 'its testimony of the same step makes no second hold');
SELECT is(pg_temp.holds(), 'clock_hold by a: 60 s', 'nor a larger one');

-- With others: they are waited for.
SELECT pg_temp.anew(), pg_temp.was('b', 'B', 80, 500), pg_temp.was('a', 'A', 75, 100);
SELECT is(pg_temp.brings('a', 'A', 115), 'waits 60', 'while another machine gives signs of life one testimony raises nothing');
SELECT is(pg_temp.holds(), 'none', '(no hold)');
SELECT is(pg_temp.brings('a', 'A', 117), 'waits 60', 'it goes on waiting');
SELECT is(pg_temp.brings('b', 'B', 521), 'raised 59 held', 'the other one saw the same: a hold');
SELECT is(pg_temp.brings('a', 'A', 119), 'known 60 held', 'which the first one is told');
SELECT is(pg_temp.brings('a', 'A', 121), 'noted held', 'once');
SELECT pg_temp.anew(), pg_temp.was('b', 'B', 80, 500), pg_temp.was('a', 'A', 75, 100);
SELECT is(pg_temp.brings('a', 'A', 115), 'waits 60', '(the same again)');
SELECT is(pg_temp.brings('b', 'B', 580), 'noted', 'the other one saw no step: its machine did not stop');
SELECT is(pg_temp.brings('a', 'A', 117), 'own 60', 'so it was the first one''s own, and nobody is held');
SELECT is(pg_temp.holds(), 'none', 'by it');
SELECT pg_temp.anew(), pg_temp.was('b', 'B', 80, 500), pg_temp.was('a', 'A', 75, 100);
SELECT is(pg_temp.brings('a', 'A', 115), 'waits 60', '(and again)');
SELECT is(pg_temp.brings('c', 'C', 1) || ', ' || pg_temp.brings('c', 'C', 3), 'noted, noted', 'one that came after the step refutes nothing');
SELECT is(pg_temp.brings('a', 'A', 117), 'waits 60', 'so that it is still waited for the other');
SELECT pg_temp.pass(16);
SELECT is(pg_temp.brings('a', 'A', 133), 'waits 60', '(still)');
SELECT pg_temp.pass(3);
SELECT is(pg_temp.brings('a', 'A', 136), 'raised 60 held', 'for 20 seconds: it died, or lost the database');
SELECT pg_temp.anew(), pg_temp.was('b', 'B', 600, 500), pg_temp.was('a', 'A', 75, 100);
SELECT is(pg_temp.brings('a', 'A', 115), 'raised 60 held', 'one that was silent for minutes is not waited for');
SELECT pg_temp.anew(), pg_temp.was('c', 'C', 90, 691), pg_temp.was('b', 'B', 80, 500), pg_temp.was('c', 'C', 81, 700), pg_temp.was('a', 'A', 75, 100);
SELECT is(pg_temp.brings('a', 'A', 115), 'waits 60', '(three machines)');
SELECT is(pg_temp.brings('b', 'B', 551), 'waits 29', 'a step of another size is no confirmation');
SELECT is(pg_temp.brings('c', 'C', 781), 'noted', '(the third saw none)');
SELECT is(pg_temp.brings('a', 'A', 117) || ', ' || pg_temp.brings('b', 'B', 553), 'own 60, own 29', 'two whose machines were stopped hold nobody');

-- Lifting: three samples over ten seconds. They are written as if time had passed.
CREATE FUNCTION pg_temp.stepped(p_s numeric) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_temp.anew();
    PERFORM pg_temp.was('a', 'A', p_s + 35, 100);
    INSERT INTO reports.member_clock (at, member, boot, boot_us, offset_us, round_trip_us, step_us, verdict)
    VALUES (clock_timestamp() - interval '20 seconds', 'a', 'A', 115000000, 0, 500, p_s * 1000000, 'raised');
    INSERT INTO reports.hold (cause, reason, raised_by, step_us, stepped_at, evidence)
    SELECT 'clock_hold', 'stepped', 'a', step_us, at, id FROM reports.member_clock WHERE step_us IS NOT NULL;
END
$$;
SELECT pg_temp.stepped(60), pg_temp.was('a', 'A', 10, 125);
SELECT is(pg_temp.brings('a', 'A', 135), 'noted held', 'two samples over ten seconds are too few');
SELECT pg_temp.stepped(60), pg_temp.was('a', 'A', 8, 127), pg_temp.was('a', 'A', 4, 131);
SELECT is(pg_temp.brings('a', 'A', 135), 'noted held', 'three over eight too short');
SELECT pg_temp.stepped(60), pg_temp.was('a', 'A', 10, 125), pg_temp.was('a', 'A', 5, 130);
SELECT is(pg_temp.brings('a', 'A', 135), 'noted lifted', 'three over ten lift a hold for a minute''s step');
SELECT is((SELECT lifted_by FROM reports.hold), 'a', 'which says by whom');
SELECT ok(EXISTS (SELECT FROM reports.leadership_event WHERE event = 'hold_lifted' AND reason = 'clock_hold' AND scope = 'tap' AND member = 'a'), 'as the diary does');
SELECT is(pg_temp.brings('a', 'A', 137), 'noted', 'then nothing stands');
SELECT pg_temp.stepped(60), pg_temp.was('b', 'B', 10, 25), pg_temp.was('b', 'B', 5, 30);
SELECT is(pg_temp.brings('b', 'B', 35), 'noted lifted', 'any candidate lifts it, also one that came later');
SELECT pg_temp.stepped(60), pg_temp.was('a', 'A', 10, 125), pg_temp.was('a', 'A', 5, 130);
SELECT is(pg_temp.brings('a', 'A', 235), 'raised -100 held', 'a further step adds to the hold');
SELECT is(pg_temp.holds() || ' of ' || (SELECT count(*) FROM reports.hold), 'clock_hold by a: -40 s of 1', 'that stands');
SELECT is(pg_temp.brings('a', 'A', 237), 'noted held', 'and what was consistent before counts no more');
-- Above five minutes the clock must be right, too.
SELECT pg_temp.stepped(7200), pg_temp.was('a', 'A', 10, 125), pg_temp.was('a', 'A', 5, 130);
SELECT is(pg_temp.brings('a', 'A', 135, 0, NULL), 'noted held', 'two hours forward: one machine that does not know whether it is synchronised is not enough');
SELECT is(pg_temp.brings('a', 'A', 136, 0, false), 'noted held', 'nor is one that knows it is not');
SELECT is(pg_temp.brings('a', 'A', 137, 0, true), 'noted lifted', 'one whose kernel says that it is confirms the clock');
SELECT pg_temp.stepped(7200), pg_temp.was('a', 'A', 10, 125), pg_temp.was('a', 'A', 5, 130), pg_temp.brings('b', 'A', 600);
SELECT is(pg_temp.brings('a', 'A', 135), 'noted held', 'two replicas of one machine are one');
SELECT pg_temp.stepped(7200), pg_temp.was('a', 'A', 10, 125), pg_temp.was('a', 'A', 5, 130), pg_temp.brings('b', 'B', 600);
SELECT is(pg_temp.brings('a', 'A', 135), 'noted lifted', 'two machines that agree are');
SELECT pg_temp.stepped(7200), pg_temp.was('a', 'A', 10, 125), pg_temp.was('a', 'A', 5, 130), pg_temp.brings('b', 'B', 600, -7200, true);
SELECT is(pg_temp.brings('a', 'A', 135, -7200, true), 'noted held', 'machines that show another time leave it: the clock is wrong');
SELECT pg_temp.stepped(7200), pg_temp.was('a', 'A', 10, 125), pg_temp.was('a', 'A', 5, 130), pg_temp.brings('b', 'B', 600), pg_temp.brings('c', 'C', 700);
SELECT is(pg_temp.brings('a', 'A', 135, 10000, true), 'noted lifted', 'one machine whose own clock is wrong does not stop two');
SELECT pg_temp.stepped(-7200), pg_temp.was('a', 'A', 10, 125), pg_temp.was('a', 'A', 5, 130);
SELECT is(pg_temp.brings('a', 'A', 135, 7200), 'noted held', 'two hours back: nothing is due yet that was due before');
UPDATE reports.hold SET stepped_at = stepped_at - interval '7200 seconds';
SELECT is(pg_temp.brings('a', 'A', 137, 7200), 'noted lifted', 'until the clock shows again what it had shown');
-- An operator may always.
SELECT pg_temp.stepped(7200);
DO $$ BEGIN PERFORM reports.lift_hold(id) FROM reports.hold WHERE cause = 'clock_hold'; END $$;
SELECT is(pg_temp.brings('a', 'A', 135), 'noted', 'an operator lifts it, whatever the clocks show, and it is not raised again');
SELECT pg_temp.anew(), pg_temp.was('b', 'B', 7220, 500), pg_temp.was('a', 'A', 7215, 100);
SELECT is(pg_temp.brings('a', 'A', 115) || ', ' || pg_temp.brings('b', 'B', 520), 'waits 7200, raised 7200 held', '(two testify)');
DO $$ BEGIN PERFORM reports.lift_hold(id) FROM reports.hold WHERE cause = 'clock_hold'; END $$;
SELECT is(pg_temp.brings('a', 'A', 117), 'known 7200', 'one that testified before does not raise it anew either');

SELECT results_eq($$SELECT member, last_step_us / 1000000, last_verdict FROM reports.v_member_clock ORDER BY member$$,
                  $$VALUES ('a', 7200::bigint, 'known'), ('b', 7200, 'raised')$$, 'for people: each member and its last step');
SELECT matches(pg_temp.refusal($$INSERT INTO reports.hold (cause, reason) VALUES ('clock_hold', 'x')$$), '^23514 .*step_of_clock_hold', 'such a hold names its step');

SELECT * FROM finish();
ROLLBACK;
