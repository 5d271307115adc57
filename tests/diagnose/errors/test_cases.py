"""Measures the recognition with error texts of public threads: the first code is the cause of the case.

A case may have ``facts`` that the stream's files would show, where its text has several causes. The cause ``none`` is
that of a text which is no failure of the catalogue: it is not recognised. ``basis`` says where the cause is from, and
cases whose cause is only inferred from the text are weaker evidence: the others are measured by themselves, too.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from slackwater.diagnose.error_texts import recognise
from slackwater.diagnose.errors.common.facts import FACTS

FILES = sorted(Path(__file__).with_name("cases").glob("*.toml"))
CASES: list[dict[str, Any]] = [case for file in FILES for case in tomllib.loads(file.read_text())["case"]]
RIGHT_MIN = 0.9
STATED = ("thread", "change")
BASES = (*STATED, "inferred")


def _cause(case: dict[str, Any]) -> str:
    found = recognise(case["text"])
    return found[0].codes_given(case.get("facts", ()))[0] if found else "none"


@pytest.mark.parametrize(("bases", "cases_min"), [(BASES, 50), (STATED, 35)])
def test_the_first_code_is_the_cause_in_nine_of_ten_cases(bases: tuple[str, ...], cases_min: int) -> None:
    cases = [case for case in CASES if case["basis"] in bases]
    wrong = [f"{case['name']}: {_cause(case)}, not {case['cause']}" for case in cases if _cause(case) != case["cause"]]

    assert len(cases) >= cases_min
    assert len(wrong) <= len(cases) * (1 - RIGHT_MIN), "\n".join(wrong)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["link"])
def test_a_case_has_a_link_and_facts_that_decide(case: dict[str, Any]) -> None:
    assert case["link"].startswith("https://")
    assert case["basis"] in BASES
    assert {FACTS[case["cause"]]} == set(case["facts"]) if "facts" in case else True
