"""Which stacks there are: one state file each, below a directory of the user's own.

Several stacks live side by side (a developer's, the demo's, CI's), told apart by name. What
changes one holds its lock; choosing ports holds a lock over all.
"""

import contextlib
import fcntl
import glob
import json
import os
import random
import socket
import stat
import tempfile
import time

ROOT = f"/var/tmp/report-scheduler-stacks.{os.getuid()}"
PORT_COUNT = 13  # pg 1, zk 3 * 3, kafka 3


class Refused(Exception):
    """Something the user can mend; the text says how."""


def open_root():
    """Make the directory of state files. /var/tmp is everybody's, so look at what is there."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(ROOT, 0o700)
    found = os.lstat(ROOT)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise Refused(f"{ROOT} is not a directory that only you can write: remove it and try again")


def names():
    return sorted(os.path.basename(p)[:-len(".json")] for p in glob.glob(f"{ROOT}/*.json"))


def load(name):
    """The state of a stack, None when there is none of that name."""
    try:
        with open(f"{ROOT}/{name}.json", encoding="utf-8") as f:
            return json.load(f)
    except FileNotFoundError:
        return None


def save(state):
    """Replace the state file in one step, so that readers need no lock."""
    path = f"{ROOT}/{state['name']}.json"
    with open(path + ".new", "w", encoding="utf-8") as f:
        json.dump(state, f, indent=2)
        f.write("\n")
    os.replace(path + ".new", path)


def forget(name):
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{ROOT}/{name}.json")


@contextlib.contextmanager
def locked(what, timeout=180):
    """Hold the lock named `what`. The kernel drops it when its holder dies."""
    fd = os.open(f"{ROOT}/{what}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + timeout
    try:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise Refused(f"another dev/stack command on {what} has been at work for "
                                  f"{timeout} s; see `fuser {ROOT}/{what}.lock`") from None
                time.sleep(0.05)
        yield
    finally:
        os.close(fd)


def free_ports(count):
    """Ports that nobody listens on and no other stack has, running or not. They lie below the
    range from which the kernel gives ports to outgoing connections, so that none of those can take
    one while its service is down. Call with the lock "ports" until the state is saved."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
        lowest_outgoing = int(f.read().split()[0])
    low, high = (15000, lowest_outgoing) if lowest_outgoing > 17000 else (15000, 32000)
    taken = {port for name in names() for port in (load(name) or {"ports": []})["ports"]}
    candidates = [port for port in range(low, high) if port not in taken]
    random.shuffle(candidates)
    found = []
    for port in candidates:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise Refused(f"no {count} free ports between {low} and {high}")


def create(name, directory):
    """A new stack: scratch directory, ports, state file. Nothing runs yet."""
    with locked("ports"):
        if directory:
            directory = os.path.abspath(directory)
            os.makedirs(directory, mode=0o711, exist_ok=True)
            if os.listdir(directory):
                raise Refused(f"{directory} is not empty: name a new directory")
        else:
            directory = tempfile.mkdtemp(prefix=f"report-scheduler-{name}.", dir="/var/tmp")
        # PostgreSQL's own user has to pass through; what it must not read has modes of its own.
        os.chmod(directory, 0o711)
        # Its socket's path has room for 107 bytes.
        if len(f"{directory}/pg/socket/.s.PGSQL.65535") > 107:
            os.rmdir(directory)
            raise Refused(f"{directory} is too long a name for a socket: take a shorter one")
        os.mkdir(f"{directory}/logs", 0o755)
        state = {"name": name, "directory": directory, "ports": free_ports(PORT_COUNT),
                 "boot": boot_id(), "complete": False, "main": {}}
        save(state)
        return state


def boot_id():
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
        return f.read().strip()
