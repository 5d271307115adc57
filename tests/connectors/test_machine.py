"""Which Java is used where neither JAVA_HOME nor PATH names a fitting one."""

import os
from pathlib import Path

import pytest

from slackwater.connectors.machine import java_program
from slackwater.core.errors import EnvironmentMissing
from tests.support.errors import raises_code


@pytest.fixture(autouse=True)
def _machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No Java, and a cache folder."""
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("SLACKWATER_CACHE", str(tmp_path / "cache"))


def jdk(home: Path, version: str, *, release: bool = True) -> Path:
    """A folder of a JDK, whose ``java`` prints its version; the program."""
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}.0.1\"' >&2\n")
    program.chmod(0o755)
    if release:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}.0.1"\n')
    return program


def on_path(tmp_path: Path, program: Path) -> Path:
    link = tmp_path / "path" / "java"
    link.parent.mkdir()
    link.symlink_to(program)
    return link


def test_the_java_that_setup_downloads_is_found_and_named_to_spark(tmp_path: Path) -> None:
    program = jdk(tmp_path / "cache/jdk/17", "17")
    assert java_program(tmp_path / "jvm") == program
    assert os.environ["JAVA_HOME"] == str(tmp_path / "cache/jdk/17")
    assert java_program(tmp_path / "jvm") == program


@pytest.mark.parametrize("release", [True, False])
@pytest.mark.parametrize("old", ["1.8", "11", "25"])
def test_another_version_on_path_is_not_used_where_the_system_has_a_fitting_one(
    tmp_path: Path, old: str, release: bool
) -> None:
    on_path(tmp_path, jdk(tmp_path / "old", old, release=release))
    jdk(tmp_path / "jvm/java-1.17-of-nothing", "11")
    program = jdk(tmp_path / "jvm/java-21-openjdk", "21", release=release)
    assert java_program(tmp_path / "jvm") == program
    assert os.environ["JAVA_HOME"] == str(tmp_path / "jvm/java-21-openjdk")


def test_a_fitting_one_on_path_is_used_as_spark_does(tmp_path: Path) -> None:
    link = on_path(tmp_path, jdk(tmp_path / "own", "17"))
    jdk(tmp_path / "jvm/java-21-openjdk", "21")
    assert java_program(tmp_path / "jvm") == link
    assert os.environ["JAVA_HOME"] == ""


def test_where_there_is_no_fitting_one_that_on_path_is_left_to_spark(tmp_path: Path) -> None:
    link = on_path(tmp_path, jdk(tmp_path / "old", "11"))
    assert java_program(tmp_path / "jvm") == link


def test_no_java(tmp_path: Path) -> None:
    with raises_code(EnvironmentMissing, "java-missing") as missing:
        java_program(tmp_path / "jvm")
    assert missing.value.hint == "run scripts/setup, or install a Java 17 runtime and set JAVA_HOME"
