"""A TCP proxy that makes trouble on one connection path: it can hold what a client sends (a packet on
its way while its sender is paused), eat an answer, and become a black hole.

Real daemons connect through it; tests decide when the bytes go on. Only loopback addresses.
"""

import socket
import threading


class Proxy:
    def __init__(self, port):
        self.target = ("127.0.0.1", port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.passing = threading.Event()  # cleared: the marked bytes and all after them wait here
        self.passing.set()
        self.marker = b""
        self.caught = threading.Event()  # set: something is being held
        self.swallowing = b""
        self.swallowed = threading.Event()  # set: an answer has been eaten
        self.open = threading.Event()  # cleared: a black hole
        self.open.set()
        self.closed = False
        self.sockets = []
        threading.Thread(target=self._accept, daemon=True).start()

    def hold(self, marker):
        """Hold the next packet of a client that has `marker` in it, and all that follow; `caught`
        tells when there is one. Until then everything passes."""
        self.marker = marker
        self.caught.clear()
        self.passing.clear()

    def release(self):
        self.passing.set()

    def swallow(self, marker):
        """Let the next packet of a client that has `marker` in it reach the server, throw the answer
        away and cut that connection; `swallowed` tells when."""
        self.swallowed.clear()
        self.swallowing = marker

    def black_hole(self):
        """From now on nothing passes in either direction; connections stay open, new ones too."""
        self.open.clear()

    def heal(self):
        """End a black hole: what was on its way goes on."""
        self.open.set()

    def close(self):
        self.closed = True
        self.release()
        self.heal()
        for s in [self.listener, *self.sockets]:
            s.close()

    def _accept(self):
        while not self.closed:
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection(self.target)
            except OSError:
                continue
            self.sockets += [client, server]
            eaten = threading.Event()  # of this connection: its next answer is for nobody
            threading.Thread(target=self._pump, args=(client, server, True, eaten), daemon=True).start()
            threading.Thread(target=self._pump, args=(server, client, False, eaten), daemon=True).start()

    def _pump(self, source, sink, from_client, eaten):
        holding = False
        try:
            while data := source.recv(65536):
                self.open.wait()
                if self.passing.is_set():
                    holding = False
                elif from_client and (holding or self.marker in data):
                    holding = True
                    self.caught.set()
                    self.passing.wait()
                if from_client and self.swallowing and self.swallowing in data:
                    self.swallowing = b""
                    eaten.set()
                elif not from_client and eaten.is_set():
                    self.swallowed.set()
                    break
                sink.sendall(data)
        except OSError:
            pass
        for s in (source, sink):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
