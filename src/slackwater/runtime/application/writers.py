"""Replaces PySpark's calls for writing a stream, temporarily.

Sessions of Spark Connect are refused before the server is asked: their queries run in a server.
"""

from __future__ import annotations

import inspect
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery, StreamingQueryManager
from pyspark.sql.streaming.readwriter import DataStreamWriter

from slackwater.core.commands import mention
from slackwater.core.errors import Refused
from slackwater.core.masking import KNOWN_SECRETS
from slackwater.core.program import Trigger, TriggerKind
from slackwater.core.sink import WriterCalls
from slackwater.runtime.run.failures import SPARK_ERRORS
from slackwater.triggers import as_trigger

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from slackwater.runtime.application import OwnThreads


_KEPT = "_slackwater_given"
_SELF = "self"
DEFAULT_FORMAT = "spark.sql.sources.default"
DEFAULT_CHECKPOINTS = "spark.sql.streaming.checkpointLocation"


@dataclass(slots=True)
class Given:
    """A writer's arguments; ``options`` have lower-case names.

    ``calls`` are each call's method and original arguments.
    """

    options: dict[str, str] = field(default_factory=dict)
    format: str | None = None
    mode: str = "append"
    name: str | None = None
    function: str | None = None
    partition_by: tuple[str, ...] = ()
    trigger: Trigger = field(default_factory=lambda: as_trigger(None))
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def keep_options(self, options: Mapping[str, Any]) -> None:
        for key, value in options.items():
            if value is not None:
                KNOWN_SECRETS.remember(key, value)
                # As PySpark's ``to_str`` passes a bool to Spark.
                self.options[key.lower()] = str(value).lower() if isinstance(value, bool) else str(value)


class Start(NamedTuple):
    """A query start; ``begin`` calls PySpark's own ``start`` or ``toTable``."""

    frame: DataFrame
    given: Given
    table: str | None
    begin: Callable[[], Any]

    def onto(self, writer: DataStreamWriter) -> DataStreamWriter:
        """Apply the arguments, except checkpoint, trigger and name, to ``writer``."""
        for name, arguments in self.given.calls:
            if name == "option":
                _set_options(writer, {arguments["key"]: arguments["value"]})
            elif name == "options":
                _set_options(writer, arguments.get("options", {}))
            elif name not in _OF_A_RUN:
                method = getattr(writer, name)
                bound = inspect.signature(method).bind_partial()
                bound.arguments.update(arguments)
                method(*bound.args, **bound.kwargs)
        return writer

    @property
    def function(self) -> object | None:
        given = (arguments for name, arguments in self.given.calls if name in _GIVES_FUNCTION)
        return next((one for arguments in given for one in arguments.values()), None)

    @property
    def calls(self) -> WriterCalls:
        given, conf = self.given, self.frame.sparkSession.conf
        kind = (given.format or str(conf.get(DEFAULT_FORMAT, "parquet"))).lower()
        there = in_catalog(self.frame.sparkSession, self.table) if self.table is not None else None
        if there is not None:
            return WriterCalls(there[0], given.options, self.table, given.function, given.name, there[1])
        return WriterCalls(kind, given.options, self.table, given.function, given.name)

    @property
    def checkpoint(self) -> str | None:
        """The writer's checkpoint, or ``None`` if Spark would choose a temporary directory."""
        named = self.given.options.get(_CHECKPOINT)
        folder = self.frame.sparkSession.conf.get(DEFAULT_CHECKPOINTS, None)
        if named is not None or not folder or not self.given.name:
            return named
        return f"{str(folder).rstrip('/')}/{self.given.name}"


_CHECKPOINT = "checkpointlocation"
_GIVES_FUNCTION = frozenset({"foreach", "foreachBatch"})
_OF_A_RUN = frozenset({"trigger", "queryName"})


def _set_options(writer: DataStreamWriter, options: Mapping[str, Any]) -> None:
    for key, value in options.items():
        if key.lower() != _CHECKPOINT:
            writer.option(key, value)


def in_catalog(spark: SparkSession, table: str) -> tuple[str, str | None] | None:
    """An existing table's provider, which Spark uses whatever the writer says, and its location."""
    try:
        # Spark logs the stack trace of a statement about a table that it does not have.
        if not spark.catalog.tableExists(table):
            return None
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
    except SPARK_ERRORS:
        # Also for a name that cannot be parsed: Spark refuses it when the query is started.
        return None
    names = [str(row[0]) for row in rows]
    details = rows[names.index(_DETAILS) :] if _DETAILS in names else []
    found = {str(row[0]): str(row[1]) for row in details}
    return (found["Provider"].lower(), found.get("Location")) if found.get("Provider") else None


_DETAILS = "# Detailed Table Information"
"""The row that ends the table's columns, which can have any name."""


class Handler(ABC):
    @abstractmethod
    def start(self, start: Start) -> Any: ...

    def replacements(self) -> Mapping[type, Mapping[str, Callable[..., Any]]]:
        """The functions called in place of other methods, with the original as first argument."""
        return {}


@contextmanager
def intercepted(handler: Handler, threads: OwnThreads | None = None) -> Iterator[None]:
    """Pass this process's starts to ``handler`` until the block ends.

    If ``threads`` still run then, as after Ctrl-C, the replacement stays until the process ends.
    """
    changed: list[tuple[type, str, Any]] = []
    _HANDLERS.append(handler)

    def replace(owner: type, name: str, make: Callable[[Any], Any]) -> None:
        original = getattr(owner, name)
        changed.append((owner, name, original))
        setattr(owner, name, make(original))

    for name in _CALLS:
        # Spark 3.5 has no ``clusterBy``.
        if hasattr(DataStreamWriter, name):
            replace(DataStreamWriter, name, partial(_keeping, name=name))
    replace(SparkSession.Builder, "getOrCreate", _classic)
    replace(DataStreamWriter, "start", lambda original: _starting(handler, original, "path", ""))
    replace(DataStreamWriter, "toTable", lambda original: _starting(handler, original, "", "tableName"))
    for owner, methods in handler.replacements().items():
        for name, function in methods.items():
            replace(owner, name, partial(_bound, function=function))
    try:
        with clients_refused():
            yield
    finally:
        if threads is None or not threads.at_work():
            for owner, name, original in reversed(changed):
                setattr(owner, name, original)
            _HANDLERS.remove(handler)


_HANDLERS: list[Handler] = []


def is_intercepted(*, other_than: Handler) -> bool:
    return any(handler is not other_than for handler in _HANDLERS)


def _classic(original: Any) -> Any:
    def get(builder: Any) -> Any:
        if chooses_client(vars(builder).get("_options", {})):
            refuse_connect("The program makes a session")
        return original(builder)

    return get


def _bound(original: Any, function: Callable[..., Any]) -> Any:
    if isinstance(original, property):
        return property(partial(function, original.fget))

    def replaced(*arguments: Any, **named: Any) -> Any:
        return function(original, *arguments, **named)

    return replaced


def given_of(writer: object) -> Given:
    found: Given = vars(writer).setdefault(_KEPT, Given())
    return found


def _keeping(original: Any, name: str) -> Any:
    signature = inspect.signature(original)

    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        # First PySpark's own, which refuses what cannot be used.
        result = original(self, *arguments, **named)
        given, bound = given_of(self), dict(signature.bind(self, *arguments, **named).arguments)
        _keep(given, name, bound)
        given.calls.append((name, {key: value for key, value in bound.items() if key != _SELF}))
        return result

    return method


def _starting(handler: Handler, original: Any, path: str, table: str) -> Any:
    """The replacement of ``start`` or ``toTable``; sets their arguments on the writer first, as PySpark does."""
    signature = inspect.signature(original)

    def start(self: Any, *arguments: Any, **named: Any) -> Any:
        bound = signature.bind(self, *arguments, **named).arguments
        self.options(**bound.get("options", {}))
        for name, method in _SETTERS.items():
            if bound.get(name) is not None:
                getattr(self, method)(bound[name])
        target = bound.get(path or table)
        given = given_of(self)
        if path and target is not None:
            given.options["path"] = str(target)
            given.calls.append(("option", {"key": "path", "value": str(target)}))
        begin = partial(original, self) if target is None else partial(original, self, target)
        return handler.start(Start(self._df, given, str(target) if table else None, begin))

    return start


_SETTERS = {"outputMode": "outputMode", "partitionBy": "partitionBy", "format": "format", "queryName": "queryName"}
"""Arguments of ``start`` and ``toTable``, and the writer's equivalent methods."""


def _keep(given: Given, call: str, bound: Mapping[str, Any]) -> None:
    match call:
        case "option":
            given.keep_options({bound["key"]: bound["value"]})
        case "options":
            given.keep_options(bound.get("options", {}))
        case "format":
            given.format = bound["source"]
        case "outputMode":
            given.mode = bound["outputMode"].lower()
        case "queryName":
            given.name = bound["queryName"]
        case "partitionBy":
            columns = bound.get("cols", ())
            is_list = len(columns) == 1 and isinstance(columns[0], list)
            given.partition_by = tuple(columns[0]) if is_list else tuple(columns)
        case "foreach" | "foreachBatch":
            given.function = call
        case "trigger":
            values = ((name, value) for name, value in bound.items() if name in _TRIGGERS and value is not None)
            name, value = next(values)
            kind = _TRIGGERS[name]
            given.trigger = Trigger(kind) if kind in ("once", "available-now") else Trigger(kind, str(value).strip())


_CALLS = (
    "clusterBy", "option", "options", "format", "outputMode", "queryName", "partitionBy", "foreach", "foreachBatch",
    "trigger",
)  # fmt: skip
_TRIGGERS: dict[str, TriggerKind] = {
    "processingTime": "processing-time",
    "once": "once",
    "continuous": "continuous",
    "availableNow": "available-now",
    "realTime": "real-time",
}

QUERY, MANAGER, SESSION, CONTEXT = StreamingQuery, StreamingQueryManager, SparkSession, SparkContext


CLIENT = "pyspark.sql.connect.session"
"""PySpark's client. Importing it takes a second, and needs packages that PySpark does not require."""


def refuse_connect(what: str) -> NoReturn:
    """Raises Refused: a Spark Connect client has no query that could be checked, drained or recorded."""
    raise Refused(
        "connect-session",
        f"{what} with Spark Connect: its queries run in the server, and this process cannot check or record them",
        expected="a session of classic PySpark, such as SparkSession.builder.getOrCreate() without remote()",
        found="a session of Spark Connect",
        hint="start the program without Slackwater; a checkpoint that its queries have is recorded by "
        f"{mention('adopt', 'LOCATION')}, shown live by {mention('watch', 'LOCATION')}, and examined by "
        f"{mention('doctor', 'LOCATION')}",
    )


def is_client(session: object) -> bool:
    return type(session).__module__.startswith("pyspark.sql.connect.")


def chooses_client(options: Mapping[str, object], environment: Mapping[str, str] = os.environ) -> bool:
    mode = str(options.get("spark.api.mode", environment.get("SPARK_API_MODE", ""))).lower()
    named = "spark.remote" in options or "SPARK_REMOTE" in environment or "SPARK_CONNECT_MODE_ENABLED" in environment
    return named or mode == "connect"


@contextmanager
def clients_refused() -> Iterator[None]:
    """Refuse sessions of the client's own builder, even if it is imported later."""
    finder = _Finder()
    loaded = sys.modules.get(CLIENT)
    if loaded is not None:
        finder.replace(loaded)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        finder.restore()


class _Finder(MetaPathFinder):
    def __init__(self) -> None:
        self._replaced: list[tuple[Any, Callable[..., Any]]] = []

    def find_spec(self, name: str, path: Any, _target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name == CLIENT else None
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                self.replace(module)

            vars(spec.loader)["exec_module"] = exec_module
        return spec

    def replace(self, module: ModuleType) -> None:
        builder = module.SparkSession.Builder
        self._replaced.append((builder, builder.getOrCreate))
        builder.getOrCreate = lambda _builder: refuse_connect("The program makes a session")

    def restore(self) -> None:
        for builder, original in self._replaced:
            builder.getOrCreate = original
