"""``slackwater demo``: parse, run the demo, render. stdout has the page or the document, stderr the steps."""

from __future__ import annotations

import signal
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from slackwater.cli.arguments import Format, Parser, add_force, add_format, one_of, path, string
from slackwater.cli.console import err, out, prepare, print_json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

    from slackwater.app.user_files import NewFile
    from slackwater.demo.result import DemoResult, TablesResult

NOT_EQUAL = 8
INTERRUPTED = 130


class Source(StrEnum):
    """What the first stage of the demo reads."""

    FILES = "files"
    KAFKA = "kafka"


class Sink(StrEnum):
    """What the stages of the demo write."""

    FILES = "files"
    POSTGRES = "postgres"


def declare(parser: Parser) -> None:
    """Declare the arguments."""
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
    parser.add_argument("--keep", action="store_true", help="keep the temporary folder")
    parser.add_argument("--svg", type=path, metavar="FILE", help="also write the page to this file, as a picture")
    add_force(parser)
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
    svg: Path | None,
    force: bool,
    shown_as: Format,
) -> int:
    """Run the demo and show the page."""
    from slackwater.app import demo as use_case  # noqa: PLC0415 - light start
    from slackwater.app.user_files import NewFile  # noqa: PLC0415

    prepare(None, shown_as, logging=True)
    picture = NewFile(svg, force=force) if svg is not None else None
    if picture is not None:
        picture.check()
    steps = Steps(err())
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        result = use_case.demo(use_case.DemoOptions(source.value, sink.value, postgres_url, folder, keep), steps)
    except KeyboardInterrupt:
        steps.interrupted()
        return INTERRUPTED
    finally:
        steps.close()
    _show(result, shown_as, picture)
    return exit_code(result)


def exit_code(result: DemoResult | TablesResult) -> int:
    """0 where the output equals that of an uninterrupted run, else 8."""
    return 0 if result.equal else NOT_EQUAL


class Steps:
    """One line for each step with its time, and a spinner on a terminal while it runs."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._folder: Path | None = None
        self._what = ""
        self._started = self._step_started = time.monotonic()
        self._status: Status | None = None

    def works_in(self, folder: Path) -> None:
        """Show where the demo works."""
        self._folder = folder
        self._console.print(f"Working in {folder}", style="dim")

    def begin(self, what: str) -> None:
        """Show the step that starts."""
        self._what, self._step_started = what, time.monotonic()
        if self._console.is_terminal:
            self._status = self._console.status(f"{what} ...")
            self._status.start()

    def end(self, outcome: str) -> None:
        """Write the step's line."""
        self.close()
        now = time.monotonic()
        self._console.print(f"{now - self._started:6.1f} s  {self._what}: {outcome} ({now - self._step_started:.1f} s)")

    def interrupted(self) -> None:
        """Report what is left."""
        self.close()
        self._console.print(f"Interrupted while: {self._what}.")
        self._console.print(f"All processes have exited. The files are in {self._folder}")

    def close(self) -> None:
        """Stop the progress display."""
        if self._status is not None:
            self._status.stop()
            self._status = None


def _show(result: DemoResult | TablesResult, shown_as: Format, picture: NewFile | None) -> None:
    from slackwater.app.documents.demo import demo_document  # noqa: PLC0415
    from slackwater.cli import demo_page  # noqa: PLC0415

    if picture is not None:
        with picture.open() as file:
            file.write(demo_page.as_svg(result).encode())
    if shown_as is Format.JSON:
        print_json(demo_document(result))
    else:
        demo_page.show(result, out())
