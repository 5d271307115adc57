"""A real Kafka broker on this machine, for tests and the demo: one node, KRaft, 127.0.0.1, in a folder of its own.

It outlives the process that started it unless it is stopped. It is ended by its process id, never by a name. The id is
recorded in the folder with the start time of its process, so that a process that got the same id later is never hit.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

from slackwater import connectors
from slackwater.connectors.machine import java_program
from slackwater.demo.broker_settings import (
    CLUSTER_ID,
    HEAP,
    HOST,
    data_folder,
    logging_file,
    server_file,
    write_settings,
)
from slackwater.demo.kafka_probe import answers
from slackwater.errors import EnvironmentMissing
from slackwater.lease.processes import UNKNOWN_START, is_alive, start_time

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
    """The broker's port and one for its controller. Both sockets are held together, so that they differ."""
    with socket.socket() as broker, socket.socket() as controller:
        # A port whose last connections are still fading is free for Kafka, so it is free here.
        broker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            broker.bind((HOST, port or 0))
        except OSError as error:
            raise EnvironmentMissing(
                "port-taken",
                "Another program listens on the broker's port",
                where=f"{HOST}:{port}",
                hint="name another",
            ) from error
        controller.bind((HOST, 0))
        return broker.getsockname()[1], controller.getsockname()[1]


def _java(folder: Path, *arguments: str) -> list[str]:
    jars = connectors.resolve(["kafka-broker"], "any", _say)
    logging = f"-Dlog4j2.configurationFile={logging_file(folder).as_uri()}"
    return [str(java_program()), *HEAP, logging, "-cp", os.pathsep.join(map(str, jars)), *arguments]


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
