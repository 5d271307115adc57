"""The gate before a start, without Spark: which program counts, who accepted what, and what is recorded when."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from slackwater.checkpoint.layout import commit_path, offset_path
from slackwater.core.errors import Refused, UsageError
from slackwater.core.program import InputShape, OperatorShape, Program, SourceShape, Traced, Watermark, program_of_batch
from slackwater.core.records import GenerationRecord
from slackwater.core.verdict import Effect
from slackwater.ledger.workspace import Workspace
from slackwater.runtime.loader import load
from slackwater.runtime.run.before_start import (
    NOT_COMPARED,
    StartGate,
    judge,
    program_json,
    record_program,
    warnings_about,
)
from slackwater.runtime.run.query import BuiltStream
from slackwater.storage.local import LocalStore
from tests.support.errors import raises_code
from tests.support.homes import STREAM, HomeSpec
from tests.support.rebuilds import Project, make_project

FILE = """import slackwater
pipeline = slackwater.Pipeline("clicks")
@pipeline.stream(sink=slackwater.sinks.files("parquet", "out"))
def per_page(spark): ...
"""
BY_PAGE = OperatorShape("aggregate", keys=(Traced("page", "page"),))
OLD = Program(sources=(SourceShape("json"),), operators=(BY_PAGE,))
UPPER = replace(OLD, operators=(replace(BY_PAGE, keys=(Traced("page", "upper(page)"),)),))
FILTERED = replace(OLD, operators=(replace(BY_PAGE, inputs=(InputShape("source 0", filters=("n > 1",)),)),))
OLD = replace(OLD, operators=(replace(BY_PAGE, inputs=(InputShape("source 0"),)),))


def _built(project: Project, program: Program | None) -> BuiltStream:
    definition = load(str(project.folder / "clicks.py")).pipeline.streams["per_page"]
    built = BuiltStream(definition, cast("Any", None), frozenset())
    # What Spark's plan would show.
    built.__dict__.update(program=program, sources=[])
    return built


def _generation(workspace: Workspace) -> GenerationRecord:
    return workspace.ledger.generation(STREAM, 1)


def _start(project: Project, program: Program | None, *accepted: str, said: list[str] | None = None) -> StartGate:
    """What a run does before its query starts; ``said`` gets what it shows."""
    said = [] if said is None else said
    with project.open() as workspace:
        gate = StartGate(workspace.ledger, "clicks.py", said.append, frozenset(accepted))
        built = _built(project, program)
        gate.check(built)
        gate.require_found()
        record_program(workspace.home, workspace.ledger, _generation(workspace), built)
        return gate


def _commit(project: Project, batch: int) -> None:
    store = LocalStore(project.checkpoint(1))
    store.write(offset_path(batch), store.read(offset_path(batch - 1)))
    store.write(commit_path(batch), store.read(commit_path(batch - 1)))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A stream that has committed batch 6 with the old program, after five that are not recorded."""
    project = make_project(tmp_path, HomeSpec(pipeline=FILE))
    _start(project, OLD)
    _commit(project, 6)
    return project


def test_a_change_that_committed_nothing_is_refused_again(project: Project) -> None:
    with pytest.raises(Refused) as caught:
        _start(project, FILTERED)
    assert "filter-before-state-changed, changes-rows" in str(caught.value)

    gate = _start(project, FILTERED, "filter-before-state-changed")
    assert gate.recorded[STREAM]["codes"] == ["filter-before-state-changed"]
    with pytest.raises(Refused):
        _start(project, FILTERED)
    _start(project, OLD)


def test_a_change_is_part_of_the_state_with_its_first_commit(project: Project) -> None:
    _start(project, FILTERED, "filter-before-state-changed")
    _commit(project, 7)

    _start(project, FILTERED)
    with pytest.raises(Refused):
        _start(project, OLD)


def test_an_acceptance_is_for_a_change_that_there_is(project: Project) -> None:
    with raises_code(UsageError, "accept-unknown", found="keys-changed"):
        _start(project, OLD, "keys-changed")


def test_a_start_says_that_a_longer_delay_brings_back_no_closed_window(project: Project) -> None:
    """The change is allowed, and other rows are late from then on."""

    def with_delay(delay_ms: int) -> Program:
        rows = InputShape("source 0", watermarks=(Watermark("at", delay_ms),))
        return replace(OLD, operators=(replace(BY_PAGE, inputs=(rows,)),))

    said: list[str] = []
    _start(project, with_delay(60_000), "watermark-added", said=said)
    _commit(project, 7)
    assert said == []

    _start(project, with_delay(120_000), said=said)
    assert len(said) == 1
    assert said[0].startswith(f"{STREAM}: watermark-delay-changed: the watermark's delay was 1 minute, is 2 minutes")
    assert "stay closed" in said[0]
    _commit(project, 8)

    _start(project, with_delay(120_000), said=said)
    assert len(said) == 1


def test_what_a_function_depends_on_is_said_once(project: Project, tmp_path: Path) -> None:
    clock = replace(OLD, outside={"clean": ("the clock",)})
    with project.open() as workspace:
        first = judge(_built(project, clock), _generation(workspace)._replace(location=str(tmp_path / "absent")))
        adopted = judge(_built(project, clock), _generation(workspace)._replace(programs=None))
    assert [one.verdict.changes[-1].code for one in (first, adopted)] == ["function-not-repeatable"] * 2

    said: list[str] = []
    _start(project, clock, said=said)
    _commit(project, 7)
    _start(project, clock, said=said)
    assert [text.partition(": what")[0] for text in said] == [
        f"{STREAM}: function-not-repeatable: function clean depends on the clock"
    ]


def test_each_change_needs_its_own_acceptance(project: Project) -> None:
    both = replace(UPPER, operators=(replace(UPPER.operators[0], inputs=FILTERED.operators[0].inputs),))
    with pytest.raises(Refused) as caught:
        _start(project, both, "filter-before-state-changed")

    assert "filter-before-state-changed," not in str(caught.value)
    assert "--accept keys-changed --accept filter-before-state-changed" in str(caught.value.hint)
    _start(project, both, "filter-before-state-changed", "keys-changed")


def test_a_change_that_spark_cannot_run_is_not_accepted(project: Project) -> None:
    another = replace(OLD, sources=(SourceShape("kafka", "topics clicks"),))

    with pytest.raises(Refused) as caught:
        _start(project, another, "sources-changed")
    assert "--accept" not in str(caught.value.hint)


def test_the_hint_of_several_changes_is_the_one_that_makes_all_right(project: Project) -> None:
    other_mode = replace(UPPER, output_mode="update")

    with pytest.raises(Refused) as caught:
        _start(project, other_mode)

    assert "plan reset clicks/per_page --from earliest --output swap --pipeline clicks.py" in str(caught.value.hint)
    assert "plan rebuild" not in str(caught.value.hint)


def test_what_is_compared_with(project: Project, tmp_path: Path) -> None:
    with project.open() as workspace:
        generation = _generation(workspace)
        assert judge(_built(project, OLD), generation).basis == "recorded"
        # The checkpoint shows the query that made it if no program is recorded.
        assert judge(_built(project, OLD), generation._replace(programs=None)).basis == "checkpoint"
        damaged = [{"after": -1, "program": {"sources": 3}}, "no entry", {"after": "x"}]
        assert judge(_built(project, OLD), generation._replace(programs=cast("Any", damaged[:1]))).basis == "checkpoint"
        assert judge(_built(project, OLD), None).basis == "nothing"
        empty = generation._replace(location=str(tmp_path / "absent"))
        assert judge(_built(project, UPPER), empty).verdict.effect is Effect.SAME
        assert judge(_built(project, None), empty).basis == "nothing"


def test_a_query_that_cannot_be_read_is_not_called_the_same(project: Project) -> None:
    unreadable = _built(project, None)
    with project.open() as workspace:
        generation = _generation(workspace)
        judged = judge(unreadable, generation)
        unreadable.__dict__["profile"] = None
        stream = workspace.ledger.find_stream(STREAM)
        said = [warnings_about(stream, unreadable, committed) for committed in (6, -1)]

    assert (judged.basis, judged.committed, judged.effect) == ("unreadable", 6, None)
    assert [NOT_COMPARED in warnings for warnings in said] == [True, False]


def test_what_an_unreadable_program_commits_is_of_no_known_program(project: Project) -> None:
    _start(project, None)
    _commit(project, 7)

    with project.open() as workspace:
        programs = _generation(workspace).programs
        assert program_of_batch(programs, 6) == program_json(OLD)
        assert program_of_batch(programs, 7) is None
        assert judge(_built(project, OLD), _generation(workspace)).basis == "checkpoint"
    _start(project, UPPER)
