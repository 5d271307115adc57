"""Whether the streams of a pipeline file could continue with their state. Starts no query, writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.text import Text

from slackwater.cli.common.arguments import Format
from slackwater.cli.common.console import err, out, parse_conf, prepare, print_json, report_error
from slackwater.core.errors import NotFound, SlackwaterError
from slackwater.core.records import GenerationRecord
from slackwater.core.settings import Settings
from slackwater.core.sink import newest_batch
from slackwater.core.stream_verdict import StreamVerdict
from slackwater.core.verdict import Change, Effect
from slackwater.ledger.home.home import Home
from slackwater.ledger.home.stream_file import read_stream_file
from slackwater.ledger.ledger import Ledger
from slackwater.runtime.loader import load
from slackwater.runtime.pipeline import StreamDefinition
from slackwater.runtime.session_options import require_spark, session_options
from slackwater.storage.open import is_uri, open_read_store


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """Which streams, all where none is named, and how Spark is started."""

    streams: tuple[str, ...] = ()
    master: str | None = None
    spark: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CheckedStream:
    """A stream with its verdict, or with the error of a stream that cannot be compared. ``next`` are the ways on."""

    stream: str
    verdict: StreamVerdict | None = None
    error: SlackwaterError | None = None
    next: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckedPipeline:
    """All streams that were compared."""

    reference: str
    streams: tuple[CheckedStream, ...]

    @property
    def effect(self) -> Effect:
        """The gravest effect of a change."""
        found = [one.verdict.verdict.effect for one in self.streams if one.verdict is not None]
        return max(found, default=Effect.SAME)

    @property
    def starts(self) -> bool:
        """Whether a run would start all streams."""
        return all(one.verdict is not None and one.verdict.verdict.starts for one in self.streams)

    @property
    def error(self) -> SlackwaterError | None:
        """The error of the first stream that cannot be compared."""
        return next((one.error for one in self.streams if one.error is not None), None)


def check_pipeline(
    reference: str, options: CheckOptions, settings: Settings, say: Callable[[str], None]
) -> CheckedPipeline:
    """Build the DataFrame of each stream and compare it. Raises PipelineError for a file that cannot be loaded."""
    require_spark()
    loaded = load(reference)
    definitions = loaded.selected(options.streams)
    from slackwater.cli.verbs.check.judging import judged_streams  # noqa: PLC0415 - brings Spark

    say("starting Spark")
    generations = _generations(settings, definitions)
    session = session_options(loaded, settings, options.master, options.spark)
    streams = judged_streams(loaded, definitions, generations, session, Home(settings.home).given, say)
    return CheckedPipeline(loaded.reference, streams)


def _generations(settings: Settings, definitions: list[StreamDefinition]) -> dict[str, GenerationRecord]:
    """The generation in use of each stream that has one. Without a ledger ``stream.json`` has it."""
    home = Home(settings.home)
    try:
        with Ledger.open(settings.ledger or home.ledger_url, create=False) as ledger:
            found = {one.name: _recorded(ledger, one) or _from_file(home, one) for one in definitions}
    except NotFound:
        found = {one.name: _from_file(home, one) for one in definitions}
    return {name: _here(home, generation) for name, generation in found.items() if generation is not None}


def _recorded(ledger: Ledger, definition: StreamDefinition) -> GenerationRecord | None:
    try:
        stream = ledger.find_stream(definition.full_name)
        return ledger.generation(stream.full_name, stream.current_generation)
    except NotFound:
        return None


def _from_file(home: Home, definition: StreamDefinition) -> GenerationRecord | None:
    """As ``stream.json`` has it; of a checkpoint that Slackwater has never run, its path in the pipeline file."""
    file = read_stream_file(home, definition.pipeline, definition.name)
    if file is not None:
        return next((one for one in file.generations if one.number == file.generation), None)
    if definition.checkpoint is None:
        return None
    path = definition.checkpoint
    return GenerationRecord(definition.full_name, 1, path if is_uri(path) else str(Path(path).absolute()))


def _here(home: Home, generation: GenerationRecord) -> GenerationRecord:
    """With the checkpoint of this home, which may have been moved since its paths were recorded."""
    pipeline, _, name = generation.stream.partition("/")
    folder = home.checkpoint(pipeline, name, generation.number)
    return replace(generation, location=str(folder)) if open_read_store(folder).exists("") else generation


SCHEMA = "slackwater.check/1"


def check_document(checked: CheckedPipeline) -> dict[str, Any]:
    """The verdict on each stream of a pipeline file."""
    return {
        "schema": SCHEMA,
        "pipeline_file": checked.reference,
        "effect": checked.effect.word,
        "streams": [_fields(stream) for stream in checked.streams],
    }


def _fields(stream: CheckedStream) -> dict[str, Any]:
    judged = stream.verdict
    return {
        "stream": stream.stream,
        "effect": None if judged is None else judged.verdict.effect.word,
        "starts": judged is not None and judged.verdict.starts,
        "compared_with": None if judged is None else judged.basis,
        "batch": None if judged is None else judged.committed,
        "changes": [] if judged is None else [change.as_json() for change in judged.verdict.changes],
        "next": list(stream.next),
        "error": None if stream.error is None else stream.error.as_dict(),
    }


LABEL_WIDTH = 10
STYLES = {
    Effect.SAME: "green",
    Effect.COMPATIBLE: "green",
    Effect.CHANGES_ROWS: "yellow",
    Effect.NEEDS_REBUILD: "red",
    Effect.NOT_RESTORABLE: "red",
}
WORDS = {
    Effect.SAME: "same",
    Effect.COMPATIBLE: "compatible: it was changed, and its state keeps its meaning",
    Effect.CHANGES_ROWS: "changes rows: rows of the kept state were made by the old code",
    Effect.NEEDS_REBUILD: "needs a rebuild: the kept state means something else to this code",
    Effect.NOT_RESTORABLE: "not restorable: neither the kept state nor a rebuild makes the output right",
}
BASES = {
    "recorded": "the program that made the state up to {batch}",
    "checkpoint": "what the checkpoint shows at {batch}: the program that made it is not recorded",
    "nothing": "nothing: no batch was run yet",
}


def check_page(checked: CheckedPipeline) -> Group:
    """A block for each stream."""
    parts: list[Text] = []
    for stream in checked.streams:
        parts += [Text()] if parts else []
        parts += _block(stream)
    return Group(*parts)


def _block(stream: CheckedStream) -> list[Text]:
    heading = Text(stream.stream, style="bold")
    if stream.verdict is None:
        heading.append("  not compared: it cannot be built", style="not bold red")
        return [heading]
    effect = stream.verdict.verdict.effect
    heading.append(f"  {WORDS[effect]}", style=f"not bold {STYLES[effect]}")
    lines = [heading, _line("compared", _basis(stream.verdict))]
    lines += [_line("changed", _change(change)) for change in stream.verdict.verdict.changes]
    lines += [_line("next", way) for way in stream.next]
    return lines


def _basis(judged: StreamVerdict) -> str:
    return "with " + BASES[judged.basis].format(batch=newest_batch(judged.committed))


def _change(change: Change) -> str:
    place = f" at {change.place}" if change.place else ""
    return f"{change.code} ({change.effect.word}){place}: {change.text}"


def _line(label: str, text: str) -> Text:
    line = Text(f"  {label:<{LABEL_WIDTH}}", style="dim")
    return line.append(text, style="not dim")


REFUSED = 1


def check(
    *,
    pipeline: str,
    streams: list[str] | None,
    master: str | None,
    conf: list[str] | None,
    home: str | None,
    debug: bool,
    shown_as: Format,
) -> int:
    """Compare, and show the verdict on each stream."""
    settings = prepare(home, shown_as, logging=True, debug=debug)
    options = CheckOptions(tuple(streams or ()), master, parse_conf(conf))
    checked = check_pipeline(pipeline, options, settings, lambda text: err().print(text, markup=False))
    if shown_as is Format.JSON:
        print_json(check_document(checked))
    else:
        out().print(check_page(checked), soft_wrap=True)
    if checked.error is not None:
        report_error(checked.error)
        return checked.error.exit_code
    return 0 if checked.starts else REFUSED
