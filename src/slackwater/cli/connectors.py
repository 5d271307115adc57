"""``slackwater connectors``: the jars that Spark needs for Kafka and other sources and sinks."""

from __future__ import annotations

import argparse
import re
import sys

from slackwater.cli.arguments import Format, Parser, add_format, add_home, add_verbs, string
from slackwater.cli.console import err, out, prepare, print_json

_VERSION = re.compile(r"[0-9]{1,4}(\.[0-9]{1,4}){1,2}")


def declare(parser: Parser) -> None:
    """Declare the verbs."""
    add_verb = add_verbs(parser)
    listing = add_verb("list", "Show the connectors for the installed Spark.")
    _add_common(listing)
    listing.epilog = "Nothing is fetched."
    listing.set_defaults(verb=list_)

    fetching = add_verb("fetch", "Fetch the jars of connectors ahead of a run.")
    fetching.add_argument("names", metavar="NAME", nargs="+", type=string, help="connectors, such as kafka")
    _add_common(fetching)
    fetching.epilog = "Jars that are in the cache are not fetched again. stdout has the paths of the jars."
    fetching.set_defaults(verb=fetch)


def _add_common(parser: Parser) -> None:
    parser.add_argument(
        "--spark", metavar="4.1", type=_spark_version, help="for this Spark instead of the installed one"
    )
    add_home(parser)
    add_format(parser)


def _spark_version(text: str) -> str:
    if not _VERSION.fullmatch(text):
        raise argparse.ArgumentTypeError(f"give a version of Spark such as 4.1 or 4.1.3; found {text!r}")
    return text


def list_(*, spark: str | None, home: str | None, shown_as: Format) -> int:
    """Show which connectors exist, and which of their jars are in the cache."""
    from slackwater.app.documents.connectors import list_document  # noqa: PLC0415 - light start
    from slackwater.app.fetch_connectors import installed_spark, list_connectors  # noqa: PLC0415

    prepare(home, shown_as)
    version = spark or installed_spark()
    found = list_connectors(version)
    if shown_as is Format.JSON:
        print_json(list_document(version, found))
        return 0
    for one in found:
        jars = len(one.coordinates)
        there = "fetched" if one.complete else f"{one.fetched} of {jars} fetched"
        out().print(f"{one.name:<14} {jars:>2} jars  {there}", markup=False)
    return 0


def fetch(*, names: list[str], spark: str | None, home: str | None, shown_as: Format) -> int:
    """Fetch the jars and print their paths."""
    from slackwater.app.documents.connectors import fetch_document  # noqa: PLC0415 - light start
    from slackwater.app.fetch_connectors import fetch_connectors, installed_spark  # noqa: PLC0415

    prepare(home, shown_as)
    version = spark or installed_spark()
    paths = fetch_connectors(names, version, lambda text: err().print(text, markup=False))
    if shown_as is Format.JSON:
        print_json(fetch_document(version, paths))
        return 0
    for path in paths:
        sys.stdout.write(f"{path}\n")
    return 0
