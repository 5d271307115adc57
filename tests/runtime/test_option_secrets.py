"""Secrets that a function gives to PySpark's own readers are masked in whatever repeats them."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import DataFrameReader, DataFrameWriter
from pyspark.sql.conf import RuntimeConfig
from pyspark.sql.streaming.readwriter import DataStreamReader

from slackwater.core.masking import MASK, mask
from slackwater.runtime.session import settings
from slackwater.runtime.session.settings import remember_options


@pytest.fixture(autouse=True)
def remembering() -> Iterator[None]:
    """PySpark's own methods are back when the test has ended."""
    calls = {(owner, name): getattr(owner, name) for owner, names in settings._CALLS.items() for name in names}
    remember_options()
    remember_options()
    yield
    for (owner, name), original in calls.items():
        setattr(owner, name, original)


class _Jvm:
    """Takes every call, as the JVM's reader does."""

    def __getattr__(self, _name: str) -> Any:
        return lambda *_: self


def _new(owner: type) -> Any:
    made: Any = object.__new__(owner)
    vars(made).update(_jreader=_Jvm(), _jwrite=_Jvm(), _jconf=_Jvm(), _spark=SimpleNamespace())
    return made


@pytest.mark.parametrize(
    ("owner", "name", "arguments", "options"),
    [
        (DataFrameReader, "option", ("password", "Reader9secret"), {}),
        (DataFrameReader, "options", (), {"password": "Readers9secret", "url": "jdbc:x"}),
        (DataFrameWriter, "option", ("dbPassword", "Writer9secret"), {}),
        (DataStreamReader, "option", ("key", "x"), {}),
        (DataStreamReader, "option", (), {"key": "kafka.ssl.key.password", "value": "Stream9secret"}),
        (RuntimeConfig, "set", ("fs.s3a.secret.key", "Conf9secret"), {}),
    ],
)
def test_an_option_is_remembered(owner: type, name: str, arguments: tuple[str, ...], options: dict[str, str]) -> None:
    getattr(_new(owner), name)(*arguments, **options)

    for value in (*arguments, *options.values()):
        if "9secret" in value:
            assert mask(f"the driver says: login ({value}) failed") == f"the driver says: login ({MASK}) failed"


def test_a_wrong_call_is_reported_by_pyspark() -> None:
    reader = _new(DataFrameReader)
    with pytest.raises(TypeError, match="option"):
        reader.option("a", "b", "c")
