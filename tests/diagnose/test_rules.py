"""Each rule is complete: its texts, its place in the order, and commands that can be typed."""

from __future__ import annotations

import re
import shlex

import pytest

from slackwater.cli.main import make_parser
from slackwater.diagnose.checks.common.rule import HEADINGS, Rule
from slackwater.diagnose.number_line import RULES

COMMAND = re.compile(r"`(slackwater [^`]+)`")
EACH = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)


@EACH
def test_a_rule_has_all_its_texts(rule: Rule) -> None:
    assert rule.meaning.endswith(".")
    assert tuple(rule.sections) == HEADINGS
    assert all(rule.sections.values())


@EACH
def test_the_commands_of_its_texts_can_be_typed(rule: Rule) -> None:
    for text in rule.sections.values():
        for command in COMMAND.findall(text):
            words = shlex.split(command)[1:]
            make_parser(words).parse_args(words)


def test_a_rule_has_the_name_of_its_file_and_a_place_of_its_own() -> None:
    assert [rule.code for rule in RULES] == sorted(rule.code for rule in RULES)
    assert len({rule.order for rule in RULES}) == len(RULES)
