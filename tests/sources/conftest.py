"""The registry with one kind more than the product has."""

from collections.abc import Iterator

import pytest

from slackwater.sources import SOURCES
from tests.sources.made_up import Book


@pytest.fixture(autouse=True)
def _made_up_kind() -> Iterator[None]:
    SOURCES.register(Book.kind, Book())
    yield
    SOURCES.unregister(Book.kind)
