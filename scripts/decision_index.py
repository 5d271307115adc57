"""The index of decisions in docs/decisions/README.md, from their headings and ``Status:`` lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "docs/decisions"
HEADING = """# Decisions

Each page has a decision, its reasons and the rejected alternatives. A decision replaced by a later one has the line
`Status: superseded by NNNN.` below its heading, a partly changed one `Status: amended by NNNN (part).`; without a
status it is in force.

| decision | status |
|---|---|
"""
_TITLE = re.compile(r"# (?P<number>\d{4}):? (?P<title>.+)")
_STATUS = re.compile(r"^Status: (?P<status>.+)\.$", re.MULTILINE)
_NUMBER = re.compile(r"\b\d{4}\b")


@dataclass(frozen=True, slots=True)
class Decision:
    """One file. ``number`` has four digits, ``status`` is without its full stop."""

    file: str
    number: str
    title: str
    status: str

    @property
    def later(self) -> tuple[str, ...]:
        """The numbers of the decisions that changed this one."""
        return tuple(_NUMBER.findall(self.status))


def decisions(folder: Path = FOLDER) -> list[Decision]:
    """All decisions, by number. Raises ValueError for a file whose heading does not have the number of its name."""
    return [_read(path) for path in sorted(folder.glob("[0-9]*.md"))]


def page(found: list[Decision]) -> str:
    """``docs/decisions/README.md``."""
    files = {one.number: one.file for one in found}
    return HEADING + "".join(
        f"| [{one.number}]({one.file}) {one.title} | {_linked(one.status, files)} |\n" for one in found
    )


def _read(path: Path) -> Decision:
    text = path.read_text()
    title, status = _TITLE.match(text), _STATUS.search(text)
    if title is None or not path.name.startswith(f"{title['number']}-"):
        raise ValueError(f"{path.name}: the heading is not '# {path.name[:4]} TITLE'")
    return Decision(path.name, title["number"], title["title"], status["status"] if status else "")


def _linked(status: str, files: dict[str, str]) -> str:
    return _NUMBER.sub(lambda number: f"[{number[0]}]({files.get(number[0], '')})", status)
