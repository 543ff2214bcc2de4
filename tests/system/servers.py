"""Servers of a test's own beside the stack: PgBouncer in front of its PostgreSQL, and a second
PostgreSQL that may become a standby. They end with the test runner, whatever becomes of it."""

import os
import pathlib
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

import psycopg

import harness

sys.path.insert(0, str(harness.ROOT / "dev" / "stack.d"))
import services  # noqa: E402
import tls  # noqa: E402, F401  (for tests)

START_S = 30
FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"


_reserved = []


def free_port():
    """A port that nothing listens on, below those that outgoing connections get and those of stacks, and that no
    other test process has been given: its name is held as an abstract socket while this process lives."""
    for port in random.sample(range(5000, 15000), 2000):
        name = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            name.bind(f"\0report-system-test-port-{port}")
            with socket.socket() as s:
                s.bind(("127.0.0.1", port))
        except OSError:
            name.close()
            continue
        _reserved.append(name)
        return port
    raise RuntimeError("no free port between 5000 and 15000")


class Server:
    """A program that refuses to be root runs as postgres then; its files lie in `directory`."""

    def __init__(self, name):
        self.name = name
        self.port = free_port()
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix=f"report-system-test-{name}.", dir="/var/tmp"))
        self.directory.chmod(0o711)
        self.process = None
        self.prepare_directory()

    def prepare_directory(self):
        """Before anything is in it."""

    def spawn(self, argv):
        user = pwd.getpwnam("postgres")
        become = ([f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
                  if os.getuid() == 0 else [])
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *become, *map(str, argv)],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            cwd=self.directory, start_new_session=True)
        harness.wait_until(self.answers, START_S, f"{self.name} answers:\n{self.log_text()}")

    def answers(self):
        assert self.process.poll() is None, f"{self.name} ended:\n{self.log_text()}"
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=2).close()
        except OSError:
            return False
        return True

    def stop(self, signal_number=None):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal_number) if signal_number else self.process.kill()
            self.process.wait(START_S)

    def remove(self):
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def log_text(self):
        path = self.directory / "log"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


class PgBouncer(Server):
    """In front of the stack's PostgreSQL; takes whoever comes as who they say they are."""

    def __init__(self, stack, mode, ignores=""):
        super().__init__("pgbouncer")
        users = ("report_scheduler", "report_worker", "postgres")
        self._write("users.txt", "".join(f'"{u}" ""\n' for u in users))
        self._write("pgbouncer.ini", f"""
[databases]
* = host={stack.pg_host} port={stack.pg_port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {self.port}
unix_socket_dir =
auth_type = trust
auth_file = {self.directory}/users.txt
pool_mode = {mode}
ignore_startup_parameters = {ignores}
server_tls_sslmode = disable
""")
        self.spawn([os.environ["RS_PGBOUNCER"], self.directory / "pgbouncer.ini"])

    def _write(self, name, text):
        path = self.directory / name
        path.write_text(text, encoding="ascii")
        path.chmod(0o644)


class Postgres(Server):
    """A cluster of its own with an empty database "reports", or a base backup of another: a standby
    that follows it asynchronously, or a copy that goes its own way."""

    def __init__(self, backup_of=None, standby=False):
        super().__init__("postgres")
        (self.directory / "logs").mkdir()
        self.service = services.Postgres("pg", str(self.directory), [self.port])
        self.service.tls = os.environ["RS_TLS"]
        if backup_of is not None:
            self.back_up(backup_of, standby)
            return
        self.service.prepare()
        self.start()
        with self.connect("postgres") as db:
            db.execute("CREATE DATABASE reports")

    def back_up(self, other, standby):
        for path in (self.service.directory, self.service.sockets):
            os.makedirs(path, exist_ok=True)
            if self.service.owner:
                os.chown(path, *self.service.owner)
        services.process.run(
            [f"{services.POSTGRES_BIN}/pg_basebackup", "-h", "127.0.0.1", "-p", str(other.port), "-U", "postgres",
             "-D", self.service.data, "-X", "stream", "-c", "fast", "--no-sync", *(["-R"] if standby else [])],
            self.service.directory, self.service.log, 60, self.service.owner)
        with open(os.path.join(self.service.data, "postgresql.conf"), "a", encoding="utf-8") as f:
            f.write(f"\nport = {self.port}\nunix_socket_directories = '{self.service.sockets}'\n")
        self.start()

    def follow_nobody(self):
        """A standby that receives nothing any more, not even what is on its way."""
        with self.connect("postgres") as db:
            db.execute("ALTER SYSTEM SET primary_conninfo = ''")
            db.execute("SELECT pg_reload_conf()")
            harness.wait_until(lambda: db.execute("SELECT count(*) FROM pg_stat_wal_receiver").fetchone() == (0,), START_S,
                               "the standby is cut off")

    def remove(self):
        self.stop(signal.SIGQUIT)  # at once, but it takes its children and shared memory along
        super().remove()

    def start(self):
        # Small, and in a hurry: nothing of it outlives the test.
        self.spawn([*self.service.command(), "-c", "shared_buffers=16MB", "-c", "fsync=off"])
        harness.wait_until(lambda: self.service.missing() is None, START_S, "the cluster takes connections")

    def become_standby(self):
        self.stop(self.service.quit_signal)
        signal_file = pathlib.Path(self.service.data) / "standby.signal"
        signal_file.touch()
        if self.service.owner:
            os.chown(signal_file, *self.service.owner)
        self.start()

    def promote(self):
        with self.connect("postgres") as db:
            assert db.execute("SELECT pg_promote()").fetchone() == (True,)

    def conninfo(self, role):
        return f"host=127.0.0.1 port={self.port} dbname=reports user={role}"

    def connect(self, database="reports"):
        return psycopg.connect(f"host=127.0.0.1 port={self.port} dbname={database} user=postgres",
                               autocommit=True, connect_timeout=10)


class SteppablePostgres(Postgres):
    """Its clock is the machine's and what a file says."""

    def spawn(self, argv):
        self.step(0)
        epoll = self.directory / "plain_epoll.so"
        if not epoll.exists():
            subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", epoll, harness.ROOT / "tests/clock/plain_epoll.c"], check=True)
            epoll.chmod(0o755)
        super().spawn(["env", f"LD_PRELOAD={epoll}:{FAKETIME}", f"FAKETIME_TIMESTAMP_FILE={self.offset}",
                       "FAKETIME_DONT_FAKE_MONOTONIC=1", "FAKETIME_NO_CACHE=1", *argv])

    @property
    def offset(self):
        return self.directory / "clock"

    def step(self, to_s):
        """Set the clock to the machine's plus so many seconds: all of its processes at once."""
        fresh = pathlib.Path(f"{self.offset}.new")
        fresh.write_text(f"{to_s:+d}s\n", encoding="ascii")
        fresh.chmod(0o644)
        os.replace(fresh, self.offset)
