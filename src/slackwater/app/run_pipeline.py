"""Use case: run the streams of a pipeline file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from slackwater.runtime.loader import LoadedPipeline, load
from slackwater.runtime.session import SessionOptions, require_spark
from slackwater.settings import Settings

if TYPE_CHECKING:
    from slackwater.app.acting import Consent
    from slackwater.runtime.runner import RunDisplay
    from slackwater.runtime.stream_run import StreamOutcome

WORKER_PATH = "spark.executorEnv.PYTHONPATH"
"""PySpark hands it to every Python worker, with a local master too; the JVM's own PYTHONPATH comes after it."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a run. ``seconds`` ends the run by a drain; ``spark`` are ``--conf`` settings."""

    streams: tuple[str, ...] = ()
    until_caught_up: bool = False
    seconds: float | None = None
    master: str | None = None
    spark: Mapping[str, str] = field(default_factory=dict)
    consent: Consent = None


def run_pipeline(
    reference: str, options: RunOptions, settings: Settings, display: RunDisplay
) -> tuple[StreamOutcome, ...]:
    """Load the pipeline, run it, and return how each stream ended. Raises what ``runtime.runner.run`` raises."""
    require_spark()
    loaded = load(reference)
    display.say("starting Spark")
    # Imported after that line: they and Spark take seconds, in which nothing else is shown.
    from slackwater.app.acting import acting  # noqa: PLC0415
    from slackwater.app.workspace import open_workspace  # noqa: PLC0415
    from slackwater.runtime.runner import RunRequest, run  # noqa: PLC0415

    session = session_options(loaded, settings, options.master, options.spark)
    request = RunRequest(loaded, session, options.streams, options.until_caught_up, options.seconds, settings.restarts)
    with open_workspace(settings, create=True) as workspace:
        acting(workspace, options.consent, display.say)
        return run(request, workspace.home, workspace.ledger, display)


def session_options(
    loaded: LoadedPipeline, settings: Settings, master: str | None = None, spark: Mapping[str, str] | None = None
) -> SessionOptions:
    """The session that this pipeline runs in. Python workers can import the modules in the folder of its file."""
    chosen = {**settings.spark, **(spark or {})}
    paths = [str(loaded.file.parent), *filter(None, chosen.get(WORKER_PATH, "").split(os.pathsep))]
    return SessionOptions(
        application=f"slackwater {loaded.pipeline.name}",
        master=master or settings.master,
        settings={**chosen, WORKER_PATH: os.pathsep.join(dict.fromkeys(paths))},
        connectors=tuple(sorted({*loaded.connectors, *settings.connectors})),
    )
