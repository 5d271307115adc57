"""Which kind owns an offset: at most one, whatever the string and the log are."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from slackwater.sources import UNKNOWN, kind_of, kinds
from slackwater.sources.common.contract import decoded
from tests.sources.examples import EXAMPLES, file_log
from tests.sources.made_up import EXAMPLE

_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5))
_FIELDS = st.sampled_from(
    (
        *("logOffset", "offset", "timestamp", "reservoirId", "reservoirVersion", "snapshot_id", "position"),
        *("streamName", "metadata", "shards", "value", "runTimeMs", "page", "0", "1", "00", "\u0663", "9" * 5000),
    )
)
_JSON = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(_FIELDS | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=8,
)
_OFFSETS = st.one_of(
    st.none(), st.text(), _JSON.map(json.dumps), st.sampled_from([offset for one in EXAMPLES for offset in one.offsets])
)
_ENTRIES = st.one_of(
    st.text(max_size=20),
    st.sampled_from([entry for one in (*EXAMPLES, EXAMPLE) for entry in one.log.values()]),
    st.sampled_from(["\0v1\n5", '\0v1\n{"path":"a"}', "v1", "v1\n", "5"]),
)
_LOGS = st.dictionaries(st.integers(0, 3), _ENTRIES, max_size=3)


@given(offset=_OFFSETS, log=_LOGS)
@example(offset="[" * 200_000, log={})
@example(offset='{"a":' * 200_000, log={})
@example(offset="9" * 5_000, log={})
@example(offset="-1e999", log={})
@example(offset='{"t":{"' + "9" * 5_000 + '":1}}', log={})
@example(offset='{"logOffset":' + "9" * 4_000 + "}", log={})
@example(offset='{"t":{"0":' + "9" * 4_000 + "}}", log={})
@example(offset="\ud800", log={0: "\udcff"})
def test_at_most_one_kind_owns_an_offset(offset: str | None, log: dict[int, str]) -> None:
    owners = [kind for kind in kinds() if kind is not UNKNOWN and kind.owns(decoded(offset), log)]

    assert len(owners) <= 1, [kind.kind for kind in owners]
    assert kind_of(offset, log) is (owners[0] if owners else UNKNOWN)


@pytest.mark.parametrize(
    "offset",
    [
        "{}",
        '{"t":{}}',
        '{"t":{"0":1},"u":{}}',
        '{"t":{"0":"1"}}',
        '{"t":{"0":true}}',
        '{"t":{"0":1.0}}',
        '{"t":{"0":-2}}',
        '{"t":{"00":1}}',
        '{"t":{"first":1}}',
        '{"t":[1]}',
        '{"0":1}',
        '{"logOffset":"3"}',
        '{"logOffset":true}',
        '{"logOffset":3,"more":1}',
        '{"logOffset":-2}',
        '{"logOffset":9223372036854775808}',
        '{"offset":1}',
        '{"offset":"1","timestamp":2}',
        '{"0":{"value":1}}',
        '{"snapshot_id":1}',
        '{"reservoirId":1,"reservoirVersion":2}',
        '{"streamName":{"0":"x"}}',
        "null",
        "true",
        "1.5",
        "NaN",
        '"text"',
        "not JSON",
        "{'logOffset': 3}",
        "",
    ],
)
def test_what_is_nearly_an_offset_is_unknown(offset: str) -> None:
    assert kind_of(offset, {}) is UNKNOWN


@pytest.mark.parametrize(
    ("log", "kind"),
    [
        ({}, "number"),
        ({0: "v1\n1704067200000"}, "rate"),
        (file_log(3), "files"),
        ({0: "v1\nanything else"}, "number"),
    ],
    ids=["no log", "creation time", "files", "another log"],
)
def test_the_log_decides_on_bare_numbers(log: dict[int, Any], kind: str) -> None:
    assert kind_of("2", log).kind == kind
