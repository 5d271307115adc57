"""Every failure of the catalogue is found or has a reason; the most frequent and the silent ones have a test."""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from slackwater.diagnose.catalogue import known_failures
from slackwater.diagnose.error_texts import covering

LIVE = Path(__file__).parent / "live"
FREQUENT = 25
TABLES: Mapping[str, Mapping[str, Mapping[str, str]]] = tomllib.loads((LIVE / "frequent.toml").read_text())
ENTRIES = [(code, entry) for table in TABLES.values() for code, entry in table.items()]


@cache
def shown() -> frozenset[tuple[str, str]]:
    """Each code with the file of a test that has it in its name, or in that of a case, as pytest collects them."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "", "-p", "no:cacheprovider", str(LIVE)]
    # Options of whoever runs the tests would change how they are listed.
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    listed = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    lines = [line.partition("::") for line in listed.splitlines() if "::" in line]
    pattern = re.compile(r"(?:\[|^test_)([A-Za-z0-9]+[-_][0-9]{2})[ _]")
    return frozenset(
        (code.upper().replace("_", "-"), Path(file).name) for file, _, name in lines for code in pattern.findall(name)
    )


def test_the_tables_are_whole() -> None:
    assert list(TABLES) == ["frequent", "silent"]
    assert len(TABLES["frequent"]) == FREQUENT
    assert all(code in known_failures() for code, _ in ENTRIES)
    assert all(entry.keys() in ({"test"}, {"none"}) for _, entry in ENTRIES)


def test_each_has_a_test_that_names_it() -> None:
    assert [
        (code, entry["test"]) for code, entry in ENTRIES if "test" in entry and (code, entry["test"]) not in shown()
    ] == []


def test_only_what_leaves_no_trace_has_none() -> None:
    without = [code for code, entry in ENTRIES if "none" in entry]
    assert [code for code in without if known_failures()[code].how != "not-detectable"] == []
    assert [code for code in without if code in {shown_code for shown_code, _ in shown()}] == []


def test_what_a_finding_covers_is_in_the_catalogue() -> None:
    assert set(covering()) <= set(known_failures())


def test_no_failure_is_left_out() -> None:
    assert [code for code, failure in known_failures().items() if code not in covering() and failure.how is None] == []


def test_what_is_not_found_has_its_code_or_its_reason() -> None:
    assert [code for code, failure in known_failures().items() if failure.how is not None and not failure.text] == []
