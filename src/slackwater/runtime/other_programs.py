"""Explains programs that can neither be run nor read: they fail at their first line, or define nothing."""

from __future__ import annotations

import ast
from pathlib import Path

from slackwater.core.commands import mention
from slackwater.core.errors import PipelineError
from slackwater.runtime.code_source import read_source

_DECLARATIVE = ("pyspark.pipelines", "dlt")
_OF_NOTEBOOKS = ("spark", "dbutils")
"""Names that a notebook has without defining them."""


def refuse_other_program(file: Path) -> None:
    """Raises PipelineError (``program-kind``) for Spark Declarative Pipelines and exported notebooks."""
    try:
        tree = ast.parse(read_source(file))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        # Reported when the file is loaded.
        return
    nodes = list(ast.walk(tree))
    imported = _imported(nodes)
    if "slackwater" in imported:
        return
    if imported & set(_DECLARATIVE):
        raise _refused(
            "This is a file of Spark Declarative Pipelines, whose queries Spark itself starts: spark-pipelines run",
            file,
            "a slackwater.Pipeline, or a program that starts its own queries by .writeStream",
            f"{', '.join(sorted(imported & set(_DECLARATIVE)))} imported",
            "start it with spark-pipelines; or write its flows as streams of a pipeline file, as "
            f"{mention('init', 'DIRECTORY')} lays it out",
        )
    free = _free(nodes)
    if free:
        raise _refused(
            f"This is code of a notebook: it uses {' and '.join(free)}, which it does not define",
            file,
            "a program that Python can run by itself",
            ", ".join(free),
            "write spark = SparkSession.builder.getOrCreate() at its beginning, and arguments in place of dbutils; or "
            "leave it in the notebook, and call slackwater.watch(spark, ledger=LOCATION) there",
        )


def _refused(message: str, file: Path, expected: str, found: str, way: str) -> PipelineError:
    return PipelineError(
        "program-kind",
        message,
        where=str(file),
        expected=expected,
        found=found,
        hint=f"{way}; a checkpoint that its queries have is examined by {mention('doctor', 'LOCATION')}, and recorded "
        f"by {mention('adopt', 'LOCATION')}",
    )


def _imported(nodes: list[ast.AST]) -> set[str]:
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def _free(nodes: list[ast.AST]) -> list[str]:
    used = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
    return [] if "*" in bound else [name for name in _OF_NOTEBOOKS if name in used - bound]
