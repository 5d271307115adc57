"""Checks of Spark's master and settings before a session is created with them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from slackwater.errors import UsageError
from slackwater.masking import mask_setting

_MASTER = re.compile(
    r"local(\[(\d+|\*)(\s*,\s*\d+)?\]|-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\])?|yarn|(spark|k8s|mesos)://.+"
)
"""As ``SparkContext`` matches it; ``spark-submit`` and the context give a Java stack trace for anything else."""

_AT_LEAST_ONE = r"0*[1-9]\d*"
_LAUNCH_SETTINGS = {
    "spark.driver.memory": (_AT_LEAST_ONE + "[kmgt]?", "such as 512m or 4g"),
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
    """Raises UsageError for a setting with which no JVM would start."""
    for key, (form, expected) in _LAUNCH_SETTINGS.items():
        value = settings.get(key)
        if value is not None and re.fullmatch(form, value.strip(), re.IGNORECASE) is None:
            raise _refused(key, value, "no JVM starts with it", expected)


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
