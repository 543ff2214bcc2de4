"""The load that fault tests run under, and how long their faults last.

In dev/test a fault lasts seconds; `dev/soak faults` runs the same tests with RS_SOAK=1, and then
outages are as long as they are in real life.
"""

import os
import time

from proof import one

CLAIM_LEASE_S = 4  # short, so that a dead worker's jobs come back within the test
LONG_LEASE_S = 60  # where no worker dies: none may lose a job because the machine stood still for seconds

SCHEDULES = """
    INSERT INTO reports.report (name, kind) VALUES ('nothing', 'noop');
    INSERT INTO reports.report (name, kind, program, format) VALUES ('stamp', 'program', 'stamp', 'txt');
    INSERT INTO reports.schedule (name, report, kind, rule, misfire, misfire_max, max_attempts, retry_base, retry_cap)
    SELECT 'tick-' || n, 'nothing', 'interval', '1 second', 'run_all', 1000, 50, interval '200 ms', interval '2 seconds'
      FROM generate_series(1, %(ticks)s) n
     UNION ALL
    SELECT 'file-' || n, 'stamp', 'interval', '1 second', 'run_all', 1000, 50, interval '200 ms', interval '2 seconds'
      FROM generate_series(1, %(files)s) n"""

STAMP = """#!/bin/sh
echo "$REPORT_OCCURRENCE_KEY of $REPORT_NAME"
"""


def soaking():
    return os.environ.get("RS_SOAK", "") not in ("", "0")


def seconds(short, long):
    """How long a fault lasts: here, and in dev/soak."""
    return long if soaking() else short


class Load:
    """Schedules that fire each second, some of them making a file, and workers to run them."""

    def __init__(self, installation, ticks=5, files=2, lease_s=CLAIM_LEASE_S):
        self.installation = installation
        self.db = installation.connect()
        script = installation.directory / "stamp.sh"
        script.write_text(STAMP)
        script.chmod(0o755)
        self.programs = [{"name": "stamp", "arguments": [str(script)]}]
        self.db.execute("UPDATE reports.installation SET claim_lease = make_interval(secs => %s), "
                        "reap_grace = '1 second'", (lease_s,))
        self.db.execute(SCHEDULES % {"ticks": int(ticks), "files": int(files)})

    def start_worker(self, name, **settings):
        return self.installation.start_worker(name, **{"programs": self.programs, "sweep_ms": 1000, **settings})

    def reconnect(self):
        """After the database was killed."""
        self.db = self.installation.connect()

    def now(self):
        return one(self.db, "SELECT clock_timestamp()")

    def one(self, query, *arguments):
        return one(self.db, query, arguments)

    def wait_until(self, predicate, timeout, what):
        return self.installation.wait_until(predicate, timeout, what)

    def wait_for_leader(self, after=0, timeout=40):
        """(member, generation) of a leader with a generation above `after`."""
        def newer():
            leader = self.installation.leader()
            return leader if leader and leader[1] > after else None

        return self.wait_until(newer, timeout, f"somebody leads with a generation above {after}")

    def wait_flowing(self, count=20):
        """Wait until that many more jobs have been done, files among them."""
        done = "SELECT count(*) FROM reports.job WHERE state = 'succeeded'"
        before = self.one(done)
        self.wait_until(lambda: self.one(done) >= before + count and self.one("SELECT count(*) FROM reports.artifact"),
                        40, f"{count} more jobs are done")

    def last(self, for_s):
        """Let the fault last, watching that nothing of ours dies of it."""
        end = time.monotonic() + for_s
        self.installation.wait_until(lambda: time.monotonic() >= end, for_s + 5, "the fault has lasted long enough")

    def done_within(self, begin, end):
        """(count, latest lateness in seconds) of jobs due in that time that are done."""
        return self.db.execute(
            "SELECT count(*), coalesce(extract(epoch FROM max(j.finished_at - o.scheduled_for)), 0)::float "
            "FROM reports.occurrence o JOIN reports.job j ON j.id = o.job_id "
            "WHERE o.scheduled_for BETWEEN %s AND %s AND j.state = 'succeeded'", (begin, end)).fetchone()


def start(installation, schedulers=1, settings=None, **load_size):
    """Schedulers and two workers under load; returns it when it flows."""
    load = Load(installation, **load_size)
    for n in range(schedulers):
        installation.start_scheduler(f"scheduler-{n + 1}", **(settings or {}))
    for n in range(2):
        load.start_worker(f"worker-{n + 1}")
    load.wait_flowing()
    return load
