"""Checks of Spark's master and settings before a session is created with them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from slackwater.connectors.machine import memory_bytes
from slackwater.errors import UsageError
from slackwater.masking import mask_setting

_MASTER = re.compile(
    r"local(\[(\d+|\*)(\s*,\s*\d+)?\]|-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\])?|yarn|(spark|k8s|mesos)://.+"
)
"""As ``SparkContext`` matches it; ``spark-submit`` and the context give a Java stack trace for anything else."""

_AT_LEAST_ONE = r"0*[1-9]\d*"
DRIVER_MEMORY = "spark.driver.memory"
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_LAUNCH_SETTINGS = {
    DRIVER_MEMORY: (_AT_LEAST_ONE + "[kmgt]?", "such as 512m or 4g"),
    "spark.executor.memory": (_AT_LEAST_ONE + "([kmgtp]b?|b)?", "such as 512m or 4g"),
    "spark.executor.cores": (_AT_LEAST_ONE, "an integer of at least 1"),
    "spark.cores.max": (_AT_LEAST_ONE, "an integer of at least 1"),
}
"""What Java itself (``-Xmx``) or ``SparkSubmitArguments`` rejects before there is a JVM to ask."""


def check_master(master: str) -> None:
    """Raises UsageError for a master that no Spark accepts."""
    if _MASTER.fullmatch(master) is None:
        raise UsageError(
            "master",
            "Spark does not know this kind of master",
            expected="local, local[N], local[*], spark://HOST:PORT, yarn or k8s://...",
            found=master,
            hint="--master, SLACKWATER_MASTER, or master in slackwater.toml",
        )


def check_launch_settings(settings: Mapping[str, str]) -> None:
    """Raises UsageError for a setting with which no JVM would start, or only one that this machine cannot hold."""
    for key, (form, expected) in _LAUNCH_SETTINGS.items():
        value = settings.get(key)
        if value is not None and re.fullmatch(form, value.strip(), re.IGNORECASE) is None:
            raise _refused(key, value, "no JVM starts with it", expected)
    _check_driver_memory(settings.get(DRIVER_MEMORY))


def _check_driver_memory(value: str | None) -> None:
    """The JVM of the driver runs on this machine. One with a larger heap would hang or be killed, not fail."""
    if value is None:
        return
    match = re.fullmatch(r"(\d+)([kmgt]?)", value.strip().lower())
    available = memory_bytes()
    if match and int(match[1]) * _UNITS[match[2]] > available:
        expected = f"at most {available // _UNITS['m']}m, the memory of this machine"
        raise _refused(DRIVER_MEMORY, value, "this machine has less memory", expected)


def check_sql_settings(gateway: Any, settings: Mapping[str, str]) -> None:
    """Raises UsageError for a ``spark.sql.*`` setting that Spark cannot parse.

    Spark would fail at the first use of the session, and again at every later read of its settings. PySpark reads them
    while it reports an error, so that it would never return.
    """
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - comes with pyspark

    conf = gateway.jvm.org.apache.spark.sql.internal.SQLConf()
    for key, value in settings.items():
        if not key.startswith("spark.sql."):
            continue
        try:
            conf.setConfString(key, value)
        except Py4JJavaError as error:
            raise _refused(key, value, error.java_exception.getMessage()) from error


def _refused(key: str, value: str, reason: str, expected: str | None = None) -> UsageError:
    return UsageError(
        "spark-setting",
        f"Spark cannot use this setting: {reason}",
        where=key,
        expected=expected,
        found=mask_setting(key, value),
        hint="--conf, or [spark] in slackwater.toml",
    )
