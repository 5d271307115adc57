"""A batch that is planned and not committed, under sinks that show nothing and others."""

from __future__ import annotations

from collections.abc import Callable

from slackwater.core.facts import Facts, SinkFacts
from slackwater.core.sink import Delivery, Guarantee
from slackwater.core.snapshot import OutputSeen
from tests.diagnose.cases import AGGREGATION, Case, nothing, remove

_IDENTITY = {"kind": "foreach_batch", "name": "write"}
_INTERRUPTED = remove("checkpoint/commits/7")


def _sink(guarantee: Guarantee, mode: str = "append", holder: str | None = None) -> Callable[[Facts], Facts]:
    """A change of the facts: a sink with this guarantee, which shows no batch."""

    def change(facts: Facts) -> Facts:
        seen, snapshot = OutputSeen(delivery=Delivery(guarantee, "it is a function")), facts.snapshot
        stream = snapshot.stream._replace(sink=_IDENTITY, output_mode=mode, pipeline="web", pipeline_file="clicks.py")
        return facts._replace(
            recorded=True,
            snapshot=snapshot._replace(stream=stream, output=seen, holder=holder),
            sink=SinkFacts(_IDENTITY, seen, None),
        )

    return change


_CODE, _AGAIN = "SW-SINK-003", _sink("at-least-once")
CASES = [
    Case("interrupted", _CODE, _INTERRUPTED, ledger=_AGAIN, says=("batch 7", "foreach_batch", "run clicks.py", "cp ")),
    Case(
        "with state",
        _CODE,
        remove("checkpoint/commits/8"),
        AGGREGATION,
        ledger=_AGAIN,
        says=("batch 8",),
    ),
    Case("committed", _CODE, nothing, ledger=_AGAIN, fires=False),
    Case("a sink that skips it", _CODE, _INTERRUPTED, ledger=_sink("exactly-once"), fires=False),
    Case("rows replace each other", _CODE, _INTERRUPTED, ledger=_sink("at-least-once", "complete"), fires=False),
    Case("it runs", _CODE, _INTERRUPTED, ledger=_sink("at-least-once", holder="run"), fires=False),
]
