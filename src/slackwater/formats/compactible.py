"""Logs that Spark compacts: file sources and the file sink (``CompactibleFileStreamLog``).

With interval k every k-th entry is ``N.compact`` *instead of* ``N`` ((N+1) divisible by k); it holds all so far.
The interval is not written anywhere: Spark derives it from the names, and a log that it derives wrongly is misread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

DEFAULT_INTERVAL = 10
"""``spark.sql.streaming.fileSource.log.compactInterval`` and its sink twin."""
_SUFFIX = ".compact"


def parse_entry_name(name: str) -> tuple[int, bool] | None:
    """``(entry, whether compacted)``, or ``None`` for a name that is no entry."""
    stem = name.removesuffix(_SUFFIX)
    return (int(stem), stem != name) if stem.isascii() and stem.isdigit() else None


def derive_interval(names: Iterable[str], default: int = DEFAULT_INTERVAL) -> int:
    """The interval Spark will use for a log with these names and a setting of ``default``.

    Two or more compacted entries: the distance of the newest two. One: a divisor of its count of entries. None: the
    setting.
    """
    parsed = (parse_entry_name(name) for name in names)
    compacted = sorted((found[0] for found in parsed if found and found[1]), reverse=True)
    if len(compacted) > 1:
        return compacted[0] - compacted[1]
    return _interval_of_one(compacted[0] + 1, default) if compacted else default


def _interval_of_one(entries: int, default: int) -> int:
    """The smallest divisor of ``entries`` from ``default`` up to its half, else all of them."""
    if default >= entries // 2:
        return entries
    return next((interval for interval in range(default, entries // 2 + 1) if entries % interval == 0), entries)


def lay_out(entries: Mapping[int, Sequence[str]], last: int, interval: int) -> dict[str, str]:
    """Files (name -> text) of a log that holds exactly the entries 0 to ``last``, as Spark reads it.

    ``entries`` gives the lines that belong to each entry alone; an entry that is not given has none. Where there were
    two compactions there are two in the result, so that Spark derives ``interval`` and not a divisor near its setting.
    With only one, Spark may derive a divisor of ``interval``, which reads the same entries.
    """
    newest = (last + 1) // interval * interval - 1
    files: dict[str, str] = {}
    for compacted in (newest - interval, newest):
        if compacted >= 0:
            lines = [line for entry in range(compacted + 1) for line in entries.get(entry, ())]
            files[f"{compacted}{_SUFFIX}"] = _text(lines)
    for entry in range(newest + 1, last + 1):
        files[str(entry)] = _text(entries.get(entry, ()))
    return files


def _text(lines: Sequence[str]) -> str:
    return "\n".join(["v1", *lines])
