"""Whether the streams of a pipeline file could continue with their state. Starts no query, writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from slackwater.cli.common.checked import CheckedPipeline
from slackwater.core.errors import NotFound, UsageError
from slackwater.core.records import GenerationRecord
from slackwater.core.settings import Settings
from slackwater.ledger.home.home import Home
from slackwater.ledger.home.stream_file import read_stream_file
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.history import settings_of_state
from slackwater.runtime.loader import load
from slackwater.runtime.pipeline import StreamDefinition
from slackwater.runtime.session_options import given_to, require_spark, session_options
from slackwater.storage.open import is_uri, open_read_store, resolved


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """Which streams, all where none is named, and how Spark is started.

    ``checkpoint`` is one that Slackwater has not recorded: the state of the only stream, or of the one that names it.
    """

    streams: tuple[str, ...] = ()
    checkpoint: str | None = None
    master: str | None = None
    spark: Mapping[str, str] = field(default_factory=dict)


def check_pipeline(
    reference: str, options: CheckOptions, settings: Settings, say: Callable[[str], None]
) -> CheckedPipeline:
    """Build the DataFrame of each stream and compare it. Raises PipelineError for a file that cannot be loaded."""
    require_spark()
    with nullcontext() if options.checkpoint is not None else _ledger(settings) as ledger:
        loaded = load(reference, ledger, given_to(settings, options.master, options.spark))
        definitions = loaded.selected(options.streams)
        generations = _generations(settings, ledger, definitions)
        recorded = {} if ledger is None else {one.name: settings_of_state(ledger, one.full_name) for one in definitions}
    from slackwater.cli.common.judging import judged_streams  # noqa: PLC0415 - brings Spark

    say("starting Spark")
    if options.checkpoint is not None:
        definitions = [_stream_of(definitions, options.checkpoint, loaded.reference)]
        generations = {definitions[0].name: GenerationRecord(definitions[0].full_name, 1, options.checkpoint)}
    session = session_options(loaded, settings, options.master, options.spark, brief=True)
    streams = judged_streams(loaded, definitions, generations, session, Home(settings.home).given, say, recorded)
    return CheckedPipeline(loaded.reference, streams)


def _stream_of(definitions: list[StreamDefinition], checkpoint: str, reference: str) -> StreamDefinition:
    """The stream whose checkpoint this is. Raises UsageError where several are possible."""
    named = [
        one for one in definitions if one.checkpoint is not None and resolved(one.checkpoint) == resolved(checkpoint)
    ]
    found = named or definitions
    if len(found) == 1:
        return found[0]
    raise UsageError(
        "stream-of-checkpoint",
        "The pipeline file has several streams, and none of them names this checkpoint",
        where=reference,
        expected=f"one stream, or one with checkpoint={checkpoint!r}",
        found=", ".join(one.name for one in definitions),
        hint="give the stream of this checkpoint the path of it, or a pipeline file of its own",
    )


@contextmanager
def _ledger(settings: Settings) -> Iterator[Ledger | None]:
    """The ledger of the home, ``None`` where there is none."""
    try:
        ledger = Ledger.open(settings.ledger or Home(settings.home).ledger_url, create=False)
    except NotFound:
        yield None
        return
    with ledger:
        yield ledger


def _generations(
    settings: Settings, ledger: Ledger | None, definitions: list[StreamDefinition]
) -> dict[str, GenerationRecord]:
    """The generation in use of each stream that has one. Without a ledger ``stream.json`` has it."""
    home = Home(settings.home)
    found = {one.name: _recorded(ledger, one) or _from_file(home, one) for one in definitions}
    return {name: _here(home, generation) for name, generation in found.items() if generation is not None}


def _recorded(ledger: Ledger | None, definition: StreamDefinition) -> GenerationRecord | None:
    if ledger is None:
        return None
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
