"""A real HDFS on this machine: the fixtures ``hdfs_server`` and ``hdfs_location``.

NameNode and DataNode run in JVMs of their own, on free ports of 127.0.0.1, and are ended by their process ids. Hadoop's
classes are those in Spark's ``jars``; the connector group ``hdfs-server`` has the servers.
"""

import getpass
import json
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self
from urllib.error import URLError
from urllib.request import urlopen
from xml.sax.saxutils import escape

import pytest

from examples.demo.ports import HOST, free_ports
from slackwater import connectors
from slackwater.audit.processes import JVM_OPTIONS
from slackwater.connectors.machine import java_program, spark_jars_folder
from slackwater.storage.hdfs_filesystem import HdfsFileSystem

USER = getpass.getuser()
"""Owns the root folder, as who started the NameNode."""
START_S_MAX = 120
STOP_S_MAX = 30
_POLL_S = 0.1
_ANSWER_S_MAX = 5
_SERVERS = "org.apache.hadoop.hdfs.server"
_NAMENODE = f"{_SERVERS}.namenode.NameNode"
_DATANODE = f"{_SERVERS}.datanode.DataNode"
_LOGGING = """status=error
appender.stdout.type=Console
appender.stdout.name=stdout
appender.stdout.layout.type=PatternLayout
appender.stdout.layout.pattern=%d %p %m (%c)%n
rootLogger.level=warn
rootLogger.appenderRef.stdout.ref=stdout
"""


class HdfsServer:
    """One NameNode and one DataNode in a folder: ``with HdfsServer(folder) as hdfs: ... hdfs.uri``.

    ``configuration`` is the folder for ``HADOOP_CONF_DIR``; ``settings`` are more of its ``core-site.xml``.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self._settings = dict(settings or {})
        self.configuration = folder / "conf"
        self._rpc_port, self._http_port = free_ports(2)
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._seen = ""

    @property
    def uri(self) -> str:
        return f"hdfs://{HOST}:{self._rpc_port}"

    @property
    def http_address(self) -> str:
        return f"{HOST}:{self._http_port}"

    def environment(self) -> dict[str, str]:
        """What a process needs to use this HDFS as its default file system."""
        return {"HADOOP_CONF_DIR": str(self.configuration)}

    def __enter__(self) -> Self:
        self._write_configuration()
        self._format()
        try:
            self._start(_NAMENODE)
            # It waits in safe mode for the blocks that it knows of.
            self._wait(_NAMENODE, self._namenode_is_ready)
            self.start_datanode()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in tuple(self._running):
            self._stop(name, signal.SIGTERM)

    def start_datanode(self) -> None:
        """Start the DataNode, and wait until files can be written to it."""
        self._start(_DATANODE)
        self._wait(_DATANODE, self._datanode_is_ready)

    def kill_datanode(self) -> None:
        self._stop(_DATANODE, signal.SIGKILL)

    def set_safe_mode(self, *, on: bool) -> None:
        """Put the NameNode into safe mode, where it refuses all changes, or take it out."""
        mode = "enter" if on else "leave"
        command = self._java("org.apache.hadoop.hdfs.tools.DFSAdmin", "-safemode", mode)
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True, env=self._process_env())

    def _namenode_is_ready(self) -> bool:
        return self._state("NameNode,name=NameNodeInfo").get("Safemode") == ""

    def _datanode_is_ready(self) -> bool:
        """Whether a file can be written: a restarted DataNode is listed as alive before it takes blocks."""
        nodes = json.loads(self._state("NameNode,name=NameNodeInfo").get("LiveNodes", "{}"))
        if not any(node["lastContact"] <= 1 for node in nodes.values()):
            self._seen = f"live nodes: {nodes}"
            return False
        try:
            filesystem = self.filesystem()
            filesystem.pipe_file("/.probe", b"1")
            filesystem.rm_file("/.probe")
        except OSError as error:
            self._seen = str(error)
            return False
        return True

    def filesystem(self) -> HdfsFileSystem:
        """WebHDFS as the owner of the root folder."""
        return HdfsFileSystem(((HOST, self._http_port),), user=USER)

    def _state(self, bean: str) -> dict[str, Any]:
        try:
            with urlopen(f"http://{self.http_address}/jmx?qry=Hadoop:service={bean}", timeout=_ANSWER_S_MAX) as answer:
                beans = json.load(answer)["beans"]
        except (URLError, OSError, ValueError):
            return {}
        return dict(beans[0]) if beans else {}

    def _write_configuration(self) -> None:
        self.configuration.mkdir(parents=True)
        data = self.folder / "data"
        core = {"fs.defaultFS": self.uri, "hadoop.tmp.dir": str(data), **self._settings}
        _write_xml(self.configuration / "core-site.xml", core)
        addresses = {
            "dfs.namenode.rpc-bind-host": HOST,
            "dfs.namenode.http-address": self.http_address,
            "dfs.datanode.hostname": HOST,
            "dfs.datanode.address": f"{HOST}:0",
            "dfs.datanode.ipc.address": f"{HOST}:0",
            "dfs.datanode.http.address": f"{HOST}:0",
        }
        small = {
            "dfs.replication": "1",
            "dfs.heartbeat.interval": "1",
            "dfs.namenode.safemode.extension": "0",
            "dfs.namenode.edits.noeditlogchannelflush": "false",
        }
        _write_xml(self.configuration / "hdfs-site.xml", {**addresses, **small})
        (self.folder / "log4j2.properties").write_text(_LOGGING)

    def _format(self) -> None:
        with self._log(_NAMENODE).open("ab") as log:
            command = self._java(_NAMENODE, "-format", "-nonInteractive")
            subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=True, env=self._process_env()
            )

    def _java(self, *arguments: str) -> list[str]:
        jars = [*connectors.resolve(["hdfs-server"], "any"), *_spark_jars()]
        path = [str(self.configuration), *map(str, jars)]
        logging = f"-Dlog4j2.configurationFile={(self.folder / 'log4j2.properties').as_uri()}"
        options = ["-Xmx384m", *JVM_OPTIONS.split(), logging, "-Djava.net.preferIPv4Stack=true"]
        return [str(java_program()), *options, "-cp", os.pathsep.join(path), *arguments]

    def _process_env(self) -> dict[str, str]:
        return {**os.environ, "HADOOP_USER_NAME": USER}

    def _log(self, name: str) -> Path:
        return self.folder / f"{name.rpartition('.')[2]}.log"

    def _start(self, name: str) -> None:
        with self._log(name).open("ab") as log:
            self._running[name] = subprocess.Popen(
                self._java(name),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=self._process_env(),
                start_new_session=True,
            )

    def _stop(self, name: str, signal_number: signal.Signals) -> None:
        process = self._running.pop(name, None)
        if process is None:
            return
        process.send_signal(signal_number)
        try:
            process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _wait(self, name: str, is_ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_S_MAX
        while not is_ready():
            if self._running[name].poll() is not None or time.monotonic() > deadline:
                pytest.fail(
                    f"{name} did not start; {self._seen}\n{self._log(name).read_text(errors='replace')[-4000:]}"
                )
            time.sleep(_POLL_S)


def _spark_jars() -> list[Path]:
    names = (
        "hadoop-client-api-*",
        "hadoop-client-runtime-*",
        "log4j-*",
        "slf4j-api-*",
        "jcl-over-slf4j-*",
        "commons-*",
        "javax.servlet-*",
    )
    return [jar for name in names for jar in sorted(spark_jars_folder().glob(f"{name}.jar"))]


def _write_xml(file: Path, settings: Mapping[str, str]) -> None:
    properties = "".join(
        f"  <property><name>{name}</name><value>{escape(value)}</value></property>\n"
        for name, value in settings.items()
    )
    file.write_text(f'<?xml version="1.0"?>\n<configuration>\n{properties}</configuration>\n')


@pytest.fixture(scope="session")
def hdfs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    """A real HDFS, started once for each process of the tests."""
    with HdfsServer(tmp_path_factory.mktemp("hdfs")) as server:
        yield server


@pytest.fixture
def hdfs_location(hdfs_server: HdfsServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """A place in HDFS where nothing is yet, reached by the Hadoop configuration as a user would."""
    for name, value in hdfs_server.environment().items():
        monkeypatch.setenv(name, value)
    return f"{hdfs_server.uri}/{uuid.uuid4()}"
