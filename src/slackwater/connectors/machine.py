"""The machine's Java, cache folder, and PySpark jars."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from slackwater.core.errors import EnvironmentMissing
from slackwater.core.reference import absolute_path

DISTRIBUTION = Path("/usr/lib/jvm")
"""Java in packages of Linux distributions."""
FITTING = ("17", "21")
"""The versions of Java that ``scripts/setup`` accepts, too."""


def java_program(distribution: Path = DISTRIBUTION) -> Path:
    """The ``java`` of JAVA_HOME, else on PATH, as Spark's scripts choose it; else as ``scripts/setup`` does. Spark's
    scripts look nowhere else, so JAVA_HOME is then set for child processes. Raises EnvironmentMissing.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        return _java_of(home)
    on_path = shutil.which("java")
    if on_path and _java_major(Path(on_path)) in FITTING:
        return Path(on_path)
    for other in _other_homes(distribution):
        program = other / "bin" / "java"
        if os.access(program, os.X_OK) and _java_major(program) in FITTING:
            os.environ["JAVA_HOME"] = str(other)
            return program
    if on_path:
        return Path(on_path)
    raise EnvironmentMissing(
        "java-missing",
        "This needs Java 17, which was not found",
        expected=f"JAVA_HOME, java on PATH, or Java 17 below {distribution}",
        hint="run scripts/setup, or install a Java 17 runtime and set JAVA_HOME",
    )


def _java_of(home: str) -> Path:
    """Spark's scripts use no other Java if JAVA_HOME is set."""
    program = Path(home, "bin", "java")
    if program.is_file():
        return program
    raise EnvironmentMissing(
        "java-missing",
        "JAVA_HOME does not point to a Java runtime",
        where=home,
        expected=str(program),
        found="no such file",
        hint="set JAVA_HOME to the folder of a Java 17 runtime, or unset it to use java on PATH",
    )


def _other_homes(distribution: Path) -> Iterator[Path]:
    for version in FITTING:
        yield from sorted(distribution.glob(f"*{version}*"))
    with suppress(RuntimeError):  # a user without a home folder
        yield cache_folder() / "jdk" / "17"


def _java_major(program: Path) -> str | None:
    """Reads the JDK's own ``release`` file: starting a JVM takes longer."""
    with suppress(OSError):
        release = (program.resolve().parents[1] / "release").read_text(encoding="utf-8", errors="replace")
        if found := re.search(r'^JAVA_VERSION="(\d+)', release, re.MULTILINE):
            return found[1]
    with suppress(OSError):
        command = [str(program), "-version"]
        done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, capture_output=True, errors="replace")
        if found := re.search(r'version "(\d+)', done.stderr):
            return found[1]
    return None


def cache_folder() -> Path:
    """``SLACKWATER_CACHE``, else ``slackwater`` in the user's cache folder. Raises RuntimeError."""
    chosen = os.environ.get("SLACKWATER_CACHE")
    base = Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slackwater"
    return absolute_path(base)


def memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def pyspark_missing() -> EnvironmentMissing:
    return EnvironmentMissing(
        "pyspark-missing",
        "This needs PySpark, which is not installed",
        hint="pip install 'pyspark<4.2' pandas 'protobuf<7'",
    )


def spark_jars_folder() -> Path:
    """Found without importing PySpark. Raises EnvironmentMissing."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise pyspark_missing()
    # Spark unpacked by hand keeps its jars next to, not inside, the Python package; spark-submit sets SPARK_HOME to it.
    for home in (os.environ.get("SPARK_HOME"), str(Path(spec.origin).parent)):
        if home and (folder := Path(home, "jars")).is_dir():
            return folder
    raise EnvironmentMissing(
        "pyspark-missing",
        "The installed PySpark has no jars",
        where=spec.origin,
        hint="pip install 'pyspark<4.2' pandas 'protobuf<7'",
    )
