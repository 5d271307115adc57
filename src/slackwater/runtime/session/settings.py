"""Settings of a stream's session: those that affect results, a session for each stream, and secrets among options.

Time zone and ANSI mode, for example, become part of the plan. User functions may read their own settings
(``spark.app.least``). If a query differs only by such settings, a rebuild does not help: it replays each batch under
the settings of its run.

Sessions share context, jars and catalog. Settings, temporary views and registered functions are per session, and Spark
clones a query's session at its start: streams do not see each other's settings.

Options of a batch reader in a function, such as ``spark.read.option("password", ...)``, are only seen here, and Spark's
messages can repeat them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrameReader, DataFrameWriter, DataFrameWriterV2, SparkSession
from pyspark.sql.conf import RuntimeConfig
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from slackwater.core.checkpoint import OffsetEntry
from slackwater.core.commands import command
from slackwater.core.errors import PipelineError
from slackwater.core.masking import KNOWN_SECRETS, is_secret_name, mask, mask_setting
from slackwater.core.program import EXECUTOR_VARIABLE, PROCESS_VARIABLE, Program
from slackwater.core.verdict import OtherSetting
from slackwater.diagnose.checks.common.settings import ABSENT, PINNED, PROVIDER, settings_of
from slackwater.diagnose.program_changes import verdict
from slackwater.runtime.program.code_reach import (
    changed_environment,
    environment_before,
    replace_environment,
    restore_environment,
)
from slackwater.runtime.run.failures import KNOWN_ERRORS
from slackwater.sources.common.contract import scala_map

if TYPE_CHECKING:
    from slackwater.runtime.pipeline import StreamDefinition
    from slackwater.runtime.run.query import BuiltStream


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
            spark.conf.unset(key)
            if not key.startswith(PREFIX):
                _application_conf(spark).remove(key)
    for key in _replaceable(spark, settings, present):
        if present.get(key) != settings[key]:
            spark.conf.set(key, settings[key])
            if not key.startswith(PREFIX):
                # Where code reads it by ``spark.sparkContext.getConf()``.
                _application_conf(spark).set(key, settings[key])


@contextmanager
def replaced_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """``replace_settings`` until the block ends.

    Restores explicit settings: effective settings lack secrets, and include defaults.
    """
    session, environment = scala_map(_conf(spark).getAllConfs()), environment_before(spark)
    application = _of_application(spark, {*session, *settings})
    try:
        replace_settings(spark, settings)
        yield
    finally:
        restore_environment(spark, environment)
        present = scala_map(_conf(spark).getAllConfs())
        for key in present.keys() - session.keys():
            spark.conf.unset(key)
        for key, value in session.items():
            if present.get(key) != value:
                spark.conf.set(key, value)
        for key, changed in _of_application(spark, application).items():
            of_application = application[key]
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
    found, jvm = scala_map(_conf(spark).getAllConfs()), cast("Any", spark.sparkContext._jvm)
    entries = jvm.org.apache.spark.internal.config.ConfigEntry
    return {
        key: value
        for key, value in found.items()
        if key.startswith(PREFIX) or not (key.startswith(HOW_IT_RUNS) or entries.findEntry(key) is not None)
    }


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
    if not changed:
        return ()
    if build_again is not None:
        # A newer Spark may reject a value that was recorded: then it is unknown whether the state would fit.
        try:
            with replaced_settings(spark, before):
                program = build_again(built).program
        except KNOWN_ERRORS:
            return ()
        if program is None or not verdict(kept, program).starts:
            return ()
    own = built.definition.settings
    return tuple(OtherSetting(name, old, new, in_code=name in own) for name, (old, new) in changed.items())


_CLASSES = (PROVIDER, "spark.sql.streaming.checkpointFileManagerClass", "spark.sql.streaming.commitProtocolClass")
"""Settings with the name of a class that a started query loads later."""


def session_of(spark: SparkSession, definition: StreamDefinition) -> SparkSession:
    """The stream's session, active in this thread: code that builds the query asks for it.

    Raises PipelineError for a setting that a session or Spark rejects.
    """
    session = spark.newSession() if definition.settings else spark
    for name, value in definition.settings.items():
        jvm: Any = session.sparkContext._jvm
        sql_conf = jvm.org.apache.spark.sql.internal.SQLConf
        known = jvm.org.apache.spark.internal.config.ConfigEntry.findEntry(name) is not None
        of_application = sql_conf.isStaticConfigKey(name) or name.startswith(HOW_IT_RUNS)
        # Other settings that have a ``ConfigEntry`` are those of Spark's core, which reads them from the application.
        if of_application or (known and not name.startswith(PREFIX)):
            raise PipelineError(
                "stream-setting-static",
                f"Stream {definition.full_name} sets {name}, which is a setting of the whole application",
                expected="settings that a session can have, such as spark.sql.shuffle.partitions",
                found=name,
                hint=f"set it for the application: --conf {name}=VALUE, or [spark] in slackwater.toml",
            )
        try:
            session.conf.set(name, value)
        except (PySparkException, Py4JJavaError) as error:
            raise _refused(definition, name, value, error) from error
    _activate(session)
    return session


def require_classes(session: SparkSession, definition: StreamDefinition) -> None:
    """Raises PipelineError for a setting with an unloadable class: Spark asks for it later."""
    jvm: Any = session.sparkContext._jvm
    for name in _CLASSES:
        value = session.conf.get(name, None)
        try:
            if value is not None:
                jvm.org.apache.spark.util.Utils.classForName(value, False, False)
        except Py4JJavaError as error:
            raise _refused(definition, name, value or "", error) from error


def distinct(sessions: Iterable[SparkSession]) -> list[SparkSession]:
    """The sessions without duplicates: a listener belongs to a session's streams."""
    return list({str(one._jsparkSession.sessionUUID()): one for one in sessions}.values())


def overridden(definition: StreamDefinition, newest: OffsetEntry | None) -> tuple[str, ...]:
    """Sentences for stream settings without effect, because the checkpoint pins different values."""
    if newest is None or newest.metadata is None:
        return ()
    used: Mapping[str, str] = {**ABSENT, **settings_of(newest)}
    other = [
        (name, value, used[name])
        for name, value in definition.settings.items()
        if name in PINNED and used.get(name, value) != value
    ]
    return tuple(
        f"{name} is {value} in the settings of the stream, and Spark uses {pinned}, which the checkpoint pins; to "
        f"start again with the new value: {command('plan', 'reset', definition.full_name)}"
        for name, value, pinned in other
    )


@contextmanager
def with_settings(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    before = {key: session.conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            session.conf.set(key, value)
        yield
    finally:
        for key, kept in before.items():
            if kept is None:
                session.conf.unset(key)
            else:
                session.conf.set(key, kept)


@contextmanager
def active(session: SparkSession) -> Iterator[None]:
    """Make a session active in this thread: Spark's optimiser uses its settings."""
    sessions = _sessions(session)
    known, before = SparkSession._activeSession, sessions.getActiveSession()
    _activate(session)
    try:
        yield
    finally:
        SparkSession._activeSession = known
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def _activate(session: SparkSession) -> None:
    # As ``createDataFrame`` does it: Python keeps the active session next to the JVM.
    SparkSession._activeSession = session
    _sessions(session).setActiveSession(session._jsparkSession)


def _sessions(session: SparkSession) -> Any:
    sql: Any = session.sparkContext._jvm
    sql = sql.org.apache.spark.sql
    # Spark 4.0 has moved the class of this session to the package ``classic``; the class of the old name is abstract.
    return sql.SparkSession if str(session.version).startswith("3.") else sql.classic.SparkSession


def _refused(definition: StreamDefinition, name: str, value: str, error: Exception) -> PipelineError:
    thrown = getattr(error, "java_exception", None)
    reason = str(thrown.getMessage()) if thrown is not None else str(error).splitlines()[0]
    shown = mask_setting(name, value)
    return PipelineError(
        "stream-setting",
        f"Spark cannot use a setting of stream {definition.full_name}: {reason.replace(value, shown)}",
        where=name,
        found=shown,
        hint="correct it in @pipeline.stream(..., settings={...})"
        if name in definition.settings
        else "correct it in --conf, or in [spark] in slackwater.toml",
    )


_CALLS: Mapping[type, tuple[str, ...]] = {
    DataFrameReader: ("option", "options", "jdbc"),
    DataFrameWriter: ("option", "options", "jdbc"),
    DataFrameWriterV2: ("option", "options"),
    DataStreamReader: ("option", "options"),
    DataStreamWriter: ("option", "options"),
    RuntimeConfig: ("set",),
}
_REMEMBERS = "_slackwater_remembers"


def remember_options() -> None:
    """Remember secrets in options for the rest of the process: batches make such calls, too."""
    for owner, names in _CALLS.items():
        for name in names:
            original = getattr(owner, name)
            if not hasattr(original, _REMEMBERS):
                setattr(owner, name, _remembering(original))


def _remembering(original: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def call(*arguments: Any, **named: Any) -> Any:
        # PySpark reports a wrong call in its own words.
        with suppress(TypeError):
            bound = signature.bind(*arguments, **named).arguments
            if "key" in bound:
                KNOWN_SECRETS.remember(str(bound["key"]), bound.get("value"))
            KNOWN_SECRETS.remember("url", bound.get("url"))
            for options in (bound.get("options"), bound.get("properties")):
                KNOWN_SECRETS.remember_all(options or {})
        return original(*arguments, **named)

    setattr(call, _REMEMBERS, True)
    return call
