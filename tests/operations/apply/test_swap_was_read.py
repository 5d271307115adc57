"""An undo of a swap whose new output another stream has read: to this stream all of the old one would be new."""

from pathlib import Path

import pytest

from slackwater.core.errors import Moved, Refused
from slackwater.operations.gather import reconcile
from tests.support.errors import raises_code
from tests.support.homes import HomeSpec
from tests.support.rebuilds import Project, StopBefore, make_project
from tests.support.stages import add_stage, read_uncopied


def _read_by_another(project: Project, file: str, *, copied: bool) -> None:
    add_stage(project, "late", "out", HomeSpec(planned=1, committed=1, state=1, written=1))
    read_uncopied(project, "late", file, 2)
    if copied:
        with project.open() as workspace:
            reconcile(workspace, workspace.ledger.find_stream("clicks/late"))


@pytest.mark.parametrize("copied", [True, False])
def test_an_output_that_was_read_since_stays(tmp_path: Path, *, copied: bool) -> None:
    """Also where only the log of the other stream shows it."""
    project = make_project(tmp_path)
    project.claim_output()
    plan = project.plan("earliest", goal="replay", output="swap")
    project.apply(plan)
    out = project.folder / "out"
    new = sorted(path for path in out.iterdir() if path.suffix == ".parquet")
    _read_by_another(project, f"out/{new[0].name}", copied=copied)

    with raises_code(Refused, "cut-was-read", found="clicks/late"):
        project.undo(plan)

    assert sorted(path for path in out.iterdir() if path.suffix == ".parquet") == new
    with project.open() as workspace:
        assert [one.status for one in workspace.ledger.operations(plan.stream)] == ["applied"]


def test_an_output_that_is_read_while_the_new_one_is_built_stays(tmp_path: Path) -> None:
    """That its stage was not read is checked before the query has caught up, which can take hours."""
    project = make_project(tmp_path)
    project.claim_output()
    add_stage(project, "late", "other", HomeSpec(planned=1, committed=1, state=1, written=1))
    plan = project.plan("earliest", goal="replay", output="swap")
    before = project.in_use()

    with raises_code(Moved, "moved-readers", found="clicks/late"):
        project.apply(
            plan, display=StopBefore("run-staged", lambda: read_uncopied(project, "late", "out/part-5.parquet", 2))
        )

    assert project.in_use() == before


def test_an_output_that_nobody_has_read_goes_back(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.claim_output()
    old = sorted((project.folder / "out").glob("*.parquet"))
    plan = project.plan("earliest", goal="replay", output="swap")
    project.apply(plan)
    _read_by_another(project, "elsewhere.parquet", copied=True)

    assert project.undo(plan)
    assert sorted((project.folder / "out").glob("*.parquet")) == old
