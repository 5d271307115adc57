"""Random checkpoints, random damage, random goals: what is planned holds, can be repeated, and can be undone."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from slackwater.core.errors import DataError, Refused
from slackwater.core.sink import OutputTreatment
from slackwater.diagnose.number_line import findings, stops
from slackwater.operations.plan.plan import Plan
from tests.support.homes import LAYOUT, STATELESS, STREAM, HomeSpec
from tests.support.memory import folder_in_memory
from tests.support.rebuilds import BEGINNING, Project, StubReplayer, make_project, old_files, reset_behind

Asked = tuple[str, str, OutputTreatment]

OLDER = 2
"""How many files a backfill reads."""


@st.composite
def specs(draw: st.DrawFn) -> HomeSpec:
    """Homes whose marks may be those of a kill at any point, or may contradict each other."""
    planned = draw(st.integers(0, 7))
    committed = planned - draw(st.integers(0, 2))
    stateful = draw(st.booleans())
    return HomeSpec(
        planned=planned,
        committed=max(committed, -1),
        state=max(committed - draw(st.integers(0, 1)), 0) if stateful else None,
        written=max(committed + draw(st.integers(-2, 2)), -1),
        layout=LAYOUT if stateful else STATELESS,
    )


@st.composite
def goals(draw: st.DrawFn) -> Asked:
    goal = draw(st.sampled_from(["resume", "rebuild", "replay", "backfill", "reset"]))
    batch = draw(st.integers(0, 7).map(lambda number: f"batch:{number}") | st.just("last-written"))
    if goal == "reset":
        return "reset", "earliest", draw(st.sampled_from(["clear", "swap", "keep"]))
    if goal == "backfill":
        return "backfill", "earliest", draw(st.sampled_from(["keep", "aside"]))
    if goal == "replay":
        return "replay", batch, draw(st.sampled_from(["cut", "swap", "keep"]))
    return ("resume", "last-written", "cut") if goal == "resume" else ("rebuild", batch, "cut")


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with folder_in_memory() as made:
        yield made


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(spec=specs(), asked=goals(), data=st.data())
def test_what_is_planned_holds(folder: Path, spec: HomeSpec, asked: Asked, data: st.DataObject) -> None:
    with TemporaryDirectory(dir=folder) as made:
        project = make_project(Path(made) / "project", spec)
        project.claim_output()
        if asked[0] == "backfill" and spec.state is None and data.draw(st.booleans()):
            # The stream starts again behind files that a backfill may read, where that can be done.
            with contextlib.suppress(Refused, DataError):
                reset_behind(project, OLDER)
        with project.open() as workspace:
            checkpoint = project.checkpoint(workspace.ledger.find_stream(STREAM).current_generation)
        files = sorted(path for path in checkpoint.rglob("*") if path.is_file() and "_metadata" not in path.parts)
        for file in data.draw(st.lists(st.sampled_from(files), max_size=2, unique=True)):
            if data.draw(st.booleans()):
                file.unlink()
            else:
                file.write_bytes(file.read_bytes()[: data.draw(st.integers(0, 20))])
        if asked[0] == "backfill":
            # The files are there before it is planned.
            old_files(project, OLDER)
        before = project.in_use()
        plan = _made(lambda: _plan(project, asked))
        # What only reading back shows is refused by apply, which has changed nothing in use then.
        applied = (
            None
            if plan is None
            else _made(lambda: project.apply(plan, StubReplayer(project.folder / "clicks.py", spec.layout)))
        )
        if plan is None or applied is None:
            assert project.in_use() == before
        else:
            event(f"applied: {plan.goal} {plan.request.output}, {len(plan.actions)} actions")
            snapshot = project.snapshot()
            assert stops(snapshot) == (), findings(snapshot)
            assert project.plan(goal="resume").actions == ()
            if plan.actions:
                assert not project.apply(plan)
                project.undo(plan)
                assert project.in_use() == before


def _plan(project: Project, asked: Asked) -> Plan:
    goal, target, output = asked
    if goal == "backfill":
        into = project.folder / "side" if output == "aside" else None
        return project.plan_backfill(old_files(project, OLDER), into)
    return project.plan_reset(output, BEGINNING) if goal == "reset" else project.plan(target, goal=goal, output=output)


T = TypeVar("T")


def _made(step: Callable[[], T]) -> T | None:
    """What the step returns, ``None`` where it is refused with a hint."""
    try:
        made = step()
    except (Refused, DataError) as refused:
        if not refused.hint:
            raise
        event(f"refused: {refused.code}")
        return None
    return made
