"""The reported effects of a manual restart. That Spark behaves so: tests/cli/test_manual_restart_on_spark.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.operations.plan.manual_restart import RestartFacts, effects_of

WINDOWS = RestartFacts(
    written=8,
    after=8,
    contributing=6,
    stateful=True,
    source_kinds=("kafka",),
    input_rows=dict.fromkeys(range(9), 50),
    watermark_ms=1_767_225_600_000,
)
COPY = WINDOWS._replace(contributing=9, stateful=False, watermark_ms=0)


def _reported(facts: RestartFacts) -> dict[tuple[str, str], tuple[tuple[int, int] | None, int | None]]:
    effects = effects_of(facts)
    return {(effect.output, effect.risk): (effect.batches, effect.rows) for effect in reversed(effects)}


def test_a_stateful_query_at_last_written() -> None:
    assert _reported(WINDOWS) == {
        ("same", "skip"): ((0, 8), None),
        ("same", "stuck"): ((9, 9), None),
        ("any", "loss"): ((6, 8), 150),
        ("new", "wrong"): (None, None),
        ("any", "stuck"): (None, None),
    }


def test_a_stateful_query_at_contributing() -> None:
    reported = _reported(WINDOWS._replace(after=5))

    assert ("any", "loss") not in reported
    assert reported["new", "duplicate"] == ((6, 8), 150)


def test_between_the_two_it_loses_and_doubles() -> None:
    reported = _reported(WINDOWS._replace(after=6))

    assert reported["any", "loss"] == ((6, 6), 50)
    assert reported["new", "duplicate"] == ((7, 8), 100)


def test_a_query_without_state_at_last_written() -> None:
    assert _reported(COPY) == {
        ("same", "skip"): ((0, 8), None),
        ("any", "stuck"): (None, None),
        ("new", "none"): (None, None),
    }


def test_a_query_without_state_at_an_older_batch() -> None:
    reported = _reported(COPY._replace(after=3))

    assert reported["same", "duplicate"] == reported["new", "duplicate"] == ((4, 8), 250)


def test_nothing_written_is_a_first_start() -> None:
    nothing = WINDOWS._replace(written=-1, after=-1, contributing=0, watermark_ms=0, source_kinds=())

    assert _reported(nothing) == {("new", "none"): (None, None)}


def test_rows_of_unknown_batches_are_reported_without_a_count() -> None:
    assert _reported(WINDOWS._replace(contributing=None))["any", "loss"] == (None, None)


def test_state_that_cannot_be_recomputed_is_reported() -> None:
    texts = [effect.text for effect in effects_of(WINDOWS._replace(not_reproducible="a function of the user's own"))]

    assert any("a function of the user's own" in text for text in texts)


@pytest.mark.parametrize(
    ("after", "words"), [(5, "the next 6 batches"), (7, "the next 8 batches"), (-1, "no new input")]
)
def test_how_much_new_input_is_skipped_in_batches_as_before(after: int, words: str) -> None:
    assert words in effects_of(WINDOWS._replace(after=after))[0].text


@given(st.integers(-1, 20), st.integers(-1, 20), st.none() | st.integers(0, 21), st.booleans())
def test_every_batch_is_lost_or_read_again_or_neither_matters(
    written: int, after: int, contributing: int | None, stateful: bool
) -> None:
    facts = WINDOWS._replace(written=written, after=min(after, written), contributing=contributing, stateful=stateful)
    reported = _reported(facts)

    lost, again = reported.get(("any", "loss"), (None, None))[0], reported.get(("new", "duplicate"), (None, None))[0]
    assert again is None or again == (facts.after + 1, written)
    assert lost is None or again is None or lost[1] < again[0]
    assert (("same", "skip") in reported) == (written >= 0)


def test_a_sink_that_skips_nothing_gets_new_batches() -> None:
    reported = _reported(WINDOWS._replace(batches_skipped=False))

    assert ("same", "skip") not in reported
    assert ("same", "stuck") not in reported
    assert reported["any", "loss"] == ((6, 8), 150)
