"""Compiles ``hadoop_files`` into a jar with the compiler that Spark brings: a Java runtime has none.

python tests/support/hadoop_jar.py JAR
"""

from __future__ import annotations

import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pyspark.java_gateway import launch_gateway

SOURCES = Path(__file__).with_name("hadoop_files")


def main(jar: Path) -> None:
    """Write the jar: the classes, and the settings that name them."""
    start: Callable[..., Any] = launch_gateway
    gateway = start()
    compiler = gateway.jvm.org.codehaus.janino.Compiler()
    jars = Path(gateway.jvm.java.lang.System.getenv("SPARK_HOME"), "jars")
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(jar, "w") as made:
        compiler.setDestinationDirectory(gateway.jvm.java.io.File(folder), True)
        compiler.setClassPath(_files(gateway, list(jars.glob("*.jar"))))
        compiler.compile(_files(gateway, list(SOURCES.glob("*.java"))))
        for file in sorted(Path(folder).rglob("*.class")):
            made.write(file, file.relative_to(folder))
        made.write(SOURCES / "core-site.xml", "core-site.xml")
    gateway.shutdown()


def _files(gateway: Any, paths: Sequence[Path]) -> Any:
    files = gateway.new_array(gateway.jvm.java.io.File, len(paths))
    for number, path in enumerate(paths):
        files[number] = gateway.jvm.java.io.File(str(path))
    return files


if __name__ == "__main__":
    main(Path(sys.argv[1]))
