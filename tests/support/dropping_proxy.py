"""A proxy before a PostgreSQL server that breaks off a connection at its COMMIT, before or after the server has it."""

from __future__ import annotations

import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

SOCKET = ".s.PGSQL.5432"
COMMIT = b"COMMIT\0"
Drop = Literal["request", "reply"]


class DroppingProxy:
    """Passes bytes on, until ``drop_next`` names what of the next COMMIT is lost; then once it breaks off."""

    def __init__(self, folder: Path, server: Path) -> None:
        self.folder = folder
        self.drop_next: Drop | None = None
        self.dropped = 0
        self._lock = threading.Lock()
        self._server = server
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / SOCKET))
        self._listener.listen()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        """Stop accepting and wait for the connections to end."""
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(client,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def _drop_of(self, data: bytes) -> Drop | None:
        """What of these bytes is lost. Of COMMITs on two connections at once it is one."""
        if COMMIT not in data:
            return None
        with self._lock:
            dropped, self.drop_next = self.drop_next, None
            self.dropped += dropped is not None
            return dropped

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(str(self._server / SOCKET))
            replies = threading.Thread(target=_pass_on, args=(server, client), daemon=True)
            replies.start()
            while data := _received(client):
                if dropped := self._drop_of(data):
                    if dropped == "reply":
                        # The client hears nothing more; the end of the connection comes once the server has committed.
                        client.shutdown(socket.SHUT_RDWR)
                        server.sendall(data)
                        server.shutdown(socket.SHUT_WR)
                    break
                server.sendall(data)
            with suppress(OSError):
                server.shutdown(socket.SHUT_WR)
            replies.join(10)


@contextmanager
def dropping_proxy(server: Path) -> Iterator[DroppingProxy]:
    """A proxy before the server whose socket is in this folder. Below /tmp: paths of sockets are short."""
    with tempfile.TemporaryDirectory(prefix="slackwater-proxy-") as folder:
        proxy = DroppingProxy(Path(folder), server)
        try:
            yield proxy
        finally:
            proxy.close()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    while data := _received(source):
        with suppress(OSError):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


def _received(source: socket.socket) -> bytes:
    with suppress(OSError):
        return source.recv(65536)
    return b""
