"""Finds a function's invisible inputs: clock, chance, network, and files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePath

from slackwater.runtime.code_meaning import Definition, Library, Meanings, Token, Variable
from slackwater.runtime.code_scopes import Scope

FILES = "files"
_KINDS = {
    "chance": re.compile(r"library (?:random|secrets|numpy\.random)\.|library (?:uuid\.uuid[14]|os\.urandom)$"),
    "the clock": re.compile(
        r"library (?:time\.time(?:_ns)?|(?:datetime\.date(?:time)?|pandas\.Timestamp)\.(?:now|utcnow|today))$"
    ),
    "the network": re.compile(
        r"library (?:aiohttp|boto3|botocore|confluent_kafka|elasticsearch|ftplib|google\.cloud|grpc|http\.client|httpx|"
        r"kafka|paramiko|psycopg2?|pymongo|pymysql|redis|requests|smtplib|snowflake|socket|sqlalchemy|urllib3?\.request|"
        r"urllib3)\b"
    ),
}
_READS = re.compile(r"open|read_\w+|loadtxt|genfromtxt|fromfile|get_data")
"""The names of functions and methods that read a file."""
_WRITES = frozenset("wax+")
_LONGEST_PATH = 300
_MOST_PARTS = 4
"""The largest number of adjacent constants that are tried as parts of a path."""


def kinds_of(tokens: Iterable[Token]) -> set[str]:
    paths = [one for one in tokens if isinstance(one, str) and one.startswith("library ")]
    return {kind for kind, pattern in _KINDS.items() if any(map(pattern.match, paths))}


def files_read(
    scope: Scope, meanings: Meanings, given: Mapping[str, object], folder: Path
) -> Iterator[frozenset[Path]]:
    """The project's files that literal paths in reading calls may name.

    ``given`` are values of variables without a statement.
    """
    roots = [one for one in (folder, Path.cwd()) if one.name]
    for call in ast.walk(scope.node):
        if isinstance(call, ast.Call) and _is_read(call, scope, meanings):
            texts = list(_Texts(meanings, given).of(call, scope))
            places = {scope.module.file.parent, *roots}
            named = {each for each in map(Path, _paths(texts, places)) if any(map(each.is_relative_to, roots))}
            yield frozenset(each for each in named if each.is_file())


def _is_read(call: ast.Call, scope: Scope, meanings: Meanings) -> bool:
    function = call.func
    name = str(getattr(function, "id", getattr(function, "attr", "")))
    meaning = meanings.path(function, scope)
    if isinstance(meaning, (Definition, Variable)):
        return False
    if not _READS.fullmatch(name) and not (isinstance(meaning, Library) and meaning.path == "numpy.load"):
        return False
    is_function = isinstance(function, ast.Name) or isinstance(meaning, Library)
    given = [one.value for one in call.keywords if one.arg == "mode"] or call.args[is_function : is_function + 1]
    mode = given[0].value if name == "open" and given and isinstance(given[0], ast.Constant) else ""
    return not (isinstance(mode, str) and _WRITES & set(mode))


class _Texts:
    def __init__(self, meanings: Meanings, given: Mapping[str, object]) -> None:
        self._meanings = meanings
        self._given = given
        self._seen: set[Variable] = set()

    def of(self, node: ast.AST, scope: Scope) -> Iterator[str]:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, (ast.Name, ast.Attribute)) and (meaning := self._meanings.path(node, scope)) is not None:
            if isinstance(meaning, Variable) and meaning not in self._seen:
                self._seen.add(meaning)
                yield from self._variable(meaning)
        else:
            for child in ast.iter_child_nodes(node):
                yield from self.of(child, scope)

    def _variable(self, variable: Variable) -> Iterator[str]:
        statements = variable.scope.bound.get(variable.name, [])
        given = self._given.get(variable.name)
        if not statements and isinstance(given, (str, PurePath)):
            yield str(given)
        for one in statements:
            value = getattr(one, "value", None)
            if isinstance(value, ast.AST):
                yield from self.of(value, variable.scope)


def _paths(texts: list[str], places: Iterable[Path]) -> Iterator[str]:
    for start in range(len(texts)):
        for end in range(start + 1, min(start + _MOST_PARTS, len(texts)) + 1):
            text = "/".join(texts[start:end])
            if 0 < len(text) <= _LONGEST_PATH and "\0" not in text:
                for place in places:
                    with suppress(OSError):
                        yield str((place / text).resolve())
                        # Of a text with a variable before it, the rest may begin with a slash.
                        yield str((place / text.lstrip("/")).resolve())
