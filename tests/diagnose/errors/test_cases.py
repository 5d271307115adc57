"""Measures the recognition with error texts of public threads: the first code is the cause of the case.

A case may have ``facts`` that the stream's files would show, if its text has several causes. ``basis`` is the source of
the cause: cases whose cause is inferred from the text are weaker evidence, and the others are measured by themselves,
too.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from slackwater.diagnose.error_texts import Level, error_texts, explained, recognise
from tests.diagnose.errors.facts import FACTS, codes_given

TABLE = tomllib.loads(Path(__file__).with_name("cases.toml").read_text())
CASES: list[dict[str, Any]] = TABLE["case"]
OTHERS: list[dict[str, Any]] = TABLE["other"]
STATED = ("thread", "change")
BASES = (*STATED, "inferred")


def _cause(case: dict[str, Any]) -> str:
    """The first cause as ``doctor --error`` prints it, or as the files of the case decide."""
    found = recognise(case["text"])
    if not found:
        return "none"
    return codes_given(found[0], case["facts"])[0] if "facts" in case else explained(found, None)[0].cause.code


@pytest.mark.parametrize(("bases", "right", "of"), [(BASES, 228, 246), (STATED, 204, 219)])
def test_the_first_code_is_the_cause(bases: tuple[str, ...], right: int, of: int) -> None:
    cases = [case for case in CASES if case["basis"] in bases]
    wrong = [f"{case['name']}: {_cause(case)}, not {case['cause']}" for case in cases if _cause(case) != case["cause"]]

    assert len(cases) == of
    assert len(cases) - len(wrong) >= right, "\n".join(wrong)


def test_few_failures_of_another_kind_are_taken_for_failures_of_a_stream() -> None:
    notes = {error.symptom for error in error_texts() if error.level is Level.NOTE}
    taken = [case["name"] for case in OTHERS if any(found.symptom not in notes for found in recognise(case["text"]))]

    assert (len(taken), len(OTHERS)) == (2, 29), "\n".join(taken)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["link"])
def test_a_case_has_a_link_and_facts_that_decide(case: dict[str, Any]) -> None:
    assert case["link"].startswith("https://")
    assert case["basis"] in BASES
    assert {FACTS[case["cause"]]} == set(case["facts"]) if "facts" in case else True


def test_no_thread_is_counted_twice() -> None:
    assert len({case["link"] for case in (*CASES, *OTHERS)}) == len(CASES) + len(OTHERS)
