"""Settings of a Spark session for the time of one write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def session_settings(session: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Set them in the query's own session, and unset them afterwards."""
    for name, value in values.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name in values:
            session.conf.unset(name)
