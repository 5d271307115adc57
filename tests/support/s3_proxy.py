"""A proxy before an S3 API that passes requests on, and loses answers, cuts them off or gives other ones."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

CHANGING = frozenset({"PUT", "POST", "DELETE"})
Loses = Callable[[str, str], bool]
"""Whether the answer to a request is lost, by its method and its path with the query. The server has done it then."""
_NOT_PASSED_ON = frozenset({"transfer-encoding", "connection", "content-length"})


class Fault(Enum):
    """What is sent in the place of a whole answer."""

    LOST = "nothing"
    CUT_OFF = "half of the body that was announced"
    CUT_OFF_UNNOTICED = "half of the body, whose length was not announced"
    EMPTY = "no body, whose length was not announced"
    SLOW_DOWN = "503 SlowDown; the server has not been asked"
    NOT_DELETED = "200, with an error for one object; the server has not been asked"


PAGE_FAULTS = tuple(fault for fault in Fault if fault is not Fault.NOT_DELETED)
_INSTEAD = {
    Fault.SLOW_DOWN: (503, b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"),
    Fault.NOT_DELETED: (200, b"<DeleteResult><Error><Key>a</Key><Code>InternalError</Code></Error></DeleteResult>"),
}

_WITHOUT_LENGTH = frozenset({Fault.CUT_OFF_UNNOTICED, Fault.EMPTY})
Spoils = Callable[[str, str], Fault | None]
"""The fault of an answer, by the request's method and its path with the query."""


class LosingProxy:
    """``spoils`` and ``loses`` can be set at any time; ``lost`` counts the answers that did not arrive whole.

    ``page_size``: how many names a page of a listing has at most; the server's own limit is 1,000.
    """

    def __init__(self, endpoint: str) -> None:
        self.loses: Loses = lambda _method, _path: False
        self.spoils: Spoils = lambda _method, _path: None
        self.page_size: int | None = None
        self.lost = 0
        self.server = urlsplit(endpoint).netloc
        self._lock = threading.Lock()
        methods = {f"do_{method}": _Handler.pass_on for method in ("GET", "HEAD", *CHANGING)}
        handler = type("Handler", (_Handler,), {"proxy": self, **methods})
        self._listener = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._listener.server_port}"

    def close(self) -> None:
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
        self.loses = lambda _method, _path: False

    def spoil_later_pages(self, fault: Fault, *, times: int | None = None) -> None:
        """Each page of a listing but its first has a fault; with ``times`` only so many answers have it."""
        left = times

        def spoils(_method: str, path: str) -> Fault | None:
            nonlocal left
            if "continuation-token=" not in path or left == 0:
                return None
            left = None if left is None else left - 1
            return fault

        self.spoils = spoils

    def spoil_nothing(self) -> None:
        self.spoils = lambda _method, _path: None

    def fault(self, method: str, path: str) -> Fault | None:
        with self._lock:
            fault = Fault.LOST if self.loses(method, path) else self.spoils(method, path)
            self.lost += fault is not None
            return fault


class _Handler(BaseHTTPRequestHandler):
    proxy: LosingProxy
    protocol_version = "HTTP/1.1"

    def pass_on(self) -> None:
        """Answer as the server does, or with a fault."""
        fault = self.proxy.fault(self.command, self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if fault in _INSTEAD:
            status, instead = _INSTEAD[fault]
            self.answer(status, (), instead, str(len(instead)))
            return
        connection = HTTPConnection(self.proxy.server, timeout=60)
        headers = {name: value for name, value in self.headers.items() if name.lower() != "expect"}
        connection.request(self.command, self.paged(), body, headers)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        self.close_connection = fault is not None
        if fault is not Fault.LOST:
            self.pass_back(answer, data, fault)

    def paged(self) -> str:
        is_listing = "list-type=2" in self.path and self.proxy.page_size is not None
        return f"{self.path}&max-keys={self.proxy.page_size}" if is_listing else self.path

    def pass_back(self, answer: HTTPResponse, data: bytes, fault: Fault | None) -> None:
        known = answer.getheader("Content-Length") if self.command == "HEAD" else None
        length = None if fault in _WITHOUT_LENGTH else known or str(len(data))
        kept = len(data) if fault is None else 0 if fault is Fault.EMPTY else len(data) // 2
        self.answer(answer.status, answer.getheaders(), data[:kept], length)

    def answer(self, status: int, headers: Iterable[tuple[str, str]], data: bytes, length: str | None) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in _NOT_PASSED_ON:
                self.send_header(name, value)
        self.send_header(*(("Connection", "close") if length is None else ("Content-Length", length)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def losing_proxy(endpoint: str) -> Iterator[LosingProxy]:
    proxy = LosingProxy(endpoint)
    try:
        yield proxy
    finally:
        proxy.close()
