"""The services of the stack: what each needs on disk, how it starts, and when it is ready."""

import os
import pwd
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import textwrap
import threading
import time

import process

POSTGRES_BIN = "/usr/lib/postgresql/15/bin"
# Kafka prints every setting of every part at each start.
QUIET_CONFIG = "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.common.config=warn"
HERE = os.path.dirname(os.path.abspath(__file__))


class Service:
    """One server process with its directory, log and ports. Subclasses say the rest.

    prepare() makes what is on disk, once. command() is what to run. missing() is None when the
    service answers as it should, else what it still lacks."""

    program = None  # file name of the executable, by which processes are recognised
    quit_signal = signal.SIGTERM
    broken_off = threading.Event()  # set by a signal: no wait goes on

    def __init__(self, name, scratch, ports):
        self.name = name
        self.directory = os.path.join(scratch, name)
        self.log = os.path.join(scratch, "logs", name + ".log")
        self.tls = os.path.join(scratch, "tls")
        self.ports = ports
        self.owner = None
        self.child = None  # the Popen object, in the run that started it

    def processes(self):
        return process.find(self.directory, self.program)

    def start(self):
        self.child = process.spawn(self.command(), self.directory, self.log, self.owner)
        return process.Process.of(self.child.pid)

    def finish_start(self, deadline):
        """What is left to do once the service answers, the first time."""

    def wait_ready(self, main, deadline):
        """RuntimeError, with the end of the log, when it died or is not ready by the deadline."""
        while True:
            reason = self.missing()
            if reason is None:
                return
            if self.child is not None:
                self.child.poll()  # take the status of a dead child, so that it is seen dead
            if not main.is_alive():
                self.fail("ended while starting")
            if self.broken_off.is_set():
                raise RuntimeError(f"{self.name} was broken off while starting")
            if time.monotonic() > deadline:
                self.fail(f"is not ready in time: {reason}")
            time.sleep(0.1)

    def fail(self, what):
        raise RuntimeError(f"{self.name} {what}. The end of {self.log}:\n"
                           + textwrap.indent(process.tail(self.log), "    "))

    def signal_all(self, signal_number):
        """To the main process and to all that it started, until no new one turns up."""
        seen = set()
        while True:
            fresh = [p for p in self.processes() if p not in seen]
            if not fresh:
                return seen
            for p in sorted(fresh, key=lambda p: (p.start, p.pid)):
                p.send(signal_number)
                seen.add(p)

    def kill(self, deadline):
        for p in self.signal_all(signal.SIGKILL):
            if not p.wait_gone(deadline):
                raise RuntimeError(f"{self.name}: process {p.pid} did not end after SIGKILL")
        if self.child is not None:
            self.child.wait()

    def terminate(self, main, deadline):
        """An orderly stop; SIGKILL for what is left at the deadline."""
        self.signal_all(signal.SIGCONT)
        if main is not None and main.send(self.quit_signal):
            main.wait_gone(deadline)
        self.kill(time.monotonic() + 10)

    def clean_up(self):
        """Give back what a killed service leaves behind outside its directory."""


class Postgres(Service):
    program = "postgres"
    quit_signal = signal.SIGINT  # fast shutdown: do not wait for clients

    def __init__(self, name, scratch, ports):
        super().__init__(name, scratch, ports)
        self.data = os.path.join(self.directory, "data")
        self.sockets = os.path.join(self.directory, "socket")
        if os.getuid() == 0:
            # initdb and the server refuse to run as root.
            user = pwd.getpwnam("postgres")
            self.owner = (user.pw_uid, user.pw_gid)

    def prepare(self):
        for path in (self.directory, self.sockets):
            os.makedirs(path, exist_ok=True)
            if self.owner:
                os.chown(path, *self.owner)
        process.run([f"{POSTGRES_BIN}/initdb", "--pgdata", self.data, "--username=postgres",
                     "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"],
                    self.directory, self.log, 60, self.owner)
        with open(os.path.join(self.data, "postgresql.conf"), "a", encoding="utf-8") as f:
            f.write(textwrap.dedent(f"""
                # The local stack. Any local user may connect as anybody: for development only.
                listen_addresses = '127.0.0.1'
                port = {self.ports[0]}
                unix_socket_directories = '{self.sockets}'
                max_connections = 200
                shared_buffers = 256MB
                fsync = on
                max_wal_size = 2GB
                # In the data directory instead of /dev/shm, where a killed server would leave it.
                dynamic_shared_memory_type = mmap
                timezone = 'UTC'
                log_timezone = 'UTC'
                log_line_prefix = '%m [%p] %q%u@%d %a '
                log_lock_waits = on
                ssl = on
                password_encryption = 'scram-sha-256'
                """))
        self.show_certificate(os.path.join(self.tls, "server"))
        # Over TLS the daemons' roles and readers of data sources prove who they are; all else is
        # trusted. Clients take TLS by themselves where a server offers it: RS_PG_SUPER and the like
        # are for PGSSLMODE=disable, which `dev/stack env` sets.
        hba = os.path.join(self.data, "pg_hba.conf")
        with open(hba, encoding="utf-8") as f:
            trusting = f.read()
        with open(hba, "w", encoding="utf-8") as f:
            f.write("hostssl all report_scheduler,report_worker,warehouse_reader all scram-sha-256\n"
                    + trusting)

    def show_certificate(self, path):
        """Take path.crt and path.key as the server's, from its next start or reload on."""
        for ending, mode in (("crt", 0o644), ("key", 0o600)):
            copy = os.path.join(self.data, f"server.{ending}")
            shutil.copyfile(f"{path}.{ending}", copy)
            os.chmod(copy, mode)
            if self.owner:
                os.chown(copy, *self.owner)

    def command(self):
        return [f"{POSTGRES_BIN}/postgres", "-D", self.data]

    def psql(self, database, statement):
        """One statement as superuser; (done?, output)."""
        result = subprocess.run(
            [f"{POSTGRES_BIN}/psql", "-XAtq", "-h", self.sockets, "-p", str(self.ports[0]), "-U",
             "postgres", "-d", database, "-v", "ON_ERROR_STOP=1", "-c", statement],
            env={"PATH": "/usr/bin:/bin", "PGCONNECT_TIMEOUT": "5"}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=30, check=False)
        return result.returncode == 0, (result.stdout + result.stderr).strip()

    def missing(self):
        # A frozen server takes connections and answers none: ask the cheap way, with a bound.
        result = subprocess.run(
            [f"{POSTGRES_BIN}/pg_isready", "-q", "-t", "2", "-h", "127.0.0.1", "-p",
             str(self.ports[0]), "-U", "postgres", "-d", "postgres"], stdin=subprocess.DEVNULL, timeout=10, check=False)
        return None if result.returncode == 0 else "it takes no connections"

    def finish_start(self, deadline):
        for database in ("reports", "warehouse"):
            done, output = self.psql("postgres", f"CREATE DATABASE {database}")
            if not done:
                self.fail(f"refused to create the database {database}: {output}")

    def start(self):
        # After a kill the traces of the old server must go first: this one refuses while the old
        # process id still counts as taken, be it only by a zombie that init has not seen yet.
        self.clean_up()
        return super().start()

    def clean_up(self):
        """Remove the lock files that a killed server leaves, and the System V segment that one of
        them names, having seen that no process of that server lives."""
        pid_file = os.path.join(self.data, "postmaster.pid")
        if self.processes() or not os.path.exists(pid_file):
            return
        for name in os.listdir(self.sockets):
            os.unlink(os.path.join(self.sockets, name))
        with open(pid_file, encoding="ascii") as f:
            lines = f.read().splitlines()
        os.unlink(pid_file)
        if len(lines) > 6 and len(lines[6].split()) == 2:
            subprocess.run(["ipcrm", "--shmem-id", lines[6].split()[1]], stdin=subprocess.DEVNULL,
                           capture_output=True, check=False)

    def detail(self):
        return "databases reports, warehouse"


class JavaService(Service):
    program = "java"

    def java(self, part, heap, *arguments):
        home, jars = os.environ["RS_STACK_JAVA"], os.environ["RS_STACK_JARS_" + part.upper()]
        return [f"{home}/bin/java", f"-Xmx{heap}m", f"-Xms{heap // 2}m", "-XX:+UseSerialGC",
                "-XX:+ExitOnOutOfMemoryError", "-XX:-UsePerfData",
                "-Djava.awt.headless=true", "-Djava.net.preferIPv4Stack=true",
                "-cp", f"{jars}/*", *arguments]


class ZooKeeper(JavaService):
    """ports: client, quorum and election port of each of the three; mine are at 3 * (number - 1)"""

    def __init__(self, name, scratch, ports):
        super().__init__(name, scratch, ports)
        self.number = int(name[2:])
        self.client_port = ports[3 * (self.number - 1)]

    def prepare(self):
        os.makedirs(os.path.join(self.directory, "data"), exist_ok=True)
        with open(os.path.join(self.directory, "data", "myid"), "w", encoding="ascii") as f:
            f.write(f"{self.number}\n")
        peers = "".join(
            f"server.{i + 1}=127.0.0.1:{self.ports[3 * i + 1]}:{self.ports[3 * i + 2]}\n"
            for i in range(3))
        with open(os.path.join(self.directory, "zoo.cfg"), "w", encoding="ascii") as f:
            f.write(textwrap.dedent(f"""\
                tickTime=500
                initLimit=10
                syncLimit=4
                dataDir={self.directory}/data
                clientPort={self.client_port}
                clientPortAddress=127.0.0.1
                maxClientCnxns=500
                admin.enableServer=false
                4lw.commands.whitelist=srvr,mntr,ruok,isro,conf
                """) + peers)

    def command(self):
        return self.java("zookeeper", 128, "-XX:TieredStopAtLevel=1",
                         f"-Dlogback.configurationFile={HERE}/zookeeper/logback.xml",
                         "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                         f"{self.directory}/zoo.cfg")

    def mode(self):
        """leader or follower; None when it does not serve."""
        answer = ask(self.client_port, b"srvr", until_closed=True) or b""
        for line in answer.decode("ascii", "replace").splitlines():
            if line.startswith("Mode: "):
                return line.removeprefix("Mode: ")
        return None

    def missing(self):
        return None if self.mode() else "it is not part of a quorum"

    def detail(self):
        return self.mode() or "not serving"


class Kafka(JavaService):
    """ports: clients, controller, clients by TLS and SASL"""

    # Who may come by TLS and SASL; the password stands in tls/kafka.password too.
    user = "report"

    def prepare(self):
        os.makedirs(self.directory, exist_ok=True)
        properties = os.path.join(self.directory, "server.properties")
        client, controller, secure = self.ports
        password = secrets.token_hex(16)
        with self.open_secret(os.path.join(self.tls, "kafka.password")) as f:
            f.write(password + "\n")
        with self.open_secret(os.path.join(self.directory, "server.pem")) as f:
            for ending in ("key", "crt"):
                with open(os.path.join(self.tls, f"server.{ending}"), encoding="ascii") as part:
                    f.write(part.read())
        with self.open_secret(properties) as f:
            f.write(textwrap.dedent(f"""\
                process.roles=broker,controller
                node.id=1
                controller.quorum.voters=1@127.0.0.1:{controller}
                listeners=PLAINTEXT://127.0.0.1:{client},SASL_SSL://127.0.0.1:{secure},CONTROLLER://127.0.0.1:{controller}
                advertised.listeners=PLAINTEXT://127.0.0.1:{client},SASL_SSL://127.0.0.1:{secure}
                controller.listener.names=CONTROLLER
                listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL
                # PLAIN, since this broker refuses the SCRAM of librdkafka before 2.6.1; that too, for
                # the test that says so.
                sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256
                listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
                listener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_{self.user}="{password}";
                ssl.keystore.type=PEM
                ssl.keystore.location={self.directory}/server.pem
                # An attempt with a wrong password is answered at once.
                connection.failed.authentication.delay.ms=0
                log.dirs={self.directory}/data
                auto.create.topics.enable=false
                # One broker holds everything; few partitions make a fast start.
                offsets.topic.replication.factor=1
                offsets.topic.num.partitions=4
                transaction.state.log.replication.factor=1
                transaction.state.log.min.isr=1
                transaction.state.log.num.partitions=2
                share.coordinator.state.topic.replication.factor=1
                share.coordinator.state.topic.min.isr=1
                share.coordinator.state.topic.num.partitions=1
                # A killed broker's registration stands in the way of the next one for so long.
                broker.session.timeout.ms=4000
                broker.heartbeat.interval.ms=500
                # A group of tests should not wait for members that never come, and may ask for
                # sessions shorter than the usual 6 s.
                group.initial.rebalance.delay.ms=0
                group.min.session.timeout.ms=1000
                num.network.threads=2
                num.io.threads=4
                log.cleaner.dedupe.buffer.size=16777216
                """))
        process.run(self.java("kafka", 128, "-XX:TieredStopAtLevel=1", QUIET_CONFIG,
                              "kafka.tools.StorageTool", "format", "--config", properties,
                              "--cluster-id", "cmVwb3J0LXNjaGVkdWxlcg", "--add-scram",
                              f"SCRAM-SHA-256=[name={self.user},password={password}]"),
                    self.directory, self.log, 60)

    @staticmethod
    def open_secret(path):
        return open(path, "w", encoding="ascii", opener=lambda p, flags: os.open(p, flags, 0o600))

    def command(self):
        return self.java("kafka", 384, "-Dorg.slf4j.simpleLogger.showDateTime=true",
                         "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
                         QUIET_CONFIG, "kafka.Kafka", f"{self.directory}/server.properties")

    def missing(self):
        # The first group and the first idempotent producer wait until their coordinator's topic
        # has been made and loaded: asking here as they would makes that happen before they come.
        find, key = 10, b"dev-stack-warm-up"
        for kind, word in ((0, "group"), (1, "transaction")):
            code = self.request(find, 1, struct.pack(">h", len(key)) + key + struct.pack(">b", kind))
            if code != 0:
                return f"it has no {word} coordinator yet (error {code})"
        init_producer_id, no_transaction = 22, struct.pack(">hi", -1, 60000)
        code = self.request(init_producer_id, 0, no_transaction)
        return None if code == 0 else f"it gives no producer ids yet (error {code})"

    def request(self, api, version, body):
        """The error code in the answer to one request of Kafka's protocol; None without an answer.
        For requests whose answer begins with the throttle time and the error code."""
        client = b"dev-stack"
        message = struct.pack(">hhih", api, version, 1, len(client)) + client + body
        answer = ask(self.ports[0], struct.pack(">i", len(message)) + message)
        if answer is None or len(answer) < 14:
            return None
        return struct.unpack(">h", answer[12:14])[0]  # after size, correlation id, throttle time

    def detail(self):
        return self.missing() or "one broker"


def ask(port, request, until_closed=False):
    """Send to a loopback port and return what comes back, None when nobody answers in time."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(request)
            answer = connection.recv(4096)
            while until_closed:
                more = connection.recv(4096)
                if not more:
                    break
                answer += more
            return answer
    except OSError:
        return None
