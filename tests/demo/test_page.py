"""The page and the document show the same result, and an inequality cannot be overlooked."""

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from examples.demo import page
from examples.demo.compare import Comparison
from examples.demo.data import Input
from examples.demo.places import GOLD, STREAMS
from examples.demo.result import DemoResult, ManualRestart, StageKill, StreamMarks, TablesResult, demo_document
from examples.demo.run import DemoOptions, keep_or_remove
from slackwater.cli.common.console import out
from slackwater.cli.verbs.demo import exit_code
from slackwater.core.checkpoint import Marks
from slackwater.operations.actions.generations import BuildGeneration
from slackwater.operations.plan.cost import NO_WORK, NOTHING_KEPT
from slackwater.operations.plan.plan import Cost, Plan, PlannedFacts, Request, Work
from tests.cli.test_screens import Screens, check_whole


@pytest.fixture
def equal() -> DemoResult:
    facts = PlannedFacts(
        planned=12,
        committed=11,
        state=11,
        written=11,
        target=11,
        contributing=10,
        pending=None,
        watermark_ms=1,
        retention_ms=86_400_000,
        delay_ms=172_800_000,
        checkpoint_present=True,
        ranges_from="checkpoint",
        notes=(),
        adopted=None,
        keeps_unmarked=False,
    )
    plan = Plan(
        id="20260131T000000-abcdef",
        stream=f"weather/{GOLD}",
        made_at="2026-01-31T00:00:00Z",
        request=replace(Request.at("rebuild", "last-written"), pipeline_file="weather.py"),
        target="last-written",
        facts=facts,
        preconditions=(),
        actions=(BuildGeneration(2, "id", 10, 11, pending=None),),
        cost=Cost(2, Work(2, 2000, 0, 2, None, None, 0), NO_WORK, 12000, NOTHING_KEPT, None),
        risks=(),
        undo=(),
        downstream=(),
    )
    end = tuple(StreamMarks(name, Marks(24, 24, None, 24)) for name in STREAMS)
    return DemoResult(
        source="files",
        input=Input(rows=26115, late=276, malformed=39, files=18),
        killed_batch=12,
        before=tuple(StreamMarks(name, Marks(12, 11, 11, 11)) for name in STREAMS),
        plan=plan,
        plan_text="plan: continue after 11",
        restarted=StreamMarks(GOLD, Marks(11, 11, 11, 11)),
        after=end,
        rows_read_again=2172,
        rows_read=26075,
        comparisons=tuple(Comparison(name, 1083, 1083, 0, 0) for name in STREAMS),
        manual_restart=ManualRestart("STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE", 492, 1083, 591, 0, 12, 12),
        seconds=118.4,
        folder=None,
    )


@pytest.fixture
def unequal(equal: DemoResult) -> DemoResult:
    return replace(equal, comparisons=(*equal.comparisons[:-1], Comparison(GOLD, 1083, 1082, 1, 0)))


@pytest.mark.parametrize("options", [DemoOptions(), DemoOptions(keep=True)], ids=["plain", "keep"])
def test_files_that_show_which_rows_differ_are_kept(
    equal: DemoResult, unequal: DemoResult, options: DemoOptions, tmp_path: Path
) -> None:
    assert keep_or_remove(unequal, options, tmp_path).folder == str(tmp_path)
    assert keep_or_remove(equal, options, tmp_path).folder == (str(tmp_path) if options.keep else None)
    assert tmp_path.exists() is options.keep


@pytest.fixture
def tables(equal: DemoResult) -> TablesResult:
    def killed(stream: str, batch: int, following: str) -> StageKill:
        return StageKill(stream, batch, Marks(batch, batch - 1, None, batch), f"batch {batch} is written", following)

    run = "slackwater run weather_tables.py"
    return TablesResult(
        source="kafka",
        input=replace(equal.input, files=0),
        kills=(killed("sensor-raw-ingest", 3, run), killed(GOLD, 17, run)),
        lost=killed(GOLD, 17, f"slackwater plan rebuild weather_tables/{GOLD}"),
        plan=equal.plan,
        plan_text=equal.plan_text,
        rebuilt=Marks(17, 17, 17, 17),
        comparisons=equal.comparisons,
        seconds=80.2,
        folder=None,
    )


def shown(result: DemoResult | TablesResult) -> str:
    console = Console(file=io.StringIO(), width=100)
    page.show(result, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("kind", ["equal", "tables"])
def test_screen_of_the_page(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    result = request.getfixturevalue(kind)
    taken = Screens(monkeypatch).taken(lambda: page.show(result, out()))
    check_whole(taken)
    assert taken == snapshot


def test_the_number_line_shows_each_mark_below_its_batch() -> None:
    assert page.number_line(Marks(12, 11, 11, 11), 12) == (
        "...-----7-----8-----9----10----11----12",
        "                              cvw     o",
    )
    assert page.number_line(Marks(1, 0, None, 1), 1) == ("   -----0-----1", "        c    ow")


def test_the_page_of_an_equal_outcome(equal: DemoResult) -> None:
    text = shown(equal)
    assert text.lstrip().startswith("EQUAL ")
    assert "NOT EQUAL" not in text
    assert "Rows read again: 2,172 of 26,075 (8%)" in text
    assert "591 of 1,083 rows lost" in text
    assert exit_code(equal) == 0


def test_a_missing_row_is_reported_first_and_in_the_exit_code(unequal: DemoResult) -> None:
    text = shown(unequal)
    assert text.lstrip().startswith("NOT EQUAL ")
    assert re.search(rf"{GOLD} +1,083 +1,082 +1 +0 +NOT EQUAL", text)
    assert exit_code(unequal) == 8


def test_the_document_has_what_the_page_shows(equal: DemoResult, unequal: DemoResult) -> None:
    document = json.loads(json.dumps(demo_document(equal)))
    assert document["schema"] == "slackwater.demo/1"
    assert document["equal"] is True
    marks = {"planned": 12, "committed": 11, "state": 11, "written": 11, "pending_no_data": None}
    assert document["before"][GOLD] == marks | {"next_batch": 12}
    assert document["manual_restart"]["lost"] == 591
    assert demo_document(unequal)["equal"] is False
    assert [line["equal"] for line in demo_document(unequal)["comparisons"]] == [True, True, True, False]


def test_the_page_with_tables_has_each_kill_and_what_was_typed_next(tables: TablesResult) -> None:
    text = shown(tables)
    assert text.lstrip().startswith("EQUAL ")
    assert re.search(rf"{GOLD}, in batch 17: o 17  c 16  v -  w 17\n.*\n +typed next: slackwater run", text)
    assert f"typed next: slackwater plan rebuild weather_tables/{GOLD}" in text
    assert "from a Kafka topic" in text
    document = json.loads(json.dumps(demo_document(tables)))
    assert (document["schema"], document["equal"]) == ("slackwater.demo-tables/1", True)
    assert [kill["batch"] for kill in document["killed"]] == [3, 17]
    assert document["killed"][0]["marks"]["written"] == 3


def test_with_tables_a_doubled_row_is_reported_first(tables: TablesResult) -> None:
    doubled = replace(tables, comparisons=(*tables.comparisons[:-1], Comparison(GOLD, 1083, 1084, 0, 1)))
    assert shown(doubled).lstrip().startswith("NOT EQUAL ")
    assert exit_code(doubled) == 8
    assert demo_document(doubled)["equal"] is False
