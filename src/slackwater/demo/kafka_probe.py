"""Does a Kafka broker answer? Asked in Kafka's own protocol over a plain socket, without a client library."""

from __future__ import annotations

import socket
import struct

_ANSWER_S_MAX = 2.0
_API_VERSIONS = 18
_CORRELATION = 1
# Request header 1: api key, api version, correlation id, client id (-1: none). The body of ApiVersions 0 is empty, and
# every broker supports that version. KRaft brokers serve requests only once they have joined the cluster, so an answer
# means ready; the port alone is open seconds earlier.
_REQUEST = struct.pack(">hhih", _API_VERSIONS, 0, _CORRELATION, -1)


def answers(host: str, port: int) -> bool:
    """Whether a broker at this address answers a request without an error, within two seconds."""
    try:
        with socket.create_connection((host, port), timeout=_ANSWER_S_MAX) as connection:
            connection.sendall(struct.pack(">i", len(_REQUEST)) + _REQUEST)
            # Size, correlation id and error code.
            answer = connection.recv(10, socket.MSG_WAITALL)
    except OSError:
        return False
    expected = 10
    return len(answer) == expected and struct.unpack(">ih", answer[4:]) == (_CORRELATION, 0)
