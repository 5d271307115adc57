"""Finds imported modules outside of the project, including archives. Runs nothing."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from importlib.abc import InspectLoader
from importlib.machinery import ModuleSpec, PathFinder
from zipimport import zipimporter

MODULES_MAX = 300
"""A program that starts queries through more modules than this is not recognised by their code."""
_NOT_READ = sys.stdlib_module_names | {"pyspark", "py4j", "slackwater"}


def library_trees(trees: Iterable[ast.Module]) -> Iterator[ast.Module]:
    """Trees of imports, and of their own packages' imports.

    Missing and malformed modules are skipped.
    """
    queue = [name for tree in trees for name in _imported(tree, "", is_package=False)]
    roots = {name.split(".")[0] for name in queue} - _NOT_READ
    seen = set[str]()
    read = 0
    for name in queue:
        if name in seen or name.split(".")[0] not in roots or read >= MODULES_MAX:
            continue
        seen.add(name)
        found = _tree(name)
        if found is None:
            continue
        tree, is_package = found
        read += 1
        yield tree
        queue += _imported(tree, name, is_package=is_package)


def spec_of(name: str) -> ModuleSpec | None:
    """The module's spec. Unlike ``importlib.util.find_spec``, does not import parent packages."""
    folders: list[str] | None = None
    spec: ModuleSpec | None = None
    parts = name.split(".")
    for number, part in enumerate(parts, start=1):
        try:
            spec = PathFinder.find_spec(".".join(parts[:number]), folders)
        except KeyError:
            # A namespace package in a package asks its parent for its folders, and that is not imported.
            spec, folders = None, [f"{folder}/{part}" for folder in folders or ()]
            continue
        if spec is None:
            return None
        folders = list(spec.submodule_search_locations or ())
    return spec


def _tree(name: str) -> tuple[ast.Module, bool] | None:
    try:
        # An archive compiles a module to find it.
        spec = spec_of(name)
        if spec is None or not isinstance(spec.loader, InspectLoader | zipimporter):
            return None
        source = spec.loader.get_source(spec.name)
        return None if source is None else (ast.parse(source), spec.submodule_search_locations is not None)
    except (ImportError, OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _imported(tree: ast.Module, module: str, *, is_package: bool) -> list[str]:
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = module.split(".")
            base = parts[: len(parts) - node.level + is_package] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            found += [name, *(f"{name}.{alias.name}" for alias in node.names)]
    split = [name.split(".") for name in found if name.strip(".")]
    return [".".join(each[:length]) for each in split for length in range(1, len(each) + 1)]
