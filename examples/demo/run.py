"""The use case of ``slackwater demo``: a folder, for Kafka a broker, for PostgreSQL a server, and the steps in it."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, Protocol

from examples.demo.broker import Broker
from examples.demo.commands import Commands
from examples.demo.gold_table import GoldTable, address_of_database, new_gold_table
from examples.demo.postgres_server import PostgresServer, check_programs
from examples.demo.result import DemoResult, Source, TablesResult
from examples.demo.steps import FillTopic, Progress
from examples.demo.story import Story
from examples.demo.tables_story import TablesStory
from examples.demo.topic import fill_topic
from slackwater.core.errors import EnvironmentMissing, UsageError

BROKERS_VARIABLE = "WEATHER_BROKERS"
NEEDED = {"psycopg": "'psycopg[binary]'", "adbc_driver_postgresql": "adbc-driver-postgresql", "deltalake": "deltalake"}
"""Modules that the tables need, and the package of each."""


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """``folder``: where to work, kept afterwards; without it a temporary one, which is removed unless ``keep`` is set
    or rows are not equal.

    ``postgres_url``: a database for the last stage; without it a server is started for sink ``postgres``.
    """

    source: Source = "files"
    sink: Literal["files", "postgres"] = "files"
    postgres_url: str | None = None
    folder: Path | None = None
    keep: bool = False


class DemoProgress(Progress, Protocol):
    """Receives the progress of the demo and its folder."""

    def works_in(self, folder: Path) -> None:
        """The folder, as soon as there is one."""


def demo(options: DemoOptions, progress: DemoProgress) -> DemoResult | TablesResult:
    """Run the demo. Whatever happens, no process that it started keeps running.

    Where it fails, is interrupted or finds other rows the folder is kept for diagnosis. Raises UsageError for a folder
    that is not empty, EnvironmentMissing, and StreamFailed where a step does not do what it should.
    """
    _check_sink(options)
    folder = _folder(options.folder)
    progress.works_in(folder)
    result = _run(options, folder, progress)
    return keep_or_remove(result, options, folder)


def keep_or_remove(result: DemoResult | TablesResult, options: DemoOptions, folder: Path) -> DemoResult | TablesResult:
    """The result, with the folder where it is kept: on request, or because it shows which rows are not equal."""
    if options.folder or options.keep or not result.equal:
        return replace(result, folder=str(folder))
    shutil.rmtree(folder)
    return result


def _check_sink(options: DemoOptions) -> None:
    if options.sink == "files":
        if options.postgres_url is not None:
            raise UsageError(
                "demo-postgres-url",
                "The address of a database is given, and the demo would not use it",
                hint="slackwater demo --sink postgres --postgres-url URL",
            )
        return
    for module, package in NEEDED.items():
        if find_spec(module) is None:
            raise EnvironmentMissing(
                "extra-missing",
                f"The demo with tables needs the package {module}",
                hint=f"pip install {package}",
            )
    if options.postgres_url is None:
        check_programs()
    else:
        address_of_database(options.postgres_url)


def _run(options: DemoOptions, folder: Path, progress: Progress) -> DemoResult | TablesResult:
    with ExitStack() as stack:
        environment: dict[str, str] = {}
        topic: FillTopic | None = None
        table: GoldTable | None = None
        if options.sink == "postgres":
            table = _gold_table(stack, options, progress)
            environment |= table.environment()
        if options.source == "kafka":
            brokers = _start_broker(stack, folder / "broker", progress)
            environment[BROKERS_VARIABLE] = brokers
            topic = partial(fill_topic, brokers)
        commands = stack.enter_context(Commands(folder / "logs", environment))
        if table is None:
            return Story(folder, commands, progress, topic).run()

        return TablesStory(folder, commands, progress, table, topic).run()


def _gold_table(stack: ExitStack, options: DemoOptions, progress: Progress) -> GoldTable:
    url, keep = options.postgres_url, bool(options.keep or options.folder)
    if url is None:
        progress.begin("Starting a PostgreSQL server")
        url, keep = stack.enter_context(PostgresServer.running()).url("postgres"), False
        progress.end("until the demo ends")
    progress.begin("Creating a schema for the table of the last stage")
    table = stack.enter_context(new_gold_table(url, keep=keep))
    progress.end(f"{table.name}, kept at the end" if keep else f"{table.name}, dropped at the end")
    return table


def _start_broker(stack: ExitStack, folder: Path, progress: Progress) -> str:
    progress.begin("Starting a Kafka broker")
    broker = stack.enter_context(Broker.start(folder))
    progress.end(f"at {broker.bootstrap_servers}")
    return broker.bootstrap_servers


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
            hint="choose a different folder with --folder",
        )
    return folder
