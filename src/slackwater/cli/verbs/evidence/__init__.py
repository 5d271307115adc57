"""``slackwater evidence``: all facts of a stream in a file, before anybody reruns or deletes. Reads only.

Writes page, document and contents as a zip whose bytes depend on the facts alone.
"""

import io
import json
import re
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from math import ceil
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from slackwater.cli.common.arguments import Format
from slackwater.cli.common.console import mark, number, prepare, timestamp, write, write_page
from slackwater.cli.common.examine import examine, read_failed, with_compared_code, with_errors
from slackwater.cli.verbs.doctor import by_reason
from slackwater.cli.verbs.evidence.document import REFUSED, make_evidence
from slackwater.core.commands import command
from slackwater.core.errors import SlackwaterError
from slackwater.core.escaping import one_line
from slackwater.core.facts import Unknown
from slackwater.core.settings import Settings
from slackwater.core.units import counted, duration_text, size_text, utc_text
from slackwater.diagnose.doctor import Diagnosis, diagnose
from slackwater.facts.collect import facts_of_location
from slackwater.ledger.home import Home
from slackwater.ledger.workspace import find_filed
from slackwater.operations.goals.goal import GOALS, goal_named
from slackwater.storage.open import open_read_store
from slackwater.storage.user_files import PRIVATE, NewFile

LONGEST = 1500
"""Characters of a value on a page; the document has all."""
_BACKTICKS = re.compile(r"`([^`]+)`")
_COMMAND = re.compile(r"(?:^|: |after |or )((?:slackwater (?:run|plan|apply|undo)|mkdir -p|mv -n|printf %s) [^;\n]*)")
_DIGIT_WIDTH = 9
_HOUR_MS = 3_600_000
_FAR = 20
_Spans = Iterable[Sequence[int]]
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
    settings = prepare(home, shown_as)
    file = NewFile(out, force=force, mode=PRIVATE)
    file.check()
    failed = read_failed(error) if error is not None else None
    examined, problem = examine_for_evidence(settings, target, sink, verify=verify)
    (examined,) = with_compared_code((examined,), pipeline, settings, master, conf)
    examined = with_errors(examined, failed)
    made = make_evidence(settings, examined, problem, int(time.time() * 1000), messages=messages)
    content = bundle(made)
    with file.open() as written:
        written.write(content)
    if shown_as is Format.JSON:
        write(as_json(made))
    else:
        head, size = made["head"], size_text(len(content))
        lines = [f"  {head['state']:<12}{head['code']}  {head['text']}"]
        if head["others"]:
            lines.append(f"  {'also':<12}{counted(head['others'], 'finding')}, all of them in the page")
        if head["not_checked"]:
            missed = counted(head["not_checked"], "check")
            lines.append(f"  {'not checked':<12}{missed}, each with its reason in the page")
        if _has_messages(made):
            lines.append(f"  {'warning':<12}{WARNING}")
        lines += [f"  {'next':<12}{step}" for step in (head["next"], head["advice"]) if step]
        write_page("\n".join([f"{out}  {size}: README.txt, evidence.html, evidence.json", *lines, ""]))
    return 0


def examine_for_evidence(
    settings: Settings, target: str, sink: str | None = None, *, verify: bool = False
) -> tuple[Diagnosis, SlackwaterError | None]:
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
        return diagnose(facts._replace(name=name, history=unknown)), error


def as_json(made: Mapping[str, Any]) -> str:
    return json.dumps(made, indent=2, allow_nan=False) + "\n"


def bundle(made: Mapping[str, Any]) -> bytes:
    head, messages, packed = made["head"], _has_messages(made), io.BytesIO()
    left_out = "It has no rows of the input, the state or the output, and no error messages, which can quote rows."
    if messages:
        left_out = "It has no rows but those that error messages of runs quote: they were asked for with --messages."
    readme = [
        f"Evidence about {one_line(made['stream']['name'])}",
        f"Made by Slackwater {made['slackwater']} at {utc_text(made['made_ms'])}. Nothing was changed to make it.",
        "",
        f"{head['state'].capitalize() + ':':<11} {head['code']}: {one_line(head['text'])}",
        *(f"Next:       {one_line(step)}" for step in (head["next"], head["advice"]) if step),
        "",
        "evidence.html   open it in a browser: it needs no network and runs no script",
        f"evidence.json   all of it for programs: the document {made['schema']}",
        "",
        "It has the checkpoint's location, query id, batches, offsets, operators, state and settings; the sink;",
        "runs, operations, and findings with their commands; and what could not be checked, with the reason.",
        left_out,
        "Passwords, tokens and keys are replaced by ***, as is every setting and option that is not Spark's own.",
        *([WARNING] if messages else []),
        "",
    ]
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        texts = {"README.txt": "\n".join(readme), "evidence.html": page(made), "evidence.json": as_json(made)}
        for name, text in texts.items():
            entry = zipfile.ZipInfo(f"evidence/{name}", _NEVER)
            entry.create_system, entry.external_attr, entry.compress_type = _UNIX, _REGULAR, zipfile.ZIP_DEFLATED
            archive.writestr(entry, text.encode())
    return packed.getvalue()


def _has_messages(made: Mapping[str, Any]) -> bool:
    refused = (one["summary"] for one in made["operations"] if one["status"] == REFUSED)
    head = made["head"]
    found = None if head["code"] in {one["code"] for one in made["findings"]} else head["found"]
    return any(text is not None for text in (found, *(run["message"] for run in made["runs"]), *refused))


def page(made: Mapping[str, Any]) -> str:
    return _ENVIRONMENT.get_template("page.html.j2").render(made=made) + "\n"


def prose(value: str) -> Markup:
    parts = (one_line(part) for part in _BACKTICKS.split(value))
    return Markup().join(Markup("<code>{}</code>").format(part) if at % 2 else part for at, part in enumerate(parts))


def _with_commands(advice: str) -> Markup:
    """Prose in which each command has a box of its own."""
    at, shown = 0, Markup()
    for found in _COMMAND.finditer(advice):
        command = Markup('<code class="command">{}</code>').format(one_line(found[1]))
        shown += prose(advice[at : found.start(1)]) + command
        at = found.end(1)
    return shown + prose(advice[at:])


def _goal(goal: str | None) -> str | None:
    if goal is None or goal not in GOALS:
        return goal
    summary = goal_named(goal).summary
    return f"{goal}: {summary[:1].lower()}{summary[1:]}"


def _json_text(value: Any) -> str:
    shown = value if isinstance(value, str) else json.dumps(value, separators=(", ", ": "))
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}... (whole in evidence.json)"


def columns(lanes: Sequence[Mapping[str, Any]], following: int, room: int) -> list[int]:
    """The drawn batches: all marks, the first kept batch, and as many more as fit."""
    ends = {lane["mark"] for lane in lanes if lane["mark"] is not None and lane["mark"] >= 0}
    firsts = {lane["kept"][0][0] for lane in lanes if lane["kept"] and lane["name"] != "written"}
    wanted = {following, *ends}
    wanted |= set(sorted(firsts, reverse=True)[: max(room - len(wanted), 0)])
    anchors = sorted(wanted, reverse=True)
    for distance in count(1):
        near = [anchor - distance for anchor in anchors if anchor >= distance]
        if len(wanted) >= room or not near:
            return sorted(wanted)
        for batch in near[: room - len(wanted)]:
            wanted.add(batch)
    return sorted(wanted)


def _labelled(ids: Iterable[int], step: float, gap: int) -> list[int]:
    """The batches whose numbers have room under columns of this width, the newest first."""
    newest_first = sorted(ids, reverse=True)
    width = len(str(newest_first[0])) * _DIGIT_WIDTH + gap
    return newest_first[:: max(1, ceil(width / max(int(step), 1)))]


def _bars(ids: Iterable[int], kept: _Spans) -> Iterator[tuple[int, int]]:
    """The first and the last of the drawn batches in each kept range."""
    for first, last in kept:
        inside = [batch for batch in ids if first <= batch <= last]
        if inside:
            yield inside[0], inside[-1]


def _row_times(batch: Mapping[str, Any]) -> tuple[int | None, int | None]:
    return batch["event_time_min_ms"], batch["event_time_max_ms"]


def _times(batch: Mapping[str, Any]) -> list[int]:
    """The event times and the watermark; Spark's watermark starts at 0."""
    return [time for time in (*_row_times(batch), batch["watermark_ms"] or None) if time is not None]


def scale_of(times: Iterable[int]) -> tuple[int, int]:
    known = sorted(times)
    middle, quarter = known[len(known) // 2], len(known) // 4
    reach = _FAR * max(known[-1 - quarter] - known[quarter], _HOUR_MS)
    near = [time for time in known if abs(time - middle) <= reach]
    return near[0], near[-1]


def _at_time(time_ms: int, scale: tuple[int, int, float, float]) -> float:
    """The position of a time; a time outside is at the edge."""
    first_ms, last_ms, left, right = scale
    share = (time_ms - first_ms) / max(last_ms - first_ms, 1)
    return left + (right - left) * min(max(share, 0), 1)


_ENVIRONMENT = Environment(
    autoescape=True,
    # Without control characters; markup stays.
    finalize=lambda value: value if isinstance(value, Markup) else one_line(str(value)),
    loader=FileSystemLoader(Path(__file__).parent),
    undefined=StrictUndefined,
)
_ENVIRONMENT.filters |= {
    "duration": lambda value: "-" if value is None else duration_text(value),
    "goal": _goal,
    "json_text": _json_text,
    "mark": mark,
    "number": number,
    "prose": prose,
    "short": lambda value: f"{value:.1f}".removesuffix(".0"),
    "size": size_text,
    "timestamp": timestamp,
    "utc": utc_text,
    "with_commands": _with_commands,
}
_ENVIRONMENT.globals |= {
    "all_times": lambda batches: [time for batch in batches for time in _times(batch)],
    "at_time": _at_time,
    "bars": _bars,
    "by_reason": lambda missed: by_reason((one["code"], one["reason"], one["how"]) for one in missed),
    "causes": lambda errors: [(error, cause) for error in errors for cause in error["causes"]],
    "columns": columns,
    "counted": counted,
    "is_kept": lambda batch, kept: any(first <= batch <= last for first, last in kept),
    "known": lambda batches, name: [batch[name] for batch in batches if batch[name] is not None],
    "labelled": _labelled,
    "placed": lambda ids, left, step: {batch: left + step * (at + 0.5) for at, batch in enumerate(ids)},
    "rows_times": lambda batches: [time for batch in batches for time in _row_times(batch) if time],
    "scale_of": scale_of,
    "with_times": lambda batches: [batch for batch in batches if _times(batch)],
}
