"""The page docs/reference/recovery.md: what Spark and Slackwater do after a change of a query, row by row."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from tests.runtime.verdict.edits import HERE, Edit, edits
from tests.runtime.verdict.test_typed import NOT_EXACT

PAGE = """# Recovery semantics after changes in a query

The results of changing a query between two runs on one checkpoint: the changes of Spark's programming guide, and
others. *Spark* was measured with 4.1.3 by continuing the old checkpoint with the new code, and comparing the rows of
later batches with the rows that the new code alone writes. *Verdict* is the report of `slackwater check`, `run` and
`doctor --pipeline` before anything is started; [changes.md](changes.md) explains each code. *Goal*: the refusal prints
the command for this plan. *Rows*:

- **compared**: a test runs the printed commands, up to the next run. After a rebuild the rows equal, as multisets, the
  written rows and from there on the rows of the new code alone; after a reset the rows of the new code alone;
- **starts**: the stream starts without a command;
- **-**: the verdict is tested, but not the rows after the remedy.

| change | guide | example | Spark | verdict | goal | rows |
|---|---|---|---|---|---|---|
"""
STARTS = ("harmless", "compatible")


def rows() -> list[dict[str, Any]]:
    """The rows of the page."""
    found: list[dict[str, Any]] = tomllib.loads((HERE / "recovery.toml").read_text())["row"]
    return found


def page() -> str:
    """The page as Markdown."""
    by_name = {edit.name: edit for edit in edits()}
    measured: Mapping[str, str] = tomllib.loads((HERE / "measured.toml").read_text())
    goals: Mapping[str, str] = tomllib.loads((HERE / "goals.toml").read_text())
    return PAGE + "".join(line for row in rows() for line in _lines(row, by_name, measured, goals))


def _lines(
    row: Mapping[str, Any], by_name: Mapping[str, Edit], measured: Mapping[str, str], goals: Mapping[str, str]
) -> Iterator[str]:
    if "edits" not in row:
        yield _line(row["change"], row["guide"], "", row["spark"], row["verdict"], row["goal"], row["rows"])
        return
    heads = row["change"], row["guide"]
    for name in row["edits"]:
        edit = by_name[name]
        # The name of Spark's error class is enough.
        spark = re.sub(r"\[([A-Z_]+)\].*", r"\1", measured.get(name, "not measured"))
        codes = ", ".join(f"`{code}`" for code in edit.codes)
        verdict = "same" if edit.verdict == "harmless" else f"{edit.verdict} {codes}".strip()
        yield _line(*heads, name, spark, verdict, goals.get(name, "-"), _rows(edit))
        heads = "", ""


def _rows(edit: Edit) -> str:
    """What ``test_typed`` does with the edit."""
    if edit.verdict in STARTS:
        return "starts"
    return "-" if edit.name in NOT_EXACT else "compared"


def _line(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
