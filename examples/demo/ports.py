"""Ports for servers that are started in a process of their own, and so cannot be given a socket."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack

HOST = "127.0.0.1"
_PORTS = range(20_000, 32_768)
"""Below those that Linux gives to clients: until the server listens, one of these could take the port."""


def free_ports(count: int) -> list[int]:
    """Different ports of this machine that nothing listens on now."""
    found: list[int] = []
    with ExitStack() as held:
        for port in random.sample(_PORTS, len(_PORTS)):
            if len(found) == count:
                break
            probe = held.enter_context(socket.socket())
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            found.append(port)
    return found
