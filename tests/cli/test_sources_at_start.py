"""What ``status`` says of a source that has something else than was read, or that does not answer."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from slackwater.core.program import Program, SourceShape, made_by
from slackwater.core.records import LogLine
from slackwater.facts.sources import ANSWER_S_MAX
from slackwater.ledger.ledger import Ledger
from slackwater.sources import kind_named
from slackwater.sources.common.contract import Asked
from tests.cli.conftest import Done, Slackwater
from tests.sinks import delta_logs
from tests.support.homes import START_MS, STATELESS, STREAM, HomeSpec, make_home, written_at

POSITION = '{"sourceVersion":1,"reservoirId":"%s","reservoirVersion":1,"index":-1,"isStartingVersion":false}'
QUIET = HomeSpec(state=None, layout=STATELESS)
LOG = "table/_delta_log"


def _reads(folder: Path, *shapes: SourceShape) -> None:
    """Record that the query of the home in this folder reads these."""
    with Ledger.open(folder / ".slackwater/ledger.db", create=False) as ledger:
        ledger.update_generation(STREAM, 1, programs=made_by(Program(sources=shapes).as_json()))


def _reads_table(folder: Path) -> None:
    make_home(folder, QUIET)
    for entry in (folder / ".slackwater/streams/clicks/per_page/checkpoints/0001/offsets").iterdir():
        entry.write_text("\n".join([*entry.read_text().splitlines()[:2], POSITION % delta_logs.ID]))
    _reads(folder, SourceShape("delta", str(folder / "table")))


def _codes(done: Done) -> Sequence[str]:
    return [finding["code"] for finding in done.document["streams"][0]["findings"]]


def test_brokers_that_do_not_answer_cost_two_seconds_and_are_said(slackwater: Slackwater, tmp_path: Path) -> None:
    make_home(tmp_path, replace(QUIET, source="kafka"))
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        _reads(tmp_path, SourceShape("kafka", "topics clicks", options={"kafka.bootstrap.servers": address}))
        began = time.monotonic()
        done = slackwater("status")
        took_s = time.monotonic() - began

    assert took_s < ANSWER_S_MAX + 1
    assert done.code == 0
    assert "not compared: source 0 cannot be asked for its positions" in done.out


def test_a_store_that_does_not_answer_costs_two_seconds_and_is_said(
    slackwater: Slackwater, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _reads_table(tmp_path)
    ended = threading.Event()
    monkeypatch.setattr("slackwater.sources.delta.live.open_read_store", lambda _: ended.wait())

    began = time.monotonic()
    done = slackwater("status")
    took_s = time.monotonic() - began
    ended.set()

    assert took_s < ANSWER_S_MAX + 1
    assert done.code == 0
    assert "not compared: source 0 cannot be asked for its positions: no answer within 2 s" in done.out


def test_a_table_that_was_created_again_is_found_without_its_files(slackwater: Slackwater, tmp_path: Path) -> None:
    _reads_table(tmp_path)
    delta_logs.commit(tmp_path / "table", delta_logs.TABLE)
    delta_logs.commit(tmp_path / "table", [{"add": "no file that a library could load"}])
    assert _codes(slackwater("status", "--format", "json")) == ["clean"]

    metadata = {**delta_logs.TABLE[2]["metaData"], "id": "another"}
    delta_logs.commit(tmp_path / "table", [{"metaData": metadata}])

    assert _codes(slackwater("status", "--format", "json"))[0] == "SW-DELTA-005"


def test_the_id_of_a_table_whose_log_was_compacted(tmp_path: Path) -> None:
    table = tmp_path / "table"
    for _ in range(2):
        delta_logs.commit(table, delta_logs.TABLE)
    DeltaTable(str(table)).create_checkpoint()
    (tmp_path / LOG / f"{0:020}.json").unlink()
    delta_logs.commit(table, [delta_logs.TABLE[0]])
    live = kind_named("delta").live()

    assert live.unserved(SourceShape("delta", str(table)), Asked(POSITION % delta_logs.ID)) == ()
    assert live.unserved(SourceShape("delta", str(table)), Asked(POSITION % "old"))[0].problem == "table-replaced"


@pytest.mark.parametrize("change", ["written later", "other bytes"])
def test_a_file_that_was_changed_after_it_was_read(slackwater: Slackwater, tmp_path: Path, change: str) -> None:
    home = make_home(tmp_path, QUIET)
    assert _codes(slackwater("status", "--format", "json")) == ["clean"]
    file = tmp_path / "clicks/004.json"
    if change == "written later":
        written_at(file, START_MS + 3_600_000)
    else:
        file.write_text("more")
        written_at(file, START_MS + 4)
        with Ledger.open(home / "ledger.db", create=False) as ledger:
            sizes = json.dumps({f"file://{file}": 0})
            ledger.record_lines([LogLine(STREAM, 1, "sizes/0", 4, sizes)])

    done = slackwater("status", "--format", "json")

    assert _codes(done) == ["SW-FSRC-005", "clean"]
    assert done.document["streams"][0]["findings"][0]["where"].endswith("clicks/004.json")
    assert done.code == 0
    assert "SW-FSRC-005" in slackwater("doctor").out
