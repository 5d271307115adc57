"""Secrets in options of PySpark readers and writers, and in settings set by user code.

Options of a batch reader in a function, such as ``spark.read.option("password", ...)``, are only seen here, and Spark's
messages can repeat them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from pyspark.sql import DataFrameReader, DataFrameWriter, DataFrameWriterV2
from pyspark.sql.conf import RuntimeConfig
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from slackwater.core.masking import KNOWN_SECRETS

_CALLS: Mapping[type, tuple[str, ...]] = {
    DataFrameReader: ("option", "options", "jdbc"),
    DataFrameWriter: ("option", "options", "jdbc"),
    DataFrameWriterV2: ("option", "options"),
    DataStreamReader: ("option", "options"),
    DataStreamWriter: ("option", "options"),
    RuntimeConfig: ("set",),
}
_REMEMBERS = "_slackwater_remembers"


def remember_options() -> None:
    """Remember secrets in options for the rest of the process: batches make such calls, too."""
    for owner, names in _CALLS.items():
        for name in names:
            original = getattr(owner, name)
            if not hasattr(original, _REMEMBERS):
                setattr(owner, name, _remembering(original))


def _remembering(original: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def call(*arguments: Any, **named: Any) -> Any:
        # PySpark reports a wrong call in its own words.
        with suppress(TypeError):
            _remember(signature.bind(*arguments, **named).arguments)
        return original(*arguments, **named)

    setattr(call, _REMEMBERS, True)
    return call


def _remember(bound: Mapping[str, Any]) -> None:
    if "key" in bound:
        KNOWN_SECRETS.remember(str(bound["key"]), bound.get("value"))
    KNOWN_SECRETS.remember("url", bound.get("url"))
    for options in (bound.get("options"), bound.get("properties")):
        KNOWN_SECRETS.remember_all(options or {})
