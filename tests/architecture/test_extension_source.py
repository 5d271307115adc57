"""A kind of source that exists in this file only, registered by one line: what reads sources works with it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from slackwater.checkpoint.layout import offset_path
from slackwater.core.checkpoint import CheckpointShape, OffsetEntry, SourceEvidence, SourceFile, SourceOffset
from slackwater.core.program import Program, SourceShape
from slackwater.core.records import BatchSource, LogLine
from slackwater.core.targets import Target
from slackwater.core.verdict import Verdict
from slackwater.diagnose.checkpoint_changes import checkpoint_changes
from slackwater.diagnose.program_changes import source_changes
from slackwater.ledger.lineage import AVAILABLE_NOW
from slackwater.operations.plan.document import parse
from slackwater.operations.plan.plan import Plan
from slackwater.runtime.loader import load
from slackwater.runtime.run.failures import classify
from slackwater.runtime.run.no_data_batch import reached_end
from slackwater.sources import SOURCES, kind_described, kind_of
from slackwater.sources.common.contract import (
    Claims,
    EmptyBase,
    End,
    Position,
    Range,
    Reach,
    Reached,
    RestartEffect,
    Served,
    SourceEntries,
    SourceRange,
    SourceSeen,
    SparkSource,
    out_of_range,
)
from slackwater.sources.common.source import LiveSource, Source
from slackwater.storage.protocols import ReadStore
from tests.refusals.scene import APPLY, PIPELINE, Player, Scene
from tests.support import homes
from tests.support.extensions import Installed, killed_applies, killed_undos
from tests.support.rebuilds import CLEAN

EVERY = 61
LINES = 100
"""On each page."""


class Book(Source):
    """A position is the next page to read, of all pages that its ``path`` has."""

    kind = "book"
    example = '{"page": 3}: the next page to read'
    formats = frozenset({"book"})
    connectors = frozenset({"book"})
    harmless_options = frozenset({"pagesadayatmost"})
    end_field = "lastPage"
    transient_errors = re.compile("ShelfClosedException")
    failures = (("data-loss", re.compile("PageTornOutException")),)
    restart_effect: RestartEffect = ("stuck", "the option firstPage must name a page that the book still has")

    def is_named(self, description: str) -> bool:
        return description == "book"

    def live(self) -> LiveSource:
        return Shelf(self)

    def owns(self, offset: object, log: SourceEntries) -> bool:
        return isinstance(offset, dict) and offset.keys() == {"page"}

    def empty_base(self, start: str | None) -> EmptyBase | None:
        return None if start is None else EmptyBase(start)

    def initial(self, log: SourceEntries) -> str | None:
        return at(0)

    def rows(self, span: SourceRange) -> int | None:
        return None if span.end is None else (page(span.end) - page(span.start)) * LINES

    def counted(self, span: SourceRange) -> Mapping[str, int | None] | None:
        return {"pages": page(span.end) - page(span.start)}

    def unavailable(self, span: SourceRange, reach: Reach) -> tuple[str, ...]:
        oldest = page(reach.earliest(span.source))
        return (f"pages {page(span.start)} to {oldest - 1} were torn out",) if page(span.start) < oldest else ()

    def range_between(self, start: EmptyBase, end: EmptyBase, claims: Claims, *, to_next: bool) -> Range:
        return Range(start.end, end.end, summary=f"{page(end.end) - page(start.end)} pages")

    def reached(self, end: End, span: SourceRange) -> Reached:
        return "end" if page(span.end) == end["page"] else "before"

    def describe(self, offset: str | None) -> str:
        return f"page {page(offset)}"

    def restart_fields(
        self, offset: str | None, files_read: int | None, files_to_come: Sequence[SourceFile]
    ) -> Mapping[str, object]:
        return {"first_page": page(offset)}


class Shelf(LiveSource):
    def position(self, source: SourceSeen, target: Target, given: str | None) -> Position:
        first, last = self._pages(source.spark)
        match target.kind:
            case "earliest":
                found = first
            case "latest":
                found = last
            case "offsets":
                self.kind.check_offset(source.name, given, source.where)
                found = page(given)
            case _:
                raise out_of_range(source.where, "pages have no times", found=str(target))
        if not first <= found <= last:
            raise out_of_range(source.where, "it has no such page", expected=f"{first} to {last}", found=str(found))
        return source.at(EmptyBase(at(found)), f"page {page(source.current)} -> {found}")

    def served(self, source: SparkSource) -> Served | None:
        first, last = self._pages(source)
        return Served(at(first), at(last))

    def _pages(self, source: SparkSource) -> tuple[int, int]:
        first, last = Path(source.options["path"]).read_text().split()
        return int(first), int(last)


BOOK = Book()


def at(number: int) -> str:
    """The position before a page, as Spark writes it."""
    return f'{{"page":{number}}}'


def page(offset: str | None) -> int:
    return int(json.loads(offset)["page"]) if offset is not None else 0


class Reader(Player):
    def _rows(self, store: ReadStore, batch: int) -> int:
        if batch == 0:
            return 0
        start, end = (page(store.read(offset_path(one)).decode().split("\n")[2]) for one in (batch - 1, batch))
        return (end - start) * LINES


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    """A home whose stream has read a page in each of seven batches."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(homes, "source_offset", lambda _, batch: at(batch + 1))
    monkeypatch.setattr(homes, "_source_log", lambda _spec, _folder: {})
    monkeypatch.setattr(homes, "BatchSource", lambda _, *rest: BatchSource("book", *rest))
    SOURCES.register(Book.kind, BOOK)
    made = Scene(tmp_path, replace(CLEAN, source="kafka"))
    made.player = Reader(tmp_path / "clicks.py")
    yield made
    SOURCES.unregister(Book.kind)


def printed(scene: Scene, command: str) -> Any:
    return json.loads(scene.must(f"{command} --format json").text)


def test_reports_know_the_kind(scene: Scene) -> None:
    (source,) = printed(scene, f"inspect {scene.checkpoint}")["sources"]
    assert source["kind"] == "book"

    (stream,) = printed(scene, "status")["streams"]
    assert (stream["lag_rows"], stream["lag_files"]) == (2 * LINES, None)

    position = printed(scene, "offsets per_page")
    assert (position["sources"][0]["kind"], position["sources"][0]["first_page"]) == ("book", 6)
    assert Book.restart_effect[1] in [effect["text"] for effect in position["manual_restart"]["effects"]]


def test_a_rebuild_starts_at_its_empty_base(scene: Scene) -> None:
    scene.plan()
    plan = json.loads((scene.folder / "plan.json").read_text())
    assert plan["cost"]["apply"]["rows"] % LINES == 0

    scene.player.served = {"0": Served(at(99))}
    refused = scene.type(APPLY)
    assert "were torn out" in refused.text

    scene.player.served = {}
    scene.must(APPLY)
    assert _base(scene).endswith(at(3))


def _base(scene: Scene) -> str:
    """The oldest entry of the generation that the rebuild has built."""
    return min((scene.stream / "checkpoints" / "0002" / "offsets").iterdir()).read_text()


def test_a_killed_apply_is_continued_or_undone(scene: Scene) -> None:
    before, plan = scene.project.in_use(), _planned(scene)

    for finished in killed_applies(scene.project, plan, EVERY, lambda one: scene.project.apply(one, scene.player)):
        assert not finished or _base(scene).endswith(at(3))

    scene.project.undo(plan)
    assert scene.project.in_use() == before


def test_a_killed_undo_is_continued(scene: Scene) -> None:
    before, plan = scene.project.in_use(), _planned(scene)

    for killed in killed_undos(scene.project, plan, EVERY, lambda one: scene.project.apply(one, scene.player)):
        assert scene.project.in_use() == before, f"undo killed before change {killed}"


def _planned(scene: Scene) -> Plan:
    scene.plan()
    return parse((scene.folder / "plan.json").read_text(), "plan.json")


def test_an_installed_distribution_adds_it_by_an_entry_point(
    scene: Scene, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("installed")
    installed = Installed(folder, Path(__file__), "slackwater.sources", Book.kind, "BOOK")

    shown = installed.slackwater(["inspect", str(scene.checkpoint), "--format", "json"], scene.folder)

    assert json.loads(shown)["sources"][0]["kind"] == "book"


def test_a_replay_starts_at_the_page_that_is_named(scene: Scene) -> None:
    (scene.folder / "from.json").write_text(f'{{"0": {at(3)}}}')

    assert "batch 3 is the first" in scene.must("plan replay per_page --from offsets:from.json --force").text


@pytest.mark.usefixtures("scene")
def test_the_verdict_knows_its_options_and_formats() -> None:
    def codes(**options: str) -> list[str]:
        was, now = (Program(sources=(SourceShape("book", "Emma", options=one),)) for one in ({}, options))
        return [change.code for change in source_changes(was, now)]

    assert kind_described("book") is kind_of(at(3), {}) is SOURCES.get("book")
    assert codes(pagesadayatmost="5") == []
    assert codes(translation="fr") == ["source-options-changed"]
    evidence = CheckpointShape((SourceEvidence("kafka"),))
    (change,) = checkpoint_changes(evidence, Program(sources=(SourceShape("book", "Emma"),)), ran=True).changes
    assert change.text == "source 0 was kafka, is book"
    assert (
        checkpoint_changes(
            CheckpointShape((SourceEvidence("book"),)), Program(sources=(SourceShape("book", "Emma"),)), ran=True
        )
        == Verdict()
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("com.example.ShelfClosedException: until nine", ("transient", "store-unreachable")),
        ("com.example.PageTornOutException: page 3", ("permanent", "data-loss")),
        ("com.example.InkException: dry", ("permanent", "unknown")),
    ],
)
@pytest.mark.usefixtures("scene")
def test_its_errors_are_known(text: str, expected: tuple[str, str]) -> None:
    failure = classify(RuntimeError(text))

    assert (failure.kind, failure.code) == expected


def test_a_pipeline_file_shows_the_connector(scene: Scene) -> None:
    file = scene.folder / "books.py"
    file.write_text(PIPELINE.replace(": ...", ":") + '    return spark.readStream.format("book").load()\n')

    assert load(str(file)).connectors == ("book",)


@pytest.mark.parametrize(("read", "expected"), [(7, "end"), (6, "before")])
def test_the_end_of_a_run_is_known(read: int, expected: Reached, scene: Scene) -> None:
    with scene.project.open() as workspace:
        generation = workspace.ledger.generation(homes.STREAM, 1)
        assert generation is not None
        workspace.ledger.record_lines([LogLine(homes.STREAM, 1, AVAILABLE_NOW, 1, json.dumps([{"page": 7}]))])
        entry = OffsetEntry(1, None, (SourceOffset("0", at(read)),))

        assert reached_end(workspace.ledger, generation, 5, entry) == expected
