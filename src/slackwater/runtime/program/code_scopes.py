"""Parses a project's modules, and finds the statements that bind each name. Imports nothing.

A module may be in an archive (``--py-files``).
"""

from __future__ import annotations

import ast
import stat
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile, ZipFile

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
NOT_THE_PROJECTS = frozenset({"slackwater", "pyspark", "py4j"})
READING_METHODS = frozenset({
    "get", "items", "keys", "values", "copy", "index", "count", "join", "format", "split", "strip", "lower", "upper",
    "startswith", "endswith", "replace",
})  # fmt: skip
"""Methods of built-in values that change nothing; any other method may change its value."""


CHANGING_FUNCTIONS = frozenset({"setattr", "delattr"})
"""Built-in functions that change their first argument."""


class Imported(NamedTuple):
    """A module, or a member of it. ``level`` counts leading dots."""

    module: str
    member: str | None
    level: int = 0


@dataclass(eq=False, slots=True)
class CodeScope:
    """Bound names with their statements. ``changed`` are in-place changes; parameters have no statement."""

    module: Module
    node: ast.AST
    parent: CodeScope | None
    bound: dict[str, list[ast.stmt]] = field(default_factory=dict)
    changed: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imports: dict[str, list[Imported]] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)
    """Names bound by other statements than imports."""
    globals: set[str] = field(default_factory=set)

    def owner(self, name: str) -> CodeScope | None:
        if name in self.globals:
            return self.module.scope if name in self.module.scope.bound else None
        if name in self.bound:
            return self
        scope = self.parent
        while scope is not None and (name not in scope.bound or isinstance(scope.node, ast.ClassDef)):
            scope = scope.parent
        return scope

    def is_import(self, name: str) -> bool:
        return name in self.imports and name not in self.others

    def body(self) -> list[ast.stmt]:
        found = getattr(self.node, "body", [])
        return found if isinstance(found, list) else []


@dataclass(eq=False, slots=True)
class Module:
    """A parsed file. ``namespace`` has its values if it was imported."""

    file: Path
    namespace: Mapping[str, Any]
    tree: ast.Module
    scopes: dict[ast.AST, CodeScope] = field(default_factory=dict)
    stars: list[Imported] = field(default_factory=list)
    dotted: list[Imported] = field(default_factory=list)

    @property
    def scope(self) -> CodeScope:
        return self.scopes[self.tree]

    def imported(self) -> list[Imported]:
        named = [one for scope in self.scopes.values() for many in scope.imports.values() for one in many]
        return [*named, *self.stars, *self.dotted]


class Modules:
    def __init__(self, home: Path) -> None:
        self._parsed: dict[Path, Module | None] = {}
        self._libraries = _libraries(home)
        # A file's neighbours can be imported, as when Python runs it itself.
        self.folder = home.parent
        self._loaded = {
            str(file): vars(module)
            for module in list(sys.modules.values())
            if (file := vars_of(module).get("__file__"))
        }

    def parsed(self, file: Path, namespace: Mapping[str, Any] | None = None) -> Module | None:
        if file not in self._parsed:
            self._parsed[file] = None
            if file.suffix != ".py" or any(file.is_relative_to(folder) for folder in self._libraries):
                return None
            try:
                tree = ast.parse(read_source(file))
            except (OSError, SyntaxError, ValueError):
                return None
            module = Module(file, self._loaded.get(str(file), {}) if namespace is None else namespace, tree)
            _build(module, tree, None)
            self._parsed[file] = module
        return self._parsed[file]

    def loaded(self, name: str) -> Module | None:
        """The module of this name that runs in this process."""
        file = vars_of(sys.modules.get(name)).get("__file__")
        return self.parsed(Path(file)) if file else None

    def named(self, name: str, level: int, importer: Module) -> Module | None:
        if level:
            folder = importer.file.parents[level - 1]
            return self._below(folder, name) if name else self.parsed(folder / "__init__.py")
        if name.partition(".")[0] in NOT_THE_PROJECTS:
            return None
        # The loaded module is the one that runs, also where ``sys.path`` has changed since.
        if vars_of(sys.modules.get(name)).get("__file__"):
            return self.loaded(name)
        folders = (str(self.folder), *(folder or "." for folder in sys.path))
        found = (self._below(Path(folder).absolute(), name) for folder in folders)
        return next((module for module in found if module is not None), None)

    def all_of(self, imported: Imported, importer: Module) -> Iterator[Module]:
        parts = imported.module.split(".") if imported.module else []
        names = [".".join(parts[: end + 1]) for end in range(len(parts))] or [""]
        found = [self.named(name, imported.level, importer) for name in names]
        yield from (module for module in found if module is not None)
        if found[-1] is not None and imported.member is not None:
            below = self.submodule(found[-1], imported.member)
            if below is not None:
                yield below

    def submodule(self, package: Module, name: str) -> Module | None:
        return self._below(package.file.parent, name) if package.file.name == "__init__.py" else None

    def _below(self, folder: Path, name: str) -> Module | None:
        place = folder.joinpath(*name.split("."))
        for file in (place / "__init__.py", place.with_name(place.name + ".py")):
            if is_source(file):
                return self.parsed(file)
        return None


def imported_files(file: Path) -> tuple[Path, ...]:
    """The files of direct and indirect imports, anywhere in the code.

    An archive is a folder in the path. Runs nothing.
    """
    modules = Modules(file)
    first = modules.parsed(file)
    found = {first.file: first} if first is not None else {}
    queue = list(found.values())
    for module in queue:
        for imported in module.imported():
            for other in modules.all_of(imported, module):
                if other.file not in found:
                    found[other.file] = other
                    queue.append(other)
    return tuple(path for path in found if path != file)


def vars_of(module: object) -> Mapping[str, Any]:
    return getattr(module, "__dict__", {})


def _libraries(home: Path) -> tuple[Path, ...]:
    slackwater = Path(__file__).parents[2]
    around = [folder for folder in home.parents if folder.name in ("site-packages", "dist-packages")]
    if not around:
        names = ("stdlib", "platstdlib", "purelib", "platlib")
        return (*{Path(sysconfig.get_path(name)) for name in names}, slackwater)
    top = home.relative_to(around[0]).parts[0]
    return (*(entry for entry in around[0].iterdir() if entry.name != top), slackwater)


def _build(module: Module, node: ast.AST, parent: CodeScope | None) -> None:
    scope = CodeScope(module, node, parent)
    module.scopes[node] = scope
    if isinstance(node, FUNCTIONS):
        given = node.args
        every = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
        names = [one.arg for one in every if one is not None]
    else:
        targets = [generator.target for generator in getattr(node, "generators", [])]
        names = [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
    scope.bound.update({name: [] for name in names})
    scope.others.update(names)
    for statement in scope.body():
        for part in own_nodes(statement):
            _bind(scope, statement, part)
    if isinstance(node, (ast.Lambda, *COMPREHENSIONS)):
        parts = [part for part in own_nodes(node, inside=True) if part is not node]
    else:
        parts = [part for statement in scope.body() for part in own_nodes(statement)]
    for part in parts:
        if _opens(part):
            _build(module, part, scope)
    for name in scope.globals:
        scope.bound.pop(name, None)


def _opens(node: ast.AST) -> bool:
    return isinstance(node, (*FUNCTIONS, ast.ClassDef, *COMPREHENSIONS))


def own_nodes(node: ast.AST, *, inside: bool = False) -> Iterator[ast.AST]:
    yield node
    children: Iterable[ast.AST | None]
    if inside or not _opens(node):
        children = ast.iter_child_nodes(node)
    elif isinstance(node, FUNCTIONS):
        children = (*getattr(node, "decorator_list", []), *node.args.defaults, *node.args.kw_defaults)
    elif isinstance(node, ast.ClassDef):
        children = (*node.decorator_list, *node.bases, *node.keywords)
    else:
        # A name that := binds in a comprehension is one of the scope around it.
        children = (part.target for part in ast.walk(node) if isinstance(part, ast.NamedExpr))
    for child in children:
        if child is not None:
            yield from own_nodes(child)


def _bind(scope: CodeScope, statement: ast.stmt, part: ast.AST) -> None:
    if isinstance(part, (ast.Import, ast.ImportFrom)):
        for name, imported in _imported(part):
            if name in {"*", ""}:
                (scope.module.stars if name else scope.module.dotted).append(imported)
                continue
            scope.imports.setdefault(name, []).append(imported)
            scope.bound.setdefault(name, []).append(statement)
        return
    if isinstance(part, (ast.Global, ast.Nonlocal)):
        scope.globals.update(part.names if isinstance(part, ast.Global) else ())
        return
    for name in _names_bound(part):
        scope.others.add(name)
        if statement not in scope.bound.setdefault(name, []):
            scope.bound[name].append(statement)
    for name in filter(None, map(root_name, _changed(part))):
        if statement not in scope.changed.setdefault(name, []):
            scope.changed[name].append(statement)


def _imported(part: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, Imported]]:
    for alias in part.names:
        if isinstance(part, ast.ImportFrom):
            yield alias.asname or alias.name, Imported(part.module or "", alias.name, part.level)
        elif alias.asname:
            yield alias.asname, Imported(alias.name, None)
        else:
            top = alias.name.partition(".")[0]
            yield top, Imported(top, None)
            yield "", Imported(alias.name, None)


def _names_bound(part: ast.AST) -> list[str]:
    if isinstance(part, ast.Name):
        return [part.id] if isinstance(part.ctx, (ast.Store, ast.Del)) else []
    if isinstance(part, (*DEFINITIONS, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        return [part.name] if part.name else []
    return [part.rest] if isinstance(part, ast.MatchMapping) and part.rest else []


def _changed(part: ast.AST) -> Sequence[ast.AST]:
    """The values that a part of a statement may change in place."""
    if isinstance(part, (ast.Subscript, ast.Attribute)):
        return [] if isinstance(part.ctx, ast.Load) else [part]
    if isinstance(part, ast.AugAssign):
        return [part.target]
    if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
        return [] if part.func.attr in READING_METHODS else [part.func]
    if isinstance(part, ast.Call):
        return part.args[:1] if word(part.func) in CHANGING_FUNCTIONS else []
    # ``@function.register``: a decorator without arguments is no call.
    return [one for one in getattr(part, "decorator_list", []) if isinstance(one, ast.Attribute)]


def root_name(node: ast.AST) -> str | None:
    """The variable of which a node is an attribute or element."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def word(node: ast.AST) -> str:
    """A variable's name, or an attribute's last name."""
    return str(getattr(node, "id", getattr(node, "attr", "")))


def is_source(file: Path) -> bool:
    try:
        return stat.S_ISREG(file.stat().st_mode)
    except NotADirectoryError:
        # ``stat`` raises this for a path below a regular file, such as an archive.
        archive = _archive(file)
        return archive.is_file() and _name(file) in _names(archive, archive.stat().st_mtime_ns)
    except OSError:
        return False


def in_archive(file: Path) -> bool:
    """Return whether a module is in an archive: Python shows the archive file as its folder."""
    return not file.exists() and _archive(file).is_file()


def read_source(file: Path) -> bytes:
    if not in_archive(file):
        return file.read_bytes()
    try:
        with ZipFile(_archive(file)) as opened:
            return opened.read(_name(file))
    except (KeyError, BadZipFile, NotImplementedError, RuntimeError) as error:
        raise FileNotFoundError(f"cannot be read from the archive: {file}: {error}") from error


def _archive(file: Path) -> Path:
    return next(folder for folder in file.parents if folder.exists())


def _name(file: Path) -> str:
    return file.relative_to(_archive(file)).as_posix()


@lru_cache(maxsize=64)
def _names(archive: Path, _modified_ns: int) -> frozenset[str]:
    try:
        with ZipFile(archive) as opened:
            return frozenset(opened.namelist())
    except (OSError, BadZipFile):
        return frozenset()


_METHODS = ("get", "pop", "setdefault", "__getitem__", "__contains__")


def variables_read(tree: ast.AST, imports: ast.AST | None = None) -> tuple[str, ...]:
    """Names in ``os.environ`` or ``os.getenv``, also under aliases, sorted.

    Constant names only: computed names are unknown without running the file. ``imports`` is ``tree``'s module.
    """
    modules, mappings, functions = _aliases(imports or tree)

    def means(node: ast.expr, names: set[str], attribute: str) -> bool:
        if isinstance(node, ast.Attribute) and node.attr == attribute:
            return isinstance(node.value, ast.Name) and node.value.id in modules
        return isinstance(node, ast.Name) and node.id in names

    def reads(function: ast.expr) -> bool:
        if isinstance(function, ast.Attribute) and function.attr in _METHODS:
            return means(function.value, mappings, "environ")
        return means(function, functions, "getenv")

    found: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and reads(node.func):
            found += [*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "key")]
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            found += [node.slice] if means(node.value, mappings, "environ") else []
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            found += [node.left] if means(node.comparators[0], mappings, "environ") else []
    return tuple(sorted({one.value for one in found if isinstance(one, ast.Constant) and isinstance(one.value, str)}))


@lru_cache(maxsize=64)
def _aliases(tree: ast.AST) -> tuple[set[str], set[str], set[str]]:
    """The names in a module of ``os``, ``os.environ`` and ``os.getenv``."""
    found: dict[str, set[str]] = {"os": set(), "environ": set(), "getenv": set()}
    for node in ast.walk(tree):
        is_import = isinstance(node, ast.Import)
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and node.module == "os"):
            for alias in node.names:
                if alias.name in found and is_import == (alias.name == "os"):
                    found[alias.name].add(alias.asname or alias.name)
    return found["os"], found["environ"], found["getenv"]
