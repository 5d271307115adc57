"""Reads what the Python functions of a query get from their process: its time zone, its variables, its libraries."""

from __future__ import annotations

import locale
import os
import platform
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

from slackwater.core.masking import is_secret_name
from slackwater.core.program import EXECUTOR_VARIABLE, TIME_ZONE, Program
from slackwater.core.zones import process_zone
from slackwater.runtime.code_reach import Reach
from slackwater.runtime.code_scopes import NOT_THE_PROJECTS, vars_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOW_IT_RUNS = (
    "HADOOP_", "HOME", "JAVA_", "JDK_", "LD_", "MKL_", "OMP_", "OPENBLAS_", "PATH", "PYTHON", "SPARK_", "TMPDIR",
    "YARN_",
)  # fmt: skip
"""Prefixes of variables that executors get for the process itself: they count only where a function names them."""
_DIGEST_LENGTH = 16


def with_environment(program: Program, reach: Reach, spark: SparkSession) -> Program:
    """The program with the environment of the functions whose values its state keeps; as it is without any."""
    names = {name for operator in program.operators for name in operator.functions}
    if not names:
        return program
    given: Mapping[str, str] = spark.sparkContext.environment
    used = reach.uses(names)
    return replace(
        program,
        environment=environment_of(used.variables, given, os.environ),
        versions=_versions(used.libraries),
    )


def environment_of(read: Iterable[str], given: Mapping[str, str], process: Mapping[str, str]) -> dict[str, str]:
    """What functions get that ``read`` these variables. ``given`` are those of ``spark.executorEnv``.

    Of a value only a digest, of a secret nothing: a new password changes no rows.
    """
    effective = {**process, **given}
    named = [name for name in read if _counts(name)]
    found = {name: _digest(name, effective[name]) if name in effective else "" for name in named}
    for name, value in given.items():
        if _counts(name) and name not in found and not name.startswith(HOW_IT_RUNS):
            found[EXECUTOR_VARIABLE + name] = _digest(name, value)
    return {TIME_ZONE: process_zone(effective.get(TIME_ZONE)), **dict(sorted(found.items()))}


def present_environment(kept: Program, settings: Mapping[str, str], process: Mapping[str, str]) -> Mapping[str, str]:
    """The environment that the functions of a recorded program would get now; without any none was recorded."""
    if not kept.environment:
        return {}
    given = {
        name.removeprefix(EXECUTOR_VARIABLE): value
        for name, value in settings.items()
        if name.startswith(EXECUTOR_VARIABLE)
    }
    named = [name for name in kept.environment if not name.startswith(EXECUTOR_VARIABLE)]
    return environment_of(named, given, process)


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
