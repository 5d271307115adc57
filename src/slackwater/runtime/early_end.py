"""Before a run with the trigger available-now: refuses a source that would end it before everything is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

from slackwater.core.errors import Refused
from slackwater.runtime.logical_plan import analysed_plan, class_name, source_options, streaming_sources
from slackwater.sources import kinds
from slackwater.sources.common.contract import EarlyEnd

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def check_reads_all(stream: str, frame: DataFrame) -> None:
    """Raises Refused (``source-ends-early``) where the run would end as if it was caught up, after one batch."""
    gateway: Any = frame.sparkSession.sparkContext._gateway
    for number, relation in enumerate(streaming_sources(analysed_plan(frame))):
        # Only a ``StreamingRelationV2`` has a table, whose class is from the jar of the connector.
        if class_name(relation) == "StreamingRelation":
            continue
        loaded = relation.table().getClass()
        for early in (one.early_end for one in kinds() if loaded.getName().startswith(one.package)):
            if early is None:
                continue
            version = _version(gateway, loaded.getClassLoader(), early)
            option = early.limit_of(version, source_options(relation))
            if option is not None:
                raise _refusal(stream, f"source {number} ({relation.sourceName()})", option, version, early)


def _version(gateway: Any, loader: Any, early: EarlyEnd) -> str:
    """The version of the jar that the source's class is from, however it came onto the class path."""
    # By reflection: py4j looks a class up by its own loader, which need not have the session's jars.
    classes, values = (
        gateway.new_array(java, 0) for java in (gateway.jvm.java.lang.Class, gateway.jvm.java.lang.Object)
    )
    try:
        return str(loader.loadClass(early.version_class).getMethod("version", classes).invoke(None, values))
    except Py4JJavaError:
        # A build that does not have the class or its method: it is not judged.
        return "unknown"


def _refusal(stream: str, source: str, option: str, version: str, early: EarlyEnd) -> Refused:
    fixed = ".".join(map(str, early.fixed_in))
    return Refused(
        "source-ends-early",
        f"A run of stream {stream} with the trigger available-now would end after one batch, whatever is left to read",
        where=source,
        expected=f"version {fixed} or later of the connector, or no option {option}",
        found=f"version {version}, and the option {option}",
        hint=f"use version {fixed} or later of the connector, or remove the option {option}; "
        "a run with another trigger reads everything",
    )
