"""A batch that is planned and not committed, under sinks that show nothing and others; the log of the file sink."""

from collections.abc import Callable
from pathlib import Path

from slackwater.core.facts import Facts, SinkFacts
from slackwater.core.sink import Delivery, Guarantee
from slackwater.core.snapshot import OutputSeen
from slackwater.diagnose.checks.sink import LIMIT
from tests.diagnose.cases import AGGREGATION, Case, nothing, output_in_place, remove, write

_IDENTITY = {"kind": "foreach_batch", "name": "write"}
_INTERRUPTED = remove("checkpoint/commits/7")

_LINE = (
    '{{"path":"{folder}/{name}","size":1,"isDir":false,"modificationTime":1,"blockReplication":1,"blockSize":1,'
    '"action":"add"}}'
)


def _listing(files: int) -> Callable[[Path], None]:
    """An edit of the newest entry of the log, which lists so many files then."""

    def edit(case: Path) -> None:
        folder = (case / "sink").as_uri()
        lines = [_LINE.format(folder=folder, name=f"part-{number}.parquet") for number in range(files)]
        write("sink/_spark_metadata/8.compact", "\n".join(("v1", *lines)))(case)

    return edit


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
    Case("with state", _CODE, remove("checkpoint/commits/8"), AGGREGATION, ledger=_AGAIN, says=("batch 8",)),
    Case("committed", _CODE, nothing, ledger=_AGAIN, fires=False),
    Case("a sink that skips it", _CODE, _INTERRUPTED, ledger=_sink("exactly-once"), fires=False),
    Case("rows replace each other", _CODE, _INTERRUPTED, ledger=_sink("at-least-once", "complete"), fires=False),
    Case("it runs", _CODE, _INTERRUPTED, ledger=_sink("at-least-once", holder="run"), fires=False),
    Case("one more than the limit", "SW-FSINK-009", _listing(LIMIT + 1), with_sink=True, says=(str(LIMIT + 1),)),
    Case("as many as the limit", "SW-FSINK-009", _listing(LIMIT), with_sink=True, fires=False),
    Case("a file for each batch", "SW-FSINK-009", output_in_place, with_sink=True, fires=False),
]
