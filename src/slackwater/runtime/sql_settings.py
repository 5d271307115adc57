"""The SQL settings that decide what a query computes: read from the session for the ledger, and set for a replay.

Time zone and ANSI mode, for example, become part of the plan when the user's function builds its DataFrame.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from slackwater.masking import is_secret_name, mask_setting
from slackwater.runtime.logical_plan import scala_map

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PREFIX = "spark.sql."
ALWAYS = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled")
"""Recorded even at their defaults, which depend on the machine's time zone, its environment and Spark's version."""

FULL_TRACEBACKS = "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled"
"""Spark's default since 4.0 drops the causes of an exception in a Python function (``handle_worker_exception``)."""

NOT_THE_QUERYS = frozenset(
    {
        FULL_TRACEBACKS,
        "spark.sql.artifact.isolation.enabled",  # set by PySpark
        "spark.sql.catalogImplementation",
        "spark.sql.warehouse.dir",  # the working directory, unless it was set
        "spark.sql.streaming.stateStore.maintenanceInterval",
    }
)
"""Set by Slackwater or PySpark; they do not change what a query computes."""

HOW_IT_IS_STORED = (
    "spark.sql.catalog",
    "spark.sql.streaming.checkpoint",
    "spark.sql.streaming.fileSink.",
    "spark.sql.streaming.fileSource.",
    "spark.sql.streaming.minBatchesToRetain",
    "spark.sql.streaming.stateStore.",
)
"""Prefixes of settings that determine how and where data is stored; a replay keeps those of its session."""


def effective_settings(spark: SparkSession) -> dict[str, str]:
    """The session's ``spark.sql.*`` settings that differ from Spark's defaults, without secrets, sorted by name.

    The session's time zone and ANSI mode are always among them.
    """
    conf = _conf(spark)
    found = {key: str(conf.getConfString(key)) for key in ALWAYS}
    sql_conf = _sql_conf_class(spark)
    defaults = sql_conf()
    for key, value in _set_explicitly(conf).items():
        if key in NOT_THE_QUERYS or mask_setting(key, value) != value:
            continue
        known_to_spark = conf.isModifiable(key) or sql_conf.isStaticConfigKey(key)
        if not known_to_spark or defaults.getConfString(key) != value:
            found[key] = value
    return dict(sorted(found.items()))


def replace_settings(spark: SparkSession, settings: Mapping[str, str]) -> None:
    """Set exactly these of the settings that a session can change; the others return to Spark's defaults.

    Unchanged: static settings, secrets, what Slackwater itself sets, and how data is stored.
    """
    present = _set_explicitly(_conf(spark))
    for key in _replaceable(spark, present):
        if key not in settings:
            spark.conf.unset(key)
    for key in _replaceable(spark, settings):
        if present.get(key) != settings[key]:
            spark.conf.set(key, settings[key])


def _replaceable(spark: SparkSession, keys: Iterable[str]) -> list[str]:
    sql_conf = _sql_conf_class(spark)
    return [
        key
        for key in keys
        if key not in NOT_THE_QUERYS
        and not key.startswith(HOW_IT_IS_STORED)
        and not is_secret_name(key)
        and not sql_conf.isStaticConfigKey(key)
    ]


def _sql_conf_class(spark: SparkSession) -> Any:
    jvm: Any = spark.sparkContext._jvm
    return jvm.org.apache.spark.sql.internal.SQLConf


def _conf(spark: SparkSession) -> Any:
    return spark._jsparkSession.sessionState().conf()


def _set_explicitly(conf: Any) -> dict[str, str]:
    return {key: value for key, value in scala_map(conf.getAllConfs()).items() if key.startswith(PREFIX)}
