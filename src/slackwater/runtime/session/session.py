"""Starts and ends a run's only Spark session: settings, Python, Java, jars, no listener beyond this machine.

The JVM gets its own session (``setsid``): a signal to the process group, as by ``timeout`` or a terminal, would abort
the batch that a drain lets finish. The JVM still ends with the driver: PySpark's gateway reads a pipe that closes when
the driver exits.
"""

import atexit
import logging
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import structlog
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.conf import SparkConf
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from slackwater import connectors
from slackwater.connectors.machine import memory_bytes
from slackwater.core.errors import StreamFailed, UsageError
from slackwater.core.masking import KNOWN_SECRETS, mask, mask_setting
from slackwater.runtime.program.code_scopes import imported_files, in_archive
from slackwater.runtime.session import SessionOptions, require_spark, spark_version
from slackwater.runtime.session.launch import default_setting, launch_apart
from slackwater.runtime.session.settings import FULL_TRACEBACKS, remember_options
from slackwater.sinks.common import registry
from slackwater.sinks.common.problem import secret_of
from slackwater.storage.open import session_settings_of

LOCAL_SHUFFLE_PARTITIONS = "4"
"""Spark's default of 200 makes every batch on a laptop take seconds; a stream's first batch pins the number."""

SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set if ``spark-submit`` has started this Python, after its JVM."""
WORKER_PYTHON = "spark.pyspark.python"
"""The workers' Python; ``spark-submit`` reads this setting, a session started by a driver does not."""

JARS, PACKAGES = "spark.jars", "spark.jars.packages"

DELTA_SNAPSHOT_PARTITIONS = "spark.databricks.delta.snapshotPartitions"
"""The number of tasks that read a Delta table's log; the default of 50 makes a small batch four times slower."""

JVM_END_S = 20.0
"""Spark's shutdown hooks remove its temporary folders; a JVM that takes longer is killed."""

FIRST_COMPILER = "-XX:TieredStopAtLevel=1"
"""The second compiler's code is several times as fast, but it uses all cores in a JVM's first minute."""

_JVM_OPTIONS = ("spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions")

log = structlog.get_logger(__name__)
_ARCHIVE = "slackwater-project.zip"


def start_session(options: SessionOptions, say: Callable[[str], None]) -> SparkSession:
    """Start a Spark session.

    Raises EnvironmentMissing without PySpark, Java or a connector jar, UsageError for a rejected master or setting, and
    StreamFailed if Spark does not start.
    """
    require_spark()
    if options.existing:
        spark = _remembered(SparkSession.builder.getOrCreate())
        for key, value in options.settings.items():
            try:
                spark.conf.set(key, value)
            except PySparkException as error:
                log.debug("a setting cannot be changed in a session", key=key, error=str(error))
        return spark
    master = options.master or options.settings.get("spark.master") or _submitted("spark.master") or "local[*]"
    check_master(master)
    # A different version is refused at the first row (PYTHON_VERSION_MISMATCH), and may lack packages. On a cluster the
    # driver's path is a default.
    given = options.settings.get(WORKER_PYTHON) or os.environ.get("PYSPARK_PYTHON")
    os.environ["PYSPARK_PYTHON"] = sys.executable if master.startswith("local") or not given else given
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if master.startswith("local"):
        # Else Spark resolves the host's own name, which a machine without a network may not be able to.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    check_launch_settings(options.settings)
    for key in _JVM_OPTIONS:
        if mask(options.settings.get(key, "")) != options.settings.get(key, ""):
            say(f"{key} contains a secret: options of a JVM are readable by every user of this host while it runs")
    of_stores = map(session_settings_of, options.connectors)
    of_sinks = map(registry.session_settings_of, options.connectors)
    settings = _joined(_defaults(master, brief=options.brief), *of_stores, *of_sinks, options.settings)
    # References to secrets of catalogs are for Slackwater; Spark is given the values, which are recorded nowhere.
    settings = {key: secret_of(key, value) for key, value in settings.items()}
    jars = jars_with(settings, options.connectors, say)
    if jars is not None:
        settings[JARS] = jars
    say("starting Spark")
    started = time.monotonic()
    spark = _build(options.application, master, settings)
    say(f"Spark started ({time.monotonic() - started:.1f} s)")
    if not master.startswith("local") and options.file is not None:
        send_modules(spark, imported_files(options.file))
    return spark


def _remembered(spark: SparkSession) -> SparkSession:
    remember_options()
    KNOWN_SECRETS.remember_all(dict(spark.sparkContext.getConf().getAll()))
    return spark


_LISTS = frozenset({"spark.sql.extensions"})
"""Settings whose values are lists: joined if several sources set them."""


def _joined(*layers: Mapping[str, str]) -> dict[str, str]:
    settings: dict[str, str] = {}
    for layer in layers:
        for key, value in layer.items():
            known = settings.get(key) if key in _LISTS else None
            both = (name.strip() for name in f"{known},{value}".split(","))
            settings[key] = ",".join(dict.fromkeys(filter(None, both))) if known else value
    return settings


def driver_jvm_pid(spark: SparkSession) -> int:
    return int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr] # py4j: a JVM is there once a session is


def _submitted(key: str) -> str | None:
    """A setting of the ``spark-submit`` that started this Python: a system property of its JVM."""
    if SUBMITTED not in os.environ:
        return None
    if SparkContext._gateway is None:
        connect: Callable[[], Any] = launch_gateway
        SparkContext._gateway = connect()
        SparkContext._jvm = SparkContext._gateway.jvm
    gateway: Any = SparkContext._gateway
    found = gateway.jvm.java.lang.System.getProperty(key)
    return str(found) if found is not None else None


def _defaults(master: str, *, brief: bool) -> dict[str, str]:
    options = [f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"]
    options += [FIRST_COMPILER] if brief else []
    quiet = {
        "spark.ui.showConsoleProgress": "false",
        FULL_TRACEBACKS: "false",
        "spark.driver.extraJavaOptions": " ".join(options),
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


def jars_with(settings: Mapping[str, str], names: Sequence[str], say: Callable[[str], None]) -> str | None:
    """``spark.jars`` with these connectors' jars; ``None`` if none is needed.

    It replaces the user's value, so it repeats those jars.
    """
    brought = [one for key in (JARS, PACKAGES) for one in (_given(key, settings) or "").split(",")] if names else []
    wanted = [name for name in names if not _brings(brought, name)]
    jars = list(map(str, connectors.resolve(wanted, spark_version(), say))) if wanted else []
    return ",".join([*filter(None, [_given(JARS, settings)]), *jars]) if jars else None


def _given(key: str, settings: Mapping[str, str]) -> str | None:
    if key in settings:
        return settings[key]
    return _submitted(key) if SUBMITTED in os.environ else default_setting(key)


def _brings(brought: Iterable[str], connector: str) -> bool:
    """Return whether a coordinate or file is the connector's artifact; a version follows its name."""
    name = re.escape(registry.connectors().get(connector, connector))
    artifact = re.compile(rf"(?:[^:/]+:|(?:.*/)?){name}(?:[_-]\d[^:/]*)?(?::[^/]*|\.jar)")
    return any(artifact.fullmatch(one.strip()) for one in brought)


def end_session(spark: SparkSession) -> None:
    """Stop the session and wait for its JVM's exit. Never raises."""
    gateway = spark.sparkContext._gateway
    try:
        spark.stop()
    except (Py4JError, OSError) as error:
        # A JVM that was killed has nothing left to stop.
        log.warning("Spark was not stopped cleanly", error=str(error))
    _end_gateway(gateway)


def _build(application: str, master: str, settings: Mapping[str, str]) -> SparkSession:
    conf = _conf(application, master, settings)
    gateway: Any = SparkContext._gateway
    try:
        if gateway is None:
            gateway = _launched(conf)
            check_sql_settings(gateway, settings)
            # spark-submit has set it with the jars of spark.jars.packages, which would be dropped.
            conf = _conf(application, master, {key: value for key, value in settings.items() if key != JARS})
            SparkContext(conf=conf, gateway=gateway)
        elif SUBMITTED in os.environ:
            check_sql_settings(gateway, settings)
        spark = _remembered(SparkSession.builder.config(conf=conf).getOrCreate())
    except (Py4JJavaError, PySparkException, PySparkRuntimeError, OSError) as error:
        thrown = getattr(error, "java_exception", None)
        reason = error if thrown is None else thrown.getMessage()
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
    return spark


def _conf(application: str, master: str, settings: Mapping[str, str]) -> SparkConf:
    return SparkConf().setAppName(application).setMaster(master).setAll(list(settings.items()))


def _launched(conf: SparkConf) -> Any:
    _hush_py4j()
    gateway, signals = launch_apart(launch_gateway, dict(conf.getAll()))
    if signals.count:
        _end_gateway(gateway)
        raise KeyboardInterrupt
    return gateway


def _hush_py4j() -> None:
    """Drop py4j's tracebacks after its JVM exits: the run reports that.

    Most are from py4j's loggers, some from the root logger (``JavaGateway``'s client, after a failed call).
    """
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


def _end_gateway(gateway: Any) -> None:
    """End the JVM, unless ``spark-submit`` started it, and let PySpark start a new JVM later."""
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if process is None or process.stdin is None:
        return
    gateway.shutdown()
    # ``PythonGatewayServer`` exits at the end of its stdin.
    process.stdin.close()
    try:
        process.wait(JVM_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if SparkContext._gateway is gateway:
        # PySpark keeps both for the life of the process: the next session would call a JVM that has exited.
        SparkContext._gateway = SparkContext._jvm = None


_MASTER = re.compile(
    r"local(\[(\d+|\*)(\s*,\s*\d+)?\]|-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\])?|yarn|(spark|k8s|mesos)://.+"
)
"""The masters that ``SparkContext`` accepts; it and ``spark-submit`` report others with a Java stack trace."""

_AT_LEAST_ONE = r"0*[1-9]\d*"
DRIVER_MEMORY = "spark.driver.memory"
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_LAUNCH_SETTINGS = {
    DRIVER_MEMORY: (_AT_LEAST_ONE + "[kmgt]?", "such as 512m or 4g"),
    "spark.executor.memory": (_AT_LEAST_ONE + "([kmgtp]b?|b)?", "such as 512m or 4g"),
    "spark.executor.cores": (_AT_LEAST_ONE, "an integer of at least 1"),
    "spark.cores.max": (_AT_LEAST_ONE, "an integer of at least 1"),
}
"""Settings that Java itself (``-Xmx``) or ``SparkSubmitArguments`` rejects before there is a JVM to ask."""


def check_master(master: str) -> None:
    if _MASTER.fullmatch(master) is None:
        raise UsageError(
            "master",
            "Spark does not know this kind of master",
            expected="local, local[N], local[*], spark://HOST:PORT, yarn or k8s://...",
            found=master,
            hint="--master, SLACKWATER_MASTER, or master in slackwater.toml",
        )


def check_launch_settings(settings: Mapping[str, str]) -> None:
    for key, (form, expected) in _LAUNCH_SETTINGS.items():
        value = settings.get(key)
        if value is not None and re.fullmatch(form, value.strip(), re.IGNORECASE) is None:
            raise _refused(key, value, "no JVM starts with it", expected)
    # With too large a heap a local driver's JVM would hang or be killed, not fail.
    value = settings.get(DRIVER_MEMORY, "")
    match = re.fullmatch(r"(\d+)([kmgt]?)", value.strip().lower())
    available = memory_bytes()
    if match and int(match[1]) * _UNITS[match[2]] > available:
        expected = f"at most {available // _UNITS['m']}m, the memory of this machine"
        raise _refused(DRIVER_MEMORY, value, "this machine has less memory", expected)


def check_sql_settings(gateway: Any, settings: Mapping[str, str]) -> None:
    """Raises UsageError for an invalid ``spark.sql.*`` setting.

    Spark would fail at the first use, and at every later read of its settings. PySpark reads them while reporting an
    error, so it would never return.
    """
    conf = gateway.jvm.org.apache.spark.sql.internal.SQLConf()
    for key, value in settings.items():
        if not key.startswith("spark.sql."):
            continue
        try:
            conf.setConfString(key, value)
        except Py4JJavaError as error:
            raise _refused(key, value, error.java_exception.getMessage()) from error


def _refused(key: str, value: str, reason: str, expected: str | None = None) -> UsageError:
    shown = mask_setting(key, value)
    return UsageError(
        "spark-setting",
        # Spark's sentence quotes the value.
        f"Spark cannot use this setting: {reason.replace(value, shown) if value else reason}",
        where=key,
        expected=expected,
        found=shown,
        hint="--conf, or [spark] in slackwater.toml",
    )


def send_modules(spark: SparkSession, files: Iterable[Path]) -> None:
    """Sends an archive: a cluster's workers do not share the driver's disk.

    Archived modules are skipped: ``--py-files`` has sent them, and part of a package would hide the rest.
    """
    named = {module_path(file): file for file in files if not in_archive(file)}
    if not named:
        return
    folder = tempfile.TemporaryDirectory(prefix="slackwater-modules-")
    # Spark's file server reads the archive as long as there are executors to start.
    atexit.register(folder.cleanup)
    archive = Path(folder.name) / _ARCHIVE
    with ZipFile(archive, "w") as opened:
        for name, file in sorted(named.items()):
            opened.write(file, name)
    spark.sparkContext.addPyFile(str(archive))


def module_path(file: Path) -> str:
    """A module's path in an archive: relative to its innermost ``sys.path`` folder."""
    folders = [Path(entry or ".").absolute() for entry in sys.path]
    around = [folder for folder in folders if file.is_relative_to(folder)]
    inner = max(around, key=lambda folder: len(folder.parts), default=file.parent)
    return file.relative_to(inner).as_posix()
