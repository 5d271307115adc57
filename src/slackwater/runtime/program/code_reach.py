"""Digests of all code that a stream's function reaches, stable under harmless edits.

Followed: the project's functions, lambdas and classes, closures, defaults, decorators, module variables,
``functools.partial``, imports anywhere, and ``getattr`` with a constant name; otherwise a module counts as a whole.
Plain module variables are compared by value, so environment and data files count. Not visible: data from services,
computed names, libraries.

Time zone, variables and libraries are inputs of Python functions, too; they are read from the process.
"""

from __future__ import annotations

import ast
import json
import locale
import os
import platform
import sys
import time
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slackwater.core.errors import Refused
from slackwater.core.masking import is_secret_name, mask
from slackwater.core.program import EXECUTOR_VARIABLE, PROCESS_VARIABLE, TIME_ZONE, Program
from slackwater.core.units import is_same_zone, process_zone
from slackwater.runtime.program.code_meaning import (
    DIFFERS_EACH_TIME,
    Callers,
    Definition,
    Meanings,
    Piece,
    Token,
    Variable,
    Whole,
    differs,
    value_text,
)
from slackwater.runtime.program.code_scopes import (
    FUNCTIONS,
    NOT_THE_PROJECTS,
    CodeScope,
    Modules,
    variables_read,
    vars_of,
)
from slackwater.runtime.program.code_text import write
from slackwater.runtime.program.function_values import Taken, taken_by

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Uses = tuple[frozenset[str], frozenset[str]]
"""The environment variables and the libraries that functions use."""


@dataclass(frozen=True, slots=True)
class CodeReach:
    """``code`` is a SHA-256 of everything reached; ``functions`` has a digest for each reached name.

    Names are ``__name__`` or registered names, as in Spark's plan; equal names, such as lambdas', share a digest. A
    class's digest includes the code that makes instances.
    """

    code: str
    functions: Mapping[str, str]
    uses: Callable[[Iterable[str] | None], Uses] = field(
        default=lambda _: (frozenset(), frozenset()), compare=False, repr=False
    )
    """What the functions with these names use; ``None``: all reached code."""
    taken: Callable[[object], Taken] = field(default=lambda _: Taken(), compare=False, repr=False)
    """The values that a function or class takes with it when Spark pickles it."""


def reach_of(function: Callable[..., Any]) -> CodeReach:
    """The code that the function reaches. Reads files, and imports nothing."""
    plain, bound = _unwrapped(function)
    meanings = Meanings(Modules(Path(plain.__code__.co_filename if plain else "")))
    root: list[Token] = []
    if plain is not None:
        code = plain.__code__
        module = meanings.modules.parsed(Path(code.co_filename), plain.__globals__)
        found = meanings.function_at(module, code.co_name, code.co_firstlineno) if module else []
        cells = list(zip(code.co_freevars, plain.__closure__ or (), strict=True))
        for owner, name, cell in ((scope.owner(name), name, cell) for scope in found for name, cell in cells):
            if owner is not None and not differs(owner, name, DIFFERS_EACH_TIME):
                meanings.cells.setdefault(owner, {})[name] = cell
        root += [Definition(scope) for scope in found] or _instructions(code)
    for value in bound:
        root += value_text(value, meanings.of_function, only_functions=False) or _type_of(value, meanings)
    return _reach(root, meanings)


def reach_of_file(file: Path) -> CodeReach:
    """Like ``reach_of`` for a whole file: an application's code shows no stream function."""
    meanings = Meanings(Modules(file))
    module = meanings.modules.parsed(file)
    return _reach([] if module is None else [Whole(module)], meanings)


def _reach(root: list[Token], meanings: Meanings) -> CodeReach:
    graph = _Graph(meanings, root)
    taken = partial(taken_by, meanings, graph.digest)
    return CodeReach(graph.digest(root), graph.functions(), partial(graph.uses, root), taken)


def _unwrapped(function: object) -> tuple[types.FunctionType | None, list[object]]:
    if isinstance(function, types.FunctionType):
        return function, []
    if isinstance(function, types.MethodType):
        inner, bound = _unwrapped(function.__func__)
        return inner, [*bound, function.__self__]
    if isinstance(function, partial):
        inner, bound = _unwrapped(function.func)
        return inner, [*bound, function.args, function.keywords]
    call = next((vars(kind)["__call__"] for kind in type(function).__mro__ if "__call__" in vars(kind)), None)
    return (call, [function]) if isinstance(call, types.FunctionType) else (None, [function])


def _type_of(value: object, meanings: Meanings) -> list[Token]:
    kind = type(value)
    module = meanings.modules.loaded(kind.__module__)
    found = meanings.member(module, kind.__qualname__) if module else None
    if not isinstance(found, Definition | Variable):
        return [f"instance {kind.__module__}.{kind.__qualname__}"]
    if not hasattr(value, "__dict__"):
        return [found]
    return [found, *(value_text(vars(value), meanings.of_function, only_functions=False) or [])]


def _instructions(code: types.CodeType) -> Iterator[str]:
    """The instructions of a function without readable source; they differ between Python versions."""
    yield code.co_code.hex()
    yield " ".join(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _instructions(constant)
        else:
            yield repr(constant)


class _Graph:
    def __init__(self, meanings: Meanings, root: list[Token]) -> None:
        self._meanings = meanings
        self._reached = self._reachable(root)
        self._users: dict[CodeScope, list[Piece]] = {}
        for piece in self._reached:
            for token in self._text(piece):
                if isinstance(token, Definition):
                    self._users.setdefault(token.scope, []).append(piece)

    def digest(self, root: Iterable[Token]) -> str:
        """Compute the digest. Pieces are numbered by appearance, so that cycles end."""
        numbers: dict[Piece, int] = {}
        texts = [self._numbered(root, numbers)]
        while len(texts) <= len(numbers):
            piece = list(numbers)[len(texts) - 1]
            texts.append(self._numbered(self._text(piece, with_callers=True), numbers))
        return sha256(json.dumps(texts).encode()).hexdigest()

    def functions(self) -> dict[str, str]:
        found: dict[str, set[str]] = {}
        for name, scope in self._named():
            is_class = isinstance(scope.node, ast.ClassDef)
            made_by = [Callers(scope)] if is_class else []
            found.setdefault(name, set()).add(self.digest([Definition(scope), *made_by]))
        for path in sorted(self._libraries(self._reached)):
            if path != "functools.partial":
                found.setdefault(path.rpartition(".")[2], {path})
        return {name: sha256(json.dumps(sorted(found[name])).encode()).hexdigest() for name in sorted(found)}

    def uses(self, root: Iterable[Token], names: Iterable[str] | None) -> Uses:
        """The uses of the named functions, or all uses if the code does not show a name, such as a partial's."""
        first, wanted = set(root), set(names or ())
        known = [(name, Definition(scope)) for name, scope in self._named() if Definition(scope) not in first]
        called = [piece for name, piece in known if name in wanted] or [piece for _, piece in known]
        pieces = self._reached if names is None else self._reachable(called)
        scopes = [piece.scope for piece in pieces if isinstance(piece, Definition)]
        variables = frozenset(name for one in scopes for name in variables_read(one.node, one.module.tree))
        return variables, frozenset(path.partition(".")[0] for path in self._libraries(pieces))

    def _libraries(self, pieces: Iterable[Piece]) -> set[str]:
        tokens = {token for piece in pieces for token in self._text(piece) if isinstance(token, str)}
        return {token.removeprefix("library ") for token in tokens if token.startswith("library ")}

    def _named(self) -> Iterator[tuple[str, CodeScope]]:
        """The defined functions and classes, and registered functions, by their names."""
        reached = {piece.scope for piece in self._reached if isinstance(piece, Definition)}
        for module in {scope.module for scope in reached}:
            for node, scope in module.scopes.items():
                inside = scope
                while inside not in reached and inside.parent is not None:
                    inside = inside.parent
                if inside in reached and isinstance(node, (*FUNCTIONS, ast.ClassDef)):
                    outer = scope.parent
                    is_method = outer is not None and isinstance(outer.node, ast.ClassDef)
                    yield getattr(node, "name", "<lambda>"), outer if is_method and outer is not None else scope
        for name, scopes in self._meanings.registered.items():
            yield from ((name, scope) for scope in scopes)

    def _reachable(self, root: Iterable[Token]) -> list[Piece]:
        found = dict.fromkeys(token for token in root if not isinstance(token, str))
        queue = list(found)
        for piece in queue:
            new = [token for token in self._text(piece) if not isinstance(token, str) and token not in found]
            found.update(dict.fromkeys(new))
            queue += dict.fromkeys(new)
        return queue

    def _text(self, piece: Piece, *, with_callers: bool = False) -> tuple[Token, ...]:
        if not isinstance(piece, Callers):
            return write(piece, self._meanings)
        scope, outer = piece.scope, piece.scope.parent
        if not with_callers:
            return ()
        if outer is not None and isinstance(outer.node, FUNCTIONS):
            return (Definition(outer),)
        return tuple(user for made, users in self._users.items() if scope in (made, made.parent) for user in users)

    @staticmethod
    def _numbered(tokens: Iterable[Token], numbers: dict[Piece, int]) -> list[str | int]:
        return [token if isinstance(token, str) else numbers.setdefault(token, len(numbers)) for token in tokens]


HOW_IT_RUNS = (
    "HADOOP_", "HOME", "JAVA_", "JDK_", "LD_", "MKL_", "OMP_", "OPENBLAS_", "PATH", "PYTHON", "SPARK_", "TMPDIR",
    "YARN_",
)  # fmt: skip
"""Prefixes of variables that executors get for the process itself: they count only if a function reads them."""
_LOCALE = ("LANG", "LC_")
_DIGEST_LENGTH = 16


def with_environment(program: Program, reach: CodeReach, spark: SparkSession) -> Program:
    kept = {name for operator in program.operators for name in operator.functions}
    behind = {name for rows in program.rows for name in rows.functions} - kept
    given = spark.sparkContext.environment
    if behind:
        program = with_output_environment(program, reach.uses(behind), given)
    if not kept:
        return program
    variables, libraries = reach.uses(kept)
    return replace(
        program,
        environment=environment_of(variables, given, os.environ),
        versions={**program.versions, **_versions(libraries)},
    )


def with_output_environment(program: Program, used: Uses, given: Mapping[str, str]) -> Program:
    """Add the environment of functions that write rows; ``given`` is empty if the driver runs them."""
    variables, libraries = used
    return replace(
        program,
        output_environment={**environment_of(variables, given, os.environ), **program.output_environment},
        versions={**program.versions, **_versions(libraries)},
    )


def environment_of(read: Iterable[str], given: Mapping[str, str], process: Mapping[str, str]) -> dict[str, str]:
    """The variables that functions get if they ``read`` these names. ``given`` are ``spark.executorEnv``.

    Values are digests; secrets are omitted: a new password changes no rows.
    """
    effective = {**process, **given}
    named = [name for name in read if _counts(name)]
    found = {name: _digest(name, effective[name]) if name in effective else "" for name in named}
    for name, value in given.items():
        if _counts(name) and name not in found and not name.startswith(HOW_IT_RUNS):
            found[EXECUTOR_VARIABLE + name] = _digest(name, value)
    return {TIME_ZONE: process_zone(effective.get(TIME_ZONE)), **dict(sorted(found.items()))}


def present_environment(
    kept: Program, settings: Mapping[str, str], process: Mapping[str, str], recorded: Mapping[str, str]
) -> Mapping[str, str]:
    """The present environment; empty if none was recorded.

    ``recorded`` settings include the variables that a replay sets.
    """
    if not kept.environment:
        return {}
    set_again = {name: value for name, value in _below(recorded, PROCESS_VARIABLE).items() if value}
    given = _below(recorded if set_again else settings, EXECUTOR_VARIABLE)
    named = [name for name in kept.environment if not name.startswith(EXECUTOR_VARIABLE)]
    return environment_of(named, given, {**process, **set_again})


def environment_settings(program: Program | None, spark: SparkSession) -> dict[str, str]:
    """The environment's settings for a replay. Secrets, and variables that must stay empty, are omitted."""
    if program is None or not program.environment:
        return {}
    given = spark.sparkContext.environment
    names = {name.removeprefix(EXECUTOR_VARIABLE) for name in program.environment}
    names |= {name for name in os.environ if name.startswith(_LOCALE)}
    names = {name for name in names if not name.startswith(HOW_IT_RUNS)}
    found = {PROCESS_VARIABLE + name: os.environ.get(name) for name in names - given.keys()}
    found |= {EXECUTOR_VARIABLE + name: given[name] for name in names & given.keys()}
    zone = process_zone(os.environ.get(TIME_ZONE))
    # That of a file without a name cannot be set.
    found[PROCESS_VARIABLE + TIME_ZONE] = "" if " " in zone else zone
    return {name: value or "" for name, value in sorted(found.items()) if value is None or mask(value) == value != ""}


def changed_environment(spark: SparkSession, before: Mapping[str, str]) -> dict[str, tuple[str | None, str | None]]:
    """The old and present value of each changed variable, by executor setting."""
    given = spark.sparkContext.environment
    kept, present = {**_below(before, PROCESS_VARIABLE), **_below(before, EXECUTOR_VARIABLE)}, {**os.environ, **given}
    added = {name: "" for name in given if kept and name not in kept and _is_replaced(name)}
    found = {}
    for name, value in sorted({**kept, **added}.items()):
        now = process_zone(present.get(name)) if name == TIME_ZONE else present.get(name, "")
        same = is_same_zone(value, now) if name == TIME_ZONE else value == now
        if not same and not name.startswith(_LOCALE):
            found[EXECUTOR_VARIABLE + name] = (value or None, mask(now) or None)
    return found


def replace_environment(spark: SparkSession, settings: Mapping[str, str]) -> None:
    """Set the variables of a run; all variables stay if the run recorded none.

    Raises Refused (``variable-set``) for a variable that the run lacked: workers inherit it.
    """
    given, process, executors = (
        spark.sparkContext.environment,
        _below(settings, PROCESS_VARIABLE),
        _below(settings, EXECUTOR_VARIABLE),
    )
    for name in [name for name in given if process and _is_replaced(name)]:
        del given[name]
    given.update(executors)
    for name, value in process.items():
        if not value and name in os.environ:
            raise Refused(
                "variable-set",
                f"Functions read the environment variable {name}, which the run did not have whose batches are "
                "replayed",
                where=name,
                expected="not set",
                found="set",
                hint=f"unset {name}, then repeat the command; nothing in use was changed",
            )
        if value:
            os.environ[name] = value
    time.tzset()


def of_workers(spark: SparkSession, settings: Mapping[str, str]) -> dict[str, str]:
    """Workers' variables under a run's settings: Spark's have those of its start."""
    process = {name: os.environ[name] for name in _below(settings, PROCESS_VARIABLE) if name in os.environ}
    return {**process, **spark.sparkContext.environment}


Environment = tuple[Mapping[str, str], Mapping[str, str]]
"""The variables of this process, and of executors."""


def environment_before(spark: SparkSession) -> Environment:
    return dict(os.environ), dict(spark.sparkContext.environment)


def restore_environment(spark: SparkSession, before: Environment) -> None:
    process, given = before
    for name in os.environ.keys() - process.keys():
        del os.environ[name]
    os.environ.update(process)
    spark.sparkContext.environment.clear()
    spark.sparkContext.environment.update(given)
    time.tzset()


def _below(settings: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): value for name, value in settings.items() if name.startswith(prefix)}


def _is_replaced(name: str) -> bool:
    return not is_secret_name(name) and not name.startswith(HOW_IT_RUNS)


def _counts(name: str) -> bool:
    return name != TIME_ZONE and not is_secret_name(name)


def _digest(name: str, value: str) -> str:
    return sha256(f"{name}={value}".encode(errors="surrogateescape")).hexdigest()[:_DIGEST_LENGTH]


def _versions(libraries: Iterable[str]) -> dict[str, str]:
    found = {
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "encoding of the locale": locale.getpreferredencoding(do_setlocale=False).lower(),
    }
    for name in sorted(set(libraries) - NOT_THE_PROJECTS - sys.stdlib_module_names):
        version = vars_of(sys.modules.get(name)).get("__version__")
        if isinstance(version, str):
            found[name] = version
    return found
