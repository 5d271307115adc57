"""Names of output folders that Hadoop reads specially: rows arrive once, in the folder named, or the run is refused."""

import json
from pathlib import Path

import pytest

from tests.runtime.project import Project

READABLE = (
    "plain",
    "a#b",
    "a%b",
    "a%20b",
    "a b",
    "ünïcode",
    "a:b",
    "a,b",
    "a+b=c&d;e",
    "'q\"",
    "_hidden",
    ".dot",
    "x/../z",
)
GLOBS = ("a?b", "a[1]", "[ab]", "a{1}", "{a,b}", "a*b", "a\\b")

PIPELINE = f"""
import slackwater as sw

pipeline = sw.Pipeline("work")

def first(spark):
    return spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 1).json("in")

def reading(upstream):
    return lambda spark, context: spark.readStream.schema("id LONG").json(context.output(upstream))

for number, name in enumerate({READABLE!r}):
    pipeline.stream(name=f"first-{{number}}", sink=sw.sinks.files("json", f"out/{{number}}/{{name}}"))(first)
    second = pipeline.stream(name=f"second-{{number}}", sink=sw.sinks.files("json", f"read/{{number}}"))
    second(reading(f"first-{{number}}"))
for number, name in enumerate({GLOBS!r}):
    pipeline.stream(name=f"glob-{{number}}", sink=sw.sinks.files("json", f"globs/{{number}}/{{name}}"))(first)
"""
CHAIN_OF_GLOB = """
import slackwater as sw

pipeline = sw.Pipeline("work")

@pipeline.stream(sink=sw.sinks.files("json", "out/a[1]"))
def first(spark):
    return spark.readStream.schema("id LONG").json("in")

@pipeline.stream(sink=sw.sinks.files("json", "out/second"))
def second(spark, context):
    return spark.readStream.schema("id LONG").json(context.output("first"))
"""


@pytest.mark.spark
def test_rows_arrive_once_in_the_folder_that_was_named(project: Project) -> None:
    project.write(PIPELINE)
    project.add_files(3)
    # Each below a folder of its own: Spark refuses "a b" next to "a%20b", which old versions took for the same.
    folders = [(f"out/{number}", name) for number, name in enumerate(READABLE)]
    folders += [(f"globs/{number}", name) for number, name in enumerate(GLOBS)]
    for parent, name in folders:
        # Next to a manifest this file does not count; a stage that ignores the manifest reads it.
        folder = _folder(project, parent, name)
        folder.mkdir(parents=True)
        (folder / "orphan.json").write_text(json.dumps({"id": 99}))

    command = project.run("--until-caught-up")

    for parent, name in folders:
        folder = _folder(project, parent, name)
        assert _ids_in(folder) == [0, 1, 2], (name, command.log)
        assert [path.name for path in (project.folder / parent).iterdir()] == [folder.name]
    for number, name in enumerate(READABLE):
        assert _ids_in(project.folder / "read" / str(number)) == [0, 1, 2], (name, command.log)


@pytest.mark.spark
def test_a_stage_does_not_read_an_output_whose_name_is_a_glob(project: Project) -> None:
    project.write(CHAIN_OF_GLOB)
    project.add_files(1)
    command = project.run("--until-caught-up", expected=7)
    assert "sink-path" in command.log
    assert _ids_in(project.folder / "out" / "a[1]") == [0], "the first stream does not depend on the second"
    assert not (project.folder / "out" / "second").exists()


def _folder(project: Project, parent: str, name: str) -> Path:
    return (project.folder / parent / name).resolve()


def _ids_in(folder: Path) -> list[int]:
    """The ids in the data files of a folder that its manifest lists, found by name alone."""
    manifest = folder / "_spark_metadata"
    lines = {line for entry in manifest.glob("[0-9]*") for line in entry.read_text().splitlines()[1:]}
    names = {json.loads(line)["path"].rpartition("/")[2] for line in lines}
    return sorted(json.loads(row)["id"] for name in names for row in (folder / name).read_text().splitlines())
