"""What ``slackwater offsets`` reports of a manual restart is what Spark then does."""

import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.outputs import Rows, manifest_ids, rows_of

PROGRAM = Path(__file__).parent / "programs" / "manual_restart.py"
FILES, FILES_BEFORE = 20, 8

PIPELINE = """
from pyspark.sql import functions as F
import slackwater as sw

pipeline = sw.Pipeline("clicks")


def clicks(spark, files):
    return spark.readStream.schema("page STRING, clicked_at TIMESTAMP").option("maxFilesPerTrigger", files).json("old")


@pipeline.stream(sink=sw.sinks.files("parquet", "out/counted"))
def counted(spark):
    minutes = clicks(spark, 1).withWatermark("clicked_at", "10 minutes")
    counted = minutes.groupBy(F.window("clicked_at", "1 minute"), "page").agg(F.count("*").alias("clicks"))
    return counted.select("window.start", "page", "clicks")


@pipeline.stream(sink=sw.sinks.files("parquet", "out/copied"))
def copied(spark):
    return clicks(spark, 4)
"""

pytestmark = [pytest.mark.spark, pytest.mark.thorough]


@dataclass(frozen=True)
class Restarted:
    """An output after a manual restart; ``error`` is Spark's message where the query failed."""

    output: Path
    error: str | None


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose two streams have read the first files."""
    folder = tmp_path_factory.mktemp("manual_restart")
    (folder / "pipeline.py").write_text(PIPELINE)
    _lay_input(folder)
    _slackwater(folder, "run", "pipeline.py", "--until-caught-up")
    return folder


@pytest.fixture(scope="module")
def restarted(project: Path) -> dict[str, Restarted]:
    """``truth`` was never interrupted; the others were restarted by hand."""
    contributing = _files_before(project, "counted", "contributing")
    situations = [
        _situation(project, "truth", None, 0, stateful=True),
        _situation(project, "counted-same-output", "counted", FILES_BEFORE, stateful=True),
        _situation(project, "counted-new-output", None, FILES_BEFORE, stateful=True),
        _situation(project, "contributing-new-output", None, contributing, stateful=True),
        _situation(project, "copied-same-output", "copied", FILES_BEFORE),
        _situation(project, "copied-again", "copied", _files_before(project, "copied", "batch:0")),
    ]
    command = [sys.executable, str(PROGRAM), json.dumps(situations)]
    done = subprocess.run(command, env=_environment(), capture_output=True, text=True, check=True, timeout=300)
    errors = json.loads(done.stdout.splitlines()[-1])
    outputs = [Path(situation["output"]) for situation in situations]
    return {output.name: Restarted(output, error) for output, error in zip(outputs, errors, strict=True)}


def test_without_state_the_named_new_batches_are_skipped(project: Path, restarted: dict[str, Restarted]) -> None:
    skipped = _effects(project, "copied", "last-written")["same", "skip"]["batches"]
    after = restarted["copied-same-output"]
    before, now = manifest_ids(project / "out/copied"), manifest_ids(after.output)

    assert (skipped, after.error) == ([0, max(before)], None)
    assert now == [*before, *range(skipped[1] + 1, FILES - FILES_BEFORE)]
    assert (_clicks(project) - rows_of(after.output)).total() == 50 * (skipped[1] + 1)


def test_without_state_what_is_read_again_in_smaller_batches_comes_twice(
    project: Path, restarted: dict[str, Restarted]
) -> None:
    again = _effects(project, "copied", "batch:0")["same", "duplicate"]
    doubled = rows_of(restarted["copied-again"].output) - _clicks(project)

    assert again["rows"] == 4 * 50
    assert 0 < doubled.total() < again["rows"]


def test_without_state_a_new_output_at_last_written_is_exact(project: Path) -> None:
    assert ("new", "none") in _effects(project, "copied", "last-written")


def test_with_state_the_same_output_ends_in_a_failure(project: Path, restarted: dict[str, Restarted]) -> None:
    stuck = _effects(project, "counted", "last-written")["same", "stuck"]
    after = restarted["counted-same-output"]

    assert "CANNOT_LOAD_STATE_STORE" in stuck["text"]
    assert after.error is not None
    assert "CANNOT_LOAD_STATE_STORE" in after.error
    assert manifest_ids(after.output) == manifest_ids(project / "out/counted")


def test_with_state_open_windows_are_lost_at_last_written(project: Path, restarted: dict[str, Restarted]) -> None:
    loss = _effects(project, "counted", "last-written")["any", "loss"]
    whole = rows_of(project / "out/counted") + rows_of(restarted["counted-new-output"].output)
    lost = rows_of(restarted["truth"].output) - whole

    assert 0 < lost.total() <= loss["rows"]


def test_with_state_nothing_is_lost_but_much_doubled_at_contributing(
    project: Path, restarted: dict[str, Restarted]
) -> None:
    effects = _effects(project, "counted", "contributing")
    whole = rows_of(project / "out/counted") + rows_of(restarted["contributing-new-output"].output)
    truth = rows_of(restarted["truth"].output)

    assert ("any", "loss") not in effects
    assert effects["new", "duplicate"]["rows"] > 0
    assert not truth - whole
    assert (whole - truth).total() > 0


def _lay_input(folder: Path) -> None:
    seeded, start = random.Random(1), datetime(2026, 1, 1)  # noqa: DTZ001 - what Spark reads has no zone either
    for name in ("old", "all"):
        (folder / name).mkdir()
    for number in range(FILES):
        moments = [
            start + timedelta(minutes=7 * number + seeded.randint(-9, 6), seconds=seeded.randint(0, 59))
            for _ in range(50)
        ]
        rows = [{"page": seeded.choice("abc"), "clicked_at": moment.isoformat()} for moment in moments]
        for name in ("old", "all") if number < FILES_BEFORE else ("all",):
            file = folder / name / f"{number:03d}.json"
            file.write_text("".join(json.dumps(row) + "\n" for row in rows))
            os.utime(file, (1_767_225_600 + number, 1_767_225_600 + number))


def _situation(
    folder: Path, name: str, old_output: str | None, first_file: int, *, stateful: bool = False
) -> dict[str, Any]:
    left, output = folder / f"input-{name}", folder / "after" / name
    left.mkdir()
    for file in sorted((folder / "all").iterdir())[first_file:]:
        shutil.copy2(file, left)
    if old_output is not None:
        shutil.copytree(folder / "out" / old_output, output)
        # The manifest names files by their whole paths.
        original = folder / "out" / old_output
        for entry in (output / "_spark_metadata").iterdir():
            if entry.name.startswith("."):
                entry.unlink()
            else:
                entry.write_text(entry.read_text().replace(str(original), str(output)))
    checkpoint = str(folder / f"checkpoint-{name}")
    return {"input": str(left), "checkpoint": checkpoint, "output": str(output), "files": 1, "stateful": stateful}


def _files_before(folder: Path, stream: str, at: str) -> int:
    read: int = _offsets(folder, stream, at)["sources"][0]["files_read"]
    return read


def _effects(folder: Path, stream: str, at: str) -> dict[tuple[str, str], dict[str, Any]]:
    effects = _offsets(folder, stream, at)["manual_restart"]["effects"]
    # The first of a kind: effects of the source come last.
    return {(effect["output"], effect["risk"]): effect for effect in reversed(effects)}


def _offsets(folder: Path, stream: str, at: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(_slackwater(folder, "offsets", stream, "--at", at, "--format", "json"))
    return document


def _slackwater(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "slackwater", *arguments],
        cwd=folder,
        env=_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _environment() -> dict[str, str]:
    # The rows' times have no zone, so the zone of the session is part of the data.
    return {**os.environ, "TZ": "UTC", "PYSPARK_PYTHON": sys.executable}


def _clicks(folder: Path) -> Rows:
    """All rows that there are, as ``rows_of`` shows them."""
    lines = [json.loads(line) for file in (folder / "all").iterdir() for line in file.read_text().splitlines()]
    moments = [(line["page"], datetime.fromisoformat(line["clicked_at"])) for line in lines]
    return Counter(repr([("clicked_at", str(moment)), ("page", page)]) for page, moment in moments)
