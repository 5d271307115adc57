"""Each command that a page, a hint, an error or a plan prints is built in ``core/commands``, and can be typed."""

import ast
import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from slackwater.cli.common.arguments import VERBS
from slackwater.cli.main import make_parser
from slackwater.core.errors import SlackwaterError

BUILDER = "src/slackwater/core/commands.py"
ANY_WORD = "7"
"""Stands for a word that is known when the program runs: a name, a number, a path."""

_TYPED = re.compile(rf"slackwater (?:{'|'.join(VERBS)})\b")


def _spelled_out(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The lines and texts of string constants that have a command, other than docstrings."""
    documented = {
        statement.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        for statement in node.body
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node not in documented and _TYPED.search(str(node.value)):
            yield node.lineno, str(node.value)


def _built(tree: ast.Module) -> Iterator[tuple[int, list[str]]]:
    """The lines and words of the calls of ``command``; words that are not constants are ``ANY_WORD``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "command":
            words = [_word(argument) for argument in node.args if not isinstance(argument, ast.Starred)]
            yield node.lineno, _with_choices(words)


def _with_choices(words: list[str]) -> list[str]:
    """The words with one that is allowed where only some are."""
    goal = "reset" if "--from" in words else "rebuild"
    if words in (["plan"], ["plan", ANY_WORD]):
        return ["plan", goal, ANY_WORD]
    goals = [
        goal if (index, before, word) == (1, "plan", ANY_WORD) else word
        for index, (before, word) in enumerate(zip(["", *words], words, strict=False))
    ]
    return ["keep" if before == "--output" else word for before, word in zip(["", *goals], goals, strict=False)]


def _word(argument: ast.expr) -> str:
    if isinstance(argument, ast.Constant):
        return str(argument.value)
    if isinstance(argument, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else ANY_WORD for part in argument.values)
    return ANY_WORD


def test_no_other_module_spells_a_command_out(root: Path, source_files: list[Path]) -> None:
    found = [
        f"{file.relative_to(root)}:{line}: {text[:80]}"
        for file in source_files
        if file != root / BUILDER
        for line, text in _spelled_out(ast.parse(file.read_text()))
    ]
    assert found == []


def test_each_command_is_one_that_the_program_takes(root: Path, source_files: list[Path]) -> None:
    calls = [
        (f"{file.relative_to(root)}:{line}", words)
        for file in source_files
        for line, words in _built(ast.parse(file.read_text()))
    ]
    assert len(calls) > 80
    refused = [f"{place}: {' '.join(words)}: {problem}" for place, words in calls if (problem := _refusal(words))]
    assert not refused, "\n".join(refused)


@pytest.mark.parametrize("words", [["plan", "rebild", "7"], ["status", "--nothing"], ["undo"]], ids=" ".join)
def test_a_command_that_cannot_be_typed_is_found(words: list[str]) -> None:
    assert _refusal(words) is not None


def _refusal(words: list[str]) -> str | None:
    """Why the real parser refuses a command, ``None`` if it takes it."""
    quiet = io.StringIO()
    try:
        with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
            make_parser(words).parse_args(words)
    except SystemExit as ended:
        return f"exit code {ended.code}" if ended.code else None
    except SlackwaterError as error:
        return str(error)
    return None
