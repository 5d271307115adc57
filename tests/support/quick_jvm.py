"""JVMs of tests live for seconds: half of that would go into loading Spark's classes and optimising their code.

Spark's scripts read ``SPARK_SUBMIT_OPTS``. With it each JVM of the tests compiles with the first compiler alone and
maps Spark's classes from an archive (Java's class-data sharing), which is made once for each Spark and Java and kept in
the user's cache. A JVM that cannot use the archive loads its classes itself.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path

from slackwater.connectors.machine import java_program, spark_jars_folder
from slackwater.errors import EnvironmentMissing

# Metaspace for all classes at once: each time it grows, the whole heap is collected first.
LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=512m -Xms512m -Xmn300m -XX:-UsePerfData"
SILENT = "-Xlog:cds=off -Xlog:cds+dynamic=off"
VARIABLE = "SPARK_SUBMIT_OPTS"
PROGRAM = Path(__file__).with_name("spark_classes.py")


def use_quick_jvms() -> None:
    """Set the options for all JVMs that this process and its children start. Without Java nothing is set."""
    try:
        archive = _archive()
    except EnvironmentMissing:
        return
    archive.parent.mkdir(parents=True, exist_ok=True)
    with archive.with_suffix(".lock").open("w") as lock:
        # Processes that run tests side by side: one makes it, the others wait.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            _make(archive)
    os.environ[VARIABLE] = f"{LIGHT} {SILENT} -XX:SharedArchiveFile={archive}" if archive.exists() else LIGHT


def _archive() -> Path:
    jars, java = spark_jars_folder().resolve(), java_program().resolve()
    # A changed program, Spark or Java at the same path needs an archive of its own.
    made_for = f"{jars} {jars.stat().st_mtime_ns} {java} {java.stat().st_mtime_ns} {PROGRAM.read_text()}"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "slackwater" / "tests" / f"spark-{hashlib.sha256(made_for.encode()).hexdigest()[:16]}.jsa"


def _make(archive: Path) -> None:
    """Run queries and let the JVM archive what it has loaded; what prevents that is printed, and prevents no test."""
    unfinished = archive.with_suffix(f".{os.getpid()}")
    options = f"{LIGHT} {SILENT} -XX:ArchiveClassesAtExit={unfinished}"
    # Its output is read to the end because the JVM, which writes the archive, ends after Python.
    done = subprocess.run(
        [sys.executable, str(PROGRAM)],
        env={**os.environ, VARIABLE: options, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0 and unfinished.exists():
        unfinished.replace(archive)
    else:
        unfinished.unlink(missing_ok=True)
        sys.stderr.write(f"no archive of Spark's classes: {done.stderr[-400:]}\n")
