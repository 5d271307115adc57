"""Ways to get a jar: local Maven and Ivy stores, the Ivy inside PySpark, Maven.

The cache verifies the hashes.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

from slackwater.connectors.locked import Jar
from slackwater.connectors.machine import java_program, spark_jars_folder

Download = Callable[[Sequence[Jar], Path], str]
"""Puts jars into a folder, under their ``file_name``; returns the tool's output."""

DOWNLOAD_S_MAX = 900

# One resolver with Ivy's own default address, and no poms: the locked list is complete.
# Ivy checks the sha1 next to each file; the cache checks the locked sha256.
_IVY_SETTINGS = """<ivysettings>
  <settings defaultResolver="public"/>
  <caches defaultCacheDir={cache}/>
  <resolvers><ibiblio name="public" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
"""


def sha256_of(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def from_local_stores(jars: Sequence[Jar], folder: Path) -> str:
    """Copy earlier downloads of Maven or Ivy; a damaged file is passed over."""
    home = Path.home()
    for jar in jars:
        candidates = (
            home / ".m2/repository" / jar.repository_path,
            # Spark 4 keeps its Ivy cache in `~/.ivy2.5.2`, Spark 3.5 in `~/.ivy2`.
            home / ".ivy2.5.2/cache" / jar.group / jar.artifact / "jars" / jar.file_name,
            home / ".ivy2/cache" / jar.group / jar.artifact / "jars" / jar.file_name,
        )
        found = next((path for path in candidates if path.is_file() and sha256_of(path) == jar.sha256), None)
        if found:
            shutil.copyfile(found, folder / jar.file_name)
    return ""


def by_ivy(jars: Sequence[Jar], folder: Path) -> str:
    """Fetch all jars in a single JVM, by the user's ``~/.ivy2/ivysettings.xml``.

    Ivy copies jars when it has all. Until then its cache stays next to ``folder``, so that the next try continues.
    """
    work = folder / ".ivy"
    work.mkdir(exist_ok=True)
    module = work / "ivy.xml"
    module.write_text(_ivy_module(jars), encoding="utf-8")
    cache = folder.parent / ".ivy-cache"
    settings = Path.home() / ".ivy2" / "ivysettings.xml"
    if not settings.is_file():
        settings = work / "ivysettings.xml"
        settings.write_text(_IVY_SETTINGS.format(cache=_quoted(str(cache))), encoding="utf-8")
    output = _run(
        str(java_program()),
        "-cp",
        f"{spark_jars_folder()}/*",
        "org.apache.ivy.Main",
        *("-settings", str(settings), "-ivy", str(module), "-types", "jar"),
        *("-retrieve", f"{folder}/[artifact]-[revision].[ext]"),
    )
    if all((folder / jar.file_name).is_file() for jar in jars):
        # Also where one of them is a wrong file: it is fetched again.
        shutil.rmtree(cache, ignore_errors=True)
    return output


def by_maven(jars: Sequence[Jar], folder: Path) -> str:
    """Fetch with Maven and the user's ``~/.m2/settings.xml``; does nothing without ``mvn``."""
    program = shutil.which("mvn")
    if program is None:
        return ""
    messages = [
        _run(
            *(program, "--batch-mode", "--quiet", "dependency:copy"),
            *(f"-Dartifact={jar.coordinate}", f"-DoutputDirectory={folder}"),
        )
        for jar in jars
    ]
    return "\n".join(messages)


WAYS: tuple[Download, ...] = (from_local_stores, by_ivy, by_maven)
"""The cheapest first."""


def _ivy_module(jars: Sequence[Jar]) -> str:
    dependencies = "\n".join(
        f"    <dependency org={_quoted(jar.group)} name={_quoted(jar.artifact)} rev={_quoted(jar.version)}"
        f' transitive="false" conf="*->*"><artifact name={_quoted(jar.artifact)} type="jar" ext="jar"/></dependency>'
        for jar in jars
    )
    return (
        '<ivy-module version="2.0">\n  <info organisation="slackwater" module="connectors"/>\n'
        f"  <dependencies>\n{dependencies}\n  </dependencies>\n</ivy-module>\n"
    )


def _run(*command: str) -> str:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=DOWNLOAD_S_MAX,
            check=False,
            text=True,
            errors="replace",
        )
    except subprocess.TimeoutExpired:
        return f"{Path(command[0]).name} did not end within {DOWNLOAD_S_MAX} s"
    return done.stdout


def _quoted(value: str) -> str:
    return f'"{escape(value)}"'
