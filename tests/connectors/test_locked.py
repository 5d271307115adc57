"""The list of jars: complete, well-formed, and for the Spark that the Python lock installs."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata, resources
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from slackwater import connectors
from slackwater.connectors.cache import Jar, jars_of, known, parse
from slackwater.core.errors import EnvironmentMissing, UsageError
from tests.support.errors import raises_code

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


def test_a_connector_not_locked_for_a_spark_says_for_which_it_is() -> None:
    with raises_code(EnvironmentMissing, "connector-not-locked") as caught:
        connectors.resolve(["kafka"], "9.9.0")
    assert "Spark" in (caught.value.expected or "")
    assert "4.1" in (caught.value.expected or "")


def test_a_fresh_install_gets_a_spark_for_which_all_jars_are_locked() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    spark = next(map(Requirement, project["optional-dependencies"]["spark"]))
    minors = [minor for minor in ("4.0", "4.1", "4.2", "4.3", "4.4") if spark.specifier.contains(f"{minor}.3")]
    assert {"kafka", "delta", "iceberg", "avro", "s3a"} <= set(known(minors[-1]))
