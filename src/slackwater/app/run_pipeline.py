"""Use case: run the streams of a pipeline file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from slackwater.app.workspace import open_workspace
from slackwater.runtime.loader import LoadedPipeline, load
from slackwater.runtime.runner import RunDisplay, RunRequest, run
from slackwater.runtime.session import SessionOptions, require_spark
from slackwater.runtime.stream_run import StreamOutcome
from slackwater.settings import Settings


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What the user asked for. ``seconds`` ends the run by a drain; ``spark`` are ``--conf`` settings."""

    streams: tuple[str, ...] = ()
    until_caught_up: bool = False
    seconds: float | None = None
    master: str | None = None
    spark: Mapping[str, str] = field(default_factory=dict)


def run_pipeline(
    reference: str, options: RunOptions, settings: Settings, display: RunDisplay
) -> tuple[StreamOutcome, ...]:
    """Load the pipeline, run it, and say how each stream ended. Raises what ``runtime.runner.run`` raises."""
    require_spark()
    loaded = load(reference)
    session = session_options(loaded, settings, options.master, options.spark)
    request = RunRequest(loaded, session, options.streams, options.until_caught_up, options.seconds, settings.restarts)
    with open_workspace(settings, create=True) as workspace:
        return run(request, workspace.home, workspace.ledger, display)


def session_options(
    loaded: LoadedPipeline, settings: Settings, master: str | None = None, spark: Mapping[str, str] | None = None
) -> SessionOptions:
    """The session that this pipeline runs in, with the file's folder on the path of Python workers."""
    folder = str(loaded.file.parent)
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if folder not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([folder, *paths])
    return SessionOptions(
        application=f"slackwater {loaded.pipeline.name}",
        master=master or settings.master,
        settings={**settings.spark, **(spark or {})},
        connectors=tuple(sorted({*loaded.connectors, *settings.connectors})),
    )
