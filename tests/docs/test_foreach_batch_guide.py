"""The pipeline of the guide "From foreachBatch to a sink": MERGE, an upsert and two outputs, each row once."""

import json
import os
import re
import shutil
import sqlite3
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.docs.reader import ROOT
from tests.support import warm_python
from tests.support.warm_jvm import attached

GUIDE = (ROOT / "docs" / "guides" / "foreach-batch.md").read_text(encoding="utf-8")
FILES = ([(1, "new"), (2, "new")], [(1, "paid")], [(2, "sent"), (3, "new")])


def typed(folder: Path, command: str) -> None:
    done = warm_python.run(command.split(), folder, attached(folder))
    assert done.returncode == 0, done.stderr


def add_file(folder: Path, number: int) -> None:
    lines = [json.dumps({"id": key, "state": state}) for key, state in FILES[number]]
    file = folder / "orders" / f"{number}.json"
    file.write_text("\n".join(lines))
    # Spark reads files in the order of their times, and two of one millisecond in any order.
    os.utime(file, (number, number))


def rows_of(table: Path) -> list[tuple[int, str]]:
    return sorted((row["id"], row["state"]) for row in DeltaTable(table).to_pyarrow_table().to_pylist())


@pytest.mark.spark
def test_a_merge_an_upsert_and_two_outputs_have_each_row_once_also_after_a_rebuild(tmp_path: Path) -> None:
    [block] = re.findall(r"^```python\n(.*?)^```", GUIDE, flags=re.DOTALL | re.MULTILINE)
    (tmp_path / "orders.py").write_text(block)
    (tmp_path / "orders").mkdir()
    for number in range(2):
        add_file(tmp_path, number)
    typed(tmp_path, "run orders.py --until-caught-up")
    shutil.rmtree(tmp_path / ".slackwater/streams/orders/logged/checkpoints/0001")
    typed(tmp_path, "plan rebuild logged --out plan.json")
    typed(tmp_path, "apply plan.json --yes")
    add_file(tmp_path, 2)
    typed(tmp_path, "run orders.py --until-caught-up")

    newest = [(1, "paid"), (2, "sent"), (3, "new")]
    assert rows_of(tmp_path / "out/orders") == newest
    assert rows_of(tmp_path / "out/log") == sorted(row for file in FILES for row in file)
    with sqlite3.connect(tmp_path / "orders.db") as database:
        assert sorted(database.execute("SELECT id, state FROM orders")) == newest
        assert sorted(database.execute("SELECT rows FROM counts")) == [(1,), (2,), (2,)]
