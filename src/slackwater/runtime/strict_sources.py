"""Sources of a replay fail where rows no longer exist, however the user's code sets them.

With ``failOnDataLoss=false`` Spark leaves such rows out with a warning. Where the code has changed, the rows of a
replayed batch cannot be compared with those that are recorded, and state would be incomplete without an error. Spark
reads the options of a source of version 2 from the plan when the query starts: there they are replaced, and put back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from slackwater.core.errors import Refused
from slackwater.runtime.failures import SPARK_ERRORS
from slackwater.runtime.java_fields import java_field
from slackwater.runtime.logical_plan import analysed_plan, class_name, streaming_sources
from slackwater.runtime.positions import spark_source
from slackwater.sources import kind_described
from slackwater.sources.common.contract import SparkSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VERSION_1_READERS = "spark.sql.streaming.disabledV2MicroBatchReaders"
"""The classes of sources that Spark reads as version 1, although they have a version 2."""
_MAPS = ("original", "delegate")
"""The fields of Spark's ``CaseInsensitiveStringMap``: names as the user spelled them, and in lower case."""
_NOT_FOUND: tuple[type[Exception], ...] = (LookupError, *SPARK_ERRORS)


@contextmanager
def strict_sources(frame: DataFrame, stream: str) -> Iterator[None]:
    """While a query of ``frame`` starts, its sources have the options with which they fail on rows that were lost.

    Raises Refused where the options of a source cannot be replaced.
    """
    with ExitStack() as replaced:
        for number, relation in enumerate(streaming_sources(analysed_plan(frame))):
            source = spark_source(frame, str(number), relation)
            wanted = _lenient(source)
            if wanted:
                replaced.enter_context(_replaced(frame, source, wanted, stream))
        yield


def _lenient(source: SparkSource) -> dict[str, str]:
    """The options, as the user spelled them, with which the source leaves lost rows out; the values that they need."""
    strict = kind_described(source.description).strict_options
    return {
        name: strict[name.lower()]
        for name, value in source.options.items()
        if value.strip().lower() != strict.get(name.lower(), value.strip().lower())
    }


@contextmanager
def _replaced(frame: DataFrame, source: SparkSource, wanted: Mapping[str, str], stream: str) -> Iterator[None]:
    try:
        spelled, in_lower_case = _option_maps(frame, source.relation)
    except _NOT_FOUND as error:
        raise _not_replaced(source, wanted, stream) from error
    before = {name: spelled[name] for name in wanted}

    def put(values: Mapping[str, str]) -> None:
        for name, value in values.items():
            # Sources read either map: ``get`` uses names in lower case, and ``asCaseSensitiveMap`` returns the others.
            spelled[name] = in_lower_case[name.lower()] = value

    try:
        put(wanted)
        yield
    finally:
        put(before)


def _option_maps(frame: DataFrame, relation: Any) -> tuple[Any, Any]:
    """The Java maps that have the options. Raises LookupError for a source of version 1."""
    if class_name(relation) != "StreamingRelationV2" or _is_read_as_version_1(frame, relation):
        raise LookupError("a source of version 1")
    options = relation.extraOptions()
    spelled, in_lower_case = (java_field(options, name).get(options) for name in _MAPS)
    return spelled, in_lower_case


def _is_read_as_version_1(frame: DataFrame, relation: Any) -> bool:
    disabled = (frame.sparkSession.conf.get(VERSION_1_READERS, "") or "").split(",")
    provider = relation.source()
    return provider.isDefined() and str(provider.get().getClass().getName()) in map(str.strip, disabled)


def _not_replaced(source: SparkSource, wanted: Mapping[str, str], stream: str) -> Refused:
    return Refused(
        "replay-leaves-out",
        f"A replay of stream {stream} could leave out rows silently: options of a source allow that, "
        "and this Spark does not let them be replaced",
        where=source.where,
        expected=", ".join(f"{name}={value}" for name, value in wanted.items()),
        found=", ".join(f"{name}={source.options[name]}" for name in wanted),
        hint="set these options as expected in the pipeline file, then plan again; nothing in use was changed",
    )
