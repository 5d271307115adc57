"""``slackwater audit``: parse, have the targets confirmed, run the drills, render."""

from __future__ import annotations

import shlex
import signal
from pathlib import Path

from slackwater.cli.apply import confirm
from slackwater.cli.arguments import Format, Parser, add_debug, add_format, add_pipeline, path, string
from slackwater.cli.console import err, out, parse_conf, prepare, print_json
from slackwater.errors import UsageError

NOT_EQUAL = 8
INTERRUPTED = 130


def declare(parser: Parser) -> None:
    """Declare the arguments."""
    add_pipeline(parser)
    parser.add_argument(
        "--drill",
        dest="drills",
        metavar="before|line|job|task|twice|after",
        type=string,
        action="append",
        help="only this drill; may be repeated",
    )
    parser.add_argument(
        "--set",
        dest="variables",
        metavar="NAME=VALUE",
        action="append",
        help="an environment variable for the pipeline file; {run} becomes reference or drill, {folder} its folder",
    )
    parser.add_argument("--folder", type=path, help="work in this new or empty folder, and keep it")
    parser.add_argument("--conf", metavar="KEY=VALUE", action="append", help="a Spark setting; may be repeated")
    parser.add_argument("--yes", action="store_true", help="do not ask for the pipeline's name")
    add_debug(parser)
    add_format(parser)
    parser.epilog = (
        "It writes generated rows to the targets that the sinks name, twice; a target that holds rows is refused. "
        "Exit code 0: every drill was passed. 8: rows doubled or vanished, or a batch could not be written any more."
    )
    parser.set_defaults(verb=audit)


def audit(
    *,
    pipeline: str,
    streams: list[str] | None,
    drills: list[str] | None,
    variables: list[str] | None,
    folder: Path | None,
    conf: list[str] | None,
    yes: bool,
    debug: bool,
    shown_as: Format,
) -> int:
    """Run the drills and show what doubled or vanished."""
    from slackwater.app import audit as use_case  # noqa: PLC0415 - light start
    from slackwater.app.documents.audit import audit_document  # noqa: PLC0415
    from slackwater.cli.demo import Steps  # noqa: PLC0415
    from slackwater.cli.render_audit import audit_page, targets  # noqa: PLC0415

    settings = prepare(None, shown_as, logging=True, debug=debug)
    options = use_case.AuditOptions(
        streams=tuple(streams or ()),
        variables=_pairs(variables),
        drills=tuple(drill for drill in use_case.DRILLS if not drills or drill in _known(drills, use_case.DRILLS)),
        folder=folder,
        spark=parse_conf(conf),
    )
    loaded, names = use_case.selected(pipeline, options)
    if not yes:
        sinks = {name: loaded.pipeline.streams[name].sink.identity() for name in names}
        err().print(targets(sinks), markup=False, soft_wrap=True)
        confirm(loaded.pipeline.name, "write generated rows there", "pipeline")
    steps = Steps(err())
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        result = use_case.audit(pipeline, options, settings, steps)
    except KeyboardInterrupt:
        steps.interrupted()
        err().print("The targets hold the rows that were written so far.")
        return INTERRUPTED
    finally:
        steps.close()
    if shown_as is Format.JSON:
        print_json(audit_document(result))
    else:
        out().print(audit_page(result), soft_wrap=True)
    if not result.passed:
        err().print(f"next: correct the function, then: slackwater audit {shlex.quote(pipeline)}", markup=False)
    return 0 if result.passed else NOT_EQUAL


def _known(drills: list[str], choices: tuple[str, ...]) -> list[str]:
    for drill in drills:
        if drill not in choices:
            raise UsageError(
                "usage", f"Unknown drill {drill!r} (choose from {', '.join(choices)})", hint="slackwater audit --help"
            )
    return drills


def _pairs(given: list[str] | None) -> dict[str, str]:
    """``--set NAME=VALUE`` as a mapping. Raises UsageError for one without a name and ``=``."""
    found: dict[str, str] = {}
    for pair in given or []:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            # The value can be an address with a password: it is not shown.
            raise UsageError("set-format", "A --set must be NAME=VALUE", found=name[:40])
        found[name.strip()] = value
    return found
