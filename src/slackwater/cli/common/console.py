from __future__ import annotations

import json
import math
import os
import re
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

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


Document: TypeAlias = dict[str, Any]
"""What a verb writes in JSON, or a part of it."""


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


def marks_document(marks: Marks, *others: str) -> dict[str, int | None]:
    return copied(marks, "planned", "committed", "state", *others)


def copied(source: object, *names: str, **renamed: str) -> Document:
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


def run_document(run: RunRecord, end: str | None) -> Document:
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
_WIDTH_OF_FILES = 1 << 16
"""Lines in files and pipes are not folded."""
_LABEL = re.compile(r"\s*(?:(?:-|\d+\.) +|\S+(?: \S+)*?  +)?")
"""Before the text of a line: spaces, a bullet, or a label."""
_SEPARATORS = (re.compile(r"[/,;:=&?(\[{]"), re.compile(r"[\W_]"))
_COMMAND = re.compile(r"(?:^|[ `(])((?:slackwater|mv|pip install) (?:(?![;,] |`).)*)$")

_CONF_KEY = re.compile(r"[^\s=]+")
_SETTING_NAME = re.compile(r"[^\w.\-]")
_DURATION = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)([smhd]?)")
_UNITS_S = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_LONGEST_S = 366_000 * 86_400
"""A thousand years: sums with a timestamp stay within 64 bits."""


def folds(text: str, width: int) -> Iterator[tuple[str, int, int]]:
    """The parts of a text that fit the width (from 4), each with the text before it. A line is broken before a word, or
    in a longer word after a separator. A broken command can be copied to a shell.
    """
    at = 0
    for line in text.split("\n"):
        for before, start, end in _folds(line, max(width, 4)):
            yield before or "\n" * bool(at), at + start, at + end
        at += len(line) + 1


def _folds(line: str, width: int) -> Iterator[tuple[str, int, int]]:
    label = len(line) - len(_LABEL.sub("", line, count=1))
    if label > width // 3:
        label = min(len(line) - len(line.lstrip()) + 2, width // 3)
    before, start, room = "", 0, width
    while len(line) - start > room:
        typed = _COMMAND.search(line, 0, start + room)
        limit, first = start + room - (2 if typed else 0), max(start + 1, label)
        space = line.rfind(" ", first, limit + 1)
        while typed and line.count("'", typed.start(1), space) % 2 and space > typed.start(1):
            space = line.rfind(" ", first, space)
        word_end = line.find(" ", space + 1) if space >= 0 else -1
        end = space
        if space < 0 or (word_end if word_end >= 0 else len(line)) - space - 1 > width - label:
            within = ([one.end() for one in part.finditer(line, max(space + 1, first), limit)] for part in _SEPARATORS)
            end = next((ends[-1] for ends in within if ends), space if space >= 0 else limit)
        yield before, start, end
        is_word_broken = line[end] != " "
        before = ("\\\n" if is_word_broken else " \\\n") if typed else "\n"
        room = width if typed and is_word_broken else width - label
        before += " " * (width - room)
        start = end if is_word_broken else end + 1
    yield before, start, len(line)


def folded(file: TextIO, text: str) -> str:
    if not file.isatty():
        return text
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdecimal() else os.get_terminal_size(file.fileno()).columns or 80
    return "".join(before + text[start:end] for before, start, end in folds(text, width))


def out() -> Console:
    return _console(sys.stdout)


def err() -> Console:
    return _console(sys.stderr)


def _console(file: TextIO) -> Console:
    from rich import console, segment, text  # noqa: PLC0415 - pages of plain text and documents need none

    class PlainConsole(console.Console):
        def on_broken_pipe(self) -> None:
            """Rich would exit with 1, but a reader that has closed the pipe is no error."""
            raise BrokenPipeError

        def print(self, *objects: Any, **options: Any) -> None:
            super().print(*objects, **{"crop": False, **options})

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            """Folds and escapes data; rich's control codes are separate segments."""
            width = (options or self.options).max_width
            if isinstance(renderable, str | text.Text):
                shown = text.Text(renderable) if isinstance(renderable, str) else renderable
                parts = [part for before, a, b in folds(shown.plain, width) for part in (before, shown[a:b])]
                renderable = text.Text.assemble(*parts, end=shown.end) if parts[2:] else shown
            for part in super().render(renderable, options):
                yield part if part.control else segment.Segment(printable(part.text), part.style)

    # No markup: a failure reason or a path can contain "[/x]".
    width = None if file.isatty() else _WIDTH_OF_FILES
    return PlainConsole(file=file, highlight=False, markup=False, width=width)


def write(text: str) -> None:
    sys.stdout.write(printable(text))


def write_page(text: str) -> None:
    write(folded(sys.stdout, printable(text)))


def say(text: str) -> None:
    sys.stderr.write(folded(sys.stderr, printable(text)) + "\n")
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
                expected="a setting such as spark.sql.shuffle.partitions=8",
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
    text = console.render_str("").append("error", "bold red").append(" ").append(error.code, "bold")
    console.print(text.append(f": {error}"))
    if error.hint:
        console.print(console.render_str("").append("hint", "bold").append(f": {error.hint}"))


def user_traceback(error: BaseException) -> str:
    """The traceback of the innermost exception that passed through the user's code, else empty. It has no frames of
    Slackwater and libraries. For a function in a worker of Spark it is in a note of the error.
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
        console.print(console.render_str("").append("hint", "bold").append(f": {note}"))


def confirm(stream: str, what: str, kind: str = "stream", given: str = "--yes") -> None:
    """Have a name typed; ``given`` replaces typing. Raises Refused for another name, UsageError without a terminal."""
    name = stream.rpartition("/")[2]
    if not sys.stdin.isatty():
        raise UsageError("unconfirmed", "There is no terminal for the confirmation", hint=f"give {given}")
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
            "A different name was typed; nothing was changed",
            expected=name,
            found=typed or "nothing",
            hint="repeat the command, and type the requested name",
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
