"""The local stack itself: several side by side, and nothing is left behind whatever happened."""

import os
import pathlib
import subprocess
import uuid

import psycopg
import pytest

from harness import PATIENT_STACK

STACK = pathlib.Path(__file__).resolve().parents[2] / "dev" / "stack"


def run(*words, expect=0):
    result = subprocess.run([STACK, *words], stdin=subprocess.DEVNULL, capture_output=True,
                            text=True, timeout=240, check=False)
    assert result.returncode == expect, result.stdout + result.stderr
    return result.stdout


def environment(name):
    lines = run("env", "--name", name).splitlines()
    return {k: v.strip("'") for k, v in (x.removeprefix("export ").split("=", 1) for x in lines)}


def processes_in(directory):
    found = []
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and os.readlink(f"/proc/{entry}/cwd").startswith(directory):
                found.append(int(entry))
        except OSError:
            pass
    return found


@pytest.fixture
def second():
    name = f"second-{uuid.uuid4().hex[:8]}"
    run("up", *PATIENT_STACK, "--name", name)
    yield name
    run("down", "--name", name)


def test_second_stack_lives_beside_the_first(second):
    mine, other = environment(second), environment(os.environ["RS_STACK"])
    for key in ("RS_PG_PORT", "RS_ZK", "RS_KAFKA", "RS_STACK_DIR"):
        assert mine[key] != other[key]
    run("status", "--name", os.environ["RS_STACK"])


def test_killed_services_start_again_with_their_data(second):
    conninfo = environment(second)["RS_PG_SUPER"]
    with psycopg.connect(conninfo) as db:
        db.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    run("kill", "--name", second, "pg", "zk1", "kafka")
    run("status", "--name", second, expect=1)
    run("start", *PATIENT_STACK, "--name", second, "pg", "zk1", "kafka")
    run("status", "--name", second)
    with psycopg.connect(conninfo) as db:
        assert db.execute("SELECT answer FROM kept").fetchone() == (42,)


def test_down_leaves_nothing_after_kills_and_freezes():
    name = f"gone-{uuid.uuid4().hex[:8]}"
    run("up", *PATIENT_STACK, "--name", name)
    directory = environment(name)["RS_STACK_DIR"]
    assert len(processes_in(directory)) > 5
    run("kill", "--name", name, "pg", "zk2")
    run("stop", "--name", name, "kafka")
    run("down", "--name", name)
    assert processes_in(directory) == []
    assert not os.path.exists(directory)
    run("status", "--name", name, expect=3)
