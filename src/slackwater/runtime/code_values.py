"""Writes plain values as text: numbers, strings, dates, patterns, collections and data classes."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import re
import types
import uuid
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

from slackwater.runtime.code_meaning import Token

ATOMS = (
    type(None), bool, int, float, complex, str, bytes, decimal.Decimal, dt.date, dt.time, dt.timedelta,
    dt.timezone, uuid.UUID, range, type(...),
)  # fmt: skip
MAPPINGS = (dict, OrderedDict, Counter)
LIBRARY_FUNCTIONS = (types.BuiltinFunctionType, types.MethodDescriptorType)
OF_NO_OBJECT = (type(None), types.ModuleType)
"""The ``__self__`` types of built-in functions that are not methods of a value."""
MOST_VALUES = 100_000

OfFunction = Callable[[str, str, int], list[Token] | None]


def value_text(value: object, of_function: OfFunction, *, only_functions: bool) -> list[Token] | None:
    """The text of a plain value, or None if a part is not plain.

    ``only_functions`` keeps only functions and keys: for caches, and registries that imports fill.
    """
    writer = ValueWriter(of_function, only_functions)
    try:
        writer.write(value)
    except (_NotPlain, RecursionError):
        return None
    return writer.tokens


class _NotPlain(Exception): ...


class ValueWriter:
    def __init__(self, of_function: OfFunction, only_functions: bool) -> None:
        self.tokens: list[Token] = []
        self._of_function = of_function
        self._only_functions = only_functions
        self._left = MOST_VALUES

    def write(self, value: object) -> None:
        self._left -= 1
        if self._left < 0:
            raise _NotPlain
        # By the exact type: a derived class can have a ``repr`` that does not show its value.
        if type(value) in ATOMS:
            self._add(f"{type(value).__name__} {value!r}")
        elif isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, LIBRARY_FUNCTIONS) and isinstance(getattr(value, "__self__", None), OF_NO_OBJECT):
            self._add(f"library {getattr(value, '__module__', None)}.{value.__qualname__}")
        elif isinstance(value, partial):
            self._parts("partial", (value.func, value.args, value.keywords))
        elif isinstance(value, enum.Enum):
            self._parts(f"enum {value.name}", (value.value,))
        elif isinstance(value, re.Pattern):
            self._parts("pattern", (value.pattern, value.flags))
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            self._parts("data", [getattr(value, field.name) for field in dataclasses.fields(value)])
        else:
            self._collection(value)

    def _collection(self, value: object) -> None:
        kind = type(value)
        if isinstance(value, dict) and (kind in MAPPINGS or self._only_functions):
            entries = list(value.items())
            # A registry is filled in the order of imports, which does not matter.
            if self._only_functions:
                entries.sort(key=lambda entry: str(entry[0]))
            self._parts(kind.__name__, [part for entry in entries for part in entry])
        elif isinstance(value, tuple) and kind.__bases__ == (tuple,) and hasattr(value, "_fields"):
            self._parts(f"named tuple {value._fields}", value)
        elif isinstance(value, (list, tuple)) and (kind in (list, tuple) or self._only_functions):
            self._parts(kind.__name__, value)
        elif isinstance(value, (set, frozenset)) and (kind in (set, frozenset) or self._only_functions):
            self._unordered(value)
        elif not self._only_functions:
            # Also a class derived from one of these, whose methods decide what its elements mean.
            raise _NotPlain

    def _unordered(self, value: Iterable[object]) -> None:
        # The order of strings in a set differs between processes (``PYTHONHASHSEED``).
        self._parts("set", sorted(value, key=repr))

    def _parts(self, kind: str, parts: Iterable[object]) -> None:
        self._add(f"{kind} (")
        for part in parts:
            self.write(part)
        self._add(")")

    def _function(self, function: types.FunctionType) -> None:
        code = function.__code__
        found = self._of_function(code.co_filename, code.co_name, code.co_firstlineno)
        if found is None:
            self.tokens.append(f"library {function.__module__}.{function.__qualname__}")
            return
        self.tokens += found
        cells = function.__closure__ or ()
        if cells and not self._only_functions:
            # The expression that made it has its arguments.
            raise _NotPlain
        for cell in cells:
            with suppress(ValueError):  # a variable that has no value yet
                self.tokens += value_text(cell.cell_contents, self._of_function, only_functions=False) or []

    def _add(self, text: str) -> None:
        if not self._only_functions:
            self.tokens.append(text)
