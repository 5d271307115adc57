"""After an edit of the table a plain run is refused, and what it prints leads to the rows that the new code gives.

The rows of a rebuild are those that were written, and from there on those of the new code alone; those of a reset are
the new code's alone, over all of the input: in a new output, or, of a batch function, in the batches after those that
it has written. All edits but one are typed by ``scripts/test --all``; the gate types one of each effect.
"""

import json
import os
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet
import pytest

from tests.runtime.verdict.edits import ALL, FIRST, Edit, add_input, clear, edits, lay_down
from tests.support import warm_python
from tests.support.outputs import Rows, manifest_ids, row_text, rows_of
from tests.support.warm_jvm import attached

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
CONF = ("--conf", "spark.sql.shuffle.partitions=2", "--conf", "spark.sql.session.timeZone=UTC", "--master", "local[2]")
RUN = ("run", "pipeline.py", "--until-caught-up", *CONF)
LOGIN = ("--conf", "spark.app.url=postgresql://web:pw@host/web")
"""A setting that is not recorded, because of its password."""
IN_THE_GATE = {"sum to max"}
STEPS = 4
JOINS = {"inner", "outer"}
HOUR_S = 3600
NOT_EXACT = {
    "deduplication within the watermark": "which row of a key comes first depends on the order within a batch",
    "column of a deduplication within the watermark": "as above",
    "kind of a source": "a query with another kind of source is another stream",
}
OTHER_STREAM = "kind of a source"
FUNCTION = "sinks.foreach_batch("
"""In the pipelines whose batch function writes each batch to a folder of its own."""


def _typed() -> Iterator[object]:
    for edit in edits():
        if edit.verdict in ("harmless", "compatible") or edit.name == OTHER_STREAM:
            continue
        marks = [] if edit.name in IN_THE_GATE else [pytest.mark.thorough]
        yield pytest.param(edit, marks=marks, id=edit.name)


@dataclass
class Project:
    """A folder with a pipeline of the table. It is always the same one: logs of sources have its path."""

    folder: Path

    def type(self, *arguments: str, code: int | None = 0) -> str:
        """Type a command of Slackwater; what it prints. ``code`` ``None``: whatever it ends with."""
        done = warm_python.run(arguments, self.folder, attached(self.folder))
        assert code is None or done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def rows(self, first: int = 0) -> Rows:
        folders = {batch: self.folder / "out" / str(batch) for batch in self._folders() if batch >= first}
        tables = (pyarrow.parquet.read_table(folder) for folder in folders.values())
        found = Counter(row_text(row) for table in tables for row in table.to_pylist())
        return found + rows_of(self.folder / "out", first)

    def watermark_ms(self, batch: int) -> int:
        commit = self.folder / ".slackwater/streams/web/out/checkpoints/0001/commits" / str(batch)
        watermark: int = json.loads(commit.read_text().splitlines()[1]).get("nextBatchWatermarkMs", 0)
        return watermark

    def written(self) -> int:
        return max([*manifest_ids(self.folder / "out"), *self._folders()], default=-1)

    def _folders(self) -> list[int]:
        return [int(path.name) for path in (self.folder / "out").glob("*") if path.name.isdecimal()]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The folder that all edits use, one after another."""
    return Project(tmp_path_factory.mktemp("typed"))


def _alone(project: Project, edit: Edit, *parts: int, watermark_ms: int = 0) -> int:
    """Run the new code, which never had another one's state, over the input, until each of these parts of it is read.

    The first batch of the last part: where only one of the two codes has a watermark, their batches have other numbers.

    A run that has read everything advances the watermark once more, so the parts decide which rows are late. A filter
    can keep the watermark of the new code behind that of the old one, and a watermark never goes back: a join drops the
    rows of later parts that are late by ``watermark_ms``.
    """
    clear(project.folder)
    lay_down(project.folder, edit.base)
    edit.write(project.folder)
    start = 0
    for first, last in pairwise((0, *parts)):
        start = project.written() + 1
        add_input(project.folder, first, last)
        if first and edit.base in JOINS:
            _drop_late(project.folder, first, watermark_ms)
        project.type(*RUN)
    return start


def _still_in_state(later: Rows, watermark_ms: int) -> Rows:
    """Without clicks that have no order and had left the state by ``watermark_ms``, an hour after their time.

    The new code alone, whose watermark is behind, writes them in a later batch than the recorded watermark does.
    """
    kept = Counter(later)
    for row in later:
        clicked = re.search(r"'at', 'None'.*'ts', '([^']+)'", row)
        if clicked and datetime.fromisoformat(f"{clicked[1]}Z").timestamp() + HOUR_S <= watermark_ms / 1000:
            del kept[row]
    return kept


def _drop_late(folder: Path, first: int, watermark_ms: int) -> None:
    """Remove the late rows from the files from ``first`` on."""
    for name, column in (("landing", "ts"), ("orders", "at")):
        for file in (folder / name).glob("*.json"):
            if int(file.stem) >= first:
                rows = [json.loads(line) for line in file.read_text().splitlines()]
                kept = [row for row in rows if datetime.fromisoformat(row[column]).timestamp() * 1000 > watermark_ms]
                written = file.stat().st_mtime
                file.write_text("\n".join(map(json.dumps, kept)))
                os.utime(file, (written, written))


def _printed(text: str) -> list[list[str]]:
    found = []
    for line in text.splitlines():
        place = line.find("slackwater ")
        if place >= 0 and line[:place].endswith((": ", "hint: ", "next: ")):
            found.append(shlex.split(line[place:].partition(";")[0])[1:])
    return found


def _follow(project: Project, printed: str) -> list[str]:
    """Type the first printed command, then the first that this prints, up to a run; the goals and verbs typed.

    A plan that is refused prints how it is made at the user's word.
    """
    typed: list[str] = []
    for _ in range(STEPS):
        words = _printed(printed)[0]
        typed.append(" ".join(words[:2]))
        if words[0] == "plan" and "--out" not in words:
            words += ["--out", "plan.json", "--force", *CONF]
        if words[0] == "apply":
            words += ["--yes", *CONF]
        if words[0] == "run":
            project.type(words[0], words[1], "--until-caught-up", *words[2:], *CONF)
            return typed
        printed = project.type(*words, code=None if words[0] == "plan" else 0)
        if words[0] == "plan" and "error " not in printed:
            printed = f"next: slackwater apply {shlex.quote(words[words.index('--out') + 1])}"
    raise AssertionError(f"no run was reached: {typed}")


@pytest.mark.parametrize("edit", list(_typed()))
def test_what_is_printed_leads_to_the_rows_of_the_new_code(project: Project, edit: Edit) -> None:
    clear(project.folder)
    lay_down(project.folder, edit.base)
    add_input(project.folder, 0, FIRST)
    project.type(*RUN)
    edit.write(project.folder)
    add_input(project.folder, FIRST, ALL)
    old, last = project.rows(), project.written()
    watermark_ms = project.watermark_ms(last)

    refused = project.type(*RUN, code=5)

    assert any(code in refused for code in edit.codes), refused
    assert "Traceback" not in refused
    assert project.rows() == old
    kept, accepted = project.folder.with_name("kept"), None
    if edit.verdict == "changes-rows":
        codes = [word for words in _printed(refused) if "--accept" in words for word in words if word in edit.codes]
        assert codes, refused
        shutil.copytree(project.folder, kept)
        project.type(*RUN, *(word for code in dict.fromkeys(codes) for word in ("--accept", code)))
        project.type(*RUN)
        accepted = project.rows()
        clear(project.folder)
        shutil.copytree(kept, project.folder, dirs_exist_ok=True)
        shutil.rmtree(kept)
    typed = _follow(project, refused)
    rebuilt = typed[0] == "plan rebuild"
    assert rebuilt or typed[0] == "plan reset" or (accepted and typed[0].startswith("run ")), typed
    found = project.rows()
    project.type(*RUN)
    assert project.rows() == found, "a second run has nothing to do"
    if typed[0].startswith("run "):
        # No rebuild would give other rows: the state means the same, and what comes from here on is in other rows.
        expected = accepted
    elif rebuilt:
        start = _alone(project, edit, FIRST, ALL, watermark_ms=watermark_ms)
        expected = old + _still_in_state(project.rows(start), watermark_ms)
    else:
        _alone(project, edit, ALL)
        expected = project.rows() + (old if FUNCTION in edit.before else Counter())
    if edit.name not in NOT_EXACT:
        assert found == expected, typed


@pytest.mark.thorough
def test_another_kind_of_source_is_refused_when_it_is_planned(project: Project) -> None:
    [edit] = [one for one in edits() if one.name == OTHER_STREAM]
    clear(project.folder)
    lay_down(project.folder, edit.base)
    add_input(project.folder, 0, FIRST)
    project.type(*RUN)
    edit.write(project.folder)
    words = _printed(project.type(*RUN, code=5))[0]

    refused = project.type(*words, "--out", "plan.json", "--force", *CONF, code=5)

    assert words[:2] == ["plan", "reset"]
    assert "error target-unsupported: " in refused
    assert "hint: a query whose sources were replaced is a new stream" in refused


@pytest.mark.thorough
@pytest.mark.parametrize("output", ["swap", "keep"])
def test_a_reset_takes_the_time_zone_of_the_runs(project: Project, output: str) -> None:
    zone = ("--conf", "spark.sql.session.timeZone=Asia/Tokyo")
    clear(project.folder)
    lay_down(project.folder, "tumbling")
    add_input(project.folder, 0, ALL)
    project.type(*RUN, *zone)
    rows = project.rows()

    plan = ("plan", "reset", "out", "--from", "earliest", "--output", output, "--out", "plan.json", "--force")
    project.type(*plan)
    project.type("apply", "plan.json", "--confirm", "out")
    project.type(*RUN, *zone)

    assert project.rows() == (rows if output == "swap" else rows + rows)


@pytest.mark.parametrize(
    ("what", "setting", "values"),
    [
        ("a setting of the user's own", "spark.app.least", ("1", "2")),
        pytest.param(
            "the time zone", "spark.sql.session.timeZone", ("Asia/Tokyo", "Europe/Berlin"), marks=pytest.mark.thorough
        ),
    ],
)
def test_what_only_a_setting_has_changed_is_not_rebuilt(
    project: Project, what: str, setting: str, values: tuple[str, str]
) -> None:
    """A rebuild replays under the settings of the runs: the state would be the same, and so would the refusal."""
    old, new = (("--conf", f"{setting}={value}") for value in values)
    clear(project.folder)
    lay_down(project.folder, "tumbling")
    file = project.folder / "pipeline.py"
    file.write_text(_with_setting(file.read_text(), what))
    add_input(project.folder, 0, FIRST)
    project.type(*RUN, *LOGIN, *old)
    add_input(project.folder, FIRST, ALL)

    refused = project.type(*RUN, *LOGIN, *new, code=5)
    checked = project.type("check", "pipeline.py", *CONF, *LOGIN, *new, code=1)

    assert "plan rebuild" not in refused + checked
    printed = _printed(refused)[:2]
    assert shlex.join(printed[0]) in checked
    # Of a secret the command has the name only.
    started, again = ([LOGIN[1] if word == "spark.app.url=VALUE" else word for word in words] for words in printed)
    session = len((*CONF, *LOGIN, *new))
    assert (started[0], sorted(started[2:])) == ("run", sorted((*CONF, *LOGIN, *old))), refused
    assert (again[:3], sorted(again[-session:])) == (["plan", "reset", "web/out"], sorted((*CONF, *LOGIN, *new)))
    project.type(*started, "--until-caught-up")
    project.type(*again, "--out", "plan.json", "--force")
    project.type("apply", "plan.json", "--confirm", "out", *again[-session:])
    project.type(*RUN, *LOGIN, *new)


def _with_setting(code: str, what: str) -> str:
    """The query with a part whose value, or meaning, comes from a setting of the session."""
    if what == "the time zone":
        return code.replace('"1 hour"), "page")', '"1 hour"), "page", F.hour("ts2").alias("hour"))')
    least = 'F.col("n") > int(spark.conf.get("spark.app.least")) * bool(spark.conf.get("spark.app.url"))'
    return code.replace("        .withWatermark(", f"        .where({least})\n        .withWatermark(")
