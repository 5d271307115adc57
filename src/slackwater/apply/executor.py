"""Carries a rebuild out: build aside, verify, cut, switch. Destroys nothing; what is replaced stays.

A killed apply is carried on by running it again: what was built aside is built anew, what was cut or switched is
carried to its end. Three outcomes: applied, refused (nothing changed), unknown (nothing more is touched).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import assert_never

from slackwater.apply import build, preconditions
from slackwater.apply.journal import Journal
from slackwater.apply.preconditions import Fact
from slackwater.apply.replayer import Replayer
from slackwater.checkpoint.stores import state_stores
from slackwater.errors import OutcomeUnknown, Refused, SlackwaterError
from slackwater.home.home import Home, StreamFile
from slackwater.ledger.ledger import Ledger
from slackwater.model.history import History
from slackwater.model.plan import (
    Action,
    BuildGeneration,
    CutSink,
    Plan,
    ReplayBatches,
    SwitchGeneration,
    VerifyGeneration,
)
from slackwater.model.profile import QueryProfile
from slackwater.model.records import GenerationRecord, OperationRecord
from slackwater.model.sink import Cut
from slackwater.plan.contributing import StatePast, first_contributing
from slackwater.plan.document import render
from slackwater.plan.past import Past, log_offset, offsets_by_source
from slackwater.plan.rebuild import check_reproducible
from slackwater.sinks.registry import open_output
from slackwater.storage.local import LocalStore
from slackwater.storage.open import open_write_store
from slackwater.storage.protocols import WriteStore

BACKUP = "backup"
"""The folder of an operation that keeps what a cut removed."""


@dataclass(frozen=True, slots=True)
class Applying:
    """What an apply works with. ``facts`` look anew each time they are called."""

    plan: Plan
    home: Home
    ledger: Ledger
    history: History
    facts: Mapping[str, Fact]
    open_replayer: Callable[[], Replayer]
    on_action: Callable[[Action], None]
    on_batch: Callable[[int], None]


def execute(applying: Applying) -> None:
    """Carry the plan out. Raises Refused where nothing was changed, OutcomeUnknown where something may have been."""
    plan = applying.plan
    pipeline, name = plan.stream.split("/", 1)
    folder = applying.home.operation(pipeline, name, plan.id)
    journal = Journal(folder)
    destructive = any(journal.state(step) for step in ("cut-sink", "switch-generation"))
    _check(applying, destructive=destructive)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plan.json").write_text(render(plan), encoding="utf-8")
    started = applying.ledger.now_ms()
    applying.ledger.begin_operation(
        OperationRecord(plan.id, plan.stream, plan.goal, "applying", started, summary=str(folder / "plan.json"))
    )
    try:
        if journal.state("verify-generation") != "done":
            _build_aside(applying, journal)
        _put_in_place(applying, journal, folder)
    except (SlackwaterError, OSError, KeyboardInterrupt) as error:
        _end(applying, journal, error)
        raise
    applying.ledger.end_operation(plan.id, "applied", f"rebuilt at batch {plan.facts.target}")


def _check(applying: Applying, *, destructive: bool) -> None:
    """Check the preconditions; those that this operation itself has begun to change are no longer asked."""
    skip = frozenset({"written", "generation", "readers"} if destructive else ())
    try:
        preconditions.check(applying.plan, applying.facts, skip)
    except Refused as moved:
        left = applying.ledger.open_operation(applying.plan.stream)
        if left is not None and left.id == applying.plan.id and not destructive:
            applying.ledger.end_operation(left.id, "refused", str(moved))
        raise


def _end(applying: Applying, journal: Journal, error: BaseException) -> None:
    """Record how a failed apply ended; once something was cut or switched, only another apply may go on."""
    if journal.state("cut-sink") or journal.state("switch-generation"):
        raise OutcomeUnknown(
            "apply-interrupted",
            f"The plan was carried out in part: {error}",
            where=f"stream {applying.plan.stream}",
            hint=f"run slackwater apply of plan {applying.plan.id} again: it goes on where it stopped",
        ) from error
    applying.ledger.end_operation(applying.plan.id, "refused", str(error) or "interrupted")


def _build_aside(applying: Applying, journal: Journal) -> None:
    """The new generation, from nothing: what an earlier, killed apply left of it is removed first."""
    action = next(action for action in applying.plan.actions if isinstance(action, BuildGeneration))
    store, past = open_write_store(action.location), Past(applying.history)
    _remove_all(store)
    replayer = applying.open_replayer()
    _check_query(applying.plan, past, replayer.profile())
    building = build.Building(action, store, past, replayer, applying.on_batch)
    for step in applying.plan.actions:
        if isinstance(step, BuildGeneration | ReplayBatches | VerifyGeneration):
            applying.on_action(step)
            journal.write(step.kind, "begun", applying.ledger.now_ms())
            _build_step(step, building)
            journal.write(step.kind, "done", applying.ledger.now_ms())


def _build_step(step: BuildGeneration | ReplayBatches | VerifyGeneration, building: build.Building) -> None:
    if isinstance(step, BuildGeneration):
        build.lay_base(building)
    elif isinstance(step, ReplayBatches):
        build.replay(building)
    elif isinstance(step, VerifyGeneration):
        build.verify(building)
    else:
        assert_never(step)


def _put_in_place(applying: Applying, journal: Journal, folder: Path) -> None:
    for step in applying.plan.actions:
        if isinstance(step, CutSink | SwitchGeneration) and journal.state(step.kind) != "done":
            applying.on_action(step)
            journal.write(step.kind, "begun", applying.ledger.now_ms())
            if isinstance(step, CutSink):
                _cut(applying, step, folder)
            else:
                _switch(applying, step)
            journal.write(step.kind, "done", applying.ledger.now_ms())


def _cut(applying: Applying, action: CutSink, folder: Path) -> None:
    stream = applying.ledger.find_stream(applying.plan.stream)
    cut = Cut(action.after, action.batches, action.files, action.bytes)
    open_output(stream.sink).cut(cut, applying.history.written, LocalStore(folder / BACKUP))


def _switch(applying: Applying, action: SwitchGeneration) -> None:
    plan, ledger = applying.plan, applying.ledger
    built = next(step for step in plan.actions if isinstance(step, BuildGeneration))
    past = Past(applying.history)
    ends = offsets_by_source(past.offset(built.last)) if built.last >= 0 else dict.fromkeys(past.history.sources)
    cuts = {source: log_offset(text) if built.last >= 0 else -1 for source, text in ends.items()}
    ledger.add_generation(
        GenerationRecord(
            plan.stream,
            action.new,
            built.location,
            query_id=built.query_id,
            layout=_layout(applying, built),
            based_at=built.last,
            parent=action.old,
            source_cut={source: entry for source, entry in cuts.items() if entry is not None},
        )
    )
    ledger.set_current_generation(plan.stream, action.new)
    stream = ledger.find_stream(plan.stream)
    known = applying.home.read_stream_file(stream.pipeline, stream.name)
    content = replace(known, generation=action.new) if known else StreamFile(built.query_id, action.new, stream.sink)
    applying.home.write_stream_file(stream.pipeline, stream.name, content)


def _layout(applying: Applying, built: BuildGeneration) -> dict[str, object]:
    profile = applying.open_replayer().profile().as_json()
    return {**profile, "state_stores": state_stores(open_write_store(built.location))}


def _check_query(plan: Plan, past: Past, profile: QueryProfile) -> None:
    """The upgraded query may keep rows for longer than the old one did; then more batches contribute than planned."""
    facts = plan.facts
    check_reproducible(profile, plan.stream)
    if facts.target < 0:
        return
    state = StatePast(profile.stateful, profile.retention_ms, facts.delay_ms)
    needed = first_contributing(past, facts.target, state)
    if needed < facts.contributing:
        raise Refused(
            "retention-longer",
            "The query as it is now needs older batches than the plan counted on",
            where=f"stream {plan.stream}",
            expected=f"batches from {needed}",
            found=f"batches from {facts.contributing}",
            hint=f"slackwater plan rebuild {plan.stream} --retention {_retention_text(profile.retention_ms)}",
        )


def _retention_text(retention_ms: int | None) -> str:
    return "all" if retention_ms is None else f"{-(-retention_ms // 1000)}s"


def _remove_all(store: WriteStore) -> None:
    for folder in list(store.folders("")):
        for name in folder.files:
            store.delete(f"{folder.path}/{name}" if folder.path else name)
