"""Every error code with its cause and its remedy, read from where the error is raised with a literal code.

The source files are part of each installation, so there is no second list of codes that could differ from them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from slackwater.core import errors
from slackwater.core.commands import command
from slackwater.sinks.common.problem import read_code

SOURCE = Path(errors.__file__).parents[1]
COMMANDS = SOURCE / "core" / "commands.py"
VARYING = "…"
"""Replaces what varies in a code or a sentence."""

PROBLEM = "Problem"
"""What another system reports (``sinks/common/problem.py``) becomes one of two errors, by what was being done."""

CLASSES: Mapping[str, type[errors.SlackwaterError]] = {
    name: value
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.SlackwaterError)
}
REMEDIES = {
    2: "correct what the message names, and repeat the command",
    3: f"restore the file from a backup, or recompute it: {command('plan', 'rebuild', 'STREAM')}",
    4: f"correct the name; {command('status')} shows the streams",
    5: "remove what the message names, and repeat the command; nothing was changed",
    6: f"change nothing, and find out what was done: {command('status')}",
    7: f"remove the cause that the message names, and run the pipeline again: {command('run', 'FILE')}",
    9: "provide what the message names, and repeat the command",
}
"""By exit code: what to do where an error is raised without a hint of its own."""

HINTED = "follow the hint that the error prints"
"""The remedy where what was found decides on it."""

_RAISES = re.compile(rf"\b({'|'.join((*CLASSES, PROBLEM))})\(")

DEPTH_MAX = 4
"""How many names and calls a string is followed through."""


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """A code with the kind that it is raised as. ``causes``: its sentences; ``remedies``: its hints."""

    code: str
    kind: str
    causes: tuple[str, ...]
    expected: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """The exit code of the command that ends with it."""
        return CLASSES[self.kind].exit_code

    @property
    def remedy(self) -> str:
        """What to do."""
        if issubclass(CLASSES[self.kind], errors.UsageError) and self.expected and not self.remedies:
            return f"give {' or '.join(self.expected)}"
        return "; or ".join(self.remedies) or REMEDIES[self.exit_code]

    def matches(self, code: str) -> bool:
        """Whether it is this code, of which a part may vary."""
        return re.fullmatch(re.escape(self.code).replace(VARYING, "[a-z-]+"), code) is not None


def errors_with(code: str) -> list[ErrorCode]:
    """The errors with a code, one for each kind. Only files with the code in them are parsed."""
    literals = tuple(f'"{one}"' for one in (code, code.replace("output-", "sink-", 1)))
    files = (file for file in _files() if any(one in file.read_text() for one in literals))
    return [one for one in _errors_in(files) if one.code == code] or [
        one for one in found_codes() if VARYING in one.code and one.matches(code)
    ]


@cache
def found_codes() -> tuple[ErrorCode, ...]:
    """All errors, one for each code and kind, sorted."""
    return tuple(_errors_in(_files()))


def _errors_in(files: Iterable[Path]) -> list[ErrorCode]:
    found: dict[tuple[str, str], ErrorCode] = {}
    for file in files:
        for one in _Module(file).errors():
            known = found.get((one.code, one.kind))
            found[one.code, one.kind] = one if known is None else _merged(known, one)
    return [found[key] for key in sorted(found)]


def _files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def _merged(one: ErrorCode, other: ErrorCode) -> ErrorCode:
    return replace(
        one,
        causes=tuple(dict.fromkeys((*one.causes, *other.causes))),
        expected=tuple(dict.fromkeys((*one.expected, *other.expected))),
        remedies=tuple(dict.fromkeys((*one.remedies, *other.remedies))),
    )


@dataclass(slots=True)
class _Module:
    """The errors of one file, with the functions and variables that their strings come from."""

    file: Path
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)

    def errors(self) -> Iterator[ErrorCode]:
        text = self.file.read_text()
        if _RAISES.search(text) is None:
            return
        tree = ast.parse(text)
        self.functions = _command_functions() | _functions(tree)
        constants = _assigned(tree.body)
        inner: set[ast.Call] = set()
        for function in reversed([node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]):
            strings = _Strings(self.functions, constants | _assigned(ast.walk(function)))
            calls = {node for node in ast.walk(function) if isinstance(node, ast.Call)} - inner
            inner |= calls
            for call in sorted(calls, key=lambda one: one.lineno):
                yield from _raised(call, strings)
        strings = _Strings(self.functions, constants)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and node not in inner:
                yield from _raised(node, strings)


def _raised(call: ast.Call, strings: _Strings) -> Iterator[ErrorCode]:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    if not call.args or (name not in CLASSES and name != PROBLEM):
        return
    given = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    if name == PROBLEM:
        given = dict(zip(("hint", "found"), call.args[2:], strict=False)) | given
    expected = tuple(strings.of(given["expected"])) if "expected" in given else ()
    hint = (tuple(strings.of(given["hint"])) or (HINTED,)) if "hint" in given else ()
    causes = list(strings.of(call.args[1])) if len(call.args) > 1 else []
    codes = strings.of_code(call.args[0])
    for position, code in enumerate(codes):
        # Two codes by one condition have their two sentences by the same one.
        own = (causes[position],) if len(codes) == len(causes) else tuple(causes)
        if name == PROBLEM:
            yield ErrorCode(code, "StreamFailed", own, expected, hint)
            yield ErrorCode(read_code(code), "SinkUnreadable", own, expected, hint)
        else:
            yield ErrorCode(code, name, own or (VARYING,), expected, hint)


@dataclass(frozen=True, slots=True)
class _Strings:
    """What an expression can be, as far as it is written in its module; what varies is an ellipsis."""

    functions: Mapping[str, ast.FunctionDef]
    variables: Mapping[str, list[ast.expr]]

    def of_code(self, node: ast.expr) -> list[str]:
        """The codes: literals only."""
        return [text for text in self._texts(node, DEPTH_MAX) if text != VARYING] if _is_literal(node) else []

    def of(self, node: ast.expr) -> Iterator[str]:
        """The sentences, each once, without those whose text is unknown."""
        for text in dict.fromkeys(self._texts(node, 0)):
            shown = " ".join(text.split())
            if shown.strip(f"{VARYING}.:; "):
                yield shown

    def _texts(self, node: ast.expr, depth: int) -> list[str]:
        if depth > DEPTH_MAX:
            return [VARYING]
        if isinstance(node, ast.Constant):
            return [] if node.value is None else [str(node.value)]
        choices = self._choices(node)
        if choices:
            deeper = depth + isinstance(node, ast.Name | ast.FormattedValue)
            return [text for one in choices for text in self._texts(one, deeper)]
        if isinstance(node, ast.Call):
            return self._called(node, depth)
        parts = node.values if isinstance(node, ast.JoinedStr) else _added(node)
        return self._joined(parts, depth) if parts else [VARYING]

    def _choices(self, node: ast.expr) -> list[ast.expr]:
        """The expressions of which one is the value."""
        match node:
            case ast.IfExp():
                return [node.body, node.orelse]
            case ast.BoolOp(op=ast.Or()):
                return node.values
            case ast.FormattedValue():
                return [node.value]
            case ast.Name(id=name):
                return self.variables.get(name, [])
        return []

    def _joined(self, parts: list[ast.expr], depth: int) -> list[str]:
        found = [""]
        for part in parts:
            ends = self._texts(part, depth) or [""]
            # Not every combination: the first of what follows is enough to know the sentence.
            found = [start + end for start in found for end in (ends if len(found) == 1 else ends[:1])]
        return found

    def _called(self, call: ast.Call, depth: int) -> list[str]:
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        if name in {"command", "mention"}:
            words = [self._joined([word], depth + 1)[0] for word in _words(call)]
            return [" ".join(("slackwater", *words))]
        function = self.functions.get(name)
        if function is None:
            return [VARYING]
        inside = _Strings(self.functions, _assigned(ast.walk(function)))
        returned = (node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value)
        return [text for value in returned for text in inside._texts(value, depth + 1)]


def _added(node: ast.expr) -> list[ast.expr]:
    return [node.left, node.right] if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) else []


def _words(call: ast.Call) -> list[ast.expr]:
    return [word for word in call.args if not isinstance(word, ast.Starred)]


def _is_literal(node: ast.expr) -> bool:
    if isinstance(node, ast.IfExp):
        return _is_literal(node.body) and _is_literal(node.orelse)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _functions(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@cache
def _command_functions() -> dict[str, ast.FunctionDef]:
    return _functions(ast.parse(COMMANDS.read_text()))


def _assigned(nodes: Iterable[ast.AST]) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, []).append(node.value)
    return found
