"""A whole installation under load: three schedulers, three workers, and two hundred firings a second.

Daemons end only when a nemesis ends them, who says so with `ending`; one that ends otherwise is a violation.
"""

import contextlib
import datetime
import os
import random
import socket
import threading
import time
import uuid

import psycopg

import harness
from harness import SESSION_MS, wait_until
from load import CLAIM_LEASE_S, STAMP
from chaos import own_postgres, packets

SCHEDULERS = ("scheduler-1", "scheduler-2", "scheduler-3")
WORKERS = ("worker-1", "worker-2", "worker-3")
TICK_MS, MARGIN_MS = 500, 1000  # as harness.scheduler_settings says
PARTITIONS = 4  # of the topic, as Installation.create makes it
QUERY_S = 3
RECOVERY_S = 60  # for a leader and for planning to have caught up, once all faults are over

SCHEDULES = """
    INSERT INTO reports.report (name, kind) VALUES ('nothing', 'noop');
    INSERT INTO reports.report (name, kind, program, format) VALUES ('stamp', 'program', 'stamp', 'txt');
    INSERT INTO reports.schedule (name, report, kind, rule, misfire, misfire_max, max_attempts, retry_base, retry_cap)
    SELECT 'tick-' || n, 'nothing', 'interval', '1 second', 'run_all', 1000, 100, interval '200 ms', interval '2 seconds'
      FROM generate_series(1, %(ticks)s) n
     UNION ALL
    SELECT 'file-' || n, 'stamp', 'interval', '1 second', 'run_all', 1000, 100, interval '200 ms', interval '2 seconds'
      FROM generate_series(1, %(files)s) n;
    INSERT INTO reports.schedule (name, report, kind, rule, time_zone, misfire, misfire_max, max_attempts)
    SELECT 'minute-' || n, 'stamp', 'cron', '* * * * *', 'Europe/Berlin', 'run_all', 1000, 100 FROM generate_series(1, 3) n;
    INSERT INTO reports.schedule (name, report, kind, rule, max_attempts, retry_base)
    VALUES ('asked', 'stamp', 'once', '2999-01-01T00:00', 100, interval '200 ms')"""

PLANNED_UNTIL = "SELECT min(next_fire_at) > %s FROM reports.schedule_progress WHERE schedule <> 'asked'"

LEFT = """
    SELECT j.schedule, j.occurrence_key, j.state::text, j.attempt, j.run_after - clock_timestamp(), j.lease_until - clock_timestamp(), j.error,
           w.name, w.state FROM reports.job j LEFT JOIN reports.worker w ON w.id = j.worker
     WHERE j.state NOT IN ('succeeded', 'failed', 'cancelled') ORDER BY j.id LIMIT 10"""


@contextlib.contextmanager
def cut_after(connection, seconds):
    """A frozen server answers nothing and closes nothing: then our end is closed."""
    def cut():
        with socket.socket(fileno=os.dup(connection.fileno())) as s:
            s.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Cluster:
    def __init__(self, installation, seed, ticks=200, files=6):
        self.installation = installation
        self.stack = installation.stack
        self.random = random.Random(seed)
        self.daemons = {}
        self.ended = set()  # names of daemons that a nemesis has ended and nobody has started again
        self.stale = []  # authorities that were in force once: (incarnation, generation, owner)
        self.probes = []  # (authority, verdict) of writes made in their names
        self.asked = {}  # request id -> (occurrence key, when by our clock)
        base = 61000 + random.SystemRandom().randrange(300) * 10
        self.groups = {name: base + n for n, name in enumerate((*SCHEDULERS, *WORKERS))}
        self.packets = packets.PacketFilter(self.groups.values()) if packets.is_allowed() else None
        self.db = None
        self.database_frozen = False
        self.clock_stepped = self.lost_commits = False
        self.dropped = 0  # packets, by cuts that are over
        if self.has_own_postgres:
            own_postgres.mount_disk(installation.artifacts, own_postgres.ARTIFACTS_MIB)
        self._load(ticks, files)

    def _load(self, ticks, files):
        script = self.installation.directory / "stamp.sh"
        script.write_text(STAMP)
        script.chmod(0o755)
        self.programs = [{"name": "stamp", "arguments": [str(script)]}]
        with self.connect() as db:
            db.execute("UPDATE reports.installation SET claim_lease = make_interval(secs => %s), "
                       "reap_grace = '1 second'", (CLAIM_LEASE_S,))
            db.execute(SCHEDULES % {"ticks": ticks, "files": files})

    @property
    def can(self):
        """What this cluster is made for, beyond what any is: names for nemeses.nemesis(needs=...)."""
        return ("own_postgres",) if self.has_own_postgres else ()

    @property
    def has_own_postgres(self):
        return isinstance(self.stack, own_postgres.Stack)

    def pg_ports(self):
        return self.stack.ports() if self.has_own_postgres else [self.stack.pg_port]

    def last(self, for_s):
        end = time.monotonic() + for_s
        wait_until(lambda: time.monotonic() > end, for_s + 5, "it lasts")

    def forget_connection(self):
        if self.db is not None:
            self.db.close()

    # The database, which comes and goes ----------------------------------------------------------

    def connect(self):
        return self.stack.connect(self.installation.database)

    def rows(self, query, arguments=None):
        """psycopg.Error while the database is away."""
        if self.database_frozen:  # this psycopg knows no deadline for connecting
            raise psycopg.OperationalError("the server is frozen")
        for last in (False, True):
            try:
                if self.db is None or self.db.closed:
                    self.db = self.connect()
                with cut_after(self.db, QUERY_S):
                    return self.db.execute(query, arguments).fetchall()
            except psycopg.OperationalError:
                if self.db is not None:
                    self.db.close()
                if last:
                    raise

    def one(self, query, arguments=None):
        rows = self.rows(query, arguments)
        return rows[0][0] if rows else None

    # Daemons -------------------------------------------------------------------------------------

    def start(self):
        for name in SCHEDULERS:
            self.daemons[name] = self.installation.start_scheduler(name, **self.scheduler_settings(name))
        for name in WORKERS:
            self.daemons[name] = self.installation.start_worker(name, **self.worker_settings(name))
        self.recover()

    def _prefix(self, name):
        return ("setpriv", "--regid", str(self.groups[name]), "--clear-groups") if self.packets else ()

    def scheduler_settings(self, name):
        return {"session_file": str(self.installation.directory / f"{name}.session"), "prefix": self._prefix(name)}

    def worker_settings(self, name):
        return {"programs": self.programs, "sweep_ms": 1000, "prefix": self._prefix(name),
                "incarnation_file": str(self.installation.directory / f"{name}.incarnation")}

    def ending(self, name):
        """The daemon is about to be ended by us."""
        self.ended.add(name)

    def start_again(self, name):
        if not self.daemons[name].is_alive():
            self.daemons[name].start()
        self.ended.discard(name)

    def deaths(self):
        """Daemons that ended and nobody ended them."""
        return [f"{name} ended with {d.process.returncode}" for name, d in self.daemons.items()
                if name not in self.ended and not d.is_alive()]

    def leader(self):
        """The name of the scheduler that leads; None, also while the database is away."""
        try:
            rows = self.rows("SELECT member FROM reports.fence WHERE scope = 'main' AND activated_at IS NOT NULL "
                             "AND released_at IS NULL")
        except psycopg.Error:
            return None
        return rows[0][0] if rows else None

    def a_scheduler(self, leading):
        """One that lives, the leader if that is wanted and there is one."""
        leader = self.leader()
        if leading and leader is not None and self.daemons[leader].is_alive():
            return leader
        return self.random.choice([n for n in SCHEDULERS if self.daemons[n].is_alive() and (leading or n != leader)])

    def a_worker(self):
        return self.random.choice([n for n in WORKERS if self.daemons[n].is_alive()])

    # While it runs -------------------------------------------------------------------------------

    def note_authority(self):
        """Remember who may write, to try it in their name when they may not any more."""
        try:
            row = self.rows("SELECT incarnation, generation, owner::text FROM reports.fence WHERE scope = 'main' AND generation > 0")
        except psycopg.Error:
            return
        if row and row[0] not in self.stale:
            self.stale.append(row[0])

    def probe(self):
        """Writes in the name of each former leader: each must be refused (I1)."""
        now = self.rows("SELECT incarnation, generation, owner::text FROM reports.fence WHERE scope = 'main'")[0]
        for old in [a for a in self.stale if a != now][-5:]:
            for call in ("reports.activated('main', %s, %s, %s, 0)", "reports.mark_problem('main', %s, %s, %s, 'tick-1', 1, 'stale')",
                         "reports.register_backend('main', %s, %s, %s, 'chaos')"):
                self.probes.append((old, call.partition("(")[0], self.one(f"SELECT {call}", old)))

    def ask(self):
        """An operator's request, sent twice; what became of it is looked at in the end."""
        request, key, now = str(uuid.uuid4()), f"k{len(self.asked)}", datetime.datetime.now(datetime.timezone.utc)
        try:
            for _ in range(2):
                self.rows("SELECT * FROM reports.ask(%s, 'trigger', 'asked', %s, interval '10 minutes')", (request, key))
        except psycopg.Error:
            return
        self.asked[request] = key, now

    def recover(self, timeout=RECOVERY_S):
        """Wait until somebody who lives leads, and has planned all that was due until now; seconds that took."""
        began = time.monotonic()
        due = wait_until(lambda: self.one("SELECT clock_timestamp()"), timeout, "the database answers")

        def well():
            assert not self.deaths(), f"{self.deaths()}\n{harness.log_tails(self.daemons.values())}"
            leader = self.leader()
            return leader is not None and self.daemons[leader].is_alive() and self.one(PLANNED_UNTIL, (due,))

        wait_until(well, timeout, "somebody leads and planning has caught up", self.daemons.values())
        self.note_authority()
        return time.monotonic() - began

    def finish(self, timeout=120):
        """All that was due until now is planned and done; then everything is stopped. The instant."""
        self.recover()
        until = self.one("SELECT clock_timestamp()")
        wait_until(lambda: self.one(PLANNED_UNTIL, (until,)), 30,
                   "all is planned until the end", self.daemons.values())
        wait_until(lambda: self.one("SELECT count(*) FROM reports.request WHERE state = 'pending'") == 0, 30,
                   "all requests are answered", self.daemons.values())
        open_jobs = ("SELECT count(*) FROM reports.job j JOIN reports.occurrence o ON o.job_id = j.id "
                     "WHERE o.scheduled_for <= %s AND j.state NOT IN ('succeeded', 'failed', 'cancelled')")
        try:
            wait_until(lambda: self.one(open_jobs, (until,)) == 0, timeout, "all jobs have ended", self.daemons.values())
        except AssertionError as e:
            raise AssertionError(f"{e}\n--- what is left\n" + "\n".join(map(str, self.rows(LEFT)))) from None
        self.probe()
        for name in SCHEDULERS:
            self.ending(name)
            self.daemons[name].stop(40)
        wait_until(lambda: self.one("SELECT count(*) FROM reports.job WHERE state IN ('running', 'queued')") == 0, 60,
                   "workers have done what was left", self.daemons.values())
        time_of_sweep = time.monotonic() + 3  # sweep_ms = 1000
        wait_until(lambda: time.monotonic() > time_of_sweep, 10, "the sweep had its turn")
        for name in WORKERS:
            self.ending(name)
            self.daemons[name].stop(40)
        return until

    def remove(self):
        if self.packets is not None:
            self.packets.remove()
        if self.db is not None:
            self.db.close()
        for daemon in self.daemons.values():
            daemon.end()
        if self.has_own_postgres:
            own_postgres.unmount(self.installation.artifacts)
