"""``slackwater demo``: runs the demo. Page or document go to stdout, steps to stderr."""

from pathlib import Path
from typing import Any

from slackwater.cli.common.arguments import Format
from slackwater.cli.common.console import Steps, err, interrupt_on_signals, out, prepare, print_json
from slackwater.cli.common.declare_changing import Sink, Source
from slackwater.cli.verbs.init import story_module

NOT_EQUAL = 8
INTERRUPTED = 130


def demo(
    *, source: Source, sink: Sink, postgres_url: str | None, folder: Path | None, keep: bool, shown_as: Format
) -> int:
    prepare(None, shown_as, logging=True)
    steps = Steps(err())
    interrupt_on_signals()
    run = story_module("run")
    try:
        result = run.demo(run.DemoOptions(source.value, sink.value, postgres_url, folder, keep), steps)
    except KeyboardInterrupt:
        steps.interrupted()
        return INTERRUPTED
    finally:
        steps.close()
    if shown_as is Format.JSON:
        print_json(story_module("result").demo_document(result))
    else:
        story_module("page").show(result, out())
    return exit_code(result)


def exit_code(result: Any) -> int:
    """Returns 0 if the output equals an uninterrupted run's, else 8."""
    return 0 if result.equal else NOT_EQUAL
