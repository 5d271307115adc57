"""A broker with a second listener, at which a user logs in."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from examples.demo.broker import Broker

USER, PASSWORD = "limited", "open-s@same"


class GuardedBroker(NamedTuple):
    servers: str
    guarded: str


@contextmanager
def guarded_broker(folder: Path) -> Iterator[GuardedBroker]:
    """The user may do only what ACLs allow; whoever does not log in may do everything."""
    ports = _free_ports("PLAINTEXT", "SASL_PLAINTEXT", "CONTROLLER")
    listeners = [f"{name}://127.0.0.1:{port}" for name, port in ports.items()]
    settings = {
        "listeners": ",".join(listeners),
        "advertised.listeners": ",".join(listeners[:2]),
        "controller.quorum.voters": f"1@127.0.0.1:{ports['CONTROLLER']}",
        "listener.security.protocol.map": ",".join(f"{name}:{name}" for name in ("PLAINTEXT", "SASL_PLAINTEXT"))
        + ",CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with Broker.start(folder, ports["PLAINTEXT"], settings) as running:
        yield GuardedBroker(running.bootstrap_servers, f"127.0.0.1:{ports['SASL_PLAINTEXT']}")


def _free_ports(*names: str) -> dict[str, int]:
    sockets = {name: socket.socket() for name in names}
    try:
        for one in sockets.values():
            one.bind(("127.0.0.1", 0))
        return {name: one.getsockname()[1] for name, one in sockets.items()}
    finally:
        for one in sockets.values():
            one.close()
