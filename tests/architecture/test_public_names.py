"""The public surface is what is documented, and each name of it is there."""

from __future__ import annotations

from importlib import metadata

import slackwater

DOCUMENTED = {"Pipeline", "SlackwaterError", "StreamContext", "__version__", "sinks", "triggers", "watch"}


def test_the_public_names_are_the_documented_ones() -> None:
    assert set(slackwater.__all__) == DOCUMENTED
    assert len(slackwater.__all__) == len(DOCUMENTED)


def test_every_public_name_resolves() -> None:
    assert [name for name in slackwater.__all__ if getattr(slackwater, name, None) is None] == []


def test_the_version_is_that_of_the_distribution() -> None:
    assert slackwater.__version__ == metadata.version("slackwater")
