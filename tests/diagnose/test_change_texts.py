"""Every check and every change is explained, with headings that are complete and commands that can be typed."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from slackwater.cli.main import make_parser
from slackwater.core.verdict import Effect
from slackwater.diagnose import checkpoint_changes, operator_changes, program_changes
from slackwater.diagnose.checks.common.check import HEADINGS, Check
from slackwater.diagnose.doctor import change_texts, documented
from slackwater.diagnose.number_line import RULES

MODULES = (checkpoint_changes, operator_changes, program_changes)
CODE = re.compile(r"[a-z]+(-[a-z]+)*-(changed|added|removed|swapped|reordered|ignored|repeatable)")
EDITS = Path(__file__).parents[1] / "runtime" / "verdict" / "edits.toml"


def _codes_in(module: ModuleType) -> set[str]:
    strings = (node.value for node in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(node, ast.Constant))
    return {text for text in strings if isinstance(text, str) and CODE.fullmatch(text)}


def test_every_code_of_a_change_has_one_text() -> None:
    codes = [text.code for text in change_texts()]

    assert set(codes) == set[str]().union(*map(_codes_in, MODULES))
    assert len(codes) == len(set(codes))


def test_no_measured_edit_has_a_graver_effect_than_the_texts_of_its_changes() -> None:
    texts = {text.code: text for text in change_texts()}
    effects = {effect.word: effect for effect in Effect}
    compared = 0
    for edit in tomllib.loads(EDITS.read_text())["edit"]:
        codes = edit.get("codes", ())
        if codes:
            assert effects[edit["verdict"]] <= max(texts[code].effect for code in codes), edit
            compared += 1
    assert compared


COMMAND = re.compile(r"`(slackwater [^`]+)`")
EACH = pytest.mark.parametrize("check", documented(), ids=lambda check: check.code)


@EACH
def test_it_has_all_its_texts(check: Check[Any]) -> None:
    assert check.meaning.endswith(".")
    assert tuple(check.sections) == HEADINGS
    assert all(check.sections.values())


@EACH
def test_the_commands_of_its_texts_can_be_typed(check: Check[Any]) -> None:
    for text in check.sections.values():
        for command in COMMAND.findall(text):
            words = shlex.split(command)[1:]
            make_parser(words).parse_args(words)


def test_codes_are_unique_and_a_rule_has_a_place_of_its_own() -> None:
    codes = [check.code for check in documented()]
    assert len(set(codes)) == len(codes)
    assert len({rule.order for rule in RULES}) == len(RULES)
