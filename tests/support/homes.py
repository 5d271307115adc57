"""Homes without Spark: input, checkpoint, output and ledger, as one run of ``clicks.py`` would have left them.

One stream, ``clicks/per_page``: windows of one minute, a watermark of ten, one source. Batch N reads 100 rows whose
event times lie in the ten minutes from ``START_MS + N * STEP_MS``.
"""

import hashlib
import json
import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from slackwater.core.records import BatchRecord, BatchSource, GenerationRecord, LogLine, StreamRecord
from slackwater.ledger.ledger import Ledger

START_MS = 1_767_225_600_000
STEP_MS = DELAY_MS = 600_000
WINDOW_MS = 60_000
ROWS = 100
FILE_SIZE = 1000
EMPTY_DELTA = bytes.fromhex(
    "4c5a34426c6f636b160400000004000000db804d08ffffffff4c5a34426c6f636b16000000000000000000000000"
)
"""A delta without records: an LZ4 block with the end mark -1, and the empty block that ends the stream."""

OPERATOR = (
    "v1\n"
    '{"operatorInfo":{"operatorId":0,"operatorName":"stateStoreSave"},'
    '"stateStoreInfo":[{"storeName":"default","numColsPrefixKey":0,"numPartitions":1}]}'
)
RAN_MS = 1_767_300_000_000
STREAM = "clicks/per_page"
QUERY_ID = "61a84303-80aa-4970-973a-8b729f494d48"
LAYOUT: dict[str, object] = {
    "operators": ["Aggregate"],
    "watermark_delays_ms": [DELAY_MS],
    "windows_ms": [WINDOW_MS],
    "retention_ms": WINDOW_MS,
    "sources": ["FileSource[clicks]"],
}
STATELESS: dict[str, object] = LAYOUT | {
    "operators": [],
    "watermark_delays_ms": [],
    "windows_ms": [],
    "retention_ms": 0,
}


SCHEMA = b"".join(
    len(part).to_bytes(2) + part for part in (b"v1", b'{"type":"struct","fields":[]}', b'{"type":"struct","fields":[]}')
)


@dataclass(frozen=True)
class HomeSpec:
    """Marks as batch ids, -1 for none. ``sink`` is its identity, default: files; another one shows nothing.

    ``reported`` are the batches with recorded progress; default: those committed.

    ``run`` is how the run that executed the batches ended; ``none``: the query was only watched.
    """

    planned: int = 5
    committed: int = 5
    state: int | None = 5
    written: int = 5
    source: Literal["files", "kafka"] = "files"
    sink: Mapping[str, str] | None = None
    output_mode: str = "append"
    layout: Mapping[str, object] = field(default_factory=lambda: LAYOUT)
    reported: tuple[int, ...] | None = None
    run: Literal["finished", "failed", "open", "none"] = "finished"
    pipeline: str = "import slackwater\n"


def make_home(folder: Path, spec: HomeSpec | None = None) -> Path:
    """Make a project with its home below ``folder``; the home's path."""
    spec = spec or HomeSpec()
    home = folder / ".slackwater"
    for entry in range(spec.planned + 1 if spec.source == "files" else 0):
        _write(folder / "clicks" / f"{entry:03d}.json", "", START_MS + entry)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "clicks.py").write_text(spec.pipeline)
    with Ledger.open(home / "ledger.db", create=True, now_ms=_Clock()) as ledger:
        add_stream(ledger, home, spec)
    return home


def edit_ledger(home: Path, *statements: str, values: Sequence[object] = ()) -> None:
    """Change the ledger by hand; ``values`` are those of the one statement."""
    with closing(sqlite3.connect(home / "ledger.db")) as ledger, ledger:
        for statement in statements:
            ledger.execute(statement, values)


def add_stream(ledger: Ledger, home: Path, spec: HomeSpec, name: str = "per_page", reads: str = "") -> None:
    """Add the stream ``clicks/NAME`` as a run left it; batch N reads ``part-N.parquet`` if it ``reads`` a folder."""
    folder, output = home.parent, home.parent / (name if reads else "out")
    checkpoint = home / "streams" / "clicks" / name / "checkpoints" / "0001"
    logs = checkpoint_logs(spec, folder)
    if reads:
        logs["sources/0"] = {
            entry: text.replace(f"/clicks/{entry:03d}.json", f"/{reads}/part-{entry}.parquet")
            for entry, text in logs["sources/0"].items()
        }
    for log, entries in logs.items():
        for entry, text in entries.items():
            _write(checkpoint / log / str(entry), text)
    _write(checkpoint / "metadata", json.dumps({"id": QUERY_ID}, separators=(",", ":")))
    if spec.state is not None:
        _write(checkpoint / "state/0/_metadata/metadata", OPERATOR)
        _write(checkpoint / "state/0/0/_metadata/schema", SCHEMA)
        for version in range(1, spec.state + 2):
            _write(checkpoint / "state/0/0" / f"{version}.delta", EMPTY_DELTA)
    logs["sink"] = {entry: text.replace("/out/", f"/{output.name}/") for entry, text in sink_log(spec, folder).items()}
    for entry, text in logs["sink"].items():
        _write(output / "_spark_metadata" / str(entry), text)
        _write(output / f"part-{entry}.parquet", f"rows of batch {entry}".ljust(FILE_SIZE), START_MS + entry)
    record = stream_record(folder, spec)
    if reads:
        record = record._replace(name=name, sink={**record.sink, "path": str(output)})
    _record(ledger, spec, record, checkpoint, logs)


def watermark_ms(batch: int) -> int:
    """The watermark that a batch uses: the newest event time before it, less the delay."""
    return START_MS + batch * STEP_MS - 1000 - DELAY_MS if batch > 0 else 0


def source_offset(spec: HomeSpec, batch: int) -> str:
    """The end of a batch, as Spark writes it."""
    if spec.source == "files":
        return json.dumps({"logOffset": batch}, separators=(",", ":"))
    return json.dumps({"clicks": {"0": 60 * (batch + 1), "1": 40 * (batch + 1)}}, separators=(",", ":"))


def checkpoint_logs(spec: HomeSpec, folder: Path) -> dict[str, dict[int, str]]:
    """``offsets``, ``commits`` and ``sources/0``, by entry."""
    offsets, commits = {}, {}
    for batch in range(spec.planned + 1):
        metadata = {
            "batchWatermarkMs": watermark_ms(batch),
            "batchTimestampMs": RAN_MS + batch * 1000,
            "conf": {"spark.sql.shuffle.partitions": "1"},
        }
        text = json.dumps(metadata, separators=(",", ":"))
        offsets[batch] = "\n".join(["v1", text, source_offset(spec, batch)])
    for batch in range(spec.committed + 1):
        next_watermark = {"nextBatchWatermarkMs": watermark_ms(batch + 1)}
        commits[batch] = "v1\n" + json.dumps(next_watermark, separators=(",", ":"))
    return {"offsets": offsets, "commits": commits, "sources/0": _source_log(spec, folder)}


def sink_log(spec: HomeSpec, folder: Path) -> dict[int, str]:
    return {
        batch: "v1\n"
        + json.dumps(
            {
                "path": f"file://{folder}/out/part-{batch}.parquet",
                "size": FILE_SIZE,
                "isDir": False,
                "modificationTime": RAN_MS + batch * 1000,
                "blockReplication": 1,
                "blockSize": 33554432,
                "action": "add",
            },
            separators=(",", ":"),
        )
        for batch in range(spec.written + 1 if spec.sink is None else 0)
    }


def batch_record(spec: HomeSpec, batch: int) -> BatchRecord:
    end = source_offset(spec, batch)
    start = source_offset(spec, batch - 1) if batch > 0 else None
    latest = source_offset(spec, batch + 2) if spec.source == "kafka" else None
    return BatchRecord(
        stream=STREAM,
        generation=1,
        batch_id=batch,
        timestamp_ms=RAN_MS + batch * 1000,
        input_rows=ROWS,
        sources=(BatchSource("FileStreamSource[clicks]", start, end, latest, ROWS),),
        watermark_ms=watermark_ms(batch),
        event_time_min_ms=START_MS + batch * STEP_MS,
        event_time_max_ms=START_MS + (batch + 1) * STEP_MS - 1000,
        late_rows=0,
        state_rows=11,
        durations_ms={"addBatch": 400, "triggerExecution": 850},
    )


def stream_record(folder: Path, spec: HomeSpec | None = None) -> StreamRecord:
    spec = spec or HomeSpec()
    sink = spec.sink or {"kind": "files", "format": "parquet", "path": str(folder / "out")}
    return StreamRecord("clicks", "per_page", sink, spec.output_mode, str(folder / "clicks.py"))


def written_at(file: Path, time_ms: int) -> None:
    """Set the time at which a file was written to the one that a source's log has."""
    os.utime(file, ns=(time_ms * 1_000_000, time_ms * 1_000_000))


def _source_log(spec: HomeSpec, folder: Path) -> dict[int, str]:
    if spec.source == "kafka":
        return {0: '\0v1\n{"clicks":{"0":0,"1":0}}'}
    return {
        entry: "v1\n"
        + json.dumps(
            {"path": f"file://{folder}/clicks/{entry:03d}.json", "timestamp": START_MS + entry, "batchId": entry},
            separators=(",", ":"),
        )
        for entry in range(spec.planned + 1)
    }


def _record(
    ledger: Ledger, spec: HomeSpec, record: StreamRecord, checkpoint: Path, logs: Mapping[str, Mapping[int, str]]
) -> None:
    stream = record.full_name
    ledger.register_stream(record)
    ledger.add_generation(GenerationRecord(stream, 1, str(checkpoint), QUERY_ID, layout=spec.layout))
    lines = [LogLine(stream, 1, log, entry, text) for log, texts in logs.items() for entry, text in texts.items()]
    run = None
    if spec.run != "none":
        code = hashlib.sha256(Path(record.pipeline_file).read_bytes()).hexdigest()
        run = ledger.begin_run(stream, 1, "4.1.3", settings={}, code=code)
        digest = spec.layout.get("rows_digest")
        ledger.record_rows_digest(run.id, None if digest is None else str(digest))
    ledger.record_lines(lines)
    for batch in range(spec.committed + 1) if spec.reported is None else spec.reported:
        ledger.record_batch(batch_record(spec, batch)._replace(stream=stream, run=run.id if run is not None else None))
    if run is not None and spec.run != "open":
        ledger.end_run(run.id, spec.run, "IOException: disk full" if spec.run == "failed" else None)


def _write(file: Path, content: str | bytes, time_ms: int | None = None) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    if time_ms is not None:
        written_at(file, time_ms)


class _Clock:
    """Ten seconds later each time it is read; the run is recorded before its first batch is planned."""

    def __init__(self) -> None:
        self._now_ms = RAN_MS - 60_000

    def __call__(self) -> int:
        self._now_ms += 10_000
        return self._now_ms
