"""Use case: list the sinks with what they guarantee. Reads nothing."""

from __future__ import annotations

from slackwater.model.sink import CatalogueEntry
from slackwater.sinks.catalogue import CATALOGUE


def list_sinks() -> tuple[CatalogueEntry, ...]:
    """All sinks, in the order of the catalogue."""
    return CATALOGUE
