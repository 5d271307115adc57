"""A proxy before an S3 API that passes requests on, and breaks off a connection in place of an answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

CHANGING = frozenset({"PUT", "POST", "DELETE"})
Loses = Callable[[str, str], bool]
"""Whether the answer to a request is lost, by its method and its path with the query. The server has done it then."""
_NOT_PASSED_ON = frozenset({"transfer-encoding", "connection", "content-length"})


class LosingProxy:
    """``loses`` can be set at any time; ``lost`` counts the answers that were."""

    def __init__(self, endpoint: str) -> None:
        self.loses: Loses = lambda _method, _path: False
        self.lost = 0
        self._server = urlsplit(endpoint).netloc
        self._lock = threading.Lock()
        self._listener = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def endpoint(self) -> str:
        """The URL to use in place of the server's."""
        return f"http://127.0.0.1:{self._listener.server_port}"

    def close(self) -> None:
        """Stop, and wait for the requests that are running."""
        self._listener.shutdown()
        self._listener.server_close()
        self._thread.join()

    def lose_first_answers(self) -> None:
        """Of each request that changes something the first answer is lost; a client that sends it again gets one."""
        seen: set[tuple[str, str]] = set()

        def is_first(method: str, path: str) -> bool:
            first = (method, path) not in seen
            seen.add((method, path))
            return method in CHANGING and first

        self.loses = is_first

    def lose_from(self, number: int) -> None:
        """From the ``number``-th request on that changes something (from 1), no such request gets an answer."""
        count = 0

        def is_late(method: str, _path: str) -> bool:
            nonlocal count
            count += method in CHANGING
            return method in CHANGING and count >= number

        self.loses = is_late

    def lose_none(self) -> None:
        """Every request gets its answer."""
        self.loses = lambda _method, _path: False

    def _is_lost(self, method: str, path: str) -> bool:
        with self._lock:
            lost = self.loses(method, path)
            self.lost += lost
            return lost

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def pass_on(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                connection = HTTPConnection(proxy._server, timeout=60)
                headers = {name: value for name, value in self.headers.items() if name.lower() != "expect"}
                connection.request(self.command, self.path, body, headers)
                answer = connection.getresponse()
                data = answer.read()
                connection.close()
                if proxy._is_lost(self.command, self.path):
                    self.close_connection = True
                    return
                self.send_response_only(answer.status, answer.reason)
                for name, value in answer.getheaders():
                    if name.lower() not in _NOT_PASSED_ON:
                        self.send_header(name, value)
                length = answer.getheader("Content-Length") if self.command == "HEAD" else None
                self.send_header("Content-Length", length or str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Nothing."""

        for method in ("GET", "HEAD", "PUT", "POST", "DELETE"):
            setattr(Handler, f"do_{method}", Handler.pass_on)
        return Handler


@contextmanager
def losing_proxy(endpoint: str) -> Iterator[LosingProxy]:
    """A proxy before the server at ``endpoint``."""
    proxy = LosingProxy(endpoint)
    try:
        yield proxy
    finally:
        proxy.close()
