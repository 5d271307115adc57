"""Example files, the demo's story, and changes of functions for an upgrade."""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import slackwater
from slackwater.core.errors import EnvironmentMissing

_PACKAGE = Path(slackwater.__file__).resolve().parent
SETTINGS = """home = ".slackwater"

[spark]
"spark.sql.shuffle.partitions" = 2
"""


def examples_folder() -> Path:
    """``examples/`` of the package or the checkout. Raises EnvironmentMissing."""
    for folder in (_PACKAGE / "_examples", _PACKAGE.parents[1] / "examples"):
        if (folder / "weather.py").is_file():
            return folder
    raise EnvironmentMissing(
        "examples-missing",
        "The example files are not next to the package",
        where=str(_PACKAGE),
        hint="reinstall slackwater",
    )


def story_module(name: str) -> ModuleType:
    """A module of ``examples/demo``."""
    if "examples" not in sys.modules:
        # Its modules import each other as examples.demo; in an installation the folder has another name.
        examples = ModuleType("examples")
        examples.__path__ = [str(examples_folder())]
        sys.modules["examples"] = examples
    return import_module(f"examples.demo.{name}")


def read_example(name: str) -> str:
    """The text of an example, such as ``changes/upgraded_gold.py``."""
    return (examples_folder() / name).read_text(encoding="utf-8")


def with_change(pipeline: str, change: str) -> str:
    """The pipeline with a function replaced by the change's only function.

    Decorators stay; missing imports are added.
    """
    new = _only_function(change)
    first, last = _span(pipeline, new)
    lines = pipeline.splitlines()
    text = "\n".join([*lines[: first - 1], *_function_lines(change), *lines[last:]]) + "\n"
    return _with_imports(text, change)


def with_stream_of_change(pipeline: str, change: str, *, renamed: str, stream: str) -> str:
    """The pipeline with the change as a new function, and a stream that uses it."""
    name = _only_function(change)
    function = "\n".join(_function_lines(change)).replace(f"def {name}(", f"def {renamed}(", 1)
    return _with_imports(f"{pipeline}\n\n{function}\n\n\n{stream}", change)


def _only_function(change: str) -> str:
    names = [node.name for node in ast.parse(change).body if isinstance(node, ast.FunctionDef)]
    if len(names) != 1:
        raise ValueError(f"a change holds one function, this one holds {len(names)}")
    return names[0]


def _span(text: str, function: str) -> tuple[int, int]:
    """Lines of a function without decorators, counted from 1."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return node.lineno, node.end_lineno or node.lineno
    raise ValueError(f"there is no function {function}")


def _function_lines(change: str) -> list[str]:
    first, last = _span(change, _only_function(change))
    return change.splitlines()[first - 1 : last]


def _with_imports(text: str, change: str) -> str:
    present = {ast.unparse(node) for node in _imports(text)}
    missing = [line for node in _imports(change) if (line := ast.unparse(node)) not in present]
    if not missing:
        return text
    lines = text.splitlines()
    first = _imports(text)[0].lineno - 1
    return "\n".join([*lines[:first], *missing, "", *lines[first:]]) + "\n"


def _imports(text: str) -> list[ast.Import | ast.ImportFrom]:
    return [node for node in ast.parse(text).body if isinstance(node, ast.Import | ast.ImportFrom)]
