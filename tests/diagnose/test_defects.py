"""Known defects of Spark: their table, the releases that have them, and what doctor says of a message of one."""

from __future__ import annotations

import pytest

from slackwater.diagnose.catalogue import Defect, known
from slackwater.diagnose.error_texts import explained, recognise

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
