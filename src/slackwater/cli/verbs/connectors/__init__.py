"""``slackwater connectors``: the jars for Kafka and other sources and sinks."""

from __future__ import annotations

import argparse
import re

from slackwater.cli.common.arguments import Parser, Verb, add_format, add_home, add_verbs, string

_VERSION = re.compile(r"[0-9]{1,4}(\.[0-9]{1,4}){1,2}")


def declare(parser: Parser) -> None:
    add_verb = add_verbs(parser)
    listing = add_verb("list", "Show the connectors for the installed Spark.")
    _add_common(listing)
    listing.epilog = "Nothing is fetched."
    listing.set_defaults(verb="slackwater.cli.verbs.connectors.jars:list_")

    fetching = add_verb("fetch", "Fetch the jars of connectors ahead of a run.")
    fetching.add_argument("names", metavar="NAME", nargs="+", type=string, help="connectors, such as kafka")
    _add_common(fetching)
    fetching.epilog = "Jars that are in the cache are not fetched again. stdout has the paths of the jars."
    fetching.set_defaults(verb="slackwater.cli.verbs.connectors.jars:fetch")


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


VERB = Verb("Show and fetch connector jars, from a locked list.", declare=declare)
