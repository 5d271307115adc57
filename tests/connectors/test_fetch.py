"""A real fetch of a real jar, by each of the ways."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from slackwater import connectors
from slackwater.connectors.cache import JarCache, by_ivy, by_maven, jars_of


def test_the_ivy_inside_pyspark_fetches_the_locked_jar(tmp_path: Path) -> None:
    [driver] = jars_of("postgresql", "4.1.3")
    messages: list[str] = []
    cache = JarCache(tmp_path, ways=[lambda *_: "", by_ivy], say=messages.append)
    cache.complete("postgresql", [driver])
    assert cache.has(driver)
    assert messages == ["fetching 1 jar for postgresql"]
    assert not list(tmp_path.glob(".fetching-*"))


@pytest.mark.thorough
def test_maven_fetches_the_locked_jar_where_it_is_installed(tmp_path: Path) -> None:
    [driver] = jars_of("postgresql", "4.1.3")
    cache = JarCache(tmp_path, ways=[by_maven, by_ivy])
    cache.complete("postgresql", [driver])
    assert cache.has(driver)


def test_resolving_what_is_cached_starts_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACKWATER_CACHE", str(tmp_path))
    first = connectors.resolve(["postgresql"], "4.1.3")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no-java"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert shutil.which("java") is None
    assert connectors.resolve(["postgresql"], "4.1.3") == first
    assert [path.name for path in first] == ["postgresql-42.7.13.jar"]
    assert first[0].is_relative_to(tmp_path)
