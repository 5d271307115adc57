"""Finds the meaning of a name in the project's code.

Resolves imports, aliases and module attributes from parsed files, without importing anything new.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from types import CellType, ModuleType

from slackwater.runtime.code_scopes import FUNCTIONS, Imported, Module, Modules, Scope

MOST_ALIASES = 20


@dataclass(frozen=True, slots=True)
class Definition:
    scope: Scope


@dataclass(frozen=True, slots=True)
class Variable:
    scope: Scope
    name: str


@dataclass(frozen=True, slots=True)
class Callers:
    """All reached callers of a function: they decide the arguments."""

    scope: Scope


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole module, if its used parts are unknown."""

    module: Module


Piece = Definition | Variable | Callers | Whole
Token = str | Piece
Cells = dict[str, CellType]


@dataclass(frozen=True, slots=True)
class Library:
    path: str


Meaning = Piece | Library


class Meanings:
    """``cells`` are closure values by binding scope.

    ``registered`` are SQL functions (``spark.udf.register``).
    """

    def __init__(self, modules: Modules) -> None:
        self.modules = modules
        self.cells: dict[Scope, Cells] = {}
        self.registered: dict[str, set[Scope]] = {}
        self.written: dict[Piece, tuple[tuple[Token, ...], frozenset[str]]] = {}
        """The written form of each piece, and the names that it uses; writing a piece takes time."""

    def of_function(self, file: str, name: str, line: int) -> list[Token] | None:
        module = self.modules.parsed(Path(file))
        return None if module is None else [Definition(scope) for scope in self.function_at(module, name, line)]

    def function_at(self, file: Module, name: str, line: int) -> list[Scope]:
        return [
            scope for node, scope in file.scopes.items() if isinstance(node, FUNCTIONS) and _starts(node, name, line)
        ]

    def meaning(self, scope: Scope, name: str, depth: int = 0) -> Meaning | None:
        owner = scope.owner(name)
        if owner is None:
            return self._from_stars(scope.module, name) or self._of_value(scope.module, name)
        if owner.is_import(name):
            return self._imported(owner, name)
        statements = owner.bound[name]
        if len(statements) != 1 or name in owner.changed or depth > MOST_ALIASES:
            return Variable(owner, name)
        only = statements[0]
        if only in owner.module.scopes and getattr(only, "name", None) == name:
            return Definition(owner.module.scopes[only])
        if isinstance(only, ast.Assign) and len(only.targets) == 1 and isinstance(only.targets[0], ast.Name):
            alias = self._path(only.value, owner, depth + 1)
            if alias is not None:
                return alias
        return Variable(owner, name)

    def member(self, module: Module, name: str) -> Meaning | None:
        if name in module.scope.bound:
            return self.meaning(module.scope, name)
        below = self.modules.submodule(module, name)
        if below is not None:
            return Whole(below)
        return self._from_stars(module, name) or self._of_value(module, name)

    def path(self, node: ast.expr, scope: Scope) -> Meaning | None:
        return self._path(node, scope, 0)

    def _path(self, node: ast.expr, scope: Scope, depth: int) -> Meaning | None:
        if isinstance(node, ast.Name):
            return self.meaning(scope, node.id, depth)
        if not isinstance(node, ast.Attribute):
            return None
        base = self._path(node.value, scope, depth)
        if isinstance(base, Library):
            return Library(f"{base.path}.{node.attr}")
        return self.member(base.module, node.attr) if isinstance(base, Whole) else None

    def _imported(self, scope: Scope, name: str) -> Meaning | None:
        found = scope.imports[name]
        live = scope.module.namespace.get(name) if scope.node is scope.module.tree else None
        # An import in ``try`` and another in ``except``: the loaded module shows which one was used.
        if len(found) > 1 and isinstance(live, ModuleType):
            return self._named(Imported(live.__name__, None), scope.module)
        return self._named(found[-1], scope.module)

    def _named(self, imported: Imported, importer: Module) -> Meaning | None:
        module = self.modules.named(imported.module, imported.level, importer)
        if module is None:
            path = imported.module if imported.member is None else f"{imported.module}.{imported.member}"
            return Library(path)
        return Whole(module) if imported.member is None else self.member(module, imported.member)

    def _from_stars(self, module: Module, name: str) -> Meaning | None:
        for star in module.stars:
            source = self.modules.named(star.module, star.level, module)
            if source is not None and name in source.scope.bound:
                return self.meaning(source.scope, name)
        return None

    def _of_value(self, module: Module, name: str) -> Meaning | None:
        value = module.namespace.get(name)
        if isinstance(value, ModuleType):
            return self._named(Imported(value.__name__, None), module)
        owner = getattr(value, "__module__", None)
        called = getattr(value, "__qualname__", None)
        # A value of the module itself would be looked up here again, without end.
        if isinstance(owner, str) and isinstance(called, str) and owner != module.namespace.get("__name__"):
            return self._named(Imported(owner, called), module)
        return None


def _starts(node: ast.AST, name: str, line: int) -> bool:
    if isinstance(node, ast.Lambda):
        return name == "<lambda>" and node.lineno == line
    decorators = [one.lineno for one in getattr(node, "decorator_list", [])]
    return getattr(node, "name", None) == name and line in (getattr(node, "lineno", 0), min(decorators, default=0))
