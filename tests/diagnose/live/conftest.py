"""Streams that several files of cases use."""

import pytest

from tests.diagnose.live.frame import COPIED, TOTALS, Stream, make_stream


@pytest.fixture(scope="session")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Stream:
    """A stream without state: rows of JSON files to Parquet."""
    return make_stream(tmp_path_factory.mktemp("copied"), COPIED)


@pytest.fixture(scope="session")
def totals(tmp_path_factory: pytest.TempPathFactory) -> Stream:
    """Sums by window and page."""
    return make_stream(tmp_path_factory.mktemp("totals"), TOTALS)
