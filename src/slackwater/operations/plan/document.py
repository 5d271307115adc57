"""A plan as a JSON document: all that is needed to apply it.

The document is canonical (sorted keys, fixed indentation) and has the SHA-256 of its content. Only the form is checked
here: ``apply`` derives the plan again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slackwater.core.commands import command, mention, with_pipeline
from slackwater.core.errors import UsageError
from slackwater.core.escaping import quoted
from slackwater.core.records import StreamRecord
from slackwater.operations.goals.goal import GOALS, goal_named
from slackwater.operations.plan.plan import BATCH, EARLIEST, LAST_WRITTEN, PLAN_SCHEMA, Plan, Request

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError


MS_IN_S = 1000
ALL = "all"
ALL_MS = 1000 * 366 * 86_400_000
"""A thousand years, so that all batches contribute."""


DIGEST = "digest"
HOW_TO_PLAN = command("plan", "rebuild", "STREAM", "--out", "plan.json")
IDENTIFIER = re.compile(r"[0-9]{8}T[0-9]{6}-[0-9a-f]{6}(-[0-9]{1,4})?")
"""A plan's id, which names a folder of the home; the last number is a later stage's."""
ON_TOP = frozenset({"goal", "pipeline_file"})
"""Fields of a request that the document has next to it."""
LARGEST = 2**63 - 1


def plan_command(stream: str, request: Request, *, at: str | None = None, retention: str | None = None) -> str:
    """The command that plans again; ``at`` and ``retention`` replace the request's."""
    line = command("plan", request.goal, stream)
    target, planned = at or request.target, goal_named(request.goal)
    if planned.target_option is not None and target != LAST_WRITTEN:
        line += f" {planned.target_option} {quoted(target)}"
    given = {
        "--to": request.to,
        "--only-source": request.only_source,
        "--output": None if request.output == planned.unnamed_output else request.output,
        "--into": request.into,
        "--downstream": "" if request.downstream else None,
        "--row-order": request.row_order,
        "--retention": retention or (None if request.retention_ms is None else duration(request.retention_ms)),
    }
    for option, value in given.items():
        if value is not None:
            line += f" {option} {quoted(value)}" if value else f" {option}"
    if request.pipeline_named:
        line = with_pipeline(line, request.pipeline_file)
    return " ".join((line, *map(quoted, request.session if planned.runs_spark else ())))


def title(plan: Plan) -> str:
    return f"{plan.goal} {plan.stream} {where_to(plan)}"


def where_to(plan: Plan) -> str:
    into = plan.request.into
    return f"at {plan.target}" if into is None else f"at {plan.target} into {into}"


def start_command(plan: Plan, stream: StreamRecord, session: Sequence[str]) -> str:
    """The command that starts the stream; ``session`` are options of Spark."""
    # A file given to the plan may contain only the query, and a query that was only adopted has no recorded program.
    if plan.facts.adopted is None or plan.pipeline_file == stream.pipeline_file != "":
        return command("run", plan.pipeline_file, *session)
    return f"start the query again; its checkpoint is {plan.facts.adopted}"


def at_batch(batch: int) -> str:
    return f"{BATCH}{batch}" if batch >= 0 else EARLIEST


def plan_again(plan: Plan, *, retention: str | None = None) -> str:
    return plan_command(plan.stream, plan.request, retention=retention)


def duration(retention_ms: int | None) -> str:
    """A retention as a command-line argument; ``None``: unknown, all batches count."""
    return ALL if retention_ms is None or retention_ms >= ALL_MS else f"{-(-retention_ms // MS_IN_S)}s"


def render(plan: Plan) -> str:
    content = _with_goal_on_top(json.loads(json.dumps(asdict(plan))))
    return _text({**content, DIGEST: digest_of(content)}, indent=2) + "\n"


def digest_of(content: dict[str, Any]) -> str:
    """SHA-256 of the shortest canonical form, in hexadecimal."""
    return sha256(_text(content).encode()).hexdigest()


def parse(text: str, where: str | Path) -> Plan:
    """Raises UsageError for a document that is no plan, has another version, or was changed."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            "plan-unreadable", f"This is not a plan: {error}", where=str(where), hint=HOW_TO_PLAN
        ) from error
    if not isinstance(content, dict):
        raise UsageError(
            "plan-unreadable",
            "This is not a plan",
            where=str(where),
            expected="a JSON object",
            found=type(content).__name__,
            hint=HOW_TO_PLAN,
        )
    schema = content.get("schema")
    if schema != PLAN_SCHEMA:
        raise UsageError(
            "plan-schema",
            "This is not a plan that can be applied here",
            where=str(where),
            expected=PLAN_SCHEMA,
            found="no schema" if schema is None else str(schema)[:60],
            hint=f"plan again with this version: {HOW_TO_PLAN}",
        )
    recorded = content.pop(DIGEST, None)
    computed = digest_of(content)
    if recorded != computed:
        raise _damaged(where, "its content does not match its digest", str(recorded)[:16], computed[:16])
    plan = _validated(content, where)
    for one in plan.members:
        if IDENTIFIER.fullmatch(one.id) is None:
            raise _damaged(where, "its id was not made by plan", "such as 20260105T093000-1a2b3c", one.id[:60])
        if one.goal not in GOALS:
            raise _damaged(where, "its goal is unknown", ", ".join(GOALS), one.goal[:60])
        if one.stream.count("/") != 1:
            raise _damaged(where, "its stream is not named pipeline/stream", "pipeline/stream", one.stream[:60])
    return plan


def has_plan(text: str, plan: Plan) -> bool:
    try:
        return parse(text, "") == plan
    except UsageError:
        return False


@cache
def _parser() -> tuple[TypeAdapter[Plan], type[ValidationError]]:
    """Cached: it takes longer to build than a plan to parse."""
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - heavy; only apply and undo pay for it

    return TypeAdapter(Plan), ValidationError


def _validated(content: dict[str, Any], where: str | Path) -> Plan:
    pending: list[object] = [content]
    while pending:
        item = pending.pop()
        if isinstance(item, int) and not -LARGEST <= item <= LARGEST:
            raise _damaged(where, "a number is out of range", f"at most {LARGEST}", str(item)[:40])
        if isinstance(item, dict | list):
            pending.extend(item.values() if isinstance(item, dict) else item)
    parser, invalid = _parser()
    try:
        # From JSON and not from Python values: in strict mode pydantic takes a list for a tuple only there.
        return parser.validate_json(json.dumps(_with_goal_in_request(content)))
    except (invalid, RecursionError) as error:
        first = error.errors()[0] if isinstance(error, invalid) else {"loc": (), "msg": "nested too deeply"}
        place = ".".join(str(part) for part in first["loc"])
        raise _damaged(where, f"{place}: {first['msg']}", f"a plan as {mention('plan')} writes it", None) from error


def _with_goal_on_top(content: dict[str, Any]) -> dict[str, Any]:
    request = content["request"]
    above = {name: request[name] for name in ON_TOP}
    below = {name: value for name, value in request.items() if name not in ON_TOP}
    return {
        **content,
        **above,
        "request": below,
        "downstream": [_with_goal_on_top(one) for one in content["downstream"]],
    }


def _with_goal_in_request(content: dict[str, Any]) -> dict[str, Any]:
    request, stages = content.get("request"), content.get("downstream")
    changed = dict(content)
    if isinstance(request, dict) and not ON_TOP & request.keys():
        changed["request"] = {**request, **{name: changed.pop(name) for name in ON_TOP & changed.keys()}}
    if isinstance(stages, list):
        changed["downstream"] = [_with_goal_in_request(one) if isinstance(one, dict) else one for one in stages]
    return changed


def _text(content: dict[str, Any], indent: int | None = None) -> str:
    separators = None if indent else (",", ":")
    return json.dumps(content, sort_keys=True, indent=indent, separators=separators)


def _damaged(where: str | Path, why: str, expected: str | None, found: str | None) -> UsageError:
    return UsageError(
        "plan-damaged",
        f"The plan was changed or damaged: {why}",
        where=str(where),
        expected=expected,
        found=found,
        hint=f"nothing was changed; plan again: {HOW_TO_PLAN}",
    )
