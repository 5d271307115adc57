"""The ways to get a jar, with programs that stand for Java and Maven."""

from pathlib import Path

import pytest

from slackwater.connectors.cache import Jar, JarCache, by_ivy, by_maven, from_local_stores
from slackwater.core.errors import EnvironmentMissing
from tests.connectors.conftest import CONTENT
from tests.support.errors import raises_code

IVY = """#!/bin/sh
# Fetches the jar into the cache of the settings and is ended then; the next one copies it from there.
cache=$(sed -n 's/.*defaultCacheDir="\\([^"]*\\)".*/\\1/p' "$5")
if [ -f "$cache/jar" ]; then
    cp "$cache/jar" "$(dirname "${11}")/small-1.0.jar"
else
    mkdir -p "$cache"
    printf 'not a real jar' > "$cache/jar"
    echo "did not end in time"
fi
"""
MAVEN = """#!/bin/sh
# As with a localRepository of its own: only the goal that copies puts a file where it is asked to.
for argument in "$@"; do
    case "$argument" in
        dependency:copy) copies=1 ;;
        -DoutputDirectory=*) folder="${argument#*=}" ;;
    esac
done
[ -z "$copies" ] || printf 'not a real jar' > "$folder/small-1.0.jar"
"""


def _program(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True)
    file.write_text(text)
    file.chmod(0o755)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_ivy_continues_where_an_earlier_try_was_ended(
    tmp_path: Path, small_jar: Jar, monkeypatch: pytest.MonkeyPatch
) -> None:
    _program(tmp_path / "java" / "bin" / "java", IVY)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    cache = JarCache(tmp_path / "jars", ways=[by_ivy])
    with pytest.raises(EnvironmentMissing) as caught:
        cache.complete("small", [small_jar])
    assert caught.value.found == "did not end in time"

    cache.complete("small", [small_jar])

    assert cache.has(small_jar)
    kept = [path for path in (tmp_path / "jars").rglob("*") if path.is_file()]
    assert sorted(path.name for path in kept) == [".lock", "small-1.0.jar"]


def test_maven_puts_the_jar_where_it_is_asked_to(
    tmp_path: Path, small_jar: Jar, monkeypatch: pytest.MonkeyPatch
) -> None:
    _program(tmp_path / "bin" / "mvn", MAVEN)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    cache = JarCache(tmp_path / "jars", ways=[by_maven])

    cache.complete("small", [small_jar])

    assert cache.has(small_jar)


def test_a_damaged_local_file_does_not_hide_a_good_one(tmp_path: Path, home: Path, small_jar: Jar) -> None:
    of_maven = home / ".m2/repository" / small_jar.repository_path
    of_ivy = home / ".ivy2/cache/org.example/small/jars" / small_jar.file_name
    for file, content in ((of_maven, b"half of a dow"), (of_ivy, CONTENT)):
        file.parent.mkdir(parents=True)
        file.write_bytes(content)
    cache = JarCache(tmp_path / "jars", ways=[from_local_stores])

    cache.complete("small", [small_jar])
    assert cache.has(small_jar)

    of_ivy.unlink()
    cache.path(small_jar).unlink()
    with raises_code(EnvironmentMissing, "connector-unavailable"):
        cache.complete("small", [small_jar])
