"""A network between a client and a server of the loopback that can be cut: nothing comes through, and nobody is told."""

import contextlib
import selectors
import socket
import threading

__all__ = ["Network"]


class Network:
    """Forwards connections to a port. While it is cut, connections stay open, or are taken, and what is sent is lost."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._asks = self._answers = True
        self._ways: dict[socket.socket, tuple[socket.socket, bool]] = {}
        self._selector = selectors.DefaultSelector()
        self._door = socket.create_server(("127.0.0.1", 0))
        self._selector.register(self._door, selectors.EVENT_READ)
        self.port = self._door.getsockname()[1]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._forward, daemon=True)
        self._thread.start()

    def cut(self, *, asks: bool = True, answers: bool = True) -> None:
        """Loses what clients ask, what the server answers, or both."""
        self._asks, self._answers = not asks, not answers

    def mend(self) -> None:
        """Forwards again; connections during which something was lost end."""
        self._asks = self._answers = True
        for one in list(self._ways):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        """Ends all connections."""
        self._ended.set()
        self._thread.join(10)
        for one in (*self._ways, self._door):
            one.close()

    def _forward(self) -> None:
        while not self._ended.is_set():
            for key, _ in self._selector.select(0.1):
                if key.fileobj is self._door:
                    self._take()
                elif key.fileobj in self._ways:
                    self._pass(key.fileobj)

    def _take(self) -> None:
        client, _ = self._door.accept()
        try:
            server = socket.create_connection(("127.0.0.1", self._target), timeout=5)
        except OSError:
            client.close()
            return
        for one, other, asks in ((client, server, True), (server, client, False)):
            self._ways[one] = other, asks
            self._selector.register(one, selectors.EVENT_READ)

    def _pass(self, one: socket.socket) -> None:
        other, asks = self._ways[one]
        try:
            some = one.recv(65_536)
            if some and (self._asks if asks else self._answers):
                other.sendall(some)
        except OSError:
            some = b""
        if not some:
            for end in (one, other):
                self._selector.unregister(end)
                del self._ways[end]
                end.close()
