"""Kafka, its topic, ZooKeeper's majority and PostgreSQL go away under load and come back.

After each: everything that was due is planned once and done, each job has its one file, and no file
is left over. `dev/soak faults` runs these with outages of a minute.
"""

from datetime import timedelta

import pytest

from harness import LONG_SESSION_MS, SESSION_MS
from load import seconds, soaking, start
from proof import check_everything, one

# Where nothing is done to ZooKeeper the leader stays: also on a machine that stands still for seconds.
STEADY = {"zookeeper_session_ms": LONG_SESSION_MS}
PULL_S = 2 + 2  # a job without a message is pulled within twice pull_idle_ms; the rest is for a busy machine


def check_pulled(load, since, what):
    """While nothing brings messages: what has become due since then is done all the same."""
    load.last(seconds(2, 60))
    until = load.now() - timedelta(seconds=1)
    due = load.one("SELECT count(*) FROM reports.occurrence WHERE scheduled_for BETWEEN %s AND %s", since, until)
    assert due > 0, "the test is too short: nothing was due"
    load.wait_until(lambda: load.done_within(since, until)[0] >= due, 40, f"jobs are pulled while {what}")
    if soaking():  # in dev/test the machine may be too busy for that
        assert load.done_within(since, until)[1] < PULL_S


def test_kafka_away_costs_seconds_and_loses_nothing(installation, healing):
    load = start(installation, settings=STEADY)
    leader = installation.leader()
    healing.fault("kill", "kafka")
    check_pulled(load, load.now(), "Kafka is away")
    up = load.now()
    assert load.one("SELECT count(*) FROM reports.outbox") > 0
    healing.fault("start", "kafka")
    load.wait_until(lambda: load.one("SELECT count(*) FROM reports.outbox WHERE created_at < %s", up) == 0,
                    60, "what had waited is published")
    assert installation.leader() == leader
    check_everything(installation, load.db)


def test_deleted_topic_costs_seconds_and_loses_nothing(installation, healing):
    load = start(installation, settings=STEADY)
    leader = installation.leader()
    brokers = ("--brokers", installation.stack.kafka)
    installation.reportctl("topic", "delete", installation.topic, *brokers)
    check_pulled(load, load.now(), "there is no topic")
    back = load.now()
    installation.reportctl("topic", "create", installation.topic, "--partitions", "4", *brokers)
    load.wait_until(lambda: load.one("SELECT count(*) FROM reports.outbox WHERE created_at < %s", back) == 0,
                    60, "the relay has found the new topic and published what had waited")
    assert installation.leader() == leader
    check_everything(installation, load.db)


def test_zookeeper_without_majority_stops_planning_and_loses_nothing(installation, healing):
    load = start(installation, schedulers=2)
    _, generation = installation.leader()
    healing.fault("kill", "zk2", "zk3")
    down = load.now()
    load.last(seconds(7, 60))
    # The lease ends before the session would; nothing is decided after it (I8).
    last = load.one("SELECT max(planned_at) FROM reports.occurrence")
    assert (last - down).total_seconds() < SESSION_MS / 1000 + 1
    load.wait_until(lambda: load.one("SELECT count(*) FROM reports.job WHERE state = 'queued'") == 0, 40, "workers go on")
    healing.fault("start", "zk2", "zk3")
    load.wait_until(lambda: load.one("SELECT max(planned_at) FROM reports.occurrence") > last, 40, "planning goes on")
    assert installation.leader()[1] >= generation
    check_everything(installation, load.db)


def test_killed_postgresql_is_found_again_by_all_and_nothing_is_lost(installation, healing):
    load = start(installation, schedulers=2, settings={} if soaking() else {"database_unhealthy_ms": 60000, **STEADY})
    leader = installation.leader()
    healing.fault("kill", "pg")
    load.last(seconds(2, 30))
    healing.fault("start", "pg")
    load.reconnect()
    load.wait_flowing()
    if not soaking():  # shorter than database_unhealthy_ms: so long it keeps its place
        assert installation.leader() == leader
    check_everything(installation, load.db)
    for name, in load.db.execute("SELECT DISTINCT name FROM reports.worker WHERE state = 'alive'"):
        assert name.startswith("worker-")
    assert one(load.db, "SELECT count(*) FROM reports.fence_rejection") == 0


def test_everything_is_restarted_one_by_one_under_load(installation, healing):
    load = start(installation, schedulers=2)
    for name in ("scheduler-1", "scheduler-2", "worker-1", "worker-2"):
        daemon = next(d for d in installation.daemons if d.name == name)
        assert daemon.stop(60) == 0
        daemon.start()
        load.wait_for_leader()
        load.wait_flowing(5)
    for service in ("zk1", "zk2", "zk3", "kafka", "pg"):
        healing.fault("term", service)
        healing.fault("start", service)
        if service == "pg":
            load.reconnect()
        load.wait_for_leader()
        load.wait_flowing(seconds(5, 50))
    check_everything(installation, load.db)
