"""A PostgreSQL of the run's own in place of the stack's: on a small disk, with a clock that can be stepped, and
with a standby that can be promoted although it has not heard all. Needs root, for the small disks: they are
mounted in a mount namespace of this process alone, and end with it.
"""

import ctypes
import os
import pathlib
import subprocess

import harness
import servers

CLONE_NEWNS = 0x20000
DISK_MIB = 1500
ARTIFACTS_MIB = 200


def is_allowed():
    return os.getuid() == 0 and os.path.exists(servers.FAKETIME)


def leave_mount_namespace():
    """What this process and its children mount from now on nobody else sees."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) != 0:
        raise PermissionError(ctypes.get_errno(), "no mount namespace of its own")
    subprocess.run(["mount", "--make-rprivate", "/"], stdin=subprocess.DEVNULL, check=True, timeout=30)


def mount_disk(directory, mib):
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}m", "none", directory], stdin=subprocess.DEVNULL, check=True, timeout=30)


def unmount(directory):
    subprocess.run(["umount", "-l", directory], stdin=subprocess.DEVNULL, check=False, timeout=30)


class Ballast:
    """A file that takes all the room of a disk."""

    def __init__(self, directory):
        self.path = pathlib.Path(directory) / "ballast"

    def fill(self):
        with open(self.path, "wb", buffering=0) as f:
            try:
                while f.write(b"\0" * (1 << 20)):
                    pass
            except OSError:
                pass
            # The rest, to the last page.
            try:
                while f.write(b"\0" * 4096):
                    pass
            except OSError:
                pass

    def empty(self):
        self.path.unlink(missing_ok=True)


class Postgres(servers.SteppablePostgres):
    """On a disk of its own; its clock is the machine's and what a file says."""

    def prepare_directory(self):
        mount_disk(self.directory, DISK_MIB)
        self.directory.chmod(0o711)

    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    def start_again(self):
        """After it ended by itself or was killed."""
        if not self.is_alive():
            self.service.clean_up()
            self.start()

    def remove(self):
        super().remove()
        unmount(self.directory)


class Stack(harness.Stack):
    """The stack with a primary and a standby of our own; clients try one after the other."""

    def __init__(self):
        super().__init__()
        leave_mount_namespace()
        self.primary = Postgres()
        with self.primary.connect("postgres") as db:
            for name in ("max_wal_size", "wal_keep_size"):  # the disk is small
                db.execute(f"ALTER SYSTEM SET {name} = '200MB'")
            db.execute("SELECT pg_reload_conf()")
        self.standby = Postgres(backup_of=self.primary, standby=True)
        self.pg_port = self.primary.port

    def ports(self):
        return [s.port for s in (self.primary, self.standby) if s is not None]

    def conninfo(self, database, role="postgres", port=None):
        ports = [port] if port else self.ports()
        return (f"host={','.join('127.0.0.1' for _ in ports)} port={','.join(map(str, ports))} "
                f"target_session_attrs=read-write dbname={database} user={role}")

    def fault(self, command, *services):
        if "pg" not in services:
            super().fault(command, *services)
            return
        pid = self.primary.process.pid
        tree = [pid, *map(int, subprocess.run(["pgrep", "-P", str(pid)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                              timeout=10, check=False).stdout.split())]
        if command == "start":
            self.primary.start_again()
            return
        for p in tree:
            try:
                os.kill(p, {"kill": 9, "stop": 19, "cont": 18}[command])
            except ProcessLookupError:
                pass
        if command == "kill":
            self.primary.process.wait(10)

    def fail_over(self):
        """The primary is gone for good, and the standby goes on without what it had not heard."""
        self.primary.stop()
        self.standby.promote()
        old, self.primary, self.standby = self.primary, self.standby, None
        self.pg_port = self.primary.port
        old.remove()

    def remove(self):
        for server in (self.standby, self.primary):
            if server is not None:
                server.remove()
