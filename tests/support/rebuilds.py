"""Rebuilds without Spark: projects of ``tests.support.homes``, and a replayer that writes what Spark would write.

The files of a replayed batch are those that a rebuild looks at: ``commits/N`` with the next watermark, and the version
of every state store that the batch leaves behind. Restarts with real Spark are in ``tests/restart``.
"""

import hashlib
import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from slackwater.checkpoint.layout import commit_path, offset_path
from slackwater.checkpoint.logs import read_logs
from slackwater.core.checkpoint import SourceFile
from slackwater.core.program import Program, QueryProfile, RowOrder
from slackwater.core.records import GenerationRecord, StreamRecord
from slackwater.core.settings import Settings
from slackwater.core.sink import BackfillDirectory, OutputTreatment
from slackwater.core.snapshot import Snapshot
from slackwater.formats.compactible import render_source_file
from slackwater.ledger.recording.history import executed
from slackwater.ledger.recording.snapshot import look_at_stream, stream_id
from slackwater.ledger.recording.stream_files import write_stream_file_of
from slackwater.ledger.workspace import Workspace, open_workspace
from slackwater.operations.action import Action, Display, Inverse
from slackwater.operations.apply.apply_plan import apply_plan
from slackwater.operations.apply.operation import Operation, Replayer
from slackwater.operations.apply.undo_operation import find_operation, plan_of_operation, undo_operation
from slackwater.operations.make_plan import derive_all, make_plan
from slackwater.operations.plan.contributing import Code
from slackwater.operations.plan.plan import Plan, Request, SourceStart
from slackwater.operations.planner import Planner
from slackwater.runtime.loader import digest, environment_read
from slackwater.runtime.replay import SparkRuntime
from slackwater.runtime.run.before_start import claim_output
from slackwater.sinks.common.registry import is_same_sink, open_output
from slackwater.sources.common.contract import Position, Served
from slackwater.sources.files import NO_FILES, Files
from slackwater.storage.local import LocalStore
from slackwater.storage.open import open_write_store
from slackwater.storage.protocols import ReadStore
from tests.support.homes import (
    EMPTY_DELTA,
    FILE_SIZE,
    LAYOUT,
    OPERATOR,
    ROWS,
    SCHEMA,
    START_MS,
    STATELESS,
    STREAM,
    HomeSpec,
    checkpoint_logs,
    make_home,
    sink_log,
    watermark_ms,
)

TEMPORARY = ".slackwater.tmp"
SPARK_VERSION = "4.1.3"

CLEAN = HomeSpec(planned=6, committed=5, state=5, written=5)
"""Batch 6 is planned and was interrupted."""

BEGINNING = SourceStart("0", '{"logOffset":-1}', {}, {}, "source 0: 6 files read -> 0")
"""The position of the files before all of them."""


class StopBefore(Display):
    """Presses Ctrl-C before an action of a kind, or does something else then."""

    def __init__(self, kind: str, then: Callable[[], object] | None = None) -> None:
        self._kind = kind
        self._then = then

    def action(self, action: Action | Inverse) -> None:
        if action.kind == self._kind:
            if self._then is None:
                raise KeyboardInterrupt
            self._then()


@dataclass
class StubReplayer:
    """Runs the planned batch of a checkpoint as Spark would, as far as its files are concerned."""

    pipeline: Path
    layout: Mapping[str, object] = field(default_factory=lambda: LAYOUT)
    rows: int = ROWS
    found: Mapping[str, Position] = field(default_factory=dict)
    sink: Mapping[str, str] | None = None
    spark_version: str = SPARK_VERSION

    def positions(self, *_: object, **__: object) -> Mapping[str, Position]:
        """The positions of ``found``, whatever the target is."""
        return self.found

    @property
    def sink_written(self) -> Mapping[str, str] | None:
        return self.sink

    def writes_to(self, sink: Mapping[str, str]) -> bool:
        return self.sink is not None and is_same_sink(sink, self.sink)

    @property
    def output_mode(self) -> str:
        return "append"

    def profile(self) -> QueryProfile:
        return replace(QueryProfile.from_json(self.layout), spark_version=self.spark_version)

    def code(self) -> Code:
        return Code(digest(str(self.pipeline)), self.profile().rows_digest, self.spark_version)

    def program(self, settings: Mapping[str, str] | None = None) -> Mapping[str, object] | None:
        return {"file": self.code().digest, **(settings or {})}

    def compact_interval(self) -> int:
        return 10

    def served_positions(self) -> Mapping[str, Served]:
        return {}

    def rows_served(self, *_: object) -> int | None:
        return None

    def run_pending(self, checkpoint: str, **_: object) -> tuple[int, int]:
        store = open_write_store(checkpoint)
        logs = read_logs(store)
        batch = logs.planned
        is_base = not store.exists("state/0/_metadata/metadata")
        if is_base:
            store.write("state/0/_metadata/metadata", OPERATOR.encode())
            store.write("state/0/0/_metadata/schema", SCHEMA)
        store.write(f"state/0/0/{batch + 1}.delta", EMPTY_DELTA)
        entry = {"nextBatchWatermarkMs": watermark_ms(batch + 1)}
        store.write(commit_path(batch), b"v1\n" + json.dumps(entry, separators=(",", ":")).encode())
        return batch, self._rows(store, batch)

    def run_staged(self, operation: Operation, generation: GenerationRecord) -> None:
        """Three more batches, each with a file in the staged output, in a run that the ledger records."""
        recorded = operation.ledger.begin_run(generation.stream, generation.number, "4.1.3")
        store, folder = open_write_store(generation.location), self.pipeline.parent
        first = (-1 if generation.based_at is None else generation.based_at) + 1
        last = first + 2
        output = open_output(operation.stream.sink)
        staged = LocalStore(str(output.staged(operation.plan.id).location))
        spec = HomeSpec(planned=last, committed=last, written=last)
        for log, entries in checkpoint_logs(spec, folder).items():
            for entry, text in entries.items():
                store.write(f"{log}/{entry}", text.encode())
        for entry, text in sink_log(spec, folder).items():
            if entry >= first:
                rows = f"rows of batch {entry}, again".ljust(FILE_SIZE)
                staged.write(f"again-{entry}.parquet", rows.encode())
                new = text.replace("/out/part-", f"/{Path(staged.location).name}/again-")
                staged.write(f"_spark_metadata/{entry}", new.encode())
        if self.layout["operators"]:
            for version in range(1, last + 2):
                store.write(f"state/0/0/{version}.delta", EMPTY_DELTA)
            store.write("state/0/_metadata/metadata", OPERATOR.encode())
            store.write("state/0/0/_metadata/schema", SCHEMA)
        operation.ledger.end_run(recorded.id, "finished", None)

    def run_backfill(self, _operation: Operation, generation: GenerationRecord) -> None:
        """The planned batch with a file in the output, which skips a batch that it has; then the commit."""
        self._write_older(generation, self.pipeline.parent / "out", "older-")

    def run_into_directory(
        self, _operation: Operation, generation: GenerationRecord, output: BackfillDirectory
    ) -> None:
        """The same with a file in the backfill directory, named as Spark does."""
        self._write_older(generation, Path(output.path), "part-00000-6f5c1c2e-0f6b-4a43-9d1e-2f4f5b7f0a11-c000.")

    def _write_older(self, generation: GenerationRecord, folder: Path, name: str) -> None:
        store, out = open_write_store(generation.location), LocalStore(folder)
        batch = read_logs(store).planned
        if not out.exists(f"_spark_metadata/{batch}"):
            rows = f"rows of batch {batch}, an older range".ljust(FILE_SIZE)
            out.write(f"{name}{batch}.parquet", rows.encode())
            text = sink_log(HomeSpec(written=batch), self.pipeline.parent)[batch]
            new = text.replace("/out/part-", f"/{folder.relative_to(self.pipeline.parent)}/{name}")
            out.write(f"_spark_metadata/{batch}", new.encode())
        store.write(commit_path(batch), b'v1\n{"nextBatchWatermarkMs":0}')

    def _rows(self, store: ReadStore, batch: int) -> int:
        end = _entry(store, batch)
        start = _entry(store, batch - 1) if store.exists(offset_path(batch - 1)) else -1
        return (end - start) * self.rows


@dataclass(frozen=True)
class StubRuntime:
    """Reads pipeline files; the query is that of a replayer without Spark."""

    replayer: Replayer
    asked_brief: list[bool] = field(default_factory=list)
    """Of each replayer that was opened, whether it was for a short life."""

    def digest(self, reference: str) -> str:
        return digest(reference)

    def environment_read(self, reference: str) -> tuple[str, ...]:
        return environment_read(reference)

    def environment_changes(self, workspace: Workspace, stream: str, kept: Program, /) -> tuple[str, ...]:
        return SparkRuntime(print).environment_changes(workspace, stream, kept)

    def require_spark(self) -> None: ...

    @contextmanager
    def open_replayer(
        self,
        _workspace: Workspace,
        _stream: StreamRecord,
        _reference: str,
        _on_jvm: Callable[[int], None],
        /,
        *,
        brief: bool = True,
    ) -> Iterator[Replayer]:
        self.asked_brief.append(brief)
        yield self.replayer


RUNTIME = SparkRuntime(lambda _: None)


def _entry(store: ReadStore, batch: int) -> int:
    return int(json.loads(store.read(offset_path(batch)).split(b"\n")[2])["logOffset"])


@dataclass(frozen=True)
class Project:
    """A folder with a home, as ``make_home`` makes it, and an identity of its own."""

    folder: Path
    home: Path

    stream: ClassVar[str] = STREAM

    @contextmanager
    def open(self) -> Iterator[Workspace]:
        with open_workspace(Settings(home=self.home), restore=True) as workspace:
            yield workspace

    def plan(
        self,
        target: str = "last-written",
        retention_ms: int | None = None,
        goal: str = "rebuild",
        output: OutputTreatment = "cut",
        pipeline: str | None = None,
        *,
        downstream: bool = False,
        row_order: RowOrder | None = None,
    ) -> Plan:
        with self.open() as workspace:
            request = Request.at(goal, target, retention_ms, output, downstream=downstream)
            request = replace(request, pipeline_file=pipeline or "", row_order=row_order)
            return make_plan(workspace, self.stream, request, RUNTIME, lambda _: None)

    def plan_reset(
        self, output: OutputTreatment, start: SourceStart, pipeline: str | None = None, target: str = "earliest"
    ) -> Plan:
        """The plan of a reset to a position that nobody has to look up."""
        request = Request(
            "reset",
            pipeline or "",
            target,
            None,
            query_read=True,
            output=output,
            only_source=None,
            starts=(start,),
            to=None,
            ends={},
            downstream=False,
            ranges="recorded",
            into=None,
            row_order=None,
            pipeline_named=False,
            session=(),
        )
        return self._derived(request)

    def plan_backfill(self, files: Sequence[SourceFile], into: Path | None = None) -> Plan:
        """The plan of a backfill of files that nobody has to look up; ``into`` is a backfill directory."""
        lines = [render_source_file(file._replace(log_offset=0)) for file in files]
        log = {"0": "\n".join(["v1", *lines])} if files else {}
        start = SourceStart("0", NO_FILES, log, None, f"source 0: {len(files)} files")
        return self.plan_backfill_of(start, '{"logOffset":0}' if files else NO_FILES, into)

    def plan_backfill_of(self, start: SourceStart, end: str, into: Path | None = None) -> Plan:
        request = replace(Request.at("backfill", "earliest", output="keep"), starts=(start,), ends={start.source: end})
        if into is not None:
            request = replace(request, output="aside", into=str(into))
        return self._derived(request)

    def plan_unread(self, goal: str, target: str, pipeline: str) -> Plan:
        """The plan of a goal where the query's code is not read, as without Spark."""
        return self._derived(replace(Request.at(goal, target), pipeline_file=pipeline))

    def _derived(self, request: Request) -> Plan:
        def read_query(_: StreamRecord, _target: int | None) -> None:
            """As without Spark."""

        request = replace(request, pipeline_named=bool(request.pipeline_file))
        identity = f"20260105T093000-{uuid.uuid4().hex[:6]}"
        with self.open() as workspace:
            planner = Planner(workspace, RUNTIME, read_query, identity=identity, made_at="2026-01-05T09:30:00+00:00")
            stream = workspace.ledger.find_stream(self.stream)
            return derive_all(planner, planner.facts(stream, request.pipeline_file, request.goal), request)

    def apply(
        self, plan: Plan, replayer: Replayer | None = None, *, display: Display | None = None, stopped: bool = False
    ) -> bool:
        chosen = replayer or StubReplayer(self.folder / "clicks.py")
        with self.open() as workspace:
            return apply_plan(
                workspace, plan, StubRuntime(chosen), display or Display(), stopped=stopped, discard_others=True
            )

    def undo(self, plan: Plan, *, stopped: bool = False) -> bool:
        with self.open() as workspace:
            record = find_operation(workspace, plan.id)
            made = plan_of_operation(workspace, record)
            return undo_operation(workspace, record, made, Display(), stopped=stopped)

    def claim_output(self) -> None:
        """Mark the output as the stream's, as its first run does."""
        with self.open() as workspace:
            stream = workspace.ledger.find_stream(STREAM)
            claim_output(workspace.home, stream._replace(id=stream_id(workspace.home, stream)))

    def snapshot(self, stream: str = STREAM) -> Snapshot:
        with self.open() as workspace:
            return look_at_stream(workspace.ledger, workspace.home, workspace.ledger.find_stream(stream))[0]

    def files_read(self) -> list[str]:
        """The names of the files that batches have read, as the ledger has them."""
        with self.open() as workspace:
            spans = tuple(executed(workspace.ledger, workspace.ledger.find_stream(STREAM)))
        return sorted(Path(file.path).name for span in spans for file in Files().files(span))

    def checkpoint(self, number: int) -> Path:
        return self.home / "streams" / "clicks" / "per_page" / "checkpoints" / f"{number:04d}"

    def files(self, *folders: Path) -> dict[str, str]:
        """Every file below some folders with the hash of its content; empty folders too.

        Temporary files of writes that were killed are left out: no code reads them, and nothing can remove them then.
        """
        found = {}
        for folder in folders:
            for path in sorted(folder.rglob("*")):
                if path.name.endswith(TEMPORARY):
                    continue
                name = str(path.relative_to(self.folder))
                found[name] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        return found

    def in_use(self) -> dict[str, str]:
        """What a stream runs on: its checkpoints, its output, its input, ``stream.json``, the pipeline file."""
        stream = self.home / "streams" / "clicks" / "per_page"
        found = self.files(stream / "checkpoints", self.folder / "out", self.folder / "clicks")
        for file in (stream / "stream.json", self.folder / "clicks.py"):
            found[file.name] = file.read_text()
        return found


def make_project(folder: Path, spec: HomeSpec = CLEAN) -> Project:
    home = make_home(folder, spec)
    project = Project(folder, home)
    with project.open() as workspace:
        write_stream_file_of(workspace.home, workspace.ledger, STREAM)
    return project


def old_files(project: Project, count: int) -> list[SourceFile]:
    """Files in the input that are older than those that batches have read; they are written once."""
    files = []
    for number in range(count):
        path = project.folder / "clicks" / f"old-{number}.json"
        path.parent.mkdir(exist_ok=True)
        path.touch()
        files.append(SourceFile(f"file://{path}", START_MS - count + number, 0))
    return files


def reset_behind(project: Project, count: int) -> Project:
    """The stream as a reset leaves it that started behind all of its files, of which ``count`` were never read."""
    project.claim_output()
    files = [SourceFile(f"file://{file}", START_MS, 0) for file in sorted((project.folder / "clicks").glob("0*"))]
    lines = [render_source_file(file) for file in (*old_files(project, count), *files)]
    start = SourceStart("0", '{"logOffset":0}', {"0": "\n".join(["v1", *lines])}, None, "source 0")
    project.apply(project.plan_reset("keep", start), StubReplayer(project.folder / "clicks.py", STATELESS))
    return project
