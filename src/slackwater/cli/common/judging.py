from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from slackwater.cli.common.comparison import CheckedStream
from slackwater.core.errors import PipelineError, SlackwaterError
from slackwater.core.records import GenerationRecord
from slackwater.core.verdict import StreamVerdict
from slackwater.diagnose.checks.common.settings import PINNED
from slackwater.diagnose.refusal import Ways
from slackwater.ledger.sqlite import Say
from slackwater.runtime.loader import LoadedPipeline
from slackwater.runtime.pipeline import StreamDefinition
from slackwater.runtime.run.before_start import judge, ways_of
from slackwater.runtime.run.query import build, build_again
from slackwater.runtime.session import SessionOptions
from slackwater.runtime.session.session import end_session, start_session
from slackwater.runtime.session.settings import require_classes, session_of, values_of
from slackwater.sinks.common.registry import open_each


def judged_streams(
    loaded: LoadedPipeline,
    definitions: Sequence[StreamDefinition],
    generations: Mapping[str, GenerationRecord],
    session: SessionOptions,
    home: Path | str,
    say: Say,
    recorded: Mapping[str, Mapping[str, str] | None],
) -> tuple[CheckedStream, ...]:
    """``generations`` are in use; ``recorded`` as in ``judge``, by name."""
    spark = start_session(session, say)
    try:
        again = partial(build_again, loaded, home)

        def judge_one(definition: StreamDefinition) -> StreamVerdict:
            of_stream, name = session_of(spark, definition), definition.name
            require_classes(of_stream, definition)
            built = build(of_stream, loaded, definition, home)
            return judge(built, generations.get(name), recorded.get(name), again)

        ways = partial(ways_of, reference=loaded.reference, words=session.words)
        checked = [_checked(judge_one, ways, loaded, one, is_new=one.name not in generations) for one in definitions]
        settings = values_of(spark, PINNED)
        return tuple(
            replace(
                one, settings=settings | {key: definition.settings[key] for key in definition.settings.keys() & PINNED}
            )
            for one, definition in zip(checked, definitions, strict=True)
        )
    finally:
        end_session(spark)


def _checked(
    judge_one: Callable[[StreamDefinition], StreamVerdict],
    ways: Callable[[StreamDefinition], Ways],
    loaded: LoadedPipeline,
    definition: StreamDefinition,
    *,
    is_new: bool,
) -> CheckedStream:
    name = definition.full_name
    try:
        judged = judge_one(definition)
    except SlackwaterError as error:
        if is_new and isinstance(error, PipelineError):
            # It may wait for the output of another stream.
            others = [one for one in loaded.pipeline.streams.values() if one.name != definition.name]
            places = [output.location for one in others for output in open_each(one.sink.identity())]
            if any(place is not None and place in str(error) for place in places):
                return CheckedStream(name, StreamVerdict(name, -1, "nothing"))
        return CheckedStream(name, error=error)
    return CheckedStream(name, judged, next=tuple(ways(definition).lines(judged.verdict, judged.settings)))
