"""The commands that the hints of refused plans name."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from slackwater.model.finding import Goal
from slackwater.model.plan import Plan, Request

LAST_WRITTEN = "last-written"
EARLIEST = "earliest"
BATCH = "batch:"
MS_IN_S = 1000
ALL = "all"
ALL_MS = 1000 * 366 * 86_400_000
"""A thousand years: further back than any event time, so that all batches contribute."""


AT: Mapping[Goal, str] = {"rebuild": "--at", "replay": "--from", "backfill": "--from", "reset": "--from"}
"""The option that takes the target of a goal; the others have none."""


def plan_command(
    goal: Goal, stream: str, request: Request, *, at: str | None = None, retention: str | None = None
) -> str:
    """The command that plans what was requested; ``at`` and ``retention`` replace what the request has."""
    command = f"slackwater plan {goal} {stream}"
    target = at or request.target
    if goal in AT and target != LAST_WRITTEN:
        command += f" {AT[goal]} {shlex.quote(target)}"
    if request.to is not None:
        command += f" --to {shlex.quote(request.to)}"
    if request.only_source is not None:
        command += f" --only-source {shlex.quote(request.only_source)}"
    if request.output != ("keep" if goal == "backfill" else "cut"):
        command += f" --output {request.output}"
    if request.into is not None:
        command += f" --into {shlex.quote(request.into)}"
    if request.downstream:
        command += " --downstream"
    kept = retention or (None if request.retention_ms is None else duration(request.retention_ms))
    return command if kept is None else f"{command} --retention {kept}"


def title(plan: Plan) -> str:
    """What a plan is for: its goal, stream, target, and the side output if it has one."""
    return f"{plan.goal} {plan.stream} {where_to(plan)}"


def where_to(plan: Plan) -> str:
    """The target of a plan, and the side output if it has one."""
    into = plan.request.into
    return f"at {plan.target}" if into is None else f"at {plan.target} into {into}"


def start_command(plan: Plan) -> str:
    """How the stream of a plan is started, for the line that names the next step."""
    if plan.facts.adopted is not None:
        return f"start the query again; its checkpoint is {plan.facts.adopted}"
    return f"slackwater run {shlex.quote(plan.pipeline_file)}"


def at_batch(batch: int) -> str:
    """The target of continuing after a batch, -1 for none."""
    return f"{BATCH}{batch}" if batch >= 0 else EARLIEST


def plan_again(plan: Plan, *, retention: str | None = None) -> str:
    """The command that plans what a plan was made for, as the stream is now."""
    command = plan_command(plan.goal, plan.stream, plan.request, retention=retention)
    if plan.facts.adopted is not None and plan.pipeline_file:
        # No run has recorded the file.
        command += f" --pipeline {shlex.quote(plan.pipeline_file)}"
    return command


def duration(retention_ms: int | None) -> str:
    """A retention as it is typed; ``None``: unknown, so that all batches count."""
    return ALL if retention_ms is None or retention_ms >= ALL_MS else f"{-(-retention_ms // MS_IN_S)}s"
