"""Makes a replay's sources fail on lost rows, whatever the user's options.

With ``failOnDataLoss=false`` Spark omits such rows with a warning; after a code change state would be silently
incomplete. Spark reads options of version 2 sources from the plan at the start: they are replaced there, and restored.

Before a new checkpoint's first start, read files are refused that would be silently omitted. Only the first batch after
an operation keeps its recorded range; a new listing plans the later files, and silently skips files that are too old.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from slackwater.core.checkpoint import SourceFile
from slackwater.core.errors import Refused
from slackwater.core.records import GenerationRecord
from slackwater.core.units import counted
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.lineage import SOURCES
from slackwater.ledger.recording.source_availability import StoreAvailability
from slackwater.runtime.failures import SPARK_ERRORS
from slackwater.runtime.logical_plan import analysed_plan, class_name, java_field, source_logs
from slackwater.runtime.positions import spark_sources
from slackwater.sources import kind_described
from slackwater.sources.common.contract import LeftOut, SparkSource
from slackwater.sources.common.source import Source, encoded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


VERSION_1_READERS = "spark.sql.streaming.disabledV2MicroBatchReaders"
"""The setting for classes of sources that Spark reads as version 1, although they support version 2."""
_MAPS = ("original", "delegate")
"""The fields of Spark's ``CaseInsensitiveStringMap``: names as the user spelled them, and in lower case."""
_NOT_FOUND: tuple[type[Exception], ...] = (LookupError, *SPARK_ERRORS)


@contextmanager
def strict_sources(frame: DataFrame, stream: str) -> Iterator[None]:
    """Make the query's sources strict for its start.

    Raises Refused if options cannot be replaced.
    """
    with ExitStack() as replaced:
        for source in spark_sources(frame):
            wanted = _lenient(source)
            if wanted:
                replaced.enter_context(_replaced(frame, source, wanted, stream))
        yield


def _lenient(source: SparkSource) -> dict[str, str]:
    """User-spelled options with which the source omits lost rows; with the needed values."""
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
    """The option maps of a source. Raises LookupError for a version 1 source."""
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


def check_left_out(ledger: Ledger, generation: GenerationRecord, planned: int, frame: DataFrame) -> None:
    """Raises Refused (``source-files-too-old``) if a source would omit files that an older generation read.

    Not checked once the generation has its own batch.
    """
    based_at = -1 if generation.based_at is None else generation.based_at
    older = [one.number for one in ledger.generations(generation.stream) if one.number < generation.number]
    if not older or planned > based_at + 1:
        return
    for log, source in zip(source_logs(analysed_plan(frame)), spark_sources(frame), strict=True):
        kind = kind_described(source.description)
        if not kind.reads_files:
            continue
        read = _listed(ledger, generation.stream, kind, log, generation.number)
        # Generations inherit from each other, and each file is asked for once.
        again = {file.path: file for one in older for file in _listed(ledger, generation.stream, kind, log, one)}
        found = kind.live().left_out(source, read, list(again.values()), StoreAvailability())
        if found is not None:
            raise _refusal(generation.stream, source.where, found)


def _listed(ledger: Ledger, stream: str, kind: Source, log: str, generation: int) -> list[SourceFile]:
    lines = ledger.lines(stream, SOURCES + log, generation=generation).values()
    return [file for line in lines for file in kind.listed(encoded(line))]


def _refusal(stream: str, source: str, found: LeftOut) -> Refused:
    return Refused(
        "source-files-too-old",
        f"Stream {stream} has to read {counted(found.files, 'file')} again, which {source} would leave out silently",
        where=found.path,
        expected=f"at most {found.limit} older than the newest file that counts as read, by the option {found.option}",
        found=f"{found.found} older",
        hint=f'read them: set .option("{found.option}", "{found.wanted}") on the source; or move them out of its '
        "directory, and their rows are left out; then run again",
    )
