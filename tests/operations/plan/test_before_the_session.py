"""A plan that is refused for what its facts show is refused before a session of Spark is started."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from slackwater.core.errors import SlackwaterError
from slackwater.core.records import StreamRecord
from slackwater.core.sink import OutputTreatment
from slackwater.ledger.workspace import Workspace
from slackwater.operations.make_plan import make_plan
from slackwater.operations.plan.plan import Request
from tests.support.errors import raises_code
from tests.support.homes import STATELESS, HomeSpec
from tests.support.rebuilds import Project, StopBefore, StubReplayer, StubRuntime, make_project

FILES = HomeSpec(planned=5, committed=5, written=5)
NO_CUT = replace(FILES, sink={"kind": "console"})
LOST = replace(FILES, state=None)
NO_CUT_NO_STATE = replace(NO_CUT, state=None)
WITHOUT_STATE = replace(FILES, layout=STATELESS, state=None)
OTHER_CODE = "import slackwater\n\nother = 1\n"


class SessionStartedError(Exception):
    """Spark would have been started."""


class NoSession(StubRuntime):
    """Reads pipeline files, and starts nothing."""

    def open_replayer(
        self,
        _workspace: Workspace,
        _stream: StreamRecord,
        _reference: str,
        _on_jvm: Callable[[int], None],
        /,
        **_: bool,
    ) -> NoReturn:
        raise SessionStartedError


def make(project: Project, goal: str, target: str, output: OutputTreatment) -> None:
    request = Request.at(goal, target, output=output)
    runtime = NoSession(StubReplayer(project.folder / "clicks.py"))
    with project.open() as workspace:
        make_plan(workspace, project.stream, request, runtime, lambda _: None)


@pytest.mark.parametrize(
    ("spec", "asked", "code"),
    [
        (NO_CUT, ("reset", "earliest", "swap"), "swap-unsupported"),
        (NO_CUT, ("reset", "earliest", "clear"), "sink-uncuttable"),
        (FILES, ("reset", "batch:99", "keep"), "target-unknown"),
        (FILES, ("reset", "offsets:absent.json", "keep"), "target"),
        (FILES, ("backfill", "earliest", "keep"), "backfill-stateful"),
        (WITHOUT_STATE, ("backfill", "batch:99", "keep"), "target-unknown"),
    ],
)
def test_what_the_facts_refuse(
    tmp_path: Path, spec: HomeSpec, asked: tuple[str, str, OutputTreatment], code: str
) -> None:
    project = make_project(tmp_path, spec)
    with raises_code(SlackwaterError, code):
        make(project, *asked)


def test_an_operation_that_is_not_finished(tmp_path: Path) -> None:
    project = make_project(tmp_path, FILES)
    plan = project.plan("batch:3")
    with pytest.raises(KeyboardInterrupt):
        project.apply(plan, display=StopBefore("switch-generation"))
    with raises_code(SlackwaterError, "operation-unfinished"):
        make(project, "reset", "earliest", "swap")


def test_what_nothing_refuses_needs_the_session(tmp_path: Path) -> None:
    with pytest.raises(SessionStartedError):
        make(make_project(tmp_path, FILES), "reset", "earliest", "swap")


@pytest.mark.parametrize(
    ("spec", "asked", "code"),
    [
        (NO_CUT_NO_STATE, ("rebuild", "batch:3", "cut"), "sink-uncuttable"),
        (NO_CUT_NO_STATE, ("replay", "batch:3", "cut"), "sink-uncuttable"),
        (NO_CUT_NO_STATE, ("replay", "batch:3", "swap"), "swap-unsupported"),
        (LOST, ("replay", "batch:9", "swap"), "target-unwritten"),
        (LOST, ("rebuild", "batch:9", "cut"), "target-unwritten"),
    ],
)
def test_what_no_query_allows_is_refused_before_it_is_read(
    tmp_path: Path, spec: HomeSpec, asked: tuple[str, str, OutputTreatment], code: str
) -> None:
    project = make_project(tmp_path, spec)
    (project.folder / "clicks.py").write_text(OTHER_CODE)
    with raises_code(SlackwaterError, code):
        make(project, *asked)


def test_a_rebuild_with_other_code_needs_the_session(tmp_path: Path) -> None:
    project = make_project(tmp_path, LOST)
    (project.folder / "clicks.py").write_text(OTHER_CODE)
    for goal in ("rebuild", "replay"):
        with pytest.raises(SessionStartedError):
            make(project, goal, "batch:3", "cut")
