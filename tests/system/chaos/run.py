"""The soak: random nemeses under load, then the judgement and a table of it.

    run.py [--minutes M] [--seed S] [--only NAME,NAME...] [--own-postgres]

Environment: that of `dev/stack env`, and RS_BUILD. Exit status 0: nothing was wrong.
"""

import argparse
import collections
import dataclasses
import datetime
import pathlib
import random
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import harness  # noqa: E402
from chaos import cluster as clusters, history, messages, nemeses, own_postgres  # noqa: E402

UTC = datetime.timezone.utc
QUIET_S = 1.5  # planning happens each second: a longer silence is one


@dataclasses.dataclass
class Fault:
    name: str
    began: datetime.datetime
    ended: datetime.datetime  # recovered


def now():
    return datetime.datetime.now(UTC)


def choose(rng, usable):
    """One to three nemeses, each of another lane."""
    lanes = collections.defaultdict(list)
    for c in usable:
        lanes[c.lane].append(c)
    names = rng.sample(sorted(lanes), rng.choice((1, 1, 2, 2, 3)) if len(lanes) > 2 else 1)
    return [rng.choice(lanes[lane]) for lane in names]


def one_round(cluster, chosen):
    """Begin them one after the other, let each last, heal all, and wait for recovery: [Fault]."""
    rng, began = cluster.random, []
    started = now()
    at_work = []
    try:
        for c in chosen:
            n = c(cluster)
            at_work.append((n, time.monotonic() + rng.uniform(*c.lasts)))
            began.append((c.name, now()))
            try:
                n.begin()
            except (clusters.psycopg.Error, harness.subprocess.CalledProcessError) as e:
                # Another of this round has taken away what this one needs.
                print(f"    {c.name} could not begin: {e}".splitlines()[0], flush=True)
                began.pop()
            cluster.ask()
            wait = rng.uniform(0, 1.5)
            harness.wait_until(lambda end=time.monotonic() + wait: time.monotonic() > end, wait + 5, "the next begins")
    finally:
        for n, end in sorted(at_work, key=lambda x: x[1]):
            left = end - time.monotonic()
            if left > 0:
                harness.wait_until(lambda end=end: time.monotonic() > end, left + 5, "it lasts")
            n.heal()
    took = cluster.recover()
    print(f"{started:%H:%M:%S} {', '.join(c.name for c in chosen)}: recovered {took:.1f} s after", flush=True)
    cluster.probe()
    return [Fault(name, at, now()) for name, at in began]


def silences(db):
    """[(from, to)] in which nothing was planned."""
    return db.execute("""
        SELECT before, planned_at FROM (
            SELECT planned_at, lag(planned_at) OVER (ORDER BY planned_at) AS before FROM reports.occurrence) x
         WHERE planned_at - before > make_interval(secs => %s) ORDER BY 1""", (QUIET_S,)).fetchall()


def takeovers(db):
    """Seconds from the last occurrence of one generation to the first of the next."""
    return [s for s, in db.execute("""
        SELECT extract(epoch FROM min(first_at) - max(last_before))::float FROM (
            SELECT generation, min(planned_at) AS first_at, lag(max(planned_at)) OVER (ORDER BY incarnation, generation) AS last_before
              FROM reports.occurrence GROUP BY incarnation, generation) x
         WHERE last_before IS NOT NULL GROUP BY generation""").fetchall()]


def settle(cluster):
    """Stop it, and collect what it did."""
    until = cluster.finish()
    h = history.History(until=until, tick_ms=clusters.TICK_MS, margin_ms=clusters.MARGIN_MS, asked=cluster.asked, probes=cluster.probes,
                        clock_stepped=cluster.clock_stepped, lost_commits=cluster.lost_commits,
                        logs={n: cluster.daemons[n].log_text() for n in clusters.SCHEDULERS})
    h.messages = messages.read_all(cluster.stack.kafka, cluster.installation.topic, clusters.PARTITIONS)
    with cluster.connect() as db:
        history.collect(db, cluster.installation.artifacts, h)
        return h, silences(db), takeovers(db)


def table(faults, silent, violations):
    lines = [f"{'nemesis':<42} {'count':>5} {'worst gap s':>11} {'violations':>10}"]
    by_name = collections.defaultdict(list)
    for f in faults:
        by_name[f.name].append(f)
    for name in sorted(by_name):
        mine = by_name[name]
        worst = max(((b - a).total_seconds() for a, b in silent for f in mine if a < f.ended and b > f.began), default=0)
        wrong = sum(any(v.at is not None and f.began <= v.at <= f.ended for f in mine) for v in violations)
        lines.append(f"{name:<42} {len(mine):>5} {worst:>11.1f} {wrong:>10}")
    return "\n".join(lines)


def told(violations):
    """A few of each kind."""
    by_kind = collections.defaultdict(list)
    for v in violations:
        by_kind[v.kind].append(v.text[:300])
    return "".join(f"\n  {kind}, {len(texts)} times:" + "".join(f"\n    {t}" for t in texts[:5]) for kind, texts in sorted(by_kind.items()))


def run(cluster, minutes, usable, rng, at_least=0):
    """(faults, history, violations, what to say); longer where that is too short for so many faults."""
    cluster.start()
    faults, end = [], time.monotonic() + minutes * 60
    unused = list(usable)
    rng.shuffle(unused)
    while time.monotonic() < end or len(faults) < at_least:
        if cluster.lost_commits:  # once: there is no other standby
            usable = [c for c in usable if c is not nemeses.FailoverThatLostCommits]
        chosen = choose(rng, usable)
        if unused:  # each once, before any twice
            first = unused.pop()
            chosen = [first] + [c for c in chosen if c.lane != first.lane]
        faults += one_round(cluster, chosen)
    h, silent, taken = settle(cluster)
    violations = history.judge(h)
    unreadable = [x for n, d in cluster.daemons.items() for x in harness.unreadable_lines(d.log_text())]
    violations += [history.Violation("log line", x) for x in unreadable]
    duration = (h.until - min(o[3] for o in h.occurrences)).total_seconds()
    say = (table(faults, silent, violations)
           + f"\n{len(faults)} faults, {len(h.occurrences)} occurrences ({len(h.occurrences) / duration:.0f}/s), {len(h.files)} files, "
             f"{len(h.messages)} messages, {len(h.established)} establishments, {len(h.probes)} writes in former names, "
             f"{len(h.rejections)} refused writes, {len(h.gaps)} gaps"
           + (f"\nwithout planning from one generation to the next: {len(taken)} times, "
              f"median {sorted(taken)[len(taken) // 2]:.2f} s, worst {max(taken):.2f} s" if taken else "")
           + f"\nviolations: {len(violations)}" + told(violations))
    return faults, h, violations, say


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--only", help="nemeses, with commas between")
    parser.add_argument("--own-postgres", action="store_true", help="also what only a PostgreSQL of its own bears; needs root")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was broken is healed
    rng = random.Random(options.seed)
    stack = own_postgres.Stack() if options.own_postgres else harness.Stack()
    installation = harness.Installation(stack)
    failed = True
    cluster = None
    try:
        installation.stack.heal()
        installation.create()
        cluster = clusters.Cluster(installation, options.seed)
        usable = nemeses.usable(cluster)
        if options.only:
            usable = [c for c in usable if c.name in options.only.split(",")]
        _, _, violations, say = run(cluster, options.minutes, usable, rng)
        print(say, flush=True)
        failed = bool(violations)
    finally:
        if cluster is not None:
            cluster.remove()
        installation.stack.heal()
        installation.remove(keep_files=failed)
        if options.own_postgres:
            stack.remove()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
