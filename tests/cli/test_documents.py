"""What the pages in docs/ promise of codes and documents is what the program does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scripts.error_codes import page
from scripts.sink_table import page as sinks_page
from slackwater.cli.verbs.explain.errors import found_codes
from slackwater.core import errors
from tests.cli.conftest import Slackwater
from tests.support.homes import HomeSpec, make_home

DOCS = Path(__file__).resolve().parents[2] / "docs"
CHOSEN_BY_SPARK_OR_USER = {"clicks", "0", "1", "addBatch", "triggerExecution"}


def test_the_table_of_errors_is_that_of_the_source() -> None:
    assert (DOCS / "errors.md").read_text() == page(), "python -m scripts.error_codes > docs/errors.md"


def test_the_table_of_sinks_is_that_of_the_catalogue() -> None:
    assert (DOCS / "sinks.md").read_text() == sinks_page(), "python -m scripts.sink_table > docs/sinks.md"


def test_a_code_has_one_exit_code() -> None:
    codes: dict[str, set[int]] = {}
    for error in found_codes():
        codes.setdefault(error.code, set()).add(error.exit_code)

    assert {code: exits for code, exits in codes.items() if len(exits) > 1} == {}


def test_the_table_of_exit_codes_is_that_of_the_error_tree() -> None:
    rows = re.findall(r"^\| (\d+) \| .* \| (.*) \|$", (DOCS / "exit-codes.md").read_text(), re.MULTILINE)
    documented = {kind: int(code) for code, kinds in rows for kind in kinds.split(", ") if kind}
    kinds = [value for value in vars(errors).values() if isinstance(value, type)]
    tree = {kind.__name__: kind.exit_code for kind in kinds if issubclass(kind, errors.SlackwaterError)}

    assert documented == tree


@pytest.mark.parametrize(
    "command",
    [
        ("status",),
        ("ledger", "per_page"),
        ("offsets", "per_page"),
        ("plan", "rebuild", "per_page"),
        ("connectors", "list"),
        ("sinks",),
        ("ledger", "--operations"),
        ("explain",),
        ("explain", "sink-ahead"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("source", ["files", "kafka"])
def test_every_field_is_documented(
    slackwater: Slackwater, tmp_path: Path, command: tuple[str, ...], source: Any
) -> None:
    make_home(tmp_path, HomeSpec(planned=6, source=source))

    assert undocumented(slackwater(*command, "--format", "json").document) == []


def undocumented(document: dict[str, Any]) -> list[str]:
    """The names of a document's fields that docs/json.md does not explain."""
    section = _section(document["schema"])
    return [name for name in _names(document) if f"`{name}`" not in section]


def _section(schema: str) -> str:
    text = (DOCS / "json.md").read_text()
    assert f"`{schema}`" in text
    return text


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (name for name in value if name not in CHOSEN_BY_SPARK_OR_USER)
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _names(inner)
