import pytest

import harness
from proxy import Proxy


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
    i = harness.Installation(stack)
    try:
        i.create()
        yield i
        for daemon in i.daemons:
            assert not harness.unreadable_lines(daemon.log_text()), daemon.name
    finally:
        i.remove(keep_files=getattr(request.node, "has_failed", False))


@pytest.fixture
def proxy(stack):
    p = Proxy(stack.pg_port)
    yield p
    p.close()
