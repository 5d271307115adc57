"""Targets of goals: what can be typed, what each means, and that nothing else is taken for one."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from slackwater.core.errors import UsageError
from slackwater.core.targets import Target
from slackwater.operations.plan.targets import OFFSETS_EXAMPLE, parse_offsets, parse_target, target_text
from tests.support.errors import raises_code

HOUR_MS = 3_600_000
JANUARY_MS = 1_769_817_600_000
LONGS = st.integers(0, 2**63 - 1)

targets = st.one_of(
    st.sampled_from([Target("last-written"), Target("earliest"), Target("latest")]),
    st.builds(Target, st.just("batch"), LONGS, st.just("")),
    st.builds(Target, st.just("time"), st.integers(0, 253_402_300_799_999), st.just("")),
    st.builds(Target, st.just("by"), st.integers(0, 999_999_999 * 86_400_000), st.just("")),
    st.builds(Target, st.just("shift"), st.integers(-(2**63) + 1, 2**63 - 1), st.just("")),
    st.builds(
        Target,
        st.just("offsets"),
        st.just(0),
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1),
    ),
)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("last-written", Target("last-written")),
        ("earliest", Target("earliest")),
        ("latest", Target("latest")),
        ("batch:0", Target("batch", 0)),
        ("batch:9223372036854775807", Target("batch", 2**63 - 1)),
        ("time:2026-01-31T00:00Z", Target("time", JANUARY_MS)),
        ("time:2026-01-31T02:00+02:00", Target("time", JANUARY_MS)),
        ("time:2026-01-30T18:30:00-05:30", Target("time", JANUARY_MS)),
        ("time:2026-01-31T00:00:07.5Z", Target("time", JANUARY_MS + 7500)),
        ("time:2026-01-31Z", Target("time", JANUARY_MS)),
        ("time:2026-01-31+01:00", Target("time", JANUARY_MS - HOUR_MS)),
        ("time:1970-01-01Z", Target("time", 0)),
        ("by:PT6H", Target("by", 6 * HOUR_MS)),
        ("by:-PT6H", Target("by", 6 * HOUR_MS)),
        ("by:P1DT2H3M4.05S", Target("by", 26 * HOUR_MS + 184_050)),
        ("by:PT0S", Target("by", 0)),
        ("shift:-1000", Target("shift", -1000)),
        ("shift:+5", Target("shift", 5)),
        ("shift:0", Target("shift", 0)),
        ("offsets:my positions.json", Target("offsets", file="my positions.json")),
        ("offsets:C:\\positions", Target("offsets", file="C:\\positions")),
    ],
)
def test_what_can_be_typed(text: str, target: Target) -> None:
    assert parse_target(text) == target


@pytest.mark.parametrize(
    ("text", "leads_on"),
    [
        ("", "earliest"),
        ("newest", "earliest"),
        ("Earliest", "earliest"),
        ("earliest ", "earliest"),
        ("latest:", "earliest"),
        ("batch", "batch:N"),
        ("batch:", "batch:41"),
        ("batch:-1", "batch:41"),
        ("batch:9223372036854775808", "batch:41"),
        ("batch:" + "9" * 5000, "batch:41"),
        ("batch:\u0661", "batch:41"),
        ("batch:\u00b2", "batch:41"),
        ("batch:1_0", "batch:41"),
        ("batch:NaN", "batch:41"),
        ("time:2026-01-31T00:00", "time:2026-01-31T00:00:00Z"),
        ("time:2026-01-31", "time:2026-01-31T00:00:00Z"),
        ("time:2026-02-30", "time:2026-01-31T00:00Z"),
        ("time:2026-02-30Z", "time:2026-01-31T00:00Z"),
        ("time:0000-01-01Z", "time:2026-01-31T00:00Z"),
        ("time:0001-01-01+18:00", "1970"),
        ("time:1969-12-31T23:59:59.999Z", "1970"),
        ("time:9999-12-31T23:59-18:00", "9999"),
        ("time:2026-01-31T24:00Z", "time:2026-01-31T00:00Z"),
        ("time:2026-01-31T00:60Z", "time:2026-01-31T00:00Z"),
        ("time:2026-01-31T00:00:60Z", "time:2026-01-31T00:00Z"),
        ("time:2026-01-31T00:00:00.0001Z", "millisecond"),
        ("time:2026-01-31 00:00Z", "time:2026-01-31T00:00Z"),
        ("time:2026-01-31T00:00+99:00", "time:2026-01-31T00:00Z"),
        ("time:2026-01-31T00:00 UTC", "time:2026-01-31T00:00Z"),
        ("time:1769817600000", "time:2026-01-31T00:00Z"),
        ("time:\u0662026-01-31Z", "time:2026-01-31T00:00Z"),
        ("time:", "time:2026-01-31T00:00Z"),
        ("by:6h", "by:PT6H"),
        ("by:P", "by:PT6H"),
        ("by:PT", "by:PT6H"),
        ("by:P1DT", "by:PT6H"),
        ("by:P1M", "by:PT6H"),
        ("by:PT-6H", "by:PT6H"),
        ("by:PT1.5H", "by:PT6H"),
        ("by:PT9999999999H", "by:PT6H"),
        ("by:PT6H\n", "by:PT6H"),
        ("shift:", "shift:-1000"),
        ("shift:--1", "shift:-1000"),
        ("shift:1e3", "shift:-1000"),
        ("shift:-9223372036854775808", "shift:-1000"),
        ("offsets:", "offsets:positions.json"),
        ("offsets:a\0b", "offsets:positions.json"),
        ("offsets:\ud83d", "offsets:positions.json"),
        ("offsets:" + "x" * 5000, "offsets:positions.json"),
    ],
    ids=lambda value: ascii(value[:30]),
)
def test_what_is_refused_and_what_is_named_instead(text: str, leads_on: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_target(text)

    error = caught.value
    assert error.code == "target"
    assert leads_on in f"{error.expected} {error.hint}"
    assert error.found is not None
    assert len(error.found) < 80


@given(targets)
@example(Target("by", 86_400_000))
@example(Target("shift", 0))
def test_what_is_printed_is_read_back(target: Target) -> None:
    assert parse_target(target_text(target)) == target


@given(
    st.text()
    | st.builds(
        str.__add__,
        st.sampled_from(["batch:", "time:", "by:", "shift:", "offsets:"]),
        st.text() | st.text("0123456789-+:.TZPDHMS\u0663", max_size=30),
    )
)
def test_any_string_is_a_target_or_refused(text: str) -> None:
    try:
        target = parse_target(text)
    except UsageError:
        return
    assert parse_target(target_text(target)) == target


def test_a_file_of_offsets() -> None:
    assert parse_offsets(OFFSETS_EXAMPLE, "f") == {"0": '{"topic":{"0":123}}'}
    assert parse_offsets('{"0": {"t": {"1": 5}}, "clicks": {"logOffset": -1}}', "f") == {
        "0": '{"t":{"1":5}}',
        "clicks": '{"logOffset":-1}',
    }


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "{}",
        "null",
        '"earliest"',
        '{"0": 5}',
        '{"0": NaN}',
        '{"0": {"t": {"0": NaN}}}',
        '{"0": null}',
        '{"0": {"t": {"0": 1, "0": 2}}}',
        '{"0": {"t": ' + "9" * 5000 + "}}",
        "[" * 100_000,
        '{"topic": {"0": 123}}\n{}',
    ],
    ids=lambda content: ascii(content[:20]),
)
def test_a_file_that_has_no_offsets(content: str) -> None:
    with raises_code(UsageError, "target", where="positions.json"):
        parse_offsets(content, "positions.json")


@given(st.text() | st.recursive(st.none() | st.integers() | st.floats() | st.text(), st.lists).map(json.dumps))
def test_any_content_is_a_file_of_offsets_or_refused(content: str) -> None:
    try:
        found = parse_offsets(content, "f")
    except UsageError:
        return
    assert all(isinstance(json.loads(offset), dict) for offset in found.values())
