"""The digest of what reaches a watermark: equal for unchanged code in any process, different for a change below it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from slackwater.core.program import QueryProfile
from tests.support.warm_jvm import output_of

PROGRAM = Path(__file__).with_name("programs") / "digests.py"
AS_BASE = (
    "base", "other aggregation", "filter of the event time above", "filter of the result", "udf above",
    "base with other code", "base with unknown code",
)  # fmt: skip
UNKNOWN = (
    "random", "table", "table in a subquery", "no watermark", "current time", "udf with unknown code",
)  # fmt: skip


def _digests(folder: Path, noise: int) -> dict[str, str | None]:
    found: dict[str, str | None] = json.loads(output_of(PROGRAM, folder, str(noise)))
    return found


@pytest.mark.spark
def test_the_digest_follows_the_code_below_the_watermark(tmp_path: Path) -> None:
    found = _digests(tmp_path, 0)
    assert _digests(tmp_path, 3) == found
    assert {name for name, digest in found.items() if digest is None} == set(UNKNOWN)
    assert {found[name] for name in AS_BASE} == {found["base"]}
    # Spark applies both before the watermark.
    assert found["udf"] == found.pop("udf in a filter above")
    others = [name for name in found if name not in (*AS_BASE, *UNKNOWN)]
    assert len({found[name] for name in ("base", *others)}) == len(others) + 1, found


@pytest.mark.spark
def test_what_a_profile_shows_of_what_a_replay_may_compute_otherwise(tmp_path: Path) -> None:
    found: dict[str, list[object]] = json.loads(output_of(PROGRAM.with_name("profiles.py"), tmp_path))
    assert {name: random for name, (random, *_) in found.items() if random} == {
        "filter": ["rand"],
        "key": ["uuid"],
        "order of an array": ["shuffle"],
        "number of a row": ["monotonically_increasing_id"],
        "partition": ["spark_partition_id"],
        "with a seed": ["randn"],
        "sample": ["sample"],
        "udf": ["dice"],
        "join": ["rand"],
        "two": ["uuid", "rand"],
    }
    assert [name for name, (_, late, *_) in found.items() if late] == ["windows of windows in update mode"]
    assert {name: by_order for name, (*_, by_order, _) in found.items() if by_order} == {
        "order of rows": ["first", "last", "collect_list", "max_by", "min_by"],
        "order of equal values": ["first", "mode"],
    }
    tables = [name for name, (*_, reads_tables) in found.items() if reads_tables]
    assert tables == ["a table", "first row of a table", "a table in a subquery"]


def test_a_profile_with_the_rare_facts_is_read() -> None:
    profile = QueryProfile(("Aggregate",), (), (), None, ("json",), random=("rand",), late_in_chain=True)
    profile = replace(profile, by_order=("first",), reads_tables=True)
    assert QueryProfile.from_json(json.loads(json.dumps(profile.as_json()))) == profile


def test_a_profile_recorded_without_a_digest_is_read() -> None:
    profile = QueryProfile(("Aggregate",), (60_000,), (300_000,), 300_000, ("json",), "ab" * 32)
    assert QueryProfile.from_json(profile.as_json()) == profile
    recorded = profile.as_json()
    del recorded["rows_digest"]
    assert QueryProfile.from_json(recorded).rows_digest is None
