"""Every error code of the package, found in its source: where an error is raised with a code that stands there.

python -m tests.support.error_codes > docs/errors.md
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from slackwater import errors

SOURCE = Path(__file__).resolve().parents[2] / "src" / "slackwater"
CLASSES = {
    name: value
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.SlackwaterError)
}

HEADING = """# Errors

Every error has a stable code, one sentence, and where it helps the place, what was expected and found, and a hint.
On stderr it is shown as `error <code>: <sentence>`, then `hint: <next step>`; with `--format json` as one line of JSON,
`{"error": {"code": ..., "message": ..., "where": ..., "expected": ..., "found": ..., "hint": ...}}`. The exit code is
that of its kind: see [exit-codes.md](exit-codes.md). This table is made from the source; a test compares the two.
To regenerate it: `python -m tests.support.error_codes > docs/errors.md`.

| code | exit | kind | sentence |
|---|---|---|---|
"""


@dataclass(frozen=True, order=True)
class ErrorCode:
    """A code with the kind that it is raised as; ``…`` in its sentence stands for what varies."""

    code: str
    kind: str
    sentence: str

    @property
    def exit_code(self) -> int:
        """The exit code of the command that ends with it."""
        return CLASSES[self.kind].exit_code


def found_codes() -> list[ErrorCode]:
    """One for each code and kind, sorted."""
    found: dict[tuple[str, str], ErrorCode] = {}
    for file in sorted(SOURCE.rglob("*.py")):
        for error in _in_module(ast.parse(file.read_text())):
            found.setdefault((error.code, error.kind), error)
    return sorted(found.values())


def page() -> str:
    """``docs/errors.md``."""
    rows = [f"| `{one.code}` | {one.exit_code} | {one.kind} | {_escaped(one.sentence)} |" for one in found_codes()]
    return HEADING + "\n".join(rows) + "\n"


def _in_module(tree: ast.Module) -> Iterator[ErrorCode]:
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and _name(call.func) in CLASSES and call.args:
            for code in _texts(call.args[0]):
                message = call.args[1] if len(call.args) > 1 else ast.Constant("")
                yield ErrorCode(code, _name(call.func), next(iter(_texts(message)), "…"))


def _name(function: ast.expr) -> str:
    return function.id if isinstance(function, ast.Name) else ""


def _texts(node: ast.expr) -> list[str]:
    """What an expression can be, as far as that stands in the source."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.IfExp):
        return _texts(node.body) + _texts(node.orelse)
    if isinstance(node, ast.JoinedStr):
        return ["".join(_piece(value) for value in node.values)]
    return []


def _piece(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else "…"


def _escaped(sentence: str) -> str:
    return " ".join(sentence.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
