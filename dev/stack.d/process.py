"""Processes of the stack, told apart from strangers that were given the same process id.

A service is a process that works inside the service's own directory (its current directory is
there) and runs the service's own program. So whatever a crashed start-up left behind is found too,
and a shell that somebody opened in that directory is not.
"""

import os
import select
import signal
import subprocess
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Process:
    pid: int
    start: int  # clock ticks after boot, field 22 of /proc/PID/stat

    @staticmethod
    def of(pid):
        """The process that has this id now, or None. A zombie is none: it runs nothing."""
        stat = _stat(pid)
        return Process(pid, int(stat[19])) if stat and stat[0] not in "ZX" else None

    def is_alive(self):
        return Process.of(self.pid) == self

    def is_frozen(self):
        stat = _stat(self.pid)
        return bool(stat) and stat[0] in "Tt" and self.is_alive()

    def send(self, signal_number):
        """Send a signal to this very process; False when it is gone."""
        try:
            fd = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return False
        try:
            # The descriptor pins the process, so what is checked here is what is signalled.
            if not self.is_alive():
                return False
            signal.pidfd_send_signal(fd, signal_number)
            return True
        except ProcessLookupError:
            return False
        finally:
            os.close(fd)

    def wait_gone(self, deadline):
        """Wait until it has ended; False when it has not by the deadline (time.monotonic())."""
        try:
            fd = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return True
        try:
            if not self.is_alive():
                return True
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            return bool(poll.poll(max(0, deadline - time.monotonic()) * 1000))
        finally:
            os.close(fd)


def _stat(pid):
    """Fields of /proc/PID/stat from the third (state) on, or None."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            # The second field is the program's name in parentheses and may hold anything.
            return f.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def find(directory, program):
    """All live processes that run `program` (a file name) with their work directory at or below
    `directory`."""
    directory = os.path.realpath(directory)
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            cwd = os.readlink(f"/proc/{entry}/cwd")
            exe = os.readlink(f"/proc/{entry}/exe")
        except OSError:  # gone, a kernel thread, or somebody else's
            continue
        # The kernel adds " (deleted)" when the directory or the program was removed meanwhile.
        if os.path.basename(exe.removesuffix(" (deleted)")) != program:
            continue
        if (cwd.removesuffix(" (deleted)") + "/").startswith(directory + "/"):
            process = Process.of(int(entry))
            if process:
                found.append(process)
    return found


def spawn(argv, directory, log, owner=None, env=None):
    """Start a program of its own session in `directory`, its output appended to the file `log`.
    owner: (user id, group id) or None for our own."""
    clean = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "TZ": "UTC", **(env or {})}
    identity = {"user": owner[0], "group": owner[1], "extra_groups": []} if owner else {}
    with open(log, "ab") as out:
        child = subprocess.Popen(argv, cwd=directory, env=clean, stdin=subprocess.DEVNULL,
                                 stdout=out, stderr=out, start_new_session=True, **identity)
    return child


def run(argv, directory, log, timeout, owner=None, env=None):
    """Run a program to its end; RuntimeError when it fails or takes longer than `timeout` s."""
    child = spawn(argv, directory, log, owner, env)
    try:
        status = child.wait(timeout)
    except BaseException as e:
        child.kill()
        child.wait()
        if isinstance(e, subprocess.TimeoutExpired):
            raise RuntimeError(f"{argv[0]} was not done after {timeout} s") from None
        raise
    if status != 0:
        raise RuntimeError(f"{argv[0]} failed with status {status}")


def tail(path, lines=25):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return "".join(f.readlines()[-lines:])
    except FileNotFoundError:
        return ""
