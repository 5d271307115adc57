"""Prints the test files that a change can break: those that import what was changed since main, directly or not.

Kinds of a family are found by their names (``core/registry.py``), so nothing imports them: for a changed kind the tests
that import the family's registry themselves are taken too.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
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


def reached(root: Path, changed: Iterable[Path]) -> list[Path]:
    """The test files that a change of these files can break, sorted."""
    modules = modules_of(root)
    trees = {name: ast.parse(file.read_text()) for name, file in modules.items()}
    importers: dict[str, set[str]] = {}
    for name, tree in trees.items():
        for imported in _imports(tree):
            importers.setdefault(imported, set()).add(name)
    wanted = set(changed)
    found = [name for name, file in modules.items() if file in wanted]
    families = {holder: tuple(_families(tree)) for holder, tree in trees.items()}
    of_families = {
        importer
        for name in found
        for holder, packages in families.items()
        if any(name.startswith(f"{package}.") for package in packages)
        for importer in importers.get(holder, ())
    }
    for name in found:
        found += sorted(importers.get(name, set()) - set(found))
    tests = {modules[name] for name in (*found, *of_families)}
    return sorted(file for file in tests if file.name.startswith("test_"))


def _imports(tree: ast.Module) -> Iterator[str]:
    """Names that may be modules: of ``from a import b`` both ``a`` and ``a.b``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _families(tree: ast.Module) -> Iterator[str]:
    """The packages of the registries that a module makes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Subscript):
            name = node.func.value if isinstance(node.func, ast.Subscript) else node.func
            first = node.args[0] if node.args else None
            if isinstance(name, ast.Name) and name.id == "Registry" and isinstance(first, ast.Constant):
                yield str(first.value)


def changed_files(root: Path) -> list[Path]:
    """What differs from the commit at which this branch left main, and what is not in git yet."""
    base = _git(root, "merge-base", "main", "HEAD")[0]
    names = [*_git(root, "diff", "--name-only", base), *_git(root, "ls-files", "--others", "--exclude-standard")]
    return [root / name for name in names]


def _git(root: Path, *arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=root, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.splitlines()


if __name__ == "__main__":
    for test in reached(ROOT, changed_files(ROOT)):
        sys.stdout.write(f"{test.relative_to(ROOT)}\n")
