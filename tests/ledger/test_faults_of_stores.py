"""A home on S3 whose answers are cut off or throttled: refused or sent again; nothing is lost or taken for complete."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slackwater.cli.main import main
from slackwater.core.errors import SlackwaterError
from slackwater.storage.s3_filesystem import S3FileSystem
from tests.support.s3 import forget_clients
from tests.support.s3_proxy import PAGE_FAULTS, Fault, LosingProxy, losing_proxy
from tests.support.stored_projects import STREAM_FOLDER, StoredProject, make_stored_project

STREAM = "clicks/per_page"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def project(tmp_path: Path, s3_location: str) -> StoredProject:
    return make_stored_project(tmp_path / "project", s3_location)


@pytest.fixture
def proxy(project: StoredProject, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[LosingProxy]:
    """Between Slackwater and S3, with pages of three names. What fails is sent again once, by s3fs, after a moment."""
    monkeypatch.setenv("SLACKWATER_HOME", project.location)
    monkeypatch.setenv("SLACKWATER_LEDGER", str(project.folder / "ledger.db"))
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setattr(S3FileSystem, "retries", 2)
    monkeypatch.chdir(project.folder)
    with losing_proxy(s3_endpoint) as between:
        monkeypatch.setenv("AWS_ENDPOINT_URL", between.endpoint)
        forget_clients()
        between.page_size = 3
        yield between


@pytest.fixture
def run(proxy: LosingProxy, capsys: pytest.CaptureFixture[str]) -> Run:
    assert proxy.lost == 0

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        return main(list(arguments)), *capsys.readouterr()

    return run


def test_a_page_that_fails_once_changes_no_answer(run: Run, proxy: LosingProxy, project: StoredProject) -> None:
    for command in _commands(project):
        whole = run(*command)
        proxy.spoil_later_pages(Fault.CUT_OFF, times=1)
        assert run(*command) == whole
        assert proxy.lost == 1
        proxy.spoil_nothing()
        proxy.lost = 0


@pytest.mark.parametrize(
    "fault", [Fault.SLOW_DOWN, *(pytest.param(one, marks=pytest.mark.thorough) for one in PAGE_FAULTS)]
)
def test_a_page_that_never_arrives_is_reported(
    run: Run, proxy: LosingProxy, project: StoredProject, fault: Fault
) -> None:
    proxy.spoil_later_pages(fault)
    for command in _commands(project):
        code, out, errors = run(*command)
        if command[0] == "doctor":
            # On a slow machine the store is shown as one that is waited for.
            assert (code, re.sub(r"waiting for .*\n", "", errors)) == (5, "")
            assert "cannot be read" in out
        else:
            assert (code, out) == (9, "")
            assert "error store-unreachable: " in errors
            assert "\nhint: " in errors
        assert "Traceback" not in errors
    code, out, errors = run("plan", "rebuild", STREAM)
    assert (code, out, "Traceback" in errors) == (9, "", False)


def _commands(project: StoredProject) -> tuple[tuple[str, ...], ...]:
    checkpoint = f"{project.location}/{STREAM_FOLDER}/checkpoints/0001"
    return (("status",), ("inspect", checkpoint), ("doctor", STREAM))


# Before anything is built, while it is, and once something in use may have changed.
@pytest.mark.thorough
@pytest.mark.parametrize("page", [3, 27, 52])
@pytest.mark.parametrize(("goal", "last"), [("rebuild", 3), ("replay", 2)])
def test_an_apply_is_continued_by_what_is_printed(
    proxy: LosingProxy, project: StoredProject, goal: str, last: int, page: int
) -> None:
    """From its n-th later page of a listing on, the store is throttled for good."""
    before = project.objects()
    plan = project.plan("batch:3", goal=goal)
    asked = 0

    def spoils(_method: str, path: str) -> Fault | None:
        nonlocal asked
        asked += "continuation-token=" in path
        return Fault.SLOW_DOWN if "continuation-token=" in path and asked >= page else None

    proxy.spoils = spoils
    with pytest.raises((SlackwaterError, OSError)) as failed:
        project.apply(plan)
    proxy.spoil_nothing()
    hint = getattr(failed.value, "hint", None) or "repeat"
    if hint.startswith("slackwater undo"):
        project.undo(plan)
        assert project.objects() == before
        plan = project.plan("batch:3", goal=goal)
    project.apply(plan)
    found = project.objects()
    assert json.loads(found[f"{STREAM_FOLDER}/stream.json"])["generation"] == 2
    assert max(int(path.rpartition("/")[2]) for path in found if "/0002/commits/" in path) == last
    project.undo(plan)
    assert project.objects() == before
