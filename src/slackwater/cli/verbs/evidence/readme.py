"""The README of a bundle: what is in it, and what is not."""

from __future__ import annotations

from slackwater.cli.verbs.evidence.model import Evidence
from slackwater.core.escaping import one_line
from slackwater.core.units import utc_text


def readme(made: Evidence) -> str:
    """Plain text for whoever opens the zip."""
    head = made.head
    steps = [f"Next:       {one_line(step)}" for step in (head.next, head.advice) if step]
    return "\n".join(
        [
            f"Evidence about {one_line(made.stream.name)}",
            f"Made by Slackwater {made.slackwater} at {utc_text(made.made_ms)}. Nothing was changed to make it.",
            "",
            f"{head.state.capitalize() + ':':<11} {head.code}: {one_line(head.text)}",
            *steps,
            "",
            "evidence.html   open it in a browser: it needs no network and runs no script",
            f"evidence.json   all of it for programs: the document {made.schema}",
            "",
            "It has the checkpoint's location, query id, batches, offsets, operators, state and settings; the sink;",
            "runs, operations, and findings with their commands; and what could not be checked, with the reason.",
            _left_out(made),
            "Passwords, tokens and keys are replaced by ***, as is every setting and option that is not Spark's own.",
            "",
        ]
    )


def _left_out(made: Evidence) -> str:
    if any(run.message is not None for run in made.runs):
        return "It has no rows but those that error messages of runs quote: they were asked for with --messages."
    return "It has no rows of the input, the state or the output, and no error messages, which can quote rows."
