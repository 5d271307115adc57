"""Points at which tests kill a command, named as ``FILE:FUNCTION``, are functions of the source: no kill is missed."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

POINT = re.compile(r"(?P<file>[\w/]+\.py):(?P<function>[A-Za-z_][\w.]*)(:\d+)?")


def _points(folder: Path) -> set[str]:
    texts = {
        node.value
        for file in folder.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return {text for text in texts if POINT.fullmatch(text)}


def _functions(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            yield from (node.name, prefix + node.name)


@pytest.mark.parametrize("point", sorted(_points(Path(__file__).parents[1])))
def test_a_kill_point_is_a_function_of_the_source(point: str, source_files: list[Path]) -> None:
    named = POINT.fullmatch(point)
    assert named is not None
    files = [file for file in source_files if str(file).endswith(named["file"])]
    functions = {name for file in files for name in _functions(ast.parse(file.read_text(encoding="utf-8")).body)}
    assert named["function"] in functions, f"{point}: no such function in {files}"
