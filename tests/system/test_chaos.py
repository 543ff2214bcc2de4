"""Faults of all kinds on a whole installation under load, judged by chaos/history.py, which shares no code
with what it judges; and that judge itself, on histories with a fault planted in each.

`dev/soak chaos` runs all nemeses for longer, `dev/soak crashes` kills processes at each named place.
"""

import dataclasses
import datetime
import hashlib
import random

import pytest

import harness
from chaos import cluster as clusters, history, nemeses, packets, run

UTC = datetime.timezone.utc
MOST = ("kill_leader", "freeze_leader_beyond_session", "leader_cut_from_zookeeper_and_frozen", "leader_cannot_hear_postgresql",
        "zookeeper_majority_gone", "freeze_worker_beyond_its_lease")
CHANGES_LEADER = ("kill_leader", "freeze_leader_beyond_session", "leader_cut_from_zookeeper_and_frozen")
RANDOM_MINUTES = 1.5


# The judge ------------------------------------------------------------------------------------------

T = datetime.datetime(2030, 4, 12, 6, 0, 0, tzinfo=UTC)
MS = 1_000_000


def at(s):
    return T + datetime.timedelta(seconds=s)


def log(*lines):
    return "\n".join(lines) + "\n"


def sent(ms, session=1):
    return f'event="quorum write answered" session={session} sent_ns={ms * MS} answered_ns={(ms + 1) * MS} negotiated_ms=4000'


def decided(ms, generation, what="plan"):
    return f'event="leader work decided" scope=main what={what} incarnation=1 generation={generation} at_ns={ms * MS} lease_ns=0'


def good():
    """Four firings by two leaders, one of them in a gap; all as it should be."""
    content = b"2030-04-12T06:00:01Z of stamp\n"
    h = history.History(until=at(4.5), tick_ms=500, margin_ms=1000)
    h.schedules = [("s", "interval", "1 second", T, "UTC", at(0.5))]
    h.occurrences = [("s", "2030-04-12T06:00:01Z", "a", at(1), "schedule", 1, 7, 101), ("s", "2030-04-12T06:00:02Z", "b", at(2), "schedule", 1, 7, 102),
                     ("s", "2030-04-12T06:00:04Z", "d", at(4), "schedule", 1, 9, 202), ("asked", "k0", "m", at(3), "manual", 1, 9, 203)]
    h.gaps = [("s", at(3), at(3), 1, "paused", 1, 9, 201)]
    h.jobs = [("a", "succeeded", "program", "s", "2030-04-12T06:00:01Z"), ("b", "succeeded", "noop", "s", "2030-04-12T06:00:02Z"),
              ("d", "succeeded", "noop", "s", "2030-04-12T06:00:04Z"), ("m", "succeeded", "noop", "asked", "k0")]
    h.attempts = [("a", 1, "lost", at(1), at(2)), ("a", 2, "succeeded", at(2), at(3))] + [(j, 1, "succeeded", at(4), at(4)) for j in "bdm"]
    h.artifacts = [("a", "x/a.txt", len(content), hashlib.sha256(content).digest())]
    h.files = {"x/a.txt": content}
    h.established = [(1, 7, 100, "one"), (1, 9, 200, "two"), (1, 9, 204, "two")]
    h.fence = (1, 9)
    h.rejections = [((1, 7, "o"), (1, 9), "plan_batch")]
    h.requests, h.asked = [("r", "done", "k0", "m", at(2), at(602))], {"r": ("k0", at(2))}
    h.probes = [((1, 7, "o"), "activated", "fenced")]
    h.messages = [{"job_id": j, "key": j, "generation": g} for j, g in (("a", "7"), ("b", "7"), ("d", "9"), ("m", "9"), ("a", "7"))]
    # The lease of a quorum write sent at 1000 ms ends at 1000 + 4000 - 500 - 500 - 1000 = 3000 ms.
    h.logs = {"one": log(sent(1000), decided(2999, 7), f'event="session suspended" session=1 at_ns={3100 * MS}'),
              "two": log(sent(5000), decided(5100, 9, "establish"), decided(5200, 9))}
    return h


def test_judge_finds_nothing_where_nothing_is_wrong():
    assert history.judge(good()) == []


def occurrence(h, n, **changes):
    fields = ("schedule", "key", "job", "at", "cause", "incarnation", "generation", "xid")
    h.occurrences[n] = tuple(changes.get(f, v) for f, v in zip(fields, h.occurrences[n]))


def asked_under_a_stepped_clock(h, key="k1", asked=1, requested=-3599, deadline=-2999, held=(-3600, 4), stepped=True):
    """A request with ten minutes, asked while the database's clock was an hour behind and everything held for
    four seconds. When the clock was right again, its time was over: the next leader told that."""
    h.requests.append(("q", "expired", key, None, at(requested), at(deadline)))
    h.asked["q"] = (key, at(asked))
    h.holds.append((at(held[0]), at(held[1]), stepped))


def test_judge_lets_a_request_expire_whose_time_ended_under_a_hold():
    h = good()
    asked_under_a_stepped_clock(h)
    assert history.judge(h) == []


def test_judge_lets_a_request_expire_whose_time_ended_under_an_operators_hold():
    h = good()
    asked_under_a_stepped_clock(h, asked=1, requested=1, deadline=3, held=(2, 4), stepped=False)
    assert history.judge(h) == []


@pytest.mark.parametrize("where", [
    {"asked": -3599}, {"asked": -2400, "requested": -2400, "deadline": -1800}, {"deadline": 5}, {"requested": -4300, "deadline": -3700},
    {"held": (-2000, 4)}, {"asked": 0, "requested": 0, "deadline": 3, "held": (-3600, 2), "stepped": False}], ids=str)
def test_judge_blames_a_request_that_expired_outside_of_a_hold(where):
    h = good()
    asked_under_a_stepped_clock(h, **where)
    assert "request lost" in {v.kind for v in history.judge(h)}


PLANTED = {
    "lost": lambda h: h.gaps.clear(),
    "doubled": lambda h: h.occurrences.append(("s", "2030-04-12T06:00:02Z+", "e", at(2), "schedule", 1, 7, 103)),
    "not due": lambda h: occurrence(h, 1, at=at(2.5)),
    "wrong key": lambda h: occurrence(h, 1, key="2030-04-12T06:00:03Z"),
    "wrong gap": lambda h: h.gaps.__setitem__(0, ("s", at(3), at(3), 2, "paused", 1, 9, 201)),
    "no job": lambda h: h.jobs.pop(1),
    "no occurrence": lambda h: h.jobs.append(("z", "succeeded", "noop", "s", "?")),
    "not done": lambda h: h.jobs.__setitem__(1, ("b", "queued", "noop", "s", "2030-04-12T06:00:02Z")),
    "attempt missing": lambda h: h.attempts.pop(0),
    "two successes": lambda h: h.attempts.__setitem__(0, ("a", 1, "succeeded", at(1), at(2))),
    "two claims": lambda h: h.attempts.__setitem__(1, ("a", 2, "succeeded", at(1.9), at(3))),
    "two artifacts": lambda h: h.artifacts.append(h.artifacts[0]),
    "no artifact": lambda h: h.artifacts.clear(),
    "no file": lambda h: h.files.clear(),
    "wrong file": lambda h: h.files.__setitem__("x/a.txt", b"2030-04-12T06:00:01Z of another\n"),
    "orphan file": lambda h: h.files.__setitem__("x/b.txt", b""),
    "request lost": lambda h: h.asked.__setitem__("q", ("k1", at(2))),
    "carried out after its end": lambda h: asked_under_a_stepped_clock(h, key="k0"),
    "message of nothing": lambda h: h.messages.append({"job_id": "y", "key": "y", "generation": "9"}),
    "message of nobody": lambda h: h.messages.append({"job_id": "a", "key": "a", "generation": "8"}),
    "no messages": lambda h: h.messages.clear(),
    "generation did not grow": lambda h: h.established.__setitem__(2, (1, 8, 204, "three")),
    "written by nobody": lambda h: occurrence(h, 1, generation=8),
    "stale write": lambda h: occurrence(h, 1, xid=205),
    "newest refused": lambda h: h.rejections.append(((1, 9, "o"), (1, 7), "plan_batch")),
    "decided after the lease": lambda h: h.logs.__setitem__("one", log(sent(1000), decided(3001, 7))),
    "decided while suspended": lambda h: h.logs.__setitem__(
        "one", log(sent(1000), f'event="session suspended" session=1 at_ns={2000 * MS}', decided(2001, 7))),
    "two leaders": lambda h: h.logs.__setitem__("two", log(sent(2000), decided(2500, 9, "establish"))),
    "no decisions": lambda h: h.logs.clear(),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_judge_finds_what_was_planted(kind):
    h = good()
    PLANTED[kind](h)
    assert kind in {v.kind for v in history.judge(h)}


@pytest.mark.parametrize("between", [(), ('event="session given up" session=1 id=0x1 reason="session expired"',)])
def test_judge_lets_no_generation_live_on_the_lease_of_another_session(between):
    """Seen in the field: the scope's thread waited for the database while its session was given up, the next
    one came, and the relay went by that one's lease."""
    h = good()
    h.logs["one"] = log(sent(1000), decided(2000, 7), *between, sent(3000, session=2), decided(3100, 7))
    assert [v.kind for v in history.judge(h)] == ["decided after the lease"]


def test_judge_finds_a_stale_write_that_was_accepted():
    h = dataclasses.replace(good(), probes=[((1, 7, "o"), "activated", "ok")])
    assert [v.kind for v in history.judge(h)] == ["stale write"]


def test_every_kind_of_violation_has_been_planted():
    said = set(harness.re.findall(r'Violation\("([^"]+)"', (harness.ROOT / "tests/system/chaos/history.py").read_text()))
    # A file of another occurrence needs a content that hashes as the row says.
    assert said - set(PLANTED) == {"foreign file", "claimed after its end", "nothing due"}


def test_due_keys_of_cron_follow_the_clock_of_the_zone():
    begin = datetime.datetime(2030, 3, 31, 0, 58, 30, tzinfo=UTC)
    due = history.due_keys("cron", "*/30 * * * *", None, "Europe/Berlin", begin, begin + datetime.timedelta(hours=1))
    assert list(due.values()) == ["2030-03-31T03:00", "2030-03-31T03:30"], "the hour from two to three is not there on that day"


# Whole installations --------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def cluster(stack):
    installation = harness.Installation(stack)
    cluster = None
    failed = True
    try:
        installation.create()
        cluster = clusters.Cluster(installation, seed=1)
        cluster.start()
        yield cluster
        failed = getattr(cluster, "failed", True)
    finally:
        if cluster is not None:
            cluster.remove()
        stack.heal()
        installation.remove(keep_files=failed)


@pytest.mark.parametrize("name", MOST)
def test_installation_survives(cluster, name):
    chosen = next(c for c in nemeses.ALL if c.name == name)
    if chosen not in nemeses.usable(cluster):
        pytest.skip("this machine cannot filter packets: that needs root and iptables")
    if not all(d.is_alive() for d in cluster.daemons.values()):  # they were stopped for a look at the history
        for daemon in cluster.daemons:
            cluster.start_again(daemon)
        cluster.recover()
    before = cluster.stale[-1]
    run.one_round(cluster, [chosen])
    if name in CHANGES_LEADER:
        assert cluster.stale[-1] > before, "it had an effect: another leads"
    if chosen.needs == "packets":
        assert cluster.dropped > 0, "it had an effect: packets were dropped"


def test_history_of_all_that_is_without_violation(cluster):
    h, _, _ = run.settle(cluster)
    assert run.told(history.judge(h)) == ""
    cluster.failed = False


@pytest.mark.timeout(420)
def test_random_nemeses_for_two_minutes_leave_no_violation(stack):
    """The seed is printed; `dev/soak chaos --seed S` does the same for longer."""
    seed = random.SystemRandom().randrange(10**6)
    installation = harness.Installation(stack)
    cluster, failed = None, True
    try:
        installation.create()
        cluster = clusters.Cluster(installation, seed)
        faults, h, violations, say = run.run(cluster, RANDOM_MINUTES, nemeses.usable(cluster), random.Random(seed), at_least=10)
        print(f"seed {seed}\n{say}")
        assert run.told(violations) == "", f"seed {seed}"
        assert len(faults) >= 10 and len(h.occurrences) > 60 * 200
        failed = False
    finally:
        if cluster is not None:
            cluster.remove()
        stack.heal()
        installation.remove(keep_files=failed)


def test_packet_filter_leaves_nothing_behind():
    if not packets.is_allowed():
        pytest.skip("this machine cannot filter packets: that needs root and iptables")
    other = packets.PacketFilter([61998])
    f = packets.PacketFilter([61999])
    f.cut(61999, [1], packets.BOTH)
    f.remove()
    other.remove()
    said = "".join(packets._run("-t", t, "-S") for t in ("filter", "mangle"))  # pylint: disable=protected-access
    assert f.chain not in said and other.chain not in said
