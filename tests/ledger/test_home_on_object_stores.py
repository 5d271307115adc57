"""A home on an object store, with its ledger on this machine: planned, applied and taken back without a local file."""

from collections import Counter
from pathlib import Path
from urllib.parse import unquote

import pytest

from slackwater.cli.verbs.status import read_status
from slackwater.core.errors import Refused
from slackwater.core.settings import Settings
from slackwater.storage.open import open_write_store
from tests.support.errors import raises_code
from tests.support.object_stores import before_requests, is_listing
from tests.support.rebuilds import StopBefore
from tests.support.stored_projects import STREAM_FOLDER, StoredProject, make_stored_project


@pytest.fixture
def project(tmp_path: Path, object_location: str) -> StoredProject:
    return make_stored_project(tmp_path / "project", object_location)


def test_a_rebuild_is_applied_and_taken_back(project: StoredProject) -> None:
    before = project.objects()
    plan = project.plan("batch:3")

    project.apply(plan)

    found = project.objects()
    assert f"{STREAM_FOLDER}/checkpoints/0002/commits/3" in found
    assert not project.home.exists(), "nothing was written to this machine"
    project.undo(plan)
    assert project.objects() == before


def test_the_state_of_a_replay_is_copied_by_the_store(project: StoredProject) -> None:
    plan, sent = project.plan("batch:3", goal="replay"), []

    with before_requests(project.location, lambda method, url: sent.append(f"{method} {url.partition('?')[0]}")):
        project.apply(plan)

    state = [one for one in sent if "/0002/state/" in one and one.endswith(".delta")]
    read = [one for one in sent if one.startswith("GET") and "/0001/state/" in one and one.endswith(".delta")]
    assert state
    assert read == [], "the state went through this process"


@pytest.mark.thorough
def test_an_interrupted_apply_is_continued(project: StoredProject) -> None:
    plan = project.plan("batch:3")
    with pytest.raises(KeyboardInterrupt):
        project.apply(plan, display=StopBefore("switch-generation"))
    journal = open_write_store(project.location).read(f"{STREAM_FOLDER}/operations/{plan.id}/journal.jsonl")

    project.apply(plan)

    whole = open_write_store(project.location).read(f"{STREAM_FOLDER}/operations/{plan.id}/journal.jsonl")
    assert whole.startswith(journal)
    assert whole.count(b"\n") > journal.count(b"\n")


@pytest.mark.thorough
def test_a_home_that_was_copied_is_recognised(project: StoredProject) -> None:
    project.apply(project.plan("batch:3"))
    copy = open_write_store(f"{project.location}-copy")
    original = open_write_store(project.location)
    for folder in original.folders():
        for name in folder.files:
            path = f"{folder.path}/{name}".lstrip("/")
            copy.write(path, original.read(path))
    copied = StoredProject(project.folder, project.home, f"{project.location}-copy")

    with raises_code(Refused, "home-copied"):
        copied.apply(copied.plan("batch:2"))


def test_status_looks_for_the_streams_of_the_home_once(project: StoredProject) -> None:
    """Each look is a list request for the home and for each pipeline, and one request more for each stream."""
    sent: list[tuple[str, str]] = []
    with before_requests(project.location, lambda method, url: sent.append((method, url))):
        read_status(Settings(project.location, str(project.folder / "ledger.db")))

    listed = [url for method, url in sent if is_listing(method, url)]
    of_pipeline = [url for url in map(unquote, listed) if "streams/clicks/" in url and "per_page" not in url]
    assert len(of_pipeline) == 1, sent
    assert sum(url.partition("?")[0].endswith("/home.json") for _, url in sent) <= 1, sent


def test_status_asks_for_no_file_of_the_state(project: StoredProject) -> None:
    """It costs a list request for each 1,000 names: a checkpoint has as many files as partitions and versions."""
    asked: Counter[str] = Counter()

    def count(method: str, url: str) -> None:
        if method == "GET" and not is_listing(method, url):
            asked[url.partition(project.location.rpartition("/")[2])[2]] += 1

    with before_requests(project.location, count):
        status = read_status(Settings(project.location, str(project.folder / "ledger.db")))
    assert [stream.findings[0].code for stream in status.streams] == ["clean"]
    assert [path for path in asked if "/state/" in path] == []
    assert "/streams/clicks/per_page/stream.json" in asked
