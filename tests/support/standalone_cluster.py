"""A standalone cluster of Spark from PySpark's own jars: a master and workers of one core, on 127.0.0.1."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from tests.support.killing import children_of

START_S = 180.0
SPARK_HOME = Path(pyspark.__file__).parent
WORKER_MEMORY = "700m"
JOB = "import sys\n\nfrom slackwater.cli.main import main\n\nsys.exit(main())\n"
"""The file that ``spark-submit`` runs, as docs/cluster.md has it."""

SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}
"""What a driver on this machine needs to use it."""


@dataclass
class Worker:
    """A worker; its executors are its children."""

    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        """As if its machine had lost its power: the executors too."""
        executors = children_of(self.process.pid)
        for pid in (self.process.pid, *executors):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


@dataclass
class StandaloneCluster:
    folder: Path
    address: str = ""
    workers: list[Worker] = field(default_factory=list)
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def arguments(self) -> list[str]:
        """The arguments of ``slackwater`` and of ``spark-submit``."""
        conf = [part for key, value in SETTINGS.items() for part in ("--conf", f"{key}={value}")]
        return ["--master", self.address, *conf]

    def start(self, workers: int) -> None:
        arguments = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        process, log = self._run("master", "org.apache.spark.deploy.master.Master", *arguments)
        self.address = self._logged(process, log, r"Starting Spark master at (spark://\S+)")
        for _ in range(workers):
            self.add_worker()

    def add_worker(self) -> Worker:
        """Start one more worker and wait until the master knows it."""
        name = f"worker-{len(self.workers)}"
        process, log = self._run(
            *(name, "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--port", "0"),
            *("--webui-port", "0", "--cores", "1", "--memory", WORKER_MEMORY),
            *("--work-dir", str(self.folder / name), self.address),
        )
        self._logged(process, log, r"Successfully registered with master (\S+)")
        self.workers.append(Worker(process))
        return self.workers[-1]

    def stop(self) -> None:
        for worker in self.workers:
            worker.kill()
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.wait()

    def _run(self, name: str, *command: str) -> tuple[subprocess.Popen[bytes], Path]:
        log = self.folder / f"{name}.log"
        environment = {"SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "200m"}
        with log.open("wb") as output:
            process = subprocess.Popen(
                [str(SPARK_HOME / "bin" / "spark-class"), *command],
                cwd=self.folder,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment},
            )
        self._processes.append(process)
        return process, log

    def _logged(self, process: subprocess.Popen[bytes], log: Path, pattern: str) -> str:
        deadline = time.monotonic() + START_S
        while True:
            found = re.search(pattern, log.read_text(errors="replace"))
            if found is not None:
                return found[1]
            assert process.poll() is None, log.read_text(errors="replace")
            assert time.monotonic() < deadline, log.read_text(errors="replace")
            time.sleep(0.1)


@contextmanager
def standalone_cluster(folder: Path, workers: int = 2) -> Iterator[StandaloneCluster]:
    """A cluster that runs within the block; its logs and the folders of its workers are in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    cluster = StandaloneCluster(folder)
    try:
        cluster.start(workers)
        yield cluster
    finally:
        cluster.stop()
