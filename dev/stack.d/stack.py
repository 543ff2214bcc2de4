"""Usage: dev/stack COMMAND [--name NAME | --dir DIR] [...]

  up       start the stack and wait until every service answers; starts what is not running
           --dir DIR makes DIR (new or empty) the scratch directory instead of one below /var/tmp
  down     stop everything and remove the scratch directory
           --keep-logs  leave the logs         --all  every stack of yours, however it was left
  status   one line a service; exit 0 when all answer, 1 when not, 3 when there is no such stack
  env      print the addresses as shell exports:  eval "$(dev/stack env)"
  list     one line a stack
  logs [SERVICE...]   print the end of the logs

For fault tests, SERVICE being pg, kafka, zk1, zk2 or zk3 (several may be named):
  kill SERVICE...     SIGKILL, with all its child processes: as if its machine had failed
  term SERVICE...     an orderly stop
  start SERVICE...    start again on the same port and data, and wait until it answers
           --no-wait  do not wait: a ZooKeeper server alone never gets its quorum
  stop SERVICE...     SIGSTOP: it keeps its connections and answers nothing
  cont SERVICE...     SIGCONT

PostgreSQL takes TLS as well: then report_scheduler, report_worker and warehouse_reader need a
password (SCRAM), which a test gives them. `env` names what a client needs for that and for Kafka by
TLS and SASL.

Stacks are told apart by name: --name, else RS_STACK, else "default"; --dir DIR finds the one whose
scratch directory that is. --timeout SECONDS bounds the start of each service (60).
Nothing ends a stack but `down`: after a start-up that was killed, `dev/stack down --all` finds and
stops what is left. Whoever can reach the loopback can use the databases: for development only.
"""

import argparse
import concurrent.futures
import os
import re
import shlex
import shutil
import signal
import sys
import threading
import time

import process
import registry
import services
import tls
from registry import Refused

NAMES = ("pg", "zk1", "zk2", "zk3", "kafka")


def say(text):
    print(f"dev/stack: {text}", file=sys.stderr, flush=True)


class Stack:
    """A stack and its state file. Services are started and stopped in parallel."""

    def __init__(self, state):
        self.state = state
        self.name = state["name"]
        self.directory = state["directory"]
        self.state_lock = threading.Lock()  # of self.state, among the threads of each()
        ports = state["ports"]
        make = {"pg": (services.Postgres, ports[0:1]), "kafka": (services.Kafka, ports[10:13])}
        make.update({f"zk{i}": (services.ZooKeeper, ports[1:10]) for i in (1, 2, 3)})
        self.services = {n: make[n][0](n, self.directory, make[n][1]) for n in NAMES}

    def main_of(self, name):
        """The recorded main process, None when it has ended or the machine was rebooted."""
        pid_start = self.state["main"].get(name)
        if not pid_start or self.state["boot"] != registry.boot_id():
            return None
        main = process.Process(*pid_start)
        return main if main.is_alive() else None

    def note_main(self, name, main):
        with self.state_lock:
            self.state["main"][name] = [main.pid, main.start]
            registry.save(self.state)

    def each(self, names, action):
        """action(name) for all at once; all are finished before the first failure is raised."""
        with concurrent.futures.ThreadPoolExecutor(len(NAMES)) as pool:
            futures = [pool.submit(action, n) for n in names]
        failures = [str(f.exception()) for f in futures if f.exception()]
        if failures:
            raise RuntimeError("\n".join(failures))

    def start(self, names, timeout, first=False, wait=True):
        begun = time.monotonic()

        def start_one(name):
            service = self.services[name]
            if first:
                service.prepare()
            main = self.main_of(name)
            if main is None:
                service.kill(time.monotonic() + 10)  # what an unrecorded start may have left
                main = service.start()
                if main is None:
                    service.fail("ended at once")
                self.note_main(name, main)
            if not wait:
                return
            # A frozen one would never answer, and that is not for us to end.
            if main.is_frozen():
                service.fail("is frozen (dev/stack cont it)")
            service.wait_ready(main, begun + timeout)
            if first:
                service.finish_start(begun + timeout)
            say(f"{name} answers after {time.monotonic() - begun:.1f} s")

        self.each(names, start_one)

    def kill(self, names):
        self.each(names, lambda n: self.services[n].kill(time.monotonic() + 10))

    def terminate(self, names):
        self.each(names, lambda n: self.services[n].terminate(self.main_of(n),
                                                              time.monotonic() + 30))

    def remove(self, keep_logs):
        # Nothing of it is needed any more, so nothing is asked to finish first; only PostgreSQL
        # gets a moment to give its shared memory back.
        self.services["pg"].signal_all(signal.SIGCONT)
        main = self.main_of("pg")
        if main is not None and main.send(signal.SIGQUIT):
            main.wait_gone(time.monotonic() + 5)
        self.kill(NAMES)
        for service in self.services.values():
            service.clean_up()
        if keep_logs:
            for name in NAMES:
                shutil.rmtree(os.path.join(self.directory, name), ignore_errors=True)
            say(f"the logs are in {self.directory}/logs")
        else:
            shutil.rmtree(self.directory, ignore_errors=True)
            if os.path.exists(self.directory):
                raise RuntimeError(f"cannot remove all of {self.directory}: remove it by hand")
        registry.forget(self.name)

    def environment(self):
        ports = self.state["ports"]
        conninfo = "host=127.0.0.1 port=%d dbname=%s user=postgres"
        return {
            "RS_STACK": self.name,
            "RS_STACK_DIR": self.directory,
            "PGSSLMODE": "disable",  # where nobody asks for TLS: see services.Postgres.prepare
            "RS_PG_HOST": "127.0.0.1",
            "RS_PG_PORT": str(ports[0]),
            "RS_PG_DATABASE": "reports",
            "RS_PG_SUPER": conninfo % (ports[0], "reports"),
            "RS_WAREHOUSE": conninfo % (ports[0], "warehouse"),
            "RS_ZK": ",".join(f"127.0.0.1:{ports[1 + 3 * i]}" for i in range(3)),
            "RS_KAFKA": f"127.0.0.1:{ports[10]}",
            # By TLS and SASL (PLAIN), as user "report", password in $RS_TLS/kafka.password.
            "RS_KAFKA_SECURE": f"127.0.0.1:{ports[-1]}",
            "RS_TLS": os.path.join(self.directory, "tls"),
            "RS_PGBOUNCER": os.environ["RS_STACK_PGBOUNCER"],
        }


def find(options, must=True):
    if options.dir and options.command != "up":
        wanted = os.path.realpath(options.dir)
        states = [s for s in map(registry.load, registry.names())
                  if s and os.path.realpath(s["directory"]) == wanted]
        state, what = (states[0] if states else None), f"at {options.dir}"
    else:
        state, what = registry.load(options.name), f"named {options.name}"
    if state is None and must:
        say(f"there is no stack {what}; `dev/stack list` shows yours, `dev/stack up` makes one")
        sys.exit(3)
    return Stack(state) if state else None


def command_up(options):
    for part in ("ZOOKEEPER", "KAFKA"):
        if not os.path.isdir(os.environ["RS_STACK_JARS_" + part]):
            raise Refused(f"the jars of {part.lower()} are not there: run dev/setup")
    if not os.environ["RS_STACK_JAVA"] or not os.path.isdir(services.POSTGRES_BIN):
        raise Refused("Java 17 or PostgreSQL 15 is not there: run dev/setup")
    begun = time.monotonic()
    with registry.locked("stack-" + options.name):
        stack = find(options, must=False)
        if stack and not stack.state["complete"]:
            say("removing what a start-up that was broken off had left")
            stack.remove(keep_logs=False)
            stack = None
        if stack:
            stack.start(NAMES, options.timeout)
        else:
            stack = Stack(registry.create(options.name, options.dir))
            try:
                tls.make(os.path.join(stack.directory, "tls"))
                stack.start(NAMES, options.timeout, first=True)
                stack.state["complete"] = True
                registry.save(stack.state)
            except BaseException as e:
                say("could not start; stopping what was started")
                stack.remove(keep_logs=isinstance(e, RuntimeError))
                raise
    print(f'stack {stack.name} is up after {time.monotonic() - begun:.1f} s in {stack.directory}: '
          f'eval "$(dev/stack env --name {stack.name})"')


def command_down(options):
    if options.all:
        names = registry.names()
    else:
        stack = find(options, must=False)
        names = [stack.name] if stack else []
    if not names:
        say("nothing to stop")
    for name in names:
        with registry.locked("stack-" + name):
            state = registry.load(name)
            if state:
                Stack(state).remove(options.keep_logs)
                say(f"stack {name} is down")


def command_status(options):
    stack = find(options)
    all_well = stack.state["complete"]
    print(f"stack {stack.name} in {stack.directory}")
    for name, service in stack.services.items():
        main = stack.main_of(name)
        if main is None:
            word, detail = "stopped", ""
        elif main.is_frozen():
            word, detail = "frozen", ""
        else:
            lack = service.missing()
            word, detail = ("starting", lack) if lack else ("running", service.detail())
        all_well = all_well and word == "running"
        port = getattr(service, "client_port", service.ports[0])
        print(f"{name:<6} {word:<9} pid {main.pid if main else '-':<8} port {port:<6} {detail}")
    sys.exit(0 if all_well else 1)


def command_env(options):
    for key, value in find(options).environment().items():
        print(f"export {key}={shlex.quote(value)}")


def command_list(_options):
    for name in registry.names():
        stack = Stack(registry.load(name))
        running = sum(1 for n in NAMES if stack.main_of(n))
        print(f"{name:<24} {running} of {len(NAMES)} services run   {stack.directory}")


def command_logs(options):
    stack = find(options)
    for name in options.services or NAMES:
        print(f"==> {name}: {stack.services[name].log}")
        print(process.tail(stack.services[name].log, 40))


def command_fault(options):
    stack = find(options)
    with registry.locked("stack-" + stack.name):
        stack = find(options)
        if options.command == "start":
            stack.start(options.services, options.timeout, wait=not options.no_wait)
        elif options.command == "kill":
            stack.kill(options.services)
        elif options.command == "term":
            stack.terminate(options.services)
        else:
            number = signal.SIGSTOP if options.command == "stop" else signal.SIGCONT
            for name in options.services:
                if not stack.services[name].signal_all(number):
                    raise Refused(f"{name} is not running")


COMMANDS = {"up": command_up, "down": command_down, "status": command_status, "env": command_env,
            "list": command_list, "logs": command_logs}
FAULTS = ("kill", "term", "start", "stop", "cont")


def parse(arguments):
    parser = argparse.ArgumentParser(prog="dev/stack", usage="dev/stack COMMAND [...], see --help",
                                     add_help=False)
    parser.add_argument("command", choices=[*COMMANDS, *FAULTS])
    parser.add_argument("services", nargs="*", metavar="SERVICE")
    parser.add_argument("--name", default=os.environ.get("RS_STACK") or "default")
    parser.add_argument("--dir")
    parser.add_argument("--timeout", type=float, default=60)
    for flag in ("--all", "--keep-logs", "--no-wait"):
        parser.add_argument(flag, action="store_true")
    options = parser.parse_intermixed_args(arguments)
    if not re.fullmatch(r"[a-z0-9][a-z0-9_.-]{0,31}", options.name):
        parser.error("a stack's name is 1 to 32 of a-z 0-9 _ . - and begins with a letter or digit")
    for name in options.services:
        if name not in NAMES:
            parser.error(f"there is no service {name}; there are {', '.join(NAMES)}")
    if bool(options.services) != (options.command in FAULTS) and options.command != "logs":
        parser.error(f"{options.command} takes {'at least one' if options.command in FAULTS else 'no'}"
                     " SERVICE")
    return options


def break_off(number, _frame):
    """End as soon as what was started has been stopped again; that is not interrupted."""
    for other in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(other, signal.SIG_IGN)
    services.Service.broken_off.set()
    sys.exit(128 + number)


def main():
    if not sys.argv[1:] or {"-h", "--help"} & set(sys.argv[1:]):
        print(__doc__.strip())
        sys.exit(0 if sys.argv[1:] else 2)
    options = parse(sys.argv[1:])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, break_off)
    try:
        registry.open_root()
        COMMANDS.get(options.command, command_fault)(options)
    except (Refused, RuntimeError) as e:
        say(str(e))
        sys.exit(1)


main()
