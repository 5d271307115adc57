"""Spark's master and settings, tried before a session is made of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from slackwater.errors import UsageError

_MASTER = re.compile(
    r"local(\[(\d+|\*)(\s*,\s*\d+)?\]|-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\])?|yarn|(spark|k8s|mesos)://.+"
)
"""As ``SparkContext`` matches it; ``spark-submit`` and the context give a Java stack trace for anything else."""


def check_master(master: str) -> None:
    """Raises UsageError for what no Spark takes as its master."""
    if _MASTER.fullmatch(master) is None:
        raise UsageError(
            "master",
            "Spark does not know this kind of master",
            expected="local, local[N], local[*], spark://HOST:PORT, yarn or k8s://...",
            found=master,
            hint="--master, SLACKWATER_MASTER, or master in slackwater.toml",
        )


def check_sql_settings(gateway: Any, settings: Mapping[str, str]) -> None:
    """Raises UsageError for a ``spark.sql.*`` setting that Spark cannot read.

    Spark would say so when the session is first used, and then again at every look at its settings. PySpark looks at
    them while it tells of an error, so it would never come to an end.
    """
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - comes with pyspark

    conf = gateway.jvm.org.apache.spark.sql.internal.SQLConf()
    for key, value in settings.items():
        if not key.startswith("spark.sql."):
            continue
        try:
            conf.setConfString(key, value)
        except Py4JJavaError as error:
            raise UsageError(
                "spark-setting",
                f"Spark cannot use this setting: {error.java_exception.getMessage()}",
                where=key,
                found=value,
                hint="--conf, or [spark] in slackwater.toml",
            ) from error
