"""No module outside of ``sources`` names a kind of source: what depends on the kind is asked of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from slackwater.sources import SOURCES

HAVE_KINDS_OF_THEIR_OWN = ("sources", "sinks")
"""Sinks have kinds with the same names."""
OTHER_MEANINGS = {
    ("ledger/streams.py", "files"),  # the identity of a sink
    ("operations/actions/generations.py", "delta"),  # a file of the state
    ("operations/actions/batches.py", "number"),  # of a generation
    ("cli/verbs/ledger.py", "number"),  # of a generation
    ("cli/verbs/watch.py", "files"),  # a count of files
}
SPARKS_NAMES = ("FileStreamSource", "FileSource[", "KafkaV2", "ForTriggerAvailableNow", "logOffset", "textSocket")


def _outside(root: Path, source_files: list[Path]) -> Iterator[tuple[str, ast.Module]]:
    package = root / "src/slackwater"
    for file in source_files:
        name = str(file.relative_to(package))
        if not name.startswith(tuple(f"{one}/" for one in HAVE_KINDS_OF_THEIR_OWN)):
            yield name, ast.parse(file.read_text())


def _is_of_kind(module: str) -> bool:
    parts = module.split(".")
    return parts[:2] == ["slackwater", "sources"] and len(parts) > 2 and parts[2] != "common"


def _compared(tree: ast.Module) -> Iterator[str]:
    """Strings that a value is compared with."""
    for node in ast.walk(tree):
        compared: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            compared = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            compared = [node.value]
        for one in compared:
            yield from (
                part.value for part in ast.walk(one) if isinstance(part, ast.Constant) and isinstance(part.value, str)
            )


def _docstrings(tree: ast.Module) -> set[int]:
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def test_no_module_imports_a_kind(root: Path, source_files: list[Path]) -> None:
    found = [
        f"{name}: {module}"
        for name, tree in _outside(root, source_files)
        for node in ast.walk(tree)
        for module in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
        if _is_of_kind(module)
    ]
    assert found == []


def test_no_module_compares_with_the_name_of_a_kind(root: Path, source_files: list[Path]) -> None:
    kinds = set(SOURCES.names())
    compared = {(name, text) for name, tree in _outside(root, source_files) for text in _compared(tree)}
    assert {(name, text) for name, text in compared if text in kinds} <= OTHER_MEANINGS


def test_no_module_knows_how_spark_names_a_kind(root: Path, source_files: list[Path]) -> None:
    found = [
        f"{name}: {node.value[:60]}"
        for name, tree in _outside(root, source_files)
        for docstrings in [_docstrings(tree)]
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
        if any(spark in node.value for spark in SPARKS_NAMES)
    ]
    assert found == []
