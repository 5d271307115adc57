"""Names of ``slackwater.sinks``: those that exist, and the error for those that do not."""

import subprocess
import sys

import pytest

import slackwater as sw
from slackwater import sinks
from slackwater.core.errors import PipelineError
from slackwater.sinks.common.registry import catalogue, public_names


@pytest.mark.parametrize("name", ["nosuch", "Files", "to_table", "kafkaa"])
def test_an_unknown_sink_lists_those_that_exist(name: str) -> None:
    assert not hasattr(sw.sinks, name)
    with pytest.raises(PipelineError, match=r"slackwater\.sinks\.files.*slackwater\.sinks\.kafka") as raised:
        getattr(sw.sinks, name)
    assert (raised.value.code, raised.value.exit_code) == ("sink-unknown", 2)


def test_every_listed_sink_exists() -> None:
    assert [entry.name for entry in catalogue() if not callable(getattr(sinks, entry.name))] == []


def test_every_function_that_makes_a_sink_is_in_the_catalogue() -> None:
    assert {name for name in public_names() if name.islower()} == {entry.name for entry in catalogue()}


def test_a_private_name_is_an_attribute_error_only() -> None:
    name = "__wrapped__"
    with pytest.raises(AttributeError) as raised:
        getattr(sw.sinks, name)
    assert not isinstance(raised.value, PipelineError)


def test_a_sink_is_its_function_whatever_was_imported_before() -> None:
    code = (
        "import slackwater.sinks.files.manifest, slackwater.sinks.table\n"
        "from slackwater import sinks\n"
        "assert callable(sinks.files) and callable(sinks.table)\n"
        "import slackwater.sinks.delta.sink\n"
        "from slackwater.sinks import common, delta\n"
        "assert callable(delta) and sinks.delta is delta and common.__name__ == 'slackwater.sinks.common'\n"
        "assert set(sinks.__all__) <= set(dir(sinks)) and all(getattr(sinks, name) for name in sinks.__all__)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
