"""``slackwater check``: whether changed code may continue with existing state."""

from rich.console import Group
from rich.text import Text

from slackwater.cli.common.arguments import Format
from slackwater.cli.common.comparison import CheckedPipeline, CheckedStream, check_pipeline
from slackwater.cli.common.console import Document, parse_conf, prepare, report_error, say
from slackwater.cli.common.pages import blocks, heading, show
from slackwater.core.sink import newest_batch
from slackwater.core.verdict import Effect

SCHEMA = "slackwater.check/1"
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
    "nothing": "nothing: the checkpoint holds no batch",
}
NOT_COMPARED = "not compared"
NOT_RECORDED = " as far as the checkpoint shows: functions and expressions were not compared"
REFUSED = 1
NOT_ALL_COMPARED = 5


def check_document(checked: CheckedPipeline) -> Document:
    streams = []
    for stream in checked.streams:
        judged = stream.verdict
        compared: Document = {"effect": None, "starts": False, "compared_with": None, "batch": None, "changes": []}
        if judged is not None:
            compared = {
                "effect": judged.effect.word if judged.effect is not None else None,
                "starts": judged.verdict.starts,
                "compared_with": judged.basis,
                "batch": judged.committed,
                "changes": [change.as_json() for change in judged.verdict.changes],
            }
        error = None if stream.error is None else stream.error.as_dict()
        streams.append({"stream": stream.stream, **compared, "next": list(stream.next), "error": error})
    effect = checked.effect.word if checked.effect is not None else None
    return {"schema": SCHEMA, "pipeline_file": checked.reference, "effect": effect, "streams": streams}


def check_page(checked: CheckedPipeline) -> Group:
    return blocks(checked.streams, _block)


def _block(stream: CheckedStream) -> list[Text]:
    if stream.verdict is None:
        return [heading(stream.stream, f"{NOT_COMPARED}: it cannot be built", "red")]
    effect = stream.verdict.effect
    if effect is None:
        return [heading(stream.stream, f"{NOT_COMPARED}: its plan or code cannot be read", "yellow")]
    partly = NOT_RECORDED if stream.verdict.basis == "checkpoint" and effect is Effect.SAME else ""
    basis = BASES[stream.verdict.basis].format(batch=newest_batch(stream.verdict.committed))
    first = heading(stream.stream, WORDS[effect] + partly, "yellow" if partly else STYLES[effect])
    lines = [first, _line("compared", f"with {basis}")]
    for one in stream.verdict.verdict.changes:
        place = f" at {one.place}" if one.place else ""
        change = f"{one.code} ({one.effect.word}){place}: {one.text}"
        lines.append(_line("note" if one.effect is Effect.SAME else "changed", change))
    return [*lines, *(_line("next", way) for way in stream.next)]


def _line(label: str, text: str) -> Text:
    line = Text(f"  {label:<{LABEL_WIDTH}}", style="dim")
    return line.append(text, style="not dim")


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
    settings = prepare(home, shown_as, logging=True, debug=debug)
    checked = check_pipeline(pipeline, settings, say, streams=streams or (), master=master, spark=parse_conf(conf))
    show(shown_as, check_document(checked), lambda: check_page(checked))
    if checked.error is not None:
        report_error(checked.error)
        return checked.error.exit_code
    if not checked.starts:
        return REFUSED
    return 0 if checked.is_compared else NOT_ALL_COMPARED
