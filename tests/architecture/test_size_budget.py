"""Functions and modules stay small enough to be read whole."""

from __future__ import annotations

import ast
from pathlib import Path

FUNCTION_LINES_MAX = 70
MODULE_LINES_MAX = 500
TEST_MODULE_LINES_MAX = 600


def _too_long_functions(file: Path) -> list[str]:
    return [
        f"{file.name}:{node.lineno} {node.name}: {(node.end_lineno or node.lineno) - node.lineno + 1} lines"
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or node.lineno) - node.lineno >= FUNCTION_LINES_MAX
    ]


def _too_long_modules(files: list[Path], lines_max: int) -> list[str]:
    return [
        f"{file.name}: {count} lines" for file in files if (count := len(file.read_text().splitlines())) > lines_max
    ]


def test_no_function_is_longer_than_its_budget(source_files: list[Path]) -> None:
    assert [long for file in source_files for long in _too_long_functions(file)] == []


def test_no_module_is_longer_than_its_budget(source_files: list[Path]) -> None:
    assert _too_long_modules(source_files, MODULE_LINES_MAX) == []


def test_no_test_module_is_longer_than_its_budget(root: Path) -> None:
    assert _too_long_modules(sorted((root / "tests").rglob("*.py")), TEST_MODULE_LINES_MAX) == []
