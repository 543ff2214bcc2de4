"""The installed tree as systemd sees it, and the watchdog as systemd would hear it."""

import os
import re
import shutil
import subprocess
import time

import harness
import pytest
from harness import build
from notify import NotifySocket, StoppedThread, thread_of
from test_http import loops_that_stand_still, port_of

UNITS = ("report-scheduler.service", "report-worker.service")


def install(root):
    subprocess.run(["cmake", "--install", build()], env={**os.environ, "DESTDIR": str(root)},
                   stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=True)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """What `cmake --install` makes, below a root that has the host's own units."""
    root = tmp_path_factory.mktemp("root")
    install(root)
    shutil.copytree("/lib/systemd/system", root / "usr/lib/systemd/system", symlinks=True,
                    dirs_exist_ok=True)
    (root / "usr/bin").mkdir(parents=True, exist_ok=True)
    shutil.copy("/bin/kill", root / "usr/bin/kill")  # ExecReload
    for name in ("bin", "lib"):
        (root / name).symlink_to(f"usr/{name}")
    return root


def systemd_analyze(*words):
    return subprocess.run(["systemd-analyze", *map(str, words)], stdin=subprocess.DEVNULL, text=True,
                          capture_output=True, timeout=60, check=False,
                          env={**os.environ, "SYSTEMD_LOG_LEVEL": "info"})


def unit_text(root, unit):
    return next(root.rglob(f"lib/systemd/system/{unit}")).read_text()


def seconds(root, unit, key):
    return int(re.search(rf"(?m)^{key}=(\d+)s$", unit_text(root, unit)).group(1))


def default_ms(program, key):
    page = subprocess.run([build() / program, "--print-settings"], stdin=subprocess.DEVNULL, text=True,
                          capture_output=True, timeout=30, check=True).stdout
    return int(re.search(rf"### `{key}`\n.*?default: `(\d+)`", page, re.S).group(1))


def test_install_makes_no_empty_directory_and_settings_that_not_everybody_reads(tmp_path):
    install(tmp_path)
    assert [d for d in tmp_path.rglob("*") if d.is_dir() and not any(d.iterdir())] == []
    used = [f for f in tmp_path.rglob("*.conf") if f.parent.parent.name == "etc"]
    assert {(f.name, oct(f.stat().st_mode)[-4:]) for f in used} == {
        ("scheduler.conf", "0640"), ("worker.conf", "0640")}
    used[0].write_text("# mine\n")
    install(tmp_path)
    assert used[0].read_text() == "# mine\n"


def test_installed_units_have_nothing_to_complain_about(root):
    result = systemd_analyze("verify", f"--root={root}", *UNITS)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_a_unit_without_its_program_would_be_found_out(root, tmp_path):
    """So that the test above cannot pass by looking at nothing."""
    broken = tmp_path / "root"
    shutil.copytree(root, broken, symlinks=True)
    next(broken.rglob("bin/report-worker")).unlink()
    result = systemd_analyze("verify", f"--root={broken}", *UNITS)
    assert result.returncode != 0
    assert "report-worker is not executable: No such file or directory" in result.stderr


@pytest.mark.parametrize("unit, most", [("report-scheduler.service", 15), ("report-worker.service", 26)])
def test_units_are_hardened(root, unit, most):
    """`most`: the exposure level times ten; programs of reports keep the worker's above."""
    result = systemd_analyze("security", "--offline=true", f"--root={root}", f"--threshold={most}", unit)
    assert result.returncode == 0, result.stdout[-2000:]


def test_times_of_the_units_fit_the_defaults_of_the_settings(root):
    scheduler, worker = UNITS
    stuck_ms = default_ms("report-scheduler", "stuck_ms")
    stop_ms = default_ms("report-scheduler", "stop_ms")
    assert seconds(root, scheduler, "WatchdogSec") * 1000 > stuck_ms
    assert seconds(root, scheduler, "TimeoutStopSec") * 1000 >= stop_ms + 10000
    assert seconds(root, worker, "WatchdogSec") * 1000 > default_ms("report-worker", "stuck_ms")
    assert seconds(root, worker, "TimeoutStopSec") * 1000 >= (
        default_ms("report-worker", "drain_ms") + default_ms("report-worker", "kill_grace_ms") + 30000)


@pytest.mark.parametrize("name, option, file", [("scheduler", "--close-dead-session", "session"),
                                                ("worker", "--release-claims", "incarnation")])
def test_units_clean_up_after_a_killed_process_in_the_directory_that_it_had(root, tmp_path, name, option, file):
    unit = unit_text(root, f"report-{name}.service")
    start = re.search(r"(?m)^ExecStart=(\S+) (--config \S+)$", unit)
    stop = re.search(r"(?m)^ExecStopPost=-(.+)$", unit).group(1)
    assert stop == f"{start.group(1)} {option} {start.group(2)}"
    assert f"\nRuntimeDirectory=report-{name}\nRuntimeDirectoryMode=0700\n" in unit
    # Longer than the command's own bound.
    assert seconds(root, f"report-{name}.service", "TimeoutStopSec") >= 25
    words = [next(root.rglob(f"bin/report-{name}")), option, "--config", next(root.rglob(f"etc/report-scheduler/{name}.conf"))]
    result = subprocess.run(words, stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=30, check=False,
                            env={**os.environ, "RUNTIME_DIRECTORY": str(tmp_path)})
    assert (result.returncode, f"{tmp_path}/{file}: is not there" in result.stderr) == (3, True), result.stderr
    assert list(tmp_path.iterdir()) == []


def test_units_reload_and_installed_files_have_no_fault(root):
    for unit in UNITS:
        assert "\nType=notify\n" in unit_text(root, unit)
        assert "\nExecReload=/bin/kill -HUP $MAINPID\n" in unit_text(root, unit)
    for name in ("scheduler", "worker"):
        file = next(root.rglob(f"etc/report-scheduler/{name}.conf"))
        result = subprocess.run([build() / f"report-{name}", "--config", file, "--check-config"],
                                stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=30,
                                check=False)
        assert result.returncode == 0, result.stderr
    for page in ("man1/reportctl.1", "man5/scheduler.conf.5", "man5/worker.conf.5",
                 "man8/report-scheduler.8", "man8/report-worker.8"):
        assert list(root.rglob(page)), page


def fed_through(installation, notify, daemon, thread, timeout):
    """Stop one thread until the process says that it is stuck, in its log and to who asks /livez; the watchdog is
    not fed meanwhile and is fed again when the thread goes on."""
    port = port_of(daemon, installation)
    assert loops_that_stand_still(port) == []
    installation.wait_until(lambda: len(notify.times("WATCHDOG=1")) >= 3, 20, "the watchdog is fed")
    stuck = re.compile(r'event="loop is stuck')
    with StoppedThread(thread_of(daemon.pid, thread)):
        installation.wait_until(lambda: stuck.search(daemon.log_text()), timeout, f"{thread} is stuck")
        told = time.monotonic()
        assert loops_that_stand_still(port) == [thread]
        # Three periods of feeding (WATCHDOG_USEC / 3) go by in silence; what was said before may be read a little later.
        installation.wait_until(lambda: time.monotonic() > told + 4, 5, "three periods passed")
        assert notify.times("WATCHDOG=1", since=told + 1) == []
        assert daemon.is_alive()
    released = time.monotonic()
    installation.wait_until(lambda: notify.times("WATCHDOG=1", since=released), 20, "it is fed again")
    installation.wait_until(lambda: not loops_that_stand_still(port), 20, "it turns again")


@pytest.fixture
def notify(installation, monkeypatch):
    n = NotifySocket(installation.directory)
    monkeypatch.setenv("NOTIFY_SOCKET", n.path)
    monkeypatch.setenv("WATCHDOG_USEC", "3000000")
    yield n
    n.close()


@pytest.mark.parametrize("thread", ["scope", "coordination"])
def test_a_stuck_thread_of_the_scheduler_is_named_by_livez_and_stops_the_feeding(installation, notify, thread):
    daemon = installation.start_scheduler(stuck_ms=10000, drain_ms=1000, database_connect_ms=5000)
    installation.wait_until(installation.leader, 30, "it leads")
    installation.wait_until(lambda: notify.times("READY=1"), 20, "it is ready")
    if thread == "scope":
        fed_through(installation, notify, daemon, thread, 20)
    else:
        with StoppedThread(thread_of(daemon.pid, thread)):
            stopped = time.monotonic()
            installation.wait_until(lambda: time.monotonic() > stopped + 19, 25, "15 s passed")
            assert notify.times("WATCHDOG=1", since=stopped + 16.5) == []
    assert daemon.stop() == 0
    harness.wait_until(lambda: notify.times("STOPPING=1"), 5, "it said that it stops")


def test_a_stuck_loop_of_the_worker_is_named_by_livez_and_stops_the_feeding(installation, notify):
    daemon = installation.start_worker(stuck_ms=20000)
    installation.wait_until(lambda: "worker registered" in daemon.log_text(), 20, "it is registered")
    installation.wait_until(lambda: notify.times("READY=1"), 20, "it is ready")
    fed_through(installation, notify, daemon, "heartbeat", 35)
    assert daemon.stop() == 0
    harness.wait_until(lambda: notify.times("STOPPING=1"), 5, "it said that it stops")


def test_a_database_that_hangs_is_no_reason_to_kill_the_worker(installation, notify):
    """Its loops wait with deadlines (a cancel request too), so they turn; the guard sees to the
    claims."""
    daemon = installation.start_worker(stuck_ms=20000)
    installation.wait_until(lambda: "worker registered" in daemon.log_text(), 20, "it is registered")
    installation.stack.fault("stop", "pg")
    try:
        hung = time.monotonic()
        harness.wait_until(lambda: "heartbeat failed" in daemon.log_text(), 25, "a beat has ended")
        harness.wait_until(lambda: time.monotonic() > hung + 24, 30, "longer than stuck_ms")
        harness.wait_until(lambda: notify.times("WATCHDOG=1", since=hung + 22), 10, "it is fed all the time")
        assert "loop is stuck" not in daemon.log_text()
    finally:
        installation.stack.fault("cont", "pg")
    assert daemon.stop(40) == 0
