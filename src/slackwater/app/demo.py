"""The use case of ``slackwater demo``: a folder, for Kafka a broker, and the demo's steps in it."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

from slackwater.demo.commands import Commands
from slackwater.demo.result import DemoResult
from slackwater.demo.story import FillTopic, Progress, Story
from slackwater.errors import UsageError

BROKERS_VARIABLE = "WEATHER_BROKERS"


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """``folder``: where to work, kept afterwards; without it a temporary one, which is removed unless ``keep``."""

    source: Literal["files", "kafka"] = "files"
    folder: Path | None = None
    keep: bool = False


class DemoProgress(Progress, Protocol):
    """Receives the progress of the demo and its folder."""

    def works_in(self, folder: Path) -> None:
        """The folder, as soon as there is one."""


def demo(options: DemoOptions, progress: DemoProgress) -> DemoResult:
    """Run the demo. Whatever happens, no process that it started keeps running.

    Where it fails or is interrupted the folder is kept for diagnosis. Raises UsageError for a folder
    that is not empty, EnvironmentMissing, and StreamFailed where a step does not do what it should.
    """
    folder = _folder(options.folder)
    progress.works_in(folder)
    result = _run(options.source, folder, progress)
    if options.folder or options.keep:
        return replace(result, folder=str(folder))
    shutil.rmtree(folder)
    return result


def _run(source: str, folder: Path, progress: Progress) -> DemoResult:
    with ExitStack() as stack:
        environment: dict[str, str] = {}
        fill_topic: FillTopic | None = None
        if source == "kafka":
            brokers = _start_broker(stack, folder / "broker", progress)
            environment[BROKERS_VARIABLE] = brokers
            fill_topic = _fill(brokers)
        commands = stack.enter_context(Commands(folder / "logs", environment))
        return Story(folder, commands, progress, fill_topic).run()


def _start_broker(stack: ExitStack, folder: Path, progress: Progress) -> str:
    from slackwater.demo.broker import Broker  # noqa: PLC0415 - only the demo over Kafka needs it

    progress.begin("Starting a Kafka broker")
    broker = stack.enter_context(Broker.start(folder))
    progress.end(f"at {broker.bootstrap_servers}")
    return broker.bootstrap_servers


def _fill(brokers: str) -> FillTopic:
    from slackwater.demo.topic import fill_topic  # noqa: PLC0415 - needs an extra

    return partial(fill_topic, brokers)


def _folder(wanted: Path | None) -> Path:
    if wanted is None:
        return Path(tempfile.mkdtemp(prefix="slackwater-demo-"))
    folder = wanted.absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        empty, reason = not any(folder.iterdir()), "a folder that is not empty"
    except OSError as error:
        empty, reason = False, error.strerror or str(error)
    if not empty:
        raise UsageError(
            "demo-folder",
            "The demo's folder must be a new or an empty one",
            where=str(folder),
            found=reason,
            hint="choose another with --folder",
        )
    return folder
