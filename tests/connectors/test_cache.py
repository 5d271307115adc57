"""What gets into the cache, and what does not."""

import os
import re
import shutil
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable, Sequence
from importlib import metadata, resources
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from slackwater import connectors
from slackwater.connectors.cache import Download, Jar, JarCache, by_ivy, by_maven, jars_of, known, parse
from slackwater.core.errors import EnvironmentMissing, UsageError
from tests.support.errors import raises_code

CONTENT = b"not a real jar"


def _files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and path.name != ".lock")


def _unreachable(jars: Sequence[Jar], folder: Path) -> str:
    assert jars
    assert folder.is_dir()
    return "could not resolve the host"


def _without_java(jars: Sequence[Jar], folder: Path) -> str:
    raise EnvironmentMissing("java-missing", f"Java is missing for {len(jars)} jars in {folder.name}")


def test_what_has_the_locked_hash_gets_in(tmp_path: Path, small_jar: Jar, serving: Callable[[bytes], Download]) -> None:
    cache = JarCache(tmp_path, ways=[serving(CONTENT)])
    cache.complete("small", [small_jar])
    assert cache.path(small_jar).read_bytes() == CONTENT
    assert _files(tmp_path) == ["small-1.0.jar"]


def test_another_hash_is_refused_and_leaves_nothing(
    tmp_path: Path, small_jar: Jar, serving: Callable[[bytes], Download]
) -> None:
    cache = JarCache(tmp_path, ways=[serving(b"something else")])
    with raises_code(EnvironmentMissing, "connector-hash-mismatch", exit_code=9, expected=f"sha256 {small_jar.sha256}"):
        cache.complete("small", [small_jar])
    assert _files(tmp_path) == []


@pytest.mark.parametrize("content", [b"half a downl", None], ids=["wrong file", "no Java"])
def test_a_second_way_makes_up_for_the_first(
    tmp_path: Path, small_jar: Jar, serving: Callable[[bytes], Download], content: bytes | None
) -> None:
    first = _without_java if content is None else serving(content)
    cache = JarCache(tmp_path, ways=[first, serving(CONTENT)])
    cache.complete("small", [small_jar])
    assert cache.has(small_jar)


def test_without_a_network_it_says_what_is_missing(tmp_path: Path, small_jar: Jar) -> None:
    with raises_code(EnvironmentMissing, "connector-unavailable") as caught:
        JarCache(tmp_path, ways=[_unreachable]).complete("small", [small_jar])
    assert caught.value.where == "org.example:small:1.0"
    assert caught.value.found == "could not resolve the host"


@pytest.mark.parametrize(
    ("last", "code"), [(lambda *_: "", "java-missing"), (_unreachable, "connector-unavailable")], ids=["none", "fails"]
)
def test_without_java_it_says_so_unless_another_way_was_tried(
    tmp_path: Path, small_jar: Jar, last: Download, code: str
) -> None:
    with raises_code(EnvironmentMissing, code):
        JarCache(tmp_path, ways=[_without_java, last]).complete("small", [small_jar])


def test_what_is_cached_is_not_fetched_again(
    tmp_path: Path, small_jar: Jar, serving: Callable[[bytes], Download]
) -> None:
    JarCache(tmp_path, ways=[serving(CONTENT)]).complete("small", [small_jar])
    JarCache(tmp_path, ways=[_unreachable]).complete("small", [small_jar])


def test_a_jar_altered_in_the_cache_is_fetched_again(
    tmp_path: Path, small_jar: Jar, serving: Callable[[bytes], Download]
) -> None:
    cache = JarCache(tmp_path, ways=[serving(CONTENT)])
    cache.complete("small", [small_jar])
    cache.path(small_jar).write_bytes(b"tampered with")
    assert not cache.has(small_jar)
    cache.complete("small", [small_jar])
    assert cache.path(small_jar).read_bytes() == CONTENT


def test_a_jar_altered_with_its_size_and_time_kept_is_fetched_again(
    tmp_path: Path, small_jar: Jar, serving: Callable[[bytes], Download]
) -> None:
    cache = JarCache(tmp_path, ways=[serving(CONTENT)])
    cache.complete("small", [small_jar])
    path = cache.path(small_jar)
    before = path.stat()
    other = tmp_path / "other"
    other.write_bytes(CONTENT.swapcase())
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(path)
    assert path.stat().st_size == before.st_size
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert not cache.has(small_jar)
    assert _in_another_process(tmp_path, small_jar) == "False"
    cache.complete("small", [small_jar])
    assert path.read_bytes() == CONTENT
    assert _in_another_process(tmp_path, small_jar) == "True"


def _in_another_process(folder: Path, jar: Jar) -> str:
    program = (
        "import sys\nfrom pathlib import Path\nfrom slackwater.connectors.cache import JarCache\n"
        "from slackwater.connectors.cache import Jar\nprint(JarCache(Path(sys.argv[1])).has(Jar(*sys.argv[2:])))\n"
    )
    command = [sys.executable, "-c", program, str(folder), jar.group, jar.artifact, jar.version, jar.sha256]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_jar_copied_in_by_hand_counts_when_it_is_the_right_one(tmp_path: Path, small_jar: Jar) -> None:
    cache = JarCache(tmp_path, ways=[_unreachable])
    cache.path(small_jar).parent.mkdir(parents=True)
    cache.path(small_jar).write_bytes(CONTENT)
    cache.complete("small", [small_jar])


def test_what_a_killed_fetch_left_is_cleared_away(
    tmp_path: Path, small_jar: Jar, serving: Callable[[bytes], Download]
) -> None:
    abandoned = tmp_path / ".fetching-gone"
    abandoned.mkdir()
    (abandoned / "small-1.0.jar").write_bytes(b"not a re")
    JarCache(tmp_path, ways=[serving(CONTENT)]).complete("small", [small_jar])
    assert not abandoned.exists()


def test_of_two_at_once_one_fetches(tmp_path: Path, small_jar: Jar) -> None:
    inside, waiting = threading.Event(), threading.Event()
    fetched: list[Jar] = []

    def slowly(jars: Sequence[Jar], folder: Path) -> str:
        inside.set()
        assert waiting.wait(30)
        fetched.extend(jars)
        (folder / small_jar.file_name).write_bytes(CONTENT)
        return ""

    first = threading.Thread(target=JarCache(tmp_path, ways=[slowly]).complete, args=("small", [small_jar]))
    first.start()
    assert inside.wait(30)
    JarCache(tmp_path, ways=[slowly], say=lambda _: waiting.set()).complete("small", [small_jar])
    first.join(30)
    assert fetched == [small_jar]


# A real fetch of a real jar, by each of the ways.


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


# The list of jars: complete, well-formed, and for the Spark that the Python lock installs.


LOCKED = parse(resources.files("slackwater.connectors").joinpath("locked.toml").read_text())
EVERY_JAR = [(minor, name, jar) for minor, table in LOCKED.items() for name, jars in table.items() for jar in jars]


@pytest.mark.parametrize(("minor", "name", "jar"), EVERY_JAR, ids=lambda value: getattr(value, "coordinate", value))
def test_every_jar_has_a_version_and_a_hash(minor: str, name: str, jar: Jar) -> None:
    assert minor == "any" or re.fullmatch(r"\d\.\d", minor)
    assert re.fullmatch(r"[a-z0-9-]+", name)
    assert re.fullmatch(r"[0-9][\w.-]*", jar.version)
    assert re.fullmatch(r"[0-9a-f]{64}", jar.sha256)


def test_no_two_jars_of_a_connector_share_a_file() -> None:
    for table in LOCKED.values():
        for jars in table.values():
            assert len({jar.file_name for jar in jars}) == len(jars)


def test_the_installed_spark_has_every_connector() -> None:
    assert set(connectors.known(metadata.version("pyspark"))) == {
        "avro",
        "delta",
        "hdfs-server",
        "iceberg",
        "kafka",
        "kafka-broker",
        "postgresql",
        "s3a",
    }


def test_jars_of_spark_bear_the_version_of_the_installed_spark() -> None:
    version = metadata.version("pyspark")
    [source] = [jar for jar in jars_of("kafka", version) if jar.artifact.startswith("spark-sql-kafka")]
    assert source.version == version


def test_an_unknown_connector_is_named_with_those_that_exist() -> None:
    with raises_code(UsageError, "connector-unknown", match="kafkaa") as caught:
        connectors.resolve(["kafkaa"], "4.1.3")
    assert "kafka-broker" in str(caught.value)


def test_a_fresh_install_gets_a_spark_for_which_all_jars_are_locked() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    spark = next(map(Requirement, project["optional-dependencies"]["spark"]))
    minors = [minor for minor in ("4.0", "4.1", "4.2", "4.3", "4.4") if spark.specifier.contains(f"{minor}.3")]
    assert {"kafka", "delta", "iceberg", "avro", "s3a"} <= set(known(minors[-1]))
