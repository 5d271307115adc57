"""Whether a query's sources held data, when a batch was planned, that the batch did not read.

A running query follows such a batch with the next one that has data, and only otherwise with one without data. The late
rows of the two differ: a batch with data still counts rows that the watermark of the batch before it lets through.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import structlog

from slackwater.errors import EnvironmentMissing
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.lineage import SOURCES
from slackwater.model.checkpoint_logs import OffsetEntry
from slackwater.runtime.failures import spark_errors
from slackwater.runtime.kafka_offsets import offsets_at
from slackwater.runtime.logical_plan import analysed_plan, source_options, streaming_sources
from slackwater.sources.contract import SourceRange
from slackwater.sources.files import Files
from slackwater.sources.registry import kind_of
from slackwater.storage.open import local_path_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LISTING_OPTIONS = ("recursivefilelookup", "pathglobfilter", "modifiedafter", "modifiedbefore", "basepath")
MS_IN_S = 1000

log = structlog.get_logger(__name__)


def left_unread(frame: DataFrame, ledger: Ledger, stream: str, entry: OffsetEntry) -> bool:
    """Whether a source of the query had unread data when the batch of ``entry`` was planned.

    Files count by the time at which they came into their folder, Kafka records by their timestamps. Other kinds of
    sources, and a source that cannot be asked, count as having had none.
    """
    unknown: tuple[type[Exception], ...] = (EnvironmentMissing, *spark_errors())
    planned_ms = entry.metadata.batch_timestamp_ms if entry.metadata is not None else 0
    for relation, offset in zip(streaming_sources(analysed_plan(frame)), entry.offsets, strict=False):
        texts = {number: line.text for number, line in ledger.lines(stream, SOURCES + offset.source).items()}
        try:
            if kind_of(offset.text, texts).kind == Files.kind:
                span = SourceRange(offset.source, None, offset.text, texts)
                unread = _unread_files(frame.sparkSession, relation, span)
                found = any(_came_ms(frame.sparkSession, file) <= planned_ms for file in unread)
            else:
                found = str(relation.sourceName()) == "kafka" and _is_behind(frame, relation, offset.text, planned_ms)
        except unknown as error:
            log.warning("cannot determine whether a source had unread data", stream=stream, error=str(error))
            continue
        if found:
            return True
    return False


def _unread_files(spark: SparkSession, relation: Any, span: SourceRange) -> Iterator[str]:
    """The files that the source would list now and that its own log does not hold up to the offset."""
    read = {unquote(file.path) for file in Files().files(span)}
    options = {name.lower(): value for name, value in source_options(relation).items()}
    listing = {name: options[name] for name in LISTING_OPTIONS if name in options}
    # No job: the paths come from the listing, which follows the manifest of a streaming output as the source does.
    present: Iterable[str] = spark.read.format("text").options(**listing).load(options["path"]).inputFiles()
    return (file for file in present if unquote(file) not in read)


def _came_ms(spark: SparkSession, file: str) -> float:
    local = local_path_of(file)
    if local is not None:
        # Not the modification time, which a move or a copy into the folder may keep from long before.
        return Path(local).stat().st_ctime * MS_IN_S
    jvm: Any = spark.sparkContext._jvm
    path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(file))
    status = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()).getFileStatus(path)
    return float(status.getModificationTime())


def _is_behind(frame: DataFrame, relation: Any, offset: str | None, planned_ms: int) -> bool:
    """Whether a Kafka offset is before the end of the records with timestamps before ``planned_ms``."""
    read: Mapping[str, Mapping[str, int]] = json.loads(offset) if offset else {}
    there = offsets_at(frame, relation, planned_ms)
    return any(end > read.get(topic, {}).get(str(number), 0) for (topic, number), end in there.items())
