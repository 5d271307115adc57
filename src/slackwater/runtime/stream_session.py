"""Provides the session for a stream's query: the application's, or its own if the stream has settings.

Sessions share context, jars and catalog. Settings, temporary views and registered functions are per session, and Spark
clones a query's session at its start: streams do not see each other's settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from slackwater.core.checkpoint import OffsetEntry
from slackwater.core.commands import command
from slackwater.core.errors import PipelineError
from slackwater.core.masking import mask_setting
from slackwater.diagnose.checks.common.settings import ABSENT, PINNED, PROVIDER, settings_of
from slackwater.runtime.sql_settings import HOW_IT_RUNS, PREFIX

if TYPE_CHECKING:
    from slackwater.runtime.pipeline import StreamDefinition

_CLASSES = (
    PROVIDER,
    "spark.sql.streaming.checkpointFileManagerClass",
    "spark.sql.streaming.commitProtocolClass",
)
"""Settings with the name of a class that a started query loads later."""


def session_of(spark: SparkSession, definition: StreamDefinition) -> SparkSession:
    """The stream's session, active in this thread: code that builds the query asks for it.

    Raises PipelineError for a setting that a session or Spark rejects.
    """
    session = spark.newSession() if definition.settings else spark
    for name, value in definition.settings.items():
        _check_of_a_session(session, definition, name)
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


def _check_of_a_session(session: SparkSession, definition: StreamDefinition, name: str) -> None:
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
