from __future__ import annotations

import threading
from typing import Any
from unittest.mock import MagicMock

import pytest

from slackwater.runtime.replay import replay_query
from slackwater.runtime.replay.replay_query import _TriggerClock


def test_a_batch_that_ends_before_the_answer_is_read_was_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine the query's thread may wait for the next batch before the caller's thread runs again."""
    monkeypatch.setattr(replay_query, "_release", lambda *_: None)
    execution = MagicMock()
    execution.isActive.return_value = False
    clock = _TriggerClock(execution)
    turns = [threading.Event(), threading.Event()]

    def run_batches() -> None:
        for turn in turns:
            turn.set()
            clock.waitTillTime(0)

    thread = threading.Thread(target=run_batches)
    thread.start()
    answered: Any = clock._answered
    wait = answered.wait

    def read_late() -> None:
        wait(30)
        assert turns[1].wait(30)
        assert clock.waiting.wait(30)

    monkeypatch.setattr(answered, "wait", read_late)
    assert clock.resume()
    clock.end()
    thread.join(30)
    assert not thread.is_alive()
