"""``slackwater evidence``: all facts of a stream in a file, before anybody reruns or deletes. Reads only.

Writes page, document and contents as a zip whose bytes depend on the facts alone.
"""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slackwater.cli.common.arguments import Format
from slackwater.cli.common.console import parse_conf, prepare, write
from slackwater.cli.common.examine import Examined, examine, read_failed, with_compared_code, with_errors
from slackwater.cli.verbs.evidence.document import REFUSED, make_evidence
from slackwater.cli.verbs.evidence.page import page
from slackwater.core.commands import command
from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.core.escaping import one_line
from slackwater.core.facts import Unknown
from slackwater.core.settings import Settings
from slackwater.core.units import counted, size_text, utc_text
from slackwater.diagnose.doctor import diagnose
from slackwater.facts.collect import facts_of_location
from slackwater.ledger.home import Home
from slackwater.ledger.workspace import find_filed
from slackwater.storage.open import open_read_store
from slackwater.storage.user_files import PRIVATE, NewFile

_NEVER = (1980, 1, 1, 0, 0, 0)
"""The oldest time that a zip can have; the document has the real time."""
WARNING = "In the error messages a secret can be left that no rule recognises: read them before you send this."
LEDGER_ERRORS = frozenset(
    {
        "ledger-lost",
        "ledger-missing",
        "ledger-unreadable",
        "ledger-unreachable",
        "ledger-locked",
        "ledger-version",
        "ledger-wal-unread",
        "stream-unknown",
    }
)
"""Errors after which ``stream.json`` names checkpoint and sink."""
_UNIX, _REGULAR = 3, 0o100644 << 16


def evidence(
    *,
    target: str,
    out: Path,
    force: bool,
    sink: str | None,
    error: str | None,
    verify: bool,
    pipeline: str | None,
    messages: bool,
    master: str | None,
    conf: list[str] | None,
    home: str | None,
    shown_as: Format,
) -> int:
    if pipeline is None and (master is not None or conf):
        raise UsageError("usage", "--master and --conf are for --pipeline, which starts Spark", hint="add --pipeline")
    settings = prepare(home, shown_as)
    file = NewFile(out, force=force, mode=PRIVATE)
    file.check()
    failed = read_failed(error) if error is not None else None
    examined, problem = examine_for_evidence(settings, target, sink, verify=verify)
    if pipeline is not None:
        examined = with_compared_code((examined,), pipeline, settings, master, parse_conf(conf))[0]
    examined = with_errors(examined, failed)
    made = make_evidence(settings, examined, problem, int(time.time() * 1000), messages=messages)
    content = bundle(made)
    with file.open() as written:
        written.write(content)
    if shown_as is Format.JSON:
        write(as_json(made))
    else:
        write(_summary(made, out, len(content)))
    return 0


def examine_for_evidence(
    settings: Settings, target: str, sink: str | None = None, *, verify: bool = False
) -> tuple[Examined, SlackwaterError | None]:
    """Examines as ``doctor`` does, also without a ledger that can be read: then with its error."""
    try:
        return examine(
            settings, target, sink, command("evidence", target, "--out", "bundle.zip"), "all" if verify else "start"
        )[0], None
    except SlackwaterError as error:
        filed = find_filed(Home(settings.home), target) if error.code in LEDGER_ERRORS else None
        if filed is None:
            raise
        name, file, location = filed
        unknown = Unknown(f"the ledger cannot be read: {error.message}", error.hint)
        facts = facts_of_location(open_read_store(location), file.sink, "all" if verify else "start")
        facts = facts._replace(name=name, history=unknown)
        return Examined(facts.name, facts, diagnose(facts)), error


def as_json(made: Mapping[str, Any]) -> str:
    return json.dumps(made, indent=2, allow_nan=False) + "\n"


def bundle(made: Mapping[str, Any]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        texts = {"README.txt": _readme(made), "evidence.html": page(made), "evidence.json": as_json(made)}
        for name, text in texts.items():
            entry = zipfile.ZipInfo(f"evidence/{name}", _NEVER)
            entry.create_system, entry.external_attr, entry.compress_type = _UNIX, _REGULAR, zipfile.ZIP_DEFLATED
            archive.writestr(entry, text.encode())
    return packed.getvalue()


def _summary(made: Mapping[str, Any], out: Path, size: int) -> str:
    head = made["head"]
    lines = [f"{out}  {size_text(size)}: README.txt, evidence.html, evidence.json"]
    lines.append(f"  {head['state']:<12}{head['code']}  {head['text']}")
    if head["others"]:
        lines.append(f"  {'also':<12}{counted(head['others'], 'finding')}, all of them in the page")
    if head["not_checked"]:
        lines.append(f"  {'not checked':<12}{counted(head['not_checked'], 'check')}, each with its reason in the page")
    if _has_messages(made):
        lines.append(f"  {'warning':<12}{WARNING}")
    lines += [f"  {'next':<12}{step}" for step in (head["next"], head["advice"]) if step]
    return "\n".join(lines) + "\n"


def _readme(made: Mapping[str, Any]) -> str:
    head = made["head"]
    steps = [f"Next:       {one_line(step)}" for step in (head["next"], head["advice"]) if step]
    return "\n".join(
        [
            f"Evidence about {one_line(made['stream']['name'])}",
            f"Made by Slackwater {made['slackwater']} at {utc_text(made['made_ms'])}. Nothing was changed to make it.",
            "",
            f"{head['state'].capitalize() + ':':<11} {head['code']}: {one_line(head['text'])}",
            *steps,
            "",
            "evidence.html   open it in a browser: it needs no network and runs no script",
            f"evidence.json   all of it for programs: the document {made['schema']}",
            "",
            "It has the checkpoint's location, query id, batches, offsets, operators, state and settings; the sink;",
            "runs, operations, and findings with their commands; and what could not be checked, with the reason.",
            _left_out(made),
            "Passwords, tokens and keys are replaced by ***, as is every setting and option that is not Spark's own.",
            *([WARNING] if _has_messages(made) else []),
            "",
        ]
    )


def _has_messages(made: Mapping[str, Any]) -> bool:
    refused = (one["summary"] for one in made["operations"] if one["status"] == REFUSED)
    head = made["head"]
    found = None if head["code"] in {one["code"] for one in made["findings"]} else head["found"]
    return any(text is not None for text in (found, *(run["message"] for run in made["runs"]), *refused))


def _left_out(made: Mapping[str, Any]) -> str:
    if _has_messages(made):
        return "It has no rows but those that error messages of runs quote: they were asked for with --messages."
    return "It has no rows of the input, the state or the output, and no error messages, which can quote rows."
