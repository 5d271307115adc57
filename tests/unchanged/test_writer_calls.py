"""What a writer is given is kept, whatever the version of PySpark."""

from __future__ import annotations

import inspect

from pyspark.sql.streaming.readwriter import DataStreamWriter

from slackwater.runtime.application.writers import _TRIGGERS, Given, _keep_trigger


def test_each_trigger_of_this_pyspark_is_known() -> None:
    assert inspect.signature(DataStreamWriter.trigger).parameters.keys() - {"self"} <= _TRIGGERS.keys()


def test_a_trigger_of_real_time_mode_is_kept() -> None:
    given = Given()

    _keep_trigger(given, {"realTime": "5 seconds"})

    assert (given.trigger.kind, given.trigger.interval) == ("real-time", "5 seconds")
