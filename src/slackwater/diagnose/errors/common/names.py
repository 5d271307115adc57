"""Finds the names in a log that say what kind of failure it is: error conditions, SQLSTATEs, exceptions, exit codes.

Spark, Delta, Kafka, Hadoop and databases name thousands of failures by such names, whatever the message says. One
search finds them all, and a table looks each up: more names do not make it slower.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from slackwater.diagnose.errors.common.template import Place

STATE = "SQLSTATE "
"""Before a state in the name of a table: ``SQLSTATE 42703``, and ``SQLSTATE 42`` for all of its class."""

EXIT = "EXIT "
"""Before the exit code of a process in the name of a table: ``EXIT 137``, and ``EXIT *`` for any but 0."""

ANY = "*"
"""Before the last words of a class in the name of a table: ``*ConflictException`` for all classes that end so."""

_CONDITIONS = Path(__file__).with_name("conditions.txt")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9]{1,40}_[A-Z0-9_]{2,80}(?:\.[A-Z0-9_]{2,80})?)\]")
_SQLSTATE = re.compile(r"SQL(?:STATE|State)[: =(\[]{1,3}([0-9A-Z]{5})\b")
_EXIT = re.compile(
    r"(?i:exit(?:ed)?(?: with)?(?: a)?(?: non-zero)?(?: exit)?[ _]?(?:code|status)|exited with|return code)(?: is| of)?"
    r"[ :=('\"]{1,4}(\d{1,3})\b(?![.:]\d)"
)
"""The code with which a process has ended, in the spellings of Spark, YARN, Kubernetes and shells."""
_CLASS_END = re.compile(r"(?:Exception|Error|Failure|OutOfMemory)(?=[:\s)\]'\",;]|\.(?:\s|$)|$)")
"""Not in a stack frame, where a class is followed by a method or by the name of its file."""
_CLASS_BACKWARDS = re.compile(r"[\w$./]{1,200}")
"""From the end of a name to its start: a search that runs forwards would begin at each character before it."""
_LONGEST_CLASS = 200
_AROUND = {
    *("StreamingQueryException", "QueryExecutionException", "SparkException", "SparkRuntimeException"),
    *("Py4JJavaError", "Py4JError", "ExecutionException", "CompletionException", "InvocationTargetException"),
    *("UndeclaredThrowableException", "ExceptionInInitializerError", "PrivilegedActionException"),
}
"""Classes around another exception: they say nothing, whatever their last words are."""
_PARTS = re.compile(r"[./$]")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*")


def named_places(text: str) -> Iterator[tuple[str, Place]]:
    """Each name in a text, with its last place."""
    found: dict[str, tuple[int, int]] = {}
    of_conditions = set()
    for match in _CONDITION.finditer(text):
        found[match[1]] = match.span(1)
        of_conditions.add(conditions().get(match[1].partition(".")[0]))
    for match in _SQLSTATE.finditer(text):
        # Spark prints the state of a condition after its message; the condition says more.
        if match[1] not in of_conditions:
            found[STATE + match[1]] = match.span(1)
    for match in _EXIT.finditer(text):
        found[EXIT + match[1]] = match.span()
    for match in _CLASS_END.finditer(text):
        backwards = _CLASS_BACKWARDS.match(text[max(0, match.end() - _LONGEST_CLASS) : match.end()][::-1])
        if backwards is not None:
            name = backwards[0][::-1].lstrip("./$")
            found[name] = match.end() - len(name), match.end()
    for name, (start, end) in found.items():
        yield name, Place(start, end, {"name": name.removeprefix(STATE)})


def keys_of(name: str) -> Iterator[str]:
    """What a table may have for a name, the most specific first.

    Of an error condition also the SQLSTATE that Spark's and Delta's own tables give it; of a class its name without the
    packages, then its last words: ``*ConflictException`` of ``NessieReferenceConflictException``; of an error condition
    that neither Spark nor Delta has, its last and its first words.
    """
    yield name
    if name.startswith(EXIT):
        if name != EXIT + "0":
            yield EXIT + ANY
        return
    if name.startswith(STATE):
        yield from _state_keys(name.removeprefix(STATE))
        return
    if name.isupper():
        condition = name.partition(".")[0]
        yield condition
        yield from _state_keys(conditions()[condition]) if condition in conditions() else _family_keys(condition)
        return
    parts = _PARTS.split(name)
    for start in range(1, len(parts)):
        yield ".".join(parts[start:])
    words = () if parts[-1] in _AROUND else _WORDS.findall(parts[-1])
    for start in range(len(words)):
        yield ANY + "".join(words[start:])


def _family_keys(condition: str) -> Iterator[str]:
    """What a condition that is of neither Spark nor Delta has in common with others: last words, then first words.

    Vendors have hundreds of their own: ``*_NOT_FOUND`` of ``CLOUD_FILE_SOURCE_FILE_NOT_FOUND``, then ``CLOUD_FILE_*``.
    """
    words = condition.split("_")
    for start in range(1, len(words)):
        yield f"{ANY}_{'_'.join(words[start:])}"
    for end in range(len(words) - 1, 0, -1):
        yield f"{'_'.join(words[:end])}_{ANY}"


def _state_keys(state: str) -> Iterator[str]:
    yield STATE + state
    yield STATE + state[:2]


@cache
def conditions() -> Mapping[str, str]:
    """The SQLSTATE of each error condition of Spark and Delta (``scripts/error_conditions.py``)."""
    lines = map(str.split, _CONDITIONS.read_text().splitlines())
    return {condition: state for state, *names in lines for condition in names}
