"""Projects with later stages, without Spark: ``clicks/per_page``, and streams that read the files of its output."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from slackwater.core.records import GenerationRecord, LogLine, StreamRecord
from slackwater.ledger.recording.stream_files import write_stream_file_of
from slackwater.runtime.loader import digest
from tests.support.homes import (
    EMPTY_DELTA,
    FILE_SIZE,
    OPERATOR,
    QUERY_ID,
    SCHEMA,
    START_MS,
    HomeSpec,
    batch_record,
    checkpoint_logs,
    sink_log,
    written_at,
)
from tests.support.rebuilds import Project, make_project

DAY, MONTH, IDLE = "clicks/day", "clicks/month", "clicks/idle"
STAGE = HomeSpec(planned=5, committed=5, state=5, written=5)


@dataclass(frozen=True)
class Stages(Project):
    """A project of which every stream is looked at."""

    def in_use(self) -> dict[str, str]:
        found = super().in_use()
        for stage in sorted((self.home / "streams" / "clicks").iterdir()):
            found |= self.files(stage / "checkpoints", self.folder / stage.name)
            found[f"{stage.name}/stream.json"] = (stage / "stream.json").read_text()
        return found


def make_stages(folder: Path, stages: Mapping[str, tuple[str, HomeSpec]]) -> Stages:
    """The project with further streams, each with the folder it reads: batch N reads ``part-N.parquet``."""
    made = make_project(folder)
    made.claim_output()
    project = Stages(made.folder, made.home)
    for name, (reads, spec) in stages.items():
        add_stage(project, name, reads, spec)
    return project


def three_stages(folder: Path) -> Stages:
    """``out`` is read by ``day``, which is read by ``month``; ``idle`` has read only the oldest batches of ``out``."""
    idle = HomeSpec(planned=1, committed=1, state=1, written=1)
    return make_stages(folder, {"day": ("out", STAGE), "month": ("day", STAGE), "idle": ("out", idle)})


def add_stage(project: Project, name: str, reads: str, spec: HomeSpec) -> None:
    """Add the stream ``clicks/name`` as a run has left it."""
    folder, stream = project.folder, f"clicks/{name}"
    checkpoint = project.home / "streams" / "clicks" / name / "checkpoints" / "0001"
    logs = {log: dict(entries) for log, entries in checkpoint_logs(spec, folder).items()}
    logs["sources/0"] = {entry: _reading(text, reads, entry) for entry, text in logs["sources/0"].items()}
    written = {entry: text.replace("/out/", f"/{name}/") for entry, text in sink_log(spec, folder).items()}
    for log, entries in logs.items():
        for entry, text in entries.items():
            _write(checkpoint / log / str(entry), text.encode())
    _write(checkpoint / "metadata", json.dumps({"id": QUERY_ID}).encode())
    _write(checkpoint / "state/0/_metadata/metadata", OPERATOR.encode())
    _write(checkpoint / "state/0/0/_metadata/schema", SCHEMA)
    for version in range(1, (spec.state or 0) + 2):
        _write(checkpoint / "state/0/0" / f"{version}.delta", EMPTY_DELTA)
    for entry, text in written.items():
        _write(folder / name / "_spark_metadata" / str(entry), text.encode())
        part = folder / name / f"part-{entry}.parquet"
        _write(part, f"rows of {name} {entry}".ljust(FILE_SIZE).encode())
        written_at(part, START_MS + entry)
    sink = {"kind": "files", "format": "parquet", "path": str(folder / name)}
    lines = [LogLine(stream, 1, log, entry, text) for log, texts in logs.items() for entry, text in texts.items()]
    lines += [LogLine(stream, 1, "sink", entry, text) for entry, text in written.items()]
    with project.open() as workspace:
        ledger = workspace.ledger
        ledger.register_stream(StreamRecord("clicks", name, sink, "append", str(folder / "clicks.py")))
        ledger.add_generation(GenerationRecord(stream, 1, str(checkpoint), QUERY_ID, layout=spec.layout))
        ledger.record_lines(lines)
        run = ledger.begin_run(stream, 1, "4.1.3", settings={}, code=digest(str(folder / "clicks.py")))
        for batch in range(spec.planned + 1):
            ledger.record_batch(batch_record(spec, batch)._replace(stream=stream, run=run.id))
        ledger.end_run(run.id, "finished", None)
        write_stream_file_of(workspace.home, ledger, stream)


def read_uncopied(project: Project, name: str, file: str, batch: int) -> None:
    """Have ``clicks/name`` read a file, as its own log records it; no copy of that is in the ledger yet."""
    log = project.home / "streams" / "clicks" / name / "checkpoints" / "0001" / "sources/0" / str(batch)
    entry = {"path": f"file://{project.folder}/{file}", "timestamp": 1, "batchId": batch}
    _write(log, f"v1\n{json.dumps(entry)}".encode())


def read_next(project: Project, name: str, batch: int) -> None:
    """Have ``clicks/name`` plan a batch that reads one more entry of its source's own log."""
    offsets = project.home / "streams" / "clicks" / name / "checkpoints" / "0001" / "offsets"
    text = (offsets / str(batch - 1)).read_text()
    (offsets / str(batch)).write_text(text.replace(f'"logOffset":{batch - 1}', f'"logOffset":{batch}'))


def _reading(text: str, reads: str, entry: int) -> str:
    return text.replace(f"/clicks/{entry:03d}.json", f"/{reads}/part-{entry}.parquet")


def _write(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
