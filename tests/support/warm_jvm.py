"""A JVM that stays: commands that run to their end attach to it, one after another, as under ``spark-submit``.

A JVM of its own costs a command more processor time than its batches do. Commands that are killed start their own.
Spark keeps one context in a JVM, so that two commands cannot use it at a time.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from slackwater import connectors
from slackwater.core.errors import EnvironmentMissing, UsageError
from slackwater.runtime.session import spark_version
from tests.support.warm_python import NUMBERED

CONNECTORS = ("kafka", "delta", "iceberg", "avro", "postgresql", "s3a")
KEPT_MIB_MAX = 500
"""Each context leaves some MiB behind. Near the 2 GiB that it may have, it does little but collect."""
ROOT = Path(__file__).parents[2]
LOG_SETTINGS = ROOT / "src" / "slackwater" / "runtime" / "session" / "log4j2.properties"


def attached(folder: Path) -> dict[str, str]:
    """The environment with which a command whose working directory is ``folder`` uses the JVM of this process."""
    gateway = _gateway(os.getpid())
    if gateway.proc.poll() is not None:
        _gateway.cache_clear()
        return attached(folder)
    jvm = gateway.jvm
    left = getattr(getattr(jvm, "org.apache.spark.SparkContext$"), "MODULE$").getActive()
    if left.isDefined():
        # Of a command that did not come to its end.
        left.get().stop()
    # What the last full collection of the JVM has kept; 0 before there was one.
    pools = jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    # By index: an iteration ends with an exception, which PySpark cannot convert where its session is another JVM's.
    beans = [pools[index] for index in range(len(pools))]
    old = [pool for pool in beans if pool.getName() in {"Tenured Gen", "G1 Old Gen"}]
    if (sum(int(pool.getCollectionUsage().getUsed()) for pool in old) >> 20) > KEPT_MIB_MAX:
        # End the JVM as the end of this process would.
        _gateway.cache_clear()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(30)
        return attached(folder)
    jvm.java.lang.System.setProperty("user.dir", str(folder))
    # File systems resolve relative paths by the folder that they saw first.
    jvm.org.apache.hadoop.fs.FileSystem.closeAll()
    address = gateway.gateway_parameters
    return {
        "PYSPARK_GATEWAY_PORT": str(address.port),
        "PYSPARK_GATEWAY_SECRET": address.auth_token,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(NUMBERED), os.environ.get("PYTHONPATH")])),
    }


def output_of(program: Path, folder: Path, *arguments: str) -> str:
    """What a program that uses the JVM of this process prints."""
    environment = {**os.environ, **attached(folder)}
    ended = subprocess.run(
        [sys.executable, str(program), str(folder), *arguments],
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
        cwd=ROOT,
        env={**environment, "PYTHONPATH": os.pathsep.join([str(ROOT), environment["PYTHONPATH"]])},
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    return ended.stdout


def recorded_programs(program: Path, folder: Path) -> dict[str, Any]:
    """What a program that uses the JVM of this process writes to ``programs.json``."""
    output_of(program, folder)
    found: dict[str, Any] = json.loads((folder / "programs.json").read_text())
    return found


@cache
def _gateway(_: int) -> Any:
    """Of a process, not of its forks. The JVM exits when this process, whose end of a pipe it reads, has exited."""
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415 - heavy; only tests with Spark need it

    options = ["--driver-memory", "2g", "--driver-java-options", f"-Dlog4j2.configurationFile={LOG_SETTINGS.as_uri()}"]
    found: list[str] = []
    for name in CONNECTORS:
        try:
            found += map(str, connectors.resolve([name], spark_version()))
        except (EnvironmentMissing, UsageError):
            continue
    options += ["--driver-class-path", os.pathsep.join(found), "pyspark-shell"]
    settings = {
        "PYSPARK_SUBMIT_ARGS": " ".join(options),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        # S3A reads them in the JVM's environment, which is that of the first test: those of tests/support/s3.py.
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }
    start: Callable[..., Any] = launch_gateway
    with mock.patch.dict(os.environ, settings):
        return start(popen_kwargs={"start_new_session": True})
