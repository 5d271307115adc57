"""Keeps secrets and rows on the machine. The last step over every value."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from slackwater.core.masking import MASK, is_secret_name, mask, mask_setting
from slackwater.diagnose.error_texts import error_texts

_SPARKS_OWN = re.compile(
    r"spark\.(?:sql\.(?!catalog\.)|databricks\.|(?:executor|driver|task)\.(?:cores|cpus|memory|instances)|"
    r"shuffle\.|default\.|cores\.|memory\.|dynamicAllocation\.|speculation|locality\.|scheduler\.|network\.|"
    r"rpc\.|serializer|master$|version$)[\w.\-]*"
)
"""Settings of Spark's own; any other value may be a password."""

_OPTIONS_SHOWN = frozenset(
    {
        "startingoffsets", "endingoffsets", "startingtimestamp", "startingversion", "failondataloss",
        "maxoffsetspertrigger", "minoffsetspertrigger", "maxfilespertrigger", "maxbytespertrigger", "maxfileage",
        "latestfirst", "filenameonly", "cleansource", "format", "multiline", "header", "mode", "rowspersecond",
        "rowsperbatch", "numpartitions", "rampuptime", "subscribe", "subscribepattern", "ignorechanges",
        "ignoredeletes", "skipchangecommits", "readchangefeed", "schemaevolutionmode", "recursivefilelookup",
        "pathglobfilter", "modifiedafter", "modifiedbefore", "streaming-max-files-per-micro-batch",
    }
)  # fmt: skip
"""Options, in lower case, that bound a source's start and batches."""

_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]{4,}(?:\.[A-Z][A-Z0-9_]+)*)\]")
_NAME = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")
_FIRST = re.compile(r"(?:\A|\.[A-Z]\w*(?:Exception|Error): )\[([A-Z][A-Z0-9]*_[A-Z0-9_]+(?:\.[A-Z0-9_]+)?)\]")
"""Spark puts an exception's condition at the start of a message, also after a class."""
_CLASS = re.compile(
    r"\b(?:(?:[a-z]\w*\.)+(?:\w+\$)*|(?=\w+:))([A-Z][A-Za-z0-9]{2,}(?:Exception|Error|Failure|Interrupted))\b"
)
"""With a package or before a colon: any other word can be of a row."""
_STATE = re.compile(r"\bSQLSTATE: ([0-9A-Z]{5})\b")


def settings(values: Mapping[str, str]) -> dict[str, str]:
    """The values of Spark's own settings; others are hidden."""
    return {name: _setting(name, str(value)) for name, value in sorted(values.items())}


def options(values: Mapping[str, str]) -> dict[str, str]:
    """The values of harmless options; others are hidden."""
    shown = {name: name.lower() in _OPTIONS_SHOWN for name in sorted(values)}
    return {name: mask_setting(name, str(values[name])) if known else MASK for name, known in shown.items()}


def conditions(message: str | None) -> tuple[str, ...]:
    """Error conditions, exception classes and SQL states in a message, without values.

    Exceptions can quote rows: ``The value 'alice' ... cannot be cast``. A name in brackets can be a row, unless it is a
    known condition, or in a condition's place.
    """
    text = message or ""
    first = {match.start(1) for match in _FIRST.finditer(text)}
    named = [match for match in _CONDITION.finditer(text) if match.start(1) in first or _is_known(match[1])]
    matches = (*named, *_CLASS.finditer(text), *_STATE.finditer(text))
    return tuple(dict.fromkeys(match[1] for match in matches))


def _is_known(condition: str) -> bool:
    return condition.partition(".")[0] in _known_conditions()


@cache
def _known_conditions() -> frozenset[str]:
    return frozenset(name for error in error_texts() for text in error.texts for name in _NAME.findall(text))


def redacted(value: Any, name: str = "") -> Any:
    """The value with all strings masked. ``name`` is its key."""
    if isinstance(value, str):
        text = value.encode("utf-8", "backslashreplace").decode()
        return MASK if is_secret_name(name) else mask(text)
    if isinstance(value, Mapping):
        return dict(_items(value))
    if isinstance(value, list | tuple | set | frozenset):
        items = value if isinstance(value, list | tuple) else sorted(value, key=str)
        return [redacted(item, name) for item in items]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float) else redacted(str(value), name)


def _items(value: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        shown = mask(str(key).encode("utf-8", "backslashreplace").decode())
        yield shown, redacted(item, str(key))


def _setting(name: str, value: str) -> str:
    return mask_setting(name, value) if _SPARKS_OWN.fullmatch(name) else MASK
