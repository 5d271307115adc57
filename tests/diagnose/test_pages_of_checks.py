"""Each check and each change is complete: its texts, commands that can be typed, and a place in the order."""

import re
import shlex
from typing import Any

import pytest

from slackwater.cli.main import make_parser
from slackwater.diagnose.checks.common.check import HEADINGS, Check
from slackwater.diagnose.doctor import documented
from slackwater.diagnose.number_line import RULES

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
