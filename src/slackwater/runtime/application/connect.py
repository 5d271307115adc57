"""Refuses sessions of Spark Connect before the server is asked: their queries run in a server."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, NoReturn

from slackwater.core.commands import mention
from slackwater.core.errors import Refused

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
