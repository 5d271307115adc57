from __future__ import annotations

from collections.abc import Sequence

from slackwater.core.commands import command, with_pipeline
from slackwater.core.escaping import quoted
from slackwater.operations.goals.common.goal import goal_named
from slackwater.operations.plan.plan import BATCH, EARLIEST, LAST_WRITTEN, Plan, Request

MS_IN_S = 1000
ALL = "all"
ALL_MS = 1000 * 366 * 86_400_000
"""A thousand years, so that all batches contribute."""


def plan_command(stream: str, request: Request, *, at: str | None = None, retention: str | None = None) -> str:
    """The command that plans again; ``at`` and ``retention`` replace the request's."""
    line = command("plan", request.goal, stream)
    target, planned = at or request.target, goal_named(request.goal)
    if planned.target_option is not None and target != LAST_WRITTEN:
        line += f" {planned.target_option} {quoted(target)}"
    line += planned.own_arguments(request)
    if request.to is not None:
        line += f" --to {quoted(request.to)}"
    if request.only_source is not None:
        line += f" --only-source {quoted(request.only_source)}"
    if request.output != planned.unnamed_output:
        line += f" --output {request.output}"
    if request.into is not None:
        line += f" --into {quoted(request.into)}"
    if request.downstream:
        line += " --downstream"
    if request.row_order is not None:
        line += f" --row-order {request.row_order}"
    kept = retention or (None if request.retention_ms is None else duration(request.retention_ms))
    if kept is not None:
        line += f" --retention {kept}"
    if request.pipeline_named:
        line = with_pipeline(line, request.pipeline_file)
    return " ".join((line, *map(quoted, request.session if planned.runs_spark else ())))


def title(plan: Plan) -> str:
    return f"{plan.goal} {plan.stream} {where_to(plan)}"


def where_to(plan: Plan) -> str:
    into = plan.request.into
    return f"at {plan.target}" if into is None else f"at {plan.target} into {into}"


def start_command(plan: Plan, session: Sequence[str]) -> str:
    """The command that starts the stream; ``session`` are options of Spark."""
    if plan.facts.adopted is not None:
        return f"start the query again; its checkpoint is {plan.facts.adopted}"
    return command("run", plan.pipeline_file, *session)


def at_batch(batch: int) -> str:
    return f"{BATCH}{batch}" if batch >= 0 else EARLIEST


def plan_again(plan: Plan, *, retention: str | None = None) -> str:
    return plan_command(plan.stream, plan.request, retention=retention)


def duration(retention_ms: int | None) -> str:
    """A retention as a command-line argument; ``None``: unknown, all batches count."""
    return ALL if retention_ms is None or retention_ms >= ALL_MS else f"{-(-retention_ms // MS_IN_S)}s"
