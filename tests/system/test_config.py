"""Settings from outside: options, faults, reload, secrets."""

import os
import pathlib
import re
import signal
import subprocess
import time

import harness
import pytest
from harness import build, config_text, scheduler_settings, worker_settings
from notify import NotifySocket
from proof import one

PROGRAMS = ("report-scheduler", "report-worker")

SCRIPT = """
    INSERT INTO reports.report (name, kind, program, format) VALUES ('script', 'program', 'script', 'txt');
    INSERT INTO reports.schedule (name, report, kind, rule, retry_base)
    VALUES ('script', 'script', 'once', '2999-01-01T00:00', '100 ms')"""


def run(program, *words):
    return subprocess.run([build() / program, *map(str, words)], stdin=subprocess.DEVNULL, text=True,
                          capture_output=True, timeout=60, check=False)


def events(daemon, event):
    """Fields of the log lines of one event."""
    return [line for line in daemon.log_text().splitlines() if f'event="{event}"' in line]


def hup(installation, daemon, settings=None):
    """Write the settings and reload; waits until the answer is in the log. Returns the new lines."""
    before = len(daemon.log_text())
    if settings is not None:
        daemon.config.write_text(settings if isinstance(settings, str) else config_text(settings))
    daemon.process.send_signal(signal.SIGHUP)

    def answered():
        new = daemon.log_text()[before:]
        return new if re.search('event="settings (reloaded|refused)', new) else None

    return installation.wait_until(answered, 10, f"{daemon.name} answers SIGHUP")


@pytest.mark.parametrize("program", PROGRAMS)
def test_version_and_help_are_printed_and_wrong_usage_is_2(program):
    version = run(program, "--version")
    assert version.returncode == 0 and re.match(rf"{program} \d+\.\d+\.\d+", version.stdout)
    usage = run(program, "--help")
    assert usage.returncode == 0 and usage.stderr == ""
    for word in ("--config FILE", "--check-config", "--print-config", "SIGTERM", "SIGHUP", "SIGUSR1"):
        assert word in usage.stdout
    for words in ((), ("--nonsense",), ("--config",), ("--config", "x", "y"), ("x",)):
        wrong = run(program, *words)
        assert wrong.returncode == 2 and wrong.stdout == "" and "Usage: " in wrong.stderr, words
    missing = run(program, "--config", "/nonexistent.conf")
    assert missing.returncode == 2
    assert missing.stderr == f"{program}: /nonexistent.conf: cannot be read: No such file or directory\n"


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_fault_is_said_in_one_run_also_at_the_start(program, tmp_path):
    file = tmp_path / "faulty.conf"
    file.write_text('database = "host=db password=tr0ub4dor";\nlog_level = "loud";\nkafka_brokers = "k";\n'
                    'kafka_properties = ["acks=1"];\nslotz = 1;\n')
    for words in (("--check-config",), ()):
        result = run(program, "--config", file, *words)
        assert result.returncode == 2 and result.stdout == ""
        for line in (f"{file}:1: database: has a password in it; write it into a file",
                     f'{file}:2: log_level: "loud" is no level; write error, warn, info or debug',
                     f'{file}:3: kafka_brokers: "k" is no host:port; write "kafka1:9092',
                     f"{file}:4: kafka_properties: Kafka property acks is set by this program",
                     f"{file}:5: slotz: unknown key; "):
            assert line in result.stderr, result.stderr
        assert "tr0ub4dor" not in result.stderr


def test_what_only_the_surroundings_lack_is_a_warning(tmp_path):
    file = tmp_path / "worker.conf"
    file.write_text(f'database = "host=db dbname=x";\ndatabase_password_file = "{tmp_path}/none";\n'
                    f'artifact_stores = ( {{ name = "local"; directory = "{tmp_path}/store"; }} );\n')
    result = run("report-worker", "--config", file, "--check-config")
    assert result.returncode == 0
    assert result.stdout == f"{file}: no faults; warnings: 2\n"
    assert f"{file}:2: database_password_file: warning: {tmp_path}/none: cannot be read" in result.stderr
    assert f"{file}:3: artifact_stores[0].directory: warning: {tmp_path}/store: No such" in result.stderr
    # But to take jobs without a place for their files would use their attempts up.
    started = run("report-worker", "--config", file)
    assert started.returncode == 1  # not 2: it may be mounted yet, and systemd tries again
    assert "artifact_stores[0].directory, where new files go: " in started.stderr


def test_files_of_https_and_the_token_are_warned_about_before_they_stop_a_start(tmp_path):
    file, key = tmp_path / "scheduler.conf", tmp_path / "key"
    key.write_text("x")
    key.chmod(0o644)
    lines = ['database = "host=db dbname=x";', 'zookeeper = "zk:2181";', 'kafka_brokers = "k:9092";',
             f'http_token_file = "{tmp_path}/token";', f'http_tls_certificate_file = "{tmp_path}/crt";',
             f'http_tls_key_file = "{key}";']
    file.write_text("\n".join(lines) + "\n")
    result = run("report-scheduler", "--config", file, "--check-config")
    assert result.returncode == 0, result.stderr
    for line in (f"{file}:4: http_token_file: warning: {tmp_path}/token: cannot be read: No such file",
                 f"{file}:5: http_tls_certificate_file: warning: {tmp_path}/crt: cannot be read: No such file",
                 f"{file}:6: http_tls_key_file: warning: others may read or change {key} (mode 0644); run: chmod"):
        assert line in result.stderr, result.stderr


@pytest.mark.parametrize("name", ["scheduler", "worker"])
def test_example_files_have_no_fault_also_with_every_comment_taken_away(name, tmp_path):
    text = (harness.ROOT / "conf" / f"{name}.conf").read_text()
    bare = re.sub(r"(?m)^#\s?([a-z_]+ = )", r"\1", text)
    bare = re.sub(r"(?m)^    # (.*)$", r"    \1", bare)
    assert bare != text
    for content in (text, bare):
        file = tmp_path / f"{name}.conf"
        file.write_text(content)
        result = run(f"report-{name}", "--config", file, "--check-config")
        assert result.returncode == 0, result.stderr
        assert run("reportctl", "check-config", file).returncode == 0


def test_scheduler_reloads_what_it_can_and_names_what_needs_a_restart(installation, monkeypatch):
    notify = NotifySocket(installation.directory)
    monkeypatch.setenv("NOTIFY_SOCKET", notify.path)
    daemon = installation.start_scheduler(log_level="info")
    installation.wait_until(lambda: notify.times("READY=1"), 20, "the scheduler is ready")
    settings = scheduler_settings(installation, "scheduler-1", log_level="warn", stop_ms=9000,
                                  scopes=["main", "other"], relay_window=77)
    ready = len(notify.times("READY=1"))
    log = hup(installation, daemon, {**settings, "log_level": "info"})
    assert 'event="setting changed" key=stop_ms from="20000" to="9000"' in log
    for key in ("scopes", "relay_window"):
        assert f'event="a changed setting needs a restart and is left as it was" key={key}' in log
    assert "applied=1 need_restart=2" in log
    installation.wait_until(lambda: len(notify.times("READY=1")) > ready, 5, "READY=1 after the reload")
    assert [m for _, m in notify.told if re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=\d+", m)]

    # A fault refuses the whole file, and the process goes on with what it has.
    log = hup(installation, daemon, {**settings, "stop_ms": "soon", "drain_ms": 70000})
    assert "stop_ms: is text; write a whole number" in log
    assert "drain_ms: 70000 is out of range" in log
    assert "settings refused, going on with those in force" in log

    # Right by itself, but not beside a value that only a restart would change.
    log = hup(installation, daemon, {**settings, "log_level": "info", "drain_ms": 26000,
                                     "stop_ms": 60000, "stuck_ms": 60000})
    assert "stuck_ms: 30000 is not above what one honest turn may take" in log

    # The level counts from then on.
    daemon.config.write_text(config_text(settings))
    daemon.process.send_signal(signal.SIGHUP)
    installation.wait_until(lambda: len(notify.times("READY=1")) >= 5, 10, "all four are answered")
    before = len(daemon.log_text())
    daemon.process.send_signal(signal.SIGUSR1)
    log = hup(installation, daemon, "nonsense")
    log += hup(installation, daemon)  # whichever signal was taken first: both are answered by now
    assert "settings refused" in log and "level=info" not in daemon.log_text()[before:]
    assert daemon.stop() == 0
    notify.close()


def test_running_jobs_keep_their_settings_and_the_next_ones_have_the_new(installation):
    db = installation.connect()
    db.execute(SCRIPT)
    gate = installation.directory / "gate"
    os.mkfifo(gate)
    scripts = {}
    for name, text in (("old", f"read x < {gate}; echo old $WHICH"), ("new", "echo new $WHICH")):
        scripts[name] = installation.directory / f"{name}.sh"
        scripts[name].write_text(f"#!/bin/sh\n{text}\n")
        scripts[name].chmod(0o755)

    def programs(name):
        return [{"name": "script", "arguments": [str(scripts[name])], "environment": [f"WHICH={name}"]}]

    installation.start_scheduler()
    worker = installation.start_worker(programs=programs("old"))
    installation.wait_until(installation.leader, 30, "somebody leads")
    installation.reportctl("trigger", "script", "--key", "first")
    installation.wait_until(lambda: one(db, "SELECT count(*) FROM reports.job WHERE state = 'running'"),
                            20, "the first job runs")
    log = hup(installation, worker,
              worker_settings(installation, "worker-1", programs=programs("new"), slots=2))
    assert 'event="setting changed" key=programs' in log
    assert "left as it was\" key=slots" in log
    installation.reportctl("trigger", "script", "--key", "second")
    done = "SELECT count(*) FROM reports.job WHERE state = 'succeeded'"
    installation.wait_until(lambda: one(db, done) == 1, 20, "the second job is done")
    with open(gate, "w", encoding="ascii") as f:
        f.write("go\n")
    installation.wait_until(lambda: one(db, done) == 2, 20, "the first job is done")
    files = {key: (installation.artifacts / path).read_text() for key, path in db.execute(
        "SELECT o.occurrence_key, a.path FROM reports.artifact a JOIN reports.occurrence o "
        "ON o.job_id = a.job_id").fetchall()}
    assert files == {"first": "old old\n", "second": "new new\n"}
    assert worker.stop() == 0


def test_a_changed_data_source_is_not_served_by_a_kept_connection(installation):
    db = installation.connect()
    db.execute("""
        INSERT INTO reports.report (name, kind, data_source, query)
        VALUES ('where', 'sql', 'warehouse', 'SELECT current_database() AS d');
        INSERT INTO reports.schedule (name, report, kind, rule) VALUES ('where', 'where', 'once', '2999-01-01T00:00')""")
    installation.start_scheduler()
    worker = installation.start_worker(slots=1)
    installation.wait_until(installation.leader, 30, "somebody leads")

    def answer(key):
        installation.reportctl("trigger", "where", "--key", key)
        path = installation.wait_until(
            lambda: one(db, "SELECT a.path FROM reports.artifact a JOIN reports.occurrence o "
                            "ON o.job_id = a.job_id WHERE o.occurrence_key = %s", (key,)),
            20, f"{key} is done")
        return (installation.artifacts / path).read_text().splitlines()

    assert answer("before") == ["d", "warehouse"]
    other = {"name": "warehouse", "conninfo": installation.stack.conninfo(installation.database)}
    log = hup(installation, worker,
              worker_settings(installation, "worker-1", slots=1, data_sources=[other]))
    assert 'event="setting changed" key=data_sources' in log
    assert answer("after") == ["d", installation.database]
    assert worker.stop() == 0


def test_a_password_file_is_read_again_at_the_next_connect(installation):
    db = installation.connect()
    password = installation.directory / "password"
    password.write_text("first\n")
    password.chmod(0o600)
    worker = installation.start_worker(database_password_file=str(password))
    lost = ("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'report_worker' "
            f"AND datname = '{installation.database}'")
    installation.wait_until(lambda: events(worker, "worker registered"), 20, "the worker is registered")
    password.chmod(0o644)
    db.execute(lost)
    installation.wait_until(
        lambda: [e for e in events(worker, "database connection failed, trying again")
                 if "others may read or change this secret" in e and f"chmod 600 {password}" in e],
        20, "the file is looked at again")
    password.chmod(0o600)
    installation.wait_until(lambda: events(worker, "database connection is back"), 20,
                            "the connection is back without a restart")
    assert worker.stop() == 0


def test_the_other_daemons_role_is_refused_by_name_with_the_one_to_use_and_few_words(installation):
    roles = {"scheduler": "report_worker", "worker": "report_scheduler"}
    for program, role in roles.items():
        start = installation.start_scheduler if program == "scheduler" else installation.start_worker
        daemon = start(database=installation.stack.conninfo(installation.database, role))
        words = f'role \\"{role}\\" is not a member of report_{program}'
        began = time.monotonic()
        installation.wait_until(lambda d=daemon, w=words, p=program: w in d.log_text() and
                                f"write user=report_{p} into" in d.log_text(), 20, f"the {program} says so")
        installation.wait_until(lambda b=began: time.monotonic() > b + 3, 10, "it has tried again and again")
        told = [x for x in daemon.log_text().splitlines() if words in x]
        assert len(told) <= 4, told  # one for each connection it has
        assert "permission denied" not in daemon.log_text()
        assert daemon.stop() == 0


def test_a_worker_tells_at_once_that_it_is_kept_from_the_database_by_something_else_now(installation, proxy):
    proxy.black_hole()
    worker = installation.start_worker(database=installation.stack.conninfo(installation.database, "report_scheduler", proxy.port))
    failed = "database connection failed, trying again"
    first = installation.wait_until(lambda: events(worker, failed), 20, "it cannot connect")[0]
    assert "is not a member" not in first
    proxy.heal()
    healed = time.monotonic()
    which = re.search(r'connection="[^"]+"', first).group()
    installation.wait_until(lambda: [x for x in events(worker, failed) if which in x and "is not a member of report_worker" in x], 20,
                            "it says what is wrong now")
    assert time.monotonic() - healed < 25, "it repeats itself after 20 failures only, three quarters of a minute later"
    assert worker.stop() == 0


def test_secrets_are_nowhere_to_be_seen(installation):
    secret = "s3cr3t-sesame"
    file = installation.directory / "password"
    file.write_text(secret + "\n")
    file.chmod(0o600)
    common = {"database_password_file": str(file),
              "kafka_secret_files": [f"sasl.password={file}"]}
    scheduler = installation.start_scheduler(**common)
    script = installation.directory / "script.sh"
    script.write_text("#!/bin/sh\necho done\n")
    script.chmod(0o755)
    source = {"name": "warehouse", "conninfo": installation.stack.warehouse, "password_file": str(file)}
    worker = installation.start_worker(
        **common, data_sources=[source],
        programs=[{"name": "script", "arguments": [str(script)], "environment": [f"KEY={secret}"]}])
    installation.wait_until(installation.leader, 30, "somebody leads")
    installation.wait_until(lambda: events(worker, "worker registered"), 20, "the worker is registered")
    for daemon in (scheduler, worker):
        hup(installation, daemon)
        daemon.process.send_signal(signal.SIGUSR1)
        for name in ("cmdline", "environ"):
            assert secret.encode() not in pathlib.Path(f"/proc/{daemon.pid}/{name}").read_bytes()
        printed = run(daemon.program, "--config", daemon.config, "--print-config")
        assert printed.returncode == 0 and "# database = (not shown)" in printed.stdout
        assert secret not in printed.stdout + printed.stderr
        assert daemon.stop() == 0
        assert secret not in daemon.log_text()


def test_a_second_signal_ends_the_scheduler_at_once(installation, proxy):
    """The database does not answer, so an ordered stop would take stop_ms."""
    daemon = installation.start_scheduler(
        database=installation.stack.conninfo(installation.database, "report_scheduler", proxy.port),
        stop_ms=60000)
    installation.wait_until(installation.leader, 30, "it leads")
    proxy.hold(b"")
    installation.wait_until(proxy.caught.is_set, 10, "the database is silent")
    daemon.process.send_signal(signal.SIGTERM)
    installation.wait_until(lambda: events(daemon, "stopping"), 10, "it is stopping")
    daemon.process.send_signal(signal.SIGTERM)
    asked = time.monotonic()
    assert daemon.process.wait(50) == 1
    assert time.monotonic() - asked < 50, "stop_ms is 60 s"
    assert events(daemon, "left in haste: the place in line falls by expiry")


def test_a_second_signal_makes_the_worker_hand_back_at_once(installation):
    db = installation.connect()
    db.execute(SCRIPT)
    script = installation.directory / "script.sh"
    script.write_text("#!/bin/sh\nexec sleep 300\n")
    script.chmod(0o755)
    installation.start_scheduler()
    worker = installation.start_worker(programs=[{"name": "script", "arguments": [str(script)]}],
                                       drain_ms=300000)
    installation.wait_until(installation.leader, 30, "somebody leads")
    installation.reportctl("trigger", "script", "--key", "only")
    installation.wait_until(lambda: one(db, "SELECT count(*) FROM reports.job WHERE state = 'running'"),
                            20, "the job runs")
    worker.process.send_signal(signal.SIGTERM)
    installation.wait_until(lambda: events(worker, "stopping: jobs may finish"), 10, "it is stopping")
    worker.process.send_signal(signal.SIGTERM)
    assert worker.process.wait(60) == 0
    assert events(worker, "stopping: the remaining jobs are handed back")
    assert one(db, "SELECT handed_back FROM reports.job") == 1


def test_a_reloaded_stop_ms_bounds_the_schedulers_stop(installation, proxy):
    database = installation.stack.conninfo(installation.database, "report_scheduler", proxy.port)
    daemon = installation.start_scheduler(database=database, stop_ms=120000, drain_ms=5000)
    installation.wait_until(installation.leader, 30, "it leads")
    hup(installation, daemon, scheduler_settings(installation, "scheduler-1", database=database,
                                                 stop_ms=4000, drain_ms=500))
    proxy.hold(b"")
    installation.wait_until(proxy.caught.is_set, 10, "the database is silent")
    daemon.process.send_signal(signal.SIGTERM)
    asked = time.monotonic()
    assert daemon.process.wait(90) == 1
    assert 3 < time.monotonic() - asked < 90, "stop_ms was 120 s"
    assert "the ordered stop took longer than stop_ms" in daemon.log_text()


def test_a_reloaded_bound_reaches_the_scope(installation, proxy):
    """database_unhealthy_ms: at first so long that the leader would keep its place over the test."""
    database = installation.stack.conninfo(installation.database, "report_scheduler", proxy.port)
    common = {"database": database, "database_connect_ms": 1000}
    daemon = installation.start_scheduler(**common, database_unhealthy_ms=600000)
    installation.wait_until(installation.leader, 30, "it leads")
    hup(installation, daemon, scheduler_settings(installation, "scheduler-1", **common,
                                                 database_unhealthy_ms=2500))
    proxy.hold(b"")
    installation.wait_until(lambda: "reason=database_unhealthy" in daemon.log_text(), 20, "it steps down")
    proxy.release()
    assert daemon.stop() == 0


def test_a_reloaded_drain_ms_bounds_the_workers_stop(installation):
    db = installation.connect()
    db.execute(SCRIPT)
    script = installation.directory / "script.sh"
    script.write_text("#!/bin/sh\nexec sleep 300\n")
    script.chmod(0o755)
    programs = [{"name": "script", "arguments": [str(script)]}]
    installation.start_scheduler()
    worker = installation.start_worker(programs=programs, drain_ms=300000)
    installation.wait_until(installation.leader, 30, "somebody leads")
    installation.reportctl("trigger", "script", "--key", "only")
    installation.wait_until(lambda: one(db, "SELECT count(*) FROM reports.job WHERE state = 'running'"),
                            20, "the job runs")
    hup(installation, worker, worker_settings(installation, "worker-1", programs=programs, drain_ms=100))
    assert worker.stop(60) == 0
    assert one(db, "SELECT handed_back FROM reports.job") == 1
