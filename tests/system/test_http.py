"""HTTP of both daemons, asked by a client that is not ours."""

import http.client
import json
import os
import re
import socket
import ssl
import subprocess
import threading
import time
import uuid

from harness import SESSION_MS
from proof import one
from servers import free_port

TOKEN = "a-token-that-stands-in-no-log-4711"

DEFINITIONS = """
    INSERT INTO reports.report (name, kind) VALUES ('nothing', 'noop');
    INSERT INTO reports.schedule (name, report, kind, rule) VALUES ('sales', 'nothing', 'once', '2999-01-01T00:00')"""


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.text = response.read().decode()

    @property
    def json(self):
        return json.loads(self.text)


def port_of(daemon, installation):
    """Where it listens, as its log says."""
    def told():
        return re.findall(r"HTTP listens.* port=(\d+)", daemon.log_text())

    return int(installation.wait_until(told, 20, f"{daemon.name} listens")[-1])


def ask(port, method, path, body=None, token=None, timeout=40):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    if body is not None:
        headers["Content-Type"] = "application/json"
    try:
        connection.request(method, path, body=body if body is None or isinstance(body, (str, bytes))
                           else json.dumps(body), headers=headers)
        return Answer(connection.getresponse())
    finally:
        connection.close()


def token_file(installation):
    path = installation.directory / "token"
    path.write_text(TOKEN + "\n", encoding="ascii")
    path.chmod(0o600)
    return str(path)


def start_scheduler(installation, name, **settings):
    """With a URL that is true, and a token. Returns (daemon, port)."""
    port = free_port()
    daemon = installation.start_scheduler(name, **{
        "http_port": port, "advertised_url": f"http://127.0.0.1:{port}",
        "http_token_file": token_file(installation), **settings})
    return daemon, port_of(daemon, installation)


def carried_out(installation, port, wish):
    """The last word on a request. Asked again with the same id, as 202 and 503 say, since a busy machine is late."""
    def final():
        answer = ask(port, "POST", "/requests", body=wish, token=TOKEN)
        return answer if answer.status not in (202, 503) else None

    return installation.wait_until(final, 40, "the request is answered")


def ready(port, path="/readyz"):
    return ask(port, "GET", path).status == 200


def wait_for_leader(installation, ports):
    """The port among these that leads scope main."""
    def leads():
        found = [p for p in ports if ready(p, "/readyz?scope=main")]
        return found[0] if len(found) == 1 else None

    return installation.wait_until(leads, 40, "one replica says that it leads")


def trigger(key, identity=None):
    return {"id": identity or str(uuid.uuid4()), "kind": "trigger", "subject": "sales", "argument": key}


def triggered(db):
    return one(db, "SELECT count(*) FROM reports.occurrence WHERE schedule = 'sales'")


def test_both_daemons_answer_probes_and_metrics(installation):
    scheduler = installation.start_scheduler()
    worker = installation.start_worker()
    s, w = port_of(scheduler, installation), port_of(worker, installation)
    installation.wait_until(lambda: ready(s) and ready(w), 40, "both are ready")
    for port in (s, w):
        assert ask(port, "GET", "/livez").json["live"] is True
        metrics = ask(port, "GET", "/metrics")
        assert metrics.status == 200
        assert metrics.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        head = ask(port, "HEAD", "/livez")
        assert (head.status, head.text) == (200, "")
        assert ask(port, "GET", "/nothing-here").status == 404
        wrong = ask(port, "POST", "/livez", body="{}")
        assert (wrong.status, wrong.headers["Allow"]) == (405, "GET, HEAD")
    assert {x["loop"] for x in ask(s, "GET", "/livez").json["loops"]} == {
        "main", "coordination", "scope", "requests"}
    assert {x["loop"] for x in ask(w, "GET", "/livez").json["loops"]} == {
        "main", "heartbeat", "claims", "outcomes"}
    assert ask(w, "GET", "/").status == 404  # the page is the scheduler's
    assert ask(w, "POST", "/requests", body="{}").status == 404


def test_readyz_tells_leader_from_follower_and_unknown_scope(installation):
    (_, a), (_, b) = start_scheduler(installation, "one"), start_scheduler(installation, "two")
    leader = wait_for_leader(installation, [a, b])
    follower = b if leader == a else a
    installation.wait_until(lambda: ready(follower), 20, "the follower can take over")
    led = ask(leader, "GET", "/readyz?scope=main").json["scopes"][0]
    assert (led["state"], led["generation"]) == ("ACTIVE", installation.leader()[1])
    names = {a: "one", b: "two"}
    for port in (leader, follower):  # both know who leads
        installation.wait_until(lambda p=port: f'<td data-l="leader">{names[leader]}</td>' in ask(p, "GET", "/").text, 20,
                                "the page names the leader")
    told = ask(follower, "GET", "/readyz?scope=main")
    assert told.status == 503
    assert told.json["scopes"][0]["state"] == "FOLLOWING"
    assert "does not lead" in told.json["scopes"][0]["why"]
    assert ask(follower, "GET", "/readyz?scope=nowhere").status == 404


def test_follower_sends_requests_to_the_leader_and_the_leader_answers(installation):
    db = installation.connect()
    db.execute(DEFINITIONS)
    (_, a), (_, b) = start_scheduler(installation, "one"), start_scheduler(installation, "two")
    leader = wait_for_leader(installation, [a, b])
    follower = b if leader == a else a
    wish = trigger("by-http")
    installation.wait_until(lambda: ask(follower, "POST", "/requests", body=wish, token=TOKEN).status == 307, 20,
                            "the follower has heard of the leader")
    moved = ask(follower, "POST", "/requests", body=wish, token=TOKEN)
    assert (moved.status, moved.headers["Location"]) == (307, f"http://127.0.0.1:{leader}/requests")
    assert one(db, "SELECT count(*) FROM reports.request") == 0  # it has not acted
    done = carried_out(installation, leader, wish)
    assert (done.status, done.json["state"]) == (200, "done"), done.text
    assert triggered(db) == 1
    # It is looked up at any replica, by those who may ask.
    for port in (leader, follower):
        assert ask(port, "GET", f"/requests/{wish['id']}").status == 401
        seen = ask(port, "GET", f"/requests/{wish['id']}", token=TOKEN)
        for told_at in (seen.json["requested_at"], seen.json["answered_at"]):
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", told_at)
        assert seen.status == 200
        assert (seen.json["state"], seen.json["subject"], seen.json["argument"]) == ("done", "sales", "by-http")
    assert ask(leader, "GET", f"/requests/{uuid.uuid4()}", token=TOKEN).status == 404
    assert ask(leader, "GET", "/requests/not-a-uuid", token=TOKEN).status == 404


def test_repeated_id_gets_the_first_answer_also_from_the_next_leader(installation):
    db = installation.connect()
    db.execute(DEFINITIONS)
    first, a = start_scheduler(installation, "one")
    wait_for_leader(installation, [a])
    wish = trigger("once-only")
    answers = [carried_out(installation, a, wish) for _ in range(2)]
    assert [x.status for x in answers] == [200, 200]
    assert answers[0].json == answers[1].json
    other = ask(a, "POST", "/requests", body={**wish, "argument": "another-key"}, token=TOKEN)
    assert other.status == 409 and "used for something else" in other.text
    assert first.stop() == 0
    _, b = start_scheduler(installation, "two")
    wait_for_leader(installation, [b])
    assert carried_out(installation, b, wish).json == answers[0].json
    assert triggered(db) == 1


def test_handoff_over_http_is_answered_by_whoever_leads_next(installation):
    (_, a), (_, b) = start_scheduler(installation, "one"), start_scheduler(installation, "two")
    leader = wait_for_leader(installation, [a, b])
    follower = b if leader == a else a
    db = installation.connect()
    installation.wait_until(lambda: one(db, "SELECT count(*) FROM reports.candidate c JOIN reports.fence f USING (scope) "
                                            "WHERE c.generation > f.generation AND c.ahead = 1") == 1, 20, "one follows")
    wish = {**trigger(None), "kind": "handoff", "subject": "main"}
    done = ask(leader, "POST", "/requests", body=wish, token=TOKEN)
    if done.status == 202:  # a busy machine: it waits 8 s for the answer
        done = installation.wait_until(lambda: (lambda seen: seen if seen.json["state"] != "pending" else None)(
            ask(follower, "GET", f"/requests/{wish['id']}", token=TOKEN)), 40, "it is answered")
    assert done.status == 200 and "ms without a leader since member" in done.json["answer"], done.text
    assert wait_for_leader(installation, [a, b]) == follower
    # Repeated, it finds the first answer at the new leader and moves nothing.
    installation.wait_until(lambda: ask(leader, "POST", "/requests", body=wish, token=TOKEN).status == 307, 20,
                            "the former leader has heard of the new one")
    assert ask(follower, "POST", "/requests", body=wish, token=TOKEN).json["answer"] == done.json["answer"]
    assert wait_for_leader(installation, [a, b]) == follower


def test_without_a_leader_nothing_is_asked_and_the_client_is_told_when_to_come_back(installation):
    db = installation.connect()
    db.execute(DEFINITIONS)
    db.execute("INSERT INTO reports.scope (name) VALUES ('elsewhere')")
    db.execute("INSERT INTO reports.schedule (name, scope, report, kind, rule) "
               "VALUES ('far', 'elsewhere', 'nothing', 'once', '2999-01-01T00:00')")
    _, a = start_scheduler(installation, "one")
    wait_for_leader(installation, [a])
    away = ask(a, "POST", "/requests", body={**trigger("k"), "subject": "far"}, token=TOKEN)
    assert (away.status, away.headers["Retry-After"]) == (503, "1")
    assert "elsewhere" in away.text and "no leader" in away.text
    assert one(db, "SELECT count(*) FROM reports.request") == 0


def test_leader_without_a_url_is_named_but_not_redirected_to(installation):
    db = installation.connect()
    db.execute(DEFINITIONS)
    _, a = start_scheduler(installation, "one", advertised_url="")
    wait_for_leader(installation, [a])
    _, b = start_scheduler(installation, "two")
    installation.wait_until(lambda: ready(b), 20, "the second can take over")
    away = installation.wait_until(lambda: (lambda x: x if "advertised_url" in x.text else None)(
        ask(b, "POST", "/requests", body=trigger("k"), token=TOKEN)), 20, "the second has heard of the leader")
    assert away.status == 503


def test_token_is_demanded_and_stands_in_no_log(installation):
    db = installation.connect()
    db.execute(DEFINITIONS)
    open_daemon, open_port = start_scheduler(installation, "one", http_token_file="")
    wait_for_leader(installation, [open_port])
    refused = ask(open_port, "POST", "/requests", body=trigger("k"), token=TOKEN)
    assert refused.status == 403 and "http_token_file" in refused.text
    assert open_daemon.stop() == 0
    daemon, port = start_scheduler(installation, "two")
    wait_for_leader(installation, [port])
    for wrong in (None, "wrong", TOKEN + "x", TOKEN[:-1]):
        answer = ask(port, "POST", "/requests", body=trigger("k"), token=wrong)
        assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert one(db, "SELECT count(*) FROM reports.request") == 0
    assert carried_out(installation, port, trigger("k")).status == 200
    with open(f"/proc/{daemon.pid}/cmdline", "rb") as words, open(f"/proc/{daemon.pid}/environ", "rb") as variables:
        assert TOKEN.encode() not in words.read() + variables.read()
    for d in (open_daemon, daemon):
        assert TOKEN not in d.log_text()


def test_what_is_wrong_with_a_request_is_said_by_its_member(installation):
    db = installation.connect()
    db.execute(DEFINITIONS)
    _, port = start_scheduler(installation, "one")
    wait_for_leader(installation, [port])
    good = trigger("k")
    cases = [
        ("{", 400, "not JSON"),
        ("[]", 400, "object"),
        ({**good, "id": "5"}, 400, "id:"),
        ({**good, "kind": "explode"}, 400, "kind:"),
        ({**good, "kind": "backfill"}, 400, "from and to"),
        ({**good, "until": "2999-01-01T00:00:00Z"}, 400, "only a pause"),
        ({**good, "kind": "pause", "argument": None, "until": "2001-01-01T00:00:00Z"}, 400, "not to come"),
        ({**good, "kind": "discard", "argument": "because"}, 400, "what is meant and why"),
        ({**good, "kind": "discard", "subject": "queue:default@nowhere", "argument": "all: x"}, 404, "reportctl leaders"),
        ({**good, "kind": "handoff", "subject": "no-such-scope"}, 404, "reportctl leaders"),
        ({**good, "kind": "handoff", "subject": "main", "argument": "two"}, 409, 'member "two" is not known'),
        ({**good, "subject": 5}, 400, "subject:"),
        ({**good, "subject": "x" * 500}, 400, "subject:"),
        ({**good, "argument": []}, 400, "argument:"),
        ({**good, "timeout_s": 0}, 400, "timeout_s:"),
        ({**good, "surprise": 1}, 400, "not known"),
        ('{"id": 1, "id": 2}', 400, "not JSON"),
        ({**good, "subject": "no-such-schedule"}, 404, "reportctl schedules"),
        ({**good, "kind": "cancel", "subject": "sales:none"}, 404, "reportctl jobs"),
        ({**good, "argument": "bad key"}, 400, "key"),
    ]
    for body, status, part in cases:
        answer = ask(port, "POST", "/requests", body=body, token=TOKEN)
        assert answer.status == status and part in answer.json["error"], f"{body}: {answer.status} {answer.text}"
    assert one(db, "SELECT count(*) FROM reports.request") == 0
    assert ask(port, "POST", "/requests", body="x" * 65537, token=TOKEN).status == 413


def test_pause_and_resume_over_http_act_on_the_schedule(installation):
    db = installation.connect()
    db.execute(DEFINITIONS)
    _, port = start_scheduler(installation, "one")
    wait_for_leader(installation, [port])
    for kind, paused in (("pause", True), ("resume", False)):
        wish = {"id": str(uuid.uuid4()), "kind": kind, "subject": "sales"}
        answer = carried_out(installation, port, wish)
        assert (answer.status, answer.json["state"]) == (200, "done"), answer.text
        assert one(db, "SELECT paused FROM reports.schedule WHERE name = 'sales'") is paused


def test_pause_with_an_end_a_backfill_and_a_discard_over_http_do_what_reportctl_does(installation):
    db = installation.connect()
    db.execute(DEFINITIONS)
    db.execute("INSERT INTO reports.schedule (name, report, kind, rule, overlap) VALUES "
               "('daily', 'nothing', 'cron', '0 6 * * *', 'allow'), ('alone', 'nothing', 'cron', '0 6 * * *', 'forbid'), "
               "('seconds', 'nothing', 'cron', '* * * * * *', 'allow')")
    _, port = start_scheduler(installation, "one")
    wait_for_leader(installation, [port])
    installation.wait_until(lambda: one(db, "SELECT count(*) FROM reports.schedule_progress WHERE key_form IS NOT NULL "
                                            "AND schedule IN ('daily', 'alone', 'seconds')") == 3, 30, "they are taken in")

    def wish(kind, subject, **more):
        return {"id": str(uuid.uuid4()), "kind": kind, "subject": subject, **more}

    pause = wish("pause", "sales", argument="stocktaking", until="2998-01-01T02:00:00+02:00")
    assert carried_out(installation, port, pause).status == 200
    assert db.execute("SELECT paused, pause_reason LIKE '%stocktaking', paused_until = '2998-01-01Z' FROM reports.v_schedule WHERE name = 'sales'"
                      ).fetchone() == (True, True, True)
    assert ask(port, "POST", "/requests", body={**pause, "until": None}, token=TOKEN).status == 409

    span = {"from": "2024-02-27", "to": "2024-03-02"}
    keys = ["2024-02-27", "2024-02-28", "2024-02-29", "2024-03-01", "2024-03-02"]
    shown = carried_out(installation, port, wish("backfill", "daily", dry_run=True, **span))
    assert shown.status == 200 and shown.json["state"] == "dry_run", shown.text
    assert [(f["occurrence_key"], f["fire_at"], f["becomes"]) for f in shown.json["firings"]] == [
        (k, f"{k}T06:00:00Z", "make") for k in keys]
    assert one(db, "SELECT count(*) FROM reports.request WHERE kind = 'backfill'") == 0, "nothing is asked by looking"
    backfill = wish("backfill", "daily", **span)
    made = carried_out(installation, port, backfill)
    assert made.status == 200 and made.json["answer"] == 'backfill of "daily": 5 made', made.text
    assert [k for k, in db.execute("SELECT occurrence_key FROM reports.occurrence WHERE cause = 'backfill' AND schedule = 'daily' "
                                   "ORDER BY 1")] == keys
    again = carried_out(installation, port, wish("backfill", "daily", dry_run=True, **span))
    assert {f["becomes"] for f in again.json["firings"]} == {"there"}
    db.execute("UPDATE reports.schedule SET rule = '0 6 1 1 *' WHERE name = 'daily'")
    assert carried_out(installation, port, backfill).json == made.json, "a repeated id gets the first answer, whatever the rule is now"
    assert ask(port, "POST", "/requests", body={**backfill, "to": "2024-03-03"}, token=TOKEN).status == 409
    ended = carried_out(installation, port, wish("backfill", "daily", cancel=backfill["id"]))
    assert ended.status == 200 and "5 job(s) cancelled" in ended.json["answer"], ended.text
    for subject, more, status, part in (
            ("alone", span, 409, "beside"), ("alone", {**span, "dry_run": True}, 409, "beside"),
            ("daily", {"from": "2999-01-01", "to": "2999-01-02"}, 404, "names no firing"),
            ("daily", {"from": "2024-03-01", "to": "2024-02-01"}, 400, "from 2024-03-01 comes after to 2024-02-01"),
            ("daily", {"from": "2024 March", "to": "2024-04"}, 400, 'from "2024 March" is no key'),
            ("seconds", {"from": "2020-W01", "to": "2024-W01"}, 400, "reportctl backfill"),
            ("seconds", {"from": "2024-01-01", "to": "2024-01-01"}, 400, "more than 1000 firings"),
            ("daily", {"cancel": pause["id"]}, 400, "is no backfill"), ("nowhere", span, 404, "reportctl schedules")):
        wrong = carried_out(installation, port, wish("backfill", subject, **more))
        assert wrong.status == status and part in wrong.json["error"], f"{subject} {more}: {wrong.status} {wrong.text}"
    assert carried_out(installation, port, wish("backfill", "alone", beside=True, **span)).status == 200

    for subject in ("alone", "queue:default@main"):
        gone = carried_out(installation, port, wish("discard", subject, argument="all: stocktaking"))
        assert gone.status == 200 and gone.json["state"] == "done", gone.text


def test_refused_request_is_409_with_the_answer(installation):
    db = installation.connect()
    db.execute(DEFINITIONS)
    _, port = start_scheduler(installation, "one")
    installation.start_worker()
    wait_for_leader(installation, [port])
    assert carried_out(installation, port, trigger("k")).status == 200
    installation.wait_until(lambda: one(db, "SELECT state FROM reports.job") == "succeeded", 20, "the job has run")
    wish = {"id": str(uuid.uuid4()), "kind": "cancel", "subject": "sales:k"}
    answer = carried_out(installation, port, wish)
    assert (answer.status, answer.json["state"]) == (409, "refused"), answer.text
    assert "succeeded" in answer.json["answer"]


def test_firing_that_is_still_to_come_cannot_be_triggered_and_that_is_the_clients_fault(installation):
    db = installation.connect()
    db.execute(DEFINITIONS + "; INSERT INTO reports.schedule (name, report, kind, rule)"
               " VALUES ('daily', 'nothing', 'cron', '0 6 1 1 *')")
    daemon, port = start_scheduler(installation, "one")
    wait_for_leader(installation, [port])
    key = installation.wait_until(lambda: one(
        db, "SELECT to_char(next_nominal, 'YYYY-MM-DD') FROM reports.schedule_progress WHERE schedule = 'daily'"),
        20, "its next firing is known")
    answer = ask(port, "POST", "/requests", body={**trigger(key), "subject": "daily"}, token=TOKEN)
    assert answer.status == 409 and key in answer.json["error"], answer.text
    assert "refuses" not in daemon.log_text()


def test_request_id_that_another_session_is_using_delays_no_other_request(installation):
    db = installation.connect()
    db.execute(DEFINITIONS)
    _, port = start_scheduler(installation, "one")
    wait_for_leader(installation, [port])
    wish = trigger("held")
    with installation.connect(autocommit=False) as other:
        other.execute("SELECT * FROM reports.ask(%s, 'trigger', 'sales', 'held', '1 min')", (wish["id"],))
        for n in range(4):
            begin = time.monotonic()
            answer = ask(port, "POST", "/requests", body=wish, token=TOKEN)
            assert answer.status == 503 and "another session" in answer.json["error"], answer.text
            assert carried_out(installation, port, trigger(f"k{n}")).status == 200
            assert time.monotonic() - begin < 60, "whoever waited for the other session would wait for ever"
        other.rollback()
    assert carried_out(installation, port, wish).status == 200


def test_request_that_cannot_be_carried_out_yet_is_202_with_its_place(installation):
    db = installation.connect()
    db.execute(DEFINITIONS)
    _, port = start_scheduler(installation, "one")
    wait_for_leader(installation, [port])
    wish = {"id": str(uuid.uuid4()), "kind": "pause", "subject": "sales"}
    with installation.connect().transaction() as _, db.transaction():
        db.execute("SELECT FROM reports.schedule WHERE name = 'sales' FOR UPDATE")
        answer = ask(port, "POST", "/requests", body=wish, token=TOKEN)
        assert (answer.status, answer.json["state"]) == (202, "pending"), answer.text
        assert answer.headers["Location"] == f"/requests/{wish['id']}"
        assert ask(port, "GET", answer.headers["Location"], token=TOKEN).json["state"] == "pending"
    installation.wait_until(lambda: ask(port, "GET", f"/requests/{wish['id']}", token=TOKEN).json["state"] == "done", 20,
                            "the request is carried out once the row is free")


def test_slow_client_is_cut_and_delays_nobody(installation):
    _, port = start_scheduler(installation, "one")
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", port)) as slow:
        slow.settimeout(0.2)
        slow.sendall(b"POST /requests HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
        cut = False
        while not cut and time.monotonic() < began + 60:
            assert ask(port, "GET", "/livez", timeout=8).status == 200  # not when the slow one is cut
            try:
                slow.sendall(b"x")
                cut = slow.recv(1) == b""
            except TimeoutError:
                pass
            except OSError:
                cut = True
        assert cut and 9 < time.monotonic() - began < 40


def test_database_that_hangs_is_told_in_bounded_time_and_probes_go_on(installation):
    db = installation.connect()
    db.execute(DEFINITIONS)
    (_, a), (_, b) = (start_scheduler(installation, name, database_unhealthy_ms=7000) for name in ("one", "two"))
    leader = wait_for_leader(installation, [a, b])
    follower = b if leader == a else a
    installation.wait_until(lambda: ready(follower), 20, "the follower can take over")
    assert carried_out(installation, leader, trigger("before")).status == 200
    wish = trigger("during")
    pages = []
    installation.stack.fault("stop", "pg")
    try:
        for port in (leader, follower, leader):
            began = time.monotonic()
            away = ask(port, "POST", "/requests", body=wish, token=TOKEN)
            assert away.status == 503 and away.headers["Retry-After"] == "1", away.text
            assert time.monotonic() - began < 30
            # The database does not answer at all: whoever asked it would wait for longer.
            began = time.monotonic()
            assert ask(port, "GET", "/metrics").status == 200
            assert ask(port, "GET", "/").status == 200
            pages.append(time.monotonic() - began)
        assert min(pages) < 1 and max(pages) < 10, pages
        installation.wait_until(lambda: not ready(follower), 20, "the follower says that it has no database")
        why = ask(follower, "GET", "/readyz").json["scopes"][0]
        assert not why["database"] and why["problem"]
        installation.wait_until(lambda: not ready(leader, "/readyz?scope=main"), 40, "the leader gives up")
        for port in (leader, follower):  # the loops turn: restarting the process would mend nothing
            live = ask(port, "GET", "/livez")
            assert live.status == 200, live.text
    finally:
        installation.stack.fault("cont", "pg")
    leader = wait_for_leader(installation, [a, b])
    done = carried_out(installation, leader, wish)
    assert (done.status, done.json["state"]) == (200, "done"), done.text
    assert triggered(db) == 2


def test_readiness_follows_a_takeover(installation):
    (first, a), (_, b) = start_scheduler(installation, "one"), start_scheduler(installation, "two")
    leader = wait_for_leader(installation, [a, b])
    killed, other = (first, b) if leader == a else (installation.daemons[1], a)
    installation.wait_until(lambda: ready(other), 20, "the other can take over")
    generation = installation.leader()[1]
    killed.kill()
    installation.wait_until(lambda: ready(other, "/readyz?scope=main"), SESSION_MS / 1000 + 10, "it has taken over")
    assert ask(other, "GET", "/readyz?scope=main").json["scopes"][0]["generation"] > generation


def loops_that_stand_still(port):
    """By /livez, whose status says it, too."""
    answer = ask(port, "GET", "/livez")
    names = [x["loop"] for x in answer.json["loops"] if not x["turns"]]
    assert (answer.status == 200) == answer.json["live"] == (not names)
    return names


def test_worker_that_stops_is_live_but_not_ready(installation):
    script = installation.directory / "script.sh"
    script.write_text("#!/bin/sh\nwhile [ ! -e " + str(installation.directory / "go") + " ]; do sleep 0.1; done\n")
    script.chmod(0o755)
    db = installation.connect()
    db.execute("INSERT INTO reports.report (name, kind, program, format) VALUES ('script', 'program', 'script', 'txt');"
               "INSERT INTO reports.schedule (name, report, kind, rule) VALUES ('sales', 'script', 'once', '2999-01-01T00:00')")
    _, port = start_scheduler(installation, "one")
    worker = installation.start_worker(programs=[{"name": "script", "arguments": [str(script)]}])
    probe = port_of(worker, installation)
    wait_for_leader(installation, [port])
    assert carried_out(installation, port, trigger("k")).status == 200
    installation.wait_until(lambda: ask(probe, "GET", "/readyz").json["running"] == 1, 20, "the job runs")
    worker.process.terminate()
    installation.wait_until(lambda: not ready(probe), 10, "it is not ready any more")
    told = ask(probe, "GET", "/readyz").json
    assert told["draining"] and told["registered"] and "stopping" in told["why"]
    assert ask(probe, "GET", "/livez").status == 200
    (installation.directory / "go").touch()
    assert worker.process.wait(60) == 0


def test_without_a_majority_of_zookeeper_nobody_is_ready_and_everybody_names_it(installation):
    (_, a), (_, b) = start_scheduler(installation, "one"), start_scheduler(installation, "two")
    leader = wait_for_leader(installation, [a, b])
    follower = b if leader == a else a
    installation.wait_until(lambda: ready(follower), 20, "the follower can take over")
    installation.stack.fault("kill", "zk2", "zk3")
    try:
        installation.wait_until(lambda: not ready(leader) and not ready(follower), 10, "both are not ready")
        seen = set()
        until = time.monotonic() + 2 * SESSION_MS / 1000
        while time.monotonic() < until:
            for port in (leader, follower):
                told = ask(port, "GET", "/readyz")
                scope = told.json["scopes"][0]
                assert told.status == 503 and scope["why"] and scope["problem"], scope
                seen.add((port, scope["state"], "ZooKeeper" in scope["problem"]))
            time.sleep(0.05)
        assert {(leader, "SUSPENDED", True), (follower, "FOLLOWING", True)} <= seen, seen
    finally:
        installation.stack.fault("start", "zk2", "zk3")
    wait_for_leader(installation, [a, b])


def test_worker_whose_store_is_gone_says_so_once_and_is_not_ready(installation):
    worker = installation.start_worker()
    probe = port_of(worker, installation)
    installation.wait_until(lambda: ready(probe), 40, "it is ready")
    away = installation.artifacts.with_name("away")
    installation.artifacts.rename(away)
    installation.wait_until(lambda: not ready(probe), 20, "it is not ready")
    told = ask(probe, "GET", "/readyz").json
    assert not told["artifact_store"] and str(installation.artifacts) in told["why"], told
    away.rename(installation.artifacts)
    installation.wait_until(lambda: ready(probe), 20, "it is ready again")
    log = worker.log_text()
    assert len(re.findall(r'level=error .*event="artifact store refuses files', log)) == 1
    assert 'event="artifact store takes files again"' in log
    assert not list(installation.artifacts.glob(".*")), "the look leaves nothing behind"


def test_https_serves_what_http_did_and_nothing_in_clear_text(installation):
    certificate, key = (str(installation.directory / f"http.{x}") for x in ("crt", "key"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=test",
                    "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True, umask=0o077)
    tls = {"http_tls_certificate_file": certificate, "http_tls_key_file": key}
    daemons = installation.start_scheduler(**tls), installation.start_worker(**tls)
    context = ssl.create_default_context(cafile=certificate)
    for daemon in daemons:
        port = port_of(daemon, installation)
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=40, context=context)
        connection.request("GET", "/livez")
        assert connection.getresponse().status == 200
        connection.close()
        with socket.create_connection(("127.0.0.1", port), timeout=40) as plain:
            plain.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            try:
                said = plain.recv(1000)
            except ConnectionError:
                said = b""
            assert b"live" not in said and not said.startswith(b"HTTP")
    os.chmod(key, 0o644)
    refused = installation.start_scheduler("open-key", **tls)
    assert refused.process.wait(45) == 2
    assert "http_tls_key_file" in refused.log_text() and "chmod 600" in refused.log_text()
    installation.daemons.remove(refused)


def test_flood_of_requests_delays_neither_planning_nor_probes(installation):
    db = installation.connect()
    db.execute(DEFINITIONS)
    db.execute("INSERT INTO reports.schedule (name, report, kind, rule) VALUES ('tick', 'nothing', 'interval', '1 second')")
    _, port = start_scheduler(installation, "one")
    wait_for_leader(installation, [port])
    began = one(db, "SELECT clock_timestamp()")
    over = threading.Event()
    told = []

    def flood():
        while not over.is_set():
            try:
                told.append(ask(port, "POST", "/requests", body=trigger(None), token=TOKEN).status)
            except OSError as e:
                told.append(e)

    clients = [threading.Thread(target=flood) for _ in range(90)]  # more than may wait at once
    for c in clients:
        c.start()
    try:
        installation.wait_until(lambda: one(
            db, "SELECT count(*) FROM reports.occurrence WHERE schedule = 'tick' AND scheduled_for > %s", (began,)) >= 6,
            30, "six ticks are planned")
        asked = time.monotonic()
        assert ask(port, "GET", "/livez").status == 200
        assert time.monotonic() - asked < 30
    finally:
        over.set()
        for c in clients:
            c.join()
    assert set(told) <= {200, 202, 503} and told.count(200) > 50, {x: told.count(x) for x in set(map(str, told))}
    # Those that were told 202 may be on their way: once none is, there is an occurrence for each that was done.
    installation.wait_until(lambda: one(db, "SELECT count(*) FROM reports.request WHERE state = 'pending'") == 0, 60, "all are answered")
    assert triggered(db) == one(db, "SELECT count(*) FROM reports.request WHERE state = 'done'") >= told.count(200)
    # Behind one step's requests a firing may wait, and not behind all that keep coming: by their number, since a busy
    # machine answers each of them late.
    before = one(db, "SELECT max(n) FROM (SELECT count(r.id) AS n FROM reports.occurrence o JOIN reports.request r "
                     "ON r.answered_at BETWEEN o.scheduled_for AND o.planned_at WHERE o.schedule = 'tick' AND o.scheduled_for > %s "
                     "GROUP BY o.scheduled_for) x", (began,))
    assert before is None or before <= 110, before  # REQUESTS_STEP_MAX, and some


def test_port_in_use_ends_the_start_and_names_the_setting(installation):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        daemon = installation.start_scheduler(http_port=taken.getsockname()[1])
        assert daemon.process.wait(45) == 2
    assert "http_port: cannot listen on 127.0.0.1 port" in daemon.log_text()
    installation.daemons.remove(daemon)


def test_no_address_means_no_http(installation):
    daemon = installation.start_scheduler(http_address="")
    installation.wait_until(lambda: installation.leader() is not None, 40, "it leads all the same")
    assert "HTTP listens" not in daemon.log_text()


def test_page_shows_scopes_and_escapes_what_comes_from_elsewhere(installation):
    _, port = start_scheduler(installation, "one", database="host=<b>no&such'host.invalid dbname=x user=report_scheduler")
    page = installation.wait_until(
        lambda: (lambda a: a if "no database" in a.text else None)(ask(port, "GET", "/")), 30, "the page shows the problem")
    assert page.status == 200
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert '<td data-l="scope">main</td>' in page.text
    assert "<b>" not in page.text and "<script" not in page.text
