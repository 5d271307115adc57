"""Finds the environment variables that Python code reads."""

from __future__ import annotations

import ast
from functools import lru_cache

READING_METHODS = ("get", "pop", "setdefault", "__getitem__", "__contains__")


def variables_read(tree: ast.AST, imports: ast.AST | None = None) -> tuple[str, ...]:
    """Names in ``os.environ`` or ``os.getenv``, also under aliases, sorted.

    ``imports`` is ``tree``'s module.
    """
    found = _Reads(_aliases(imports or tree))
    found.visit(tree)
    return tuple(sorted(found.names))


@lru_cache(maxsize=64)
def _aliases(tree: ast.AST) -> _Aliases:
    return _Aliases(tree)


class _Aliases(ast.NodeVisitor):
    def __init__(self, tree: ast.AST) -> None:
        self.modules: set[str] = set()
        self.mappings: set[str] = set()
        self.functions: set[str] = set()
        self.visit(tree)

    def visit_Import(self, node: ast.Import) -> None:
        self.modules.update(alias.asname or alias.name for alias in node.names if alias.name == "os")

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.module != "os":
            return
        self.mappings.update(alias.asname or alias.name for alias in node.names if alias.name == "environ")
        self.functions.update(alias.asname or alias.name for alias in node.names if alias.name == "getenv")

    def is_mapping(self, node: ast.expr) -> bool:
        return self._is(node, self.mappings, "environ")

    def is_function(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Attribute) and node.attr in READING_METHODS:
            return self.is_mapping(node.value)
        return self._is(node, self.functions, "getenv")

    def _is(self, node: ast.expr, names: set[str], attribute: str) -> bool:
        if isinstance(node, ast.Name):
            return node.id in names
        return (
            isinstance(node, ast.Attribute)
            and node.attr == attribute
            and isinstance(node.value, ast.Name)
            and node.value.id in self.modules
        )


class _Reads(ast.NodeVisitor):
    """Collects constant names only; computed names are unknown without running the file."""

    def __init__(self, aliases: _Aliases) -> None:
        self.names: set[str] = set()
        self._aliases = aliases

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.ctx, ast.Load) and self._aliases.is_mapping(node.value):
            self._add(node.slice)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if self._aliases.is_function(node.func):
            for name in [*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "key")]:
                self._add(name)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        if isinstance(node.ops[0], (ast.In, ast.NotIn)) and self._aliases.is_mapping(node.comparators[0]):
            self._add(node.left)
        self.generic_visit(node)

    def _add(self, name: ast.expr) -> None:
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            self.names.add(name.value)
