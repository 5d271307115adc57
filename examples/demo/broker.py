"""A real Kafka broker on this machine, for tests and the demo: one node, KRaft, 127.0.0.1, in a folder of its own.

It outlives the process that started it unless it is stopped. It is ended by its process id, never by a name. The id is
recorded in the folder with the start time of its process, so that a process that got the same id later is never hit.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

from examples.demo.ports import HOST, free_ports
from slackwater import connectors
from slackwater.audit.processes import JVM_OPTIONS
from slackwater.connectors.machine import java_program
from slackwater.core.errors import EnvironmentMissing, NotFound, SlackwaterError
from slackwater.ledger.lease import UNKNOWN_START, is_alive, start_time

CLUSTER_ID = "c2xhY2t3YXRlci1kZW1vLQ"
"""A fixed one: each folder holds one cluster, and nothing joins it."""

HEAP = ("-Xmx512m", "-Xms128m")

# One of everything, so that internal topics come up with a single node; short delays, because consumers come and go and
# tests wait for retention. Topics are not created automatically: a misspelt name must not create one.
_SERVER = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller_port}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller_port}
advertised.listeners=PLAINTEXT://{host}:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.retention.check.interval.ms=1000
log.segment.delete.delay.ms=0
auto.create.topics.enable=false
"""

_LOGGING = """status=error
appender.stdout.type=Console
appender.stdout.name=stdout
appender.stdout.layout.type=PatternLayout
appender.stdout.layout.pattern=%d %p %m (%c)%n
rootLogger.level=warn
rootLogger.appenderRef.stdout.ref=stdout
"""


def server_file(folder: Path) -> Path:
    return folder / "server.properties"


def logging_file(folder: Path) -> Path:
    return folder / "log4j2.properties"


def data_folder(folder: Path) -> Path:
    return folder / "data"


def write_settings(folder: Path, port: int, controller_port: int, more: Mapping[str, str]) -> None:
    """Writes the broker's own two files into its folder; ``more`` adds to the settings or replaces them."""
    text = _SERVER.format(host=HOST, port=port, controller_port=controller_port, data=data_folder(folder))
    # Of two lines for one setting Java takes the last.
    server_file(folder).write_text(text + "".join(f"{name}={value}\n" for name, value in more.items()))
    logging_file(folder).write_text(_LOGGING)


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


START_S_MAX = 60
STOP_S_MAX = 30
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
_POLL_S = 0.1
_CHILDREN: dict[int, subprocess.Popen[bytes]] = {}
"""Brokers that this process started, by process id: only their parent can take them off the process table."""


@dataclass(frozen=True, slots=True)
class BrokerProcess:
    """The content of ``broker.json``: the process, when it started (clock ticks since boot), and its port."""

    pid: int
    started: int
    port: int

    def is_alive(self) -> bool:
        return is_alive(self.pid, self.started)


class Broker:
    """A broker in a folder. ``with Broker.start(folder) as broker: ... broker.bootstrap_servers``."""

    def __init__(self, folder: Path, process: BrokerProcess) -> None:
        self._folder = folder
        self._process = process

    @classmethod
    def start(cls, folder: Path, port: int | None = None, settings: Mapping[str, str] = NO_SETTINGS) -> Broker:
        """Starts a broker and waits until it answers; the one already running in this folder is returned as it is.

        ``settings`` are those of ``server.properties``; they add to ours or replace them.

        A free port is taken where none is given; a folder that was used before keeps its topics. Raises
        EnvironmentMissing where Java or the jars are missing, or the broker does not come up.
        """
        folder = folder.absolute()
        running = cls.find(folder)
        if running:
            return running
        folder.mkdir(parents=True, exist_ok=True)
        port, controller_port = _ports(port)
        write_settings(folder, port, controller_port, settings)
        if not (data_folder(folder) / "meta.properties").exists():
            _format_storage(folder)
        child = _launch(folder)
        process = BrokerProcess(child.pid, start_time(child.pid) or UNKNOWN_START, port)
        _write_process_file(folder, process)
        _CHILDREN[child.pid] = child
        broker = cls(folder, process)
        broker._wait_until_it_answers(child)
        return broker

    @classmethod
    def find(cls, folder: Path) -> Broker | None:
        """The broker that runs in this folder, if one does."""
        folder = folder.absolute()
        try:
            process = BrokerProcess(**json.loads(_process_file(folder).read_text()))
        except FileNotFoundError:
            return None
        return cls(folder, process) if process.is_alive() else None

    @property
    def bootstrap_servers(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def port(self) -> int:
        return self._process.port

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        """Asks the process to end and, when it has not after 30 s, ends it. Stopping twice is harmless."""
        for signal_number in (signal.SIGTERM, signal.SIGKILL):
            self._signal(signal_number)
            if self._is_gone_within(STOP_S_MAX):
                break
        _process_file(self._folder).unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _signal(self, signal_number: signal.Signals) -> None:
        if not self._process.is_alive():
            return
        try:
            os.kill(self.pid, signal_number)
        except ProcessLookupError:
            return  # it ended between the check and the signal

    def _is_gone_within(self, wait_s_max: float) -> bool:
        deadline = time.monotonic() + wait_s_max
        while self._process.is_alive():
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        child = _CHILDREN.pop(self.pid, None)
        if child:
            child.wait()
        return True

    def _wait_until_it_answers(self, child: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_S_MAX
        try:
            while not answers(HOST, self.port):
                if child.poll() is not None or time.monotonic() > deadline:
                    raise _not_started("The Kafka broker did not come up", _log_file(self._folder))
                time.sleep(_POLL_S)
        except (EnvironmentMissing, KeyboardInterrupt):
            self.stop()
            raise


def _ports(port: int | None) -> tuple[int, int]:
    """The broker's port and another one for its controller."""
    if port is None:
        broker, controller = free_ports(2)
        return broker, controller
    with socket.socket() as probe:
        # A port whose last connections are still fading is free for Kafka, so it is free here.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise EnvironmentMissing(
                "port-taken",
                "Another program listens on the broker's port",
                where=f"{HOST}:{port}",
                hint="name another",
            ) from error
        return port, free_ports(1)[0]


def _java(folder: Path, *arguments: str) -> list[str]:
    jars = connectors.resolve(["kafka-broker"], "any", _say)
    logging = f"-Dlog4j2.configurationFile={logging_file(folder).as_uri()}"
    return [
        str(java_program()),
        *HEAP,
        *JVM_OPTIONS.split(),
        logging,
        "-cp",
        os.pathsep.join(map(str, jars)),
        *arguments,
    ]


def _say(message: str) -> None:
    sys.stderr.write(f"{message}\n")


def _format_storage(folder: Path) -> None:
    storage_tool = ("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(server_file(folder)))
    with _log_file(folder).open("ab") as log:
        done = subprocess.run(
            _java(folder, *storage_tool), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, check=False
        )
    if done.returncode:
        raise _not_started("The Kafka broker's folder could not be formatted", _log_file(folder))


def _launch(folder: Path) -> subprocess.Popen[bytes]:
    command = _java(folder, "kafka.Kafka", str(server_file(folder)))
    with _log_file(folder).open("ab") as log:
        # A session of its own: Ctrl-C at the terminal is for the program that uses the broker.
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=folder, start_new_session=True
        )


def _not_started(message: str, log: Path) -> EnvironmentMissing:
    lines = log.read_text(errors="replace").strip().splitlines()
    return EnvironmentMissing("broker-not-started", message, where=str(log), found=lines[-1] if lines else None)


def _process_file(folder: Path) -> Path:
    return folder / "broker.json"


def _log_file(folder: Path) -> Path:
    return folder / "broker.log"


def _write_process_file(folder: Path, process: BrokerProcess) -> None:
    part = folder / "broker.json.part"
    part.write_text(json.dumps(asdict(process)))
    part.replace(_process_file(folder))


def main(arguments: Sequence[str]) -> int:
    """Prints the bootstrap servers on stdout for ``up`` and ``status``; exit codes are those of the errors."""
    parser = argparse.ArgumentParser(prog="scripts/kafka", description="A Kafka broker of one's own on 127.0.0.1.")
    parser.add_argument("verb", choices=("up", "down", "status"))
    parser.add_argument("--folder", type=Path, default=Path(".slackwater", "kafka"), help="default: %(default)s")
    parser.add_argument("--port", type=int, help="default: a free one")
    options = parser.parse_args(arguments)
    try:
        if options.verb == "down":
            _stop(options.folder)
        else:
            broker = Broker.start(options.folder, options.port) if options.verb == "up" else _running(options.folder)
            print(broker.bootstrap_servers)  # the answer of this command
    except SlackwaterError as error:
        hint = f"\nhint: {error.hint}" if error.hint else ""
        print(f"error: {error}{hint}", file=sys.stderr)  # a command of its own
        return error.exit_code
    return 0


def _stop(folder: Path) -> None:
    broker = Broker.find(folder)
    if broker:
        broker.stop()


def _running(folder: Path) -> Broker:
    broker = Broker.find(folder)
    if broker is None:
        raise NotFound("broker-not-running", "No broker runs in this folder", where=str(folder.absolute()))
    return broker


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
