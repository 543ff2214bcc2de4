"""A TCP proxy that can hold what the client sends: a packet on its way while its sender is paused.

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

    def close(self):
        self.closed = True
        self.release()
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
            threading.Thread(target=self._pump, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self._pump, args=(server, client, False), daemon=True).start()

    def _pump(self, source, sink, from_client):
        holding = False
        try:
            while data := source.recv(65536):
                if self.passing.is_set():
                    holding = False
                elif from_client and (holding or self.marker in data):
                    holding = True
                    self.caught.set()
                    self.passing.wait()
                sink.sendall(data)
        except OSError:
            pass
        for s in (source, sink):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
