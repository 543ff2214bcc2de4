"""The clock of PostgreSQL is stepped under load (libfaketime under a server of the test's own; our daemons
keep the machine's clock): nothing is planned early or twice, the installation is held whoever leads, and
goes on by itself once the clock is back and consistent."""

import json
import os
import re
import time

import pytest

import harness
import servers
from load import LONG_LEASE_S, start
from proof import check_everything

SAMPLE_S = 5  # of the clock witness
STEP_S = 7200


class SteppableStack(harness.Stack):
    def __init__(self):
        super().__init__()
        self.postgres = servers.SteppablePostgres()
        self.pg_port = self.postgres.port

    def heal(self):
        """Nothing of the stack's was touched."""


@pytest.fixture
def stepped(request):
    assert os.path.exists(servers.FAKETIME), "libfaketime is missing: run dev/setup"
    stack = SteppableStack()
    try:
        with harness.installed(stack, request) as installation:
            yield installation
    finally:
        stack.postgres.remove()


def states(installation):
    """{name: state by its last step} of the schedulers that run."""
    found = {}
    for d in installation.daemons:
        if d.program == "report-scheduler" and d.is_alive():
            steps = [x.split(" to=")[1].split()[0] for x in d.log_text().splitlines() if " to=" in x]
            found[d.name] = steps[-1] if steps else None
    return found


def held(installation, count):
    last = states(installation)
    return len(last) == count and set(last.values()) == {"HELD"}


def planned_early(load):
    """Firings planned before their time by the machine's own clock, which nobody steps."""
    return load.db.execute("SELECT schedule, scheduled_for::text FROM reports.occurrence "
                           "WHERE scheduled_for > to_timestamp(%s) ORDER BY 2", (time.time(),)).fetchall()


@pytest.mark.parametrize("step_s", [STEP_S, -STEP_S])
def test_a_step_holds_the_installation_whoever_leads_until_the_clock_is_back(stepped, step_s):
    load = start(stepped, schedulers=3, ticks=3, files=1, lease_s=LONG_LEASE_S)
    first, generation = load.wait_for_leader()
    stepped.stack.postgres.step(step_s)
    hold = load.wait_until(lambda: load.db.execute("SELECT id, raised_by, step_us FROM reports.hold WHERE cause = 'clock_hold' "
                                                   "AND lifted_at IS NULL").fetchone(), 2 * SAMPLE_S, "a hold is raised")
    assert abs(hold[2] / 1e6 - step_s) < 60, hold
    load.wait_until(lambda: held(stepped, 3), 30, "every replica is held")
    assert planned_early(load) == []
    # By their logs: the diary is written only by who still has a connection.
    assert any(re.search(r"from=ACTIVE to=.* reason=(clock_suspect|held) ", d.log_text()) for d in stepped.daemons), "who led gave up by it"
    assert load.one("SELECT count(*) FROM reports.hold WHERE cause = 'clock_hold'") == 1, "three replicas make one hold"
    # Who led is killed; who follows, and one that never saw the step, find the hold.
    next(d for d in stepped.daemons if d.name == first).kill()
    late = stepped.start_scheduler("late")
    load.wait_until(lambda: held(stepped, 3) and late.name in states(stepped), 30, "the others are held all the same")
    occurrences, claims = (load.one(f"SELECT count(*) FROM reports.{t}") for t in ("occurrence", "job_attempt"))
    load.last(2 * SAMPLE_S + 6)  # three consistent samples, and the clock is not right
    assert load.one("SELECT lifted_at FROM reports.hold WHERE id = %s", hold[0]) is None
    assert load.one("SELECT count(*) FROM reports.occurrence") == occurrences, "something was planned"
    load.wait_until(lambda: load.one("SELECT count(*) FROM reports.job WHERE state = 'running'") == 0, 30, "what ran has ended")
    assert load.one("SELECT count(*) FROM reports.job_attempt") - claims <= 8, "something was claimed"
    assert "clock_hold" in stepped.reportctl("holds", "-o", "json")
    clocks = json.loads(stepped.reportctl("clocks", "-o", "json"))
    assert {c["member"] for c in clocks} >= {"scheduler-1", "scheduler-2", "scheduler-3", "late"}
    assert any(abs(c["offset_s"] + step_s) < 60 for c in clocks), clocks
    metrics = json.loads(stepped.reportctl("status", "-o", "json"))
    assert any("clock" in p["problem"] for p in metrics["problems"]), metrics["problems"]
    # Set back to where it was: three samples later everything goes on.
    stepped.stack.postgres.step(0)
    load.wait_until(lambda: load.one("SELECT lifted_at FROM reports.hold WHERE id = %s", hold[0]), 5 * SAMPLE_S + 10,
                    "the hold is lifted")
    leader = load.wait_for_leader(generation)
    assert load.one("SELECT count(*) FROM reports.hold WHERE cause = 'clock_hold'") == 1
    assert load.one("SELECT p.reap_not_before >= f.activated_at + make_interval(secs => %s) "
                    "FROM reports.fence f JOIN reports.fence_pulse p USING (scope) WHERE f.scope = 'main'", LONG_LEASE_S - 1), leader
    load.wait_flowing()
    check_everything(stepped, load.db)
    assert planned_early(load) == []
    assert load.one("SELECT count(*) FROM reports.job_attempt WHERE outcome = 'lost'") == 0, "a step took a job from its worker"


def test_an_operator_lifts_the_hold_and_the_clock_is_taken_as_it_is(stepped):
    load = start(stepped, schedulers=2, ticks=3, files=1)
    stepped.stack.postgres.step(400)
    hold = load.wait_until(lambda: load.one("SELECT id FROM reports.hold WHERE cause = 'clock_hold' AND lifted_at IS NULL"),
                           2 * SAMPLE_S, "a hold is raised")
    load.wait_until(lambda: held(stepped, 2), 30, "both are held")
    assert f"hold {hold} on the installation" in stepped.reportctl("release-hold", hold)
    load.wait_for_leader(timeout=20)
    load.wait_flowing()
    load.last(2 * SAMPLE_S)
    assert load.one("SELECT count(*) FROM reports.hold WHERE lifted_at IS NULL") == 0, "it is not raised again"
    check_everything(stepped, load.db)


def test_a_small_step_is_lifted_by_consistency_alone(stepped):
    load = start(stepped, schedulers=2, ticks=3, files=1)
    stepped.stack.postgres.step(60)
    hold = load.wait_until(lambda: load.one("SELECT id FROM reports.hold WHERE cause = 'clock_hold' AND lifted_at IS NULL"),
                           2 * SAMPLE_S, "a hold is raised")
    load.wait_until(lambda: load.one("SELECT lifted_by FROM reports.hold WHERE id = %s", hold), 5 * SAMPLE_S + 10, "it is lifted")
    load.wait_for_leader(timeout=20)
    load.wait_flowing()
    check_everything(stepped, load.db)
