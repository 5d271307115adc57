"""The verdict on the code as facts: Spark is started once, and builds the DataFrames of the streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from slackwater.cli.common.checked import CheckedStream
from slackwater.cli.common.comparison import CheckOptions, check_pipeline
from slackwater.cli.common.console import say
from slackwater.cli.common.examined import Examined
from slackwater.core.facts import Fact, Judged, Unknown
from slackwater.core.settings import Settings
from slackwater.diagnose.doctor import diagnose


def with_code(
    examined: Sequence[Examined], pipeline: str, settings: Settings, master: str | None, spark: Mapping[str, str]
) -> tuple[Examined, ...]:
    """The diagnoses with the code compared as well. Raises PipelineError for a file that cannot be loaded."""
    foreign = next((one.facts for one in examined if one.facts is not None and not one.facts.recorded), None)
    checkpoint = foreign.checkpoint.location if foreign is not None else None
    checked = check_pipeline(pipeline, CheckOptions((), checkpoint, master, spark), settings, say)
    if checkpoint is not None:
        return tuple(_with(one, checked.streams[0]) for one in examined)
    streams = {stream.stream: stream for stream in checked.streams}
    return tuple(_with(one, streams.get(one.name)) for one in examined)


def _with(one: Examined, stream: CheckedStream | None) -> Examined:
    if one.facts is None:
        return one
    code: Fact[Judged]
    if stream is None:
        code = Unknown("the pipeline file has no stream of this name")
    elif stream.verdict is None:
        code = Unknown(f"the query cannot be built: {stream.error}", stream.error.hint if stream.error else None)
    else:
        code = Judged(stream.verdict, stream.next, stream.settings)
    facts = replace(one.facts, code=code)
    return replace(one, facts=facts, diagnosis=diagnose(facts))
