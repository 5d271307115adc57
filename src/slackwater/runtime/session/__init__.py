"""Starts Spark, and sets a session. Here: a session's options and their checks, without importing Spark."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from slackwater.connectors.machine import java_program, pyspark_missing
from slackwater.core.commands import session_words
from slackwater.core.errors import UsageError
from slackwater.storage.hadoop import hadoop_settings
from slackwater.storage.open import connectors_of, is_uri, local_path_of

if TYPE_CHECKING:
    from slackwater.core.settings import Settings
    from slackwater.runtime.loader import LoadedPipeline


_DEFAULT_STORE = "spark.hadoop.fs.defaultFS"
WORKER_PATH = "spark.executorEnv.PYTHONPATH"
"""PySpark passes it to every Python worker, also with a local master; the JVM's own PYTHONPATH comes after it."""


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """``settings`` are Spark's own and override defaults.

    ``existing``: use the application's session. ``file`` is the pipeline file; cluster workers get its modules.
    ``brief``: a short session. ``words`` are the command line options for it.
    """

    application: str = ""
    master: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    connectors: tuple[str, ...] = ()
    existing: bool = False
    file: Path | None = None
    brief: bool = False
    words: tuple[str, ...] = ()


def session_options(
    loaded: LoadedPipeline,
    settings: Settings,
    master: str | None = None,
    spark: Mapping[str, str] | None = None,
    *,
    brief: bool = False,
) -> SessionOptions:
    """The session's options. Python workers can import modules in the pipeline file's folder."""
    chosen = {**settings.spark, **(spark or {})}
    words = session_words(master, spark or {})
    if loaded.runs_itself:
        return SessionOptions(settings=chosen, existing=True, words=words)
    streams = loaded.pipeline.streams.values()
    named = [stream.checkpoint or str(settings.home) for stream in streams]
    named += [path for stream in streams if (path := stream.sink.identity().get("path")) is not None]
    of_stores = connectors_of([str(settings.home), *named])
    _check_default_store(chosen, named)
    paths = [str(loaded.file.parent), *filter(None, chosen.get(WORKER_PATH, "").split(os.pathsep))]
    return SessionOptions(
        application=f"slackwater {loaded.pipeline.name}",
        master=master or settings.master,
        settings={**chosen, WORKER_PATH: os.pathsep.join(dict.fromkeys(paths))},
        connectors=tuple(sorted({*loaded.connectors, *settings.connectors, *of_stores})),
        file=loaded.file,
        brief=brief,
        words=words,
    )


def _check_default_store(spark: Mapping[str, str], named: Iterable[str]) -> None:
    """Raises UsageError (``default-file-system``) if Spark would look elsewhere for a path without a scheme."""
    default = spark.get(_DEFAULT_STORE) or hadoop_settings().get("fs.defaultFS", "")
    local = next((one for one in named if not is_uri(one)), None)
    if default and local_path_of(default) is None and local is not None:
        raise UsageError(
            "default-file-system",
            f"A local path would be resolved on {default} for Spark: it is the default of Hadoop's configuration",
            where=local,
            expected=f"URIs of the home, of checkpoints and of outputs, such as {default.rstrip('/')}/folder",
            found="a path without a scheme",
            hint="write a URI with the store; or, if no path of the pipeline is on it, set "
            f'"{_DEFAULT_STORE}" = "file:///" under [spark] in slackwater.toml',
        )


def require_spark() -> None:
    """Raises EnvironmentMissing without PySpark or Java."""
    try:
        metadata.version("pyspark")
    except metadata.PackageNotFoundError as error:
        raise pyspark_missing() from error
    java_program()


def spark_version() -> str:
    return metadata.version("pyspark")


def given_to(settings: Settings, master: str | None, spark: Mapping[str, str] | None = None) -> SessionOptions:
    """For an application's own session: settings apply unless it sets them, and jars of connectors are added."""
    chosen = master or settings.master
    of_session = {**settings.spark, **(spark or {}), **({"spark.master": chosen} if chosen else {})}
    words = session_words(master, spark or {})
    return SessionOptions(settings=of_session, connectors=settings.connectors, words=words)
