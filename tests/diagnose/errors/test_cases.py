"""Measures the recognition with error texts of public threads: the first code is the cause of the case.

A case may have ``facts`` that the stream's files would show, where its text has several causes. The cause ``none`` is
that of a text which is no failure of the catalogue: it is not recognised. ``basis`` says where the cause is from: cases
whose cause is inferred from the text are weaker evidence, and the others are measured by themselves, too. ``first`` is
the first code when the case was tried for the first time, before any text was added for it. ``cause_then`` is the
cause where the catalogue had no code for it then.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from slackwater.diagnose.causes import explained
from slackwater.diagnose.error_texts import recognise
from tests.diagnose.errors.facts import FACTS, codes_given

ROOT = Path(__file__).resolve().parents[3]
DECISION = ROOT / "docs" / "decisions" / "0375-error-texts-as-templates.md"
FILES = {path.stem: path for path in sorted(Path(__file__).with_name("cases").glob("*.toml"))}
COLLECTIONS: dict[str, list[dict[str, Any]]] = {
    name: tomllib.loads(path.read_text())["case"] for name, path in FILES.items()
}
CASES = [case for cases in COLLECTIONS.values() for case in cases]
RIGHT_MIN = 0.9
STATED = ("thread", "change")
BASES = (*STATED, "inferred")
WITH_INFERRED = (
    *("fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth", "twentieth"),
    *("twentyfirst", "twentysecond", "twentythird", "twentyfourth", "twentyfifth"),
)
"""Collections that have threads without an answer."""


def _cause(case: dict[str, Any]) -> str:
    """The first cause as ``doctor --error`` prints it, or as the files of the case decide."""
    found = recognise(case["text"])
    if not found:
        return "none"
    return codes_given(found[0], case["facts"])[0] if "facts" in case else explained(found, None)[0].cause.code


@pytest.mark.parametrize(("bases", "cases_min"), [(BASES, 494), (STATED, 418)])
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


def test_no_thread_is_counted_twice() -> None:
    assert len({case["link"] for case in CASES}) == len(CASES)


@pytest.mark.parametrize(
    "collection",
    [
        *("third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh"),
        *("twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth"),
        *("eighteenth", "nineteenth", "twentieth", "twentyfirst", "twentysecond", "twentythird"),
        *("twentyfourth", "twentyfifth"),
    ],
)
def test_the_decision_reports_what_was_right_at_first_contact(collection: str) -> None:
    cases = COLLECTIONS[collection]
    right = sum(case["first"] == case.get("cause_then", case["cause"]) for case in cases)

    assert collection in WITH_INFERRED or {case["basis"] for case in cases} <= set(STATED)
    assert f"{right} of {len(cases)}" in DECISION.read_text()
