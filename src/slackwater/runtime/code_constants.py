"""Finds, from assignments, variables whose values are equal in each start."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from slackwater.runtime.code_meaning import Token
from slackwater.runtime.code_scopes import FUNCTIONS, Module, Scope, own_nodes

DIFFERS_EACH_TIME = frozenset({
    "now", "today", "utcnow", "time", "time_ns", "monotonic", "perf_counter", "random", "randint", "uuid1", "uuid4",
    "getpid", "gethostname", "node", "getcwd", "cwd", "mkdtemp", "mkstemp", "gettempdir", "TemporaryDirectory",
    "NamedTemporaryFile", "token_hex", "urandom", "argv", "executable", "getuser", "st_mtime", "getmtime",
})  # fmt: skip
"""A constant made with any of these names is compared by its expression: its value differs between starts or machines.
"""

PLACE = frozenset({"__file__"})
"""A constant made with this name is compared by its expression if its value contains the project's path.

The content of a file next to the module is compared.
"""


def is_changed(scope: Scope, name: str, *, by_calls: bool = True) -> bool:
    for one in scope.module.scopes.values():
        if name in one.globals:
            return True
        if one is not scope and name in one.changed and one.owner(name) is scope:
            statements = one.changed[name]
            if by_calls or any(_is_stored(part, name) for each in statements for part in ast.walk(each)):
                return True
    return False


def _is_stored(node: ast.AST, name: str) -> bool:
    if not isinstance(node, (ast.Attribute, ast.Subscript)) or isinstance(node.ctx, ast.Load):
        return False
    root: ast.AST = node
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    return isinstance(root, ast.Name) and root.id == name


def has_place(value: object, tokens: Sequence[Token], scope: Scope) -> bool:
    file = scope.module.file
    folder = repr(str(file.parent))[1:-1]
    is_part = isinstance(value, str) and value in (*file.parts, file.stem)
    return is_part or any(isinstance(token, str) and folder in token for token in tokens)


def differs(scope: Scope, name: str, names: frozenset[str]) -> bool:
    return _differs(scope, name, names, set())


def _differs(scope: Scope, name: str, names: frozenset[str], seen: set[tuple[Scope, str]]) -> bool:
    seen.add((scope, name))
    return any(
        _is_among(node, used_in, names, seen)
        for node, used_in in (*_expressions(scope, name), *_arguments(scope, name))
    )


def _is_among(node: ast.AST, scope: Scope, names: frozenset[str], seen: set[tuple[Scope, str]]) -> bool:
    for part in own_nodes(node):
        used = _word(part)
        if used in names:
            return True
        owner = scope.owner(used) if isinstance(part, ast.Name) else None
        is_other = owner is not None and (owner, used) not in seen and not owner.is_import(used)
        if owner is not None and is_other and _differs(owner, used, names, seen):
            return True
    return False


def _expressions(scope: Scope, name: str) -> Iterator[tuple[ast.AST, Scope]]:
    yield from ((one, scope) for one in (*scope.bound.get(name, []), *scope.changed.get(name, [])))
    if isinstance(scope.node, ast.ClassDef):
        methods = [inner for inner in scope.module.scopes.values() if inner.parent is scope]
        yield from ((value, inner) for inner in methods for value in _assigned(inner.node, name))


def _assigned(method: ast.AST, name: str) -> Iterator[ast.AST]:
    for part in ast.walk(method):
        if isinstance(part, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and part.value is not None:
            target = part.targets[0] if isinstance(part, ast.Assign) else part.target
            if isinstance(target, ast.Attribute) and target.attr == name:
                yield part.value


def _arguments(scope: Scope, name: str) -> Iterator[tuple[ast.AST, Scope]]:
    node = scope.node
    is_parameter = isinstance(node, FUNCTIONS) and scope.bound.get(name) == []
    if not is_parameter and not (isinstance(node, ast.ClassDef) and name in scope.bound):
        return
    if isinstance(node, FUNCTIONS):
        given = node.args
        yield from ((one, scope.parent or scope) for one in (*given.defaults, *given.kw_defaults) if one is not None)
    of = scope.parent if _named(scope) == "__init__" and scope.parent is not None else scope
    yield from _calls(scope.module).get(_named(of), ())


@lru_cache(maxsize=64)
def _calls(module: Module) -> Mapping[str, Sequence[tuple[ast.AST, Scope]]]:
    found: dict[str, list[tuple[ast.AST, Scope]]] = {}
    for scope in module.scopes.values():
        body: Sequence[ast.AST] = scope.body() or [scope.node]
        for one in body:
            for call in own_nodes(one, inside=one is scope.node):
                if isinstance(call, ast.Call):
                    # Of a partial, the first argument is what it calls.
                    function = call.args[0] if _word(call.func) == "partial" and call.args else call.func
                    given = (*call.args, *(keyword.value for keyword in call.keywords))
                    found.setdefault(_word(function), []).extend((argument, scope) for argument in given)
    return found


def _word(node: ast.AST) -> str:
    return str(getattr(node, "id", getattr(node, "attr", "")))


def _named(scope: Scope) -> str:
    return str(getattr(scope.node, "name", ""))
