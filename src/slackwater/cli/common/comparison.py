"""Whether streams could continue with their state. Starts no query, writes nothing."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from slackwater.cli.common.console import say
from slackwater.core.errors import NotFound, SlackwaterError, UsageError
from slackwater.core.facts import Fact, Facts, Unknown
from slackwater.core.records import GenerationRecord
from slackwater.core.settings import Settings
from slackwater.core.verdict import Effect, StreamVerdict
from slackwater.diagnose.doctor import Diagnosis, diagnose
from slackwater.ledger.home import Home, read_stream_file
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.history import settings_of_state
from slackwater.ledger.sqlite import Say
from slackwater.runtime.loader import load
from slackwater.runtime.pipeline import StreamDefinition
from slackwater.runtime.session import given_to, require_spark, session_options
from slackwater.storage.open import is_uri, open_read_store, resolved


@dataclass(frozen=True, slots=True)
class CheckedStream:
    """A stream with its verdict or error. ``settings`` are the session's values of settings that Spark takes from a
    checkpoint.
    """

    stream: str
    verdict: StreamVerdict | None = None
    error: SlackwaterError | None = None
    next: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CheckedPipeline:
    reference: str
    streams: tuple[CheckedStream, ...]

    @property
    def effect(self) -> Effect | None:
        found = [one.verdict.effect for one in self.streams if one.verdict is not None]
        return max((effect for effect in found if effect is not None), default=None)

    @property
    def starts(self) -> bool:
        return all(one.verdict is not None and one.verdict.verdict.starts for one in self.streams)

    @property
    def is_compared(self) -> bool:
        """Whether each stateful stream was compared with the whole program that made its state."""
        return all(one.verdict is not None and one.verdict.basis in ("recorded", "nothing") for one in self.streams)

    @property
    def error(self) -> SlackwaterError | None:
        return next((one.error for one in self.streams if one.error is not None), None)


def check_pipeline(
    reference: str,
    settings: Settings,
    say: Say,
    *,
    streams: Sequence[str] = (),
    checkpoint: str | None = None,
    master: str | None = None,
    spark: Mapping[str, str],
) -> CheckedPipeline:
    """Compare each DataFrame with its state. Raises PipelineError for a file that cannot be loaded. ``checkpoint`` is
    unrecorded: the state of the only stream, or of the stream that names it.
    """
    require_spark()
    with ExitStack() as opened:
        ledger = None
        if checkpoint is None:
            with suppress(NotFound):
                url = settings.ledger or Home(settings.home).ledger_url
                ledger = opened.enter_context(Ledger.open(url, create=False))
        loaded = load(reference, ledger, given_to(settings, master, spark))
        definitions = list(loaded.selected(streams))
        found = {one.name: _generation(ledger, Home(settings.home), one) for one in definitions}
        generations = {name: generation for name, generation in found.items() if generation is not None}
        recorded = {} if ledger is None else {one.name: settings_of_state(ledger, one.full_name) for one in definitions}
    from slackwater.cli.common.judging import judged_streams  # noqa: PLC0415 - brings Spark

    if checkpoint is not None:
        location = resolved(checkpoint)
        named = [one for one in definitions if one.checkpoint is not None and resolved(one.checkpoint) == location]
        if len(named or definitions) != 1:
            raise UsageError(
                "stream-of-checkpoint",
                "The pipeline file has several streams, but none with this checkpoint",
                where=loaded.reference,
                expected=f"one stream, or one with checkpoint={checkpoint!r}",
                found=", ".join(one.name for one in definitions),
                hint="set checkpoint= of the stream to this path, or give the stream a separate pipeline file",
            )
        definitions = named or definitions
        generations = {definitions[0].name: GenerationRecord(definitions[0].full_name, 1, checkpoint)}
    session = session_options(loaded, settings, master, spark, brief=True)
    judged = judged_streams(loaded, definitions, generations, session, Home(settings.home).given, say, recorded)
    return CheckedPipeline(loaded.reference, judged)


def _generation(ledger: Ledger | None, home: Home, definition: StreamDefinition) -> GenerationRecord | None:
    """The generation in use. Without a ledger ``stream.json`` names the generations."""
    found = None
    if ledger is not None:
        with suppress(NotFound):
            stream = ledger.find_stream(definition.full_name)
            found = ledger.generation(stream.full_name, stream.current_generation)
    if found is None:
        file, path = read_stream_file(home, definition.pipeline, definition.name), definition.checkpoint
        if file is not None:
            found = next((one for one in file.generations if one.number == file.generation), None)
        elif path is not None:
            found = GenerationRecord(definition.full_name, 1, path if is_uri(path) else str(Path(path).absolute()))
    if found is None:
        return None
    pipeline, _, name = found.stream.partition("/")
    folder = home.checkpoint(pipeline, name, found.number)
    return found._replace(location=str(folder)) if open_read_store(folder).exists("") else found


def with_code(
    examined: Sequence[Diagnosis], pipeline: str, settings: Settings, master: str | None, spark: Mapping[str, str]
) -> tuple[Diagnosis, ...]:
    foreign = next((one.facts for one in examined if isinstance(one.facts, Facts) and not one.facts.recorded), None)
    checkpoint = foreign.checkpoint.location if foreign is not None else None
    checked = check_pipeline(pipeline, settings, say, checkpoint=checkpoint, master=master, spark=spark)
    if checkpoint is not None:
        return tuple(_with(one, checked.streams[0]) for one in examined)
    streams = {stream.stream: stream for stream in checked.streams}
    return tuple(_with(one, streams.get(one.name)) for one in examined)


def _with(one: Diagnosis, stream: CheckedStream | None) -> Diagnosis:
    if isinstance(one.facts, Unknown):
        return one
    code: Fact[StreamVerdict]
    if stream is None:
        code = Unknown("the pipeline file has no stream of this name")
    elif stream.verdict is None:
        code = Unknown(f"the query cannot be built: {stream.error}", stream.error.hint if stream.error else None)
    else:
        code = replace(stream.verdict, ways=stream.next, session=stream.settings)
    return diagnose(one.facts._replace(code=code))
