"""The batch that a rebuild continues after, and what is recorded of the batches before it."""

from dataclasses import replace
from pathlib import Path

import pytest

from slackwater.core.checkpoint import Marks, written_by_all
from slackwater.core.errors import Refused
from slackwater.core.program import QueryProfile
from slackwater.core.records import GenerationRecord, History, RunRecord
from slackwater.core.sink import Delivery
from slackwater.core.snapshot import OutputSeen, Recorded, Snapshot
from slackwater.ledger.recording.batch_history import BatchHistory
from slackwater.operations.checkpoint_path import CheckpointPath
from slackwater.operations.goals.rebuild import recomputed, scope_at, target_batch
from slackwater.operations.plan.context import PlanContext, Scope, StreamFacts, is_cut, state_bounds, written_text
from slackwater.operations.plan.notes import risks_of
from slackwater.operations.plan.plan import BEFORE_ALL, Request
from tests.support.errors import raises_code
from tests.support.homes import START_MS, STEP_MS, STREAM, HomeSpec, checkpoint_logs, stream_record

FOLDER = Path("/project")


def _history(spec: HomeSpec) -> History:
    logs = checkpoint_logs(spec, FOLDER)
    return History(
        metadata='{"id":"q"}',
        offsets=logs["offsets"],
        commits=logs["commits"],
        written={},
        sources={"0": logs["sources/0"]},
        event_time_max_ms={},
        input_rows={},
    )


def _rebuild(spec: HomeSpec, target: int | None = None) -> PlanContext:
    snapshot = Snapshot(
        stream=stream_record(FOLDER),
        generation=GenerationRecord(STREAM, 1, "/checkpoint"),
        marks=Marks(spec.planned, spec.committed, spec.state, spec.written),
        recorded=Recorded(spec.planned, spec.committed, spec.written),
    )
    facts = StreamFacts(
        stream=snapshot.stream, seen=snapshot, recorded=_history(spec), place=CheckpointPath(None), next_generation=2
    )
    at = "last-written" if target is None else "earliest" if target < 0 else f"batch:{target}"
    return PlanContext(facts, Request.at("rebuild", at))


def _scope(rebuild: PlanContext) -> Scope:
    return recomputed(rebuild, scope_at(rebuild, target_batch(rebuild)))


def _recorded(rebuild: PlanContext, history: History) -> PlanContext:
    return rebuild._replace(facts=rebuild.facts._replace(recorded=history))


def _seen(rebuild: PlanContext, snapshot: Snapshot) -> PlanContext:
    return rebuild._replace(facts=rebuild.facts._replace(seen=snapshot))


def _without(rebuild: PlanContext, *batches: int) -> PlanContext:
    kept = {batch: text for batch, text in rebuild.history.offsets.items() if batch not in batches}
    return _recorded(rebuild, replace(rebuild.history, offsets=kept))


def test_it_is_the_last_written_one() -> None:
    assert target_batch(_rebuild(HomeSpec(planned=6, written=4))) == 4


def test_an_older_written_one_may_be_asked_for() -> None:
    assert target_batch(_rebuild(HomeSpec(), target=2)) == 2


def test_where_its_range_is_unknown_it_is_the_newest_that_is_known() -> None:
    assert target_batch(_without(_rebuild(HomeSpec()), 4, 5)) == 3


def test_a_range_without_its_source_files_is_not_known() -> None:
    rebuild = _rebuild(HomeSpec())
    entries = {entry: text for entry, text in rebuild.history.sources["0"].items() if entry < 5}
    history = replace(rebuild.history, sources={"0": entries})

    assert BatchHistory(history).unrecorded(5) == {"0": ("5",)}
    assert not BatchHistory(history).is_whole(5)
    assert target_batch(_recorded(rebuild, history)) == 4


@pytest.mark.parametrize(
    ("rebuild", "code"),
    [
        (_rebuild(HomeSpec(written=4), target=5), "target-unwritten"),
        (_without(_rebuild(HomeSpec(), target=3), 3), "target-unknown"),
        (_without(_rebuild(HomeSpec()), *range(6)), "history-empty"),
        (_rebuild(HomeSpec(written=-1)), "sink-empty"),
    ],
    ids=["unwritten", "unknown", "no history", "no output"],
)
def test_what_is_refused(rebuild: PlanContext, code: str) -> None:
    with raises_code(Refused, code):
        target_batch(rebuild)


def test_the_beginning_may_always_be_asked_for() -> None:
    assert target_batch(_rebuild(HomeSpec(written=-1), target=BEFORE_ALL)) == BEFORE_ALL


def test_killed_in_its_first_batch_a_stream_restarts_at_the_beginning() -> None:
    first = HomeSpec(planned=0, committed=-1, state=None, written=-1)

    assert target_batch(_rebuild(first)) == BEFORE_ALL
    assert target_batch(_without(_rebuild(replace(first, written=0)), 0)) == BEFORE_ALL


def test_a_sink_that_does_not_show_what_it_holds_counts_as_holding_what_is_committed() -> None:
    rebuild = _rebuild(HomeSpec(planned=6))
    silent = rebuild.snapshot._replace(marks=replace(rebuild.snapshot.marks, written=None))

    assert target_batch(_seen(rebuild, silent)) == 5


def test_a_batch_has_at_most_the_rows_between_its_offsets() -> None:
    history = _history(HomeSpec(source="kafka"))

    assert BatchHistory(history).most_rows(3) == 100
    assert BatchHistory(replace(history, offsets={3: history.offsets[3]})).most_rows(3) is None
    assert BatchHistory(_history(HomeSpec())).most_rows(3) is None


def test_the_digest_changes_with_any_range() -> None:
    history, other = BatchHistory(_history(HomeSpec())), BatchHistory(_history(HomeSpec(source="kafka")))

    assert history.digest(range(2, 5)) == BatchHistory(_history(HomeSpec(planned=9))).digest(range(2, 5))
    digests = {history.digest(range(2, 5)), history.digest(range(2, 6)), other.digest(range(2, 5))}
    assert len(digests) == 3


SILENT = OutputSeen(delivery=Delivery("at-least-once", "it keeps both copies"))
WINDOWED = QueryProfile(("Aggregate",), (600_000,), (60_000,), 60_000, ("files",))


def _silent(spec: HomeSpec, target: int | None = None, *, mode: str = "append", lost: bool = False) -> PlanContext:
    """Of a sink that does not show what it holds; ``lost``: the checkpoint was deleted."""
    rebuild = _rebuild(spec, target)
    snapshot = rebuild.snapshot
    marks = Marks() if lost else replace(snapshot.marks, written=None)
    stream = snapshot.stream._replace(output_mode=mode)
    recorded = snapshot.recorded._replace(shown=-1)
    seen = snapshot._replace(marks=marks, output=SILENT, stream=stream, recorded=recorded, profile=WINDOWED)
    return _seen(rebuild, seen)


@pytest.mark.parametrize("lost", [False, True], ids=["checkpoint", "ledger"])
def test_of_a_silent_sink_it_is_the_newest_committed_one(*, lost: bool) -> None:
    rebuild = _silent(HomeSpec(planned=6, committed=5), lost=lost)

    scope = _scope(rebuild)

    assert (scope.target, scope.pending) == (5, 6)
    risks = risks_of(rebuild.snapshot, None, (), following=6, pending=6, kept=True, replays=False)
    assert [risk for risk in risks if "rows of batch 6 that were written before may be written twice" in risk]


def test_no_row_can_be_double_where_nothing_more_was_planned() -> None:
    rebuild = _silent(HomeSpec(planned=5, committed=5))

    assert _scope(rebuild).target == 5
    assert risks_of(rebuild.snapshot, None, (), following=6, pending=None, kept=True, replays=False) == ()


def test_batches_whose_range_is_not_recorded_are_written_twice_and_named() -> None:
    rebuild = _without(_silent(HomeSpec(planned=5, committed=5)), 4, 5)

    assert _scope(rebuild).target == 3
    assert (
        "batches 4..5" in risks_of(rebuild.snapshot, None, (), following=4, pending=None, kept=True, replays=False)[0]
    )


@pytest.mark.parametrize("mode", ["append", "update", "complete"])
@pytest.mark.parametrize("target", [BEFORE_ALL, 2])
def test_a_silent_sink_is_not_rebuilt_at_an_older_batch(mode: str, target: int) -> None:
    with raises_code(Refused, "sink-uncuttable") as caught:
        _scope(_silent(HomeSpec(), target, mode=mode))

    assert (f"in {mode} mode" in caught.value.message) == (mode != "append")


@pytest.mark.parametrize(("mode", "first"), [("append", 3), ("update", 3), ("complete", 0)])
def test_in_complete_mode_every_batch_contributes(mode: str, first: int) -> None:
    rebuild = _silent(HomeSpec(), mode=mode)
    known = {batch: START_MS + (batch + 1) * STEP_MS - 1000 for batch in range(6)}
    run = RunRecord(1, STREAM, 1, "4.1.3", 0, code="")
    history = replace(rebuild.history, event_time_max_ms=known, runs=dict.fromkeys(range(6), run))

    assert state_bounds(rebuild).retention_ms == (None if mode == "complete" else 60_000)
    assert _scope(_recorded(rebuild, history)).first == first


EXACT = Delivery("exactly-once", "it has marks")


def _several(spec: HomeSpec, *written: int | None, target: int | None = None, cuts: bool = True) -> PlanContext:
    """Of outputs with these marks; only those that show one skip batches and, with ``cuts``, can be cut."""
    rebuild = _rebuild(spec, target)
    members = tuple(
        OutputSeen(
            f"/out/{number}",
            batches_skipped=mark is not None,
            can_cut=cuts and mark is not None,
            delivery=EXACT,
            kind="kind",
            written=mark,
        )
        for number, mark in enumerate(written, 1)
    )
    seen = OutputSeen(location="/out", batches_skipped=True, can_cut=cuts and None not in written, members=members)
    marks = replace(rebuild.snapshot.marks, written=written_by_all(written))
    return _seen(rebuild, rebuild.snapshot._replace(marks=marks, output=seen))


@pytest.mark.parametrize(
    ("written", "target", "cut"),
    [
        ((5, 5), 5, False),
        ((6, 5), 5, False),
        ((6, 6), 6, False),
        ((7, 5), 5, True),
        ((5, None), 5, False),
        ((6, None), 5, False),
        ((4, None), 4, False),
    ],
    ids=str,
)
def test_of_several_outputs_it_is_the_newest_that_all_have(
    written: tuple[int | None, ...], target: int, *, cut: bool
) -> None:
    rebuild = _several(HomeSpec(planned=6, committed=5), *written)

    scope = _scope(rebuild)

    assert (scope.target, is_cut(rebuild, scope)) == (target, cut)
    assert written_text(rebuild.snapshot) == ", ".join(map(str, written))


def test_an_output_keeps_the_next_batch_only_where_its_range_is_planned_again() -> None:
    rebuild = _without(_several(HomeSpec(planned=6, committed=5), 6, 5), 6)

    scope = _scope(rebuild)

    assert (scope.target, scope.pending) == (5, None)
    assert is_cut(rebuild, scope)
    with pytest.raises(Refused) as caught:
        _scope(_without(_several(HomeSpec(planned=6, committed=5), 6, 5, cuts=False), 6))
    assert "its output kind /out/1 cannot remove what batch 6 wrote" in caught.value.message


@pytest.mark.parametrize("written", [(5, 5), (5, None)], ids=str)
def test_an_output_that_cannot_be_cut_is_named(written: tuple[int | None, ...]) -> None:
    rebuild = _several(HomeSpec(), *written, target=2, cuts=None in written)

    with raises_code(Refused, "sink-uncuttable") as caught:
        _scope(rebuild)

    assert f"its output kind /out/{2 if None in written else 1} cannot remove" in caught.value.message
