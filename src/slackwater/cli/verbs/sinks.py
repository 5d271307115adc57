"""``slackwater sinks``: the sinks, and their guarantees."""

from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Group
from rich.text import Text

from slackwater.cli.common.arguments import Format
from slackwater.cli.common.console import copied
from slackwater.cli.common.pages import heading, show
from slackwater.core.sink import CatalogueEntry
from slackwater.sinks.common.registry import catalogue

SCHEMA = "slackwater.sinks/1"
STYLES = {"exactly-once": "green", "at-least-once": "yellow", "none": "red"}
ABILITIES = {
    "reports_last_batch": "shows the last written batch",
    "skips_known_batches": "skips a batch that it has",
    "reads_known_batches": "reads it all the same, for the watermark",
    "cuts": "whole batches can be removed and restored",
    "swaps": "new output can be put in place in one step",
    "one_writer": "one stream only",
    "continuous": "continuous processing",
    "real_time": "real-time mode",
    "combines": "can be one of several outputs",
}
"""The traits in words; missing traits are not listed."""


def sinks_page(entries: Sequence[CatalogueEntry]) -> Group:
    lines: list[Text] = []
    for entry in entries:
        delivery = entry.traits.delivery
        traits = ", ".join(words for name, words in ABILITIES.items() if getattr(entry.traits, name))
        lines += [
            heading(f"sinks.{entry.call}", delivery.guarantee, STYLES[delivery.guarantee]),
            Text(f"  why     {delivery.reason}"),
            Text(f"  modes   {', '.join(entry.output_modes)}"),
            Text(f"  traits  {traits or '-'}"),
        ]
    return Group(*lines)


def sinks(*, shown_as: Format) -> int:
    listed = [
        {**copied(entry, "name", "call"), "output_modes": list(entry.output_modes), **asdict(entry.traits)}
        for entry in catalogue()
    ]
    show(shown_as, {"schema": SCHEMA, "sinks": listed}, lambda: sinks_page(catalogue()))
    return 0
