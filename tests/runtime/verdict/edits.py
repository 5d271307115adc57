"""Edits of pipelines as data: a base, what is replaced in it, and the verdict on a stream that continues with it."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
COMMON, *_OWN = re.split(r"^# (?=\w+: )", (HERE / "bases.py").read_text(), flags=re.MULTILINE)
BASES = {own.partition(":")[0]: f"{COMMON}# {own.rstrip()}\n" for own in _OWN}
"""The pipeline file of each base."""
FIRST, ALL = 4, 7
"""Files of input that the old code has read, and those that there are in the end."""

RULES = """# Rules.
from pyspark.sql import functions as F

LEAST = 2


def wanted(rows):
    return rows.filter(F.col("n") > LEAST).withColumn("page", F.col("page"))
"""
MODULES = {"rules.py": RULES}
SEED = 7


@dataclass(frozen=True)
class Edit:
    """An edit. ``files`` has for each file next to the pipeline what is replaced; nothing: the module moves there.

    ``verdict`` is the effect of the change, or ``harmless``: no word of the user is needed. One of ``codes`` is given.
    """

    name: str
    base: str
    verdict: str
    codes: tuple[str, ...]
    replace: tuple[tuple[str, str], ...]
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def before(self) -> str:
        return BASES[self.base]

    @property
    def after(self) -> str:
        text = self.before
        for old, new in self.replace:
            assert old in text, f"{self.name}: {old!r}"
            text = text.replace(old, new)
        return text

    def write(self, folder: Path) -> None:
        (folder / "pipeline.py").write_text(self.after)
        for name, pair in self.files.items():
            file = folder / name
            file.parent.mkdir(exist_ok=True)
            if pair:
                assert pair[0] in file.read_text(), f"{self.name}: {pair[0]!r}"
                old, new = pair
                file.write_text(file.read_text().replace(old, new))
            else:
                (folder / file.name).rename(file)


def edits() -> list[Edit]:
    tables: list[dict[str, Any]] = tomllib.loads((HERE / "edits.toml").read_text())["edit"]
    return [
        Edit(
            one["name"],
            one["base"],
            one["verdict"],
            tuple(one["codes"]),
            tuple((old, new) for old, new in one["replace"]),
            {name: tuple(pair) for name, pair in one.get("files", {}).items()},
        )
        for one in tables
    ]


def lay_down(folder: Path, base: str) -> None:
    """The pipeline file of a base with its modules and its static tables; no input yet."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pipeline.py").write_text(BASES[base])
    for name, text in MODULES.items():
        (folder / name).write_text(text)
    for name in ("landing", "orders", "more", "names", "other"):
        (folder / name).mkdir()
    for name in ("names", "other"):
        rows = [{"page": f"p{page}", "name": f"{name} {page}"} for page in range(4)]
        (folder / name / "names.json").write_text(_lines(rows))


def clear(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def add_input(folder: Path, first: int, last: int) -> None:
    """Files ``first`` to before ``last`` of clicks and orders, in the order of their arrival."""
    dice = random.Random(SEED)
    for number in range(last):
        clicks = [_click(dice, number) for _ in range(40)]
        bought = [_order(dice, number) for _ in range(20)]
        if number < first:
            continue
        for name, rows in (("landing", clicks), ("orders", bought), ("more", clicks[:5])):
            file = folder / name / f"{number:03d}.json"
            file.write_text(_lines(rows))
            os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))


def _click(dice: random.Random, number: int) -> dict[str, object]:
    minute = max(0, number * 40 + dice.randint(-25, 39))
    return {
        "ts": _time(minute),
        "ts2": _time(minute + dice.randint(0, 30)),
        "page": f"p{dice.randint(0, 3)}",
        "user": f"u{dice.randint(0, 5)}",
        "n": dice.randint(1, 9),
        "m": dice.randint(1, 9),
    }


def _order(dice: random.Random, number: int) -> dict[str, object]:
    minute = max(0, number * 40 + dice.randint(-10, 55))
    return {
        "at": _time(minute),
        "page": f"p{dice.randint(0, 3)}",
        "user": f"u{dice.randint(0, 5)}",
        "amount": minute % 9,
    }


def _time(minute: int) -> str:
    return f"2024-01-{1 + minute // 1440:02d}T{minute // 60 % 24:02d}:{minute % 60:02d}:00Z"


def _lines(rows: Iterable[Mapping[str, object]]) -> str:
    return "\n".join(json.dumps(row) for row in rows)
