"""Planned handoff: leadership goes to whom the operator names, only when that one can take over, and
whatever dies on the way nothing is lost, doubled or wedged.

ZooKeeper session 10 s, and 4 s where one is to be lost. Where something is killed "in the middle", the leader's release is held on its way
to the database (proxy.py): its successor has confirmed, it has drained, and no longer plans.
"""

import json
import os
import subprocess
import uuid

import pytest

import harness
from harness import LONG_SESSION_MS, SESSION_MS
from load import Load
from proof import check_everything

RELEASE = b"reports.release("
REFUSED = 4
PATIENCE = """
    CREATE OR REPLACE FUNCTION reports.handoff_patience() RETURNS interval LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
        AS $$ SELECT interval '30 seconds' $$"""


class Line:
    """Three replicas in a known order: one leads, two and three follow. `leader_port`: one reaches its
    database through a proxy. `session_ms`: long, so that nobody loses its place by standing still, but where that is wanted.
    `patient`: the leader waits longer than its 3 s for the successor's word, which comes late on a busy machine."""

    def __init__(self, installation, load, leader_port=None, session_ms=LONG_SESSION_MS, patient=True):
        self.installation = installation
        self.load = load
        self.daemons = {}
        if patient:
            load.db.execute(PATIENCE)
        for name in ("one", "two", "three"):
            port = leader_port if name == "one" else None
            self.daemons[name] = installation.start_scheduler(
                name, zookeeper_session_ms=session_ms,
                database=installation.stack.conninfo(installation.database, "report_scheduler", port))
            if name == "one":
                load.wait_for_leader()
            else:
                self.wait_order(*("one", "two", "three")[: len(self.daemons)])
        installation.wait_until(self.three_ready, 30, "the two behind could take over")

    def order(self):
        """Who leads, and who stands behind, by what they say of themselves."""
        rows = self.load.db.execute("""
            SELECT f.member, f.generation FROM reports.fence f WHERE f.scope = 'main' AND f.activated_at IS NOT NULL AND f.released_at IS NULL
             UNION ALL
            SELECT c.member, c.generation FROM reports.candidate c JOIN reports.fence f USING (scope)
             WHERE c.scope = 'main' AND c.generation > f.generation AND c.seen_at > clock_timestamp() - reports.candidate_silence()
             ORDER BY generation""").fetchall()
        return [member for member, _ in rows]

    def three_ready(self):
        """Who leads and the two behind, once both could take over; None until then."""
        order = self.order()
        ready = self.load.one("SELECT count(*) FROM reports.candidate c JOIN reports.fence f USING (scope) "
                              "WHERE c.scope = 'main' AND c.generation > f.generation AND c.state = 'ready'")
        return order if len(order) == 3 and ready >= 2 else None

    def wait_order(self, *names):
        self.installation.wait_until(lambda: self.order() == list(names), 20, f"they stand in line as {names}")

    def ask(self, *words, expect=0):
        return self.installation.reportctl("handoff", "main", *words, expect=expect)

    def ask_aside(self, *words):
        """Started, not awaited: (process, its output when it has ended)."""
        return subprocess.Popen([harness.build() / "reportctl", "handoff", "main", *words], stdin=subprocess.DEVNULL, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                env={**os.environ, "REPORTCTL_DATABASE": self.installation.stack.conninfo(self.installation.database)})

    def forget(self, name):
        """It was killed, as it should."""
        self.installation.daemons.remove(self.daemons[name])


@pytest.fixture
def load(installation):
    made = Load(installation, ticks=10, files=1)
    made.start_worker("worker-1")
    return made


def refusal(line, *words):
    result = subprocess.run([harness.build() / "reportctl", "handoff", *words], stdin=subprocess.DEVNULL, text=True, capture_output=True,
                            timeout=60, check=False,
                            env={**os.environ, "REPORTCTL_DATABASE": line.installation.stack.conninfo(line.installation.database)})
    assert result.returncode != 0 and result.stdout == "", result
    return result.stderr


def test_next_in_line_leads_and_the_gap_is_printed(installation, load):
    line = Line(installation, load)
    load.wait_flowing()
    before = installation.leader()
    said = line.ask()
    member, generation = installation.leader()
    assert member == "two" and generation > before[1]
    assert f'member "two" leads scope "main" with generation {generation}; ' in said
    assert ' ms without a leader since member "one" released' in said
    line.wait_order("two", "three", "one")
    # The same in JSON, and in the diary.
    again = json.loads(line.ask("-o", "json"))
    assert (again["from_member"], again["leader"], again["state"]) == ("two", "three", "done")
    assert 0 < again["gap_ms"] < LONG_SESSION_MS / 2, "far below the session: nobody waited for an expiry"
    assert load.one("SELECT reason FROM reports.leadership_event WHERE event = 'released' AND generation = %s", generation) == "handoff"
    load.wait_flowing()
    check_everything(installation, load.db)


def test_last_in_line_leads_when_named_and_those_ahead_enroll_again_behind_it(installation, load):
    line = Line(installation, load)
    load.wait_flowing()
    ahead = load.one("SELECT generation FROM reports.candidate WHERE member = 'two'")
    assert 'member "three" leads' in line.ask("--to", "three")
    assert installation.leader()[0] == "three"
    line.wait_order("three", "two", "one")
    assert load.one("SELECT generation FROM reports.candidate WHERE member = 'two'") > ahead
    assert 'standing aside for a handoff' in line.daemons["two"].log_text()
    load.wait_flowing()
    check_everything(installation, load.db)


def test_request_repeated_to_the_next_leader_gets_the_first_answer_and_moves_nothing(installation, load):
    line = Line(installation, load)
    request = str(uuid.uuid4())
    first = line.ask("--request-id", request)
    leader = installation.leader()
    assert leader[0] == "two"
    assert line.ask("--request-id", request) == first
    # Also when the answer was lost, and the leader changed meanwhile by another handoff.
    line.wait_order("two", "three", "one")
    line.ask("--to", "one")
    assert line.ask("--request-id", request) == first
    assert installation.leader()[0] == "one"
    load.wait_flowing()
    check_everything(installation, load.db)


def test_of_two_handoffs_at_once_one_moves_and_the_other_says_why_not(installation, load, proxy):
    line = Line(installation, load, leader_port=proxy.port)
    load.wait_flowing()
    generation = installation.leader()[1]
    proxy.hold(RELEASE)
    asked = line.ask_aside("--to", "two")
    installation.wait_until(proxy.caught.is_set, 10, "the leader releases")
    other = line.ask_aside("--to", "three")
    installation.wait_until(lambda: load.one("SELECT count(*) FROM reports.request WHERE kind = 'handoff'") == 2, 10, "both are asked for")
    proxy.release()
    said, refused = asked.communicate(timeout=60)[0], other.communicate(timeout=60)[0]
    assert asked.returncode == 0 and 'member "two" leads scope "main"' in said
    assert other.returncode == REFUSED and 'member "three" did not take over; member "two" leads' in refused, refused
    # Both of the same leader while it still waits.
    assert load.one("SELECT count(*) FROM reports.leadership_event WHERE event = 'established' AND generation > %s", generation) == 1
    check_everything(installation, load.db)


def test_second_handoff_is_refused_while_the_first_waits_for_its_successor(installation, load):
    line = Line(installation, load, patient=False)
    leader = installation.leader()
    line.daemons["two"].freeze()
    try:
        asked = line.ask_aside("--to", "two")
        installation.wait_until(lambda: load.one("SELECT count(*) FROM reports.handoff WHERE begun_at IS NOT NULL") == 1, 10, "it has begun")
        # By SQL: the first waits 3 s for its successor, and reportctl may need longer than that to start.
        load.db.execute("SELECT reports.ask(%s, 'handoff', 'main', 'three', interval '1 minute')", (second := str(uuid.uuid4()),))
        installation.wait_until(lambda: load.one("SELECT state FROM reports.request WHERE id = %s", second) != "pending", 20, "it is answered")
        state, answer = load.db.execute("SELECT state, answer FROM reports.request WHERE id = %s", (second,)).fetchone()
        assert state == "refused" and 'a handoff to member "two" is going on (request ' in answer, answer
        said = asked.communicate(timeout=60)[0]
        assert asked.returncode == REFUSED and 'member "two" did not confirm within 3 s' in said, said
    finally:
        line.daemons["two"].thaw()
    assert installation.leader() == leader
    check_everything(installation, load.db)


def test_what_cannot_be_handed_over_is_refused_with_the_reason(installation, load):
    line = Line(installation, load)
    leader = installation.leader()
    assert 'member "nobody" is not known' in refusal(line, "main", "--to", "nobody")
    assert 'Ready are "two", "three".' in refusal(line, "main", "--to", "nobody")
    assert 'member "one" leads scope "main" already' in refusal(line, "main", "--to", "one")
    assert "nowhere" in refusal(line, "nowhere")
    load.db.execute("INSERT INTO reports.scope (name) VALUES ('other')")
    assert 'scope "other" has no leader that could hand over' in refusal(line, "other", "--to", "two")
    load.db.execute("SELECT reports.raise_hold('main', NULL, 'a test')")
    assert 'a hold stands on scope "main", so nobody leads it' in refusal(line, "main")
    assert load.one("SELECT count(*) FROM reports.request WHERE kind = 'handoff'") == 0
    load.db.execute("SELECT reports.lift_hold(id) FROM reports.hold WHERE lifted_at IS NULL")
    load.wait_for_leader(after=leader[1] if installation.leader() != leader else 0)


def test_successor_that_lost_its_database_is_refused_and_the_leader_stays(installation, load, proxy):
    one = installation.start_scheduler("one")
    load.wait_for_leader()
    installation.start_scheduler("two", database=installation.stack.conninfo(installation.database, "report_scheduler", proxy.port),
                                 database_connect_ms=1000)
    installation.wait_until(lambda: load.one("SELECT count(*) FROM reports.candidate WHERE state = 'ready'") == 1, 20, "two is ready")
    leader = installation.leader()
    proxy.black_hole()
    result = installation.reportctl("handoff", "main", "--to", "two", expect=REFUSED)
    assert result == ""
    assert load.one("SELECT answer FROM reports.request WHERE kind = 'handoff'").startswith('member "two" did not confirm within 3 s')
    # It says nothing any more; as if that had lasted for long.
    installation.wait_until(lambda: load.one("SELECT count(*) FROM reports.candidate WHERE seen_at < clock_timestamp() - interval '6 seconds'") == 1,
                            20, "two is silent")
    load.db.execute("UPDATE reports.candidate SET seen_at = seen_at - reports.candidate_silence()")
    installation.reportctl("handoff", "main", "--to", "two", expect=REFUSED)
    # Refused at once: it is not asked for.
    assert load.one("SELECT count(*) FROM reports.request WHERE kind = 'handoff'") == 1
    assert installation.leader() == leader and one.is_alive()
    proxy.heal()
    check_everything(installation, load.db)


def test_frozen_successor_leaves_the_leader_where_it_is(installation, load):
    line = Line(installation, load, patient=False)
    leader = installation.leader()
    line.daemons["three"].freeze()
    try:
        assert 'member "three" did not confirm within 3 s that it can take over' in refusal(line, "main", "--to", "three")
    finally:
        line.daemons["three"].thaw()
    assert installation.leader() == leader
    load.wait_flowing()
    check_everything(installation, load.db)


def test_frozen_candidate_ahead_of_the_successor_is_named_and_the_leader_stays(installation, load):
    line = Line(installation, load, patient=False)
    leader = installation.leader()
    line.daemons["two"].freeze()
    try:
        assert 'member "two", which is before "three" in line, did not stand aside' in refusal(line, "main", "--to", "three")
    finally:
        line.daemons["two"].thaw()
    assert installation.leader() == leader
    check_everything(installation, load.db)


@pytest.mark.parametrize("fault", ["kill", "freeze"])
def test_successor_lost_in_the_middle_wedges_nothing(installation, load, proxy, fault):
    line = Line(installation, load, leader_port=proxy.port, session_ms=SESSION_MS)
    load.wait_flowing()
    generation = installation.leader()[1]
    proxy.hold(RELEASE)
    asked = line.ask_aside("--to", "three")
    installation.wait_until(proxy.caught.is_set, 10, "the leader releases")
    getattr(line.daemons["three"], fault)()
    proxy.release()
    said = asked.communicate(timeout=90)[0]
    member, after = load.wait_for_leader(after=generation, timeout=SESSION_MS / 1000 + 10)
    assert member in ("two", "one")
    assert asked.returncode == REFUSED and f'member "three" did not take over; member "{member}" leads scope "main"' in said, said
    if fault == "kill":
        line.forget("three")
    else:
        line.daemons["three"].thaw()
        # Its place was lost while it was away; it comes back at the end of the line and fences nobody.
        installation.wait_until(lambda: line.order()[:1] == [member] and len(line.order()) == 3 and line.order()[-1] == "three", 30,
                                "three stands at the end of the line")
        assert installation.leader() == (member, after)
    load.wait_flowing()
    check_everything(installation, load.db)


def test_leader_killed_in_the_middle_is_followed_by_the_one_that_was_named(installation, load, proxy):
    line = Line(installation, load, leader_port=proxy.port, session_ms=SESSION_MS)
    load.wait_flowing()
    generation = installation.leader()[1]
    proxy.hold(RELEASE)
    asked = line.ask_aside("--to", "three")
    installation.wait_until(proxy.caught.is_set, 10, "the leader releases")
    line.daemons["one"].kill()
    line.forget("one")
    said = asked.communicate(timeout=90)[0]
    member, _ = load.wait_for_leader(after=generation, timeout=SESSION_MS / 1000 + 10)
    assert member == "three"
    assert asked.returncode == 0 and f'member "one" did not release generation {generation}' in said, said
    proxy.release()  # what the dead leader had sent arrives now, and is refused
    load.wait_flowing()
    check_everything(installation, load.db)


def test_many_handoffs_under_load_lose_and_double_nothing(installation):
    load = Load(installation, ticks=30, files=2)
    line = Line(installation, load)
    load.start_worker("worker-1")
    load.start_worker("worker-2")
    load.wait_flowing(100)
    for n in range(8):
        order = installation.wait_until(line.three_ready, 30, "three stand in line, and two could take over")
        line.ask("--to", order[1 + n % 2])
        assert installation.leader()[0] == order[1 + n % 2]
    load.wait_flowing(50)
    assert load.one("SELECT count(*) FROM reports.fence_rejection") == 0, "nobody wrote after it had released"
    check_everything(installation, load.db)
