import os
import shlex
import subprocess

import pytest

import harness
from proxy import Proxy


def pytest_configure(config):
    """Several test processes (pytest -n): each but the first has a stack of its own, named after it, since
    tests kill and freeze services."""
    worker = getattr(config, "workerinput", {}).get("workerid", "gw0")
    if worker == "gw0":
        return
    name = f"{os.environ['RS_STACK']}-{worker}"
    config.own_stack = name
    stack = [harness.ROOT / "dev" / "stack"]
    subprocess.run([*stack, "up", *harness.PATIENT_STACK, "--name", name], stdin=subprocess.DEVNULL, capture_output=True,
                   check=True, timeout=300)
    exports = subprocess.run([*stack, "env", "--name", name], stdin=subprocess.DEVNULL, capture_output=True,
                             check=True, timeout=30, text=True).stdout
    for word in shlex.split(exports):
        key, equals, value = word.partition("=")
        if equals:
            os.environ[key] = value


# Begun first, so that two processes end at about the same time.
LONG = ("test_authority", "test_chaos", "test_http", "test_clock", "test_units", "test_faults_services", "test_crash_fast",
        "test_handoff")


def pytest_collection_modifyitems(items):
    def turn(item):
        name = item.path.stem
        return LONG.index(name) if name in LONG else len(LONG)

    items.sort(key=turn)


def pytest_unconfigure(config):
    name = getattr(config, "own_stack", None)
    if name:
        subprocess.run([harness.ROOT / "dev" / "stack", "down", "--name", name], stdin=subprocess.DEVNULL,
                       capture_output=True, check=False, timeout=120)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if outcome.get_result().failed:
        item.has_failed = True


@pytest.fixture(scope="session")
def stack():
    return harness.Stack()


@pytest.fixture
def installation(stack, request):
    """A fresh database, ZooKeeper root, topic and artifact store; its files stay when it fails."""
    with harness.installed(stack, request) as i:
        yield i


@pytest.fixture
def healing(stack):
    """Whatever a test leaves dead or frozen is brought back."""
    yield stack
    stack.heal()


@pytest.fixture
def proxy(stack):
    p = Proxy(stack.pg_port)
    yield p
    p.close()
