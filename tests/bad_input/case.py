"""A row of the tables of bad input, and the steps that prepare its folder.

The folder of a row is a project as a finished run leaves it (``tests.support.homes``): ``clicks.py``, ``clicks/``,
``out/`` and ``.slackwater/``. Steps change it before the command is started there.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import json
import os
import resource
import shlex
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slackwater.cli.main import main
from tests.support.corpus import corpus_folder
from tests.support.homes import ROWS, START_MS, STEP_MS, edit_ledger

CHECKPOINT = ".slackwater/streams/clicks/per_page/checkpoints/0001"
STREAM_FILE = ".slackwater/streams/clicks/per_page/stream.json"
MANIFEST = "out/_spark_metadata"
OPERATIONS = ".slackwater/streams/clicks/per_page/operations"
HOME = ".slackwater"
LEDGER = f"{HOME}/ledger.db"
LONG = "n" * 300
DEEP = "[" * 100_000
BEYOND_64_BITS = 10**30
BINARY = bytes(range(256)) * 8

WINDOWED = """import slackwater as sw
from pyspark.sql import functions as F

pipeline = sw.Pipeline("clicks")


@pipeline.stream(sink=sw.sinks.files("parquet", "out"))
def per_page(spark):
    rows = spark.readStream.schema("ts timestamp").option("maxFilesPerTrigger", 1).json("clicks")
    return rows.withWatermark("ts", "10 minutes").groupBy(F.window("ts", "1 minute")).count()
"""

_PR_CAPBSET_DROP = 24
_CAPABILITIES_OF_ROOT = (1, 2)
"""``CAP_DAC_OVERRIDE`` and ``CAP_DAC_READ_SEARCH``: without them permissions hold for root as for everybody."""


@dataclass
class World:
    """Where a row runs, and what its process is started with; ``in_child`` runs in the child before the command.

    ``operation`` replaces the word ``OPERATION`` in a row's command.
    """

    folder: Path
    directory: Path
    environment: dict[str, str] = field(default_factory=dict)
    in_child: list[Callable[[], object]] = field(default_factory=list)
    operation: str = ""

    def arguments(self, case: Case) -> list[str]:
        """The command of a row, with the id of the operation in it."""
        return [argument.replace("OPERATION", self.operation) for argument in case.arguments]


@dataclass(frozen=True)
class Step:
    """One preparation. ``in_process`` steps change a process's state, so that the row needs a process of its own."""

    name: str
    do: Callable[[World], object]
    in_process: bool = False


class Case:
    """A command as typed, its exit code, and the code of its error (``None``: no error is shown).

    ``creates`` are the files that the command is asked to write; everything else must stay as it was. ``says`` must be
    part of the output. ``spark`` rows start a JVM. ``followed``: the first command that the output names is typed after
    it, and brings the stream in order.
    """

    def __init__(
        self,
        command: str | tuple[str, ...],
        exit_code: int,
        error: str | None,
        *given: Step,
        creates: tuple[str, ...] = (),
        says: str = "",
        spark: bool = False,
        followed: bool = False,
    ) -> None:
        self.arguments = tuple(shlex.split(command)) if isinstance(command, str) else command
        self.exit_code = exit_code
        self.error = error
        self.given = given
        self.creates = creates
        self.says = says
        self.spark = spark
        self.followed = followed

    @property
    def needs_process(self) -> bool:
        """Whether the row cannot run in the test's own process."""
        return self.spark or any(step.in_process for step in self.given)

    @property
    def name(self) -> str:
        """What the row is called in a report: short, and printable whatever it holds."""
        words = [_short(argument) for argument in self.arguments]
        return " ".join([*words, *(f"<{_short(step.name)}>" for step in self.given)])


def refused(exit_code: int, error: str, *commands: str | tuple[str, ...]) -> Iterator[Case]:
    """A row for each of these commands, which are all refused with this error."""
    return (Case(command, exit_code, error) for command in commands)


def each(make: Callable[[Any, str], Case], error: str, *values: str | bytes) -> Iterator[Case]:
    """A row for each of these values, which all end with this error."""
    return (make(value, error) for value in values)


def _short(text: str) -> str:
    printable = ascii(text)[1:-1]
    return printable if len(printable) <= 100 else f"{printable[:20]}...{printable[-77:]}"


def write(path: str, content: str | bytes = "") -> Step:
    data = content.encode() if isinstance(content, str) else content
    shown = f"{path} = {content!r}" if content else f"{path} is empty"
    return Step(shown, lambda world: _new(world, path).write_bytes(data))


def folder(path: str) -> Step:
    """A folder, whatever was there."""
    return Step(f"{path} is a folder", lambda world: _new(world, path).mkdir())


def fifo(path: str) -> Step:
    """A named pipe, whatever was there: opening it to read waits for a writer that never comes."""
    return Step(f"{path} is a fifo", lambda world: os.mkfifo(_new(world, path)))


def link(path: str, target: str) -> Step:
    """A symbolic link, whatever was there."""
    return Step(f"{path} -> {target}", lambda world: _new(world, path).symlink_to(target))


def loop(path: str) -> Step:
    """A symbolic link to itself, whatever was there."""
    return Step(f"{path} is a loop", lambda world: _new(world, path).symlink_to(Path(path).name))


def remove(path: str) -> Step:
    """Nothing where something was."""
    return Step(f"no {path}", lambda world: _new(world, path))


def sql(*statements: str) -> Step:
    return Step("; ".join(statements), lambda world: edit_ledger(world.folder / HOME, *statements))


def replace(path: str, old: str, new: str) -> Step:
    """A string in a file replaced by another one, once."""

    def change(world: World) -> None:
        file = world.folder / path
        text = file.read_text()
        assert old in text, f"{path} has no {old!r}"
        file.write_text(text.replace(old, new, 1))

    return Step(f"{path}: {old} -> {new}", change)


def cut(path: str, size: int) -> Step:
    return Step(f"{path} cut to {size} bytes", lambda world: os.truncate(world.folder / path, size))


def env(**values: str) -> Step:
    return Step(f"env {values}", lambda world: world.environment.update(values))


def cd(path: str) -> Step:
    def change(world: World) -> None:
        world.directory = world.folder / path

    return Step(f"in {path}", change)


def forbid(path: str, mode: int = 0) -> Step:
    """A path with other permissions, and a process for which they hold."""

    def change(world: World) -> None:
        (world.folder / path).chmod(mode)
        world.in_child.append(_without_power_over_permissions)

    return Step(f"{path} has mode {mode:03o}", change, in_process=True)


def of_somebody_else(path: str) -> Step:
    """A folder that only another user may enter."""

    def change(world: World) -> None:
        target = world.folder / path
        if os.geteuid() == 0:
            target.chmod(0o700)
            shutil.chown(target, 65534, 65534)
        else:
            target.chmod(0)
        world.in_child.append(_without_power_over_permissions)

    return Step(f"{path} belongs to another user", change, in_process=True)


def closed(*descriptors: int) -> Step:
    """Started without stdin, stdout or stderr."""

    def change(world: World) -> None:
        world.in_child.extend(functools.partial(os.close, number) for number in descriptors)

    return Step(f"{descriptors} closed", change, in_process=True)


def removed_directory() -> Step:
    """Started in a folder that is removed before the command reads it."""

    def change(world: World) -> None:
        world.directory = world.folder.parent / "removed"
        world.directory.mkdir()
        world.in_child.append(world.directory.rmdir)

    return Step("the working directory is removed", change, in_process=True)


def largest_file(size: int) -> Step:
    """No file may grow beyond so many bytes: the nearest to a full disk that needs no disk of its own."""

    def change(world: World) -> None:
        world.in_child.append(lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)))

    return Step(f"files of at most {size} bytes", change, in_process=True)


def corpus(case: str, path: str, version: str = "4.3.0") -> Step:
    def copy(world: World) -> None:
        shutil.copytree(corpus_folder(version, case) / "checkpoint", _new(world, path))

    return Step(f"{path} is of {case}", copy)


def operation(*damage: Callable[[Path, str], object]) -> Step:
    """An operation that was recorded and not finished, with the plan of ``plan.json``; then the damage to it."""

    def change(world: World) -> None:
        plan = world.folder / "plan.json"
        world.operation = json.loads(plan.read_text())["id"]
        target = world.folder / OPERATIONS / world.operation
        target.mkdir(parents=True)
        shutil.copyfile(plan, target / "plan.json")
        edit_ledger(
            world.folder / HOME,
            "INSERT INTO operations (id, stream, goal, status, started_ms, summary) VALUES (?, ?, ?, ?, ?, ?)",
            values=(world.operation, "clicks/per_page", "rebuild", "applying", 0, str(target / "plan.json")),
        )
        for one in damage:
            one(target, world.operation)

    return Step(f"an operation {' '.join(getattr(one, '__name__', 'x') for one in damage)}", change)


def in_a_process(**environment: str) -> Step:
    """A process of its own, as a shell starts it."""
    return Step(f"in a process {environment}", lambda world: world.environment.update(environment), in_process=True)


def windowed() -> Step:
    """A query that Spark runs, in the place of the made-up one, its input, and a plan to go back to batch 3."""

    def change(world: World) -> None:
        (world.folder / "clicks.py").write_text(WINDOWED)
        for number in range(6):
            times = [START_MS + number * STEP_MS + row * STEP_MS // ROWS for row in range(ROWS)]
            rows = "".join(json.dumps({"ts": time / 1000}) + "\n" for time in times)
            file = world.folder / "clicks" / f"{number:03d}.json"
            written_ns = file.stat().st_mtime_ns
            file.write_text(rows)
            os.utime(file, ns=(written_ns, written_ns))
        code = hashlib.sha256(WINDOWED.encode()).hexdigest()
        edit_ledger(world.folder / HOME, "UPDATE runs SET code = ?", values=(code,))
        with contextlib.chdir(world.folder):
            assert main(["plan", "rebuild", "per_page", "--at", "batch:3", "--out", "plan.json", "--force"]) == 0

    return Step("a query with windows", change)


def ctrl_c_when_journal_has(lines: int) -> Step:
    """Ctrl-C, which a terminal sends to all processes of a command, as soon as an operation has come so far."""

    def change(world: World) -> None:
        def start_watcher() -> None:
            command = os.getpid()
            # Children of a shell's background job inherit that Ctrl-C is ignored.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            if os.fork() == 0:
                # Or whoever started the command would wait for the ends of its pipes that are open here.
                os.closerange(0, 256)
                while os.getppid() == command and len(_journal(world)) < lines:
                    time.sleep(0.01)
                os.killpg(command, signal.SIGINT)

        world.in_child += [os.setsid, start_watcher]

    return Step(f"Ctrl-C at line {lines} of the journal", change, in_process=True)


def _journal(world: World) -> list[str]:
    return [line for file in (world.folder / OPERATIONS).glob("*/journal.jsonl") for line in file.read_text().split()]


def _new(world: World, path: str) -> Path:
    target = world.folder / path
    if target.is_dir() and not target.is_symlink():
        shutil.rmtree(target)
    else:
        target.unlink(missing_ok=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def _without_power_over_permissions() -> None:
    if os.geteuid() == 0:
        for capability in _CAPABILITIES_OF_ROOT:
            assert ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) == 0
