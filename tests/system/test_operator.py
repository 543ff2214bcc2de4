"""What an operator is told at night: how to look again, what stands all the same, what may be repeated."""

import signal
import subprocess

import pytest

import harness
from ctl import Ctl
from proof import one
from test_terminal import on_terminal


@pytest.fixture
def ctl(installation):
    c = Ctl(installation)
    c.db.execute("INSERT INTO reports.report (name, kind) VALUES ('r', 'noop')")
    c.db.execute("INSERT INTO reports.schedule (name, report, kind, rule) VALUES ('daily', 'r', 'cron', '30 6 * * *')")
    return c


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_is_cut_off_says_how_to_look_again(ctl, number):
    # Whoever runs this in the background may have it ignore SIGINT, and so would reportctl.
    process = ctl.start("trigger", "daily", "--key", "2020-04-12", "--wait", "60", prefix=("env", "--default-signal"))
    harness.wait_until(lambda: one(ctl.db, "SELECT count(*) FROM reports.request") == 1, harness.PATIENCE_S, "it is asked", [])
    process.send_signal(number)
    out, errors = process.communicate(timeout=harness.PATIENCE_S)
    asked = one(ctl.db, "SELECT id::text FROM reports.request")
    assert (process.returncode, out) == (-number, "")
    assert errors == ("\nreportctl: cut off; it may still be carried out: see with reportctl trigger daily --key 2020-04-12"
                      f" --request-id {asked}\n")


def test_a_command_under_nohup_is_not_cut_off_by_a_hangup(ctl):
    process = ctl.start("trigger", "daily", "--wait", "60", prefix=("nohup",))
    harness.wait_until(lambda: one(ctl.db, "SELECT count(*) FROM reports.request") == 1, harness.PATIENCE_S, "it is asked", [])
    process.send_signal(signal.SIGHUP)
    ctl.db.execute("UPDATE reports.request SET state = 'done', answer = 'made', answered_at = now()")
    out, errors = process.communicate(timeout=harness.PATIENCE_S)
    assert process.returncode == 0 and "made" in out + errors, out + errors


def test_who_waits_for_a_handoff_is_told_what_the_leader_waits_for(ctl, installation):
    asked = "00000000-0000-4000-8000-000000000001"
    ctl.db.execute("INSERT INTO reports.request (id, kind, scope, subject, deadline) VALUES (%s, 'handoff', 'main', 'main', now() + interval '1 hour')", (asked,))
    ctl.db.execute("INSERT INTO reports.handoff (request, scope, incarnation, generation, member, successor, begun_at)"
                   " VALUES (%s, 'main', 1, 1, 'left', 'right', now())", (asked,))
    waits = 'member "left" leads on, and waits for member "right" to be ready'
    assert [r["answer"] for r in ctl.json("requests")] == [waits]
    lines = on_terminal(installation, "handoff", "main", "--request-id", asked, "--wait", 1, ends=(4,))
    assert lines[0] == f"reportctl: {waits}" and len([x for x in lines if x == lines[0]]) == 1, lines
    ctl.db.execute("UPDATE reports.handoff SET left_at = now()")
    assert 'and member "right" does not lead yet' in ctl.json("requests")[0]["answer"]


def test_a_hold_that_is_lifted_names_those_that_stand_all_the_same(ctl):
    ctl.ok("hold", "--scope", "main", "the first")
    ctl.ok("hold", "--reason", "the second")
    ctl.ok("queue", "hold", "default", "--reason", "the third")
    lines = ctl.ok("release-hold", "1").splitlines()
    assert lines[0].startswith("hold 1 on scope main (the first, by ") and lines[0].endswith(" lifted")
    assert lines[1:] == ["still held: hold 2 on the installation (the second)"]
    assert len(ctl.ok("release-hold", "3").splitlines()) == 1  # nothing else on the queue
    assert len(ctl.ok("release-hold", "2").splitlines()) == 1


def test_a_hold_takes_its_reason_once_with_the_option_or_without(ctl):
    before = ctl.json("holds")
    assert "write it once" in ctl.refused(2, "hold", "moved", "--reason", "moved")
    assert "hold needs REASON or --reason TEXT" in ctl.refused(2, "hold", "--scope", "main")
    assert ctl.json("holds") == before


def test_a_hold_of_a_guard_is_shown_by_its_name(ctl):
    ctl.db.execute("INSERT INTO reports.hold (scope, reason, cause, mark)"
                   " VALUES ('main', 'the database forgot job x', 'database_rewound', gen_random_uuid())")
    assert "database_rewound" in ctl.ok("holds")
    problem = ctl.json("status")["problems"][0]
    assert problem["problem"] == "HELD, database_rewound: the database forgot job x"
    assert "docs/operations.md, HELD: database_rewound" in problem["remedy"]
    assert problem["remedy"].endswith("reportctl release-hold 1")
    assert "#### HELD: database_rewound" in (harness.ROOT / "docs" / "operations.md").read_text(encoding="utf-8")


def test_releasing_a_rewound_database_says_how_much_it_shows_and_what_the_policy_is(ctl):
    ctl.db.execute("INSERT INTO reports.schedule (name, report, kind, rule, misfire) SELECT 's' || n, 'r', 'cron',"
                   " CASE n WHEN 2 THEN '* * * * *' ELSE '30 6 * * *' END, CASE n WHEN 1 THEN 'skip' END FROM generate_series(1, 22) n")
    ctl.db.execute("UPDATE reports.schedule_version SET effective_from = now() - interval '1 day'")
    ctl.db.execute("INSERT INTO reports.schedule_progress (schedule, scope, version, switched_at, next_fire_at, next_nominal,"
                   " next_offset_s, key_form) SELECT 's' || n, 'main', 1, now(), now() - make_interval(mins => 100 - n), now(), 0,"
                   " CASE n WHEN 2 THEN 'minute' ELSE 'date' END FROM generate_series(1, 22) n")
    job = one(ctl.db, "INSERT INTO reports.occurrence (schedule, occurrence_key, scope, job_id, scheduled_for, cause, version,"
              " incarnation, generation) VALUES ('s1', '2030-04-12', 'main', gen_random_uuid(), now(), 'schedule', 1, 1, 1)"
              " RETURNING job_id")
    ctl.db.execute("INSERT INTO reports.job (id, schedule, occurrence_key, scope, report, queue, priority, state, run_after,"
                   " max_attempts, retry_base, retry_cap, timeout) VALUES (%s, 's1', '2030-04-12', 'main', 'r', 'default', 0,"
                   " 'queued', now(), 3, '1 s', '1 s', '1 h')", (job,))
    ctl.db.execute("INSERT INTO reports.hold (scope, reason, cause, mark) VALUES ('main', 'x', 'database_rewound', gen_random_uuid())")
    result = ctl.run("release-hold", "1")
    assert result.returncode == 2, result  # nobody to say yes
    lines = result.stdout.splitlines()
    title = next(x for x in lines if x.startswith("PLANNED AGAIN"))
    assert title == "PLANNED AGAIN, AS THE MISFIRE POLICY SAYS: 20 OF 22 SCHEDULES"
    rows = lines[lines.index(title) + 2:]
    assert [x.split()[-1] for x in rows[:3]] == ["skip", "run_latest", "run_all"]
    assert 98 <= int(rows[1].split()[-2]) <= 108, "each minute since 98 minutes, and while this test has run"
    assert int(rows[2].split()[-2]) in (0, 1), "06:30 may be among them"
    assert any(x.split() == ["queued", "1", "s1:2030-04-12", "s1:2030-04-12"] for x in lines), result.stdout


JOB = """
    WITH o AS (INSERT INTO reports.occurrence (schedule, occurrence_key, scope, job_id, scheduled_for, cause, version, incarnation,
                                               generation)
               VALUES ('daily', %(key)s, 'main', gen_random_uuid(), now(), 'manual', 1, 1, 1) RETURNING job_id)
    INSERT INTO reports.job (id, schedule, occurrence_key, scope, report, queue, priority, state, run_after, max_attempts, retry_base,
                             retry_cap, timeout, attempt, attempt_token, worker, claimed_at, lease_until, finished_at, error)
    SELECT o.job_id, 'daily', %(key)s, 'main', 'r', 'default', 0, %(state)s::reports.job_state, now(), 3, '1 s', '1 s', '1 h', 1,
           CASE WHEN %(worker)s::uuid IS NOT NULL THEN gen_random_uuid() END, %(worker)s, now() - interval '2 minutes',
           CASE WHEN %(worker)s::uuid IS NOT NULL THEN now() - interval '1 minute' END,
           CASE WHEN %(worker)s::uuid IS NULL THEN now() END, 'the worker''s claim lapsed' FROM o"""


def test_a_firing_from_before_its_schedule_that_was_run_by_hand_is_found_by_its_time(ctl):
    ctl.db.execute(JOB, {"key": "2020-04-13", "state": "succeeded", "worker": None})
    for subject in ("daily", "daily@2020-04-13", "daily@2020-04-13T06:30", "daily:2020-04-13"):
        told = ctl.json("why", subject)["why"]
        assert told["key"] == "2020-04-13", (subject, told)
        assert "asked for; an operator had asked for it" in told["answer"], (subject, told)
    assert "with the key of this time: the rule does not run it once more" in ctl.json("why", "daily:2020-04-13")["why"]["answer"]
    told = ctl.json("why", "daily@2020-04-14")["why"]
    assert told["answer"].startswith("The schedule was not there yet"), told
    assert "claim lapsed" not in ctl.ok("jobs")  # of an attempt before: it has succeeded


def test_a_job_whose_claim_has_lapsed_is_not_said_to_run(ctl):
    worker = one(ctl.db, "INSERT INTO reports.worker (id, name, pid, version, queues, slots)"
                 " VALUES (gen_random_uuid(), 'worker-1', 1, '0', '{default}', 1) RETURNING id")
    ctl.db.execute(JOB, {"key": "2020-04-13", "state": "running", "worker": worker})
    told = ctl.json("why", "daily:2020-04-13")["why"]["answer"]
    assert told.startswith("Its job was begun, attempt 1 of 3, by worker worker-1, whose claim has lapsed 1m "), told
    assert "running, lapsed" in ctl.ok("jobs")
    assert {s["state"]: s["lapsed"] for s in ctl.json("status")["jobs"]}["running"] == 1


@pytest.mark.parametrize("program, key, option, sample", [
    ("report-scheduler", "session_file", "--close-dead-session", "scheduler.conf"),
    ("report-worker", "incarnation_file", "--release-claims", "worker.conf")])
def test_a_mistyped_path_of_a_life_file_does_not_look_like_an_ordered_stop(tmp_path, program, key, option, sample):
    for directory, code in ((tmp_path / "not-there", 2), (tmp_path, 3)):
        config = tmp_path / sample
        text = (harness.ROOT / "conf" / sample).read_text(encoding="utf-8")
        config.write_text(text + f'\n{key} = "{directory}/life";\n', encoding="utf-8")
        checked = subprocess.run([harness.build() / program, "--check-config", "--config", config], capture_output=True, text=True,
                                 timeout=60, check=False)
        assert (f"{key}: warning: {directory}: No such file" in checked.stdout + checked.stderr) == (code == 2), checked
        ended = subprocess.run([harness.build() / program, option, "--config", config], capture_output=True, text=True, timeout=60,
                               check=False)
        assert ended.returncode == code, ended
        assert ("is the path mistyped?" in ended.stderr) == (code == 2), ended.stderr
