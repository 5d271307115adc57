"""Finds a Python function's values: in closures, defaults, modules, objects and classes.

Read from Spark's pickle, as a worker gets it. Excludes values that differ in each start, and secrets: a new password
changes no rows.
"""

import ast
import os
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from slackwater.core.masking import is_secret_name
from slackwater.runtime.program.code_meaning import (
    ATOMS,
    DIFFERS_EACH_TIME,
    FILES,
    Definition,
    Meanings,
    Token,
    ValueWriter,
    Variable,
    differs,
    files_read,
    is_changed,
    kinds_of,
)
from slackwater.runtime.program.code_scopes import CodeScope, vars_of
from slackwater.runtime.program.code_text import names_used, write
from slackwater.runtime.program.pickled import BROADCAST, MOST_BYTES, NOT_READ, Made, Named, as_pickled

Digest = Callable[[Iterable[Token]], str]
Part = tuple[str, list[Token]]
"""The tokens of a value, and the name of its variable, attribute or argument; empty for a function's own tokens."""

DIFFERS_EACH_RUN = DIFFERS_EACH_TIME | {"applicationId", "hash", "startTime", "uiWebUrl"}
"""Names of values that differ in each run, including values of a Spark session and hashes of strings."""
IN_ANY_ORDER = frozenset({"set", "frozenset", "listdir", "scandir", "glob", "rglob", "iterdir"})
"""A list made with any of these names may have a different order in each start."""
NOT_COMPARED = ("_thread.", "logging.", "numpy.random.", "random.", "slackwater.", "threading.", "weakref.")
"""Path prefixes of objects that always differ or do not matter."""
BROADCAST_CLASSES = frozenset({("pyspark.broadcast", "Broadcast"), ("pyspark.core.broadcast", "Broadcast")})
"""Classes compared by name: a command that needs no query does not load pyspark."""
WRAPPERS = frozenset({"builtins.classmethod", "builtins.property", "builtins.staticmethod"})
WRAPPED: Mapping[type, tuple[str, ...]] = {
    types.MethodType: ("__func__", "__self__"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    property: ("fget",),
}
"""The attributes with what a method or wrapper wraps."""
PLAIN = frozenset({type(None), bool, int, float, str, bytes})
COLLECTIONS = (dict, list, tuple, set, frozenset)
MOST_SETTINGS = 100
"""Entries of a dictionary that may have secrets."""
_DIGEST_LENGTH = 16
_NOT_COMPARED = "not compared"
_PLACE = "<folder of the project>"


@dataclass(frozen=True, slots=True)
class Taken:
    """Digests of values by variable, and by project file read.

    ``outside`` cannot be compared. ``code`` is a class's own digest.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    outside: frozenset[str] = frozenset()
    code: str = ""


def taken_by(meanings: Meanings, digest: Digest, function: object) -> Taken:
    """Digests of a function's values. The place of the project's folder does not matter."""
    folder = meanings.modules.folder
    found: dict[str, list[list[Token]]] = {}
    walk = _Walk(meanings, str(folder))
    for name, tokens in walk.all_parts(function):
        found.setdefault(name, []).append([*tokens, ";"])
    own = _in_order(found.pop("", []))
    for file in walk.files:
        if file.stat().st_size > MOST_BYTES:
            raise ValueError(f"{file} is too large to be compared")
        found[f"file {os.path.relpath(file, folder)}"] = [[sha256(file.read_bytes()).hexdigest()]]
    return Taken(
        {name: digest(_in_order(found[name]))[:_DIGEST_LENGTH] for name in sorted(found)},
        frozenset(walk.outside),
        digest(own) if isinstance(function, type) else "",
    )


@dataclass(slots=True)
class _Walk:
    """Walks through values. ``left``: how many more values may be written.

    ``called`` are named functions and classes, each listed once.
    """

    meanings: Meanings
    folder: str
    left: int = 100_000
    around: set[int] = field(default_factory=set)
    called: dict[object, tuple[str, Any]] = field(default_factory=dict)
    outside: set[str] = field(default_factory=set)
    files: set[Path] = field(default_factory=set)

    def all_parts(self, function: object) -> Iterator[Part]:
        yield from self.parts("", function)
        done: set[object] = set()
        while len(done) < len(self.called):
            for key, (name, value) in list(self.called.items()):
                if key not in done:
                    done.add(key)
                    yield from self.parts(name, value, called=True)

    def parts(self, name: str, value: Any, *, called: bool = False) -> Iterator[Part]:
        """The values of an object. ``called``: the code of this function or class is compared elsewhere."""
        if id(value) in self.around:
            if not called:
                yield name, ["around"]
            return
        self.around.add(id(value))
        try:
            yield from self._parts(name, value, called=called)
        finally:
            self.around.discard(id(value))

    def _parts(self, name: str, value: Any, *, called: bool) -> Iterator[Part]:
        wrapped = [each for kind, names in WRAPPED.items() if isinstance(value, kind) for each in names]
        if type(value) in (*ATOMS, *COLLECTIONS, bytearray):
            yield name, _written(value, self)
        elif isinstance(value, types.FunctionType):
            yield from self._function(name, value, called=called)
        elif wrapped:
            for each in wrapped:
                yield from self.parts(name, getattr(value, each), called=called)
        elif (type(value).__module__, type(value).__name__) in BROADCAST_CLASSES:
            yield from self.parts(name, value.value)
        elif isinstance(value, type):
            of = value.of if issubclass(value, Made) else Named(value.__module__, value.__qualname__)
            if called:
                yield from self._attributes(name, of)
            else:
                yield name, self._token(of)
                self._call(name, value)
        elif isinstance(value, Made):
            yield from self._made(name, value, called=called)
        else:
            yield from self._of_this_process(name, value, called=called)

    def _of_this_process(self, name: str, value: object, *, called: bool) -> Iterator[Part]:
        inner = getattr(value, "__wrapped__", None)
        if isinstance(inner, types.FunctionType):
            self._call(name, inner)
            return
        try:
            made = as_pickled(value)
        except NOT_READ:
            yield name, [_NOT_COMPARED]
            return
        yield from self.parts(name, made, called=called)

    def _function(self, name: str, function: types.FunctionType, *, called: bool) -> Iterator[Part]:
        scopes = self._scopes_of(function.__code__)
        if not called:
            path = f"library {function.__module__}.{function.__qualname__}"
            yield name, [*(Definition(one) for one in scopes)] or [path]
        if not scopes:
            self._of_library(function)
            return
        used = frozenset[str]().union(*(names_used(one, self.meanings) for one in scopes))
        for each, value in _given(function):
            if each in used and all(_is_compared(one, each, value) for one in scopes):
                yield from self.parts(each, value)
        for each, value in vars(function).items():
            if each != "__wrapped__" and not is_secret_name(each):
                yield from self.parts(each, value)
        for one in scopes:
            self.outside |= kinds_of(write(Definition(one), self.meanings))
            for files in files_read(one, self.meanings, dict(_given(function)), Path(self.folder)):
                self.files |= files
                self.outside |= set() if files else {FILES}
        yield from self._globals(function, scopes)

    def _of_library(self, function: types.FunctionType) -> None:
        inner = getattr(function, "__wrapped__", None)
        for value in [inner] if inner is not None else [value for _, value in _given(function)]:
            is_object = isinstance(value, Made) and self._is_of_project(value.of)
            if is_object or isinstance(value, (types.FunctionType, types.MethodType)):
                self._call("", value)

    def _scopes_of(self, code: types.CodeType) -> list[CodeScope]:
        module = self.meanings.modules.parsed(Path(code.co_filename))
        return [] if module is None else self.meanings.function_at(module, code.co_name, code.co_firstlineno)

    def _globals(self, function: types.FunctionType, scopes: list[CodeScope]) -> Iterator[Part]:
        tokens = dict.fromkeys(token for one in scopes for token in write(Definition(one), self.meanings))
        for token in tokens:
            if not isinstance(token, (Definition, Variable)):
                continue
            scope = token.scope if isinstance(token, Variable) else token.scope.parent
            name = token.name if isinstance(token, Variable) else str(getattr(token.scope.node, "name", ""))
            if scope is None or scope is not scope.module.scope:
                continue
            own = function.__globals__ if scope.module is scopes[0].module else {}
            values = own if name in own else scope.module.namespace
            if name not in values or not _is_compared(scope, name, values[name]):
                continue
            # What a method of an object changes while the query runs, it changes in the process of a worker.
            value = values[name]
            is_derived = isinstance(value, Made) and value.of.module == "collections"
            if is_changed(scope, name, by_calls=is_derived or isinstance(value, (*COLLECTIONS, bytearray))):
                continue
            if isinstance(token, Definition):
                self._call(name, value)
            else:
                yield from self.parts(name, value)

    def _made(self, name: str, made: Made, *, called: bool) -> Iterator[Part]:
        path = made.of.path
        if path == "functools.partial":
            yield from self._partial(name, *made.state[:3])
        elif path in WRAPPERS or made.of == BROADCAST:
            yield from self.parts(name, made.arguments[0], called=called)
        elif path.startswith(NOT_COMPARED):
            yield name, [_NOT_COMPARED]
        elif path.startswith("pathlib."):
            yield name, _written("/".join(map(str, made.arguments)), self)
        elif not self._is_of_project(made.of):
            values = [list(made.arguments), dict(made.keywords), made.state, made.elements]
            yield name, [f"made by {made.of.module.partition('.')[0]} {made.of.name}", *_written(values, self)]
        else:
            yield from self._object(name, made, called=called)

    def _partial(self, name: str, function: Any, given: tuple[Any, ...], named: Mapping[str, Any]) -> Iterator[Part]:
        yield from self.parts(name or "function", function)
        code = getattr(function, "__code__", None)
        names = code.co_varnames[: code.co_argcount] if code is not None else ()
        scopes = self._scopes_of(code) if code is not None else []
        places = {
            names[place] if place < len(names) else f"argument {place + 1}": one for place, one in enumerate(given)
        }
        for each, value in {**places, **(named or {})}.items():
            if not is_secret_name(each) and all(_is_compared(one, each, value) for one in scopes):
                yield from self.parts(each, value)

    def _object(self, name: str, made: Made, *, called: bool) -> Iterator[Part]:
        if not called:
            yield name, self._token(made.of)
        self._call(name, type(made))
        state = made.state
        if isinstance(state, tuple) and all(isinstance(one, (dict, type(None))) for one in state):
            state = {key: value for one in state for key, value in (one or {}).items()}
        fields = state if isinstance(state, dict) else {"state": state} if state is not None else {}
        for place, value in enumerate(made.arguments, start=1):
            yield from self.parts(name or f"argument {place}", value)
        scopes = self._scopes(made.of)
        for each, value in fields.items():
            if all(_is_compared(one, each, value) for one in scopes) and not is_secret_name(each):
                yield from self.parts(f"{name}.{each}".lstrip("."), value)
        if made.elements:
            yield f"{name}.elements".lstrip("."), _written(made.elements, self)

    def _attributes(self, name: str, of: Named) -> Iterator[Part]:
        live: Any = sys.modules.get(of.module) if of.body is None and self._is_of_project(of) else None
        for part in of.name.split("."):
            live = vars_of(live).get(part)
        if of.body is None and not isinstance(live, type):
            function = getattr(live, "__wrapped__", live)
            if isinstance(function, types.FunctionType):
                self._call("", function)
            return
        scopes = self._scopes(of)
        body = of.body if of.body is not None else vars_of(live)
        for each, value in body.items():
            is_wrapper = isinstance(value, Made) and value.of.path in WRAPPERS
            if is_wrapper or isinstance(value, (types.FunctionType, staticmethod, classmethod, property)):
                self._call("", value)
                continue
            is_slot = isinstance(value, (types.MemberDescriptorType, types.GetSetDescriptorType))
            is_pythons = is_slot or each == "_abc_impl" or (each.startswith("_") and each.endswith("_"))
            if not is_pythons and all(_is_compared(one, each, value) for one in scopes):
                yield from self.parts(f"{name}.{each}".lstrip("."), value)
        for base in of.bases or getattr(live, "__bases__", ()):
            self._call(name, base)

    def _call(self, name: str, value: Any) -> None:
        # A class of a module is another object in each pickle.
        is_class = isinstance(value, type) and issubclass(value, Made) and value.of.body is None
        self.called.setdefault(value.of.path if is_class else id(value), (name, value))

    def _token(self, of: Named) -> list[Token]:
        return [Definition(one) for one in self._scopes(of)] or [f"library {of.path}"]

    def _scopes(self, of: Named) -> list[CodeScope]:
        module = self.meanings.modules.loaded(of.module)
        last = of.name.rpartition(".")[2]
        every = module.scopes.values() if module is not None else ()
        return [one for one in every if getattr(one.node, "name", None) == last]

    def _is_of_project(self, of: Named) -> bool:
        return of.body is not None or self.meanings.modules.loaded(of.module) is not None


class _DeepWriter(ValueWriter):
    """Writes any value: objects by content, unordered values sorted."""

    def __init__(self, walk: _Walk) -> None:
        super().__init__(walk.meanings.of_function, only_functions=False)
        self._walk = walk

    def write(self, value: object) -> None:
        self._walk.left -= 1
        if self._walk.left < 0:
            raise ValueError("the value has too many parts to be compared")
        if isinstance(value, (bytes, bytearray)):
            self._add(f"bytes {sha256(value).hexdigest()}")
        elif type(value) in COLLECTIONS:
            self._collection_of(value)
        elif type(value) in ATOMS:
            super().write(value)
        else:
            # The names of a function's variables do not matter.
            is_function = isinstance(value, (types.FunctionType, types.MethodType))
            parts = [tokens if is_function else [name, *tokens] for name, tokens in self._walk.parts("", value)]
            self._parts_written(_in_order(parts))

    def _parts_written(self, tokens: list[Token]) -> None:
        self.tokens += ["(", *tokens, ")"]

    def _collection_of(self, value: Any) -> None:
        if isinstance(value, dict) and len(value) <= MOST_SETTINGS:
            value = {key: one for key, one in value.items() if not (isinstance(key, str) and is_secret_name(key))}
        inside = [*value, *value.values()] if isinstance(value, dict) else value
        pairs = value.items() if isinstance(value, dict) else value
        if set(map(type, inside)) <= PLAIN:
            # At once: tables have many elements.
            ordered = value
            if not isinstance(value, (list, tuple)):
                try:
                    ordered = sorted(pairs)
                except TypeError:
                    ordered = sorted(pairs, key=repr)
            text = repr(ordered).replace(self._walk.folder, _PLACE)
            self._add(f"{type(value).__name__} {sha256(text.encode(errors='surrogatepass')).hexdigest()}")
        elif isinstance(value, (list, tuple)):
            self._parts(type(value).__name__, value)
        else:
            self._parts_written(_in_order(_written(one, self._walk) for one in pairs))

    def _add(self, text: str) -> None:
        super()._add(text.replace(self._walk.folder, _PLACE))


def _written(value: object, walk: _Walk) -> list[Token]:
    writer = _DeepWriter(walk)
    writer.write(value)
    return writer.tokens


def _in_order(parts: Iterable[list[Token]]) -> list[Token]:
    return [token for one in sorted(parts, key=_key) for token in one]


def _key(tokens: list[Token]) -> str:
    nodes = [getattr(getattr(token, "scope", None), "node", None) for token in tokens]
    return "\n".join(
        token if isinstance(token, str) else f"{type(token).__name__} {getattr(node, 'name', '')}"
        for token, node in zip(tokens, nodes, strict=True)
    )


def _given(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # a variable that has no value yet
            continue
    defaults = function.__defaults__ or ()
    yield from zip(code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount], defaults, strict=True)
    yield from (function.__kwdefaults__ or {}).items()


def _is_compared(scope: CodeScope, name: str, value: object) -> bool:
    # An attribute is no name of the scopes around a class.
    owner = scope if isinstance(scope.node, ast.ClassDef) else scope.owner(name) or scope
    if is_secret_name(name) or differs(owner, name, DIFFERS_EACH_RUN):
        return False
    return not (isinstance(value, (list, tuple)) and differs(owner, name, IN_ANY_ORDER))
