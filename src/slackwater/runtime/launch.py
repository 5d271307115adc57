"""Starts Spark's JVM with settings from a private file instead of its command line, which every user can read.

``spark-submit`` reads the file before the JVM's Python gateway answers, so it is removed as soon as there is a gateway.
``--properties-file`` replaces ``spark-defaults.conf`` (Spark 4 has ``--load-spark-defaults``, 3.5 has nothing like it),
so the user's file is copied in first: of two lines for one key, Java's ``Properties`` takes the last.

Options of the JVM itself (``spark.driver.extraJavaOptions``) are its command line, and stay visible.

What the JVM writes to stderr is passed on without one line: Spark 4 starts Java with
``--add-modules=jdk.incubator.vector``, of which Java then warns, and has no option not to.
"""

from __future__ import annotations

import atexit
import os
import re
import shlex
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pyspark.find_spark_home import _find_spark_home

from slackwater.core.errors import UsageError
from slackwater.core.escaping import printable_bytes
from slackwater.core.masking import brief
from slackwater.storage.local import read_file
from slackwater.storage.private import private_opener

_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
_OPTION = "--properties-file"
_BLANKS = " \t\f"
_LINE_ENDS = re.compile(r"\r\n?|\n")
_PROPERTY = re.compile(r"(?s)(?P<key>(?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(?P<value>.*)")
_ESCAPED = re.compile(r"(?s)\\(?:u([0-9A-Fa-f]{4})|(.))")
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}


def launch(start_gateway: Callable[[], Any], settings: Mapping[str, str]) -> Any:
    """The result of ``start_gateway``, which starts ``spark-submit`` with ``settings`` in force.

    Where ``spark-submit`` has started this process its JVM is used, and has its settings already.
    """
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return start_gateway()
    with tempfile.TemporaryDirectory(prefix="slackwater-spark-") as folder:
        arguments, users_file = _split(_words(os.environ.get(_ARGUMENTS, "pyspark-shell")))
        file = Path(folder) / "spark.properties"
        with open(file, "wb", opener=private_opener) as opened:
            opened.write(_defaults(users_file) + render(settings).encode())
        # First: what follows ``pyspark-shell`` are arguments of the application.
        with _environment(_ARGUMENTS, shlex.join([_OPTION, str(file), *arguments])):
            return start_gateway()


def render(settings: Mapping[str, str]) -> str:
    """Settings in the form that ``java.util.Properties`` reads from a UTF-8 file."""
    return "".join(f"{_escape(key, is_key=True)}={_escape(value)}\n" for key, value in settings.items())


def _escape(text: str, *, is_key: bool = False) -> str:
    escapes = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
    if is_key:
        escapes |= {character: f"\\{character}" for character in "=:#! "}
    escaped = "".join(escapes.get(character, character) for character in text)
    # Java skips white space before a value.
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


def default_setting(key: str) -> str | None:
    """A setting of the user's own file, which a value of ours would replace: as ``spark-submit`` reads it."""
    _, users_file = _split(_words(os.environ.get(_ARGUMENTS, "pyspark-shell")))
    found = parse(_defaults(users_file).decode(errors="replace")).get(key)
    return None if found is None else found.strip()


def parse(text: str) -> dict[str, str]:
    """What ``java.util.Properties`` reads from a file; of two lines for one key the last."""
    matches = map(_PROPERTY.fullmatch, _whole_lines(iter(_LINE_ENDS.split(text))))
    return {_unescaped(match["key"]): _unescaped(match["value"]) for match in matches if match is not None}


def _whole_lines(lines: Iterator[str]) -> Iterator[str]:
    """The lines that are no comments, each with those after it that continue it."""
    for first in lines:
        line = first.lstrip(_BLANKS)
        if not line or line[0] in "#!":
            continue
        # An odd number of backslashes continues a line; each pair of them is one backslash of the value.
        while (len(line) - len(line.rstrip("\\"))) % 2:
            line = line[:-1] + next(lines, "").lstrip(_BLANKS)
        yield line


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)) if match[1] else _LETTERS.get(match[2], match[2]), text)


def _words(arguments: str) -> list[str]:
    """Raises UsageError where a shell could not split them either."""
    try:
        return shlex.split(arguments)
    except ValueError as error:
        raise UsageError(
            "submit-arguments",
            f"The arguments of spark-submit cannot be parsed: {error}",
            where=_ARGUMENTS,
            expected="such as --driver-memory 2g pyspark-shell",
            found=brief(arguments),
            hint=f"unset {_ARGUMENTS}, or correct its quotes",
        ) from error


def _split(arguments: list[str]) -> tuple[list[str], Path | None]:
    """The user's own arguments of ``spark-submit`` without a properties file, and that file: the last one counts."""
    kept: list[str] = []
    file: str | None = None
    remaining = iter(arguments)
    for argument in remaining:
        if argument == _OPTION:
            file = next(remaining, None)
        elif argument.startswith(f"{_OPTION}="):
            file = argument.partition("=")[2]
        else:
            kept.append(argument)
    return kept, Path(file) if file else None


def _defaults(users_file: Path | None) -> bytes:
    """The lines that Spark would have read without our file: those of the user's own, or ``spark-defaults.conf``."""
    file = users_file or _spark_defaults()
    if users_file is None and not file.is_file():
        return b""
    # A blank line ends the last line, even one that is continued by a backslash.
    return read_file(file) + b"\n\n"


def _spark_defaults() -> Path:
    """``spark-defaults.conf`` as Spark's own scripts find it."""
    find_home: Callable[[], str] = _find_spark_home
    configured = os.environ.get("SPARK_CONF_DIR")
    return (Path(configured) if configured else Path(find_home()) / "conf") / "spark-defaults.conf"


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


INCUBATOR_WARNING = b"WARNING: Using incubator modules: jdk.incubator.vector\n"
STDERR = 2
LAST_LINES_S = 0.2
_PIECE = 1 << 16


@contextmanager
def relayed_stderr() -> Iterator[int]:
    """A file descriptor to start the JVM with as its stderr. It is closed here at the end; the JVM has its copy."""
    read_end, write_end = os.pipe()
    relay = threading.Thread(target=_relay, args=(read_end, STDERR), name="jvm-stderr", daemon=True)
    relay.start()
    # What the JVM wrote last comes before the end of this process; a JVM that outlives it is not waited for.
    atexit.register(relay.join, LAST_LINES_S)
    try:
        yield write_end
    except BaseException:
        os.close(write_end)
        relay.join(LAST_LINES_S)
        raise
    os.close(write_end)


def _relay(source: int, target: int) -> None:
    """Copy until no process has the other end open, also where nothing can be written: the JVM must not block."""
    kept = b""
    with os.fdopen(source, "rb", buffering=0) as stream:
        while piece := stream.read(_PIECE):
            shown, kept = without_warning(kept + piece)
            with suppress(OSError):
                _write(target, printable_bytes(shown))
    with suppress(OSError):
        _write(target, printable_bytes(kept))


def without_warning(output: bytes) -> tuple[bytes, bytes]:
    """Output without the warning, and the part at its end that may be the beginning of one."""
    shown = output.replace(INCUBATOR_WARNING, b"")
    last_line = shown[shown.rfind(b"\n") + 1 :]
    if last_line and INCUBATOR_WARNING.startswith(last_line):
        return shown[: len(shown) - len(last_line)], last_line
    return shown, b""


def _write(target: int, data: bytes) -> None:
    while data:
        data = data[os.write(target, data) :]
