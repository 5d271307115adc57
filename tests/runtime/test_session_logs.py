"""What py4j logs when its JVM dies during a call: the run reports it in one sentence, not with a traceback."""

from __future__ import annotations

import logging
import socket
import struct
import threading

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import ERROR

from slackwater.runtime.session import session


@pytest.fixture
def dying_jvm() -> int:
    """The port of something that takes a command and resets the connection, as the system does for a killed process."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        with listener, connection:
            connection.recv(1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    threading.Thread(target=serve, daemon=True).start()
    port: int = listener.getsockname()[1]
    return port


def test_a_jvm_that_dies_in_a_call_is_not_logged(dying_jvm: int, caplog: pytest.LogCaptureFixture) -> None:
    session._hush_py4j()

    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=dying_jvm))
    answer = gateway._gateway_client.send_command("c\no0\nversion\ne\n")

    assert answer == ERROR
    assert caplog.records == []
    logging.getLogger().warning("another's line")
    assert [record.message for record in caplog.records] == ["another's line"]
