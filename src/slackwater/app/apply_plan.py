"""Use case: carry out a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from slackwater.app.plan_rebuild import cut_of
from slackwater.app.run_pipeline import session_options
from slackwater.app.stream_facts import facts_of, history_of, missing_files, readers_of, reconcile
from slackwater.app.workspace import Workspace
from slackwater.apply.executor import Applying, execute
from slackwater.apply.preconditions import Fact
from slackwater.apply.replayer import Replayer
from slackwater.errors import EnvironmentMissing
from slackwater.lease.keeper import LeaseKeeper
from slackwater.model.history import History
from slackwater.model.plan import Action, BuildGeneration, Plan
from slackwater.model.records import StreamRecord
from slackwater.plan.past import Past
from slackwater.plan.rebuild import source_files_needed
from slackwater.runtime.loader import digest, load
from slackwater.runtime.replay import SparkReplayer
from slackwater.runtime.session import require_spark


class ApplyDisplay(Protocol):
    """Whoever shows an apply to its user."""

    def say(self, text: str) -> None:
        """A line of talk."""

    def action(self, action: Action) -> None:
        """An action begins."""

    def batch(self, batch: int) -> None:
        """A batch was replayed."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of a plan. ``repeated`` is true where it had been applied before, so that nothing was done now."""

    plan: Plan
    outcome: Literal["applied"] = "applied"
    repeated: bool = False


def apply_plan(
    workspace: Workspace, plan: Plan, display: ApplyDisplay, spark: Mapping[str, str], master: str | None = None
) -> Applied:
    """Carry the plan out, once. Raises Refused (nothing changed) or OutcomeUnknown (nothing more is touched)."""
    ledger = workspace.ledger
    stream = ledger.find_stream(plan.stream)
    done = {operation.id for operation in ledger.operations(plan.stream) if operation.status == "applied"}
    if plan.id in done:
        return Applied(plan, repeated=True)
    _require(plan)
    with LeaseKeeper([stream], workspace.home, ledger, f"apply {plan.goal}", display.say) as leases:
        reconcile(workspace, stream)
        history = history_of(workspace, stream)
        loaded = load(plan.pipeline_file)
        session = session_options(loaded, workspace.settings, master, spark)
        with SparkReplayer(
            loaded, stream.name, session, home=workspace.home.path, say=display.say, on_jvm=leases.add_jvm
        ) as replayer:
            applying = Applying(
                plan=plan,
                home=workspace.home,
                ledger=ledger,
                history=history,
                facts=_facts(workspace, stream, plan, history),
                open_replayer=_opener(replayer),
                on_action=display.action,
                on_batch=display.batch,
            )
            execute(applying)
    return Applied(plan)


def _opener(replayer: SparkReplayer) -> Callable[[], Replayer]:
    return lambda: replayer


def _require(plan: Plan) -> None:
    try:
        require_spark()
    except EnvironmentMissing as error:
        error.hint = f"{error.hint}; applying plan {plan.id} replays batches with Spark"
        raise


def _facts(workspace: Workspace, stream: StreamRecord, plan: Plan, history: History) -> Mapping[str, Fact]:
    """How each precondition's fact is looked up again, by the precondition's name."""
    past, cut = Past(history), cut_of(plan)
    built = next(action for action in plan.actions if isinstance(action, BuildGeneration))

    def listed(names: list[str]) -> str:
        return ", ".join(names) or "none"

    return {
        "writer": lambda: "none",  # the lease is held: nobody else writes
        "generation": lambda: str(workspace.ledger.find_stream(stream.full_name).current_generation),
        "planned": lambda: str(facts_of(workspace, stream).marks.planned),
        "committed": lambda: str(facts_of(workspace, stream).marks.committed),
        "written": lambda: str(facts_of(workspace, stream).marks.written),
        "history": lambda: past.digest(max(min(built.first, built.last) - 1, 0), built.last),
        "pipeline": lambda: digest(plan.pipeline_file),
        "readers": lambda: listed(readers_of(workspace, stream, cut.files if cut else ())),
        "source-files": lambda: listed(missing_files(source_files_needed(past, built.first, built.last))),
    }
