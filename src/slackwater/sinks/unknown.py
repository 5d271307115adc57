"""The output of a sink whose kind is not registered: nothing can be read from it and nothing is changed."""

from __future__ import annotations

from collections.abc import Mapping

from slackwater.model.sink import Delivery
from slackwater.sinks.silent import SilentOutput, silent_traits

UNKNOWN_TRAITS = silent_traits(
    Delivery("at-least-once", "what the sink does with a batch that is written twice is unknown"), one_writer=False
)


def open_unknown_output(identity: Mapping[str, str]) -> SilentOutput:
    """An output that this version cannot open."""
    location = " ".join(f"{key}={value}" for key, value in sorted(identity.items()))
    return SilentOutput(identity.get("kind", "none"), UNKNOWN_TRAITS, location)
