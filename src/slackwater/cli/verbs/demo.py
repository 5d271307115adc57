"""``slackwater demo``: runs the demo. Page or document go to stdout, steps to stderr."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any

from slackwater.cli.common.arguments import Format, Parser, Verb, add_format, one_of, path, string
from slackwater.cli.common.console import Steps, err, interrupt_on_signals, out, prepare, print_json
from slackwater.cli.verbs.init import story_module

NOT_EQUAL = 8
INTERRUPTED = 130


class Source(StrEnum):
    FILES = "files"
    KAFKA = "kafka"


class Sink(StrEnum):
    FILES = "files"
    POSTGRES = "postgres"


def declare(parser: Parser) -> None:
    parser.add_argument(
        "--source",
        type=one_of(Source),
        default=Source.FILES,
        metavar="files|kafka",
        help="what the first stage reads (default: files); kafka starts a broker",
    )
    parser.add_argument(
        "--sink",
        type=one_of(Sink),
        default=Sink.FILES,
        metavar="files|postgres",
        help="what the last stage writes (default: files); postgres starts a server, and the stages before write Delta",
    )
    parser.add_argument(
        "--postgres-url",
        type=string,
        metavar="URL",
        help="a database to use for --sink postgres; a schema is created in it and dropped",
    )
    parser.add_argument("--folder", type=path, help="work in this new or empty folder, and keep it")
    parser.add_argument("--keep", action="store_true", help="keep the temporary folder, also if all rows are equal")
    add_format(parser)
    parser.epilog = (
        "With files as sinks a pipeline is killed, upgraded and rebuilt; with --sink postgres each of its stages is "
        "killed after its write, and the last one loses its checkpoint. Exit code 0: the output equals that of an "
        "uninterrupted run. 8: it does not."
    )
    parser.set_defaults(verb=demo)


def demo(
    *,
    source: Source,
    sink: Sink,
    postgres_url: str | None,
    folder: Path | None,
    keep: bool,
    shown_as: Format,
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


VERB = Verb(
    "Kill, upgrade and restart a pipeline over a real year of weather, and compare every row. "
    "About 3 minutes, with tables 5.",
    declare=declare,
)
