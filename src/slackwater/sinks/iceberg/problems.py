"""Translates errors of Spark and Iceberg."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from slackwater.core.errors import PipelineError, StreamFailed
from slackwater.core.masking import mask


@contextmanager
def reading(where: str) -> Iterator[None]:
    """Raises StreamFailed (``iceberg-unreachable``) if Spark cannot read the table or catalog."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise StreamFailed(
            "iceberg-unreachable",
            f"Spark cannot read the Iceberg table: {reason_of(error)}",
            where=where,
            hint="check that its store and catalog are reachable with the settings under [spark] in slackwater.toml",
        ) from error


@contextmanager
def creating(where: str) -> Iterator[None]:
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise PipelineError(
            "iceberg-create",
            f"Spark cannot create the Iceberg table: {reason_of(error)}",
            where=where,
            hint="use column types that Iceberg has, and a place that Spark may write to",
        ) from error


def reason_of(error: Any) -> str:
    thrown = getattr(error, "java_exception", None)
    message = str(thrown.getMessage()) if thrown is not None else str(error)
    return mask((message.splitlines() or [type(error).__name__])[0])
