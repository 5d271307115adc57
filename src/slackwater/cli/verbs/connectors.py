"""``slackwater connectors``: the jars for Kafka and other sources and sinks."""

from slackwater import connectors
from slackwater.cli.common.arguments import Format
from slackwater.cli.common.console import Document, out, prepare, print_json, say, write
from slackwater.connectors.cache import JarCache, default_folder, jars_of
from slackwater.core.errors import EnvironmentMissing
from slackwater.runtime.session import spark_version

NO_SPARK = "none"
"""A version that selects only jars without a dependency on Spark."""
SCHEMA = "slackwater.connectors/1"


def installed_spark() -> str:
    try:
        return spark_version()
    except ModuleNotFoundError:
        return NO_SPARK


def list_(*, spark: str | None, home: str | None, shown_as: Format) -> int:
    """The connectors with their locked jars; nothing is fetched."""
    prepare(home, shown_as)
    version, cache = spark or installed_spark(), JarCache(default_folder())
    listed: list[Document] = []
    for name in connectors.known(version):
        jars = jars_of(name, version)
        fetched = sum(cache.has(jar) for jar in jars)
        listed.append({"name": name, "jars": [jar.coordinate for jar in jars], "fetched": fetched})
    if shown_as is Format.JSON:
        print_json({"schema": SCHEMA, "spark": version, "connectors": listed})
        return 0
    for one in listed:
        jars_listed, fetched = len(one["jars"]), one["fetched"]
        there = "fetched" if fetched == jars_listed else f"{fetched} of {jars_listed} fetched"
        out().print(f"{one['name']:<14} {jars_listed:>2} jars  {there}")
    return 0


def fetch(*, names: list[str], spark: str | None, home: str | None, shown_as: Format) -> int:
    prepare(home, shown_as)
    version = spark or installed_spark()
    if version == NO_SPARK and not set(names) <= set(connectors.known(NO_SPARK)):
        raise EnvironmentMissing(
            "pyspark-missing",
            "Which jars a connector needs depends on Spark, and PySpark is not installed",
            hint="pip install 'pyspark<4.2' pandas 'protobuf<7'; or, with Maven, name a version: --spark 4.1",
        )
    paths = [str(path) for path in connectors.resolve(names, version, say)]
    if shown_as is Format.JSON:
        print_json({"schema": SCHEMA, "spark": version, "paths": paths})
    else:
        write("".join(f"{path}\n" for path in paths))
    return 0
