"""A proxy before a Kafka broker that stops at a chosen request or its reply: it holds it, or breaks off there.

The protocol's frames: a size, then for a request its api key, version and correlation id, for a reply that id
(https://kafka.apache.org/protocol). Replies name the broker's port; the proxy puts its own in its place.
"""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal

HOST = "127.0.0.1"
PRODUCE, INIT_PRODUCER_ID, END_TXN = 0, 22, 26
What = Literal["request", "reply"]


class Stop:
    """Where to stop, once: at the next request of this kind, or at its reply. ``reached`` is set when it is there."""

    def __init__(self, api: int, what: What, *, hold: bool) -> None:
        self.reached = threading.Event()
        self.what = what
        self._api = api
        self._lock = threading.Lock()
        self._taken = False
        self._passes = False
        self._continued = threading.Event()
        if not hold:
            self._continued.set()

    def pass_on(self) -> None:
        self._passes = True
        self._continued.set()

    def break_off(self) -> None:
        self._continued.set()

    def takes(self, api: int) -> bool:
        """Whether this is the request, which only the first one is."""
        with self._lock:
            taken = api == self._api and not self._taken
            self._taken = self._taken or taken
            return taken

    def wait(self) -> bool:
        """Wait until it continues; whether what is held is sent."""
        self.reached.set()
        self._continued.wait()
        return self._passes


class KafkaProxy:
    """Passes frames on. While ``down`` it closes every connection."""

    def __init__(self, broker_port: int) -> None:
        self._broker_port = broker_port
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self._stop: Stop | None = None
        self._down = False
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def bootstrap_servers(self) -> str:
        return f"{HOST}:{self.port}"

    def stop_at(self, api: int, what: What, *, hold: bool = False) -> Stop:
        """Stop at the next request of this kind; without ``hold`` the connection is broken off there."""
        self._stop = Stop(api, what, hold=hold)
        return self._stop

    def set_down(self, *, down: bool) -> None:
        """Be unreachable from now on, or reachable again."""
        with self._lock:
            self._down = down
            for connection in self._connections if down else ():
                _shut(connection)

    def close(self) -> None:
        self.set_down(down=True)
        _shut(self._listener)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _register(self, *connections: socket.socket) -> bool:
        """Add connections that ``set_down`` breaks off; whether there may be any now."""
        with self._lock:
            if not self._down:
                self._connections.update(connections)
            return not self._down

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(ConnectionRefusedError), socket.create_connection((HOST, self._broker_port)) as server:
            # Asked after both are open: one that was accepted before it went down would stay alive.
            if self._register(client, server):
                self._pass_on(client, server)

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        stopped: dict[int, Stop] = {}
        try:
            replies = threading.Thread(target=self._replies, args=(server, client, stopped), daemon=True)
            replies.start()
            with suppress(OSError):
                for frame in _frames(client):
                    api, _, correlation = struct.unpack(">hhi", frame[:8])
                    stop = self._stop
                    if stop is not None and stop.takes(api):
                        if stop.what == "reply":
                            stopped[correlation] = stop
                        elif not stop.wait():
                            break
                    _send(server, frame)
            _shut(server)
            _shut(client)
            replies.join()
        finally:
            with self._lock:
                self._connections -= {client, server}

    def _replies(self, server: socket.socket, client: socket.socket, stopped: dict[int, Stop]) -> None:
        own, others = struct.pack(">i", self.port), struct.pack(">i", self._broker_port)
        with suppress(OSError):
            for frame in _frames(server):
                (correlation,) = struct.unpack(">i", frame[:4])
                if correlation in stopped and not stopped[correlation].wait():
                    break
                _send(client, frame.replace(HOST.encode() + others, HOST.encode() + own))
        _shut(client)
        _shut(server)


@contextmanager
def kafka_proxy(broker_port: int) -> Iterator[KafkaProxy]:
    proxy = KafkaProxy(broker_port)
    try:
        yield proxy
    finally:
        proxy.close()


def _frames(source: socket.socket) -> Iterator[bytes]:
    while size := _received(source, 4):
        frame = _received(source, struct.unpack(">i", size)[0])
        if not frame:
            return
        yield frame


def _received(source: socket.socket, size: int) -> bytes:
    """Exactly so many bytes, none at the end of the connection."""
    parts = bytearray()
    while len(parts) < size:
        part = source.recv(size - len(parts))
        if not part:
            return b""
        parts += part
    return bytes(parts)


def _send(target: socket.socket, frame: bytes) -> None:
    target.sendall(struct.pack(">i", len(frame)) + frame)


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
