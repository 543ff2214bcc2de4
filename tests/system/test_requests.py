"""Requests and holds: reportctl, real leaders and a real worker."""

import signal
import uuid

import pytest

from ctl import Ctl
from harness import wait_until

SETUP = """
    INSERT INTO reports.queue (name) VALUES ('slow');
    INSERT INTO reports.report (name, kind) VALUES ('nothing', 'noop');
    INSERT INTO reports.schedule (name, report, kind, rule) VALUES ('sales', 'nothing', 'once', '2999-01-01T00:00');
    INSERT INTO reports.schedule (name, report, kind, rule, queue)
    VALUES ('stuck', 'nothing', 'once', '2999-01-01T00:00', 'slow')"""


@pytest.fixture
def ctl(installation):
    c = Ctl(installation)
    c.db.execute(SETUP)
    return c


@pytest.fixture
def led(ctl):
    ctl.installation.start_scheduler("one")
    ctl.installation.wait_until(ctl.installation.leader, 30, "somebody leads")
    return ctl


def new_id():
    return str(uuid.uuid4())


def job(ctl, name):
    return ctl.json("job", name)["job"]


def test_each_request_is_carried_out_and_answered_by_the_leader(led):
    made = led.ok("trigger", "stuck", "--key", "k1")
    assert made == f"occurrence stuck:k1 made; job {job(led, 'stuck:k1')['id']}\n"
    assert led.ok("trigger", "stuck", "--key", "k1").startswith("occurrence stuck:k1 was there already; job ")
    assert "cancelled" in led.ok("cancel", "stuck:k1", "--reason", "not needed")
    assert job(led, "stuck:k1")["state"] == "cancelled"
    assert led.ok("retry", job(led, "stuck:k1")["id"]).strip() != ""
    assert job(led, "stuck:k1")["state"] == "queued"
    assert "paused" in led.ok("pause", "sales", "--reason", "the source is being moved")
    row = led.json("schedules", "--paused")
    assert [(r["name"], r["paused"], r["pause_reason"]) for r in row] == [
        ("sales", True, "asked by postgres: the source is being moved")]
    assert "already" in led.ok("pause", "sales")
    assert led.ok("resume", "sales").strip() != ""
    assert led.json("schedules", "--paused") == []
    listed = led.json("requests")
    assert [(r["kind"], r["state"]) for r in listed] == [
        (k, "done") for k in ("resume", "pause", "pause", "retry", "cancel", "trigger", "trigger")]
    assert led.json("requests", "--state", "pending") == []


def test_a_repeated_id_gets_the_first_answer_from_the_same_and_from_the_next_leader(led):
    led.installation.start_scheduler("two")
    asked = {kind: (kind, subject, "--request-id", new_id()) for kind, subject in
             (("trigger", "stuck"), ("pause", "sales"), ("resume", "sales"))}
    asked["trigger"] += ("--key", "k1")
    asked["cancel"] = ("cancel", "stuck:k1", "--request-id", new_id())
    asked["retry"] = ("retry", "stuck:k1", "--request-id", new_id())
    first = {kind: led.json(*words) for kind, words in asked.items()}
    assert {a["state"] for a in first.values()} == {"done"}
    assert {kind: led.json(*words) for kind, words in asked.items()} == first
    member, generation = led.installation.leader()
    next(d for d in led.installation.daemons if d.name == member).kill()
    led.installation.wait_until(lambda: (led.installation.leader() or ("", 0))[1] > generation, 40,
                                "the other one leads")
    assert {kind: led.json(*words) for kind, words in asked.items()} == first
    assert led.db.execute("SELECT count(*) FROM reports.job").fetchone() == (1,)
    assert len(led.json("requests")) == len(asked)


def test_what_is_asked_while_nobody_leads_is_answered_by_the_next_leader(led):
    led.installation.daemons[0].kill()
    asking = led.start("trigger", "stuck", "--key", "k1", "--wait", "60")
    wait_until(lambda: led.json("requests", "--state", "pending"), 10, "the request is there")
    led.installation.start_scheduler("two")
    out, errors = asking.communicate(timeout=60)
    assert asking.returncode == 0, errors
    assert out.startswith("occurrence stuck:k1 made; job ")


def test_what_nobody_answered_in_time_is_never_carried_out(ctl):
    request = new_id()
    line = ctl.refused(4, "trigger", "stuck", "--key", "k1", "--wait", "1", "--request-id", request)
    assert "no leader of scope main answered in time (never led)" in line
    assert f"request {request} has expired and will not be carried out: ask anew, without its id" in line
    ctl.installation.start_scheduler("one")
    # It is shown as expired from its deadline on; the leader's answer comes with the time of it.
    ctl.installation.wait_until(lambda: any(r["answered_at"] for r in ctl.json("requests", "--state", "expired")), 30,
                                "the leader closes the request")
    assert ctl.json("occurrences") == []
    assert "expired: " in ctl.refused(4, "trigger", "stuck", "--key", "k1", "--request-id", request)


def test_a_request_that_is_not_waited_for_says_how_to_see_its_answer(ctl):
    request = new_id()
    # Nobody leads yet: a leader may answer before reportctl has looked even once.
    out = ctl.ok("pause", "sales", "--reason", "it's late", "--wait", "0", "--request-id", request)
    assert out.endswith(f"see the answer with reportctl pause sales --reason 'it'\\''s late'"
                        f" --request-id {request}\n")
    ctl.installation.start_scheduler("one")
    again = ctl.json("pause", "sales", "--reason", "it's late", "--wait", "60", "--request-id", request)
    assert (again["state"], again["request_id"]) == ("done", request)


def test_a_wait_that_ends_before_the_deadline_says_how_to_ask_again(ctl):
    words = ("trigger", "stuck", "--key", "k1", "--request-id", new_id())
    ctl.ok(*words, "--wait", "0")
    line = ctl.refused(4, *words, "--wait", "1")
    assert "has answered within 1 s (never led); it may still be carried out: see with reportctl trigger stuck" in line
    ctl.installation.start_scheduler("one")
    assert ctl.ok(*words, "--wait", "60").startswith("occurrence stuck:k1 made; job ")


def test_a_schedule_that_somebody_holds_locked_names_the_session_and_stops_no_other(led):
    user = led.installation.connect()
    user.execute("BEGIN; SELECT FROM reports.schedule WHERE name = 'sales' FOR UPDATE")
    asking = led.start("pause", "sales", "--wait", "10")  # long enough for the leader to have tried
    # By SQL: it may have expired before reportctl had looked.
    wait_until(lambda: led.db.execute("SELECT 1 FROM reports.request WHERE kind = 'pause'").fetchone(), 10, "the request is there")
    assert led.ok("trigger", "stuck", "--key", "k1").startswith("occurrence stuck:k1 made; job ")
    out, errors = asking.communicate(timeout=60)
    assert (asking.returncode, out) == (4, "")
    assert f"is held by the session with pid {user.info.backend_pid}" in errors
    user.execute("ROLLBACK")
    assert led.ok("pause", "sales") == 'schedule "sales" is paused\n'


@pytest.mark.parametrize("broken_in", ["ask", "wait"])
def test_a_broken_connection_is_opened_again_with_the_same_id(ctl, broken_in):
    db = ctl.installation.connect()
    if broken_in == "ask":
        db.execute("BEGIN; LOCK TABLE reports.request IN EXCLUSIVE MODE")
    asking = ctl.start("trigger", "stuck", "--key", "k1", "--wait", "60")
    if broken_in == "ask":
        wait_until(lambda: ctl.db.execute("SELECT 1 FROM pg_stat_activity WHERE application_name ="
                                          " 'reportctl' AND wait_event_type = 'Lock' AND datname ="
                                          " current_database()").fetchone(), 10, "it waits")
    else:
        wait_until(lambda: ctl.json("requests"), 10, "the request is there")
    ended = ctl.db.execute("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                           " WHERE application_name = 'reportctl' AND datname = current_database()")
    assert ended.fetchone()[0] >= 1
    if broken_in == "ask":
        db.execute("COMMIT")
    ctl.installation.start_scheduler("one")
    out, errors = asking.communicate(timeout=60)
    assert asking.returncode == 0, errors
    assert out.startswith("occurrence stuck:k1 made; job ")
    assert ctl.db.execute("SELECT count(*) FROM reports.request").fetchone() == (1,)


def test_a_database_that_stays_away_ends_it_with_the_way_to_ask_again(ctl):
    request = new_id()
    stack = ctl.installation.stack
    asking = ctl.start("trigger", "stuck", "--wait", "60", "--timeout", "2", "--request-id", request)
    wait_until(lambda: ctl.json("requests"), 10, "the request is there")
    try:
        stack.fault("kill", "pg")
        out, errors = asking.communicate(timeout=60)
    finally:
        stack.heal()
    assert (asking.returncode, out) == (1, "")
    assert "the request may still be carried out: see with reportctl trigger stuck" in errors
    assert errors.endswith(f"--request-id {request}\n") and errors.count("\n") == 1


def test_a_connection_that_comes_back_to_another_installation_is_refused_by_name(ctl):
    request = new_id()
    first, = ctl.db.execute("SELECT id FROM reports.installation").fetchone()
    asking = ctl.start("trigger", "stuck", "--wait", "60", "--request-id", request)
    wait_until(lambda: ctl.json("requests"), 10, "the request is there")
    # As if its name led to another database now; it stands still, or it could look in between.
    asking.send_signal(signal.SIGSTOP)
    other, = ctl.db.execute("UPDATE reports.installation SET id = gen_random_uuid() RETURNING id").fetchone()
    ctl.db.execute("DELETE FROM reports.request")
    ctl.db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                   " WHERE application_name = 'reportctl' AND datname = current_database()")
    asking.send_signal(signal.SIGCONT)
    out, errors = asking.communicate(timeout=90)
    assert (asking.returncode, out) == (1, "")
    assert f"installation {other}, not {first}" in errors
    assert "the request may still be carried out in the first: see with reportctl trigger stuck" in errors
    assert errors.endswith(f"--request-id {request}\n") and errors.count("\n") == 1
    assert ctl.json("requests") == []  # nothing was asked of the other


def test_what_cannot_be_done_is_refused_with_the_reason(led):
    led.installation.start_worker("w", queues=["default"])
    led.ok("trigger", "sales", "--key", "done")
    led.installation.wait_until(lambda: job(led, "sales:done")["state"] == "succeeded", 30,
                                "the job has succeeded")
    led.ok("trigger", "stuck", "--key", "open")
    for words in (("cancel", "sales:done"), ("retry", "sales:done")):
        assert "succeeded" in led.refused(4, *words)
    assert "queued" in led.refused(4, "retry", "stuck:open")
    for words in (("cancel", "sales:nosuch"), ("retry", new_id())):
        assert "does not exist" in led.refused(3, *words)
    for kind in ("trigger", "pause", "resume"):
        line = led.refused(3, kind, "slaes")
        assert 'schedule "slaes" does not exist; did you mean sales?' in line
    assert "write its id or SCHEDULE:KEY" in led.refused(2, "cancel", "sales")
    request = new_id()
    led.ok("pause", "sales", "--request-id", request)
    assert "was used for something else" in led.refused(2, "resume", "sales", "--request-id", request)


def test_a_held_queue_gives_no_work_and_goes_on_when_resumed(led):
    led.installation.start_worker("w", queues=["slow"])
    assert led.ok("queue", "hold", "slow", "--reason", "load window").startswith("queue slow is held (hold ")
    assert "is held already: hold " in led.ok("queue", "hold", "slow")
    assert [(h["kind"], h["subject"], h["reason"]) for h in led.json("holds")] == [
        ("queue", "slow", "load window")]
    led.ok("trigger", "stuck", "--key", "k1")
    led.installation.wait_until(lambda: queue(led, "slow")["workers"] == 1, 20, "a worker serves it")
    row = queue(led, "slow")
    assert (row["queued"], row["running"], row["held"], row["hold_reason"]) == (1, 0, True, "load window")
    assert ("hold", "slow") in {(p["kind"], p["subject"]) for p in led.json("status")["problems"]}
    assert led.ok("queue", "resume", "slow") == "queue slow goes on; lifted: 1\n"
    assert led.ok("queue", "resume", "slow") == "queue slow is not held\n"
    led.installation.wait_until(lambda: job(led, "stuck:k1")["state"] == "succeeded", 30,
                                "the job has succeeded")
    assert 'queue "solw" does not exist; did you mean slow? There are: default, slow' in led.refused(
        3, "queue", "hold", "solw")


def queue(ctl, name):
    return next(q for q in ctl.json("queues") if q["queue"] == name)


def test_a_hold_stops_the_scope_until_it_is_released(led):
    out = led.ok("hold", "--scope", "main", "a drill")
    number = led.json("holds")[0]["id"]
    assert f"hold {number} stands on scope main" in out
    led.installation.wait_until(lambda: not led.installation.leader(), 20, "the leader steps down")
    line = led.refused(4, "trigger", "stuck", "--wait", "1")
    assert "a hold stands: reportctl holds" in line
    assert "(a drill, by postgres) lifted" in led.ok("release-hold", number)
    assert led.json("holds") == []
    assert [h["reason"] for h in led.json("holds", "--all")] == ["a drill"]
    led.refused(2, "release-hold", number)
    assert "does not exist" in led.refused(3, "release-hold", 999)
    assert led.ok("trigger", "stuck", "--wait", "60").startswith("occurrence stuck:")
    assert 'scope "mian" does not exist; did you mean main?' in led.refused(3, "hold", "--scope", "mian", "x")


def test_a_runaway_job_is_cancelled_and_its_schedule_paused_while_a_hold_stands(led, tmp_path):
    script = tmp_path / "runaway"
    script.write_text("exec /bin/sleep 600\n")
    led.db.execute("INSERT INTO reports.report (name, kind, program) VALUES ('runaway', 'program', 'script');"
                   "INSERT INTO reports.schedule (name, report, kind, rule)"
                   " VALUES ('runs', 'runaway', 'once', '2999-01-01T00:00')")
    led.installation.start_worker("w", heartbeat_ms=200,
                                  programs=[{"name": "script", "arguments": ["/bin/sh", str(script)]}])
    led.ok("trigger", "runs", "--key", "k1")
    led.installation.wait_until(lambda: job(led, "runs:k1")["state"] == "running", 30, "the job runs")
    led.ok("hold", "--scope", "main", "it eats the source")
    led.installation.wait_until(lambda: not led.installation.leader(), 20, "the leader steps down")
    assert "is told to stop" in led.ok("cancel", "runs:k1", "--reason", "runaway")
    assert "is paused" in led.ok("pause", "runs")
    led.installation.wait_until(lambda: job(led, "runs:k1")["state"] == "cancelled", 20, "the worker has stopped it")
    assert led.installation.leader() is None
    led.ok("release-hold", led.json("holds")[0]["id"])
    led.installation.wait_until(led.installation.leader, 30, "somebody leads again")
    wait_until(lambda: not led.db.execute("SELECT FROM reports.schedule_change").fetchall(), 10, "the pause is taken in")
    assert [r["name"] for r in led.json("schedules", "--paused")] == ["runs"]


def test_only_operators_may_ask_and_others_are_told_which_role_may(led):
    reader, operator = (f"ctl_{uuid.uuid4().hex[:10]}" for _ in range(2))
    led.db.execute(f'CREATE ROLE "{reader}" LOGIN IN ROLE report_reader')
    led.db.execute(f'CREATE ROLE "{operator}" LOGIN IN ROLE report_operator')
    asked = [("trigger", "stuck", "--key", "k1"), ("pause", "sales"), ("resume", "sales"),
             ("cancel", "stuck:k1"), ("retry", "stuck:k1"), ("queue", "hold", "slow"),
             ("queue", "resume", "slow"), ("hold", "a drill")]
    try:
        for words in asked:
            if words[:2] != ("queue", "resume"):
                line = led.refused(1, *words, role=reader)
                what = " ".join(words[:2]) if words[0] == "queue" else words[0]
                assert f"{what} needs report_operator: ask an administrator to GRANT it" in line
        for words in asked:
            led.ok(*words, role=operator)
        led.ok("queue", "hold", "slow", role=operator)
        line = led.refused(1, "queue", "resume", "slow", role=reader)
        assert "queue resume needs report_operator" in line
        number = led.json("holds", role=reader)[0]["id"]
        assert "release-hold needs report_operator" in led.refused(1, "release-hold", number, role=reader)
        led.ok("release-hold", number, role=operator)
        for words in (("requests",), ("queues",), ("holds",), ("holds", "--all"), ("schedules", "--paused")):
            led.ok(*words, role=reader)
    finally:
        for role in (reader, operator):
            led.db.execute(f'DROP OWNED BY "{role}"')
            led.db.execute(f'DROP ROLE "{role}"')
