"""The page docs/reference/conformance.md: what the tests show of each item of Spark's Structured Streaming guide."""

from __future__ import annotations

import importlib.metadata
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from slackwater.connectors.cache import known

LIST = Path(__file__).parents[1] / "tests" / "conformance" / "guide.toml"
EXACT = "exact"
GATE, ALIKE = "gate", "alike"
"""The parts of an area: without the rows that are like another one, and those rows."""
PAGE = """# Conformance with the programming guide

Each item of Spark's Structured Streaming programming guide, with the results of `tests/conformance` under Slackwater.
Each item's example is a pipeline that can be copied and run:

```sh
python examples/guide/make_input.py guide && cd guide
slackwater run ../examples/guide/operations/tumbling_window.py --until-caught-up
```

- **run**: the stream runs until it is caught up. *refused*: it is refused before it starts, with this error code.
- **after kill -9**: the application is killed in the middle of a batch and run again. *exact*: the output has the rows
  of an uninterrupted run (compared as multisets).
- **after rebuild**: it is killed in the same way, its checkpoint is deleted, and it is rebuilt and runs to the end.
  *refused*: with this error code, and nothing is changed.
- *at-least-once*: no row is missing, and rows of the interrupted batch are there twice.
- *lines lost*, *-*: the note has the guarantee, and its test shows exactly that.

{counts}
"""
RESULTS = LIST.with_name("results.toml")
VERSIONS = ("3.5.9", "4.0.5", "4.1.3", "4.3.0")
OWN = "4.1.3"
"""The version that is pinned."""
PROMISES = """
## Fault tolerance

The guide's tables of sources and sinks, with the measured results.

| source or sink | the guide | after kill -9 | after rebuild |
|---|---|---|---|
"""
MATRIX = """
## Versions of Spark

The number of rows with the results above. *gate*: `.ci/run` runs the tests of these rows with every change, on the
pinned version 4.1.3. The rest is the last result of `scripts/matrix`, which runs all areas on each version. Below are
the rows that a version lacks: a later API, a connector that is not locked for it, or an operation that it no longer
refuses.

| area | {heads} |
|---|{rule}
"""
HEADING = """
## {title}

| item of the guide | run | after kill -9 | after rebuild | note |
|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Row:
    """An item of the guide. ``open`` is what is missing where nothing is shown yet; ``absent`` what PySpark lacks.

    ``since`` is the first version of PySpark that has it, ``until`` the first that does not refuse it any more,
    ``connector`` the jar that it needs. ``like`` names the row, or the file of the test, that the gate runs instead.
    ``thorough``: the gate does not run its test.
    """

    name: str
    what: str
    refused: str = ""
    after_kill: str = EXACT
    after_rebuild: str = EXACT
    note: str = ""
    open: str = ""
    absent: str = ""
    since: str = ""
    until: str = ""
    connector: str = ""
    like: str = ""
    thorough: bool = False

    @property
    def has_example(self) -> bool:
        """Whether it can be run."""
        return not self.open and not self.absent

    @property
    def outcomes(self) -> tuple[str, str, str]:
        """What is shown: of a run, after a kill, after a rebuild."""
        if self.open:
            return "not yet", "", ""
        if self.absent:
            return "not in PySpark", "-", "-"
        if self.refused:
            return f"refused `{self.refused}`", "-", "-"
        return "runs", self._outcome(self.after_kill), self._outcome(self.after_rebuild)

    @staticmethod
    def _outcome(text: str) -> str:
        word, _, code = text.partition(" ")
        return f"refused `{code}`" if word == "refused" else text


@dataclass(frozen=True)
class Area:
    """A section of the guide."""

    name: str
    title: str
    rows: tuple[Row, ...]


@cache
def areas() -> tuple[Area, ...]:
    """The guide's list."""
    content = tomllib.loads(LIST.read_text(encoding="utf-8"))
    return tuple(Area(one["name"], one["title"], tuple(Row(**row) for row in one["rows"])) for one in content["area"])


def row_of(area: str, name: str) -> Row:
    """A row by its name."""
    return next(row for one in areas() if one.name == area for row in one.rows if row.name == name)


def shown(area: str) -> list[Row]:
    """The rows of an area that have an example, and that the installed Spark has."""
    return [row for one in areas() if one.name == area for row in one.rows if row.has_example and _is_there(row)]


def _is_there(row: Row) -> bool:
    """Whether the installed PySpark has what the row needs."""
    version = importlib.metadata.version("pyspark")
    its_time = _minor(row.since or "0.0") <= _minor(version) < _minor(row.until or "99.0")
    return its_time and (not row.connector or row.connector in known(version))


def _minor(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")[:2]))


def streams(area: str, part: str | None = None) -> list[str]:
    """The streams of an area that run: those of the gate, those that are like one of them, or all."""
    return [row.name for row in shown(area) if not row.refused and part in {None, ALIKE if row.like else GATE}]


def expected(area: str, names: Iterable[str] | None = None) -> dict[str, tuple[str, str]]:
    """What the rows of these streams are after the kill, and after the rebuild; by default of all of the area."""
    rows = {name: row_of(area, name) for name in (streams(area) if names is None else names)}
    return {name: (row.after_kill, row.after_rebuild) for name, row in rows.items()}


def page() -> str:
    """The whole page."""
    return PAGE.format(counts=_counts()) + "".join(map(_table, areas())) + _promises() + _versions()


def _promises() -> str:
    """The guide's tables of fault tolerance compared with what was measured."""
    rows = {f"{area.name}/{row.name}": row for area in areas() for row in area.rows}
    lines = []
    for one in tomllib.loads(LIST.read_text(encoding="utf-8"))["promise"]:
        run, after_kill, after_rebuild = rows[one["row"]].outcomes
        measured = after_kill or run, after_rebuild or "-"
        lines.append("| " + " | ".join((one["what"], one["guide"], *measured)) + " |\n")
    return PROMISES + "".join(lines)


def _versions() -> str:
    """What the gate runs, and what ``scripts/matrix`` found last, by area and version of Spark."""
    runs = tomllib.loads(RESULTS.read_text(encoding="utf-8"))["run"] if RESULTS.exists() else []
    found = {(run["area"], run["spark"]): run for run in runs}
    lines = []
    for area in areas():
        cells = [_outcome(found.get((area.name, version))) for version in VERSIONS]
        cells[VERSIONS.index(OWN)] = _by_the_gate(area, found.get((area.name, OWN)))
        lines.append(f"| {area.title} | " + " | ".join(cell or "not run" for cell in cells) + " |\n")
    heads = " | ".join(VERSIONS)
    return MATRIX.format(heads=heads, rule="---|" * len(VERSIONS)) + "".join(lines) + _lacking(runs)


def _outcome(run: dict[str, Any] | None) -> str:
    return f"{run['outcome']}, {run['date']}" if run else ""


def _by_the_gate(area: Area, found: dict[str, Any] | None) -> str:
    """The rows of an area whose tests the gate runs, compared with what ``scripts/matrix`` found of all."""
    rows = [row for row in area.rows if row.has_example and not (row.until and _minor(OWN) >= _minor(row.until))]
    run = sum(not row.like and not row.thorough for row in rows)
    if run == len(rows):
        return f"{run} rows, gate"
    if found and found.get("part") == ALIKE:
        return f"{run} rows, gate; the other {_outcome(found)}"
    return f"{_outcome(found)}; gate: {run}" if found else f"{run} rows, gate; {len(rows) - run} not run"


def _lacking(runs: list[dict[str, Any]]) -> str:
    """The rows that each version lacks, and what for."""
    lines = []
    for version in VERSIONS:
        rows = [(run["area"], name) for run in runs if run["spark"] == version for name in run.get("lacking", ())]
        reasons: dict[str, list[str]] = {}
        for area, name in rows:
            reasons.setdefault(_missing(row_of(area, name), version), []).append(f"`{area}/{name}`")
        lines += [f"- {version}: {reason}: {', '.join(names)}.\n" for reason, names in reasons.items()]
    return "\n" + "".join(lines) if lines else ""


def _missing(row: Row, version: str) -> str:
    """What a version lacks for a row."""
    if row.until and _minor(version) >= _minor(row.until):
        return "not refused there"
    later = _minor(version) < _minor(row.since or "0.0")
    return f"Spark {row.since} and later" if later else f"no jar of `{row.connector}` is locked"


def _counts() -> str:
    rows = [row for area in areas() for row in area.rows]
    done = [row for row in rows if row.has_example]
    absent = sum(bool(row.absent) for row in rows)
    exact = [row for row in done if row.outcomes == ("runs", EXACT, EXACT)]
    refused = [row for row in done if row.refused]
    return (
        f"Of {len(rows)} items {len(done)} are shown: {len(exact)} are exact after the kill and after the rebuild, "
        f"{len(refused)} are refused before the start, {len(done) - len(exact) - len(refused)} have a condition that "
        f"their row names. {len(rows) - len(done) - absent} are not shown yet, {absent} cannot be "
        "reached from Python.\n"
    )


def _table(area: Area) -> str:
    return HEADING.format(title=area.title) + "".join(_lines(area))


def _lines(area: Area) -> Iterator[str]:
    for row in area.rows:
        item = f"[{row.what}](../../examples/guide/{area.name}/{row.name}.py)" if row.has_example else row.what
        since = f"Spark {row.since} and later" if row.since else f"Spark {row.until} runs it" if row.until else ""
        cells = (item, *row.outcomes, row.open or row.absent or "; ".join(filter(None, (row.note, since))))
        yield "| " + " | ".join(cells) + " |\n"
