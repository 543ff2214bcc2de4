"""Real daemons on the running local stack, for tests that look from outside.

An Installation is a database, a ZooKeeper root and a topic of its own, so tests do not see each
other. Its daemons are started by start_scheduler() and start_worker(), can be killed, frozen and
thawed, and end with the test whatever happens (also when the test runner is killed).

Environment: what `dev/stack env` prints, and RS_BUILD, the build directory with the programs.
Waits have a deadline and say what they waited for, with the ends of all logs.
"""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import uuid

import psycopg

ROOT = pathlib.Path(__file__).resolve().parents[2]
SESSION_MS = 4000  # of ZooKeeper; the shortest that its tick of 500 ms and our margins leave room for
LONG_SESSION_MS = 10000  # the longest that this tick allows: for what must not come by expiry
PATIENCE_S = 45  # no wait ends sooner: what does not come at all fails late, what comes late on a busy machine passes
START_S = PATIENCE_S
STOP_S = PATIENCE_S
PATIENT_STACK = ("--timeout", "150")  # a JVM on a busy machine
LOG_TAIL_LINES = 40


class Stack:
    """The services that `dev/stack up` started: addresses, and faults by `dev/stack`."""

    def __init__(self):
        missing = [n for n in ("RS_STACK", "RS_PG_SUPER", "RS_ZK", "RS_KAFKA") if n not in os.environ]
        if missing:
            raise RuntimeError(f"{', '.join(missing)} not set: run dev/test system, or "
                               'dev/stack up and eval "$(dev/stack env)"')
        self.name = os.environ["RS_STACK"]
        self.pg_host = os.environ["RS_PG_HOST"]
        self.pg_port = int(os.environ["RS_PG_PORT"])
        self.zookeeper = os.environ["RS_ZK"]
        self.kafka = os.environ["RS_KAFKA"]
        self.warehouse = os.environ["RS_WAREHOUSE"]

    def conninfo(self, database, role="postgres", port=None):
        return (f"host={self.pg_host} port={port or self.pg_port} dbname={database} user={role}")

    def connect(self, database, role="postgres"):
        """A connection in autocommit mode."""
        return psycopg.connect(self.conninfo(database, role), autocommit=True, connect_timeout=10)

    def fault(self, command, *services):
        """command: kill, term, start, stop (SIGSTOP), cont; services: pg, kafka, zk1, zk2, zk3."""
        subprocess.run([ROOT / "dev" / "stack", command, *PATIENT_STACK, "--name", self.name, *services],
                       stdin=subprocess.DEVNULL, check=True, timeout=200)

    def heal(self):
        """Bring every service back that a test left dead or frozen."""
        for service in ("pg", "zk1", "zk2", "zk3", "kafka"):
            subprocess.run([ROOT / "dev" / "stack", "cont", "--name", self.name, service],
                           stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False)
        subprocess.run([ROOT / "dev" / "stack", "up", *PATIENT_STACK, "--name", self.name],
                       stdin=subprocess.DEVNULL, check=True, timeout=200)


class Daemon:
    """One process of ours with its configuration and log. Starting again appends to the log."""

    def __init__(self, program, name, directory, config, prefix=()):
        self.program = program
        self.name = name
        self.prefix = list(prefix)
        self.config = directory / f"{name}.conf"
        self.log = directory / f"{name}.log"
        self.config.write_text(config, encoding="utf-8")
        self.process = None

    def start(self):
        assert not self.is_alive(), f"{self.name} is running"
        # setpriv becomes the daemon, with the same process id; it dies with the test runner.
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*self.prefix, "setpriv", "--pdeathsig", "KILL", build() / self.program,
                 "--config", self.config],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        return self

    @property
    def pid(self):
        return self.process.pid

    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        """SIGKILL, as if the kernel's memory killer had chosen it; returns when it is gone."""
        self.process.kill()
        self.process.wait(STOP_S)

    def freeze(self):
        """SIGSTOP; returns when all of its threads have stopped."""
        self.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: _state_of(self.pid) == "T", 5, f"{self.name} stops", [self])

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self, timeout=STOP_S):
        """SIGTERM and the exit status; an AssertionError when it does not end in time."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} did not stop within {timeout} s of SIGTERM\n"
                                 + log_tails([self])) from None

    def clean_up(self):
        """What systemd runs as ExecStopPost=, a killed daemon or not: (exit status, what it said)."""
        option = {"report-scheduler": "--close-dead-session", "report-worker": "--release-claims"}[self.program]
        result = subprocess.run([build() / self.program, option, "--config", self.config], stdin=subprocess.DEVNULL,
                                text=True, capture_output=True, timeout=60, check=False)
        return result.returncode, result.stdout + result.stderr

    def end(self):
        """Whatever state it is in: gone afterwards."""
        if self.is_alive():
            self.kill()

    def log_text(self):
        """Whole lines only: each is written at once, but who reads meanwhile may see a part of the last one."""
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        return text[: text.rfind("\n") + 1]


_VALUE = r'(?:"(?:[^"\\]|\\.)*"|[^\s"]+)'
_LOGFMT = re.compile(rf"[a-z_]+={_VALUE}(?: [a-z_]+={_VALUE})*")
_NO_REASON = re.compile(r' (?:error|reason|problem|why)="(?:[^"]*: )?"')
LINE_CUT = 2000  # a line near the bound of log.h may end within a value


def unreadable_lines(text):
    """Lines of a daemon's log that a parser of logfmt would not take, or that leave the reason out."""
    ours = [x for x in text.splitlines() if x.startswith("time=")]
    return [x for x in ours
            if len(x) < LINE_CUT and (not _LOGFMT.fullmatch(x) or _NO_REASON.search(x))]


class Installation:
    """A database, a ZooKeeper root, a topic, an artifact store, and the daemons on them."""

    def __init__(self, stack):
        suffix = uuid.uuid4().hex[:12]
        self.stack = stack
        self.database = f"reports_{suffix}"
        self.zookeeper_root = f"/system-test-{suffix}"
        self.topic = f"report.dispatch.{suffix}"
        self.group = f"report-workers-{suffix}"
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="report-system-test.", dir="/var/tmp"))
        self.artifacts = self.directory / "artifacts"
        self.artifacts.mkdir()
        self.daemons = []
        self.connections = []

    def create(self, partitions=4):
        with self.stack.connect("postgres") as db:
            db.execute(f'CREATE DATABASE "{self.database}"')
        self.reportctl("migrate", "--dir", ROOT / "sql")
        self.reportctl("topic", "create", self.topic, "--partitions", str(partitions),
                       "--brokers", self.stack.kafka)

    def remove(self, keep_files):
        for daemon in self.daemons:
            daemon.end()
        for connection in self.connections:
            connection.close()
        with self.stack.connect("postgres") as db:
            db.execute(f'DROP DATABASE IF EXISTS "{self.database}" WITH (FORCE)')
        if keep_files:
            print(f"files of this test are kept in {self.directory}")
        else:
            shutil.rmtree(self.directory)

    def reportctl(self, *words, expect=0):
        """Run reportctl on this installation and return its standard output."""
        result = subprocess.run(
            [build() / "reportctl", *map(str, words)], stdin=subprocess.DEVNULL, text=True,
            capture_output=True, timeout=60, check=False,
            env={**os.environ, "REPORTCTL_DATABASE": self.stack.conninfo(self.database)})
        assert result.returncode == expect, (
            f"reportctl {' '.join(map(str, words))} ended with {result.returncode}, not {expect}:\n"
            f"{result.stdout}{result.stderr}")
        return result.stdout

    def connect(self, role="postgres", autocommit=True):
        """A connection that ends with the test; without autocommit it is like an open psql session
        after BEGIN: what it locks stays locked until commit()."""
        connection = self.stack.connect(self.database, role)
        connection.autocommit = autocommit
        self.connections.append(connection)
        return connection

    def start_scheduler(self, name="scheduler-1", prefix=(), **settings):
        """`prefix`: as for start_worker."""
        return self._start("report-scheduler", name, scheduler_settings(self, name, **settings), prefix)

    def start_worker(self, name="worker-1", prefix=(), **settings):
        """`prefix`: a command that becomes the daemon, as `env` does."""
        return self._start("report-worker", name, worker_settings(self, name, **settings), prefix)

    def _start(self, program, name, settings, prefix=()):
        daemon = Daemon(program, name, self.directory, config_text(settings), prefix)
        self.daemons.append(daemon)
        return daemon.start()

    def wait_until(self, predicate, timeout, what):
        """As the function, with the logs of all daemons here; fails at once when one has died
        that nobody killed."""
        def check():
            for daemon in self.daemons:
                status = daemon.process.poll()
                if status is not None and status > 0:
                    raise AssertionError(f"{daemon.name} ended with status {status} while waiting "
                                         f"until {what}\n" + log_tails(self.daemons))
            return predicate()

        return wait_until(check, timeout, what, self.daemons)

    def leader(self, scope="main"):
        """(member, generation) of the leader that plans the scope, or None."""
        with self.stack.connect(self.database) as db:
            return db.execute("SELECT member, generation FROM reports.fence WHERE scope = %s "
                              "AND activated_at IS NOT NULL AND released_at IS NULL",
                              (scope,)).fetchone()


def scheduler_settings(installation, name, **other):
    """What report-scheduler needs, as a dictionary; `other` replaces and adds keys."""
    stack = installation.stack
    return {"name": name,
            "zookeeper": stack.zookeeper,
            "zookeeper_root": installation.zookeeper_root,
            "zookeeper_session_ms": SESSION_MS,
            "zookeeper_tick_ms": 500,
            "lease_margin_ms": 1000,
            "database": stack.conninfo(installation.database, "report_scheduler"),
            "scopes": ["main"],
            "kafka_brokers": stack.kafka,
            "kafka_topic": installation.topic,
            "http_port": 0,
            "log_level": "debug",
            **other}


def worker_settings(installation, name, **other):
    """What report-worker needs, as a dictionary; `other` replaces and adds keys."""
    stack = installation.stack
    return {"name": name,
            "database": stack.conninfo(installation.database, "report_worker"),
            "kafka_brokers": stack.kafka,
            "kafka_topic": installation.topic,
            "kafka_group": installation.group,
            "queues": ["default"],
            "slots": 4,
            "keeper": str(build() / "report-keeper"),
            "http_port": 0,
            "log_level": "debug",
            "artifact_stores": [{"name": "local", "directory": str(installation.artifacts)}],
            "data_sources": [{"name": "warehouse", "conninfo": stack.warehouse}],
            "programs": [],
            **other}


def config_text(settings):
    """libconfig's form: a list of dictionaries is a list of groups, any other list an array."""
    def value(v):
        if isinstance(v, bool):
            return "true" if v else "false"
        if isinstance(v, int):
            return f"{v}L" if abs(v) > 2**31 - 1 else str(v)
        if isinstance(v, dict):
            return "{ " + " ".join(f"{k} = {value(x)};" for k, x in v.items()) + " }"
        if isinstance(v, (list, tuple)):
            parts = ", ".join(map(value, v))
            return f"( {parts} )" if v and isinstance(v[0], dict) else f"[{parts}]"
        text = str(v).replace("\\", "\\\\").replace('"', '\\"')
        return f'"{text}"'

    # An empty list says neither which kind it is nor anything else: leave the default.
    return "".join(f"{k} = {value(v)};\n" for k, v in settings.items() if v != [])


def wait_until(predicate, timeout, what, daemons=()):
    """Poll until predicate() gives something true and return that. Database errors count as "not
    yet": services come and go in these tests. An AssertionError at the deadline, which is never
    less than PATIENCE_S away: what must come fast is measured by the test, against what it would be
    without that, or better seen to come while the slow way is barred."""
    timeout = max(timeout, PATIENCE_S)
    deadline = time.monotonic() + timeout
    trouble = None
    while True:
        try:
            found = predicate()
            trouble = None
        except psycopg.Error as e:
            found, trouble = None, e
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout} s: {what}"
                                 + (f" (last error: {trouble})" if trouble else "")
                                 + "\n" + log_tails(daemons))
        time.sleep(0.02)


def away_from_the_half_hour(margin_s=90):
    """For tests that count what was due up to now by the hour and the day: none begins just before another one
    does."""
    wait_until(lambda: time.time() % 1800 < 1800 - margin_s, margin_s + 5, "the next half hour has begun")


def log_tails(daemons):
    return "".join(f"--- the end of {d.name}'s log\n"
                   + "".join(d.log_text().splitlines(True)[-LOG_TAIL_LINES:]) for d in daemons)


def build():
    directory = pathlib.Path(os.environ.get("RS_BUILD") or ROOT / "build" / "release")
    if not (directory / "report-scheduler").exists():
        raise RuntimeError(f"no programs in {directory}: run dev/test build, or set RS_BUILD")
    return directory


def _state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        return f.read().rpartition(")")[2].split()[0]


@contextlib.contextmanager
def installed(stack, request):
    """For fixtures: a fresh Installation; its files stay when the test fails."""
    i = Installation(stack)
    try:
        i.create()
        yield i
        for daemon in i.daemons:
            bad = unreadable_lines(daemon.log_text())
            assert not bad, f"{daemon.name} has logged what cannot be read or leaves the reason out: {bad}"
    finally:
        i.remove(keep_files=getattr(request.node, "has_failed", False))
