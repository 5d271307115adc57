"""The commands that an apply prints repeat the options with which Spark was started: others would make other rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from slackwater.core.commands import session_words
from slackwater.core.errors import OutcomeUnknown
from slackwater.operations.action import Display
from slackwater.operations.apply.apply_plan import apply_plan
from tests.support import warm_python
from tests.support.homes import STREAM
from tests.support.rebuilds import Project, StopBefore, StubReplayer, StubRuntime, make_project

ZONE = {"spark.sql.session.timeZone": "Europe/Berlin"}
GIVEN = "--conf spark.sql.session.timeZone=Europe/Berlin"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path / "project")


def _apply(project: Project, display: Display) -> None:
    runtime = StubRuntime(StubReplayer(project.folder / "clicks.py"))
    with project.open() as workspace:
        session, plan = session_words(None, ZONE), project.plan("batch:3")
        apply_plan(workspace, plan, runtime, display, discard_others=True, session=session)


def test_an_interrupted_apply_is_continued_with_them(project: Project) -> None:
    with pytest.raises(KeyboardInterrupt) as interrupted:
        _apply(project, StopBefore("replay-batches"))

    (note,) = interrupted.value.__notes__
    assert f"plan.json --yes {GIVEN}; or go back: slackwater undo" in note
    assert GIVEN not in note.partition("or go back")[2], "undo starts no Spark"


def _fail() -> None:
    raise OSError("connection lost")


def test_so_is_one_that_was_applied_in_part(project: Project) -> None:
    with pytest.raises(OutcomeUnknown) as unknown:
        _apply(project, StopBefore("switch-generation", _fail))

    assert f"--yes {GIVEN};" in (unknown.value.hint or "")


def test_a_plan_names_them_for_the_next_step(project: Project) -> None:
    words = ("plan", "replay", STREAM, "--from", "batch:3", "--output", "cut", *GIVEN.split())
    planned = [
        warm_python.run([*words, *more], project.folder, {}).stderr.splitlines()[-1]
        for more in ((), ("--out", "plan.json"))
    ]

    assert f" {GIVEN} --out " in planned[0]
    assert planned[1] == f"next: slackwater apply plan.json {GIVEN}"


def test_secrets_are_not_repeated() -> None:
    given = {"spark.hadoop.fs.s3a.secret.key": "s3cret", "spark.app.db": "postgresql://me:s3cret@host/db", **ZONE}

    words = session_words("local[2]", given)

    assert words[:2] == ("--master", "local[2]")
    assert words[2:-2] == ("--conf", "spark.hadoop.fs.s3a.secret.key=VALUE", "--conf", "spark.app.db=VALUE")
    assert " ".join(words[-2:]) == GIVEN


def test_none_are_named_where_none_were_given() -> None:
    assert session_words(None, {}) == ()
