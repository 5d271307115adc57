from __future__ import annotations

import json
import math
import os
import re
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO

import slackwater
from slackwater.cli.common.arguments import Format, shortened
from slackwater.core.checkpoint import Marks
from slackwater.core.errors import Refused, SlackwaterError, UsageError
from slackwater.core.escaping import printable
from slackwater.core.masking import KNOWN_SECRETS, mask
from slackwater.core.records import RunRecord
from slackwater.core.settings import Settings, load
from slackwater.core.units import iso_text, utc_text
from slackwater.storage.registry import configure
from slackwater.storage.waits import WAITS

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment
    from rich.status import Status

_NOT_THE_USERS = (
    f"{Path(slackwater.__file__).parent}/",
    f"{Path(os.__file__).parent}/",
    "/site-packages/",
    "/pyspark/",
    "/py4j/",
    # Such as ``<frozen importlib._bootstrap>``.
    "<",
)
"""Parts of the names of files that are Slackwater's or a library's."""


def timestamp(epoch_ms: int | None) -> str:
    """The time in UTC; ``-`` if there is none (Spark's watermark starts at 0)."""
    if not epoch_ms or epoch_ms < 0:
        return "-"
    return utc_text(epoch_ms)


def shown_time(iso_time: str | None) -> str:
    """The time of a document as a page shows it."""
    return "-" if iso_time is None else f"{iso_time.partition('.')[0].replace('T', ' ')} UTC"


def number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def mark(batch: int | None) -> str:
    return "-" if batch is None or batch < 0 else str(batch)


def cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def marks_document(marks: Marks, *others: str) -> dict[str, int | None]:
    return copied(marks, "planned", "committed", "state", *others)


def copied(source: object, *names: str, **renamed: str) -> dict[str, Any]:
    """The fields of a document that a value has under the same names, or under other names."""
    fields = {name: name for name in names} | renamed
    return {name: getattr(source, field) for name, field in fields.items()}


def iso(epoch_ms: int | None) -> str | None:
    """ISO 8601 in UTC; ``None`` for no time and for 0, an unset watermark of Spark."""
    if not epoch_ms or epoch_ms < 0:
        return None
    return iso_text(epoch_ms)


def times(source: object, *names: str) -> dict[str, str | None]:
    """``started``, in ISO 8601, for a value's ``started_ms``."""
    return {name: iso(getattr(source, f"{name}_ms")) for name in names}


def run_document(run: RunRecord, end: str | None) -> dict[str, Any]:
    """``end`` is seen now."""
    fields = copied(run, "id", "generation", "spark_version") | times(run, "started", "ended")
    return {**fields, "end": end, "reason": run.reason}


def offset_value(text: str | None) -> Any:
    """The parsed value if it is JSON, else Spark's string."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


_shown_as = Format.TEXT
_debug = False


SHORTEST_INTERVAL_S = 0.5
WIDTH_OF_FILES = 200
"""Lines in files and pipes are not folded at 80 columns."""

_CONF_KEY = re.compile(r"[^\s=]+")
_SETTING_NAME = re.compile(r"[^\w.\-]")
_DURATION = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)([smhd]?)")
_UNITS_S = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_LONGEST_S = 366_000 * 86_400
"""A thousand years: sums with a timestamp stay within 64 bits."""


def out(*, width_of_files: int = WIDTH_OF_FILES) -> Console:
    return _console(sys.stdout, width_of_files)


def err() -> Console:
    return _console(sys.stderr, WIDTH_OF_FILES)


def _console(file: TextIO, width_of_files: int) -> Console:
    from rich import console, segment  # noqa: PLC0415 - pages of plain text and documents need none

    class PlainConsole(console.Console):
        def on_broken_pipe(self) -> None:
            """Rich would exit with 1, but a reader that has closed the pipe is no error."""
            raise BrokenPipeError

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            """Escapes data; rich's control codes are separate segments."""
            for part in super().render(renderable, options):
                yield part if part.control else segment.Segment(printable(part.text), part.style)

    # No markup: a failure reason or a path can contain "[/x]".
    width = None if file.isatty() else width_of_files
    return PlainConsole(file=file, highlight=False, markup=False, width=width)


def write(text: str) -> None:
    sys.stdout.write(printable(text))


def say(text: str) -> None:
    sys.stderr.write(f"{printable(text)}\n")
    sys.stderr.flush()


def prepare(
    home: str | None, shown_as: Format = Format.TEXT, *, logging: bool = False, debug: bool = False
) -> Settings:
    """The settings of a verb, whose errors are shown in its format. ``logging`` is for verbs with log output, ``debug``
    adds the user's traceback.
    """
    global _shown_as, _debug
    _shown_as, _debug = shown_as, debug
    settings = load(home=home)
    if settings.storage:
        configure(settings.storage)
    if logging:
        from slackwater.core import logs  # noqa: PLC0415 - light start

        logs.configure(level=settings.log_level, json=settings.log_format == "json")
    in_json = shown_as is Format.JSON or (logging and settings.log_format == "json")
    WAITS.report_to(None if in_json else lambda location, waited_s: say(f"waiting for {mask(location)} ({waited_s} s)"))
    return settings


def parse_conf(pairs: list[str] | None) -> dict[str, str]:
    """Parses ``--conf key=value``. Raises UsageError."""
    settings: dict[str, str] = {}
    for pair in pairs or []:
        key, equals, value = pair.partition("=")
        if not equals or not _CONF_KEY.fullmatch(key.strip()) or not value.isprintable():
            raise UsageError(
                "conf-format",
                "A --conf must be KEY=VALUE",
                expected="such as spark.sql.shuffle.partitions=8",
                # What follows the name may be a password.
                found=f"{shortened(_SETTING_NAME.split(pair, maxsplit=1)[0])}, and what follows it is not shown",
            )
        settings[key.strip()] = value.strip()
    KNOWN_SECRETS.remember_all(settings)
    return settings


def parse_seconds(text: str) -> float:
    """Parses ``90``, ``90s``, ``5m``, ``2h`` or ``3d`` as seconds. Raises UsageError."""
    match = _DURATION.fullmatch(text)
    seconds = float(match[1]) * _UNITS_S[match[2]] if match else -1.0
    if not 0 <= seconds <= _LONGEST_S:
        raise UsageError(
            "duration",
            "A duration cannot be parsed",
            expected="a number and a unit of s, m, h or d, such as 90s, 5m, 2h or 1d",
            found=shortened(text),
        )
    return seconds


def parse_interval(text: str, what: str) -> float:
    """As ``parse_seconds``. Raises UsageError, too, if ``what`` is too short."""
    interval_s = parse_seconds(text)
    if interval_s < SHORTEST_INTERVAL_S:
        least = f"at least {SHORTEST_INTERVAL_S} s"
        raise UsageError("watch-interval", f"{what} is too short", expected=least, found=text)
    return interval_s


def print_json(value: object, *, in_one_line: bool = False) -> None:
    """A JSON document on stdout. A number that JSON cannot write is a string: ``"NaN"``, ``"Infinity"``."""
    indent = None if in_one_line else 2
    try:
        document = json.dumps(value, indent=indent, default=str, allow_nan=False)
    except ValueError:
        document = json.dumps(_finite(value), indent=indent, default=str, allow_nan=False)
    sys.stdout.write(document + "\n")


def _finite(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(_finite(key)): _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def show_errors_for(arguments: Sequence[str]) -> None:
    global _shown_as, _debug
    pairs = zip(arguments, (*arguments[1:], ""), strict=False)
    asked = any(one == "--format=json" or (one, value) == ("--format", "json") for one, value in pairs)
    _shown_as, _debug = Format.JSON if asked else Format.TEXT, False


def report_error(error: SlackwaterError) -> None:
    """On stderr, as text or JSON. ``--debug`` adds the user's traceback."""
    trace = mask(user_traceback(error)) if _debug else ""
    if _shown_as is Format.JSON:
        fields = error.as_dict() | ({"traceback": trace} if trace else {})
        sys.stderr.write(json.dumps({"error": fields}) + "\n")
        return
    sys.stderr.write(printable(trace))
    console = err()
    console.print("error", style="bold red", end=" ")
    console.print(error.code, style="bold", end=": ")
    # Not folded: one line each, so that grep finds all of it.
    console.print(str(error), soft_wrap=True)
    if error.hint:
        _print_hint(error.hint)


def user_traceback(error: BaseException) -> str:
    """The traceback of the innermost exception that passed through the user's code, else empty.

    It has no frames of Slackwater and libraries. For a function in a worker of Spark it is in a note of the error.
    """
    import traceback  # noqa: PLC0415 - only --debug needs it

    notes: list[str] = getattr(error, "__notes__", [])
    if notes:
        return "".join(f"{note}\n" for note in notes)
    found = ""
    cause: BaseException | None = error
    while cause is not None:
        frames = traceback.extract_tb(cause.__traceback__)
        users = [frame for frame in frames if not any(part in frame.filename for part in _NOT_THE_USERS)]
        if users or isinstance(cause, SyntaxError):
            shown = (*traceback.format_list(users), *traceback.format_exception_only(cause))
            found = f"Traceback (most recent call last):\n{''.join(shown)}"
        cause = cause.__cause__
    return found


def report_interrupt(interrupt: KeyboardInterrupt) -> None:
    console = err()
    console.print("interrupted")
    for note in getattr(interrupt, "__notes__", ()):
        _print_hint(note)


def _print_hint(text: str) -> None:
    console = err()
    console.print("hint", style="bold", end=": ")
    console.print(text, soft_wrap=True)


def confirm(stream: str, what: str, kind: str = "stream", given: str = "--yes") -> None:
    """Have a name typed; ``given`` replaces typing. Raises Refused for another name, UsageError without a terminal."""
    name = stream.rpartition("/")[2]
    if not sys.stdin.isatty():
        raise UsageError("unconfirmed", "There is no terminal to confirm on", hint=f"give {given}")
    try:
        typed = err().input(f"Type the {kind}'s name ({name}) to {what}: ").strip()
    except EOFError:
        typed = ""
    check_name(stream, typed)


def check_name(stream: str, typed: str) -> None:
    """Raises Refused for another name; the stream's may have its pipeline's."""
    name = stream.rpartition("/")[2]
    if typed not in (name, stream):
        raise Refused(
            "name-mistyped",
            "Another name was typed; nothing was changed",
            expected=name,
            found=typed or "nothing",
            hint="repeat the command, and type the name that it asks for",
        )


def interrupt_on_signals() -> None:
    """Raise KeyboardInterrupt for SIGTERM, and for SIGHUP (closed terminal) unless ``nohup`` ignores it."""
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _interrupt)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    # Kernel and shell each send SIGHUP for one closed terminal: another one must not interrupt the ending.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    raise KeyboardInterrupt


class Steps:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._folder: Path | None = None
        self._what = ""
        self._started = self._step_started = time.monotonic()
        self._status: Status | None = None

    def works_in(self, folder: Path) -> None:
        self._folder = folder
        self._console.print(f"Working in {folder}", style="dim")

    def begin(self, what: str) -> None:
        self._what, self._step_started = what, time.monotonic()
        if self._console.is_terminal:
            self._status = self._console.status(f"{what} ...")
            self._status.start()

    def end(self, outcome: str) -> None:
        self.close()
        now = time.monotonic()
        self._console.print(f"{now - self._started:6.1f} s  {self._what}: {outcome} ({now - self._step_started:.1f} s)")

    def interrupted(self) -> None:
        self.close()
        self._console.print(f"Interrupted while: {self._what}.")
        self._console.print(f"All processes have exited. The files are in {self._folder}")

    def close(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None
