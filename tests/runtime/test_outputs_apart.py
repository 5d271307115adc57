"""An output shares no directory with another output, a checkpoint, the home or a source: refused at the start."""

from pathlib import Path

import pytest

from slackwater.core.records import GenerationRecord, StreamRecord
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.places import reads_within
from tests.refusals.scene import Scene
from tests.runtime.project import Project
from tests.support.homes import HomeSpec
from tests.support.rebuilds import CLEAN

NEW = """import slackwater
pipeline = slackwater.Pipeline("clicks")
@pipeline.stream(sink=SINK)
def hourly(spark): ...
"""


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return Scene(folder, CLEAN)


def _run(scene: Scene, sink: str) -> tuple[int, str | None]:
    (scene.folder / "hourly.py").write_text(NEW.replace("SINK", sink))
    typed = scene.type("run hourly.py")
    return typed.exit_code, typed.code


@pytest.mark.parametrize(
    "path",
    [
        "out/hourly",
        ".",
        "..",
        "clicks",
        "clicks/hourly",
        "clicks/day=1",
        ".slackwater",
        ".slackwater/streams/clicks/per_page/checkpoints/0001/state",
        "link",
        "link/hourly",
        "older/own",
        "file:out",
    ],
)
def test_a_directory_that_is_used_is_refused(scene: Scene, path: str) -> None:
    (scene.folder / "link").symlink_to(scene.folder / ("out" if path != "link" else "clicks"))
    with Ledger.open(scene.project.home / "ledger.db", create=False) as ledger:
        # A checkpoint that is in no home.
        ledger.register_stream(StreamRecord("watched", "old", {"kind": "console"}, "append", ""))
        ledger.add_generation(GenerationRecord("watched/old", 1, str(scene.folder / "older")))
    path = path.replace("file:", f"file:{scene.folder}/") + ("/part" if path.startswith("file:") else "")
    before = scene.project.files(scene.folder / "out", scene.folder / "clicks")

    assert _run(scene, f'slackwater.sinks.files("parquet", "{path}")') == (5, "output-overlaps")
    assert scene.project.files(scene.folder / "out", scene.folder / "clicks") == before


def test_outputs_of_one_stream_are_apart(scene: Scene) -> None:
    sinks = 'slackwater.sinks.delta("a"), slackwater.sinks.delta("a/b")'
    assert _run(scene, f"slackwater.sinks.all_of({sinks})") == (5, "output-overlaps")


@pytest.mark.parametrize("path", ["own", "out2", "clicks-hourly"])
def test_a_directory_of_its_own_is_taken(scene: Scene, path: str) -> None:
    _is_taken(scene, path)


def test_a_place_of_its_own_on_an_object_store_is_taken(scene: Scene, s3_location: str) -> None:
    _is_taken(scene, f"{s3_location}/out")


def _is_taken(scene: Scene, path: str) -> None:
    (scene.folder / "hourly.py").write_text(NEW.replace("SINK", f'slackwater.sinks.files("parquet", "{path}")'))
    assert "output-overlaps" not in scene.type("run hourly.py").text


def test_of_object_stores_too(scene: Scene, s3_location: str) -> None:
    with Ledger.open(scene.project.home / "ledger.db", create=False) as ledger:
        sink = {"kind": "files", "format": "parquet", "path": f"{s3_location}/gold"}
        first = GenerationRecord("clicks/gold", 1, f"{s3_location}/checkpoint")
        ledger.register_stream(StreamRecord("clicks", "gold", sink, "append", "gold.py"), first)
    inside = s3_location.replace("s3a://", "s3://") + "/gold/hourly"
    assert _run(scene, f'slackwater.sinks.files("parquet", "{inside}")') == (5, "output-overlaps")


def test_a_stream_that_has_run_is_in_nobodys_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what other streams read only the folders are recorded, and not by which pattern."""
    monkeypatch.chdir(tmp_path)
    scene = Scene(tmp_path, HomeSpec())
    assert scene.type("run clicks.py").started


@pytest.mark.parametrize(
    ("path", "output", "read"),
    [
        ("/data", "/data/out", True),
        ("/data/out/in", "/data/out", True),
        ("/data", "/data", True),
        ("/data", "/data2", False),
        ("/data/*.json", "/data/out", False),
        ("/data/*", "/data/out", True),
        ("/data/*/in", "/data/out", False),
        ("/data/*/in", "/data/out/in/deep", True),
        ("/data/{a,out}", "/data/out/x", True),
        ("/out/*.json", "/out", True),
        ("s3://b/data", "s3://b/data/out", True),
        ("s3a://b/data/*.json", "s3://b/data", True),
        ("s3://b/data", "s3://c/data", False),
    ],
)
def test_what_a_source_reads(path: str, output: str, *, read: bool) -> None:
    assert reads_within(path, output) is read


PIPELINE = """
import slackwater as sw

pipeline = sw.Pipeline("work")

def rows(path):
    return lambda spark: spark.readStream.schema("id LONG").json(path)

pipeline.stream(name="inside", sink=sw.sinks.files("json", "in/out"))(rows("in"))
pipeline.stream(name="matched", sink=sw.sinks.files("json", "in/more/out"))(rows("in/*"))
pipeline.stream(name="around", sink=sw.sinks.files("json", "wide"))(rows("wide/in"))
pipeline.stream(name="apart", sink=sw.sinks.files("json", "own"))(rows("in/*.json"))
"""


@pytest.mark.spark
def test_a_source_is_not_written_to(project: Project) -> None:
    project.write(PIPELINE)
    project.add_files(3)
    (project.folder / "wide" / "in").mkdir(parents=True)

    command = project.run("--until-caught-up", expected=7)

    assert command.log.count("does not start: output-overlaps: ") == 3, command.log
    assert not (project.folder / "in" / "out").exists()
    assert not (project.folder / "in" / "more").exists()
    assert [path.name for path in (project.folder / "wide").iterdir()] == ["in"]
    assert project.ids("own") == [0, 1, 2]
