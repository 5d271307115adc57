"""Prints the error conditions of Spark and Delta with their SQLSTATEs, from the jars that are given.

    python -m scripts.error_conditions JAR... > src/slackwater/diagnose/errors/common/conditions.txt

The jars are ``spark-common-utils`` of each version of Spark that is supported and ``delta-spark``. A condition that
several versions have keeps the SQLSTATE of the last jar that gives one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from zipfile import ZipFile

TABLES = ("error/error-conditions.json", "error/delta-error-classes.json", "error/error-classes.json")
"""Of Spark 4, of Delta, and of Spark 3.5: in Spark 4 the last is a table of SQLSTATEs without conditions."""
LEGACY = "_LEGACY"
"""Conditions without a name of their own; no message shows them."""


def main() -> None:
    """Print a line for each SQLSTATE, with its conditions."""
    by_state: dict[str, list[str]] = {}
    for name, state in sorted(conditions_of(map(Path, sys.argv[1:])).items()):
        by_state.setdefault(state, []).append(name)
    for state in sorted(by_state):
        print(state, *by_state[state])


def conditions_of(jars: Iterable[Path]) -> Mapping[str, str]:
    """The SQLSTATE of each condition."""
    found: dict[str, str] = {}
    for jar in jars:
        states = {name: entry.get("sqlState") for name, entry in _table(jar).items() if not name.startswith(LEGACY)}
        found |= {name: state for name, state in states.items() if state}
    return found


def _table(jar: Path) -> Mapping[str, Mapping[str, str]]:
    with ZipFile(jar) as archive:
        names = archive.namelist()
        found: Mapping[str, Mapping[str, str]] = json.loads(
            archive.read(next(name for name in TABLES if name in names))
        )
        return found


if __name__ == "__main__":
    main()
