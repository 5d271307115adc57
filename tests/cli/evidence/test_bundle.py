"""``slackwater evidence``: what is in a bundle, and that nothing else is written."""

import json
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from slackwater.cli.main import main
from slackwater.cli.verbs.evidence import bundle, examine_for_evidence
from slackwater.cli.verbs.evidence.document import make_evidence
from slackwater.core.settings import load
from tests.cli.evidence.cases import CASES
from tests.cli.evidence.conftest import Evidence, contents
from tests.support.homes import QUERY_ID, STREAM, HomeSpec, edit_ledger, make_home

VOID = {"meta", "br"}


class _Checked(HTMLParser):
    """Fails where an element is not closed by its own end tag."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen |= {tag, *(name for name, _ in attrs if name.startswith("on"))}
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, self.getpos()


def _files_in(folder: Path) -> dict[str, bytes]:
    """All files but the bundle; SQLite's index of its log is written by readers, too, and removed by the last one."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name != "bundle.zip" and not file.name.endswith(("-shm", "-wal"))
    }


@pytest.mark.parametrize("name", CASES)
def test_every_case_has_a_valid_document_and_a_whole_page(evidence: Evidence, tmp_path: Path, name: str) -> None:
    arguments = CASES[name](tmp_path)
    before = _files_in(tmp_path)

    made = evidence(*arguments)

    assert made.code == 0, made.err
    assert set(made.files) == {"README.txt", "evidence.html", "evidence.json"}
    assert made.document["schema"] == "slackwater.evidence/1"
    checked = _Checked()
    checked.feed(made.page)
    assert checked.open == []
    assert checked.seen.isdisjoint({"script", "link", "img", "iframe", "b", "onclick", "onload"})
    assert _files_in(tmp_path) == before


def test_what_a_colleague_needs(evidence: Evidence, tmp_path: Path) -> None:
    home = make_home(tmp_path, HomeSpec(planned=7, committed=6, state=6, written=9, run="failed"))

    document = evidence(STREAM).document

    assert document["schema"] == "slackwater.evidence/1"
    head = {key: document["head"][key] for key in ("state", "code", "risk", "goal", "next")}
    assert head == {
        "state": "stop",
        "code": "sink-ahead",
        "risk": "skip",
        "goal": "rebuild",
        "next": f"slackwater plan rebuild {STREAM}",
    }
    checkpoint, marks = document["checkpoint"], document["marks"]
    assert checkpoint["location"] == str(home / "streams" / STREAM / "checkpoints" / "0001")
    assert checkpoint["query_id"] == QUERY_ID
    assert checkpoint["settings"] == {"spark.sql.shuffle.partitions": "1"}
    assert [marks[name] for name in ("planned", "committed", "state", "written")] == [7, 6, 6, 9]
    assert document["sources"][0]["start"] == {"logOffset": 6}
    assert document["sources"][0]["end"] == {"logOffset": 7}
    assert document["operators"][0]["stores"][0]["provider"] == "hdfs"
    assert document["sink"]["identity"]["kind"] == "files"
    assert document["stream"]["output_mode"] == "append"
    assert document["runs"][0]["spark_version"] == "4.1.3"
    assert document["batches"][6]["input_rows"] == 100
    assert [one["code"] for one in document["findings"]] == ["sink-ahead", "failed"]


def test_the_lanes_show_what_each_place_still_has(evidence: Evidence, tmp_path: Path) -> None:
    lanes = evidence(*CASES["damaged"](tmp_path)).document["lanes"]

    kept = {lane["name"]: (lane["mark"], lane["kept"], lane["damaged"]) for lane in lanes}
    assert kept["planned"] == (6, [[0, 2], [4, 6]], [6])
    assert kept["committed"] == (5, [[0, 5]], [])
    assert kept["written"] == (5, [[0, 5]], [])
    assert kept["recorded"] == (5, [[0, 5]], [])


def test_batches_before_the_first_of_the_checkpoint_are_committed(evidence: Evidence, tmp_path: Path) -> None:
    home = make_home(tmp_path, HomeSpec(planned=7, committed=6, state=6, written=6))
    for batch in (0, 1):
        for folder in ("offsets", "commits"):
            (home / "streams" / STREAM / "checkpoints" / "0001" / folder / str(batch)).unlink()

    batches = evidence(STREAM).document["batches"]

    committed = {one["batch"]: one["committed"] for one in batches}
    assert committed == dict.fromkeys(range(7), True) | {7: False}


def test_it_has_all_that_doctor_finds(evidence: Evidence, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = CASES["damaged"](tmp_path)
    document = evidence(*arguments).document
    main(["doctor", *arguments, "--format", "json"])
    diagnosed = json.loads(capsys.readouterr().out)["streams"][0]

    assert [one["code"] for one in document["findings"]] == [one["code"] for one in diagnosed["findings"]]
    assert [one["text"] for one in document["findings"]] == [one["text"] for one in diagnosed["findings"]]
    assert [one.get("next") for one in document["findings"]] == [one.get("next") for one in diagnosed["findings"]]


def test_a_checkpoint_that_was_never_run_here(evidence: Evidence, tmp_path: Path) -> None:
    document = evidence(*CASES["foreign"](tmp_path)).document

    assert not document["stream"]["recorded"]
    assert document["marks"]["written"] == document["marks"]["committed"]
    assert document["sink"]["outputs"][0]["kind"] == "files"
    assert [one["what"] for one in document["unknown"]] == ["ledger"]


def test_what_could_not_be_read_is_said(evidence: Evidence, tmp_path: Path) -> None:
    made = evidence(*CASES["unreachable-sink"](tmp_path))

    assert "sink" in [one["what"] for one in made.document["unknown"]]
    assert made.document["marks"]["written"] is None
    assert "What could not be read" in made.page
    assert made.document["not_checked"]
    assert made.document["head"]["state"] != "healthy"


def test_without_the_ledger_the_files_of_the_stream_are_read(evidence: Evidence, tmp_path: Path) -> None:
    made = evidence(*CASES["lost-ledger"](tmp_path))

    document = made.document
    assert document["head"]["code"] == "ledger-lost"
    assert document["head"]["next"] == f"slackwater plan resume {STREAM}"
    assert [document["marks"][name] for name in ("planned", "committed", "written")] == [5, 5, 5]
    assert not document["runs"]
    assert document["unknown"][0]["what"] == "ledger"


def test_without_the_ledger_a_location_is_its_stream(evidence: Evidence, tmp_path: Path) -> None:
    CASES["lost-ledger"](tmp_path)
    checkpoint = Path(".slackwater/streams", STREAM, "checkpoints/0001")
    shutil.rmtree(tmp_path / checkpoint)
    for target in (str(checkpoint), f"./{checkpoint}", str(tmp_path / checkpoint)):
        document = evidence(target, "--force").document
        assert document["stream"]["name"] == STREAM, target
        assert document["marks"]["written"] == 5
        assert document["unknown"][0]["what"] == "ledger"


def test_a_damaged_ledger_does_not_hide_the_stream(evidence: Evidence, tmp_path: Path) -> None:
    CASES["lost-ledger"](tmp_path)
    (tmp_path / ".slackwater" / "ledger.db").write_bytes(b"no database" * 100)

    document = evidence(STREAM).document

    assert document["head"]["code"] == "ledger-unreadable"
    assert document["marks"]["committed"] == 5


def test_a_checkpoint_that_cannot_be_reached_leaves_what_the_ledger_has(evidence: Evidence, tmp_path: Path) -> None:
    home = make_home(tmp_path)
    edit_ledger(home, "UPDATE generations SET location = 'hdfs://127.0.0.1:1/checkpoint'")

    document = evidence(STREAM).document

    assert document["checkpoint"] is None
    assert document["head"]["state"] == "stop"
    assert len(document["runs"]) == 1
    assert len(document["batches"]) == 6
    assert "checkpoint" in [one["what"] for one in document["unknown"]]


def test_the_causes_of_an_error_text_are_added_without_the_text(evidence: Evidence, tmp_path: Path) -> None:
    make_home(tmp_path)
    (tmp_path / "driver.log").write_text("java.lang.IllegalStateException: batch 6 doesn't exist\n")

    made = evidence(STREAM, "--error", "driver.log")

    assert "LOG-06" in [one["code"] for one in made.document["errors"][0]["causes"]]
    assert "Causes of the error text" in made.page
    assert not any("IllegalStateException" in text for text in made.files.values())


def test_the_same_facts_are_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_home(tmp_path, HomeSpec(planned=7, committed=6, state=6, written=9, run="failed"))

    first, again, later = (
        bundle(make_evidence(load(), *examine_for_evidence(load(), STREAM), made_ms, messages=False))
        for made_ms in (1, 1, 2)
    )

    assert first == again
    assert first != later


def test_every_field_is_documented(evidence: Evidence, tmp_path: Path) -> None:
    page = Path(__file__).parents[3].joinpath("docs", "json.md").read_text()
    section = page.partition("## `slackwater.evidence/1`")[2].partition("\n## ")[0]
    CASES["damaged"](tmp_path)
    (tmp_path / "driver.log").write_text("java.lang.IllegalStateException: batch 6 doesn't exist\n")

    names = set(_names(evidence(STREAM, "--error", "driver.log").document))

    assert {"event_time_min_ms", "guarantee_reason", "spark_evidence", "conditions", "causes"} <= names
    assert sorted(name for name in names if f"`{name}`" not in section) == []


_OF_THE_STREAM = frozenset(
    {"settings", "options", "properties", "identity", "facts", "explanation", "start", "end", "latest", "offset"}
)


def _names(value: Any) -> Iterator[str]:
    """The names of the fields, without those that the user or Spark has chosen."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield name
            if name not in _OF_THE_STREAM:
                yield from _names(item)
    for item in value if isinstance(value, list) else ():
        yield from _names(item)


def test_an_existing_file_is_not_replaced(
    tmp_path: Path, evidence: Evidence, capsys: pytest.CaptureFixture[str]
) -> None:
    make_home(tmp_path)
    (tmp_path / "bundle.zip").write_bytes(b"of somebody")

    assert main(["evidence", STREAM, "--out", "bundle.zip"]) == 2
    assert "out-exists" in capsys.readouterr().err
    assert (tmp_path / "bundle.zip").read_bytes() == b"of somebody"
    assert evidence(STREAM).code == 0
    assert (tmp_path / "bundle.zip").stat().st_mode & 0o777 == 0o600
    assert sorted(contents(tmp_path / "bundle.zip")) == ["README.txt", "evidence.html", "evidence.json"]


def test_json_on_stdout_is_the_document(evidence: Evidence, tmp_path: Path) -> None:
    make_home(tmp_path)

    made = evidence(STREAM, "--format", "json")

    assert made.out == made.files["evidence.json"]


def test_a_sink_of_a_stream_is_refused_with_the_command_that_works(evidence: Evidence, tmp_path: Path) -> None:
    make_home(tmp_path)

    refused = evidence(STREAM, "--sink", "out")
    hint = refused.err.partition("hint: leave --sink out: ")[2].split()

    assert hint[0] == "slackwater"
    assert main(hint[1:]) == 0
