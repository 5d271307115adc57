"""Plans depend on goals, so this module imports the modules of plans only for their types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from slackwater.core.commands import command, rebuild_command
from slackwater.core.errors import UsageError
from slackwater.core.sink import OutputTreatment, cut_back
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.number_line import findings
from slackwater.operations.plan.plan import BATCH, BEFORE_ALL, EARLIEST, LAST_WRITTEN, Request

if TYPE_CHECKING:
    from slackwater.operations.plan.context import PlanContext, Scope, StreamFacts
    from slackwater.operations.planner import Planner


LARGEST_BATCH = 2**63 - 1
DIGITS_MAX = 19
Value = str | int | None

GOALS: Mapping[str, str] = {
    "resume": "slackwater.operations.goals.rebuild:RESUME",
    "rebuild": "slackwater.operations.goals.rebuild:REBUILD",
    "replay": "slackwater.operations.goals.replay:REPLAY",
    "backfill": "slackwater.operations.goals.backfill:BACKFILL",
    "reset": "slackwater.operations.goals.reset:RESET",
}
"""Goals by name and not imported: their modules import those of plans."""


class Flag(NamedTuple):
    """``field`` names the value; a ``duration`` is in milliseconds, a ``directory`` an absolute path."""

    option: str
    field: str
    help: str
    kind: Literal["target", "string", "duration", "directory", "choice"] = "string"
    metavar: str | None = None
    default: str | None = None
    choices: tuple[str, ...] | None = None


RETENTION = Flag(
    "--retention", "retention", "how far behind the watermark rows count, or 'all'", kind="duration", metavar="2d"
)


ROW_ORDER = Flag(
    "--row-order",
    "row_order",
    "any: stateful functions, and aggregates such as first and collect_list, give the same result for any order of a "
    "batch's rows, so a replay is exact",
    kind="choice",
    choices=("any",),
)


class Goal:
    """``outputs`` are the ways to treat existing output, the default first; printed commands leave out
    ``unnamed_output``. ``emptying_output`` removes rows instead of a swap. ``needs_executed``: uses the ranges of
    executed batches.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    flags: ClassVar[tuple[Flag, ...]] = ()
    outputs: ClassVar[tuple[OutputTreatment, ...]] = ("cut",)
    unnamed_output: ClassVar[OutputTreatment] = "cut"
    emptying_output: ClassVar[OutputTreatment] = "cut"
    runs_spark: ClassVar[bool] = False
    needs_executed: ClassVar[bool] = False

    @property
    def target_option(self) -> str | None:
        return next((flag.option for flag in self.flags if flag.field == "at"), None)

    def request(self, values: Mapping[str, Any], *, downstream: bool) -> Request:
        at = str(values.get("at", LAST_WRITTEN))
        self.check_target(at)
        output = values.get("output", self.outputs[0])
        request = Request.at(self.name, at, values.get("retention"), output, downstream=downstream)
        return replace(request, only_source=values.get("only_source"), row_order=values.get("row_order"))

    def check_target(self, text: str) -> None:
        """Raises UsageError (``target``)."""
        self._named_batch(text)

    def complete(self, request: Request, _planner: Planner, _facts: StreamFacts, /) -> Request:
        """Everything in it must be the same when the plan is applied."""
        return request

    def accepts(self, request: Request) -> bool:
        """Whether the command line can make the request: plans can be edited."""
        fields = {flag.field for flag in self.flags}
        return (
            request.output in self.outputs
            and ("retention" in fields or request.retention_ms is None)
            and ("only_source" in fields or request.only_source is None)
            and ("row_order" in fields or request.row_order is None)
            and ("to" in fields or request.to is None)
            and (request.into is not None) == (request.output == "aside")
            and self.accepts_positions(request)
        )

    def accepts_positions(self, request: Request) -> bool:
        return not request.starts and not request.ends

    def continued_after(self, request: Request, /) -> int | None:
        """The batch, -1 for none; ``None`` if the goal determines it. Raises UsageError (``target``)."""
        return self._named_batch(request.target)

    def allows_unmarked(self, _request: Request, _snapshot: Snapshot, /) -> bool:
        """Whether the output may have rows that its marker does not show."""
        return False

    def scope(self, context: PlanContext, /) -> Scope | None:
        """The scope before the query is read; no scope if there is nothing to do."""
        raise NotImplementedError

    def scope_without_positions(self, _basis: PlanContext, /) -> Scope | None:
        """``None`` if it depends on positions. Raises as ``scope``, before Spark starts."""
        return None

    def nothing_to_do(self, context: PlanContext) -> tuple[str, ...]:
        return (f"nothing to do: {findings(context.snapshot)[0].text}",)

    def why_cut(self, held: str, target: int, /) -> str | None:
        return f"the sink holds {held}, whose range is not recorded: it is {cut_back(target)}"

    def target_at(self, batch: int) -> str:
        return f"{BATCH}{batch}"

    def without_cut(self, context: PlanContext) -> str:
        """The alternative to an impossible cut."""
        stream = context.snapshot.stream.full_name
        return f"rebuild at the last written batch, which removes nothing: {command('plan', 'rebuild', stream)}"

    def without_read_cut(self, context: PlanContext) -> str | None:
        """A way without a cut; ``None`` if a different target works."""
        if self.target_option is not None:
            return None
        return f"a rebuild is exact without a cut: {rebuild_command(context.snapshot)}"

    def swapped(self, request: Request, after: int, /) -> Request:
        return replace(request, goal="replay", output="swap", retention_ms=None, target=f"{BATCH}{after + 1}")

    def _named_batch(self, text: str) -> int | None:
        if text == LAST_WRITTEN:
            return None
        if text == EARLIEST:
            return BEFORE_ALL
        number = text.removeprefix(BATCH)
        if number == text or not (
            number.isascii() and number.isdigit() and len(number) <= DIGITS_MAX and int(number) <= LARGEST_BATCH
        ):
            raise UsageError(
                "target",
                f"Invalid target for plan {self.name}",
                expected=f"{LAST_WRITTEN}, {EARLIEST} or {BATCH}N",
                found=text[:60],
                hint=command("plan", self.name, "--help"),
            )
        return int(number)


def goal_named(name: str) -> Goal:
    """Raises UsageError (``plan-damaged``) for an unknown goal."""
    if name not in GOALS:
        raise UsageError(
            "plan-damaged",
            "The plan was changed or damaged: its goal is unknown",
            expected=", ".join(GOALS),
            found=name[:60],
            hint=f"nothing was changed; plan again: {command('plan', '--help')}",
        )
    goal: Goal = resolve_name(GOALS[name])
    return goal
