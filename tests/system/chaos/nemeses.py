"""Faults with names. Each is an object with begin(), heal() and `lasts`, the seconds between the two; heal()
brings back all that begin() took, and is called whatever happened.

`lane`: of one lane only one nemesis is at work at a time, so that there is something left to survive.
"""

import subprocess
import time

import psycopg

from harness import ROOT, SESSION_MS, wait_until
from chaos import own_postgres
from chaos.cluster import MARGIN_MS, PARTITIONS, SCHEDULERS, TICK_MS
from chaos.packets import BOTH, IN, OUT

LEASE_S = (SESSION_MS - TICK_MS - SESSION_MS / 8 - MARGIN_MS) / 1000
SESSION_S = SESSION_MS / 1000
ALL = []


def nemesis(lane, shortest, longest, needs=None):
    def register(c):
        c.lane, c.lasts, c.needs = lane, (shortest, longest), needs
        c.name = "".join(f"_{x.lower()}" if x.isupper() else x for x in c.__name__).strip("_")
        ALL.append(c)
        return c

    return register


def usable(cluster):
    """All that this machine and this cluster allow."""
    have = {None, *(["packets"] if cluster.packets is not None else []), *cluster.can}
    return [c for c in ALL if c.needs in have]


class Nemesis:
    def __init__(self, cluster):
        self.cluster = cluster
        self.victim = None

    def begin(self):
        raise NotImplementedError

    def heal(self):
        pass


# One scheduler --------------------------------------------------------------------------------------

class OfLeader(Nemesis):
    leading = True

    def choose(self):
        self.victim = self.cluster.a_scheduler(self.leading)
        return self.cluster.daemons[self.victim]


@nemesis("scheduler", 0, 3)
class KillLeader(OfLeader):
    """SIGKILL; its session expires, a successor takes over."""

    def begin(self):
        daemon = self.choose()
        self.cluster.ending(self.victim)
        daemon.kill()

    def heal(self):
        if self.victim:
            self.cluster.start_again(self.victim)


@nemesis("scheduler", 5, 7)
class KillLeaderUntilItsSessionExpires(KillLeader):
    pass


@nemesis("scheduler", 0, 2)
class KillLeaderAndCleanUp(KillLeader):
    """What systemd does: SIGKILL, then --close-dead-session."""

    def begin(self):
        super().begin()
        self.cluster.daemons[self.victim].clean_up()


@nemesis("scheduler", 0, 3)
class KillFollower(KillLeader):
    leading = False


@nemesis("scheduler", 0.5, LEASE_S - 0.2)
class FreezeLeaderWithinLease(OfLeader):
    """SIGSTOP and SIGCONT."""

    def begin(self):
        self.choose().freeze()

    def heal(self):
        if self.victim:
            self.cluster.daemons[self.victim].thaw()


@nemesis("scheduler", LEASE_S + 0.1, SESSION_S)
class FreezeLeaderBeyondLease(FreezeLeaderWithinLease):
    pass


@nemesis("scheduler", SESSION_S + 1, SESSION_S + 4)
class FreezeLeaderBeyondSession(FreezeLeaderWithinLease):
    """Its successor leads when it wakes and goes on with what it was about to do."""


@nemesis("scheduler", 0, 0)
class StopLeader(OfLeader):
    def begin(self):
        daemon = self.choose()
        self.cluster.ending(self.victim)
        daemon.stop(40)

    def heal(self):
        if self.victim:
            self.cluster.start_again(self.victim)


@nemesis("scheduler", 0, 0)
class RestartSchedulersInTurn(Nemesis):
    def begin(self):
        for name in SCHEDULERS:
            self.cluster.ending(name)
            self.cluster.daemons[name].stop(40)
            self.cluster.start_again(name)

    def heal(self):
        for name in SCHEDULERS:
            self.cluster.start_again(name)


@nemesis("scheduler", 0, 0)
class AllSchedulersKilledAndStartedAtOnce(Nemesis):
    """Candidates enroll at the same time, beside nodes of dead sessions."""

    def begin(self):
        for name in SCHEDULERS:
            self.cluster.ending(name)
            self.cluster.daemons[name].process.kill()
        for name in SCHEDULERS:
            self.cluster.daemons[name].kill()

    def heal(self):
        for name in SCHEDULERS:
            self.cluster.start_again(name)


# One process cut from one service -------------------------------------------------------------------

def _ports(cluster, service):
    stack = cluster.stack
    return {"postgresql": cluster.pg_ports(), "kafka": [int(stack.kafka.rpartition(":")[2])],
            "zookeeper": [int(a.rpartition(":")[2]) for a in stack.zookeeper.split(",")]}[service]


class Cut(Nemesis):
    services, direction = (), BOTH

    def choose(self):
        return self.cluster.a_scheduler(True)

    def begin(self):
        self.victim = self.choose()
        for service in self.services:
            self.cluster.packets.cut(self.cluster.groups[self.victim], _ports(self.cluster, service), self.direction)

    def heal(self):
        if self.victim:
            self.cluster.dropped += self.cluster.packets.dropped()
            self.cluster.packets.heal(self.cluster.groups[self.victim])


def _cuts():
    """One class for each scheduler or worker, service and direction."""
    for who, lane, services in (("leader", "scheduler", ("zookeeper", "postgresql", "kafka")), ("worker", "worker", ("postgresql", "kafka"))):
        for service in services:
            for direction, word in ((BOTH, "from"), (OUT, "cannot_send_to"), (IN, "cannot_hear")):
                members = {"services": (service,), "direction": direction}
                if who == "worker":
                    members["choose"] = lambda self: self.cluster.a_worker()
                c = type(f"{who}_{'cut_' if direction == BOTH else ''}{word}_{service}", (Cut,), members)
                nemesis(lane, 1, SESSION_S + 3, "packets")(c)


_cuts()


@nemesis("scheduler", 2, SESSION_S + 3, "packets")
class LeaderCutFromEverything(Cut):
    services = ("zookeeper", "postgresql", "kafka")


@nemesis("scheduler", SESSION_S + 1, SESSION_S + 4, "packets")
class LeaderCutFromZookeeperAndFrozen(Cut):
    """It wakes behind its deadline, cut off, with PostgreSQL at hand: only the deadline and the fence stop it."""
    services = ("zookeeper",)

    def begin(self):
        super().begin()
        self.cluster.daemons[self.victim].freeze()

    def heal(self):
        if self.victim:
            self.cluster.daemons[self.victim].thaw()
            time.sleep(1)
        super().heal()


# One worker -----------------------------------------------------------------------------------------

@nemesis("worker", 0, 3)
class KillWorker(Nemesis):
    def begin(self):
        self.victim = self.cluster.a_worker()
        self.cluster.ending(self.victim)
        self.cluster.daemons[self.victim].kill()

    def heal(self):
        if self.victim:
            self.cluster.start_again(self.victim)


@nemesis("worker", 0, 2)
class KillWorkerAndReleaseClaims(KillWorker):
    def begin(self):
        super().begin()
        self.cluster.daemons[self.victim].clean_up()


@nemesis("worker", 5, 8)
class FreezeWorkerBeyondItsLease(Nemesis):
    def begin(self):
        self.victim = self.cluster.a_worker()
        self.cluster.daemons[self.victim].freeze()

    def heal(self):
        if self.victim:
            self.cluster.daemons[self.victim].thaw()


@nemesis("worker", 0, 0)
class StopWorker(KillWorker):
    def begin(self):
        self.victim = self.cluster.a_worker()
        self.cluster.ending(self.victim)
        self.cluster.daemons[self.victim].stop(40)


@nemesis("worker", 0, 0)
class KillKeepers(Nemesis):
    """The processes between the workers and their programs, in the middle of a job."""

    def begin(self):
        for worker in [d for n, d in self.cluster.daemons.items() if n.startswith("worker") and d.is_alive()]:
            subprocess.run(["pkill", "-KILL", "-P", str(worker.pid)], stdin=subprocess.DEVNULL, check=False, timeout=10)


# Services -------------------------------------------------------------------------------------------

class OfService(Nemesis):
    services = ()

    def choose(self):
        return self.services

    def fault(self, word, *names):
        self.cluster.stack.fault(word, *names)


class Killed(OfService):
    def begin(self):
        self.victim = self.choose()
        self.fault("kill", *self.victim)

    def heal(self):
        if self.victim:
            self.fault("start", *self.victim)


class Frozen(OfService):
    def begin(self):
        self.victim = self.choose()
        self.fault("stop", *self.victim)

    def heal(self):
        if self.victim:
            self.fault("cont", *self.victim)


def zookeeper_roles(stack):
    """(the leader's name, [the followers'])."""
    lines = subprocess.run([ROOT / "dev" / "stack", "status", "--name", stack.name], stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, timeout=60, check=False).stdout.splitlines()
    leaders = [line.split()[0] for line in lines if line.startswith("zk") and "leader" in line]
    leader = leaders[0] if leaders else "zk1"
    return leader, [z for z in ("zk1", "zk2", "zk3") if z != leader]


@nemesis("service", 0, 4)
class ZookeeperLeaderKilled(Killed):
    def choose(self):
        return (zookeeper_roles(self.cluster.stack)[0],)


@nemesis("service", 0, 4)
class ZookeeperFollowerKilled(Killed):
    def choose(self):
        return (self.cluster.random.choice(zookeeper_roles(self.cluster.stack)[1]),)


@nemesis("service", 1, 8)
class ZookeeperMajorityGone(Killed):
    def choose(self):
        return tuple(self.cluster.random.sample(("zk1", "zk2", "zk3"), 2))


@nemesis("service", 1, 8)
class ZookeeperLeaderFrozen(Frozen):
    def choose(self):
        return (zookeeper_roles(self.cluster.stack)[0],)


@nemesis("service", 0, 5)
class PostgresqlKilled(Killed):
    services = ("pg",)


@nemesis("service", 1, 8)
class PostgresqlFrozen(Frozen):
    services = ("pg",)

    def begin(self):
        self.cluster.database_frozen = True
        super().begin()

    def heal(self):
        super().heal()
        self.cluster.database_frozen = False


@nemesis("service", 2, 10)
class KafkaKilled(Killed):
    services = ("kafka",)


@nemesis("service", 2, 10)
class KafkaFrozen(Frozen):
    services = ("kafka",)


@nemesis("service", 1, 6)
class TopicDeleted(Nemesis):
    def _reportctl(self, *words):
        i = self.cluster.installation
        i.reportctl("topic", *words, "--brokers", self.cluster.stack.kafka)

    def begin(self):
        self._reportctl("delete", self.cluster.installation.topic)
        self.victim = "topic"

    def heal(self):
        if self.victim:
            self._reportctl("create", self.cluster.installation.topic, "--partitions", str(PARTITIONS))


@nemesis("service", 2, 5)
class ConnectionsOfPostgresqlUsedUp(Nemesis):
    """Also none for who must connect anew: the daemons' connections are ended once the rest are taken."""

    def begin(self):
        self.victim = []
        try:
            while len(self.victim) < 500:
                self.victim.append(psycopg.connect(self.cluster.stack.conninfo(self.cluster.installation.database, "report_worker"),
                                                   connect_timeout=5, application_name="guest"))
        except psycopg.OperationalError:
            pass
        self.cluster.rows("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename IN ('report_scheduler', 'report_worker') "
                          "AND application_name <> 'guest' AND random() < 0.5")

    def heal(self):
        for connection in self.victim or ():
            connection.close()


@nemesis("service", 0, 0)
class ConnectionsToPostgresqlEnded(Nemesis):
    def begin(self):
        self.cluster.rows("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename IN ('report_scheduler', 'report_worker')")


# A PostgreSQL of the run's own (own_postgres.py) ------------------------------------------------------

@nemesis("service", 1, 5, "own_postgres")
class PostgresqlDiskFull(Nemesis):
    """It cannot write its log, panics, and is started again once there is room."""

    def begin(self):
        self.victim = own_postgres.Ballast(self.cluster.stack.primary.directory)
        self.victim.fill()

    def heal(self):
        if self.victim:
            self.victim.empty()
            self.cluster.stack.primary.start_again()


@nemesis("disk", 1, 5, "own_postgres")
class ArtifactDiskFull(Nemesis):
    def begin(self):
        self.victim = own_postgres.Ballast(self.cluster.installation.artifacts)
        self.victim.fill()

    def heal(self):
        if self.victim:
            self.victim.empty()


class ClockStepped(Nemesis):
    """The guard holds the installation; set right again, it goes on by itself."""

    def begin(self):
        self.victim = self.cluster.stack.primary
        self.cluster.clock_stepped = True
        self.victim.step(self.step_s)

    def heal(self):
        if self.victim:
            self.victim.step(0)


@nemesis("service", 2, 12, "own_postgres")
class PostgresqlClockSteppedForward(ClockStepped):
    step_s = 3600


@nemesis("service", 2, 12, "own_postgres")
class PostgresqlClockSteppedBack(ClockStepped):
    step_s = -3600


@nemesis("service", 0, 0, "own_postgres")
class FailoverThatLostCommits(Nemesis):
    """A standby that had not heard the last seconds is promoted: everything is held until an operator has
    looked, and from then on the database that is left is what counts."""

    def begin(self):
        stack = self.cluster.stack
        stack.standby.follow_nobody()
        self.cluster.last(2)
        self.cluster.lost_commits = True
        stack.fail_over()
        self.cluster.forget_connection()

    def heal(self):
        held = "SELECT id FROM reports.hold WHERE lifted_at IS NULL AND cause = 'database_rewound'"
        wait_until(lambda: self.cluster.rows(held), 60, "the loss is noticed", self.cluster.daemons.values())
        for hold, in self.cluster.rows(held):
            self.cluster.installation.reportctl("release-hold", hold, "--yes")
