"""Reads the inputs of Python functions from their process: time zone, variables, libraries."""

from __future__ import annotations

import locale
import os
import platform
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING

from slackwater.core.errors import Refused
from slackwater.core.masking import is_secret_name, mask
from slackwater.core.program import EXECUTOR_VARIABLE, PROCESS_VARIABLE, TIME_ZONE, Program
from slackwater.core.units import is_same_zone, process_zone
from slackwater.runtime.code_reach import Reach, Uses
from slackwater.runtime.code_scopes import NOT_THE_PROJECTS, vars_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOW_IT_RUNS = (
    "HADOOP_", "HOME", "JAVA_", "JDK_", "LD_", "MKL_", "OMP_", "OPENBLAS_", "PATH", "PYTHON", "SPARK_", "TMPDIR",
    "YARN_",
)  # fmt: skip
"""Prefixes of variables that executors get for the process itself: they count only if a function reads them."""
_LOCALE = ("LANG", "LC_")
_DIGEST_LENGTH = 16


def with_environment(program: Program, reach: Reach, spark: SparkSession) -> Program:
    kept = {name for operator in program.operators for name in operator.functions}
    behind = {name for rows in program.rows for name in rows.functions} - kept
    given = spark.sparkContext.environment
    if behind:
        program = with_output_environment(program, reach.uses(behind), given)
    if not kept:
        return program
    used = reach.uses(kept)
    return replace(
        program,
        environment=environment_of(used.variables, given, os.environ),
        versions={**program.versions, **_versions(used.libraries)},
    )


def with_output_environment(program: Program, used: Uses, given: Mapping[str, str]) -> Program:
    """Add the environment of functions that write rows; ``given`` is empty if the driver runs them."""
    environment = environment_of(used.variables, given, os.environ)
    return replace(
        program,
        output_environment={**environment, **program.output_environment},
        versions={**program.versions, **_versions(used.libraries)},
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
    set_again = {name: value for name, value in _process(recorded).items() if value}
    given = _executors(recorded if set_again else settings)
    named = [name for name in kept.environment if not name.startswith(EXECUTOR_VARIABLE)]
    return environment_of(named, given, {**process, **set_again})


def environment_settings(program: Program | None, spark: SparkSession) -> dict[str, str]:
    """The environment's settings for a replay.

    Secrets, and variables that must stay empty, are omitted.
    """
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
    kept, present = _variables(before), {**os.environ, **given}
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
    given, process, executors = spark.sparkContext.environment, _process(settings), _executors(settings)
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
    process = {name: os.environ[name] for name in _process(settings) if name in os.environ}
    return {**process, **spark.sparkContext.environment}


@dataclass(frozen=True, slots=True)
class Environment:
    process: Mapping[str, str] = field(repr=False)
    given: Mapping[str, str] = field(repr=False)


def environment_before(spark: SparkSession) -> Environment:
    return Environment(dict(os.environ), dict(spark.sparkContext.environment))


def restore_environment(spark: SparkSession, before: Environment) -> None:
    for name in os.environ.keys() - before.process.keys():
        del os.environ[name]
    os.environ.update(before.process)
    given = spark.sparkContext.environment
    given.clear()
    given.update(before.given)
    time.tzset()


def _variables(settings: Mapping[str, str]) -> dict[str, str]:
    return {**_process(settings), **_executors(settings)}


def _process(settings: Mapping[str, str]) -> dict[str, str]:
    return _below(settings, PROCESS_VARIABLE)


def _executors(settings: Mapping[str, str]) -> dict[str, str]:
    return _below(settings, EXECUTOR_VARIABLE)


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
