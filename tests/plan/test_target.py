"""The batch that a rebuild goes on from, and what is recorded of the past."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from slackwater.plan.past import Past, is_kafka_offset, kafka_span, log_offset

from slackwater.errors import Refused
from slackwater.model.history import History
from slackwater.model.marks import Marks
from slackwater.model.records import GenerationRecord
from slackwater.plan.rebuild import Situation, target_batch
from tests.support.homes import STREAM, HomeSpec, checkpoint_logs, stream_record

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


def _situation(spec: HomeSpec, target: int | None = None) -> Situation:
    generation = GenerationRecord(STREAM, 1, "/checkpoint")
    marks = Marks(spec.planned, spec.committed, spec.state, spec.written)
    return Situation(
        stream=stream_record(FOLDER),
        generation=generation,
        next_generation=generation,
        marks=marks,
        history=_history(spec),
        profile=None,
        pipeline_digest="",
        checkpoint_present=True,
        target=target,
    )


def _without(situation: Situation, *batches: int) -> Situation:
    kept = {batch: text for batch, text in situation.history.offsets.items() if batch not in batches}
    return replace(situation, history=replace(situation.history, offsets=kept))


def test_it_is_the_last_written_one() -> None:
    assert target_batch(_situation(HomeSpec(planned=6, written=4))) == 4


def test_an_older_written_one_may_be_asked_for() -> None:
    assert target_batch(_situation(HomeSpec(), target=2)) == 2


def test_where_its_range_is_unknown_it_is_the_newest_that_is_known() -> None:
    assert target_batch(_without(_situation(HomeSpec()), 4, 5)) == 3


def test_a_range_without_its_source_files_is_not_known() -> None:
    situation = _situation(HomeSpec())
    entries = {entry: text for entry, text in situation.history.sources["0"].items() if entry < 5}
    history = replace(situation.history, sources={"0": entries})

    assert Past(history).missing_source_entries(5) == {"0": [5]}
    assert target_batch(replace(situation, history=history)) == 4


@pytest.mark.parametrize(
    ("situation", "code"),
    [
        (_situation(HomeSpec(written=4), target=5), "target-unwritten"),
        (_without(_situation(HomeSpec(), target=3), 3), "target-unknown"),
        (_without(_situation(HomeSpec()), *range(6)), "history-empty"),
        (_situation(HomeSpec(written=-1)), "sink-empty"),
    ],
    ids=["unwritten", "unknown", "no history", "no output"],
)
def test_what_is_refused(situation: Situation, code: str) -> None:
    with pytest.raises(Refused) as caught:
        target_batch(situation)

    assert caught.value.code == code


@pytest.mark.parametrize(
    ("text", "kafka", "files"),
    [
        ('{"t":{"0":1}}', True, None),
        ('{"logOffset":3}', False, 3),
        ('{"logOffset":-1}', False, -1),
        ("42", False, None),
        ("not JSON", False, None),
        (None, False, None),
    ],
)
def test_offsets_are_told_apart(text: str | None, kafka: bool, files: int | None) -> None:
    assert is_kafka_offset(text) is kafka
    assert log_offset(text) == files


def test_the_span_of_a_topic_counts_new_partitions_from_0() -> None:
    assert kafka_span('{"t":{"0":5}}', '{"t":{"0":7,"1":3}}') == 5
    assert kafka_span(None, '{"t":{"0":7}}') == 7


def test_the_digest_changes_with_any_range() -> None:
    past, other = Past(_history(HomeSpec())), Past(_history(HomeSpec(source="kafka")))

    assert past.digest(2, 4) == Past(_history(HomeSpec(planned=9))).digest(2, 4)
    assert len({past.digest(2, 4), past.digest(2, 5), other.digest(2, 4)}) == 3
