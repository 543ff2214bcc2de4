"""What an installation did, and whether it was allowed. Written apart from the code that it judges: it reads
only the tables, the artifact directory, the messages and the logs, and computes by itself what was due.

collect() reads, judge() is pure: tests give it histories with planted faults (test_chaos.py).

Order in the database is that of transaction ids (xmin), which no clock can step: establish takes its id
under the exclusive lock of the scope, every protected write takes one under the shared lock.
"""

import collections
import dataclasses
import datetime
import hashlib
import pathlib
import re
import zoneinfo

UTC = datetime.timezone.utc
BEAT_MOST_MS = 1000
SAME_MOMENT_NS = 5_000_000  # `at` is read just before the lease is
SAME_CLOCK = datetime.timedelta(seconds=30)  # between our asking and the database's noting it; steps are an hour


@dataclasses.dataclass
class Violation:
    kind: str
    text: str
    at: datetime.datetime = None  # by the database, where that is known


@dataclasses.dataclass
class History:
    until: datetime.datetime = None
    schedules: list = dataclasses.field(default_factory=list)  # (name, kind, rule, anchor, zone, effective_from)
    occurrences: list = dataclasses.field(default_factory=list)  # (schedule, key, job, scheduled_for, cause, incarnation, generation, xid)
    gaps: list = dataclasses.field(default_factory=list)  # (schedule, from, to, firings, reason, incarnation, generation, xid)
    jobs: list = dataclasses.field(default_factory=list)  # (id, state, kind of its report, schedule, key)
    attempts: list = dataclasses.field(default_factory=list)  # (job, attempt, outcome, started, ended)
    artifacts: list = dataclasses.field(default_factory=list)  # (job, path, size, sha256)
    files: dict = dataclasses.field(default_factory=dict)  # path -> content
    established: list = dataclasses.field(default_factory=list)  # (incarnation, generation, xid, member), in order
    rejections: list = dataclasses.field(default_factory=list)  # ((incarnation, generation, owner), (stored incarnation, generation), operation)
    fence: tuple = None  # (incarnation, generation)
    requests: list = dataclasses.field(default_factory=list)  # (id, state, key, job, requested_at, deadline), by the database's clock
    asked: dict = dataclasses.field(default_factory=dict)  # request id -> (key, when by our clock)
    holds: list = dataclasses.field(default_factory=list)  # (since, lifted_at, whether for a stepped clock), on all that is planned
    probes: list = dataclasses.field(default_factory=list)  # ((incarnation, generation, owner), operation, verdict)
    messages: list = dataclasses.field(default_factory=list)  # dictionaries
    logs: dict = dataclasses.field(default_factory=dict)  # member -> text, of schedulers
    tick_ms: int = 0
    margin_ms: int = 0
    clock_stepped: bool = False  # of the database: its instants tell no order
    lost_commits: bool = False  # an asynchronous failover: the surviving database is the baseline


# Collecting -----------------------------------------------------------------------------------------

def collect(db, artifacts, history):
    def rows(query):
        return db.execute(query).fetchall()

    history.schedules = rows("SELECT s.name, s.kind, s.rule, s.anchor, s.time_zone, v.effective_from FROM reports.schedule s "
                             "JOIN reports.schedule_version v ON v.schedule = s.name AND v.version = 1 WHERE s.kind IN ('interval', 'cron')")
    history.occurrences = rows("SELECT schedule, occurrence_key, job_id::text, scheduled_for, cause, incarnation, generation, xmin::text::bigint "
                               "FROM reports.occurrence")
    history.gaps = rows("SELECT schedule, from_fire_at, to_fire_at, firings, reason, incarnation, generation, xmin::text::bigint "
                        "FROM reports.schedule_gap")
    history.jobs = rows("SELECT j.id::text, j.state::text, r.kind, j.schedule, j.occurrence_key FROM reports.job j "
                        "JOIN reports.report r ON r.name = j.report")
    history.attempts = rows("SELECT job_id::text, attempt, outcome, started_at, ended_at FROM reports.job_attempt")
    history.artifacts = rows("SELECT job_id::text, path, size_bytes, sha256 FROM reports.artifact")
    history.established = rows("SELECT incarnation, generation, xmin::text::bigint, member FROM reports.leadership_event "
                               "WHERE event = 'established' AND scope = 'main' ORDER BY id")
    history.rejections = [((i, g, o), (si, sg), operation) for i, g, o, si, sg, operation in rows(
        "SELECT incarnation, generation, owner::text, stored_incarnation, stored_generation, operation FROM reports.fence_rejection")]
    history.fence = db.execute("SELECT incarnation, generation FROM reports.fence WHERE scope = 'main'").fetchone()
    history.requests = rows("SELECT id::text, state, argument, job_id::text, requested_at, deadline FROM reports.request WHERE kind = 'trigger'")
    history.holds = rows("SELECT since, coalesce(lifted_at, clock_timestamp()), cause = 'clock_hold' FROM reports.hold "
                         "WHERE queue IS NULL AND coalesce(scope, 'main') = 'main'")
    root = pathlib.Path(artifacts)
    history.files = {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}
    return history


# What was due, by itself ----------------------------------------------------------------------------

def _field(text, low, high):
    values = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, _, last = (f"{low}-{high}" if span == "*" else span).partition("-")
        values |= set(range(int(first), int(last or (high if step else first)) + 1, int(step or 1)))
    return values


def _interval_s(rule):
    count, unit = re.fullmatch(r"(\d+) (second|minute|hour)s?", rule).groups()
    return int(count) * {"second": 1, "minute": 60, "hour": 3600}[unit]


def due_keys(kind, rule, anchor, zone, after, until):
    """{instant: key} of what is due in (after, until], by the rules as docs/schedules.md tells them."""
    if kind == "interval":
        step = datetime.timedelta(seconds=_interval_s(rule))
        at = anchor + (after - anchor) // step * step
        by_minute = anchor.second == 0 and anchor.microsecond == 0 and step.seconds % 60 == 0
        form = "%Y-%m-%dT%H:%MZ" if by_minute else "%Y-%m-%dT%H:%M:%SZ"
        found = {}
        while at <= until:
            if at > after:
                found[at] = at.astimezone(UTC).strftime(form)
            at += step
        return found
    minutes, hours, days, months, weekdays = rule.split()
    assert (days, months, weekdays) == ("*", "*", "*"), "this checker knows days by no other name"
    minutes, hours = _field(minutes, 0, 59), _field(hours, 0, 23)
    at = after.replace(second=0, microsecond=0)
    found = {}
    while at <= until:
        local = at.astimezone(zoneinfo.ZoneInfo(zone))
        if at > after and local.minute in minutes and local.hour in hours:
            found[at] = local.strftime("%Y-%m-%dT%H:%M")
        at += datetime.timedelta(minutes=1)
    return found


def _judge_firings(h):
    made, gaps = collections.defaultdict(list), collections.defaultdict(list)
    for schedule, key, _, at, cause, *_ in h.occurrences:
        if cause != "manual" and at <= h.until:
            made[schedule].append((at, key))
    for schedule, begin, end, firings, reason, *_ in h.gaps:
        gaps[schedule].append([begin, end, firings, reason])
    for name, kind, rule, anchor, zone, after in h.schedules:
        due = due_keys(kind, rule, anchor, zone, after, h.until)
        if not due and kind == "interval":
            yield Violation("nothing due", f"{name}: the run was too short to say anything")
        times = collections.Counter(at for at, _ in made[name])
        for at, count in times.items():
            if count > 1:
                yield Violation("doubled", f"{name} at {at}: {count} occurrences", at)
            if at not in due:
                yield Violation("not due", f"{name} at {at}", at)
        for at, key in made[name]:
            if at in due and due[at] != key:
                yield Violation("wrong key", f"{name} at {at}: {key}, not {due[at]}", at)
        counted = collections.Counter()
        for at in due:
            inside = [n for n, g in enumerate(gaps[name]) if g[0] <= at <= g[1]]
            counted.update(inside[:1])
            if at not in times and not inside:
                yield Violation("lost", f"{name} at {at}", at)
            if at in times and inside:
                yield Violation("doubled", f"{name} at {at}: an occurrence and a gap", at)
        for n, (begin, end, firings, _) in enumerate(gaps[name]):
            if end <= h.until and counted[n] != firings:
                yield Violation("wrong gap", f"{name} {begin}..{end}: says {firings} firings, {counted[n]} were due")


# What became of them --------------------------------------------------------------------------------

def _judge_jobs(h):
    by_id = {job: (state, kind, schedule, key) for job, state, kind, schedule, key in h.jobs}
    for schedule, key, job, at, *_ in h.occurrences:
        if by_id.get(job, (None, None, None, None))[2:] != (schedule, key):
            yield Violation("no job", f"{schedule}:{key} has no job of its own")
        elif at <= h.until and by_id[job][0] != "succeeded":
            yield Violation("not done", f"{schedule}:{key} is {by_id[job][0]}")
    if len(by_id) != len(h.occurrences):
        yield Violation("no occurrence", f"{len(by_id)} jobs of {len(h.occurrences)} occurrences")
    attempts = collections.defaultdict(list)
    for job, attempt, outcome, started, ended in h.attempts:
        attempts[job].append((attempt, outcome, started, ended))
    for job, (state, *_ ) in by_id.items():
        mine = sorted(attempts[job])
        if [n for n, *_ in mine] != list(range(1, len(mine) + 1)):
            yield Violation("attempt missing", f"{job}: {[n for n, *_ in mine]}")
        if (state == "succeeded") != (sum(o == "succeeded" for _, o, *_ in mine) == 1) or sum(o == "succeeded" for _, o, *_ in mine) > 1:
            yield Violation("two successes", f"{job} is {state}: {mine}")
        if state == "succeeded" and mine and mine[-1][1] != "succeeded":
            yield Violation("claimed after its end", f"{job}: {mine}")
        for (_, _, _, ended), (n, _, started, _) in zip(mine, mine[1:]):
            if started < ended and not h.clock_stepped:
                yield Violation("two claims", f"{job}: attempt {n} began at {started}, the one before ended at {ended}")


def _judge_artifacts(h):
    of_job = collections.Counter(job for job, *_ in h.artifacts)
    for job, count in of_job.items():
        if count > 1:
            yield Violation("two artifacts", f"{job} has {count}")
    keys = {job: key for job, _, _, _, key in h.jobs}
    for job, path, size, digest in h.artifacts:
        content = h.files.get(path)
        if content is None:
            yield Violation("no file", f"{path} of job {job}")
        elif (len(content), hashlib.sha256(content).digest()) != (size, bytes(digest)):
            yield Violation("wrong file", f"{path} of job {job}")
        elif keys.get(job, "").encode() not in content:
            yield Violation("foreign file", f"{path} of job {job} says {content[:80]}")
    for job, state, kind, *_ in h.jobs:
        if state == "succeeded" and kind != "noop" and of_job[job] == 0:
            yield Violation("no artifact", job)
    for path in () if h.lost_commits else set(h.files) - {path for _, path, *_ in h.artifacts}:
        yield Violation("orphan file", path)


def _ended_under_a_hold(h, asked_at, requested_at, deadline):
    """Whether nobody could carry a request out when its time ended: under a hold a trigger waits, and the next
    leader expires it (docs/operations.md, Holds). A hold for a stepped clock begins by that clock. So does the
    time of who asked by it, which is over when the clock is right again; for who asked before it tells nothing."""
    by_wrong_clock = abs(requested_at - asked_at) > SAME_CLOCK
    return any(since <= deadline <= lifted_at and stepped == by_wrong_clock for since, lifted_at, stepped in h.holds)


def _judge_requests(h):
    known = {request: row for request, *row in h.requests}
    manual = collections.Counter(key for _, key, _, _, cause, *_ in h.occurrences if cause == "manual")
    for request, (key, asked_at) in h.asked.items():
        if request not in known and h.lost_commits:
            continue
        state, _, _, *times = known.get(request, (None, None, None))
        if state == "expired" and _ended_under_a_hold(h, asked_at, *times):
            if manual[key] != 0:
                yield Violation("carried out after its end", f"{request} ({key}) expired and made {manual[key]} occurrences")
            continue
        if state != "done":
            yield Violation("request lost", f"{request} ({key}) is {state}")
        if manual[key] != 1:
            yield Violation("request lost" if manual[key] == 0 else "doubled", f"{request} ({key}) made {manual[key]} occurrences")


def _judge_messages(h):
    jobs = {job for job, *_ in h.jobs}
    generations = {generation for _, generation, *_ in h.established}
    if not h.messages:
        yield Violation("no messages", "Kafka delivers nothing")
    for m in h.messages:
        if m["key"] != m["job_id"]:
            yield Violation("message of nobody", f"key {m['key']} of {m}")
        if m["job_id"] not in jobs and not h.lost_commits:
            yield Violation("message of nothing", str(m))
        elif int(m["generation"]) not in generations:
            yield Violation("message of nobody", str(m))


# Authority ------------------------------------------------------------------------------------------

def _judge_generations(h):
    first_xid = {}
    for (i, g, xid, member), (i2, g2, _, member2) in zip(h.established, h.established[1:]):
        if (i2, g2) < (i, g) or ((i2, g2) == (i, g) and member != member2):
            yield Violation("generation did not grow", f"{(i2, g2)} of {member2} after {(i, g)} of {member}")
    for i, g, xid, _ in h.established:
        first_xid.setdefault((i, g), xid)
    if h.established and h.fence != max((i, g) for i, g, *_ in h.established):
        yield Violation("generation did not grow", f"the fence row holds {h.fence}")
    authorities = sorted(first_xid)
    successor = {a: first_xid[b] for a, b in zip(authorities, authorities[1:])}
    for what, rows in (("occurrence", h.occurrences), ("gap", h.gaps)):
        for *rest, i, g, xid in rows:
            if (i, g) not in first_xid:
                yield Violation("written by nobody", f"{what} {rest[:2]} of generation {(i, g)}")
            elif xid < first_xid[(i, g)] or xid > successor.get((i, g), xid):
                yield Violation("stale write", f"{what} {rest[:2]} of {(i, g)} in transaction {xid}, its time was {first_xid[(i, g)]} to {successor.get((i, g))}")
    for (i, g, _), stored, operation in h.rejections:
        # One that was held before it could establish says so all the same when it lets go.
        if (i, g) > stored and not (operation == "release" and (i, g) not in first_xid):
            yield Violation("newest refused", f"{operation} of {(i, g)} while {stored} was accepted")
    for authority, operation, verdict in h.probes:
        if verdict != "fenced":
            yield Violation("stale write", f"{operation} in the name of {authority} answered {verdict}")


_SENT = re.compile(r'event="quorum write answered" session=(\d+) sent_ns=(\d+) answered_ns=(\d+) negotiated_ms=(\d+)')
_DECIDED = re.compile(r'event="leader work decided" scope=main what=(\w+) incarnation=(\d+) generation=(\d+) at_ns=(\d+)')
_SUSPENDED = re.compile(r'event="session suspended" session=\d+ at_ns=(\d+)')
_STARTED = 'event="scheduler starting"'
_GIVEN_UP = 'event="session given up"'


def decisions(log):
    """(what, (incarnation, generation), at_ns, writes, suspended_ns) in the order of the lines. `writes`: the
    quorum writes (sent, answered, session's length) answered so far that count for it, which are those of the
    session in which the generation began to decide; a session that came after it lets it do nothing."""
    sent, suspended, session_of = [], None, {}
    for line in log.splitlines():
        if _STARTED in line:
            sent, suspended = [], None
        elif _GIVEN_UP in line:
            sent = []
        elif m := _SENT.search(line):
            sent.append(tuple(map(int, m.groups())))
            suspended = None
        elif m := _SUSPENDED.search(line):
            suspended = int(m.group(1))
        elif m := _DECIDED.search(line):
            authority = int(m.group(2)), int(m.group(3))
            session = session_of.setdefault(authority, sent[-1][0] if sent else None)
            writes = [w[1:] for w in sent[-8:] if w[0] == session]
            yield m.group(1), authority, int(m.group(4)), writes, suspended


def _judge_leases(h):
    spans, seen = {}, 0
    for member, log in h.logs.items():
        for what, authority, at, sent, suspended in decisions(log):
            seen += 1
            until = max((s + (n - h.tick_ms - min(BEAT_MOST_MS, n // 8) - h.margin_ms) * 1_000_000
                         for s, answered, n in sent[-3:] if answered <= at + SAME_MOMENT_NS), default=0)
            if at >= until:
                yield Violation("decided after the lease", f"{member} {what} of {authority} at {at}, {(at - until) / 1e6:.1f} ms after")
            if suspended is not None and at > suspended:
                yield Violation("decided while suspended", f"{member} {what} of {authority} at {at}, {(at - suspended) / 1e6:.1f} ms after")
            first, last = spans.get(authority, (at, at))
            spans[authority] = (min(first, at), max(last, at))
    if seen == 0:
        yield Violation("no decisions", "the logs tell of none: log_level must be debug")
    ordered = sorted(spans)
    for a, b in zip(ordered, ordered[1:]):
        if spans[a][1] >= spans[b][0]:
            yield Violation("two leaders", f"{a} decided {(spans[a][1] - spans[b][0]) / 1e6:.1f} ms after {b} had begun to")


def judge(h):
    """[(kind, text)]: what must not be. Empty: all is well."""
    return [v for part in (_judge_firings, _judge_jobs, _judge_artifacts, _judge_requests, _judge_messages, _judge_generations, _judge_leases)
            for v in part(h)]
