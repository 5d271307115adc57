"""Every error and every finding of the package, from its source: where one is made with a literal code.

python -m tests.support.error_codes > docs/errors.md
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from slackwater import errors
from slackwater.sinks.problem import read_code

SOURCE = Path(__file__).resolve().parents[2] / "src" / "slackwater"
CLASSES = {
    name: value
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.SlackwaterError)
}

PROBLEM = "Problem"
"""What another system reports (``sinks/problem.py``) becomes one of two errors, by what was being done."""

HEADING = """# Errors

Every error has a stable code, one sentence, and where it helps the place, what was expected and found, and a hint.
On stderr it is shown as `error <code>: <sentence>`, then `hint: <next step>`; with `--format json` as one line of JSON,
`{"error": {"code": ..., "message": ..., "where": ..., "expected": ..., "found": ..., "hint": ...}}`. The exit code is
that of its kind: see [exit-codes.md](exit-codes.md). Both tables are made from the source; a test compares them.
To update them: `python -m tests.support.error_codes > docs/errors.md`.

| code | exit | kind | sentence |
|---|---|---|---|
"""

FINDINGS = """
## Findings

What `slackwater status` shows of a stream, and what `run` refuses to start for (severity `stop`). A refused start or
plan ends with the finding's code as its error. `status` ends with the most urgent exit code of all findings: 3, then 5,
then 7, else 0. The risk is what would happen to rows if the stream were started all the same.

| finding | severity | risk | exit code of status | sentence |
|---|---|---|---|---|
"""


@dataclass(frozen=True, order=True)
class FindingCode:
    """A finding of the package; ``…`` in its sentence replaces what varies."""

    code: str
    severity: str
    risk: str
    exit_code: int
    sentence: str


@dataclass(frozen=True, order=True)
class ErrorCode:
    """A code with the kind that it is raised as; ``…`` in its sentence replaces what varies."""

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


def found_findings() -> list[FindingCode]:
    """One for each code, severity and exit code, sorted."""
    found: dict[tuple[str, str, int], FindingCode] = {}
    for file in sorted(SOURCE.rglob("*.py")):
        for one in _findings_in(ast.parse(file.read_text())):
            found.setdefault((one.code, one.severity, one.exit_code), one)
    return sorted(found.values())


def page() -> str:
    """``docs/errors.md``."""
    rows = [f"| `{one.code}` | {one.exit_code} | {one.kind} | {_escaped(one.sentence)} |" for one in found_codes()]
    findings = [
        f"| `{one.code}` | {one.severity} | {one.risk} | {one.exit_code} | {_escaped(one.sentence)} |"
        for one in found_findings()
    ]
    return HEADING + "\n".join(rows) + "\n" + FINDINGS + "\n".join(findings) + "\n"


def _findings_in(tree: ast.Module) -> Iterator[FindingCode]:
    constants = _constants(tree)
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        sentences = _sentences(function)
        for call in ast.walk(function):
            if isinstance(call, ast.Call) and _name(call.func) == "Finding":
                yield from _findings_of(call, constants, sentences)


def _findings_of(
    call: ast.Call, constants: dict[str, object], sentences: dict[str, list[str]]
) -> Iterator[FindingCode]:
    code, severity, text = call.args[:3]
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    risk = given.get("risk", ast.Constant("none"))
    exit_code = given.get("exit_code", ast.Constant(0))
    assert isinstance(severity, ast.Attribute), f"line {call.lineno}: the severity is not Severity.NAME"
    assert isinstance(risk, ast.Constant), f"line {call.lineno}: the risk is not a literal"
    number = constants[exit_code.id] if isinstance(exit_code, ast.Name) else ast.literal_eval(exit_code)
    assert isinstance(number, int)
    # The output's own error code is the code of the finding that it cannot be read.
    codes = _texts(code) or ["sink-unreadable"]
    found = sentences.get(text.id, []) if isinstance(text, ast.Name) else _texts(text)
    for position, one in enumerate(codes):
        sentence = found[min(position, len(found) - 1)] if found else "…"
        yield FindingCode(one, severity.attr.lower(), str(risk.value), number, sentence)


def _constants(tree: ast.Module) -> dict[str, object]:
    return {
        target.id: statement.value.value
        for statement in tree.body
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }


def _sentences(function: ast.FunctionDef) -> dict[str, list[str]]:
    """What the string variables of a function can be, in the order of their assignments."""
    found: dict[str, list[str]] = {}
    for statement in ast.walk(function):
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            found.setdefault(statement.targets[0].id, []).extend(_texts(statement.value))
    return found


def _in_module(tree: ast.Module) -> Iterator[ErrorCode]:
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and _name(call.func) == PROBLEM:
            for code, text in zip(_texts(call.args[0]), _texts(call.args[1]), strict=False):
                yield ErrorCode(code, "StreamFailed", text)
                yield ErrorCode(read_code(code), "SinkUnreadable", text)
        if isinstance(call, ast.Call) and _name(call.func) in CLASSES and call.args:
            for code in _texts(call.args[0]):
                message = call.args[1] if len(call.args) > 1 else ast.Constant("")
                yield ErrorCode(code, _name(call.func), next(iter(_texts(message)), "…"))


def _name(function: ast.expr) -> str:
    return function.id if isinstance(function, ast.Name) else ""


def _texts(node: ast.expr) -> list[str]:
    """The strings that an expression can be, as far as they are literals."""
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
