"""The meaning of names in Python code: definitions, variables with a single value, plain values, invisible inputs."""

import ast
import dataclasses
import datetime as dt
import decimal
import enum
import re
import types
import uuid
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path, PurePath
from types import CellType, ModuleType

from slackwater.runtime.program.code_scopes import (
    FUNCTIONS,
    CodeScope,
    Imported,
    Module,
    Modules,
    own_nodes,
    root_name,
    word,
)

MOST_ALIASES = 20


@dataclass(frozen=True, slots=True)
class Definition:
    scope: CodeScope


@dataclass(frozen=True, slots=True)
class Variable:
    scope: CodeScope
    name: str


@dataclass(frozen=True, slots=True)
class Callers:
    """All reached callers of a function: they decide the arguments."""

    scope: CodeScope


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
    """``cells`` are closure values by binding scope. ``registered`` are SQL functions (``spark.udf.register``)."""

    def __init__(self, modules: Modules) -> None:
        self.modules = modules
        self.cells: dict[CodeScope, Cells] = {}
        self.registered: dict[str, set[CodeScope]] = {}
        self.written: dict[Piece, tuple[tuple[Token, ...], frozenset[str]]] = {}
        """The written form of each piece, and the names that it uses; writing a piece takes time."""

    def of_function(self, file: str, name: str, line: int) -> list[Token] | None:
        module = self.modules.parsed(Path(file))
        return None if module is None else [Definition(scope) for scope in self.function_at(module, name, line)]

    def function_at(self, file: Module, name: str, line: int) -> list[CodeScope]:
        found = []
        for node, scope in file.scopes.items():
            if isinstance(node, ast.Lambda):
                found += [scope] if name == "<lambda>" and node.lineno == line else []
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
                starts = (node.lineno, min((one.lineno for one in node.decorator_list), default=0))
                found += [scope] if line in starts else []
        return found

    def meaning(self, scope: CodeScope, name: str, depth: int = 0) -> Meaning | None:
        owner = scope.owner(name)
        if owner is None:
            return self._from_stars(scope.module, name) or self._of_value(scope.module, name)
        if owner.is_import(name):
            found = owner.imports[name]
            live = owner.module.namespace.get(name) if owner.node is owner.module.tree else None
            # An import in ``try`` and another in ``except``: the loaded module shows which one was used.
            if len(found) > 1 and isinstance(live, ModuleType):
                return self._named(Imported(live.__name__, None), owner.module)
            return self._named(found[-1], owner.module)
        statements = owner.bound[name]
        if len(statements) != 1 or name in owner.changed or depth > MOST_ALIASES:
            return Variable(owner, name)
        only = statements[0]
        if only in owner.module.scopes and getattr(only, "name", None) == name:
            return Definition(owner.module.scopes[only])
        if isinstance(only, ast.Assign) and len(only.targets) == 1 and isinstance(only.targets[0], ast.Name):
            alias = self.path(only.value, owner, depth + 1)
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

    def path(self, node: ast.expr, scope: CodeScope, depth: int = 0) -> Meaning | None:
        if isinstance(node, ast.Name):
            return self.meaning(scope, node.id, depth)
        if not isinstance(node, ast.Attribute):
            return None
        base = self.path(node.value, scope, depth)
        if isinstance(base, Library):
            return Library(f"{base.path}.{node.attr}")
        return self.member(base.module, node.attr) if isinstance(base, Whole) else None

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


def is_changed(scope: CodeScope, name: str, *, by_calls: bool = True) -> bool:
    for one in scope.module.scopes.values():
        if name in one.globals:
            return True
        if one is not scope and name in one.changed and one.owner(name) is scope:
            parts = (part for statement in one.changed[name] for part in ast.walk(statement))
            if by_calls or any(
                isinstance(part, (ast.Attribute, ast.Subscript))
                and not isinstance(part.ctx, ast.Load)
                and root_name(part) == name
                for part in parts
            ):
                return True
    return False


def has_place(value: object, tokens: Sequence[Token], scope: CodeScope) -> bool:
    file = scope.module.file
    folder = repr(str(file.parent))[1:-1]
    is_part = isinstance(value, str) and value in (*file.parts, file.stem)
    return is_part or any(isinstance(token, str) and folder in token for token in tokens)


def differs(scope: CodeScope, name: str, names: frozenset[str]) -> bool:
    """Return whether a variable's value comes from any of the names, directly or by other variables."""
    reached = {(scope, name): None}
    waiting = list(reached)
    for of in waiting:
        for part, used_in in ((part, used_in) for node, used_in in _origins(*of) for part in own_nodes(node)):
            used = word(part)
            if used in names:
                return True
            owner = used_in.owner(used) if isinstance(part, ast.Name) else None
            if owner is not None and (owner, used) not in reached and not owner.is_import(used):
                reached[owner, used] = None
                waiting.append((owner, used))
    return False


def _origins(scope: CodeScope, name: str) -> Iterator[tuple[ast.AST, CodeScope]]:
    """The statements of a variable, an attribute's values in methods, and the arguments for a parameter or field."""
    node, module = scope.node, scope.module
    yield from ((one, scope) for one in (*scope.bound.get(name, []), *scope.changed.get(name, [])))
    if isinstance(node, ast.ClassDef):
        methods = [one for one in module.scopes.values() if one.parent is scope]
        for method, part in [(one, part) for one in methods for part in ast.walk(one.node)]:
            if isinstance(part, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and part.value is not None:
                target = part.targets[0] if isinstance(part, ast.Assign) else part.target
                if isinstance(target, ast.Attribute) and target.attr == name:
                    yield part.value, method
        if name not in scope.bound:
            return
    elif isinstance(node, FUNCTIONS) and scope.bound.get(name) == []:
        defaults = (*node.args.defaults, *node.args.kw_defaults)
        yield from ((one, scope.parent or scope) for one in defaults if one is not None)
    else:
        return
    called = getattr(node, "name", "")
    if called == "__init__" and scope.parent is not None:
        called = getattr(scope.parent.node, "name", "")
    yield from _calls(module).get(called, ())


@lru_cache(maxsize=64)
def _calls(module: Module) -> Mapping[str, Sequence[tuple[ast.AST, CodeScope]]]:
    found: dict[str, list[tuple[ast.AST, CodeScope]]] = {}
    for scope in module.scopes.values():
        body: Sequence[ast.AST] = scope.body() or [scope.node]
        for one in body:
            for call in own_nodes(one, inside=one is scope.node):
                if isinstance(call, ast.Call):
                    # Of a partial, the first argument is what it calls.
                    function = call.args[0] if word(call.func) == "partial" and call.args else call.func
                    given = (*call.args, *(keyword.value for keyword in call.keywords))
                    found.setdefault(word(function), []).extend((argument, scope) for argument in given)
    return found


ATOMS = (
    type(None), bool, int, float, complex, str, bytes, decimal.Decimal, dt.date, dt.time, dt.timedelta,
    dt.timezone, uuid.UUID, range, type(...),
)  # fmt: skip
MAPPINGS = (dict, OrderedDict, Counter)
LIBRARY_FUNCTIONS = (types.BuiltinFunctionType, types.MethodDescriptorType)
OF_NO_OBJECT = (type(None), types.ModuleType)
"""The ``__self__`` types of built-in functions that are not methods of a value."""
MOST_VALUES = 100_000

OfFunction = Callable[[str, str, int], list[Token] | None]


def value_text(value: object, of_function: OfFunction, *, only_functions: bool) -> list[Token] | None:
    """The text of a plain value, or None if a part is not plain.

    ``only_functions`` keeps only functions and keys: for caches, and registries that imports fill.
    """
    writer = ValueWriter(of_function, only_functions)
    try:
        writer.write(value)
    except (_NotPlain, RecursionError):
        return None
    return writer.tokens


class _NotPlain(Exception): ...


class ValueWriter:
    def __init__(self, of_function: OfFunction, only_functions: bool) -> None:
        self.tokens: list[Token] = []
        self._of_function = of_function
        self._only_functions = only_functions
        self._left = MOST_VALUES

    def write(self, value: object) -> None:
        self._left -= 1
        if self._left < 0:
            raise _NotPlain
        # By the exact type: a derived class can have a ``repr`` that does not show its value.
        if type(value) in ATOMS:
            self._add(f"{type(value).__name__} {value!r}")
        elif isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, LIBRARY_FUNCTIONS) and isinstance(getattr(value, "__self__", None), OF_NO_OBJECT):
            self._add(f"library {getattr(value, '__module__', None)}.{value.__qualname__}")
        elif isinstance(value, partial):
            self._parts("partial", (value.func, value.args, value.keywords))
        elif isinstance(value, enum.Enum):
            self._parts(f"enum {value.name}", (value.value,))
        elif isinstance(value, re.Pattern):
            self._parts("pattern", (value.pattern, value.flags))
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            self._parts("data", [getattr(value, field.name) for field in dataclasses.fields(value)])
        else:
            self._collection(value)

    def _collection(self, value: object) -> None:
        kind = type(value)
        if isinstance(value, dict) and (kind in MAPPINGS or self._only_functions):
            entries = list(value.items())
            # A registry is filled in the order of imports, which does not matter.
            if self._only_functions:
                entries.sort(key=lambda entry: str(entry[0]))
            self._parts(kind.__name__, [part for entry in entries for part in entry])
        elif isinstance(value, tuple) and kind.__bases__ == (tuple,) and hasattr(value, "_fields"):
            self._parts(f"named tuple {value._fields}", value)
        elif isinstance(value, (list, tuple)) and (kind in (list, tuple) or self._only_functions):
            self._parts(kind.__name__, value)
        elif isinstance(value, (set, frozenset)) and (kind in (set, frozenset) or self._only_functions):
            # The order of strings in a set differs between processes (``PYTHONHASHSEED``).
            self._parts("set", sorted(value, key=repr))
        elif not self._only_functions:
            # Also a class derived from one of these, whose methods decide what its elements mean.
            raise _NotPlain

    def _parts(self, kind: str, parts: Iterable[object]) -> None:
        self._add(f"{kind} (")
        for part in parts:
            self.write(part)
        self._add(")")

    def _function(self, function: types.FunctionType) -> None:
        code = function.__code__
        found = self._of_function(code.co_filename, code.co_name, code.co_firstlineno)
        if found is None:
            self.tokens.append(f"library {function.__module__}.{function.__qualname__}")
            return
        self.tokens += found
        cells = function.__closure__ or ()
        if cells and not self._only_functions:
            # The expression that made it has its arguments.
            raise _NotPlain
        for cell in cells:
            with suppress(ValueError):  # a variable that has no value yet
                self.tokens += value_text(cell.cell_contents, self._of_function, only_functions=False) or []

    def _add(self, text: str) -> None:
        if not self._only_functions:
            self.tokens.append(text)


FILES = "files"
_KINDS = {
    "chance": re.compile(r"library (?:random|secrets|numpy\.random)\.|library (?:uuid\.uuid[14]|os\.urandom)$"),
    "the clock": re.compile(
        r"library (?:time\.time(?:_ns)?|(?:datetime\.date(?:time)?|pandas\.Timestamp)\.(?:now|utcnow|today))$"
    ),
    "the network": re.compile(
        r"library (?:aiohttp|boto3|botocore|confluent_kafka|elasticsearch|ftplib|google\.cloud|grpc|http\.client|httpx|"
        r"kafka|paramiko|psycopg2?|pymongo|pymysql|redis|requests|smtplib|snowflake|socket|sqlalchemy|urllib3?\.request|"
        r"urllib3)\b"
    ),
}
_READS = re.compile(r"open|read_\w+|loadtxt|genfromtxt|fromfile|get_data")
"""The names of functions and methods that read a file."""
_WRITES = frozenset("wax+")
_LONGEST_PATH = 300
_MOST_PARTS = 4
"""The largest number of adjacent constants that are tried as parts of a path."""


def kinds_of(tokens: Iterable[Token]) -> set[str]:
    paths = [one for one in tokens if isinstance(one, str) and one.startswith("library ")]
    return {kind for kind, pattern in _KINDS.items() if any(map(pattern.match, paths))}


def files_read(
    scope: CodeScope, meanings: Meanings, given: Mapping[str, object], folder: Path
) -> Iterator[frozenset[Path]]:
    """The project's files that literal paths in reading calls may name.

    ``given`` are values of variables without a statement.
    """
    roots = [one for one in (folder, Path.cwd()) if one.name]
    for call in ast.walk(scope.node):
        if isinstance(call, ast.Call) and _is_read(call, scope, meanings):
            texts = list(_texts(call, scope, meanings, given, set()))
            places = {scope.module.file.parent, *roots}
            named = {each for each in map(Path, _paths(texts, places)) if any(map(each.is_relative_to, roots))}
            yield frozenset(each for each in named if each.is_file())


def _is_read(call: ast.Call, scope: CodeScope, meanings: Meanings) -> bool:
    function = call.func
    name = word(function)
    meaning = meanings.path(function, scope)
    if isinstance(meaning, (Definition, Variable)):
        return False
    if not _READS.fullmatch(name) and not (isinstance(meaning, Library) and meaning.path == "numpy.load"):
        return False
    is_function = isinstance(function, ast.Name) or isinstance(meaning, Library)
    given = [one.value for one in call.keywords if one.arg == "mode"] or call.args[is_function : is_function + 1]
    mode = given[0].value if name == "open" and given and isinstance(given[0], ast.Constant) else ""
    return not (isinstance(mode, str) and _WRITES & set(mode))


def _texts(
    node: ast.AST, scope: CodeScope, meanings: Meanings, given: Mapping[str, object], seen: set[Variable]
) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
        return
    children: Iterable[object] = ast.iter_child_nodes(node)
    meaning = meanings.path(node, scope) if isinstance(node, (ast.Name, ast.Attribute)) else None
    if isinstance(meaning, Variable) and meaning not in seen:
        seen.add(meaning)
        scope = meaning.scope
        statements = scope.bound.get(meaning.name, [])
        value = given.get(meaning.name)
        if not statements and isinstance(value, (str, PurePath)):
            yield str(value)
        children = [getattr(one, "value", None) for one in statements]
    elif meaning is not None:
        return
    for child in children:
        if isinstance(child, ast.AST):
            yield from _texts(child, scope, meanings, given, seen)


def _paths(texts: list[str], places: Iterable[Path]) -> Iterator[str]:
    for start in range(len(texts)):
        for end in range(start + 1, min(start + _MOST_PARTS, len(texts)) + 1):
            text = "/".join(texts[start:end])
            if 0 < len(text) <= _LONGEST_PATH and "\0" not in text:
                for place in places:
                    with suppress(OSError):
                        yield str((place / text).resolve())
                        # Of a text with a variable before it, the rest may begin with a slash.
                        yield str((place / text.lstrip("/")).resolve())
