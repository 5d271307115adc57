"""Starts and ends the one Spark session of a run: Python, Java, jars, and no listener beyond this machine.

The JVM gets a session (``setsid``) of its own. A signal to the whole process group, as ``timeout`` and a terminal send
it, would otherwise reach the JVM as well and abort the batch that a drain lets finish. The JVM still ends with the
driver: PySpark's gateway reads a pipe that closes when the driver exits, for whatever reason.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from slackwater import connectors
from slackwater.connectors.machine import java_program, pyspark_missing
from slackwater.errors import StreamFailed
from slackwater.masking import mask
from slackwater.runtime.jvm_stderr import relayed_stderr
from slackwater.runtime.launch import launch
from slackwater.runtime.spark_settings import check_launch_settings, check_master, check_sql_settings
from slackwater.runtime.sql_settings import FULL_TRACEBACKS
from slackwater.runtime.stop_signals import StopSignals

if TYPE_CHECKING:
    from pyspark.conf import SparkConf
    from pyspark.sql import SparkSession

LOCAL_SHUFFLE_PARTITIONS = "4"
"""Spark's default of 200 makes every batch on a laptop take seconds; the number is pinned by a stream's first batch."""

DELTA_SNAPSHOT_PARTITIONS = "spark.databricks.delta.snapshotPartitions"
"""Delta reads the log of a table in as many tasks; its default of 50 makes a small batch four times slower."""

JVM_END_S = 20.0
"""Spark's shutdown hooks remove its temporary folders; a JVM that takes longer is killed."""

_JVM_OPTIONS = ("spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions")

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """How to create the session. ``settings`` are Spark's own and override every default here."""

    application: str
    master: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    connectors: tuple[str, ...] = ()


def start_session(options: SessionOptions, say: Callable[[str], None]) -> SparkSession:
    """A new session.

    Raises EnvironmentMissing if PySpark, Java or a connector jar is not available, UsageError for a master or a setting
    that Spark does not accept, and StreamFailed if Spark does not start with them.
    """
    require_spark()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    master = options.master or options.settings.get("spark.master") or _submitted_master() or "local[*]"
    check_master(master)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    check_launch_settings(options.settings)
    _warn_of_visible_secrets(options.settings, say)
    settings = _joined(_defaults(master), *map(_of_connector, options.connectors), options.settings)
    jars = _jars(options.connectors, settings, say)
    if jars:
        settings["spark.jars"] = ",".join([*filter(None, [settings.get("spark.jars")]), *jars])
    return _build(options.application, master, settings)


CONNECTOR_SETTINGS: Mapping[str, Mapping[str, str]] = {
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
    "iceberg": {"spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"},
}
"""What the documentation of Delta Lake and of Apache Iceberg has a session set."""
_LISTS = frozenset({"spark.sql.extensions"})
"""Settings whose values are lists: joined where several ask for them."""


def _of_connector(name: str) -> Mapping[str, str]:
    return CONNECTOR_SETTINGS.get(name, {})


def _joined(*layers: Mapping[str, str]) -> dict[str, str]:
    """All settings; a later layer overrides, and adds to a list."""
    settings: dict[str, str] = {}
    for layer in layers:
        for key, value in layer.items():
            known = settings.get(key) if key in _LISTS else None
            settings[key] = value if not known or value in known.split(",") else f"{known},{value}"
    return settings


def require_spark() -> None:
    """Raises EnvironmentMissing unless PySpark and Java are installed."""
    try:
        metadata.version("pyspark")
    except metadata.PackageNotFoundError as error:
        raise pyspark_missing() from error
    java_program()


def spark_version() -> str:
    """The version of the installed PySpark, without importing it."""
    return metadata.version("pyspark")


def driver_jvm_pid(spark: SparkSession) -> int:
    """The process id of the session's driver JVM."""
    return int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr] # py4j: a JVM is there once a session is


def _submitted_master() -> str | None:
    """The master that ``spark-submit`` chose, when it is what started this Python."""
    return os.environ.get("MASTER") if "PYSPARK_GATEWAY_PORT" in os.environ else None


def _defaults(master: str) -> dict[str, str]:
    log_settings = Path(__file__).with_name("log4j2.properties").as_uri()
    quiet = {
        "spark.ui.showConsoleProgress": "false",
        FULL_TRACEBACKS: "false",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log_settings}",
    }
    if not master.startswith("local"):
        return quiet
    return {
        **quiet,
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": LOCAL_SHUFFLE_PARTITIONS,
        DELTA_SNAPSHOT_PARTITIONS: LOCAL_SHUFFLE_PARTITIONS,
    }


def _warn_of_visible_secrets(settings: Mapping[str, str], say: Callable[[str], None]) -> None:
    for key in _JVM_OPTIONS:
        if mask(settings.get(key, "")) != settings.get(key, ""):
            say(f"{key} contains a secret: options of a JVM are readable by every user of this host while it runs")


def _jars(names: Iterable[str], settings: Mapping[str, str], say: Callable[[str], None]) -> list[str]:
    """The connector jars that the user's own ``spark.jars`` or ``spark.jars.packages`` does not bring already."""
    brought = settings.get("spark.jars.packages", "") + settings.get("spark.jars", "")
    wanted = [name for name in names if not _brings(brought, name)]
    return [str(path) for path in connectors.resolve(wanted, spark_version(), say)] if wanted else []


def _brings(brought: str, connector: str) -> bool:
    artifact = {
        "kafka": "spark-sql-kafka",
        "delta": "delta-spark",
        "iceberg": "iceberg-spark-runtime",
        "avro": "spark-avro",
    }
    return artifact.get(connector, connector) in brought


def end_session(spark: SparkSession) -> None:
    """Stop the session and wait until its JVM has exited, so that nothing of this run is left. Never raises."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - comes with pyspark

    gateway = spark.sparkContext._gateway
    try:
        spark.stop()
    except (Py4JError, OSError) as error:
        # A JVM that was killed has nothing left to stop.
        log.warning("Spark was not stopped cleanly", error=str(error))
    _end_gateway(gateway)


def _build(application: str, master: str, settings: Mapping[str, str]) -> SparkSession:
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415
    from pyspark import SparkContext  # noqa: PLC0415 - heavy; only a run pays for it
    from pyspark.conf import SparkConf  # noqa: PLC0415
    from pyspark.errors import PySparkException, PySparkRuntimeError  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    conf = SparkConf().setAppName(application).setMaster(master).setAll(list(settings.items()))
    gateway: Any = SparkContext._gateway
    try:
        if gateway is None:
            gateway = _launched(conf)
            check_sql_settings(gateway, settings)
            SparkContext(conf=conf, gateway=gateway)
        return SparkSession.builder.config(conf=conf).getOrCreate()
    except (Py4JJavaError, PySparkException, PySparkRuntimeError, OSError) as error:
        reason = _reason(error)
        _end_gateway(gateway)
        raise StreamFailed(
            "spark-start",
            f"Spark does not start: {reason}",
            where=master,
            hint="see the output of Java above; the settings come from --conf and [spark] in slackwater.toml",
        ) from error
    except BaseException:
        _end_gateway(gateway)
        raise


def _reason(error: Exception) -> str:
    """The message of the error, without the JVM's stack trace."""
    thrown = getattr(error, "java_exception", None)
    return str(thrown.getMessage()) if thrown is not None else str(error)


def _launched(conf: SparkConf) -> Any:
    """A gateway with a new JVM behind it.

    A Ctrl-C is deferred until the JVM can be stopped. PySpark would delete the folder in which the JVM writes its
    address; the JVM's main thread then fails, its other threads live on, and it never exits.
    """
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415 - heavy; only a run pays for it

    _hush_py4j()
    start: Callable[..., Any] = launch_gateway
    with StopSignals() as signals, relayed_stderr() as stderr:
        options = {"start_new_session": True, "stderr": stderr}
        gateway = launch(lambda: start(popen_kwargs=options), dict(conf.getAll()))
    if signals.count:
        _end_gateway(gateway)
        raise KeyboardInterrupt
    return gateway


def _hush_py4j() -> None:
    """Drop what py4j logs, with tracebacks, after its JVM has exited: the run reports that in one sentence.

    Most of it comes from py4j's own loggers, some from the root logger (``JavaGateway``'s client, after a failed call).
    """
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


def _end_gateway(gateway: Any) -> None:
    """End the JVM behind a gateway, unless ``spark-submit`` started it, and let PySpark start another one later."""
    from pyspark import SparkContext  # noqa: PLC0415 - heavy; only a run pays for it

    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if process is None or process.stdin is None:
        return
    gateway.shutdown()
    process.stdin.close()
    try:
        process.wait(JVM_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if SparkContext._gateway is gateway:
        SparkContext._gateway = SparkContext._jvm = None
