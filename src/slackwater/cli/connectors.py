"""``slackwater connectors``: the jars that Spark needs to speak to Kafka and the like."""

from __future__ import annotations

import sys

from slackwater.cli.arguments import Format, Parser, add_format, add_home, add_verbs
from slackwater.cli.console import err, out, prepare, print_json

SCHEMA = "slackwater.connectors/1"


def declare(parser: Parser) -> None:
    """Its verbs."""
    add_verb = add_verbs(parser)
    listing = add_verb("list", "Show the connectors for the installed Spark.")
    _add_common(listing)
    listing.epilog = "Nothing is fetched."
    listing.set_defaults(verb=list_)

    fetching = add_verb("fetch", "Fetch the jars of connectors ahead of a run.")
    fetching.add_argument("names", metavar="NAME", nargs="+", help="connectors, such as kafka")
    _add_common(fetching)
    fetching.epilog = "What is there already is not fetched again. stdout has the paths of the jars."
    fetching.set_defaults(verb=fetch)


def _add_common(parser: Parser) -> None:
    parser.add_argument("--spark", metavar="4.1", help="for this Spark instead of the installed one")
    add_home(parser)
    add_format(parser)


def list_(*, spark: str | None, home: str | None, shown_as: Format) -> int:
    """Show which connectors there are, and what of them is here."""
    from slackwater.app.fetch_connectors import installed_spark, list_connectors  # noqa: PLC0415 - light start

    prepare(home, shown_as)
    version = spark or installed_spark()
    found = list_connectors(version)
    if shown_as is Format.JSON:
        listed = [{"name": one.name, "jars": list(one.coordinates), "fetched": one.fetched} for one in found]
        print_json({"schema": SCHEMA, "spark": version, "connectors": listed})
        return 0
    for one in found:
        jars = len(one.coordinates)
        there = "fetched" if one.complete else f"{one.fetched} of {jars} fetched"
        out().print(f"{one.name:<14} {jars:>2} jars  {there}", markup=False)
    return 0


def fetch(*, names: list[str], spark: str | None, home: str | None, shown_as: Format) -> int:
    """Fetch them, and print where they are."""
    from slackwater.app.fetch_connectors import fetch_connectors, installed_spark  # noqa: PLC0415 - light start

    prepare(home, shown_as)
    version = spark or installed_spark()
    paths = [str(path) for path in fetch_connectors(names, version, lambda text: err().print(text, markup=False))]
    if shown_as is Format.JSON:
        print_json({"schema": SCHEMA, "spark": version, "paths": paths})
        return 0
    for path in paths:
        sys.stdout.write(f"{path}\n")
    return 0
