"""What fetching needs from the machine: a Java runtime, and the folder of PySpark's jars."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

from slackwater.core.errors import EnvironmentMissing


def java_program() -> Path:
    """The ``java`` of JAVA_HOME, else the one on PATH, as Spark's own scripts choose it. Raises EnvironmentMissing."""
    home = os.environ.get("JAVA_HOME")
    if home:
        return _java_of(home)
    if on_path := shutil.which("java"):
        return Path(on_path)
    raise EnvironmentMissing(
        "java-missing",
        "This needs Java 17, which was not found",
        expected="JAVA_HOME, or java on PATH",
        hint="run scripts/setup, or install a Java 17 runtime and set JAVA_HOME",
    )


def _java_of(home: str) -> Path:
    """The ``java`` of JAVA_HOME: where it is set, Spark's scripts use no other."""
    program = Path(home, "bin", "java")
    if program.is_file():
        return program
    raise EnvironmentMissing(
        "java-missing",
        "JAVA_HOME names no Java runtime",
        where=home,
        expected=str(program),
        found="no such file",
        hint="set JAVA_HOME to the folder of a Java 17 runtime, or unset it to use java on PATH",
    )


def memory_bytes() -> int:
    """The memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def pyspark_missing() -> EnvironmentMissing:
    """The error for everything that needs PySpark where it is not installed."""
    return EnvironmentMissing(
        "pyspark-missing",
        "This needs PySpark, which is not installed",
        hint="pip install 'pyspark<4.4' pandas 'protobuf<7'",
    )


def spark_jars_folder() -> Path:
    """The jars inside the installed PySpark, found without importing it. Raises EnvironmentMissing."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise pyspark_missing()
    # Spark unpacked by hand keeps its jars beside, not inside, the Python package; spark-submit sets SPARK_HOME to it.
    for home in (os.environ.get("SPARK_HOME"), str(Path(spec.origin).parent)):
        if home and (folder := Path(home, "jars")).is_dir():
            return folder
    raise EnvironmentMissing(
        "pyspark-missing",
        "The installed PySpark has no jars",
        where=spec.origin,
        hint="pip install 'pyspark<4.4' pandas 'protobuf<7'",
    )
