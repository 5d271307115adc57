"""JVMs of tests live for seconds: half of that would go into loading Spark's classes and optimising their code.

Spark's scripts read these variables. With them each JVM of the tests compiles with the first compiler alone, maps
Spark's classes from an archive (Java's class-data sharing), starts no processes to change local files
(``hadoop_files``), and evaluates expressions as they are, where Spark by default writes and compiles a class for each
stage of each query. Archive and jar are made once for each Spark and Java and kept in the user's cache. A JVM that
cannot use the archive loads its classes itself.
"""

import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from slackwater.connectors.machine import java_program, spark_jars_folder
from slackwater.core.errors import EnvironmentMissing

# Metaspace for all classes at once: each time it grows, the whole heap is collected first. The first compiler alone has
# a small code cache, which a JVM that stays fills; then it is swept all the time.
LIGHT = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=512m -Xms512m -Xmn300m -XX:-UsePerfData"
    " -XX:ReservedCodeCacheSize=256m"
)
INTERPRETED = "-Dspark.sql.codegen.wholeStage=false -Dspark.sql.codegen.factoryMode=NO_CODEGEN"
"""For the few rows of a test a class costs more than it saves; ``scripts/test --all`` compiles as users' Spark does."""
EVERY = "SLACKWATER_TEST_EVERY"
LAUNCHER = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For the JVM that puts together the command line of another one."""
SILENT = "-Xlog:cds=off -Xlog:cds+dynamic=off"
OPTIONS = "SPARK_SUBMIT_OPTS"
LAUNCHER_OPTIONS = "SPARK_LAUNCHER_OPTS"
CLASS_PATH = "SPARK_DIST_CLASSPATH"
"""Comes last in the class path, so that the one of the archive is its beginning."""

ARCHIVED = Path(__file__).with_name("spark_classes.py")
COMPILED = Path(__file__).with_name("hadoop_jar.py")
SOURCES = Path(__file__).with_name("hadoop_files")


def use_quick_jvms() -> None:
    """Set the options for all JVMs that this process and its children start. Without Java nothing is set."""
    try:
        jars, java = spark_jars_folder().resolve(), java_program().resolve()
        # A changed program, Spark or Java at the same path needs files of its own.
        made_for = f"{jars} {jars.stat().st_mtime_ns} {java} {java.stat().st_mtime_ns} {LIGHT}"
        texts = [file.read_text() for file in (ARCHIVED, COMPILED, *sorted(SOURCES.iterdir()))]
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = (
            cache / "slackwater" / "tests" / hashlib.sha256("\n".join([made_for, *texts]).encode()).hexdigest()[:16]
        )
    except EnvironmentMissing:
        return
    folder.mkdir(parents=True, exist_ok=True)
    archive, jar = folder / "spark.jsa", folder / "hadoop-files.jar"
    with (folder / "lock").open("w") as lock:
        # Processes that run tests side by side: one makes them, the others wait.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not jar.exists():
            _make(jar, COMPILED, {}, "{}")
        paths = os.environ.get(CLASS_PATH, "").split(os.pathsep)
        if jar.exists() and str(jar) not in paths:
            os.environ[CLASS_PATH] = os.pathsep.join(filter(None, [str(jar), *paths]))
        if not archive.exists():
            _make(archive, ARCHIVED, {OPTIONS: f"{LIGHT} {SILENT} -XX:ArchiveClassesAtExit={{}}"})
    options = [LIGHT] if EVERY in os.environ else [LIGHT, INTERPRETED]
    if archive.exists():
        options += [SILENT, f"-XX:SharedArchiveFile={archive}"]
    os.environ[OPTIONS] = " ".join(options)
    os.environ[LAUNCHER_OPTIONS] = LAUNCHER


def _make(file: Path, program: Path, settings: Mapping[str, str], *arguments: str) -> None:
    """Run a program that makes a file, named by ``{}``; what prevents that is printed, and prevents no test."""
    unfinished = file.with_suffix(f".{os.getpid()}")
    # Its output is read to the end because a JVM may write the file, and ends after Python.
    done = subprocess.run(
        [sys.executable, str(program), *(word.format(unfinished) for word in arguments)],
        env={
            **os.environ,
            **{name: value.format(unfinished) for name, value in settings.items()},
            "PYSPARK_PYTHON": sys.executable,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0 and unfinished.exists():
        unfinished.replace(file)
    else:
        unfinished.unlink(missing_ok=True)
        sys.stderr.write(f"{program.name} has made no {file.name}: {done.stderr[-400:]}\n")
