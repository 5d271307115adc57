"""The table of error codes has exactly the codes and kinds that the package raises."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import slackwater
from slackwater.core import errors
from slackwater.core.errors import SinkUnreadable, SlackwaterError, StreamFailed
from slackwater.diagnose.catalogue import Defect, error_codes, known
from slackwater.diagnose.error_texts import explained, recognise
from slackwater.operations.action import PRECONDITIONS
from slackwater.sinks.common.problem import read_code

PACKAGE = Path(slackwater.__file__).parent
KINDS = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.SlackwaterError)
}
VARYING = {"moved-…": [f"moved-{name}" for name in PRECONDITIONS], "…-name": ["pipeline-name", "stream-name"]}
"""Codes with a part that varies."""


def test_the_table_has_the_codes_and_kinds_that_are_raised() -> None:
    raised: dict[str, set[type[SlackwaterError]]] = {}
    for code, kind in _raised():
        raised.setdefault(code, set()).add(kind)

    assert {code: row.kind for code, row in error_codes().items()} == {
        code: next(kind for kind in next(iter(kinds)).__mro__ if all(issubclass(one, kind) for one in kinds))
        for code, kinds in raised.items()
    }


def test_rows_are_sorted_and_have_a_cause_and_a_remedy() -> None:
    rows = error_codes().values()

    assert list(error_codes()) == sorted(error_codes())
    assert [row.code for row in rows if not row.remedy or not all(re.search("[a-z]", one) for one in row.causes)] == []
    assert [row.code for row in rows if not row.causes or len(set(row.causes)) < len(row.causes)] == []


def _raised() -> Iterator[tuple[str, type[SlackwaterError]]]:
    for file in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(file.read_text())
        constants = {
            node.targets[0].id: node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
                for text in _texts(constants.get(_name(node.args[0]), node.args[0])):
                    for code in VARYING.get(text, [text]):
                        yield from _kinds(node.func.id, code)


def _kinds(name: str, code: str) -> Iterator[tuple[str, type[SlackwaterError]]]:
    if name == "Problem":
        yield code, StreamFailed
        yield read_code(code), SinkUnreadable
    elif name in KINDS:
        yield code, KINDS[name]


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _texts(node: ast.expr) -> list[str]:
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.IfExp():
            return [*_texts(node.body), *_texts(node.orelse)]
        case ast.JoinedStr():
            return ["".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)]
    return []


# Known defects of Spark: their table, the releases that have them, and what doctor says of a message of one.


CHANGELOG = """
java.lang.NumberFormatException: For input string: ")"
\tat java.base/java.lang.Short.parseShort(Short.java:139)
\tat org.apache.spark.sql.execution.streaming.state.StateStoreChangelogReaderFactory.readVersion(Unknown Source)
"""
RECORD = """
java.lang.NumberFormatException: For input string: ")"
\tat java.base/java.lang.Short.parseShort(Short.java:139)
\tat com.example.Parser.parse(Parser.java:12)
"""


@pytest.mark.parametrize(
    ("version", "has_it"),
    [
        ("3.3.4", False),
        ("3.4.3", True),
        ("3.4.4", False),
        ("3.5.1", True),
        ("3.5.2", False),
        ("3.5.10", False),
        ("4.0.0", False),
        ("4.3.0", False),
    ],
)
def test_a_release_has_a_defect_until_the_correction_of_its_line(version: str, has_it: bool) -> None:
    assert Defect("SPARK-1", "", ("3.4.4", "3.5.2", "4.0.0"), since="3.4.0").is_in(version) is has_it


def test_a_line_without_a_correction_has_it() -> None:
    assert Defect("SPARK-1", "", ("3.5.7", "4.1.0")).is_in("4.0.1")


def test_the_message_of_a_defect_names_its_issue_and_the_releases() -> None:
    cause = explained(recognise(CHANGELOG), None)[0].cause

    assert (cause.code, cause.state) == ("VER-06", "known")
    assert cause.by.startswith("SPARK-52553: ")
    assert "use Spark 4.0.1 or 4.1.0, or newer" in cause.by


def test_the_same_exception_of_other_code_is_not_the_defect() -> None:
    assert recognise(RECORD) == ()


@pytest.mark.parametrize("defect", known(), ids=lambda defect: defect.issue)
def test_a_defect_has_a_message_or_the_streams_that_it_can_strike(defect: Defect) -> None:
    assert bool(defect.texts) is not bool(defect.operators)
    assert defect.what[0].islower()
    assert not defect.what.endswith(".")
    assert not any(defect.is_in(release) for release in defect.fixed)


def test_no_defect_is_listed_twice() -> None:
    assert len({defect.issue for defect in known()}) == len(known())
