"""Reads Spark's pickle of a Python function without running its classes' code.

Functions are rebuilt; other objects become descriptions of how they are made.
"""

import io
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any, Self

CLOUDPICKLE = "pyspark.cloudpickle"
MAKES_FUNCTIONS = frozenset({"_builtin_type", "_make_function", "_make_cell", "_make_empty_cell", "_function_setstate"})
"""Functions of cloudpickle that make code, functions and cells, and call nothing of the user's."""
BROADCASTS = frozenset({("pyspark.broadcast", "_from_id"), ("pyspark.core.broadcast", "_from_id")})
MOST_BYTES = 16 * 2**20
"""The largest pickle that is read: a start must not wait for a larger one."""

NOT_READ: tuple[type[Exception], ...] = (Exception,)
"""An object whose parts cannot be pickled may raise any exception: its classes decide."""


@dataclass(frozen=True, slots=True)
class Named:
    """A class or function: importable from a module, or pickled with its ``body``."""

    module: str
    name: str
    bases: tuple[Any, ...] = ()
    body: dict[str, Any] | None = None

    @property
    def path(self) -> str:
        return f"{self.module}.{self.name}"


BROADCAST = Named("pyspark", "Broadcast")


class Made:
    """An object that is not built; ``of`` is its class or factory."""

    of: Named
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]
    state: Any
    elements: list[Any]

    def __new__(cls, *arguments: Any, **keywords: Any) -> Self:
        made = object.__new__(cls)
        made.arguments, made.keywords, made.state, made.elements = arguments, keywords, None, []
        return made

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def __setitem__(self, key: Any, value: Any) -> None:
        self.elements.append((key, value))

    def append(self, value: Any) -> None:
        self.elements.append(value)

    add = append


class _Reader(pickle.Unpickler):
    def __init__(self, data: bytes, broadcast: Callable[[int], Any]) -> None:
        super().__init__(io.BytesIO(data))
        self._broadcast = broadcast

    def find_class(self, module: str, name: str) -> Any:
        if module.startswith(CLOUDPICKLE):
            if name in MAKES_FUNCTIONS:
                return super().find_class(module, name)
            found = _OF_CLASSES.get(name)
            if found is not None:
                return found
        return self._broadcast if (module, name) in BROADCASTS else _named(Named(module, name))


def read_pickled(data: bytes, broadcast: Callable[[int], Any]) -> Any:
    return _Reader(data, broadcast).load()


def as_pickled(value: object) -> Any:
    file = _Limited()
    dump: Callable[[object, io.BytesIO], None] = resolve_name(f"{CLOUDPICKLE}:dump")
    dump(value, file)
    # The value was never broadcast, so there is no number to look up.
    return read_pickled(file.getvalue(), dict[int, Any]().__getitem__)


class _Limited(io.BytesIO):
    def write(self, data: Any) -> int:
        if self.tell() + memoryview(data).nbytes > MOST_BYTES:
            raise ValueError("the value is too large to be compared")
        return super().write(data)


def broadcast_with(value: object) -> Made:
    return _named(BROADCAST)(value)


def _named(of: Named) -> type[Made]:
    return type(of.name, (Made,), {"of": of})


def _class(
    _metaclass: Any, name: str, bases: tuple[Any, ...], given: Mapping[str, Any], _id: str, _extra: Any
) -> type[Made]:
    return _named(Named(str(given.get("__module__", "")), name, bases, {}))


def _enumeration(
    bases: tuple[Any, ...], name: str, _qualified: str, members: Mapping[str, Any], module: str, _id: str, _extra: Any
) -> type[Made]:
    return _named(Named(module, name, bases, dict(members)))


def _set_body(made: type[Made], state: tuple[Mapping[str, Any], Any]) -> None:
    if made.of.body is not None:
        made.of.body.update(state[0])


_OF_CLASSES: Mapping[str, Callable[..., Any]] = {
    "_make_skeleton_class": _class,
    "_make_skeleton_enum": _enumeration,
    "_class_setstate": _set_body,
}
