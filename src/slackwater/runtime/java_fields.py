"""Private fields of Spark's objects."""

from __future__ import annotations

from typing import Any


def java_field(value: Any, name: str) -> Any:
    """The private field of a Scala object, made accessible. Raises LookupError."""
    java_class = value.getClass()
    while java_class is not None:
        for field in java_class.getDeclaredFields():
            if str(field.getName()).rpartition("$$")[2] == name:
                field.setAccessible(True)
                return field
        java_class = java_class.getSuperclass()
    raise LookupError(f"{name} in {value.getClass().getSimpleName()}")
