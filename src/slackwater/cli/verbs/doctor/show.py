"""Shows the diagnosis as a page, as JSON or as SARIF."""

from __future__ import annotations

from slackwater.cli.common.arguments import Format
from slackwater.cli.common.console import out, parse_conf, prepare, print_json
from slackwater.cli.common.examine import examine, with_compared_code
from slackwater.cli.common.examined import Examined, exit_code
from slackwater.cli.common.failure_text import read_symptoms, with_errors
from slackwater.cli.verbs.doctor import ReportFormat
from slackwater.cli.verbs.doctor.document import doctor_document
from slackwater.cli.verbs.doctor.page import doctor_page
from slackwater.cli.verbs.doctor.sarif import sarif_document
from slackwater.core.commands import command
from slackwater.core.errors import UsageError


def doctor(
    *,
    target: str | None,
    every: bool,
    sink: str | None,
    error: str | None,
    verify: bool,
    pipeline: str | None,
    master: str | None,
    conf: list[str] | None,
    home: str | None,
    shown_as: ReportFormat,
) -> int:
    """Examine, and show what was found."""
    if every and target is not None:
        raise UsageError("usage", "--all and a LOCATION or STREAM exclude each other", hint=command("doctor", "--all"))
    alone = target is None and not every and error is not None
    if alone and pipeline is not None:
        raise UsageError(
            "usage",
            "--pipeline compares the code with a stream or a checkpoint; --error without one only explains the text",
            hint=command("doctor", "--all", "--error", error or "-", "--pipeline", pipeline),
        )
    settings = prepare(home, Format.TEXT if shown_as is ReportFormat.TEXT else Format.JSON)
    symptoms = read_symptoms(error) if error is not None else None
    again = command("doctor", *([target] if target else []))
    examined = (Examined(error or ""),) if alone else examine(settings, target, sink, again, verify=verify)
    if pipeline is not None:
        examined = with_compared_code(examined, pipeline, settings, master, parse_conf(conf))
    elif master is not None or conf:
        raise UsageError("usage", "--master and --conf are for --pipeline, which starts Spark", hint="add --pipeline")
    examined = tuple(with_errors(one, symptoms) for one in examined)
    if shown_as is ReportFormat.TEXT:
        out().print(doctor_page(examined), soft_wrap=True)
    else:
        print_json(doctor_document(examined) if shown_as is ReportFormat.JSON else sarif_document(examined))
    return exit_code(examined)
