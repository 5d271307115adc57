"""Walks a query's analysed logical plan through the driver's JVM handle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import get_field

from slackwater.core.masking import KNOWN_SECRETS
from slackwater.sources.common.scala import scala_map

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def java_field(value: Any, name: str) -> Any:
    """A private Scala field, made accessible. Raises LookupError."""
    java_class = value.getClass()
    while java_class is not None:
        for field in java_class.getDeclaredFields():
            if str(field.getName()).rpartition("$$")[2] == name:
                field.setAccessible(True)
                return field
        java_class = java_class.getSuperclass()
    raise LookupError(f"{name} in {value.getClass().getSimpleName()}")


WATERMARK = "EventTimeWatermark"


def analysed_plan(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().analyzed()


def nodes_of(plan: Any) -> Iterator[Any]:
    """The nodes in preorder; leaves are in the order of Spark's source numbers."""
    yield plan
    for child in elements(plan.children()):
        yield from nodes_of(child)


def class_name(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def is_streaming_source(node: Any) -> bool:
    return class_name(node).startswith("StreamingRelation")


def streaming_sources(plan: Any) -> list[Any]:
    """The streaming sources, in the order of lines in ``offsets/``.

    A DataFrame that is read twice is listed twice, as it has two lines.
    """
    return [node for node in nodes_of(plan) if is_streaming_source(node)]


def source_logs(plan: Any) -> list[str]:
    """The source log number of each source; equal sources share a number."""
    distinct: list[Any] = []
    numbers = []
    for source in streaming_sources(plan):
        distinct += [] if source in distinct else [source]
        numbers.append(str(distinct.index(source)))
    return numbers


def delay_ms(watermark: Any) -> int:
    """The delay in milliseconds. A month counts as 31 days, as in ``EventTimeWatermark.getDelayMs``."""
    delay = watermark.delay()
    months, days, microseconds = (int(get_field(delay, name)) for name in ("months", "days", "microseconds"))
    return (months * 31 + days) * 86_400_000 + microseconds // 1000


def source_options(relation: Any) -> dict[str, str]:
    if class_name(relation) == "StreamingRelation":
        options = scala_map(relation.dataSource().options())
    else:
        options = {str(key): str(value) for key, value in relation.extraOptions().asCaseSensitiveMap().items()}
    KNOWN_SECRETS.remember_all(options)
    return options


def elements(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(index) for index in range(sequence.size()))
