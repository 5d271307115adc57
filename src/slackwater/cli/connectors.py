"""``slackwater connectors``: the jars that Spark needs to speak to Kafka and the like."""

from __future__ import annotations

from typing import Annotated

import typer

from slackwater.cli.console import Format, FormatOption, HomeOption, err, out, prepare, print_json

SCHEMA = "slackwater.connectors/1"
SparkOption = Annotated[
    str | None, typer.Option("--spark", metavar="4.1", help="For this Spark instead of the installed one.")
]


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    verbs = typer.Typer(no_args_is_help=True)
    verbs.command("list", help="Show the connectors for the installed Spark.")(list_)
    verbs.command("fetch", help="Fetch the jars of connectors ahead of a run.")(fetch)
    app.add_typer(verbs, name="connectors", help="Show and fetch connector jars, by a locked list.")


def list_(spark: SparkOption = None, home: HomeOption = None, shown_as: FormatOption = Format.TEXT) -> None:
    """Nothing is fetched."""
    from slackwater.app.fetch_connectors import installed_spark, list_connectors  # noqa: PLC0415 - light start

    prepare(home, shown_as)
    version = spark or installed_spark()
    found = list_connectors(version)
    if shown_as is Format.JSON:
        listed = [{"name": one.name, "jars": list(one.coordinates), "fetched": one.fetched} for one in found]
        print_json({"schema": SCHEMA, "spark": version, "connectors": listed})
        return
    for one in found:
        jars = len(one.coordinates)
        there = "fetched" if one.complete else f"{one.fetched} of {jars} fetched"
        out().print(f"{one.name:<14} {jars:>2} jars  {there}", markup=False)


def fetch(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Connectors, such as kafka.")],
    spark: SparkOption = None,
    home: HomeOption = None,
    shown_as: FormatOption = Format.TEXT,
) -> None:
    """What is there already is not fetched again. stdout has the paths of the jars."""
    from slackwater.app.fetch_connectors import fetch_connectors, installed_spark  # noqa: PLC0415 - light start

    prepare(home, shown_as)
    version = spark or installed_spark()
    paths = [str(path) for path in fetch_connectors(names, version, lambda text: err().print(text, markup=False))]
    if shown_as is Format.JSON:
        print_json({"schema": SCHEMA, "spark": version, "paths": paths})
        return
    for path in paths:
        typer.echo(path)
