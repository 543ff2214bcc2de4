"""What the benchmarks have in common: facts about the machine, an installation of their own on the
running stack, rows of the result table."""

import argparse
import collections
import contextlib
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "system"))

import harness  # noqa: E402  (the path is set above)

# What was measured, the limit beside it, ours, their ratio, the target, whether it was reached.
Row = collections.namedtuple("Row", "benchmark what limit ours ratio target reached")


def arguments(text):
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small and short: to try it out")
    return parser


@contextlib.contextmanager
def installation(partitions):
    """Prints the facts; the installation is removed at the end, whatever happened."""
    subprocess.run(["bash", "-c", 'source "$0/bench/machine.sh"; bench_need_stack; bench_facts', ROOT],
                   check=True, env=os.environ)
    made = harness.Installation(harness.Stack())
    try:
        made.create(partitions=partitions)
        yield made
    finally:
        made.remove(keep_files=False)


def one(db, query, arguments=None):
    row = db.execute(query, arguments).fetchone()
    return row[0] if row else None


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def wait_for(made, predicate, timeout, what, every_s=0.02):
    """As Installation.wait_until, asking as seldom as every_s: a look costs the server something."""
    asked = [0.0]

    def seldom():
        if time.monotonic() < asked[0]:
            return False
        asked[0] = time.monotonic() + every_s
        return predicate()

    return made.wait_until(seldom, timeout, what)


def rss_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))


def cpu_s(pid):
    """User and system time of a process, all its threads."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def show_rows(rows):
    """For people, and, where bench/run asks for it, for its table."""
    for r in rows:
        reached = {True: "reached", False: "NOT REACHED", None: ""}[r.reached]
        print(f"  {r.what:40} limit {r.limit:>16}   ours {r.ours:>16}   {r.ratio:>14}   target {r.target:>12}   {reached}")
    if os.environ.get("RS_BENCH_TABLE"):
        with open(os.environ["RS_BENCH_TABLE"], "a", encoding="utf-8") as f:
            for r in rows:
                reached = {True: "yes", False: "**no**", None: ""}[r.reached]
                f.write(f"| {r.benchmark} | {r.what} | {r.limit} | {r.ours} | {r.ratio} | {r.target} | {reached} |\n")
