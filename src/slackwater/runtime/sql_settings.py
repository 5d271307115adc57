"""Settings that affect a query's results: recorded from the session, and set for a replay.

Time zone and ANSI mode, for example, become part of the plan. User functions may read their own settings
(``spark.app.least``).

If a query differs only by such settings, a rebuild does not help: it replays each batch under its run's settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from slackwater.core.errors import SlackwaterError
from slackwater.core.masking import is_secret_name, mask, mask_setting
from slackwater.core.program import EXECUTOR_VARIABLE, PROCESS_VARIABLE, Program
from slackwater.core.verdict import OtherSetting
from slackwater.diagnose.program_changes import verdict
from slackwater.runtime.failures import SPARK_ERRORS
from slackwater.runtime.process_environment import (
    Environment,
    changed_environment,
    environment_before,
    replace_environment,
    restore_environment,
)
from slackwater.sources.common.scala import scala_map

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from slackwater.runtime.query import BuiltStream


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
"""Settings of Slackwater or PySpark that do not affect a query's results."""

HOW_IT_IS_STORED = (
    "spark.sql.catalog",
    "spark.sql.streaming.checkpoint",
    "spark.sql.streaming.fileSink.",
    "spark.sql.streaming.fileSource.",
    "spark.sql.streaming.minBatchesToRetain",
    "spark.sql.streaming.stateStore.",
)
"""Prefixes of settings for the storage of data; a replay keeps its own session's values."""


VARIABLES = (EXECUTOR_VARIABLE, PROCESS_VARIABLE)
"""Prefixes of recorded settings that become environment variables of functions."""

HOW_IT_RUNS = (
    "spark.app.attempt.", "spark.app.id", "spark.app.initial.", "spark.app.name", "spark.app.startTime",
    "spark.app.submitTime", "spark.archives", "spark.driver.", "spark.executor.", "spark.executorEnv.", "spark.files",
    "spark.hadoop.", "spark.home", "spark.jars", "spark.kubernetes.", "spark.log", "spark.master", "spark.metrics.",
    "spark.mesos.", "spark.port.", "spark.pyspark.", "spark.rdd.compress", "spark.repl.",
    "spark.serializer.objectStreamReset", "spark.shuffle.", "spark.submit.", "spark.ui.", "spark.yarn.",
)  # fmt: skip
"""Prefixes of settings that Spark or a cluster manager reads without a ``ConfigEntry`` that would show it."""


def effective_settings(spark: SparkSession) -> dict[str, str]:
    """``spark.sql.*`` settings that differ from defaults, and settings unknown to Spark, without secrets.

    Always includes time zone and ANSI mode.
    """
    conf = _conf(spark)
    found = {key: str(conf.getConfString(key)) for key in ALWAYS}
    sql_conf = _sql_conf_class(spark)
    defaults = sql_conf()
    for key, value in _set_explicitly(spark).items():
        if key in NOT_THE_QUERYS or mask_setting(key, value) != value:
            continue
        # ``isModifiable`` is false for a static setting, too.
        known_to_spark = key.startswith(PREFIX) and (conf.isModifiable(key) or sql_conf.isStaticConfigKey(key))
        if not known_to_spark or defaults.getConfString(key) != value:
            found[key] = value
    return dict(sorted(found.items()))


def values_of(spark: SparkSession, names: Iterable[str]) -> dict[str, str]:
    conf = _conf(spark)
    return {name: str(conf.getConfString(name)) for name in names if conf.isModifiable(name)}


def replace_settings(spark: SparkSession, settings: Mapping[str, str]) -> None:
    """Other changeable settings return to Spark's defaults.

    Unchanged: static settings, secrets, Slackwater's own, and data storage. Raises as ``replace_environment``.
    """
    replace_environment(spark, settings)
    present = _set_explicitly(spark)
    for key in _replaceable(spark, present, present):
        if key not in settings:
            _unset(spark, key)
    for key in _replaceable(spark, settings, present):
        if present.get(key) != settings[key]:
            _set(spark, key, settings[key])


@dataclass(frozen=True, slots=True)
class SetExplicitly:
    """Explicit settings of session and application, including secrets; the application's only if replaceable."""

    session: Mapping[str, str] = field(repr=False)
    application: Mapping[str, str | None] = field(repr=False)
    environment: Environment


def settings_before(spark: SparkSession, settings: Mapping[str, str]) -> SetExplicitly:
    session = scala_map(_conf(spark).getAllConfs())
    return SetExplicitly(session, _of_application(spark, {*session, *settings}), environment_before(spark))


def restore_settings(spark: SparkSession, before: SetExplicitly) -> None:
    """Restore explicit settings: effective settings lack secrets, and include defaults."""
    restore_environment(spark, before.environment)
    present = scala_map(_conf(spark).getAllConfs())
    for key in present.keys() - before.session.keys():
        spark.conf.unset(key)
    for key, value in before.session.items():
        if present.get(key) != value:
            spark.conf.set(key, value)
    for key, changed in _of_application(spark, before.application).items():
        of_application = before.application[key]
        if of_application is None:
            _application_conf(spark).remove(key)
        elif of_application != changed:
            _application_conf(spark).set(key, of_application)


def settings_after(spark: SparkSession, recorded: Mapping[str, str]) -> dict[str, str]:
    """The settings of a session that follows a run with ``recorded`` settings.

    Unset settings take the recorded user's own, and the recorded values for times and overflows.
    """
    others = (PREFIX, *VARIABLES)
    kept = {key: value for key, value in recorded.items() if key in ALWAYS or not key.startswith(others)}
    effective, given = effective_settings(spark), _set_explicitly(spark)
    return effective | kept | {key: value for key, value in effective.items() if key in given}


def changed_settings(spark: SparkSession, before: Mapping[str, str]) -> dict[str, tuple[str | None, str | None]]:
    present = effective_settings(spark)
    names = [name for name in sorted({*before, *present}) if before.get(name) != present.get(name)]
    replaceable = _replaceable(spark, names, _set_explicitly(spark))
    found = {name: (before.get(name), present.get(name)) for name in replaceable}
    return {**found, **changed_environment(spark, before)}


def _set(spark: SparkSession, key: str, value: str) -> None:
    spark.conf.set(key, value)
    if not key.startswith(PREFIX):
        # Where code reads it by ``spark.sparkContext.getConf()``.
        _application_conf(spark).set(key, value)


def _unset(spark: SparkSession, key: str) -> None:
    spark.conf.unset(key)
    if not key.startswith(PREFIX):
        _application_conf(spark).remove(key)


def _replaceable(spark: SparkSession, keys: Iterable[str], present: Mapping[str, str]) -> list[str]:
    """The changeable keys. A ``present`` secret value is recorded nowhere else, so it stays."""
    sql_conf = _sql_conf_class(spark)
    return [
        key
        for key in keys
        if key not in NOT_THE_QUERYS
        and not key.startswith((*HOW_IT_IS_STORED, *VARIABLES))
        and not is_secret_name(key)
        and mask(present.get(key, "")) == present.get(key, "")
        and not sql_conf.isStaticConfigKey(key)
    ]


def _sql_conf_class(spark: SparkSession) -> Any:
    jvm: Any = spark.sparkContext._jvm
    return jvm.org.apache.spark.sql.internal.SQLConf


def _conf(spark: SparkSession) -> Any:
    return spark._jsparkSession.sessionState().conf()


def _application_conf(spark: SparkSession) -> Any:
    return spark.sparkContext._jsc.sc().conf()


def _of_application(spark: SparkSession, keys: Iterable[str]) -> dict[str, str | None]:
    conf = _application_conf(spark)
    return {key: str(conf.get(key)) if conf.contains(key) else None for key in keys if not key.startswith(PREFIX)}


def _set_explicitly(spark: SparkSession) -> dict[str, str]:
    found = scala_map(_conf(spark).getAllConfs())
    return {key: value for key, value in found.items() if key.startswith(PREFIX) or _is_own(spark, key)}


def _is_own(spark: SparkSession, key: str) -> bool:
    if key.startswith(HOW_IT_RUNS):
        return False
    jvm: Any = spark.sparkContext._jvm
    return jvm.org.apache.spark.internal.config.ConfigEntry.findEntry(key) is None


BuildAgain = Callable[["BuiltStream"], "BuiltStream"]
"""Calls the function of a stream again, in the session in which it was built."""


def only_settings(
    built: BuiltStream, kept: Program, recorded: Mapping[str, str] | None, build_again: BuildAgain | None
) -> tuple[OtherSetting, ...]:
    """The settings under whose old values the query may continue; empty if that is not enough.

    ``recorded`` ``None``: not recorded. The query is built under them, then the session is restored. A query that
    cannot be rebuilt needs unchanged code.
    """
    now = built.program
    if build_again is None and (now is None or kept.code is None or kept.code != now.code):
        return ()
    spark = built.frame.sparkSession
    present = effective_settings(spark)
    before = {**(present if recorded is None else recorded), **kept.settings}
    changed = changed_settings(spark, before)
    if not changed or (build_again is not None and not _fits(built, kept, before, build_again)):
        return ()
    own = built.definition.settings
    return tuple(OtherSetting(name, old, new, in_code=name in own) for name, (old, new) in changed.items())


def _fits(built: BuiltStream, kept: Program, settings: Mapping[str, str], build_again: BuildAgain) -> bool:
    spark = built.frame.sparkSession
    present = settings_before(spark, settings)
    # A newer Spark may reject a value that was recorded: then it is unknown whether the state would fit.
    unknown: tuple[type[Exception], ...] = (SlackwaterError, *SPARK_ERRORS)
    try:
        replace_settings(spark, settings)
        program = build_again(built).program
    except unknown:
        return False
    finally:
        restore_settings(spark, present)
    return program is not None and verdict(kept, program).starts
