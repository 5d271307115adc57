"""Records of a home with values of other types, and other things that ended in a traceback."""

import json
import sqlite3
import subprocess
from pathlib import Path

import pytest

from slackwater.core.units import iso_text, utc_text
from slackwater.ledger.ledger import Ledger
from slackwater.operations.plan.document import render
from tests.support import warm_python
from tests.support.homes import STREAM, make_home
from tests.support.rebuilds import Project, StopBefore, make_project

FAR_MS = 253_402_300_800_000
"""The first millisecond of the year 10000."""
VALUES = ("1e400", "[]", '"\\u0000"', str(2**63))


def _run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return warm_python.run(arguments, folder, environment)


def _is_an_answer(done: subprocess.CompletedProcess[str]) -> bool:
    return "Traceback" not in done.stderr and done.returncode != 1


@pytest.mark.parametrize(
    ("epoch_ms", "shown"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (FAR_MS - 1, "9999-12-31T23:59:59.999Z"),
        (FAR_MS, "+10000-01-01T00:00:00.000Z"),
        (2**63 - 1, "+292278994-08-17T07:12:55.807Z"),
        (-62_167_219_200_001, "-0001-12-31T23:59:59.999Z"),
        (-(2**63), "-292275055-05-16T16:47:04.192Z"),
    ],
)
def test_a_time_beyond_the_calendar_is_written_as_iso_8601_has_it(epoch_ms: int, shown: str) -> None:
    assert iso_text(epoch_ms) == shown
    assert utc_text(epoch_ms).startswith(shown.partition("T")[0])


def test_a_watermark_beyond_the_year_9999_is_shown(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    checkpoint = home / "streams" / "clicks" / "per_page" / "checkpoints" / "0001"
    commit = checkpoint / "commits" / "5"
    commit.write_text('v1\n{"nextBatchWatermarkMs":' + str(FAR_MS) + "}")
    shown = _run(tmp_path, "status", "--format", "json")
    assert "+10000-01-01" in shown.stdout, shown.stderr
    assert "+10000-01-01" in _run(tmp_path, "status").stdout
    assert _is_an_answer(_run(tmp_path, "inspect", STREAM))


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """An apply that was interrupted before it switched the generation."""
    project = make_project(tmp_path_factory.mktemp("records") / "project")
    project.claim_output()
    plan = project.plan("batch:3")
    (project.folder / "plan.json").write_text(render(plan))
    with pytest.raises(KeyboardInterrupt):
        project.apply(plan, display=StopBefore("switch-generation"))
    assert _run(project.folder, "status").returncode in (0, 5)
    return project


RECORDS = {
    "lease": ("streams/clicks/per_page/lease.json", "fence"),
    "holder": ("streams/clicks/per_page/lease.json", "holder"),
    "stream": ("streams/clicks/per_page/stream.json", "generation"),
    "home": ("home.json", "path"),
}


@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize("value", [*VALUES, "[" * 5000 + "]" * 5000], ids=lambda value: value[:10])
def test_a_value_of_another_type_is_no_defect(started: Project, record: str, value: str) -> None:
    name, key = RECORDS[record]
    file = started.home / name
    before = file.read_text()
    document = json.loads(before)
    file.write_text(json.dumps({**document, key: "@@"}).replace('"@@"', value))
    try:
        for command in (("status",), ("plan", "rebuild", STREAM)):
            done = _run(started.folder, *command)
            assert _is_an_answer(done), done.stderr
    finally:
        file.write_text(before)


@pytest.mark.parametrize("key", ["at_ms", "index", "facts"])
@pytest.mark.parametrize("value", ["1e400", "null", '{"layout": []}'])
def test_a_journal_with_another_value_is_no_defect(started: Project, key: str, value: str) -> None:
    journal = next((started.home / "streams/clicks/per_page/operations").glob("*/journal.jsonl"))
    before = journal.read_text()
    lines = before.splitlines()
    lines[1] = json.dumps({**json.loads(lines[1]), key: "@@"}).replace('"@@"', value)
    journal.write_text("\n".join(lines) + "\n")
    try:
        for command in (("undo", journal.parent.name, "--yes"), ("apply", "plan.json", "--yes")):
            done = _run(started.folder, *command)
            assert _is_an_answer(done), done.stderr
    finally:
        journal.write_text(before)


def test_arguments_of_spark_submit_that_cannot_be_split(tmp_path: Path) -> None:
    make_home(tmp_path)
    (tmp_path / "p.py").write_text(
        'import slackwater as sw\npipeline = sw.Pipeline("p")\n'
        "@pipeline.stream(sink=sw.sinks.noop())\ndef s(spark):\n    return None\n"
    )
    done = _run(tmp_path, "run", "p.py", PYSPARK_SUBMIT_ARGS='"abc')
    assert (done.returncode, "submit-arguments" in done.stderr) == (2, True), done.stderr
    assert _is_an_answer(done)


def test_a_project_is_laid_out_two_thousand_folders_deep(tmp_path: Path) -> None:
    deep = "/".join("d" for _ in range(1800))
    done = _run(tmp_path, "init", deep)
    assert _is_an_answer(done), done.stderr
    assert done.returncode == 0
    assert _is_an_answer(_run(tmp_path, "status", "--home", f"{deep}/home"))
    subprocess.run(["rm", "-rf", str(tmp_path / "d")], check=True)


def test_a_ledger_with_values_of_other_types(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    with Ledger.open(home / "ledger.db", create=False) as ledger:
        ledger.begin_run(STREAM, 1, "4.1.3")
    with sqlite3.connect(home / "ledger.db") as database:
        database.execute("update runs set started_ms = 'Infinity', spark_version = x'00ff', settings = '[[1]]'")
    for command in (("status",), ("ledger", STREAM), ("status", "--format", "json")):
        done = _run(tmp_path, *command)
        assert _is_an_answer(done), done.stderr
