"""The page of ``slackwater sinks``."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group
from rich.text import Text

from slackwater.model.sink import CatalogueEntry, Traits

STYLES = {"exactly-once": "green", "at-least-once": "yellow", "none": "red"}
ABILITIES = {
    "tells_written": "shows the last written batch",
    "skips_known_batches": "skips a batch that it has",
    "reads_known_batches": "reads it all the same, for the watermark",
    "cuts": "whole batches can be removed and restored",
    "swaps": "new output can be put in place in one step",
    "one_writer": "one stream only",
    "continuous": "continuous processing",
    "combines": "can be one of several outputs",
}
"""The traits in words; what a sink does not have is not listed."""


def sinks_page(entries: Sequence[CatalogueEntry]) -> Group:
    """A block for each sink."""
    return Group(*(line for entry in entries for line in _block(entry)))


def abilities(traits: Traits) -> str:
    """What a sink can do, in words."""
    return ", ".join(words for name, words in ABILITIES.items() if getattr(traits, name)) or "-"


def _block(entry: CatalogueEntry) -> list[Text]:
    delivery = entry.traits.delivery
    heading = Text(f"sinks.{entry.call}", style="bold")
    heading.append(f"  {delivery.guarantee}", style=f"not bold {STYLES[delivery.guarantee]}")
    return [
        heading,
        Text(f"  why     {delivery.reason}"),
        Text(f"  modes   {', '.join(entry.output_modes)}"),
        Text(f"  traits  {abilities(entry.traits)}"),
    ]
