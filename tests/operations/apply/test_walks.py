"""How often a plan and an apply walk the checkpoint in use: a walk of a large one on a remote store takes minutes."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from slackwater.core.errors import DataError, PipelineError
from slackwater.core.sink import OutputTreatment
from slackwater.operations.action import Action, Display, Inverse
from slackwater.operations.gather import gather
from slackwater.operations.make_plan import make_plan
from slackwater.operations.plan.plan import Request
from slackwater.sources.common.contract import EmptyBase, Position
from slackwater.sources.files import NO_FILES
from slackwater.storage.local import LocalStore
from slackwater.storage.protocols import Folder
from tests.support.homes import STATELESS, STREAM, HomeSpec
from tests.support.rebuilds import RUNTIME, StubReplayer, StubRuntime, make_project

AT_THE_BEGINNING = {"0": Position(None, EmptyBase(NO_FILES), "source 0: no file -> no file")}


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The checkpoints that were walked, in order."""
    walked: list[str] = []
    walk = LocalStore.folders

    def count(store: LocalStore, path: str = "") -> Iterator[Folder]:
        if not path and Path(store.location).parent.name == "checkpoints":
            walked.append(Path(store.location).name)
        return walk(store, path)

    monkeypatch.setattr(LocalStore, "folders", count)
    return walked


@pytest.mark.parametrize(
    ("goal", "target", "output"),
    [
        ("resume", "last-written", "cut"),
        ("rebuild", "last-written", "cut"),
        ("replay", "batch:4", "cut"),
        ("replay", "time:2020-01-01T00:00Z", "cut"),
        ("reset", "earliest", "swap"),
        ("backfill", "earliest", "keep"),
    ],
)
def test_a_plan_walks_the_checkpoint_once(
    goal: str, target: str, output: OutputTreatment, tmp_path: Path, walks: list[str]
) -> None:
    stateless = goal == "backfill"
    spec = HomeSpec(state=None, layout=STATELESS) if stateless else HomeSpec()
    project = make_project(tmp_path, spec)
    replayer = StubReplayer(project.folder / "clicks.py", found=AT_THE_BEGINNING)
    replayer = replace(replayer, layout=STATELESS) if stateless else replayer
    walks.clear()

    with project.open() as workspace:
        request = Request.at(goal, target, output=output)
        plan = make_plan(workspace, STREAM, request, StubRuntime(replayer), lambda _: None)

    assert plan.goal == goal
    assert walks == ["0001"]


@dataclass
class _Steps(Display):
    """The number of walks when each action starts."""

    walks: list[str]
    at: list[int] = field(default_factory=list)

    def action(self, action: Action | Inverse) -> None:
        assert action.kind
        self.at.append(self.walks.count("0001"))


def test_an_apply_walks_it_once_to_plan_again_and_once_for_the_preconditions_of_an_action(
    tmp_path: Path, walks: list[str]
) -> None:
    project = make_project(tmp_path, HomeSpec())
    plan = project.plan("batch:4")
    asked = {one.name for one in plan.preconditions if one.action == 0}
    assert {"planned", "committed", "written"} <= asked
    walks.clear()

    steps = _Steps(walks)
    project.apply(plan, display=steps)

    assert steps.at[:2] == [1, 2]


def test_what_could_not_be_gathered_is_a_fact(tmp_path: Path) -> None:
    project = make_project(tmp_path, HomeSpec())
    with project.open() as workspace:
        stream = workspace.ledger.find_stream(STREAM)._replace(pipeline_file=str(tmp_path / "absent.py"))
        facts = gather(workspace, stream, RUNTIME)

    assert facts.snapshot.marks.planned == 5
    assert facts.history.offsets.keys() == set(range(6))
    assert facts.states == set(range(6))
    with pytest.raises(PipelineError):
        _ = facts.code


def test_a_checkpoint_that_cannot_be_read_leaves_what_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project(tmp_path, HomeSpec())

    def fail(_: LocalStore, _path: str = "") -> Iterator[Folder]:
        raise OSError("the store does not answer")

    with project.open() as workspace:
        stream = workspace.ledger.find_stream(STREAM)
        gather(workspace, stream)
        monkeypatch.setattr(LocalStore, "folders", fail)
        facts = gather(workspace, stream)

    assert facts.history.offsets.keys() == set(range(6))
    with pytest.raises(OSError, match="does not answer"):
        _ = facts.snapshot


def test_an_output_that_cannot_be_read_is_not_recorded(tmp_path: Path) -> None:
    project = make_project(tmp_path, HomeSpec())
    newest = project.folder / "out" / "_spark_metadata" / "5"
    newest.write_text("v1\n{")
    with project.open() as workspace:
        facts = gather(workspace, workspace.ledger.find_stream(STREAM))

    assert facts.snapshot.output.unreadable is not None
    with pytest.raises(DataError):
        project.plan()
