"""A plan as a JSON document, and back. The document is the plan: nothing else is needed to apply it.

The document is canonical (sorted keys, fixed indentation) and carries the SHA-256 of its content. A plan file is input
like any other: what is read here has the form of a plan; that it is the plan for this stream is for ``apply`` to find
out, which derives it again.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from slackwater.errors import UsageError
from slackwater.model.plan import PLAN_SCHEMA, Plan

DIGEST = "digest"
HOW_TO_PLAN = "slackwater plan rebuild STREAM --out plan.json"
IDENTIFIER = re.compile(r"[0-9]{8}T[0-9]{6}-[0-9a-f]{6}(-[0-9]{1,4})?")
"""The form of a plan's id, which names a folder of the home; the last number is that of a later stage."""

LARGEST = 2**63 - 1
BYTES_MAX = 64 << 20


def render(plan: Plan) -> str:
    """The document with its digest."""
    content: dict[str, Any] = json.loads(json.dumps(asdict(plan)))
    return _text({**content, DIGEST: digest_of(content)}, indent=2) + "\n"


def digest_of(content: dict[str, Any]) -> str:
    """SHA-256 of the content in its shortest canonical form, in hexadecimal."""
    return sha256(_text(content).encode()).hexdigest()


def parse(text: str, where: str | Path) -> Plan:
    """The plan in a document. Raises UsageError where it is no plan, is of another version, or was changed."""
    content = _content(text, where)
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
            raise _damaged(where, "its id is not one that plan gives", "such as 20260105T093000-1a2b3c", one.id[:60])
        if one.stream.count("/") != 1:
            raise _damaged(where, "its stream is not named pipeline/stream", "pipeline/stream", one.stream[:60])
    return plan


def _content(text: str, where: str | Path) -> dict[str, Any]:
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
    return content


def _validated(content: dict[str, Any], where: str | Path) -> Plan:
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - heavy; only apply and undo pay for it

    outside = _integer_outside(content)
    if outside is not None:
        raise _damaged(where, "a number is out of range", f"at most {LARGEST}", outside[:40])
    try:
        return TypeAdapter(Plan).validate_json(json.dumps(content))
    except (ValidationError, RecursionError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else {"loc": (), "msg": "nested too deeply"}
        place = ".".join(str(part) for part in first["loc"])
        raise _damaged(where, f"{place}: {first['msg']}", "a plan as slackwater plan writes it", None) from error


def _integer_outside(value: object) -> str | None:
    """An integer that is no batch id, size or time: ids are 64 bits wide."""
    pending: list[object] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, int) and not -LARGEST <= item <= LARGEST:
            return str(item)
        if isinstance(item, dict):
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
    return None


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
