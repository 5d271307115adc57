"""A kind of source that the tests register, asked for positions through a query of Spark that reads it."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from slackwater.core.errors import EnvironmentMissing, Refused, UsageError
from slackwater.core.targets import Target
from slackwater.operations.plan.targets import WantedPosition
from slackwater.runtime.replay.positions import resolve, served_positions
from slackwater.runtime.session.session import end_session
from slackwater.sources import SOURCES
from slackwater.sources.common.contract import Served
from tests.architecture.test_extension_source import Book, at

pytestmark = pytest.mark.spark


class Pages(DataSource):
    """Spark's side of the kind."""

    @classmethod
    def name(cls) -> str:
        return "book"

    def schema(self) -> str:
        return "line string"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return Reader()


class Reader(DataSourceStreamReader):
    """Only its plan is needed."""

    def initialOffset(self) -> dict[str, int]:
        return {"page": 0}

    def latestOffset(self) -> dict[str, int]:
        return {"page": 0}

    def read(self, partition: InputPartition) -> Iterator[tuple[str]]:
        return iter(())


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with mock.patch.dict(os.environ, {"PYSPARK_PYTHON": sys.executable}):
        session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
        session.dataSource.register(Pages)
        SOURCES.register(Book.kind, Book())
        yield session
        SOURCES.unregister(Book.kind)
        end_session(session)


def test_positions_are_those_that_the_kind_finds(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "pages").write_text("2 9")
    frame: DataFrame = spark.readStream.format("book").option("path", str(tmp_path / "pages")).load()

    def found(target: Target, given: str | None = None) -> tuple[str, str]:
        offsets = None if given is None else {"0": given}
        position = resolve(frame, WantedPosition((target, offsets), {"0": at(4)}, {}, 0))["0"]
        return position.base.end, position.summary

    assert served_positions(frame) == {"0": Served(at(2), at(9))}
    assert found(Target("earliest")) == (at(2), "source 0 (book): page 4 -> 2")
    assert found(Target("latest"))[0] == at(9)
    assert found(Target("offsets", file="f"), at(7))[0] == at(7)
    with pytest.raises(Refused, match="it has no such page"):
        found(Target("offsets", file="f"), at(1))
    with pytest.raises(UsageError, match="not an offset of source 0, which is of kind book"):
        found(Target("offsets", file="f"), '{"logOffset":1}')
    (tmp_path / "pages").unlink()
    with pytest.raises(EnvironmentMissing, match="cannot report its positions"):
        found(Target("earliest"))
