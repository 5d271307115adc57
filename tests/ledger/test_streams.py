from __future__ import annotations

import pytest

from slackwater.core.errors import NotFound, UsageError
from slackwater.core.records import WATCHED, GenerationRecord
from slackwater.ledger.ledger import Ledger
from tests.support.errors import raises_code
from tests.support.ledgers import STREAM, stream_record


def test_a_stream_is_found_by_its_name_and_by_its_full_name(ledger: Ledger) -> None:
    assert ledger.find_stream("hourly") == stream_record()
    assert ledger.find_stream("weather/hourly") == stream_record()
    assert ledger.streams() == [stream_record()]


def test_an_unknown_stream_is_reported_with_the_nearest_name(ledger: Ledger) -> None:
    with raises_code(NotFound, "stream-unknown") as caught:
        ledger.find_stream("houly")
    assert caught.value.hint == "did you mean hourly? known streams: weather/hourly"


def test_a_name_that_two_pipelines_share_must_be_given_in_full(ledger: Ledger) -> None:
    ledger.register_stream(stream_record(pipeline="tides"), GenerationRecord("tides/hourly", 1, "/home/tides/0001"))
    with raises_code(UsageError, "stream-ambiguous"):
        ledger.find_stream("hourly")
    assert ledger.find_stream("tides/hourly").pipeline == "tides"


def test_a_full_name_comes_before_the_name_of_a_watched_query(ledger: Ledger) -> None:
    ledger.register_stream(stream_record(STREAM, WATCHED), GenerationRecord(f"{WATCHED}/{STREAM}", 1, "/elsewhere"))
    assert ledger.find_stream(STREAM) == stream_record()
    assert ledger.find_stream(f"{WATCHED}/{STREAM}").pipeline == WATCHED


def test_registering_again_changes_what_the_run_says_but_not_the_generation_in_use(ledger: Ledger) -> None:
    ledger.add_generation(GenerationRecord(STREAM, 2, "/home/checkpoints/0002", based_at=7))
    ledger.set_current_generation(STREAM, 2)
    ledger.register_stream(stream_record()._replace(pipeline_file="other.py", output_mode="update"))
    found = ledger.find_stream("hourly")
    assert (found.pipeline_file, found.output_mode, found.current_generation) == ("other.py", "update", 2)


def test_a_generation_that_was_never_added_cannot_be_put_to_use(ledger: Ledger) -> None:
    with pytest.raises(NotFound) as caught:
        ledger.set_current_generation(STREAM, 5)
    assert (caught.value.code, caught.value.found) == ("generation-unknown", "1")
    assert ledger.find_stream("hourly").current_generation == 1


LAYOUT = {"operators": ["Aggregate"], "watermark_delays_ms": [1], "windows_ms": [], "sources": [], "retention_ms": None}


def test_a_generation_comes_back_as_it_was_added(ledger: Ledger) -> None:
    second = GenerationRecord(
        STREAM,
        2,
        "/home/checkpoints/0002",
        query_id="8f6b",
        based_at=7,
        layout={**LAYOUT, "state_stores": [{"operator": 0}]},
        parent=1,
        source_cut={"0": 12, "orders": -1},
    )
    ledger.add_generation(second)
    assert ledger.generation(STREAM, 2) == second
    assert [generation.number for generation in ledger.generations(STREAM)] == [1, 2]


def test_what_is_known_later_is_filled_in_without_losing_the_rest(ledger: Ledger) -> None:
    ledger.update_generation(STREAM, 1, query_id="8f6b")
    ledger.update_generation(STREAM, 1, layout=LAYOUT)
    generation = ledger.generation(STREAM, 1)
    assert (generation.query_id, generation.layout, generation.location) == (
        "8f6b",
        LAYOUT,
        "/home/checkpoints/0001",
    )


def test_a_generation_of_an_unknown_stream_is_refused(ledger: Ledger) -> None:
    with raises_code(NotFound, "generation-unknown"):
        ledger.add_generation(GenerationRecord("weather/daily", 1, "/nowhere"))
