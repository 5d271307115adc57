"""Starts Spark's JVM with settings from a private file: every user can read a command line.

``spark-submit`` reads the file before the Python gateway answers, so it is removed then. ``--properties-file`` replaces
``spark-defaults.conf`` (Spark 4 has ``--load-spark-defaults``, 3.5 has nothing), so the user's file is copied in first:
Java's ``Properties`` takes a key's last line. ``--jars`` overrides files: if our settings have jars, the user's option
is dropped.

JVM options (``spark.driver.extraJavaOptions``) are its command line, and stay visible.

The JVM's stderr is passed on by line, masked and escaped. Java's unavoidable warning about Spark 4's
``--add-modules=jdk.incubator.vector`` is dropped.
"""

import atexit
import os
import re
import shlex
import sys
import tempfile
import threading
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.find_spark_home import _find_spark_home

from slackwater.core.errors import UsageError
from slackwater.core.escaping import printable_bytes
from slackwater.core.masking import brief, mask
from slackwater.runtime.run.listener import StopSignals
from slackwater.storage.local import private_opener, read_file

_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
_OPTION = "--properties-file"
_CONF = ("--conf", "-c")
_KEYS = {"--jars": "spark.jars", "--packages": "spark.jars.packages"}
"""Options for settings that only ``spark-submit`` handles: it loads the listed files."""
_SWITCHES = frozenset(
    {"--help", "-h", "--load-spark-defaults", "--supervise", "--usage-error", "--verbose", "-v", "--version"}
)
"""Options without a value (``SparkSubmitOptionParser``)."""
_BLANKS = " \t\f"
_LINE_ENDS = re.compile(r"\r\n?|\n")
_PROPERTY = re.compile(r"(?s)(?P<key>(?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(?P<value>.*)")
_ESCAPED = re.compile(r"(?s)\\(?:u([0-9A-Fa-f]{4})|(.))")
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}


def launch(start_gateway: Callable[[], Any], settings: Mapping[str, str]) -> Any:
    """The result of ``start_gateway``, which runs ``spark-submit`` with ``settings``.

    If ``spark-submit`` started this process, its JVM, with its settings, is used.
    """
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return start_gateway()
    with tempfile.TemporaryDirectory(prefix="slackwater-spark-") as folder:
        arguments, users_file = _split(_users_arguments(), settings)
        file = Path(folder) / "spark.properties"
        with open(file, "wb", opener=private_opener) as opened:
            opened.write(_defaults(users_file) + render(settings).encode())
        before = os.environ.get(_ARGUMENTS)
        # First: what follows ``pyspark-shell`` are arguments of the application.
        os.environ[_ARGUMENTS] = shlex.join([_OPTION, str(file), *arguments])
        try:
            return start_gateway()
        finally:
            if before is None:
                del os.environ[_ARGUMENTS]
            else:
                os.environ[_ARGUMENTS] = before


def launch_apart(start_gateway: Callable[..., Any], settings: Mapping[str, str]) -> tuple[Any, StopSignals]:
    """``launch`` with the JVM in its own session (``setsid``); also returns the signals received meanwhile.

    They are deferred until the JVM can be stopped. PySpark would delete the folder for the JVM's address; the JVM's
    main thread then fails, its other threads live on, and it never exits.
    """
    with StopSignals() as signals, relayed_stderr() as stderr:
        options = {"start_new_session": True, "stderr": stderr}
        return launch(lambda: start_gateway(popen_kwargs=options), settings), signals


def render(settings: Mapping[str, str]) -> str:
    return "".join(f"{_escape(key, is_key=True)}={_escape(value)}\n" for key, value in settings.items())


def _escape(text: str, *, is_key: bool = False) -> str:
    escapes = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
    if is_key:
        escapes |= {character: f"\\{character}" for character in "=:#! "}
    escaped = "".join(escapes.get(character, character) for character in text)
    # Java skips white space before a value.
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


def default_setting(key: str) -> str | None:
    """A user's setting that ours replaces, as ``spark-submit`` reads it."""
    arguments, users_file = _split(_users_arguments(), ())
    given = [option for option in _options(arguments) if option.key == key]
    # SparkSubmitArguments: --jars counts before --conf, and the file after both; of two options the last one.
    given.sort(key=lambda option: option.name in _KEYS)
    if given:
        return given[-1].setting.strip()
    found = parse(_defaults(users_file).decode(errors="replace")).get(key)
    return None if found is None else found.strip()


def parse(text: str) -> dict[str, str]:
    """Parse settings like ``java.util.Properties``; a key's last line counts."""
    found = {}
    lines = iter(_LINE_ENDS.split(text))
    for first in lines:
        line = first.lstrip(_BLANKS)
        if not line or line[0] in "#!":
            continue
        # An odd number of backslashes continues a line; each pair of them is one backslash of the value.
        while (len(line) - len(line.rstrip("\\"))) % 2:
            line = line[:-1] + next(lines, "").lstrip(_BLANKS)
        if match := _PROPERTY.fullmatch(line):
            found[_unescaped(match["key"])] = _unescaped(match["value"])
    return found


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)) if match[1] else _LETTERS.get(match[2], match[2]), text)


def _users_arguments() -> list[str]:
    arguments = os.environ.get(_ARGUMENTS, "pyspark-shell")
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


class _Option(NamedTuple):
    words: Sequence[str]
    name: str = ""
    value: str = ""

    @property
    def key(self) -> str:
        return self.value.partition("=")[0] if self.name in _CONF else _KEYS.get(self.name, "")

    @property
    def setting(self) -> str:
        return self.value.partition("=")[2] if self.name in _CONF else self.value


def _options(arguments: Iterable[str]) -> Iterator[_Option]:
    """The options up to the first other word, as in ``SparkSubmitOptionParser``."""
    remaining = iter(arguments)
    for word in remaining:
        name, equals, value = word.partition("=")
        if not word.startswith("-"):
            yield _Option([word, *remaining])
        elif equals or word in _SWITCHES:
            yield _Option([word], name, value)
        else:
            words = [word, *islice(remaining, 1)]
            yield _Option(words, word, "".join(words[1:]))


def _split(arguments: list[str], replaced: Container[str]) -> tuple[list[str], Path | None]:
    """The user's arguments without the properties file, and the file; the last file counts.

    Drops ``replaced`` ``--jars`` and ``--packages``, by any name: they override a file.
    """
    kept: list[str] = []
    file = ""
    for option in _options(arguments):
        if option.name == _OPTION:
            file = option.value
        elif option.key not in _KEYS.values() or option.key not in replaced:
            kept += option.words
    return kept, Path(file) if file else None


def _defaults(users_file: Path | None) -> bytes:
    find_home: Callable[[], str] = _find_spark_home
    file = users_file
    if file is None:
        file = Path(os.environ.get("SPARK_CONF_DIR") or Path(find_home()) / "conf") / "spark-defaults.conf"
        if not file.is_file():
            return b""
    # A blank line ends the last line, even one that is continued by a backslash.
    return read_file(file) + b"\n\n"


INCUBATOR_WARNING = b"WARNING: Using incubator modules: jdk.incubator.vector\n"
STDERR = 2
LAST_LINES_S = 0.2
_PIECE = _LONGEST_LINE = 1 << 16


@contextmanager
def relayed_stderr() -> Iterator[int]:
    """The write end for the JVM's stderr; closed here at the end, as the JVM has a copy."""
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
    """Copy until all writers have closed, even if nothing can be written: the JVM must not block."""
    kept = b""
    with os.fdopen(source, "rb", buffering=0) as stream:
        while piece := stream.read(_PIECE):
            shown, kept = whole_lines(kept + piece)
            _write(target, shown)
    _write(target, kept)


def whole_lines(output: bytes) -> tuple[bytes, bytes]:
    """Complete lines without the warning, and the rest: half a password is unrecognisable."""
    end = output.rfind(b"\n") + 1
    if len(output) - end > _LONGEST_LINE:
        end = len(output)
    return output[:end].replace(INCUBATOR_WARNING, b""), output[end:]


def _write(target: int, output: bytes) -> None:
    masked = mask(output.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    if hasattr(sys.stderr, "rich_proxied_file"):
        # A table that is updated in place: the lines are printed above it.
        sys.stderr.write(printable_bytes(masked).decode("utf-8", "replace"))
        return
    data = printable_bytes(masked)
    with suppress(OSError):
        while data:
            data = data[os.write(target, data) :]
