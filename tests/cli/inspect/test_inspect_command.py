"""The command as a user runs it: exit codes, the page, the document, state rows, and what is no checkpoint."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from slackwater.core.records import GenerationRecord, StreamRecord
from slackwater.ledger.home import Home
from slackwater.ledger.ledger import Ledger
from slackwater.storage.open import open_write_store
from tests.support.corpus import corpus_case, corpus_folder

VERSION = "4.3.0"
CASE = "join_inner_hdfs"


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return corpus_case(VERSION, CASE, tmp_path / "corpus") / "checkpoint"


def run(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "slackwater", "inspect", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


def document(*arguments: str | Path, code: int = 0) -> dict[str, Any]:
    done = run(*arguments, "--format", "json")
    assert done.returncode == code, done.stderr
    parsed: dict[str, Any] = json.loads(done.stdout)
    return parsed


def test_sizes_of_very_many_files_are_read_when_asked_for(checkpoint: Path) -> None:
    (checkpoint / "more").mkdir()
    for number in range(2000):
        (checkpoint / "more" / str(number)).write_bytes(b"12")

    quick, thorough = document(checkpoint), document(checkpoint, "--operators")

    assert quick["files"]["bytes"] is None
    assert [store["bytes"] for store in quick["operators"][0]["stores"]] == [None] * 4
    assert thorough["files"]["bytes"] == sum(file.stat().st_size for file in checkpoint.rglob("*") if file.is_file())
    for store in thorough["operators"][0]["stores"]:
        files = checkpoint.glob(f"state/0/*/{store['name']}/*")
        assert store["bytes"] == sum(file.stat().st_size for file in files if file.is_file())


def test_document(checkpoint: Path) -> None:
    found = document(checkpoint)
    assert found["schema"] == "slackwater.inspect/1"
    assert found["location"] == str(checkpoint)
    assert found["marks"] == {"planned": 5, "committed": 5, "state": 5}
    assert found["next_batch"]["id"] == 6
    assert found["next_batch"]["mode"] == "replan"
    assert found["next_batch"]["end"] is None
    assert [item["offset"] for item in found["next_batch"]["start"]] == [{"logOffset": 4}, {"logOffset": 4}]
    assert found["log_versions"] == {"offsets": 1, "commits": 1}
    assert found["spark_version"]["at_least"] == "4.3"
    assert [line["id"] for line in found["batches"]] == list(range(6))
    assert found["sources"][0] == {
        "index": 0, "name": "0", "kind": "file", "log": {"first": 0, "last": 4, "files": 5}, "initial": None,
    }  # fmt: skip
    assert [store["versions"] for store in found["operators"][0]["stores"]] == [
        {"first": 1, "last": 6, "missing": []}
    ] * 4
    assert found["operators"][0]["stores"][0]["rows"] is None
    assert found["files"]["count"] == sum(1 for path in checkpoint.rglob("*") if path.is_file())
    assert found["files"]["bytes"] == sum(path.stat().st_size for path in checkpoint.rglob("*") if path.is_file())
    assert found["settings"]["spark.sql.shuffle.partitions"] == "2"
    assert found["damage"] == []


def test_rows_are_counted_where_asked(checkpoint: Path) -> None:
    stores = document(checkpoint, "--operators")["operators"][0]["stores"]
    assert {store["name"]: store["rows"] for store in stores} == {
        "left-keyToNumValues": 3,
        "left-keyWithIndexToValue": 7,
        "right-keyToNumValues": 3,
        "right-keyWithIndexToValue": 6,
    }


def test_page(checkpoint: Path) -> None:
    done = run(checkpoint)
    assert done.returncode == 0
    for piece in (
        "committed  5", "Next batch: 6", "symmetricHashJoin", "versions 1 to 6", "4.3 or later", "Damage: none found",
        "^ planned, committed, state",
    ):  # fmt: skip
        assert piece in done.stdout
    assert "Traceback" not in done.stderr


def test_page_of_a_batch_with_everything(checkpoint: Path) -> None:
    done = run(checkpoint, "--batch", "2", "--operators", "--sources", "--conf")
    assert done.returncode == 0
    assert "Batch 2" in done.stdout
    assert "0:0  " in done.stdout
    assert "streaming.join.stateFormatVersion" in done.stdout


def test_a_batch_that_is_not_kept(checkpoint: Path) -> None:
    done = run(checkpoint, "--batch", "77")
    assert done.returncode == 4
    assert "from 0 to 5" in " ".join(done.stderr.split())


def test_damage_is_exit_3(checkpoint: Path) -> None:
    (checkpoint / "offsets" / "3").write_bytes(b"")
    (checkpoint / "state/0/1/left-keyToNumValues/6.delta").unlink()
    found = document(checkpoint, code=3)
    paths = {item["path"]: item["kind"] for item in found["damage"]}
    assert paths["offsets/3"] in {"empty", "checksum"}
    assert paths["state/0/1/left-keyToNumValues/6.delta"] == "missing"
    assert found["marks"] == {"planned": 5, "committed": 5, "state": 4}
    assert "Damage (" in run(checkpoint).stdout


def test_state_rows(checkpoint: Path) -> None:
    found = document(checkpoint, "--state", "0", "--side", "left", "--limit", "2")
    assert found["schema"] == "slackwater.inspect.state/1"
    assert (found["total"], len(found["rows"])) == (7, 2)
    assert found["rows"][0]["key"] == {"field0": "k0"}
    assert set(found["rows"][0]["value"]) == {"lts", "lk", "lv"}
    assert found["rows"][0]["matched"] is True
    page = run(checkpoint, "--state", "0", "--store", "right-keyToNumValues", "--partition", "1", "--batch", "3")
    assert page.returncode == 0
    assert "right-keyToNumValues, after batch 3" in page.stdout


def test_state_to_parquet(checkpoint: Path, tmp_path: Path) -> None:
    target = tmp_path / "rows.parquet"
    done = run(checkpoint, "--state", "0", "--side", "right", "--to", target)
    assert done.returncode == 0, done.stderr
    assert pq.read_table(target).num_rows == 6
    assert "6 rows written" in done.stdout
    assert target.stat().st_mode & 0o777 == 0o600


def test_state_that_must_be_named(checkpoint: Path) -> None:
    done = run(checkpoint, "--state", "0")
    assert done.returncode == 2
    assert "left-keyToNumValues" in done.stderr
    assert run(checkpoint, "--state", "4").returncode == 4
    assert run(checkpoint, "--state", "0", "--side", "left", "--partition", "9").returncode == 4
    assert run(checkpoint, "--side", "left").returncode == 2


def test_raw(checkpoint: Path) -> None:
    assert run(checkpoint, "--raw", "commits/5").stdout == (checkpoint / "commits/5").read_text() + "\n"
    records = run(checkpoint, "--raw", "state/0/0/left-keyToNumValues/1.delta").stdout.splitlines()
    assert json.loads(records[0])["op"] == "put"
    schema = json.loads(run(checkpoint, "--raw", "state/0/0/left-keyToNumValues/_metadata/schema").stdout)
    assert schema["families"][0]["key"]["fields"][0]["name"] == "field0"
    assert run(checkpoint, "--raw", "nothing").returncode == 4


def test_a_stream_by_its_name(checkpoint: Path, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    with Ledger.open(home.ledger_url, create=True) as ledger:
        ledger.register_stream(StreamRecord("weather", "hourly", {"kind": "noop"}, "append", "pipeline.py"))
        ledger.add_generation(GenerationRecord("weather/hourly", 1, str(checkpoint)))
    for name in ("hourly", "weather/hourly"):
        assert document(name, "--home", home.location)["location"] == str(checkpoint)
    assert run("nightly", "--home", home.location).returncode == 4


def test_file_uri(checkpoint: Path) -> None:
    assert document(checkpoint.as_uri())["marks"]["planned"] == 5


@pytest.mark.parametrize("make", ["empty", "sink", "parent", "delta", "iceberg", "file", "absent", "inside", "other"])
def test_what_is_no_checkpoint(make: str, checkpoint: Path, tmp_path: Path) -> None:
    place = tmp_path / "place"
    words = {
        "empty": "an empty folder",
        "sink": "an output directory of the file sink",
        "parent": "a parent of checkpoints",
        "delta": "a Delta table",
        "iceberg": "an Iceberg table",
        "file": "a file",
        "absent": "no path or stream with this name",
        "inside": "inside a checkpoint",
        "other": "other entries",
    }[make]
    if make == "sink":
        shutil.copytree(corpus_folder(VERSION, "file_json_to_parquet_filesink") / "sink", place)
    elif make == "parent":
        place = checkpoint.parent
        shutil.copytree(checkpoint, place / ".a.held")
    elif make == "inside":
        place = checkpoint / "offsets"
    elif make == "file":
        place.write_text("x")
    elif make != "absent":
        place.mkdir()
    if make == "delta":
        (place / "_delta_log").mkdir()
    if make == "iceberg":
        (place / "metadata").mkdir()
        (place / "metadata" / "v1.metadata.json").write_text("{}")
    if make == "other":
        (place / "a.csv").write_text("x")
    done = run(place, cwd=tmp_path)
    assert done.returncode == 4
    assert words in " ".join(done.stderr.split())
    assert "hint" in done.stderr
    assert make != "parent" or f"slackwater inspect {checkpoint}" in "".join(done.stderr.split("\n"))


def test_s3(checkpoint: Path, s3_location: str) -> None:
    store = open_write_store(s3_location)
    for path in checkpoint.rglob("*"):
        if path.is_file() and not path.name.startswith("."):
            store.write(str(path.relative_to(checkpoint)), path.read_bytes())
    assert document(s3_location, "--operators")["marks"] == {"planned": 5, "committed": 5, "state": 5}
    found = document(s3_location, "--state", "0", "--side", "left")
    assert found["total"] == 7


def test_nothing_is_written(checkpoint: Path) -> None:
    before = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in checkpoint.rglob("*")}
    run(checkpoint, "--operators", "--sources")
    run(checkpoint, "--state", "0", "--side", "left")
    assert {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in checkpoint.rglob("*")} == before
