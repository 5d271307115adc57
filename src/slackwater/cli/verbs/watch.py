"""``slackwater watch``: marks and lag of any checkpoint, live. Reads only."""

import time
from collections.abc import Mapping
from itertools import chain, repeat

from rich.console import Group
from rich.text import Text

from slackwater.checkpoint.opened import open_checkpoint
from slackwater.checkpoint.reader import collector_off, read_checkpoint
from slackwater.cli.common.arguments import Format
from slackwater.cli.common.console import Document, iso, marks_document, number, parse_interval, prepare, shown_time
from slackwater.cli.common.examine import named_sink, require_recorded
from slackwater.cli.common.pages import labelled_rows, marks_text, show, show_each
from slackwater.cli.common.stream_status import FILES_MAX
from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.core.facts import Unknown
from slackwater.core.masking import KNOWN_SECRETS
from slackwater.core.sink import Identity
from slackwater.core.units import counted, duration_text, size_text
from slackwater.facts.collect import written_by
from slackwater.sources import kind_of
from slackwater.sources.common.contract import Uncounted
from slackwater.storage.open import open_read_store

SCHEMA = "slackwater.watch/1"

_RATE_OF_MS = 600_000
"""The time over which batches are counted for their rate."""


def look_at(location: str, sink: Identity | Unknown | None, addresses: Mapping[str, str]) -> tuple[Document, str]:
    """The checkpoint now, and how old its newest file is. Raises NotFound if there is no checkpoint, EnvironmentMissing
    for an absent store.
    """
    store = open_read_store(location)
    require_recorded(store, None)
    with collector_off():
        opened = open_checkpoint(store)
        report = read_checkpoint(opened, source_files=True)
    newest_ms = max((written for _, written in store.written_ms()), default=None)
    written: int | None = None
    problem: str | None = "add --sink with the path or URI of the output"
    if isinstance(sink, Unknown):
        problem = sink.reason
    elif sink is not None:
        found = written_by(sink, report.marks, report.query_id)
        written, problem = (None, found.reason) if isinstance(found, Unknown) else (found, None)
    batches, coming, marks = report.batches, report.next_batch, report.marks
    ends = {one.source: one.text for one in batches[-1].sources} if batches else {}
    sources = []
    for line in report.sources:
        kind = kind_of(ends.get(line.name), {})
        read = line.log.entries if line.log is not None else ()
        rows = files = size = unknown = None
        try:
            rows, files, size = kind.live().ahead(ends.get(line.name), read, addresses.get(line.name), FILES_MAX)
        except (Uncounted, OSError, SlackwaterError) as reason:
            unknown = str(reason)
        lag = {"rows": rows, "files": files, "bytes": size, "unknown": unknown}
        sources.append({"source": line.name, "kind": kind.kind, **lag})
    at_ms = time.time_ns() // 1_000_000
    times = [one.timestamp_ms for one in batches if one.timestamp_ms and one.timestamp_ms >= at_ms - _RATE_OF_MS]
    elapsed_ms = times[-1] - times[0] if times else 0
    document = {
        "schema": SCHEMA,
        "checkpoint": report.location,
        "query_id": report.query_id,
        "at": iso(at_ms),
        "newest_file": iso(newest_ms),
        "marks": marks_document(marks) | {"written": written},
        "sink_unknown": problem,
        "next_batch": marks.next_batch,
        "next_batch_planned": marks.committed < marks.planned,
        "watermark": iso(coming.watermark_ms) if coming is not None else None,
        "newest_batch": iso(batches[-1].timestamp_ms) if batches else None,
        "batches_per_minute": round(60_000 * (len(times) - 1) / elapsed_ms, 1) if elapsed_ms > 0 else None,
        "sources": sources,
        "damage": len(report.damage),
    }
    age = "no file" if newest_ms is None else f"the newest file is {duration_text(max(at_ms - newest_ms, 0))} old"
    return document, age


def look_page(found: Document, age: str) -> Group:
    marks = marks_text(found["marks"])
    planned = "planned: it runs, or was interrupted" if found["next_batch_planned"] else "to be planned"
    rate, sink = found["batches_per_minute"], found["sink_unknown"]
    lags = []
    for one in found["sources"]:
        if one["unknown"] is not None:
            lag = f"unknown: the source {one['unknown']}; see --source"
        elif one["files"] is None:
            lag = f"{number(one['rows'])} rows"
        else:
            size = f", {size_text(one['bytes'] or 0)}" if one["files"] else ""
            lag = counted(one["files"], "unread file") + size
        lags.append(("lag", f"source {one['source']}: {lag}"))
    return Group(
        Text(f"{found['checkpoint']}  query {found['query_id'] or 'unknown'}"),
        *labelled_rows(
            ("marks", marks + (f" ({sink})" if sink else "")),
            ("batch", f"{found['next_batch']} is next, {planned}" + (f"; {rate:g} a minute" if rate else "")),
            ("written", age),
            ("watermark", shown_time(found["watermark"])),
            *lags,
            ("damage", counted(found["damage"], "damaged file") if found["damage"] else None),
        ),
    )


def watch(
    *, location: str, sink: str | None, sources: list[str] | None, every: str, once: bool, shown_as: Format
) -> int:
    prepare(None, shown_as)
    interval_s, addresses = parse_interval(every, "The interval"), dict[str, str]()
    for pair in sources or ():
        name, equals, address = map(str.strip, pair.partition("="))
        if not (equals and name and address):
            raise UsageError(
                "source-address",
                "A --source must be N=ADDRESS",
                expected="the number of a source and its address, such as 0=broker:9092",
                # It may have a password.
                found="a number alone, or no number; not shown here",
            )
        addresses[name] = address
    KNOWN_SECRETS.remember_all(addresses)
    identity = named_sink(sink) if sink is not None else None
    document, age = look_at(location, identity, addresses)
    if once:
        show(shown_as, document, lambda: look_page(document, age))
        return 0
    later = (look_at(location, identity, addresses) for _ in repeat(None))
    looks = ((one, look_page(one, old)) for one, old in chain([(document, age)], later))
    return show_each(shown_as, interval_s, looks)
