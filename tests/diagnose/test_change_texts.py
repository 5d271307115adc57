"""Every code that a verdict can have is explained, with headings that are complete and commands that can be typed."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from pathlib import Path
from types import ModuleType

from slackwater.core.verdict import Effect
from slackwater.diagnose import checkpoint_changes, operator_changes, program_changes
from slackwater.diagnose.doctor import change_texts

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
