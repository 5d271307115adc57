"""One kind of sink is one module or folder: nothing else names it. A made-up one is run in ``tests/sinks``."""

import ast
from collections.abc import Iterator
from pathlib import Path

from scripts.sink_table import page as sinks_page
from slackwater.core.errors import StreamFailed
from slackwater.core.sink import CatalogueEntry
from slackwater.runtime.run.failures import is_transient
from slackwater.sinks.common.registry import SINKS, SinkKind, catalogue, open_output, public, public_names

FAMILY = "slackwater.sinks"
DIRECTORIES = {f"{FAMILY}.files.backfill_output", f"{FAMILY}.files.manifest"}
"""Directories of Spark's file sink that are not the output of a stream: an operation fills one, a source reads one."""
LISTS = ("sinks/__init__.py", "sinks/common/registry.py")
"""The names for type checkers, and the list of kinds."""


def _imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(FAMILY):
            yield node.value.replace(":", ".")


def _kind(module: str) -> str | None:
    kind = module.removeprefix(f"{FAMILY}.").split(".")[0].replace("_", "-")
    return kind if module.startswith(f"{FAMILY}.") and kind in SINKS.names() else None


def _home(file: Path) -> str | None:
    parts = file.with_suffix("").parts
    return _kind(".".join(parts[parts.index("slackwater") :]))


def test_only_a_kind_itself_imports_its_modules(source_files: list[Path]) -> None:
    named = {
        (str(file), module)
        for file in source_files
        if not str(file).endswith(LISTS)
        for module in _imported(file)
        if _kind(module) not in {None, _home(file)} and not any(module.startswith(one) for one in DIRECTORIES)
    }
    assert named == set()


def test_a_kind_is_found_once_it_is_registered() -> None:
    traits = catalogue()[0].traits
    entry = CatalogueEntry("numbered", "numbered(folder)", traits)
    known = open_output({"kind": "files", "path": "/out"})
    SINKS.register("numbered", SinkKind(lambda _: known, dict, entries=(entry,), transient=frozenset({"shelf-busy"})))
    try:
        assert open_output({"kind": "numbered"}) is known
        assert catalogue()[-1] is entry
        assert public("numbered") is dict
        assert is_transient(StreamFailed("shelf-busy", "The folder is locked"))
        assert "numbered(folder)" in sinks_page()
    finally:
        SINKS.unregister("numbered")
    assert open_output({"kind": "numbered"}).last_written() is None
    assert not is_transient(StreamFailed("shelf-busy", "The folder is locked"))


def test_every_reference_of_a_kind_can_be_imported() -> None:
    assert [name for name in public_names() if public(name) is None] == []
