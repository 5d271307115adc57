"""``slackwater adopt``, ``release`` and ``watch``, none of which changes the checkpoint of the user's own program."""

import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from slackwater.cli.main import main
from slackwater.cli.verbs.adopt import adopt_checkpoint
from slackwater.core.errors import PipelineError, Refused
from slackwater.core.records import GenerationRecord, StreamRecord
from slackwater.core.settings import Settings
from slackwater.core.sink import Owner
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.workspace import Workspace, open_workspace
from slackwater.sinks.common.registry import UNKNOWN, is_same_sink, open_output
from tests.cli.conftest import Slackwater
from tests.cli.test_confirmation import Terminal
from tests.cli.test_documents import undocumented
from tests.support.adopted import AdoptedProject, make_adopted
from tests.support.errors import raises_code
from tests.support.homes import QUERY_ID, RAN_MS, edit_ledger
from tests.support.kill_points import count_commits, kill_points
from tests.support.memory import folder_in_memory
from tests.support.rebuilds import CLEAN

count_commits()
EVERY = int(os.environ.get("SLACKWATER_TEST_EVERY", "4"))
POINTS = range(1 + random.randrange(EVERY), sys.maxsize, EVERY)
"""Of the changes each run of the tests takes a part, another one each time."""

HOME = ("--home", "home")
USAGE, REFUSED = 2, 5
ADOPT = "slackwater adopt '<folder>/state/per_page checkpoint' --name clicks"


@pytest.fixture
def project(tmp_path: Path) -> AdoptedProject:
    """The checkpoint of a program: batches 0 to 6, of which the last was interrupted. No home has recorded it."""
    return unrecorded(tmp_path)


def unrecorded(folder: Path) -> AdoptedProject:
    project = make_adopted(folder)
    shutil.rmtree(project.home)
    return project


def adopting(project: AdoptedProject, *words: str) -> tuple[str, ...]:
    return ("adopt", str(project.path), "--name", "clicks", *words, *HOME)


def all_of(stream: str, folder: Path) -> dict[str, object]:
    with Ledger.open(folder / "home" / "ledger.db", create=False) as ledger:
        logs = ("offsets", "commits", "sources/0", "metadata", "sink")
        return {
            "generations": [(one.number, one.location, one.query_id) for one in ledger.generations(stream)],
            "logs": {log: ledger.lines(stream, log) for log in logs},
        }


def test_what_a_checkpoint_has_is_recorded_and_reported(slackwater: Slackwater, project: AdoptedProject) -> None:
    before = project.in_use()

    document = slackwater(*adopting(project, "--sink", "out", "--format", "json")).document

    assert project.in_use() == before
    assert undocumented(document) == []
    assert document["marks"] == {"planned": 6, "committed": 5, "state": 5, "written": 5}
    assert (document["stream"], document["query_id"]) == ("watched/clicks", QUERY_ID)
    assert document["ranges"] == {"first": 0, "last": 6, "rebuilds_from": 0, "missing": []}
    assert [(one["name"], one["last"]) for one in document["state"]] == [("stateStoreSave", 5)]
    recorded = all_of("watched/clicks", project.folder)
    assert recorded["generations"] == [(1, str(project.path), QUERY_ID)]
    logs = recorded["logs"]
    assert isinstance(logs, dict)
    for log in ("offsets", "commits", "sources/0"):
        files = {int(file.name): file.read_text() for file in (project.path / log).iterdir() if file.name.isdigit()}
        assert logs[log] == files
    assert set(logs["sink"]) == set(range(6))


def test_what_sources_and_checkpoint_no_longer_have_is_reported(
    slackwater: Slackwater, project: AdoptedProject
) -> None:
    for batch in (0, 1):
        (project.path / "offsets" / str(batch)).unlink()
    (project.folder / "clicks" / "003.json").unlink()

    done = slackwater(*adopting(project))

    assert (done.code, done.err) == (0, "")
    assert "of batches 2 to 6" in done.out
    assert "can read batches 4 and later again" in done.out
    assert "003.json" in done.out
    assert f"where the query writes: {ADOPT} --pipeline APPLICATION " in done.out
    command = done.out.partition("if it writes to a directory: ")[2].splitlines()[0]
    assert command == f"{ADOPT} --sink DIRECTORY"
    words = shlex.split(command.replace("<folder>", str(project.folder)).replace("DIRECTORY", "out"))
    assert "where the query writes" not in slackwater(*words[1:], *HOME).out


def test_adopting_again_takes_in_what_is_new(slackwater: Slackwater, project: AdoptedProject) -> None:
    newest = project.path / "offsets" / "6"
    text = newest.read_text()
    newest.unlink()
    assert slackwater(*adopting(project)).code == 0
    newest.write_text(text)

    document = slackwater(*adopting(project, "--sink", "out", "--format", "json")).document

    assert document["entries"] > 0
    assert document["sink"] == {"kind": "files", "path": "<folder>/out"}
    logs = all_of("watched/clicks", project.folder)["logs"]
    assert isinstance(logs, dict)
    assert logs["offsets"][6] == text
    assert slackwater(*adopting(project, "--format", "json")).document["entries"] == 0


def test_a_program_shows_where_its_query_writes(
    slackwater: Slackwater, project: AdoptedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project.folder)
    sink, read = {"kind": "table", "name": "lake.shop.counts", "format": "iceberg"}, list[str]()

    def program(_workspace: Workspace, stream: StreamRecord) -> StreamRecord:
        read.append(stream.full_name)
        return stream._replace(sink=sink, output_mode="complete", pipeline_file="app.py")

    location = str(project.path)
    with open_workspace(Settings(home=Path("home")), create=True) as workspace:
        unknown = adopt_checkpoint(workspace, location, name="clicks")
        assert not workspace.ledger.find_stream("clicks").has_output
        assert unknown["unknown"][0].startswith("where the query writes: slackwater adopt ")
        adopted = adopt_checkpoint(workspace, location, name="clicks", program=program)
        stream = workspace.ledger.find_stream("clicks")
        assert (stream.sink, stream.output_mode) == (sink, "complete") == (adopted["sink"], "complete")
        assert not any("where the query writes" in one for one in adopted["unknown"])
        adopt_checkpoint(workspace, location, name="clicks")
        assert workspace.ledger.find_stream("clicks") == stream
        sink = {**sink, "name": "lake.shop.others"}
        with raises_code(Refused, "adopt-sink"):
            adopt_checkpoint(workspace, location, name="clicks", program=program)
    assert read == ["watched/clicks"] * 2
    assert "slackwater run app.py" in slackwater("status", "clicks", *HOME).out


def test_a_program_that_fails_leaves_nothing_of_a_new_stream(
    project: AdoptedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project.folder)
    seen = list[list[str]]()

    def program(workspace: Workspace, _: StreamRecord) -> StreamRecord:
        seen.append(workspace.ledger.stream_names())
        raise PipelineError("application-queries", "The application started no streaming query")

    location = str(project.path)
    with open_workspace(Settings(home=Path("home")), create=True) as workspace:
        with pytest.raises(PipelineError):
            adopt_checkpoint(workspace, location, name="typo", program=program)
        assert workspace.ledger.stream_names() == []
        assert not list(Path("home").rglob("*typo*"))
        adopt_checkpoint(workspace, location, name="right", sink="out")
        assert workspace.ledger.stream_names() == ["watched/right"]
        stream = workspace.ledger.find_stream("right")

        with pytest.raises(PipelineError):
            adopt_checkpoint(workspace, location, name="right", program=program)
        assert workspace.ledger.find_stream("right") == stream
    assert seen == [["watched/typo"], ["watched/right"]], "a program finds its query by the ledger's record"


def test_a_pipeline_file_is_no_program_that_starts_the_query(slackwater: Slackwater, project: AdoptedProject) -> None:
    done = slackwater(*adopting(project, "--pipeline", "clicks.py"))
    assert (done.code, "application-queries" in done.err) == (USAGE, True)
    assert "slackwater adopt LOCATION --sink DIRECTORY" in done.err
    assert not (project.folder / "home").exists()


@pytest.mark.parametrize("words", [("reset", "--output", "swap"), ("rebuild", "--at", "batch:2")])
def test_a_plan_that_needs_the_output_says_how_to_record_it(
    slackwater: Slackwater, project: AdoptedProject, words: tuple[str, ...]
) -> None:
    slackwater(*adopting(project))
    done = slackwater("plan", words[0], "clicks", *words[1:], "--pipeline", "clicks.py", *HOME)
    assert done.code == REFUSED
    assert f"{ADOPT} --pipeline <folder>/clicks.py; or" in done.err


def test_state_that_is_deleted_after_the_adoption_is_missed(slackwater: Slackwater, project: AdoptedProject) -> None:
    slackwater(*adopting(project, "--sink", "out"))
    shutil.rmtree(project.path / "state")

    done = slackwater("status", "clicks", *HOME)

    assert done.code == REFUSED, done.out
    assert "needs the state of batch 5, which cannot be loaded" in done.out
    # The program itself has the code; APPLICATION is to be replaced by it.
    assert "slackwater plan rebuild watched/clicks --pipeline APPLICATION\n" in done.out
    assert "APPLICATION is the program that starts the query" in done.out


def test_a_checkpoint_that_is_deleted_after_the_adoption_is_still_that_of_its_stream(
    slackwater: Slackwater, project: AdoptedProject
) -> None:
    slackwater(*adopting(project, "--sink", "out"))
    kept = slackwater("status", str(project.path), "--format", "json", *HOME)
    assert [one["stream"] for one in kept.document["streams"]] == ["watched/clicks"]
    shutil.rmtree(project.path)

    lost = slackwater("status", str(project.path), *HOME)
    again = slackwater(*adopting(project, "--format", "json"))

    assert lost.code == REFUSED
    assert "slackwater plan rebuild watched/clicks" in lost.out
    assert (again.error["code"], again.error["hint"]) == (
        "not-a-checkpoint",
        "the checkpoint of stream watched/clicks was here; what to do is shown by: slackwater doctor watched/clicks",
    )


def test_all_verbs_take_the_location_of_a_checkpoint_that_is_gone(
    slackwater: Slackwater, project: AdoptedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    slackwater(*adopting(project, "--sink", "out"))
    place = str(project.path)
    shutil.rmtree(project.path)
    monkeypatch.setenv("SLACKWATER_HOME", "home")

    shown = slackwater("ledger", place, "--format", "json").document["streams"]
    assert [one["stream"] for one in shown] == ["watched/clicks"]
    assert slackwater("ledger", place, "--operations").code == 0
    assert "Stream watched/clicks does not run" in slackwater("stop", place).err
    assert "the checkpoint of stream watched/clicks was here" in slackwater("watch", place, "--once").err
    monkeypatch.setattr("sys.stdin", Terminal("clicks\n"))
    done = slackwater("release", place)
    assert "per_page checkpoint no longer exists" in done.err
    assert "per_page checkpoint did not exist any more" in done.out


def test_offsets_that_are_deleted_are_no_interrupted_batch(slackwater: Slackwater, project: AdoptedProject) -> None:
    slackwater(*adopting(project))
    shutil.rmtree(project.path / "offsets")

    found = slackwater("doctor", "watched/clicks", "--format", "json", *HOME).document["streams"][0]["findings"]

    assert "checkpoint-lost" in {one["code"] for one in found}
    assert "SW-SINK-003" not in {one["code"] for one in found}


@pytest.mark.parametrize(("reported", "unknown"), [(5, None), (3, "no progress after batch 3 is recorded")])
def test_the_lag_after_batches_that_the_program_ran_alone_is_unknown(
    slackwater: Slackwater, tmp_path: Path, reported: int, unknown: str | None
) -> None:
    project = make_adopted(tmp_path, replace(CLEAN, reported=tuple(range(reported + 1))))

    shown = slackwater("status", "--home", str(project.home), "--format", "json").document["streams"][0]

    assert shown["marks"]["committed"] == 5
    assert (shown["lag_unknown"], shown["lag_files"] is None) == (unknown, unknown is not None)


def test_an_adopted_stream_is_planned_for(slackwater: Slackwater, project: AdoptedProject) -> None:
    slackwater(*adopting(project, "--sink", "out"))

    done = slackwater("plan", "replay", "clicks", "--from", "batch:4", *HOME)

    assert done.code == 0, done.err
    assert "code-needed" in slackwater("plan", "rebuild", "clicks", *HOME).err


@pytest.mark.parametrize(
    ("prepare", "words", "code"),
    [
        (lambda project: project.path.rename(project.folder / "per page"), ("per page",), "adopt-name"),
        (lambda project: main(adopting(project)), ("{path}", "--name", "other"), "adopt-known"),
        (
            lambda project: (main(adopting(project)), shutil.copytree(project.path, project.folder / "copy")),
            ("copy", "--name", "clicks"),
            "adopt-taken",
        ),
        (
            lambda project: (
                main(adopting(project, "--sink", "out")),
                shutil.copytree(project.folder / "out", project.folder / "other"),
            ),
            ("{path}", "--sink", "other"),
            "adopt-sink",
        ),
        (
            lambda project: (project.path / "metadata").write_text("slackwater_is_replacing_this_checkpoint x"),
            ("{path}", "--name", "clicks"),
            "adopt-replaced",
        ),
        (lambda _: None, ("{path}", "--name", "x", "--sink", "clicks"), "no-output"),
        (lambda _: None, ("out", "--name", "x"), "not-a-checkpoint"),
        (lambda _: None, ("~nosuchuser/checkpoint",), "not-a-checkpoint"),
        (lambda _: None, ("{path}", "--sink", "~nosuchuser/out"), "no-output"),
    ],
)
def test_what_cannot_be_adopted_is_refused(
    slackwater: Slackwater,
    project: AdoptedProject,
    prepare: Callable[[AdoptedProject], object],
    words: tuple[str, ...],
    code: str,
) -> None:
    slackwater("status", *HOME)
    prepare(project)

    done = slackwater("adopt", *(word.format(path=project.path) for word in words), *HOME)

    assert f"error {code}: " in done.err


def test_both_locations_may_be_below_the_folder_of_the_user(
    slackwater: Slackwater, project: AdoptedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(project.folder))
    location = f"~/{project.path.relative_to(project.folder)}"

    document = slackwater("adopt", location, "--sink", "~/out", "--format", "json", *HOME).document

    assert (document["checkpoint"], document["sink"]["path"]) == (
        f"<folder>/{project.path.relative_to(project.folder)}",
        "<folder>/out",
    )


class Scene:
    def __init__(self, folder: Path) -> None:
        self.project = unrecorded(folder / "project")
        self._saved = folder / "saved"

    def save(self) -> None:
        shutil.copytree(self.project.folder, self._saved)

    def restore(self) -> None:
        shutil.rmtree(self.project.folder)
        shutil.copytree(self._saved, self.project.folder)
        os.chdir(self.project.folder)

    def do(self, *words: str) -> None:
        assert main(words) == 0


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    with folder_in_memory() as folder:
        scene = Scene(folder)
        monkeypatch.chdir(scene.project.folder)
        yield scene
        monkeypatch.undo()


def test_an_adoption_that_is_killed_is_finished_by_typing_it_again(scene: Scene) -> None:
    project, words = scene.project, adopting(scene.project, "--sink", "out")
    before = project.in_use()
    scene.save()
    scene.do(*words)
    expected = all_of("watched/clicks", project.folder)
    number = 0
    for number in kill_points(lambda: scene.do(*words), project.folder, scene.restore, every=POINTS):
        assert project.in_use() == before
        scene.do(*words)
        assert all_of("watched/clicks", project.folder) == expected, number
        assert project.in_use() == before
        scene.do("status", *HOME) if number % 5 == 0 else None
    assert number > 5


def test_a_release_that_is_killed_is_finished_by_typing_it_again(scene: Scene) -> None:
    project, words = scene.project, ("release", "clicks", "--yes", *HOME)
    before = project.in_use()
    scene.do(*adopting(project, "--sink", "out"))
    claim(project)
    scene.save()
    number = 0
    for number in kill_points(lambda: scene.do(*words), project.folder, scene.restore, every=POINTS):
        if known(project):
            scene.do(*words)
        assert not known(project), number
        assert project.in_use() == before, number
        assert not (project.folder / "home" / "streams" / "watched" / "clicks").exists(), number
        # Nothing of the released stream keeps its checkpoint from being adopted again.
        scene.do(*adopting(project, "--sink", "out"))
    assert number > 5


def claim(project: AdoptedProject) -> None:
    """The output is marked as that of the stream, as a run marks it."""
    stream = json.loads((project.folder / "home" / "streams" / "watched" / "clicks" / "stream.json").read_text())
    owner = Owner(stream["id"], "watched/clicks", "home")
    open_output({"kind": "files", "format": "parquet", "path": str(project.folder / "out")}).claim(owner)
    assert (project.folder / "out" / "_slackwater.json").is_file()


def known(project: AdoptedProject) -> bool:
    with Ledger.open(project.folder / "home" / "ledger.db", create=False) as ledger:
        return ledger.stream_names() == ["watched/clicks"]


def test_a_release_asks_first_and_keeps_what_is_not_its_own(
    slackwater: Slackwater, project: AdoptedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    slackwater(*adopting(project, "--sink", "out"))
    (project.folder / "out" / "_slackwater.json").write_text('{"stream_id": "a", "stream": "b/c", "home": "d"}')
    before = project.in_use()
    monkeypatch.setattr("sys.stdin", Terminal("no\n"))
    assert "name-mistyped" in slackwater("release", "clicks", *HOME).err
    monkeypatch.setattr("sys.stdin", Terminal("clicks\n"))

    done = slackwater("release", "clicks", *HOME)

    assert done.code == 0, done.err
    assert "watched/clicks: forgotten; <folder>/state/per_page checkpoint was not changed" in done.out
    assert project.in_use() == before
    assert "stream-unknown" in slackwater("release", "watched/clicks", "--yes", *HOME).err


def test_a_released_document(slackwater: Slackwater, project: AdoptedProject) -> None:
    slackwater(*adopting(project))

    document = slackwater("release", str(project.path), "--yes", "--format", "json", *HOME).document

    assert undocumented(document) == []
    assert document["stream"] == "watched/clicks"


def test_a_stream_with_a_kept_checkpoint_is_released_after_a_prune(slackwater: Slackwater, tmp_path: Path) -> None:
    project = make_adopted(tmp_path)
    project.apply(project.plan("batch:4", goal="replay"))
    command = ("release", "watched/per_page", "--yes", "--i-stopped-it")

    refused = slackwater(*command)

    assert "error release-kept: " in refused.err
    assert "slackwater prune watched/per_page --keep 0" in refused.err
    assert slackwater("prune", "watched/per_page", "--keep", "0", "--yes").code == 0
    assert slackwater(*command).code == 0
    assert project.beside() == []


def test_a_table_of_files_that_is_recorded_by_its_name_is_cut_and_restored(tmp_path: Path) -> None:
    # As the run after an adoption records it.
    project = make_adopted(tmp_path)
    table = {"kind": "table", "name": "counts", "format": "json", "path": (tmp_path / "out").as_uri()}
    edit_ledger(project.home, "UPDATE streams SET sink = ?", values=(json.dumps(table),))
    before = project.in_use()
    plan = project.plan("batch:4", goal="replay")

    project.apply(plan)

    assert open_output(table).last_written() == 3
    project.undo(plan)
    assert project.in_use() == before


@pytest.mark.parametrize("name", ["../clicks", "per_page/operations", "."])
def test_a_stream_whose_name_is_a_path_is_released_alone(slackwater: Slackwater, tmp_path: Path, name: str) -> None:
    project, other = make_adopted(tmp_path), tmp_path / "other"
    for folder in (other, *(project.home / "streams" / one for one in ("clicks", "watched/per_page/operations"))):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "kept").write_text("of another stream")
    before = project.files(project.home / "streams")
    with Ledger.open(project.home / "ledger.db", create=False) as ledger:
        stream = StreamRecord("watched", name, dict(UNKNOWN), "append", "")
        ledger.register_stream(stream, GenerationRecord(stream.full_name, 1, str(other)))

    done = slackwater("release", stream.full_name, "--yes", "--i-stopped-it")

    assert done.code == 0, done.err
    assert project.files(project.home / "streams") == before
    with Ledger.open(project.home / "ledger.db", create=False) as ledger:
        assert ledger.stream_names() == ["watched/per_page"]


def test_a_stream_of_a_pipeline_is_not_released(slackwater: Slackwater, tmp_path: Path) -> None:
    from tests.support.rebuilds import make_project  # noqa: PLC0415 - the only test with a pipeline

    make_project(tmp_path)

    done = slackwater("release", "per_page", "--yes")

    assert (done.code, "error release-pipeline: " in done.err) == (5, True)


def test_a_checkpoint_that_is_written_to_is_not_released(slackwater: Slackwater, project: AdoptedProject) -> None:
    slackwater(*adopting(project))
    (project.path / "state" / "0" / "0" / "7.delta").write_bytes(b"")

    done = slackwater("release", "clicks", "--yes", *HOME)

    assert (done.code, "error checkpoint-in-use: " in done.err) == (5, True)


def test_a_look_shows_marks_and_lag(slackwater: Slackwater, project: AdoptedProject) -> None:
    before = project.files(project.folder)
    (project.folder / "clicks" / "007.json").write_text("x" * 10)

    document = slackwater("watch", str(project.path), "--sink", "out", "--once", "--format", "json").document

    (project.folder / "clicks" / "007.json").unlink()
    assert project.files(project.folder) == before
    assert undocumented(document) == []
    assert document["marks"] == {"planned": 6, "committed": 5, "state": 5, "written": 5}
    assert (document["next_batch"], document["next_batch_planned"]) == (6, True)
    assert [(one["kind"], one["files"], one["bytes"]) for one in document["sources"]] == [("files", 1, 10)]
    page = slackwater("watch", str(project.path), "--once").out
    assert "planned 6, committed 5, state 5, written -" in page
    assert "add --sink" in page


def test_it_is_shown_again_until_ctrl_c(project: AdoptedProject) -> None:
    words = [sys.executable, "-m", "slackwater", "watch", str(project.path), "--every", "0.5s", "--format", "json"]
    with subprocess.Popen(words, cwd=project.folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        (project.path / "commits" / "6").write_text('v1\n{"nextBatchWatermarkMs":0}')
        os.utime(project.path / "commits" / "6", (RAN_MS / 1000, RAN_MS / 1000))
        marks = first["marks"]
        while marks["committed"] != 6:
            marks = json.loads(process.stdout.readline())["marks"]
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
    assert (first["marks"]["committed"], first["newest_file"][:4]) == (5, "2026")


def test_what_was_not_recorded_of_an_output_is_not_compared() -> None:
    now = {"kind": "files", "format": "parquet", "path": "/data/out"}
    assert is_same_sink(UNKNOWN, now)
    assert is_same_sink({"kind": "files", "format": "", "path": "file:/data/out"}, now)
    assert is_same_sink({"kind": "ForeachBatchSink"}, {"kind": "foreach_batch"})
    assert not is_same_sink({"kind": "files", "format": "json", "path": "/data/out"}, now)
    assert not is_same_sink({"kind": "files", "format": "", "path": "/data/other"}, now)
    assert not is_same_sink({"kind": "kafka", "topic": "a"}, now)
    by_path = {"kind": "table", "format": "iceberg", "name": "iceberg./lake/shop/counts"}
    by_name = {"kind": "table", "format": "iceberg", "name": "lake.shop.counts"}
    assert is_same_sink(by_path, by_name)
    assert not is_same_sink(by_path, {**by_path, "name": "iceberg./lake/shop/others"})
    assert not is_same_sink(by_name, {**by_name, "name": "lake.shop.others"})
