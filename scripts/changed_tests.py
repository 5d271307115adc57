"""Prints the test files that a change can break: those that import what was changed since main, directly or not.

A registry names the kinds of a family (``core/registry.py``), and nothing else imports them: for a changed kind the
tests that import the registry themselves are taken too.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("src", "tests", "examples", "scripts", "benchmarks")


def modules_of(root: Path) -> dict[str, Path]:
    """The modules below a root by the names that they are imported by."""
    found: dict[str, Path] = {}
    for file in sorted(file for folder in FOLDERS for file in (root / folder).rglob("*.py")):
        parts = file.relative_to(root).with_suffix("").parts
        parts = parts[1:] if parts[0] == "src" else parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


@dataclass(frozen=True, slots=True)
class Imports:
    """Which module of a tree imports which."""

    modules: Mapping[str, Path]
    importers: Mapping[str, Collection[str]]
    families: Mapping[str, Collection[str]]
    """The kinds of the registries that a module makes: modules or packages."""

    @classmethod
    def of(cls, root: Path) -> Imports:
        """Of the modules below a root."""
        modules = modules_of(root)
        trees = {name: ast.parse(file.read_text()) for name, file in modules.items()}
        importers: dict[str, set[str]] = {}
        for name, tree in trees.items():
            for imported in _imports(tree):
                importers.setdefault(imported, set()).add(name)
        return cls(modules, importers, {name: tuple(_families(tree)) for name, tree in trees.items()})

    def reached(self, changed: Iterable[Path]) -> list[Path]:
        """The test files that a change of these files can break, sorted."""
        wanted = set(changed)
        found = [name for name, file in self.modules.items() if file in wanted]
        for name in found:
            found += sorted(set(self.importers.get(name, ())) - set(found))
        of_families = {importer for name in found for importer in self._of_family(name)}
        tests = {self.modules[name] for name in (*found, *of_families)}
        return sorted(file for file in tests if file.name.startswith("test_"))

    def kinds(self) -> dict[str, Path]:
        """The modules of kinds, and those below them."""
        packages = [package for of_module in self.families.values() for package in of_module]
        return {name: file for name, file in self.modules.items() if any(_is_below(name, one) for one in packages)}

    def _of_family(self, name: str) -> Iterator[str]:
        """What imports the registry that has this module as a kind or as a part of one."""
        for holder, packages in self.families.items():
            if any(_is_below(name, package) for package in packages):
                yield from self.importers.get(holder, ())


def _is_below(name: str, package: str) -> bool:
    return f"{name}.".startswith(f"{package}.")


def _imports(tree: ast.AST) -> Iterator[str]:
    """Names that may be modules: of ``from a import b`` both ``a`` and ``a.b``, and of a string where one
    may be named, such as ``a.b`` and ``a.b:name``. What only type checkers import is left out.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield (name := node.value.partition(":")[0])
            yield name.rpartition(".")[0]
        elif _makes_registry(node):
            continue
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from (name for other in node.orelse for name in _imports(ast.Module([other], [])))
        else:
            yield from _imports(node)


def _families(tree: ast.Module) -> Iterator[str]:
    """The modules of the kinds that a module's registries name, as ``module:NAME``."""
    for node in ast.walk(tree):
        if _makes_registry(node):
            named = (one.value for one in ast.walk(node) if isinstance(one, ast.Constant))
            yield from (text.partition(":")[0] for text in named if isinstance(text, str) and ":" in text)


def _makes_registry(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).partition("[")[0] == "Registry"


def changed_files(root: Path) -> list[Path]:
    """What differs from the commit at which this branch left main, and what is not in git yet."""
    base = _git(root, "merge-base", "main", "HEAD")[0]
    names = [*_git(root, "diff", "--name-only", base), *_git(root, "ls-files", "--others", "--exclude-standard")]
    return [root / name for name in names]


def _git(root: Path, *arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=root, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.splitlines()


if __name__ == "__main__":
    for test in Imports.of(ROOT).reached(changed_files(ROOT)):
        sys.stdout.write(f"{test.relative_to(ROOT)}\n")
