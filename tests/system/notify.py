"""What a service says to systemd, on a socket of the test's own, and a way to stop one thread of it.
"""

import ctypes
import os
import pathlib
import socket
import threading
import time

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long
_SEIZE, _INTERRUPT, _DETACH, _WALL = 0x4206, 0x4207, 17, 0x40000000


class NotifySocket:
    """Collects (monotonic time, message) of whatever is told."""

    def __init__(self, directory):
        self.path = str(directory / "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.told = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        while True:
            try:
                message = self.socket.recv(4096).decode()
            except OSError:
                return
            self.told.append((time.monotonic(), message))

    def times(self, word, since=0.0):
        """When a line of that name came."""
        return [t for t, m in self.told if t >= since
                and any(line.startswith(word) for line in m.splitlines())]

    def close(self):
        self.socket.close()


def thread_of(pid, name):
    """The oldest thread of that name: those that a library started in it inherit its name."""
    found = [int(t.name) for t in pathlib.Path(f"/proc/{pid}/task").iterdir()
             if (t / "comm").read_text().strip() == name]
    assert found, f"no thread is called {name}"
    return min(found)


class StoppedThread:
    """One thread stands still while the others of its process go on: as SIGSTOP would do it, if that
    did not stop the whole process. Only the test's own children, and from one thread of the test."""

    def __init__(self, tid):
        self.tid = tid

    def __enter__(self):
        self._ptrace(_SEIZE)
        self._ptrace(_INTERRUPT)
        os.waitpid(self.tid, _WALL)
        return self

    def __exit__(self, *_):
        self._ptrace(_DETACH)

    def _ptrace(self, request):
        if _libc.ptrace(request, self.tid, None, None) != 0:
            error = ctypes.get_errno()
            raise OSError(error, f"ptrace {request:#x} of {self.tid}: {os.strerror(error)}")

