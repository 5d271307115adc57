"""What Java writes to stderr reaches the user, except one warning that does not concern the user's pipeline."""

import logging
import socket
import struct
import subprocess
import sys
import threading

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import ERROR

from slackwater.core.masking import KNOWN_SECRETS
from slackwater.runtime.session import session
from slackwater.runtime.session.launch import INCUBATOR_WARNING, relayed_stderr, whole_lines
from tests.runtime.project import Project

PIPELINE = """
import slackwater as sw

pipeline = sw.Pipeline("work")

@pipeline.stream(sink=sw.sinks.files("json", "out"))
def copied(spark):
    spark.sparkContext._jvm.System.err.println("WARNING: from Java")
    return spark.readStream.schema("id LONG").json("in")
"""


@pytest.mark.parametrize(
    ("output", "shown", "kept"),
    [
        (INCUBATOR_WARNING, b"", b""),
        (b"before\n" + INCUBATOR_WARNING + b"after\n", b"before\nafter\n", b""),
        (b"half a line", b"", b"half a line"),
        (b"line\nWARNING: Us", b"line\n", b"WARNING: Us"),
        (b"x" * 70_000, b"x" * 70_000, b""),
    ],
)
def test_whole_lines_are_shown_but_for_the_warning(output: bytes, shown: bytes, kept: bytes) -> None:
    assert whole_lines(output) == (shown, kept)


def _relayed(pieces: list[str], capfd: pytest.CaptureFixture[str]) -> str:
    """The lines that are shown of a process that writes these pieces."""
    program = f"import os, time\nfor piece in {pieces}:\n    os.write(2, piece.encode()); time.sleep(0.05)"
    with relayed_stderr() as stderr:
        process = subprocess.Popen([sys.executable, "-c", program], stderr=stderr)
    process.wait(30)
    # Read once, when the relay has ended: pytest loses what is written while it reads.
    for relay in [thread for thread in threading.enumerate() if thread.name == "jvm-stderr"]:
        relay.join(10)
    return capfd.readouterr().err.replace("\r\n", "\n")


def test_a_process_that_writes_in_pieces_loses_only_the_warning(capfd: pytest.CaptureFixture[str]) -> None:
    pieces = ["first\n", "WARNING: Using incubator ", "modules: jdk.incubator.vector\n", "WARN", "ING: real\n", "tail"]
    assert _relayed(pieces, capfd) == "first\nWARNING: real\ntail"


def test_secrets_are_masked_and_controls_escaped(capfd: pytest.CaptureFixture[str]) -> None:
    KNOWN_SECRETS.remember("jdbc.password", "kept-to-itself")
    pieces = [
        "jdbc: kept-to",
        "-itself\n",
        "password=other",
        "-words\n",
        "a \u202egnp.exe \x1b[2J \u009b2J\r\n",
        "\u2066",
    ]
    shown = "jdbc: ***\npassword=***\na \\u202egnp.exe \\x1b[2J \\x9b2J\n\\u2066"
    assert _relayed(pieces, capfd) == shown


@pytest.mark.spark
def test_a_run_says_that_it_starts_spark_and_shows_java_s_own_lines(project: Project) -> None:
    project.write(PIPELINE)
    project.add_files(1)
    command = project.start("run", "pipeline.py", "--until-caught-up")
    assert command.end() == 0, command.log
    assert 0 <= command.log.find("starting Spark") < command.log.find("WARNING: from Java"), command.log
    assert "incubator" not in command.log


# What py4j logs when its JVM dies during a call: the run reports it in one sentence, not with a traceback.


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
