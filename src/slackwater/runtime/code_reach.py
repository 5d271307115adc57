"""Digests of all code that a stream's function reaches, stable under harmless edits.

Followed: the project's functions, lambdas and classes, closures, defaults, decorators, module variables,
``functools.partial``, imports anywhere, and ``getattr`` with a constant name; otherwise a module counts as a whole.
Plain module variables are compared by value, so environment and data files count. Not visible: data from services,
computed names, libraries.
"""

from __future__ import annotations

import ast
import json
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from slackwater.runtime.code_constants import DIFFERS_EACH_TIME, differs
from slackwater.runtime.code_meaning import Callers, Definition, Meanings, Piece, Token, Variable, Whole
from slackwater.runtime.code_scopes import FUNCTIONS, Modules, Scope, vars_of
from slackwater.runtime.code_text import write
from slackwater.runtime.code_values import value_text
from slackwater.runtime.function_values import FunctionValues, Taken
from slackwater.runtime.variables_read import variables_read


@dataclass(frozen=True, slots=True)
class Uses:
    variables: frozenset[str] = frozenset()
    libraries: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Reach:
    """``code`` is a SHA-256 of everything reached; ``functions`` has a digest for each reached name.

    Names are ``__name__`` or registered names, as in Spark's plan; equal names, such as lambdas', share a digest. A
    class's digest includes the code that makes instances.
    """

    code: str
    functions: Mapping[str, str]
    uses: Callable[[Iterable[str] | None], Uses] = field(default=lambda _: Uses(), compare=False, repr=False)
    """The environment variables and libraries used by the functions with these names; ``None``: by all reached code."""
    taken: Callable[[object], Taken] = field(default=lambda _: Taken(), compare=False, repr=False)
    """The values that a function or class takes with it when Spark pickles it."""


def reach_of(function: Callable[..., Any]) -> Reach:
    """The code that the function reaches. Reads files, and imports nothing."""
    plain, bound = _unwrapped(function)
    modules = Modules(Path(plain.__code__.co_filename if plain else ""))
    meanings = Meanings(modules)
    root = _root(plain, meanings) if plain else []
    for value in bound:
        root += value_text(value, meanings.of_function, only_functions=False) or _type_of(value, meanings)
    graph = _Graph(meanings, root)
    values = FunctionValues(meanings, graph.digest, meanings.modules.folder)
    return Reach(graph.digest(root), graph.functions(), partial(graph.uses, root), values.of)


def reach_of_file(file: Path) -> Reach:
    """Like ``reach_of`` for a whole file: an application's code shows no stream function."""
    meanings = Meanings(Modules(file))
    module = meanings.modules.parsed(file)
    root: list[Token] = [] if module is None else [Whole(module)]
    graph = _Graph(meanings, root)
    values = FunctionValues(meanings, graph.digest, meanings.modules.folder)
    return Reach(graph.digest(root), graph.functions(), partial(graph.uses, root), values.of)


def _unwrapped(function: object) -> tuple[types.FunctionType | None, list[object]]:
    if isinstance(function, types.FunctionType):
        return function, []
    if isinstance(function, types.MethodType):
        inner, bound = _unwrapped(function.__func__)
        return inner, [*bound, function.__self__]
    if isinstance(function, partial):
        inner, bound = _unwrapped(function.func)
        return inner, [*bound, function.args, function.keywords]
    call = next((vars(kind)["__call__"] for kind in type(function).__mro__ if "__call__" in vars(kind)), None)
    return (call, [function]) if isinstance(call, types.FunctionType) else (None, [function])


def _root(function: types.FunctionType, meanings: Meanings) -> list[Token]:
    code = function.__code__
    module = meanings.modules.parsed(Path(code.co_filename), function.__globals__)
    found = meanings.function_at(module, code.co_name, code.co_firstlineno) if module else []
    for scope in found:
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            owner = scope.owner(name)
            if owner is not None and not differs(owner, name, DIFFERS_EACH_TIME):
                meanings.cells.setdefault(owner, {})[name] = cell
    return [Definition(scope) for scope in found] or list(_instructions(code))


def _type_of(value: object, meanings: Meanings) -> list[Token]:
    kind = type(value)
    module = meanings.modules.parsed(Path(vars_of(sys.modules.get(kind.__module__)).get("__file__") or ""))
    found = meanings.member(module, kind.__qualname__) if module else None
    fields: list[Token] = []
    if isinstance(found, Definition | Variable):
        fields = (
            value_text(vars(value), meanings.of_function, only_functions=False) or []
            if hasattr(value, "__dict__")
            else []
        )
        return [found, *fields]
    return [f"instance {kind.__module__}.{kind.__qualname__}"]


def _instructions(code: types.CodeType) -> Iterator[str]:
    """The instructions of a function without readable source; they differ between Python versions."""
    yield code.co_code.hex()
    yield " ".join(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _instructions(constant)
        else:
            yield repr(constant)


class _Graph:
    def __init__(self, meanings: Meanings, root: list[Token]) -> None:
        self._meanings = meanings
        self._reached = self._reachable(root)
        self._users: dict[Scope, list[Piece]] = {}
        for piece in self._reached:
            for token in self._text(piece):
                if isinstance(token, Definition):
                    self._users.setdefault(token.scope, []).append(piece)

    def digest(self, root: Iterable[Token]) -> str:
        """Compute the digest. Pieces are numbered by appearance, so that cycles end."""
        numbers: dict[Piece, int] = {}
        texts = [self._numbered(root, numbers)]
        while len(texts) <= len(numbers):
            piece = list(numbers)[len(texts) - 1]
            texts.append(self._numbered(self._text(piece, with_callers=True), numbers))
        return sha256(json.dumps(texts).encode()).hexdigest()

    def functions(self) -> dict[str, str]:
        found: dict[str, set[str]] = {}
        for name, scope in (*self._defined(), *self._registered()):
            is_class = isinstance(scope.node, ast.ClassDef)
            made_by = [Callers(scope)] if is_class else []
            found.setdefault(name, set()).add(self.digest([Definition(scope), *made_by]))
        for path in self._libraries():
            found.setdefault(path.rpartition(".")[2], {path})
        return {name: sha256(json.dumps(sorted(found[name])).encode()).hexdigest() for name in sorted(found)}

    def uses(self, root: Iterable[Token], names: Iterable[str] | None) -> Uses:
        """The uses of the named functions, or all uses if the code does not show a name, such as a partial's."""
        first, wanted = set(root), set(names or ())
        known = [
            (name, Definition(scope))
            for name, scope in (*self._defined(), *self._registered())
            if Definition(scope) not in first
        ]
        called = [piece for name, piece in known if name in wanted] or [piece for _, piece in known]
        pieces = self._reached if names is None else self._reachable(called)
        tokens = {token for piece in pieces for token in self._text(piece) if isinstance(token, str)}
        paths = [token.removeprefix("library ") for token in tokens if token.startswith("library ")]
        scopes = [piece.scope for piece in pieces if isinstance(piece, Definition)]
        return Uses(
            frozenset(name for one in scopes for name in variables_read(one.node, one.module.tree)),
            frozenset(path.partition(".")[0] for path in paths),
        )

    def _registered(self) -> Iterator[tuple[str, Scope]]:
        for name, scopes in self._meanings.registered.items():
            yield from ((name, scope) for scope in scopes)

    def _libraries(self) -> Iterator[str]:
        tokens = {token for piece in self._reached for token in self._text(piece) if isinstance(token, str)}
        paths = sorted(token.removeprefix("library ") for token in tokens if token.startswith("library "))
        yield from (path for path in paths if path != "functools.partial")

    def _defined(self) -> Iterator[tuple[str, Scope]]:
        reached = {piece.scope for piece in self._reached if isinstance(piece, Definition)}
        for module in {scope.module for scope in reached}:
            for node, scope in module.scopes.items():
                inside = scope
                while inside not in reached and inside.parent is not None:
                    inside = inside.parent
                if inside in reached and isinstance(node, (*FUNCTIONS, ast.ClassDef)):
                    outer = scope.parent
                    is_method = outer is not None and isinstance(outer.node, ast.ClassDef)
                    yield getattr(node, "name", "<lambda>"), outer if is_method and outer is not None else scope

    def _reachable(self, root: Iterable[Token]) -> list[Piece]:
        found = dict.fromkeys(token for token in root if not isinstance(token, str))
        queue = list(found)
        for piece in queue:
            new = [token for token in self._text(piece) if not isinstance(token, str) and token not in found]
            found.update(dict.fromkeys(new))
            queue += dict.fromkeys(new)
        return queue

    def _text(self, piece: Piece, *, with_callers: bool = False) -> tuple[Token, ...]:
        if isinstance(piece, Callers):
            return self._callers(piece.scope) if with_callers else ()
        return write(piece, self._meanings)

    def _callers(self, scope: Scope) -> tuple[Token, ...]:
        outer = scope.parent
        if outer is not None and isinstance(outer.node, FUNCTIONS):
            return (Definition(outer),)
        return tuple(piece for made, users in self._users.items() if scope in (made, made.parent) for piece in users)

    @staticmethod
    def _numbered(tokens: Iterable[Token], numbers: dict[Piece, int]) -> list[str | int]:
        return [token if isinstance(token, str) else numbers.setdefault(token, len(numbers)) for token in tokens]
