"""TLS, passwords, SASL, access lists; poolers and standbys: real daemons and real servers."""

import os
import pathlib
import re
import signal
import subprocess
import uuid

import psycopg
import pytest

import servers
from harness import build, config_text, scheduler_settings
from proof import one
from proxy import Proxy

TLS = pathlib.Path(os.environ.get("RS_TLS", "/nonexistent"))
EACH_SECOND = """
    INSERT INTO reports.report (name, kind, data_source, query, format)
    VALUES ('reader', 'sql', 'warehouse', $$SELECT current_user AS reader, ssl, version
              FROM pg_stat_ssl WHERE pid = pg_backend_pid()$$, 'csv');
    INSERT INTO reports.schedule (name, report, kind, rule) VALUES ('tick', 'reader', 'interval', '1 second')"""
REPORT = "INSERT INTO reports.report (name, kind, data_source, query, format) VALUES ('r', 'sql', 'warehouse', %s, 'csv')"
ONCE = "INSERT INTO reports.schedule (name, report, kind, rule, max_attempts) VALUES ('now', 'r', 'once', '2999-01-01T00:00', 1)"


class Secrets:
    """Passwords of this test, one file each (mode 0600), and the roles that have them."""

    def __init__(self, installation):
        self.installation = installation
        self.directory = installation.directory
        self.known = []

    def file(self, name, text=None):
        path = self.directory / f"{name}.secret"
        text = text or f"hush-{uuid.uuid4().hex}"
        self.known.append(text)
        path.touch(mode=0o600)
        path.write_text(text + "\n", encoding="ascii")
        return path

    def role(self, role):
        """Give the role a password; the file that holds it."""
        path = self.file(role)
        with self.installation.stack.connect("postgres") as db:
            db.execute(f"ALTER ROLE {role} PASSWORD '{path.read_text().strip()}'")
        return path

    def check_not_in(self, *texts):
        for text in texts:
            for secret in self.known:
                for piece in (secret, secret.partition(":")[2] or secret):
                    assert piece not in text


@pytest.fixture
def secrets(installation):
    known = Secrets(installation)
    with installation.stack.connect("postgres") as db:
        if not one(db, "SELECT count(*) FROM pg_roles WHERE rolname = 'warehouse_reader'"):
            db.execute("CREATE ROLE warehouse_reader LOGIN")
        db.execute("GRANT pg_read_all_data TO warehouse_reader")
    yield known
    # Whatever went wrong, no secret is in a log, an argument or the environment.
    for daemon in installation.daemons:
        known.check_not_in(daemon.log_text())


def by_tls(stack, database, role, host="localhost", authority=TLS / "ca.crt"):
    return (f"host={host} hostaddr={stack.pg_host} port={stack.pg_port} dbname={database} user={role} "
            f"sslmode=verify-full sslrootcert={authority}")


def database_settings(installation, secrets, role, **tls):
    return {"database": by_tls(installation.stack, installation.database, role, **tls),
            "database_password_file": str(secrets.role(role))}


def kafka_settings(password_file, authority=TLS / "ca.crt", mechanism="PLAIN"):
    return {"kafka_brokers": os.environ["RS_KAFKA_SECURE"],
            "kafka_properties": ["security.protocol=SASL_SSL", f"sasl.mechanism={mechanism}",
                                 "sasl.username=report", f"ssl.ca.location={authority}"],
            "kafka_secret_files": [f"sasl.password={password_file}"]}


def source_settings(installation, password_file, **tls):
    return {"data_sources": [{"name": "warehouse", "password_file": str(password_file),
                              "conninfo": by_tls(installation.stack, "warehouse", "warehouse_reader", **tls)}]}


def wait_for_log(installation, daemon, *patterns, timeout=30):
    """All of the regular expressions match one line of its log; that line."""
    def line():
        return next((x for x in daemon.log_text().splitlines() if all(re.search(p, x) for p in patterns)),
                    None)

    return installation.wait_until(line, timeout, f"{daemon.name} logs {' and '.join(patterns)}")


def artifacts(db):
    return one(db, "SELECT count(*) FROM reports.artifact")


def counted(installation, worker, what):
    """A count from the worker's log, asked for by SIGUSR1; what is 0 does not stand there."""
    before = worker.log_text().count('event="counts"')
    worker.process.send_signal(signal.SIGUSR1)
    installation.wait_until(lambda: worker.log_text().count('event="counts"') > before, 10, "counts are logged")
    found = re.findall(rf" {what}=(\d+)", worker.log_text())
    return int(found[-1]) if found else 0


# ---- everything at once ----


def test_reports_are_made_with_tls_and_secrets_everywhere_and_replicas_follow_each_other(installation, secrets):
    db = installation.connect()
    db.execute(EACH_SECOND)
    kafka = kafka_settings(TLS / "kafka.password")
    secrets.known.append((TLS / "kafka.password").read_text().strip())
    common = {**database_settings(installation, secrets, "report_scheduler"), **kafka,
              "zookeeper_digest_file": str(secrets.file("digest", f"reports:hush-{uuid.uuid4().hex}"))}
    for name in ("one", "two"):
        installation.start_scheduler(name, **common)
    worker = installation.start_worker(**database_settings(installation, secrets, "report_worker"), **kafka,
                                       **source_settings(installation, secrets.role("warehouse_reader")))
    stranger = installation.start_scheduler(
        "stranger", **{**common, "zookeeper_digest_file": str(secrets.file("wrong", "reports:hush-wrong"))})
    installation.wait_until(lambda: artifacts(db) >= 3, 60, "three reports are there")

    path = one(db, "SELECT path FROM reports.artifact LIMIT 1")
    assert (installation.artifacts / path).read_text().splitlines()[1].startswith("warehouse_reader,t,TLSv1.")
    connections = db.execute("SELECT usename, ssl FROM pg_stat_activity JOIN pg_stat_ssl USING (pid) "
                             "WHERE datname = %s AND usename LIKE 'report%%'", (installation.database,)).fetchall()
    assert {role for role, _ in connections} == {"report_scheduler", "report_worker"}
    assert all(ssl for _, ssl in connections)
    installation.wait_until(lambda: counted(installation, worker, "messages") > 0, 40, "messages come by SASL")

    line = wait_for_log(installation, stranger, "forbids node", "zookeeper_digest_file")
    assert installation.zookeeper_root in line
    first, generation = installation.wait_until(installation.leader, 40, "somebody leads")
    assert first != "stranger"
    next(d for d in installation.daemons if d.name == first).kill()

    def newer():
        leader = installation.leader()
        return leader if leader and leader[1] > generation else None

    assert installation.wait_until(newer, 40, "another one leads")[0] not in (first, "stranger")
    assert stranger.is_alive()
    for daemon in installation.daemons:
        if daemon.is_alive():
            secrets.check_not_in(pathlib.Path(f"/proc/{daemon.pid}/cmdline").read_text(),
                                 pathlib.Path(f"/proc/{daemon.pid}/environ").read_text())


# ---- PostgreSQL ----


@pytest.fixture
def strange_authority(installation):
    servers.tls.authority(str(installation.directory), "strange", "somebody else")
    return installation.directory / "strange.crt"


@pytest.fixture
def expired_certificate(stack):
    """The stack's PostgreSQL shows a certificate of yesterday; call it to mend that."""
    postgres = servers.services.Postgres("pg", os.environ["RS_STACK_DIR"], [stack.pg_port])

    def show(name):
        postgres.show_certificate(str(TLS / name))
        with stack.connect("postgres") as db:
            db.execute("SELECT pg_reload_conf()")

    servers.tls.certificate(str(TLS), "expired", "ca", "DNS:localhost,IP:127.0.0.1", days=-1)
    show("expired")
    yield lambda: show("server")
    show("server")


def start_both(installation, secrets, **tls):
    return (installation.start_scheduler(**database_settings(installation, secrets, "report_scheduler", **tls)),
            installation.start_worker(**database_settings(installation, secrets, "report_worker", **tls)))


def test_wrong_password_is_told_by_role_and_a_mended_file_is_taken(installation, secrets):
    scheduler, worker = start_both(installation, secrets)
    right = {}
    for daemon, role in ((scheduler, "report_scheduler"), (worker, "report_worker")):
        daemon.kill()
        path = installation.directory / f"{role}.secret"
        right[path] = path.read_text()
        secrets.file(role, "hush-guessed")
        daemon.start()
    for daemon, role in ((scheduler, "report_scheduler"), (worker, "report_worker")):
        wait_for_log(installation, daemon, f'password authentication failed for user .{{0,2}}"{role}')
        assert daemon.is_alive()
    for path, text in right.items():
        path.write_text(text)
    installation.wait_until(installation.leader, 40, "the scheduler leads")
    wait_for_log(installation, worker, "database connection is back")


def test_unknown_authority_is_refused(installation, secrets, strange_authority):
    for daemon in start_both(installation, secrets, authority=strange_authority):
        wait_for_log(installation, daemon, "certificate verify failed")
        assert daemon.is_alive()


def test_certificate_of_another_host_is_refused(installation, secrets):
    for daemon in start_both(installation, secrets, host="reports.example.org"):
        wait_for_log(installation, daemon, "does not match host name", "reports.example.org")
        assert daemon.is_alive()


def test_expired_certificate_is_refused_until_there_is_a_new_one(installation, secrets, expired_certificate):
    scheduler, worker = start_both(installation, secrets)
    for daemon in (scheduler, worker):
        wait_for_log(installation, daemon, "certificate has expired|certificate verify failed")
    assert installation.leader() is None
    expired_certificate()
    installation.wait_until(installation.leader, 40, "the scheduler leads")
    wait_for_log(installation, worker, "database connection is back")


# ---- Kafka ----


REFUSALS = {"password": "[Aa]uthentication failed",
            "authority": "certificate verify failed|broker certificate",
            # librdkafka before 2.6.1 and Kafka 4 do not agree on SCRAM: with a right password, too.
            "scram": "use PLAIN by TLS"}


@pytest.mark.parametrize("fault", REFUSALS)
def test_refusal_by_kafka_is_told_and_jobs_run_by_pull(installation, secrets, strange_authority, fault):
    db = installation.connect()
    db.execute(EACH_SECOND)
    kafka = {"password": lambda: kafka_settings(secrets.file("kafka")),
             "authority": lambda: kafka_settings(TLS / "kafka.password", strange_authority),
             "scram": lambda: kafka_settings(TLS / "kafka.password", mechanism="SCRAM-SHA-256")}[fault]()
    scheduler = installation.start_scheduler(**kafka)
    worker = installation.start_worker(**kafka)
    wait_for_log(installation, scheduler, "relay lost Kafka", REFUSALS[fault])
    wait_for_log(installation, worker, "Kafka consumer", REFUSALS[fault])
    installation.wait_until(lambda: artifacts(db) >= 2, 40, "reports are made all the same")


def test_refusal_by_kafka_that_comes_late_is_told_all_the_same(installation, secrets):
    """By a slow broker: what the relay tells first, that it does not get through, is not the reason yet."""
    slow = Proxy(int(os.environ["RS_KAFKA_SECURE"].rpartition(":")[2]))
    try:
        slow.black_hole()
        scheduler = installation.start_scheduler(**{**kafka_settings(secrets.file("kafka")), "kafka_brokers": f"127.0.0.1:{slow.port}"})
        assert not re.search(REFUSALS["password"], wait_for_log(installation, scheduler, "relay lost Kafka"))
        slow.heal()
        wait_for_log(installation, scheduler, "relay lost Kafka", REFUSALS["password"])
    finally:
        slow.close()


def test_topics_are_made_by_tls_and_sasl_with_a_schedulers_settings(installation, secrets):
    settings = installation.directory / "scheduler.conf"
    topic = f"report.secure.{uuid.uuid4().hex[:12]}"
    settings.write_text(config_text({**scheduler_settings(installation, "one"),
                                     **kafka_settings(TLS / "kafka.password")}), encoding="ascii")
    installation.reportctl("topic", "create", topic, "--partitions", 2, "--config", settings)
    installation.reportctl("topic", "delete", topic, "--brokers", installation.stack.kafka)
    settings.write_text(config_text({**scheduler_settings(installation, "one"),
                                     **kafka_settings(secrets.file("kafka"))}), encoding="ascii")
    installation.reportctl("topic", "delete", topic, "--config", settings, "--timeout", 5, expect=1)
    installation.reportctl("topic", "delete", topic, expect=2)


@pytest.mark.parametrize("program", ["report-scheduler", "report-worker"])
def test_secret_among_the_kafka_properties_is_refused_with_the_remedy(installation, secrets, program):
    start = installation.start_scheduler if program == "report-scheduler" else installation.start_worker
    secrets.known.append("hush-in-conf")
    daemon = start(kafka_properties=["sasl.password=hush-in-conf"])
    assert daemon.process.wait(45) == 2
    assert "kafka_secret_files" in daemon.log_text() and "sasl.password" in daemon.log_text()


def test_readable_secret_file_of_kafka_is_told_and_jobs_run_by_pull(installation, secrets):
    db = installation.connect()
    db.execute(EACH_SECOND)
    path = secrets.file("kafka")
    path.chmod(0o644)
    scheduler = installation.start_scheduler(**kafka_settings(path))
    worker = installation.start_worker(**kafka_settings(path))
    wait_for_log(installation, scheduler, "relay", "kafka_secret_files", "chmod 600")
    wait_for_log(installation, worker, "Kafka", "kafka_secret_files", "chmod 600")
    installation.wait_until(lambda: artifacts(db) >= 1, 40, "reports are made all the same")


# ---- ZooKeeper ----


def test_tree_that_was_open_is_warned_of_with_the_remedy(installation, secrets):
    before = installation.start_scheduler("before")
    installation.wait_until(installation.leader, 40, "it leads")
    assert before.stop() == 0
    digest = secrets.file("digest", f"reports:hush-{uuid.uuid4().hex}")
    after = installation.start_scheduler("after", zookeeper_digest_file=str(digest))
    line = wait_for_log(installation, after, "may be changed by everybody")
    assert f"setAcl -R {installation.zookeeper_root} auth::cdrwa,world:anyone:r" in line
    installation.wait_until(lambda: (installation.leader() or ("",))[0] == "after", 40, "it leads all the same")


# ---- in between, and behind ----


@pytest.mark.parametrize("mode, ignores", [("transaction", ""), ("transaction", "options"), ("session", "options")])
def test_pgbouncer_is_refused_by_name(installation, mode, ignores):
    bouncer = servers.PgBouncer(installation.stack, mode, ignores)
    try:
        through = {role: installation.stack.conninfo(installation.database, role, bouncer.port)
                   for role in ("report_scheduler", "report_worker", "postgres")}
        with psycopg.connect(through["report_worker"], autocommit=True, connect_timeout=10) as db:
            assert one(db, "SELECT 1") == 1
        scheduler = installation.start_scheduler(database=through["report_scheduler"])
        worker = installation.start_worker(database=through["report_worker"])
        for daemon in (scheduler, worker):
            wait_for_log(installation, daemon, "pooler .PgBouncer", "point `database` at the server itself")
        for words in (("migrate", "--dir", str(servers.harness.ROOT / "sql")), ("status",)):
            result = subprocess.run([build() / "reportctl", *words], stdin=subprocess.DEVNULL, text=True,
                                    capture_output=True, timeout=60, check=False,
                                    env={**os.environ, "REPORTCTL_DATABASE": through["postgres"]})
            assert result.returncode == 1 and "pooler (PgBouncer" in result.stderr, result.stderr
        assert installation.leader() is None
    finally:
        bouncer.remove()


def test_standby_is_refused_until_it_is_promoted(installation):
    postgres = servers.Postgres()
    try:
        environment = {**os.environ, "REPORTCTL_DATABASE": postgres.conninfo("postgres")}
        subprocess.run([build() / "reportctl", "migrate", "--dir", servers.harness.ROOT / "sql"],
                       env=environment, stdin=subprocess.DEVNULL, check=True, timeout=60)
        postgres.become_standby()
        scheduler = installation.start_scheduler(database=postgres.conninfo("report_scheduler"))
        worker = installation.start_worker(database=postgres.conninfo("report_worker"))
        for daemon in (scheduler, worker):
            wait_for_log(installation, daemon, "in recovery .a standby")
            assert daemon.is_alive()
        postgres.promote()
        with postgres.connect() as db:
            installation.wait_until(lambda: one(db, "SELECT member FROM reports.fence WHERE scope = 'main' AND "
                                                    "activated_at IS NOT NULL"), 40, "it leads on the promoted server")
        wait_for_log(installation, worker, "database connection is back")
    finally:
        for daemon in installation.daemons:
            daemon.end()
        postgres.remove()


# ---- data sources ----


def failure_of(installation, db, query):
    """The error of the one attempt at a report with this query."""
    db.execute(REPORT, (query,))
    db.execute(ONCE)
    installation.reportctl("trigger", "now", "--key", "k", "--wait", "50")
    return installation.wait_until(
        lambda: one(db, "SELECT error FROM reports.job_attempt WHERE outcome = 'failed'"), 40, "the attempt has failed")


def test_wrong_password_of_a_data_source_is_told_and_not_shown(installation, secrets):
    db = installation.connect()
    secrets.role("warehouse_reader")
    installation.start_scheduler()
    installation.start_worker(**source_settings(installation, secrets.file("guess")))
    error = failure_of(installation, db, "SELECT 1")
    assert 'password authentication failed for user "warehouse_reader"' in error
    secrets.check_not_in(error)


def test_certificate_of_another_data_source_is_refused(installation, secrets):
    db = installation.connect()
    password = secrets.role("warehouse_reader")
    installation.start_scheduler()
    installation.start_worker(**source_settings(installation, password, host="warehouse.example.org"))
    assert "does not match host name" in failure_of(installation, db, "SELECT 1")


def test_reader_of_a_data_source_cannot_write(installation, secrets):
    db = installation.connect()
    with installation.stack.connect("warehouse") as warehouse:
        warehouse.execute("CREATE TABLE IF NOT EXISTS reader_cannot_write (n integer)")
    installation.start_scheduler()
    installation.start_worker(**source_settings(installation, secrets.role("warehouse_reader")))
    # A function could end the read-only transaction's protection only with rights of its own.
    error = failure_of(installation, db, "WITH x AS (INSERT INTO reader_cannot_write VALUES (1) RETURNING n) SELECT * FROM x")
    assert "read-only transaction" in error or "permission denied" in error
    with installation.stack.connect("warehouse") as warehouse:
        assert one(warehouse, "SELECT count(*) FROM reader_cannot_write") == 0
        warehouse.execute("DROP TABLE reader_cannot_write")
