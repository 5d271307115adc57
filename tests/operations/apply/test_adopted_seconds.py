"""Signs of life of a query on a store whose times are whole seconds, as those of S3 are."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from slackwater.core.errors import Refused
from slackwater.operations.stopped import newest_file
from tests.support.adopted import ADOPTED, ObjectsProject, make_adopted, moved_to
from tests.support.shelf_kind import SCHEME, registered


@pytest.fixture
def project(tmp_path: Path) -> Iterator[ObjectsProject]:
    with registered():
        yield moved_to(make_adopted(tmp_path), f"{SCHEME}{tmp_path}/shelf/checkpoint")


def _in_one_second(project: ObjectsProject) -> None:
    second = int(time.time())
    for file in (project.folder / "shelf").rglob("*"):
        os.utime(file, (second, second))


def _newest(project: ObjectsProject) -> str | None:
    with project.open() as workspace:
        found = newest_file(workspace, workspace.ledger.find_stream(ADOPTED), 0)
    return None if found is None else found[0].removeprefix(f"{project.location}/")


def test_a_query_that_has_just_created_its_checkpoint_is_alive(project: ObjectsProject) -> None:
    plan, before = project.plan("batch:4", goal="replay"), project.in_use()
    _in_one_second(project)
    with pytest.raises(Refused, match="may be running"):
        project.apply(plan)
    assert project.in_use() == before


def test_in_the_second_of_an_operation_only_files_that_are_not_its_own_count(project: ObjectsProject) -> None:
    plan = project.plan("batch:4", goal="replay")
    project.apply(plan, stopped=True)
    _in_one_second(project)
    assert _newest(project) is None

    (project.folder / "shelf/checkpoint/offsets/9").write_text("v1")
    _in_one_second(project)
    assert _newest(project) == "offsets/9"

    (project.folder / "shelf/checkpoint/offsets/9").unlink()
    project.undo(plan, stopped=True)
    _in_one_second(project)
    assert _newest(project) is None
