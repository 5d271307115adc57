"""Error codes with causes and remedies, read from the source that raises them.

Source files are part of each installation, so no second list of codes can differ.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from slackwater.core import errors
from slackwater.core.commands import command
from slackwater.sinks.common.problem import read_code

SOURCE = Path(errors.__file__).parents[1]
COMMANDS = command.__module__
VARYING = "…"
"""Replaces what varies in a code or a sentence."""

PROBLEM = "Problem"
"""An error of another system (``sinks/common/problem.py``) becomes one of two errors."""

CLASSES: Mapping[str, type[errors.SlackwaterError]] = {
    name: value
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.SlackwaterError)
}
DAMAGED = f"restore the file from a backup, or recompute it: {command('plan', 'rebuild', 'STREAM')}"
"""The advice for a malformed file without a hint of its own."""

_RAISES = re.compile(rf"\b({'|'.join((*CLASSES, PROBLEM))})\(")

DEPTH_MAX = 4
"""How many names and calls a string is followed through."""


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """A code with the kind that is raised. ``causes`` are sentences; ``remedies`` are hints."""

    code: str
    kind: str
    causes: tuple[str, ...]
    expected: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        return CLASSES[self.kind].exit_code

    @property
    def remedy(self) -> str:
        if issubclass(CLASSES[self.kind], errors.UsageError) and self.expected and not self.remedies:
            return f"give {' or '.join(self.expected)}"
        return "; or ".join(self.remedies) or DAMAGED

    def matches(self, code: str) -> bool:
        """A part of the code may vary."""
        return re.fullmatch(re.escape(self.code).replace(VARYING, "[a-z-]+"), code) is not None


def errors_with(code: str) -> list[ErrorCode]:
    """One for each kind. Only files with the code in them are parsed."""
    literals = tuple(f'"{one}"' for one in (code, code.replace("output-", "sink-", 1)))
    files = (file for file in _files() if any(one in file.read_text() for one in literals))
    return [one for one in _errors_in(files) if one.code == code] or [
        one for one in found_codes() if VARYING in one.code and one.matches(code)
    ]


@cache
def found_codes() -> tuple[ErrorCode, ...]:
    """One for each code and kind, sorted."""
    return tuple(_errors_in(_files()))


def _errors_in(files: Iterable[Path]) -> list[ErrorCode]:
    found: dict[tuple[str, str], ErrorCode] = {}
    for file in files:
        if _RAISES.search(file.read_text()) is None:
            continue
        for one in _module(file).errors():
            known = found.get((one.code, one.kind))
            found[one.code, one.kind] = one if known is None else _merged(known, one)
    return [found[key] for key in sorted(found)]


def _files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def _merged(one: ErrorCode, other: ErrorCode) -> ErrorCode:
    return replace(
        one,
        causes=tuple(dict.fromkeys(cause for cause in (*one.causes, *other.causes) if cause != VARYING)) or one.causes,
        expected=tuple(dict.fromkeys((*one.expected, *other.expected))),
        remedies=tuple(dict.fromkeys((*one.remedies, *other.remedies))),
    )


@dataclass(frozen=True, slots=True)
class _Module:
    """A file's functions, constants and imports, from which error strings come."""

    tree: ast.Module
    functions: Mapping[str, ast.FunctionDef]
    constants: Mapping[str, list[ast.expr]]
    imported: Mapping[str, str]
    """Modules of this package by imported name."""

    def errors(self) -> Iterator[ErrorCode]:
        inner: set[ast.Call] = set()
        for function in reversed([node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef)]):
            strings = _Strings(self, {**self.constants, **self._passed(function), **_variables(function)})
            calls = {node for node in ast.walk(function) if isinstance(node, ast.Call)} - inner
            inner |= calls
            for call in sorted(calls, key=lambda one: one.lineno):
                yield from _raised(call, strings)
        strings = _Strings(self, self.constants)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and node not in inner:
                yield from _raised(node, strings)

    def _passed(self, function: ast.FunctionDef) -> dict[str, list[ast.expr]]:
        """The module's arguments for a function, by position."""
        found: dict[str, list[ast.expr]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function.name:
                for parameter, value in zip(function.args.args, node.args, strict=False):
                    found.setdefault(parameter.arg, []).append(value)
        return found

    def defining(self, name: str, *, further: bool) -> _Module | None:
        """The defining module, ``None`` outside of this package.

        Not ``further``: this one, or the one that makes commands.
        """
        if name in self.functions or name in self.constants:
            return self
        if not further and self.imported.get(name) != COMMANDS:
            return None
        file = SOURCE.parent.joinpath(*self.imported.get(name, "").split(".")).with_suffix(".py")
        return _module(file) if file.is_file() else None


@cache
def _module(file: Path) -> _Module:
    tree = ast.parse(file.read_text())
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    imported = {alias.name: node.module for node in imports if node.module for alias in node.names}
    return _Module(tree, functions, _assigned(tree.body), imported)


def _raised(call: ast.Call, strings: _Strings) -> Iterator[ErrorCode]:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    if not call.args or (name not in CLASSES and name != PROBLEM):
        return
    given = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    if name == PROBLEM:
        given = dict(zip(("hint", "found"), call.args[2:], strict=False)) | given
    expected = tuple(strings.of(given["expected"])) if "expected" in given else ()
    # Other modules only where this one shows nothing: what they add to a sentence is mostly what varies in it.
    hints = (tuple(one.of(given["hint"])) for one in (strings, replace(strings, further=True)) if "hint" in given)
    hint = next(filter(None, hints), ())
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
    """The strings that an expression can be; what varies is an ellipsis."""

    module: _Module
    variables: Mapping[str, list[ast.expr]]
    further: bool = False
    """Whether other modules are followed."""

    def of_code(self, node: ast.expr) -> list[str]:
        """Literals only."""
        return [text for text in self._texts(node, DEPTH_MAX) if text != VARYING] if _is_literal(node) else []

    def of(self, node: ast.expr) -> Iterator[str]:
        """Each sentence once, without unknown text."""
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
        match node:
            case ast.Name(id=name) if name not in self.variables:
                return self._imported(name, depth)
            case ast.Call(func=ast.Attribute(value=ast.Constant(), attr="join"), args=[ast.GeneratorExp(elt=each)]):
                return self._texts(each, depth)
            case ast.Call(func=ast.Name(id=name)):
                return self._called(name, _words(node), None, depth)
            case ast.Subscript(value=ast.Call(func=ast.Name(id=name)), slice=ast.Constant(value=int(place))):
                return self._called(name, [], place, depth)
        parts = node.values if isinstance(node, ast.JoinedStr) else _added(node)
        return self._joined(parts, depth) if parts else [VARYING]

    def _choices(self, node: ast.expr) -> list[ast.expr]:
        match node:
            case ast.IfExp():
                return [node.body, node.orelse]
            case ast.BoolOp(op=ast.Or()):
                return node.values
            case ast.FormattedValue():
                return [node.value]
            case ast.Name(id=name):
                return self.variables.get(name, [])
            case ast.Subscript(value=ast.Tuple(elts=values), slice=ast.Constant(value=int(place))):
                return [values[place]]
            case ast.Subscript(value=ast.IfExp() as one, slice=ast.Constant(value=int(place))):
                return [_at(one.body, place), _at(one.orelse, place)]
        return []

    def _joined(self, parts: list[ast.expr], depth: int) -> list[str]:
        found = [""]
        for part in parts:
            ends = self._texts(part, depth) or [""]
            # Not every combination: the first of what follows is enough to know the sentence.
            found = [start + end for start in found for end in (ends if len(found) == 1 else ends[:1])]
        return found

    def _imported(self, name: str, depth: int) -> list[str]:
        module = self.module.defining(name, further=self.further)
        if module is None or name not in module.constants:
            return [VARYING]
        inside = _Strings(module, module.constants, self.further)
        return [text for value in module.constants[name] for text in inside._texts(value, depth + 1)]

    def _called(self, name: str, words: list[ast.expr], place: int | None, depth: int) -> list[str]:
        """A returned value, or a tuple's value at ``place``."""
        if name in {"command", "mention"}:
            return [" ".join(("slackwater", *(self._joined([word], depth + 1)[0] for word in words)))]
        module = self.module.defining(name, further=self.further)
        function = module.functions.get(name) if module is not None else None
        if module is None or function is None:
            return [VARYING]
        inside = _Strings(module, {**module.constants, **_variables(function)}, self.further)
        returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value]
        values = [value if place is None else _at(value, place) for value in returned]
        return [text for value in values for text in inside._texts(value, depth + 1)]


def _at(tuple_: ast.expr, place: int) -> ast.expr:
    return ast.Subscript(tuple_, ast.Constant(place), ast.Load())


def _added(node: ast.expr) -> list[ast.expr]:
    return [node.left, node.right] if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) else []


def _words(call: ast.Call) -> list[ast.expr]:
    return [word for word in call.args if not isinstance(word, ast.Starred)]


def _is_literal(node: ast.expr) -> bool:
    if isinstance(node, ast.IfExp):
        return _is_literal(node.body) and _is_literal(node.orelse)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _variables(function: ast.FunctionDef) -> dict[str, list[ast.expr]]:
    """For parameters the defaults."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args]
    defaults = {
        one.arg: [value]
        for one, value in (
            *zip(reversed(named), reversed(arguments.defaults), strict=False),
            *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
        )
        if value is not None
    }
    return defaults | _assigned(ast.walk(function))


def _assigned(nodes: Iterable[ast.AST]) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if not isinstance(node, ast.Assign):
            continue
        target = node.targets[0]
        if isinstance(target, ast.Name):
            found.setdefault(target.id, []).append(node.value)
        elif isinstance(target, ast.Tuple):
            for place, one in enumerate(target.elts):
                if isinstance(one, ast.Name):
                    found.setdefault(one.id, []).append(_at(node.value, place))
    return found
