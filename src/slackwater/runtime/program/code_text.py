"""Writes Python code as text that is stable under harmless edits.

Dropped: local names, comments, docstrings, annotations, formatting and log output. Outside names become references to
their meaning.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Sequence
from logging import Logger
from types import FunctionType

from slackwater.core.masking import is_secret_name
from slackwater.runtime.program.code_meaning import (
    DIFFERS_EACH_TIME,
    PLACE,
    Callers,
    Definition,
    Library,
    Meaning,
    Meanings,
    Piece,
    Token,
    Variable,
    Whole,
    differs,
    has_place,
    is_changed,
    value_text,
)
from slackwater.runtime.program.code_scopes import FUNCTIONS, CodeScope, root_name, word

LOGGERS = frozenset({"log", "logger", "logging"})
LOG_METHODS = frozenset({"debug", "info", "warning", "warn", "error", "exception", "critical", "log"})
HARMLESS_CALLS = frozenset({
    "len", "str", "repr", "int", "float", "bool", "round", "sum", "min", "max", "sorted", "list", "tuple", "dict",
    "set", "format", "join", "isoformat", "strip", "lower", "upper", "keys", "values", "items", "get", "type", "id",
})  # fmt: skip
"""Calls in the arguments of a log line, which may be dropped with it."""

READS_NAMES = frozenset({"locals", "vars", "dir", "eval", "exec", "globals"})
"""Functions for which the names of variables matter."""

METHODS = (ast.FunctionDef, ast.AsyncFunctionDef)
TRANSPARENT_DECORATORS = frozenset(
    {"staticmethod", "classmethod", "property", "override", "abstractmethod", "setter", "getter"}
)
SKIPPED_FIELDS = frozenset(
    {"ctx", "type_comment", "annotation", "returns", "type_params", "kind", "simple", "type_ignores"}
)
KEPT_ANNOTATIONS = ("ClassVar", "InitVar", "KW_ONLY")


def write(piece: Piece, meanings: Meanings) -> tuple[Token, ...]:
    return _written(piece, meanings)[0]


def names_used(scope: CodeScope, meanings: Meanings) -> frozenset[str]:
    return _written(Definition(scope), meanings)[1]


def _written(piece: Piece, meanings: Meanings) -> tuple[tuple[Token, ...], frozenset[str]]:
    if piece in meanings.written:
        return meanings.written[piece]
    writer = _Writer(meanings)
    if isinstance(piece, Definition):
        writer.definition(piece.scope)
    elif isinstance(piece, Variable):
        writer.variable(piece.scope, piece.name)
    elif isinstance(piece, Whole):
        writer.statements(piece.module.tree.body, piece.module.scope)
    meanings.written[piece] = (tuple(writer.tokens), frozenset(writer.names))
    return meanings.written[piece]


class _Writer:
    """Writes a piece. ``_numbers`` are the local names of opened scopes, by appearance."""

    def __init__(self, meanings: Meanings) -> None:
        self.tokens: list[Token] = []
        self.names: set[str] = set()
        self._meanings = meanings
        self._opened: set[CodeScope] = set()
        self._numbers: dict[tuple[CodeScope, str], int] = {}

    def definition(self, scope: CodeScope) -> None:
        self._opened.add(scope)
        outer = scope.parent or scope
        node = scope.node
        if isinstance(node, ast.ClassDef):
            self._class(node, scope, outer)
            return
        if isinstance(node, FUNCTIONS):
            self._function(node, scope, outer)
        module, name = scope.module, getattr(node, "name", None)
        live = module.namespace.get(name) if name is not None and scope.parent is module.scope else None
        if live is None or getattr(node, "decorator_list", []):
            return
        if isinstance(live, FunctionType):
            found = self._live(live, only_functions=True) or []
            self.tokens += found if Definition(scope) not in found else []
        else:
            path = f"{getattr(live, '__module__', None)}.{getattr(live, '__qualname__', type(live).__qualname__)}"
            self.tokens += [f"replaced by {path}", *(self._live(live, only_functions=False) or [])]

    def variable(self, scope: CodeScope, name: str) -> None:
        value = self._value(scope, name)
        if value is not None:
            self.tokens += value
            return
        statements = {id(one): one for one in (*scope.bound.get(name, []), *scope.changed.get(name, []))}
        self.tokens.append("variable")
        if not scope.bound.get(name) and isinstance(scope.node, FUNCTIONS):
            self.tokens.append(Callers(scope))
        self.statements(sorted(statements.values(), key=lambda one: one.lineno), scope)

    def _value(self, scope: CodeScope, name: str) -> list[Token] | None:
        """Write a value, unless it differs between starts or functions change it (see value_text)."""
        cell = self._meanings.cells.get(scope, {}).get(name)
        if cell is not None:
            return self._live(cell.cell_contents, only_functions=False)
        if scope is not scope.module.scope or name not in scope.module.namespace or is_secret_name(name):
            return None
        if differs(scope, name, DIFFERS_EACH_TIME):
            return None
        changed = is_changed(scope, name)
        value = scope.module.namespace[name]
        # A function's statements have its decorators and arguments of the call that made it, too.
        found = None if isinstance(value, FunctionType) else self._live(value, only_functions=changed)
        if found is None or (changed and not found):
            return None
        return None if has_place(value, found, scope) and differs(scope, name, PLACE) else found

    def _live(self, value: object, *, only_functions: bool) -> list[Token] | None:
        return value_text(value, self._meanings.of_function, only_functions=only_functions)

    def statements(self, body: list[ast.stmt], scope: CodeScope) -> None:
        for statement in body:
            if not self._dropped(statement, scope):
                self.node(statement, scope)

    def _dropped(self, node: ast.stmt, scope: CodeScope) -> bool:
        if isinstance(node, (ast.Pass, ast.Global, ast.Nonlocal)):
            return True
        if isinstance(node, ast.AnnAssign):
            # In a class an annotation alone may declare a field; elsewhere it does nothing.
            return node.value is None and not isinstance(scope.node, ast.ClassDef)
        if isinstance(node, ast.If):
            dropped = all(self._dropped(one, scope) for one in (*node.body, *node.orelse))
            return word(node.test) == "TYPE_CHECKING" or (dropped and _is_pure(node.test))
        if not isinstance(node, ast.Expr):
            return False
        return isinstance(node.value, ast.Constant) or self._is_log_line(node.value, scope)

    def _is_log_line(self, call: ast.expr, scope: CodeScope) -> bool:
        if not isinstance(call, ast.Call) or not all(_is_pure(one) for one in (*call.args, *call.keywords)):
            return False
        function = call.func
        if isinstance(function, ast.Name):
            return function.id == "print" and scope.owner("print") is None
        if not isinstance(function, ast.Attribute) or function.attr not in LOG_METHODS:
            return False
        name = word(function.value)
        if isinstance(function.value, ast.Name) and scope.owner(name) is scope.module.scope:
            return name.strip("_").lower() in LOGGERS or isinstance(scope.module.namespace.get(name), Logger)
        return name.strip("_").lower() in LOGGERS

    def node(self, node: ast.AST, scope: CodeScope) -> None:
        write: Callable[[ast.AST, CodeScope], None] = getattr(
            self, f"_write_{type(node).__name__.lower()}", self._generic
        )
        write(node, scope)

    def _generic(self, node: ast.AST, scope: CodeScope) -> None:
        self.tokens.append(type(node).__name__)
        for field, value in ast.iter_fields(node):
            if field in SKIPPED_FIELDS or value is None or value == []:
                continue
            self.tokens.append(field)
            self._field(value, scope)
        self.tokens.append(";")

    def _field(self, value: object, scope: CodeScope) -> None:
        if isinstance(value, list) and all(isinstance(one, ast.stmt) for one in value):
            self.statements(value, scope)
        elif isinstance(value, list):
            for one in value:
                self._field(one, scope)
        elif isinstance(value, ast.AST):
            self.node(value, scope)
        else:
            self.tokens.append(repr(value))

    def _write_name(self, node: ast.Name, scope: CodeScope) -> None:
        self._reference(node.id, scope)

    def _reference(self, name: str, scope: CodeScope) -> None:
        self.names.add(name)
        owner = scope.owner(name)
        if owner is not None and owner in self._opened and not owner.is_import(name):
            self._local(name, owner)
            return
        self._meaning(self._meanings.meaning(scope, name), name, scope)

    def _local(self, name: str, owner: CodeScope) -> None:
        # Attributes of a class are found by their names, and ``locals()`` returns the names of variables.
        calls = (part.func for part in ast.walk(owner.node) if isinstance(part, ast.Call))
        if isinstance(owner.node, ast.ClassDef) or any(
            isinstance(function, ast.Name) and function.id in READS_NAMES for function in calls
        ):
            self.tokens.append(f"named {name}")
            return
        number = self._numbers.setdefault((owner, name), len(self._numbers))
        self.tokens.append(f"local {number}")

    def _meaning(self, meaning: Meaning | None, name: str, scope: CodeScope) -> None:
        if isinstance(meaning, Library):
            self.tokens.append(f"library {meaning.path}")
        elif meaning is not None:
            self.tokens.append(meaning)
        else:
            self.tokens.append(f"{'builtin' if hasattr(builtins, name) else 'free'} {name}")
            # The code that such a function runs may use any name of the module.
            if name in ("eval", "exec", "globals"):
                self.tokens.append(Whole(scope.module))

    def _write_attribute(self, node: ast.Attribute, scope: CodeScope) -> None:
        name = root_name(node)
        owner = scope.owner(name) if name is not None else None
        is_local = owner is not None and owner in self._opened and not owner.is_import(name or "")
        meaning = None if is_local else self._meanings.path(node, scope)
        if meaning is None:
            self._generic(node, scope)
        else:
            self._meaning(meaning, node.attr, scope)

    def _write_call(self, node: ast.Call, scope: CodeScope) -> None:
        called, given = word(node.func), node.args
        texts = [one.value for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        if called == "getattr" and len(given) == 2 and texts and texts[0].isidentifier():  # noqa: PLR2004
            self.node(ast.Attribute(given[0], texts[0], ast.Load()), scope)
            return
        if texts and called in ("import_module", "__import__"):
            module = self._meanings.modules.named(texts[0], 0, scope.module)
            if module is not None:
                self.tokens.append(Whole(module))
                return
        if texts and called == "register" and len(given) > 1:
            inner = scope.module.scopes.get(given[1])
            meaning = self._meanings.path(given[1], scope) if inner is None else Definition(inner)
            if isinstance(meaning, Definition):
                self._meanings.registered.setdefault(texts[0], set()).add(meaning.scope)
        self._generic(self._with_places(node, scope), scope)

    def _with_places(self, node: ast.Call, scope: CodeScope) -> ast.Call:
        called = self._meanings.path(node.func, scope)
        function = called.scope.node if isinstance(called, Definition) else None
        if isinstance(function, ast.ClassDef):
            function = next((one for one in function.body if getattr(one, "name", None) == "__init__"), None)
        # A decorator may return a function with other parameters.
        if not node.keywords or not isinstance(function, FUNCTIONS) or getattr(function, "decorator_list", []):
            return node
        given = function.args
        names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
        places = {name: f"parameter {place}" for place, name in enumerate(names)}
        keywords = [ast.keyword(places.get(one.arg or "", one.arg), one.value) for one in node.keywords]
        return ast.Call(node.func, node.args, keywords)

    def _write_import(self, node: ast.Import | ast.ImportFrom, scope: CodeScope) -> None:
        """Write an import; nothing if names are only imported: uses refer to the meaning."""
        for alias in node.names:
            name = alias.asname or alias.name.split(".")[0]
            owner = scope.owner(name)
            if owner is not None and not owner.is_import(name):
                self.tokens += ["import", getattr(node, "module", None) or "", alias.name]
                self._reference(name, scope)

    def _write_constant(self, node: ast.Constant, scope: CodeScope) -> None:
        del scope
        self.tokens.append(f"{type(node.value).__name__} {node.value!r}")

    def _write_annassign(self, node: ast.AnnAssign, scope: CodeScope) -> None:
        # A base class or a decorator, such as ``dataclass``, may read the annotations of a class.
        if isinstance(scope.node, ast.ClassDef) and (scope.node.bases or scope.node.decorator_list):
            kept = [name for name in KEPT_ANNOTATIONS if name in ast.dump(node.annotation)]
            if not scope.node.bases and all(word(_called(one)) == "dataclass" for one in scope.node.decorator_list):
                self.tokens += kept
            else:
                self.node(node.annotation, scope)
        if node.value is None:
            self.node(node.target, scope)
        else:
            self._generic(ast.Assign([node.target], node.value), scope)

    _write_importfrom = _write_import

    def _nested(self, node: ast.AST, scope: CodeScope) -> None:
        inner = scope.module.scopes[node]
        name = getattr(node, "name", None)
        if name is not None:
            self._reference(name, scope)
        self._opened.add(inner)
        if isinstance(node, ast.ClassDef):
            self._class(node, inner, scope)
        elif isinstance(node, FUNCTIONS):
            self._function(node, inner, scope)

    def _function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, inner: CodeScope, outer: CodeScope
    ) -> None:
        self.tokens.append(type(node).__name__)
        decorators: list[ast.expr] = [
            one
            for one in getattr(node, "decorator_list", [])
            # The arguments of ``@pipeline.stream(...)`` are compared elsewhere.
            if not (isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "stream")
        ]
        for decorator in decorators:
            self.node(decorator, outer)
        keeps_annotations = any(
            not isinstance(self._meanings.path(_called(one), outer), Library)
            and word(one) not in TRANSPARENT_DECORATORS
            for one in decorators
        )
        given = node.args
        groups: dict[str, Sequence[ast.arg | None]] = {
            "pos": given.posonlyargs,
            "arg": given.args,
            "vararg": [given.vararg],
            "kwonly": given.kwonlyargs,
            "kwarg": [given.kwarg],
        }
        for kind, group in groups.items():
            self.tokens.append(kind)
            for one in group:
                if one is not None:
                    self._local(one.arg, inner)
                    if keeps_annotations and one.annotation is not None:
                        self.node(one.annotation, outer)
        for default in (*given.defaults, *given.kw_defaults):
            self.tokens.append("default")
            if default is not None:
                self.node(default, outer)
        if isinstance(node, ast.Lambda):
            self.node(node.body, inner)
        else:
            self.statements(node.body, inner)
        self.tokens.append(";")

    def _class(self, node: ast.ClassDef, inner: CodeScope, outer: CodeScope) -> None:
        self.tokens.append("class")
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            self.node(part, outer)
        live = inner.module.namespace.get(node.name) if inner.parent is inner.module.scope else None
        derived: list[type] = []
        if isinstance(live, type) and any(getattr(one, "name", None) == "__init_subclass__" for one in node.body):
            derived = sorted(type.__subclasses__(live), key=lambda each: each.__qualname__)
        for one in derived:
            other = self._meanings.modules.loaded(one.__module__)
            found = self._meanings.member(other, one.__qualname__) if other is not None else None
            self.tokens += [found] if isinstance(found, Definition | Variable) else []
        # The order of methods does not matter.
        self.statements(sorted(node.body, key=lambda one: one.name if isinstance(one, METHODS) else ""), inner)
        self.tokens.append(";")

    _write_functiondef = _write_asyncfunctiondef = _write_lambda = _write_classdef = _nested

    def _comprehension(self, node: ast.AST, scope: CodeScope) -> None:
        inner = scope.module.scopes[node]
        self._opened.add(inner)
        self.tokens.append(type(node).__name__)
        for generator in getattr(node, "generators", []):
            self.node(generator, inner)
        for part in ("key", "value", "elt"):
            if hasattr(node, part):
                self.node(getattr(node, part), inner)
        self.tokens.append(";")

    _write_listcomp = _write_setcomp = _write_dictcomp = _write_generatorexp = _comprehension

    def _named_parts(self, node: ast.AST, scope: CodeScope) -> None:
        self.tokens.append(type(node).__name__)
        for field, value in ast.iter_fields(node):
            if field in ("name", "rest") and isinstance(value, str):
                self._reference(value, scope)
            elif value is not None:
                self._field(value, scope)
        self.tokens.append(";")

    _write_excepthandler = _write_matchas = _write_matchstar = _write_matchmapping = _named_parts


def _called(decorator: ast.expr) -> ast.expr:
    return decorator.func if isinstance(decorator, ast.Call) else decorator


def _is_pure(node: ast.AST) -> bool:
    for part in ast.walk(node):
        if isinstance(part, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)):
            return False
        if isinstance(part, ast.Call) and word(part.func) not in HARMLESS_CALLS:
            return False
    return True
