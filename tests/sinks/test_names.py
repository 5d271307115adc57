"""Names of ``slackwater.sinks``: those that exist, and the error for those that do not."""

from __future__ import annotations

import pytest

import slackwater as sw
from slackwater import sinks
from slackwater.errors import PipelineError


@pytest.mark.parametrize("name", ["foreach", "memory", "kafka", "delta", "iceberg", "Files", "Postgres"])
def test_an_unknown_sink_lists_those_that_exist(name: str) -> None:
    assert not hasattr(sw.sinks, name)
    with pytest.raises(PipelineError, match=r"slackwater\.sinks\.files") as raised:
        getattr(sw.sinks, name)
    assert (raised.value.code, raised.value.exit_code) == ("sink-unknown", 2)


def test_every_listed_sink_exists() -> None:
    assert [name for name in sinks.SINKS if not callable(getattr(sinks, name))] == []


def test_a_private_name_is_an_attribute_error_only() -> None:
    name = "__wrapped__"
    with pytest.raises(AttributeError) as raised:
        getattr(sw.sinks, name)
    assert not isinstance(raised.value, PipelineError)
