"""Streams by the location of their checkpoint in use."""

from __future__ import annotations

from pathlib import Path

import pytest

from slackwater.core.records import WATCHED, GenerationRecord, StreamRecord
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.workspace import find_stream, stream_at


@pytest.mark.parametrize(
    "spelling",
    [
        "s3a://bucket/checkpoints/clicks",
        "s3://bucket/checkpoints/clicks/",
        "s3n://bucket/checkpoints/clicks",
        "S3A://bucket/checkpoints/clicks",
    ],
)
def test_a_location_on_a_store_has_several_spellings(tmp_path: Path, spelling: str) -> None:
    stream = StreamRecord(WATCHED, "clicks", {"kind": "unknown"}, "append", "")
    with Ledger.open(tmp_path / "ledger.db", create=True) as ledger:
        ledger.register_stream(stream, GenerationRecord(stream.full_name, 1, "s3a://bucket/checkpoints/clicks"))
        assert find_stream(ledger, spelling).full_name == stream.full_name
        assert stream_at(ledger, "s3a://bucket/checkpoints") is None


def test_a_local_location_is_found_by_a_link_and_after_it_was_deleted(tmp_path: Path) -> None:
    stream, place = StreamRecord(WATCHED, "clicks", {"kind": "unknown"}, "append", ""), tmp_path / "data/clicks"
    (tmp_path / "link").symlink_to(tmp_path / "data")
    with Ledger.open(tmp_path / "ledger.db", create=True) as ledger:
        ledger.register_stream(stream, GenerationRecord(stream.full_name, 1, str(place)))
        for spelling in (str(place), f"{place}/", place.as_uri(), f"{tmp_path}/link/clicks", f"{place}/../clicks"):
            assert find_stream(ledger, spelling).full_name == stream.full_name, spelling


def test_a_full_name_that_looks_like_a_path(tmp_path: Path) -> None:
    stream = StreamRecord(WATCHED, "a/b", {"kind": "unknown"}, "append", "")
    with Ledger.open(tmp_path / "ledger.db", create=True) as ledger:
        ledger.register_stream(stream, GenerationRecord(stream.full_name, 1, "/data/clicks"))
        assert find_stream(ledger, "watched/a/b") == stream
