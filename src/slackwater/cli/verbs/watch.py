"""``slackwater watch``: marks and lag of any checkpoint, live. Reads only."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from slackwater.checkpoint.opened import open_checkpoint
from slackwater.checkpoint.reader import collector_off, read_checkpoint
from slackwater.cli.common.arguments import Format
from slackwater.cli.common.console import (
    iso,
    mark,
    marks_document,
    number,
    out,
    parse_seconds,
    prepare,
    print_json,
    timestamp,
)
from slackwater.cli.common.examine import named_sink, require_recorded
from slackwater.cli.common.stream_status import FILES_MAX
from slackwater.core.checkpoint import CheckpointReport, ReadOptions, SourceLine
from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.core.facts import Unknown
from slackwater.core.masking import KNOWN_SECRETS
from slackwater.core.units import counted, duration_text, size_text
from slackwater.facts.collect import written_by
from slackwater.sinks.common.registry import Identity
from slackwater.sources import kind_of
from slackwater.sources.common.contract import Uncounted
from slackwater.storage.open import open_read_store

SCHEMA = "slackwater.watch/1"
SHORTEST_S = 0.5
_RATE_OF_MS = 600_000
"""The time over which batches are counted for their rate."""


@dataclass(frozen=True, slots=True)
class SourceAhead:
    """``unknown``: why the lag was not counted."""

    source: str
    kind: str
    rows: int | None = None
    files: int | None = None
    bytes: int | None = None
    unknown: str | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """A checkpoint at a point in time. ``written``: the output's newest batch; ``sink``: why it is unknown."""

    at_ms: int
    report: CheckpointReport
    newest_ms: int | None
    written: int | None
    sink: str | None
    sources: tuple[SourceAhead, ...]


def look_at(location: str, sink: Identity | Unknown | None, addresses: Mapping[str, str]) -> Look:
    """Raises NotFound if there is no checkpoint, EnvironmentMissing for an absent store."""
    store = open_read_store(location)
    require_recorded(store, None)
    with collector_off():
        opened = open_checkpoint(store)
        report = read_checkpoint(opened, ReadOptions(source_files=True))
    newest_ms = max((written for _, written in store.written_ms()), default=None)
    written: int | None = None
    problem: str | None = "add --sink with the path or URI of the output"
    if isinstance(sink, Unknown):
        problem = sink.reason
    elif sink is not None:
        found = written_by(sink, report.marks, report.query_id)
        written, problem = (None, found.reason) if isinstance(found, Unknown) else (found, None)
    ends = {one.name: one.end for one in report.batches[-1].sources} if report.batches else {}
    sources = tuple(_ahead(line, ends.get(line.name), addresses) for line in report.sources)
    return Look(time.time_ns() // 1_000_000, report, newest_ms, written, problem, sources)


def _ahead(line: SourceLine, end: str | None, addresses: Mapping[str, str]) -> SourceAhead:
    kind = kind_of(end, {})
    read = line.log.entries if line.log is not None else ()
    try:
        found = kind.live().ahead(end, read, addresses.get(line.name), FILES_MAX)
    except (Uncounted, OSError, SlackwaterError) as reason:
        return SourceAhead(line.name, kind.kind, unknown=str(reason))
    return SourceAhead(line.name, kind.kind, *found)


def look_document(look: Look) -> dict[str, Any]:
    report, marks = look.report, look.report.marks
    batches, coming = report.batches, report.next_batch
    return {
        "schema": SCHEMA,
        "checkpoint": report.location,
        "query_id": report.query_id,
        "at": iso(look.at_ms),
        "newest_file": iso(look.newest_ms),
        "marks": marks_document(marks) | {"written": look.written},
        "sink_unknown": look.sink,
        "next_batch": marks.next_batch,
        "next_batch_planned": marks.committed < marks.planned,
        "watermark": iso(coming.watermark_ms) if coming is not None and coming.watermark_ms > 0 else None,
        "newest_batch": iso(batches[-1].timestamp_ms) if batches and batches[-1].timestamp_ms else None,
        "batches_per_minute": _rate(look),
        "sources": [asdict(one) for one in look.sources],
        "damage": len(report.damage),
    }


def _rate(look: Look) -> float | None:
    since = look.at_ms - _RATE_OF_MS
    times = [one.timestamp_ms for one in look.report.batches if one.timestamp_ms and one.timestamp_ms >= since]
    if not times or times[-1] <= times[0]:
        return None
    return round(60_000 * (len(times) - 1) / (times[-1] - times[0]), 1)


def look_page(look: Look) -> str:
    found = look_document(look)
    marks = ", ".join(f"{name} {mark(value)}" for name, value in found["marks"].items())
    planned = "planned: it runs, or was interrupted" if found["next_batch_planned"] else "to be planned"
    rate = found["batches_per_minute"]
    lines = [
        f"{found['checkpoint']}  query {found['query_id'] or 'unknown'}",
        _line("marks", marks + (f" ({look.sink})" if look.sink else "")),
        _line("batch", f"{found['next_batch']} is next, {planned}" + (f"; {rate:g} a minute" if rate else "")),
        _line("written", _since(look)),
        _line("watermark", found["watermark"] or "-"),
    ]
    lines += [_line("lag", f"source {one.source}: {_lag(one)}") for one in look.sources]
    if found["damage"]:
        lines.append(_line("damage", counted(found["damage"], "damaged file")))
    return "\n".join(lines)


def _since(look: Look) -> str:
    if look.newest_ms is None:
        return "no file"
    return f"the newest file is {duration_text(max(look.at_ms - look.newest_ms, 0))} old"


def _lag(one: SourceAhead) -> str:
    if one.unknown is not None:
        return f"unknown: the source {one.unknown}; see --source"
    if one.files is None:
        return f"{number(one.rows)} rows"
    return counted(one.files, "unread file") + (f", {size_text(one.bytes or 0)}" if one.files else "")


def _line(label: str, text: str) -> str:
    return f"  {label:<11}{text}"


def _addresses(given: Sequence[str] | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in given or ():
        name, equals, address = pair.partition("=")
        if not (equals and name.strip() and address.strip()):
            raise UsageError(
                "source-address",
                "A --source must be N=ADDRESS",
                expected="the number of a source and its address, such as 0=broker:9092",
                # It may have a password.
                found="a number alone, or no number; not shown here",
            )
        found[name.strip()] = address.strip()
    KNOWN_SECRETS.remember_all(found)
    return found


def watch(
    *, location: str, sink: str | None, sources: list[str] | None, every: str, once: bool, shown_as: Format
) -> int:
    prepare(None, shown_as)
    interval_s, addresses = parse_seconds(every), _addresses(sources)
    if interval_s < SHORTEST_S:
        raise UsageError(
            "watch-interval", "The interval is too short", expected=f"at least {SHORTEST_S} s", found=every
        )
    identity = named_sink(sink) if sink is not None else None
    look = look_at(location, identity, addresses)
    try:
        while True:
            _show(look, interval_s, once=once, shown_as=shown_as)
            if once:
                return 0
            time.sleep(interval_s)
            look = look_at(location, identity, addresses)
    except KeyboardInterrupt:
        return 0


def _show(look: Look, interval_s: float, *, once: bool, shown_as: Format) -> None:
    if shown_as is Format.JSON:
        print_json(look_document(look), in_one_line=not once)
    else:
        page = out()
        if not once:
            page.clear()
            page.print(f"{timestamp(look.at_ms)}, every {interval_s:g} s; Ctrl-C ends it\n", style="dim")
        page.print(look_page(look), soft_wrap=True)
    sys.stdout.flush()
