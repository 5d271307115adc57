"""An output of a kind that is not registered: nothing is known of it and nothing is changed."""

from __future__ import annotations

import pytest

from slackwater.errors import PipelineError, Refused
from slackwater.model.sink import Cut, Owner
from slackwater.sinks.registry import open_output
from slackwater.storage.open import open_write_store

IDENTITIES: tuple[dict[str, str], ...] = ({}, {"kind": "nosuch", "topic": "clicks"}, {"kind": "", "path": "out"})


@pytest.mark.parametrize("identity", IDENTITIES)
def test_everything_is_refused(identity: dict[str, str]) -> None:
    output, backup = open_output(identity), open_write_store("memory://unknown-kind")
    cut = Cut(0, (1,), ("a",), 1)
    assert output.last_written() is None
    for act in (
        lambda: output.cut_after(0, {}),
        lambda: output.cut(cut, {}, backup),
        lambda: output.restore(cut, backup),
    ):
        with pytest.raises(Refused) as refused:
            act()
        assert refused.value.code == "sink-uncuttable"
    with pytest.raises(PipelineError) as unreadable:
        output.reader_path()
    assert unreadable.value.code == "output-unreadable"
    output.claim(Owner("a", "b", "c"))
    assert output.owner() is None
    assert output.damage() == ()
    assert output.log() is None
    assert output.name_of("file:///a") is None
    assert not (output.traits.cuts)
    assert not (output.traits.swaps)
    assert not (output.traits.tells_written)
    assert output.location == open_output(dict(identity)).location
